"""Looking at running pools: the simulated three Sparks of both builds, and pools in every state of disrepair."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from lloom_gitops.catalog.settle import settle
from lloom_gitops.codec import encode
from lloom_gitops.drivers.clock import SystemClock
from lloom_gitops.drivers.gateway_http_key import gateway_key
from lloom_gitops.drivers.observe import Observation, Observer
from lloom_gitops.model.desired import Desired, Node
from lloom_gitops.model.inventory import Inventory, ObservedNode
from lloom_gitops.model.words import LaneState, Liveness, Seen
from lloom_gitops.sim.pool import SimPool, start_pool
from lloom_gitops.sim.three_spark import HEAD, NODES, PAIR, set_pair, three_spark_spec
from tests.pools import three_spark

from .bodies import fleet, node
from .broken_server import HTML, BrokenServer, answer, broken_server, json_answer
from .conftest import THIRD, TIME_SCALE, placed

_, COMMITTED = three_spark()


@pytest.fixture(scope="module")
def newer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimPool]:
    with start_pool(three_spark_spec(time_scale=TIME_SCALE), tmp_path_factory.mktemp("newer")) as pool:
        yield pool


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimPool]:
    spec = three_spark_spec(build="snapshot", time_scale=TIME_SCALE)
    with start_pool(spec, tmp_path_factory.mktemp("old")) as pool:
        yield pool


def look(pool: SimPool, previous: Inventory = COMMITTED) -> Observation:
    return Observer(placed(pool), lambda _: pool.key, SystemClock()).observe(previous, {})


def test_a_newer_pool_is_seen_exactly_as_committed(newer: SimPool) -> None:
    seen = look(newer)
    assert encode(seen.inventory) == encode(COMMITTED)
    assert (seen.answered, seen.failed, seen.notes) == (frozenset(NODES), False, ())
    assert settle(COMMITTED, seen.inventory) is COMMITTED


def test_without_a_past_only_the_unmanaged_load_time_is_missing(newer: SimPool) -> None:
    wanted = encode(COMMITTED)
    del wanted["lanes"][PAIR]["loadSeconds"]
    assert encode(look(newer, Inventory()).inventory) == wanted


def test_an_old_pool_lacks_what_old_builds_cannot_tell(old: SimPool) -> None:
    wanted: dict[str, Any] = encode(COMMITTED)
    for seen in wanted["nodes"].values():
        for key in ("disks", "weights", "commands", "gateway"):
            del seen[key]
        del seen["admission"]["guardCeiling"]
    # Old builds know no preferred lanes and route an alias to one model.
    del wanted["lanes"]["image-03"]["residency"]
    for alias in wanted["aliases"].values():
        alias["route"] = alias["route"][:1]
    # Counts by model alone: the mean of what both aliases of the pair asked for.
    for alias in ("cognition", "cognition-deep"):
        wanted["demand"][alias]["outputTokens"] = 727
    assert encode(look(old).inventory) == wanted


def test_a_hand_stopped_pair_is_seen(newer: SimPool) -> None:
    set_pair(newer, up=False)
    try:
        seen = look(newer).inventory.lanes[PAIR].state
    finally:
        set_pair(newer, up=True)
    assert seen in (LaneState.STOPPED, LaneState.LOADING)


def test_a_hung_and_a_dead_node_keep_their_facts(tmp_path: Path) -> None:
    """The head is dead, the second Spark hangs; nobody waits for long, and nothing is forgotten."""
    with start_pool(three_spark_spec(time_scale=TIME_SCALE), tmp_path) as pool:
        pool.pause("spark-node-02")
        pool.kill(HEAD)
        observer = Observer(placed(pool), lambda _: pool.key, SystemClock(), timeout=2)
        seen = observer.observe(COMMITTED, {})
    assert seen.answered == {THIRD, "macbook-local"}
    assert not seen.failed
    for name in (HEAD, "spark-node-02"):
        shown = seen.inventory.nodes[name]
        assert (shown.seen, shown.liveness) == (Seen.UNKNOWN, Liveness.SUSPECT)
    lanes = {name: lane for name, lane in seen.inventory.lanes.items() if name != PAIR}
    assert {**lanes, PAIR: COMMITTED.lanes[PAIR]} == COMMITTED.lanes
    assert seen.inventory.aliases == COMMITTED.aliases
    assert [note.split(":")[0] for note in seen.notes] == [HEAD, "spark-node-02"]


@pytest.fixture
def server() -> Iterator[BrokenServer]:
    with broken_server() as running:
        yield running


def gateway_of(server: BrokenServer) -> None:
    """Let a broken server answer as a gateway of the oldest build without lanes."""
    server.behaviours.update(
        {
            "/gateway/node": json_answer(200, node("a")),
            "/gateway/status": json_answer(200, {"ok": True, "runtimeManager": {"runtimes": {}}}),
            "/gateway/runtimes/plan": json_answer(200, {"ok": True}),
            "/gateway/routing": json_answer(200, {"aliases": {}}),
            "/gateway/models": json_answer(200, {"models": []}),
            "/gateway/metrics": json_answer(200, {}),
            "/gateway/fleet/profiles": json_answer(404, {"error": {"message": "no", "code": "not_found"}}),
        }
    )


def at(server: BrokenServer, *names: str) -> Desired:
    desired = fleet(*names)
    return msgspec.structs.replace(desired, nodes={name: Node(endpoint=server.url) for name in names})


UNREADABLE = {
    "a web page": (answer(200, HTML), False, "HTTP 200 without a JSON object"),
    "other JSON": (json_answer(200, {"hello": 1}), False, "what answers is no gateway"),
    "a wrong key": (json_answer(401, {"error": {"message": "no", "code": "unauthorized"}}), True, "no"),
    "a redirect": (answer(307, b"", "location: http://127.0.0.1:1/"), False, "redirects"),
    "an error page": (answer(500, HTML), False, "HTTP 500 without a JSON object"),
}


@pytest.mark.parametrize(("behaviour", "alive", "note"), UNREADABLE.values(), ids=UNREADABLE)
def test_all_nodes_unreadable_is_a_failed_look(
    server: BrokenServer, behaviour: Callable[..., None], alive: bool, note: str
) -> None:
    server.behaviours["/gateway/node"] = behaviour
    known = Inventory(nodes={"a": ObservedNode(platform="linux-arm64")})
    seen = Observer(at(server, "a"), lambda _: None, SystemClock()).observe(known, {})
    assert seen.failed
    # A gateway that lets nobody read it is not dead.
    assert seen.answered == (frozenset("a") if alive else frozenset())
    assert seen.inventory.nodes["a"].platform == "linux-arm64"
    assert seen.inventory.nodes["a"].seen is Seen.UNKNOWN
    assert len(seen.notes) == 1
    assert note in seen.notes[0]


def test_a_node_without_an_endpoint_is_asked_nothing() -> None:
    desired = msgspec.structs.replace(fleet("a"), nodes={"a": Node()})
    seen = Observer(desired, lambda _: None, SystemClock()).observe(Inventory(), {})
    assert (seen.failed, seen.notes) == (True, ())


def test_without_its_status_a_node_is_not_believed(server: BrokenServer) -> None:
    """The status alone tells ranks of distributed lanes from lanes."""
    gateway_of(server)
    server.behaviours["/gateway/status"] = answer(200, HTML)
    seen = Observer(at(server, "a"), lambda _: None, SystemClock()).observe(Inventory(), {})
    assert (seen.failed, seen.answered) == (True, frozenset("a"))


class Watch(SystemClock):
    """A clock whose time stands still until it is moved."""

    def __init__(self) -> None:
        self.time = 1000.0

    def monotonic(self) -> float:
        return self.time


def test_liveness_goes_by_the_last_answer(server: BrokenServer) -> None:
    gateway_of(server)
    clock = Watch()
    observer = Observer(at(server, "a"), lambda _: None, clock)
    known = observer.observe(Inventory(), {}).inventory
    server.behaviours["/gateway/node"] = answer(502, HTML)
    found = []
    for seconds in (10, 60, 299, 300):
        clock.time = 1000.0 + seconds
        found.append(observer.observe(known, {}).inventory.nodes["a"].liveness.value)
    assert found == ["ready", "suspect", "suspect", "lost"]
    # Who asks may know better, and a new observer knows nothing: then the node is in doubt, until it was watched long.
    assert observer.observe(known, {"a": 1290.0}).inventory.nodes["a"].liveness is Liveness.READY
    fresh = Observer(at(server, "a"), lambda _: None, clock)
    assert fresh.observe(known, {}).inventory.nodes["a"].liveness is Liveness.SUSPECT
    clock.time += 300
    assert fresh.observe(known, {}).inventory.nodes["a"].liveness is Liveness.LOST


def test_costly_facts_are_asked_for_every_five_minutes(server: BrokenServer) -> None:
    gateway_of(server)
    shown = node("a", inventory={"disks": [{"root": "models", "freeGb": 5}]})
    server.behaviours["/gateway/node"] = json_answer(200, shown)
    clock = Watch()
    observer = Observer(at(server, "a"), lambda _: None, clock)
    for seconds in (0, 299, 300):
        clock.time = 1000.0 + seconds
        assert observer.observe(Inventory(), {}).inventory.nodes["a"].disks is not None
    asked = [head.split(" ")[1] for head in server.seen if head.startswith("GET /gateway/node")]
    assert asked == [
        "/gateway/node?inventory=1&memoryUsage=1",
        "/gateway/node",
        "/gateway/node?inventory=1&memoryUsage=1",
    ]
    assert len([head for head in server.seen if head.startswith("GET /gateway/fleet/profiles")]) == 2


def test_looking_changes_nothing(server: BrokenServer) -> None:
    gateway_of(server)
    Observer(at(server, "a"), lambda _: None, SystemClock()).observe(Inventory(), {})
    assert {head.split(" ")[0] for head in server.seen} == {"GET"}


def test_who_comes_while_a_look_is_under_way_shares_it(server: BrokenServer) -> None:
    gateway_of(server)
    begun, go_on = threading.Event(), threading.Event()
    plain = server.behaviours["/gateway/node"]

    def slow(client: Any) -> None:
        begun.set()
        go_on.wait()
        plain(client)

    server.behaviours["/gateway/node"] = slow
    observer = Observer(at(server, "a"), lambda _: None, SystemClock())
    found: list[Observation] = []
    looks = [threading.Thread(target=lambda: found.append(observer.observe(Inventory(), {}))) for _ in range(5)]
    looks[0].start()
    begun.wait()
    for thread in looks[1:]:
        thread.start()
    while len([thread for thread in looks if thread.is_alive()]) < 5:
        pass
    SystemClock().sleep(0.1)
    go_on.set()
    for thread in looks:
        thread.join()
    assert len(found) == 5
    assert all(not seen.failed for seen in found)
    assert len([head for head in server.seen if head.startswith("GET /gateway/node")]) == 1


def test_no_more_nodes_at_once_than_allowed(server: BrokenServer) -> None:
    gateway_of(server)
    plain = server.behaviours["/gateway/node"]
    lock, now, most = threading.Lock(), [0], [0]

    def counted(client: Any) -> None:
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        SystemClock().sleep(0.02)
        with lock:
            now[0] -= 1
        plain(client)

    server.behaviours["/gateway/node"] = counted
    names = [f"n{index}" for index in range(12)]
    seen = Observer(at(server, *names), lambda _: None, SystemClock(), concurrency=3).observe(Inventory(), {})
    assert seen.answered == frozenset(names)
    assert most[0] <= 3


def test_where_keys_come_from(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("from-a-file\n")
    assert gateway_key(Node(api_key_env="KEY"), {"KEY": " secret "}) == "secret"
    assert gateway_key(Node(api_key_env="KEY"), {}) is None
    assert gateway_key(Node(api_key_env="KEY"), {"KEY": ""}) is None
    assert gateway_key(Node(api_key_file=str(tmp_path / "key")), {}) == "from-a-file"
    assert gateway_key(Node(api_key_file=str(tmp_path / "none")), {}) is None
    assert gateway_key(Node(), {"KEY": "secret"}) is None
