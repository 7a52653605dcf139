"""The config file: what a change does, and the silence about a broken one."""

from __future__ import annotations

import copy
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.contract.world import N1, N3, NODES, Gateways, wait_until

Doc = dict[str, Any]


@pytest.fixture(autouse=True)
def _restore(gateways: Gateways) -> Iterator[None]:
    before = {node: gateways.pool.configs[node].read_text() for node in NODES}
    yield
    for node, text in before.items():
        if gateways.pool.configs[node].read_text() != text:
            replace(gateways, node, json.loads(text))
            wait_until(
                lambda node=node, text=text: _taken_over(gateways, node, json.loads(text)), what="the old config"
            )


def document(gateways: Gateways, node: str) -> Doc:
    found: Doc = json.loads(gateways.pool.configs[node].read_text())
    return found


def replace(gateways: Gateways, node: str, new: Doc | str) -> None:
    path = gateways.pool.configs[node]
    temporary = path.with_suffix(".new")
    temporary.write_text(new if isinstance(new, str) else json.dumps(new))
    temporary.replace(path)


def _taken_over(gateways: Gateways, node: str, wanted: Doc) -> bool:
    rows = gateways.get(node, "/gateway/node")["node"]["runtimeManager"]["runtimes"]
    lanes = {lane: e for lane, e in wanted["runtimes"].items() if e.get("node") == node}
    same = all(rows[lane]["keepWarm"] is (e.get("keepWarm") is True) for lane, e in lanes.items() if lane in rows)
    routed = {name: _first(alias) for name, alias in gateways.get(node, "/gateway/routing")["aliases"].items()}
    return same and set(rows) == set(lanes) and routed == {name: _first(a) for name, a in wanted["aliases"].items()}


def _first(alias: Any) -> str:
    if isinstance(alias, str):
        return alias
    found: str = (alias.get("members") or [alias.get("target")])[0]
    return found


def test_an_alias_edit_shows_in_routing_and_restarts_nothing(gateways: Gateways) -> None:
    gateways.up("chat-a-01")
    pid = gateways.row("chat-a-01")["pid"]
    new = document(gateways, N1)
    new["aliases"]["chat"] = {"target": "acme/big"}
    replace(gateways, N1, new)
    wait_until(lambda: _first(gateways.get(N1, "/gateway/routing")["aliases"]["chat"]) == "acme/big", what="the edit")
    assert gateways.row("chat-a-01")["pid"] == pid


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param("{ this is no JSON", id="no JSON"),
        pytest.param({"aliases": {"chat": {"target": "acme/none"}}}, id="alias of an unknown model"),
        pytest.param({"keepWarm": ["chat-a-01"]}, id="residency at the top"),
    ],
)
def test_a_broken_file_changes_nothing_and_nothing_tells(gateways: Gateways, broken: str | Doc) -> None:
    before = gateways.get(N1, "/gateway/routing")
    new = broken if isinstance(broken, str) else {**document(gateways, N1), **broken}
    replace(gateways, N1, new)
    good = document_or_none(gateways, N1)
    seen_again = {**(good or {}), **copy.deepcopy(json.loads(_shared(gateways)))}
    seen_again["aliases"] = {**seen_again["aliases"], "marker": "acme/big"}
    _pause_for_a_poll(gateways)
    assert gateways.get(N1, "/gateway/routing") == before
    assert gateways.get(N1, "/gateway/status")["ok"] is True
    seen_again.pop("keepWarm", None)
    replace(gateways, N1, seen_again)
    wait_until(lambda: "marker" in gateways.get(N1, "/gateway/routing")["aliases"], what="the good file after it")


def document_or_none(gateways: Gateways, node: str) -> Doc | None:
    try:
        return document(gateways, node)
    except ValueError:
        return None


def _shared(gateways: Gateways) -> str:
    """The config of N1 as another node has it, placed at N1."""
    other = document(gateways, N3)
    other["server"]["port"] = int(gateways.pool.urls[N1].rsplit(":", 1)[1])
    other["cluster"]["nodeId"] = N1
    return json.dumps(other)


def _pause_for_a_poll(gateways: Gateways) -> None:
    time.sleep(0.2 if gateways.simulated else 1.2)


def test_the_members_form_is_refused_whole_by_the_snapshot(gateways: Gateways) -> None:
    new = document(gateways, N1)
    new["aliases"]["chat"] = {"members": ["acme/chat-a", "acme/big"]}
    new["aliases"]["other"] = "acme/big"
    replace(gateways, N1, new)
    if gateways.newer:
        wait_until(lambda: "other" in gateways.get(N1, "/gateway/routing")["aliases"], what="the edit")
        assert gateways.get(N1, "/gateway/routing")["aliases"]["chat"]["members"] == ["acme/chat-a", "acme/big"]
    else:
        _pause_for_a_poll(gateways)
        assert "other" not in gateways.get(N1, "/gateway/routing")["aliases"]


def test_a_keep_warm_flip_restarts_the_lane_in_the_snapshot_only(gateways: Gateways) -> None:
    gateways.up("image-03")
    before = gateways.row("image-03")
    new = document(gateways, N3)
    new["runtimes"]["image-03"]["keepWarm"] = True
    replace(gateways, N3, new)
    wait_until(
        lambda: gateways.row("image-03")["keepWarm"] is True and gateways.row("image-03")["healthy"], what="the flip"
    )
    after = gateways.row("image-03")
    assert (after["pid"] == before["pid"]) is gateways.newer
    if not gateways.newer:
        events = gateways.get(N3, "/gateway/node")["node"]["runtimeManager"]["events"]
        mine = [e for e in events if e["runtimeId"] == "image-03"]
        assert next(e for e in mine if e["event"] == "start")["reason"] == "config-reload"
        assert any(e["event"] == "state" and e["status"] == "draining" and e["reason"] == "eviction" for e in mine)


def test_a_removed_lane_is_stopped(gateways: Gateways) -> None:
    gateways.up("image-03")
    new = document(gateways, N3)
    del new["runtimes"]["image-03"]
    new["models"] = [m for m in new["models"] if m["id"] != "acme/image"]
    replace(gateways, N3, new)

    def gone() -> bool:
        return "image-03" not in gateways.get(N3, "/gateway/node")["node"]["runtimeManager"]["runtimes"]

    wait_until(gone, what="the removal")
    # The leader still declares it: its owner answers, and does not know it.
    wait_until(
        lambda: gateways.get(N1, "/gateway/status")["runtimeManager"]["runtimes"]["image-03"]["status"] == "unknown",
        what="the unknown row",
    )
