"""What is found, and what is let pass: names, pins and secrets row by row, and any bytes at all without a crash."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lloom_gitops.checks.documents import document_findings
from lloom_gitops.checks.documents_secrets import secret_findings
from lloom_gitops.codec import dump, parse
from lloom_gitops.model.errors import Finding, Severity
from tests.checks_documents.test_golden import HERE, TODAY, files_of
from tests.pools import fleet_files

BASE = files_of(HERE / "base")
INVENTORY = "fleet/observed/inventory.yaml"


def codes(findings: Iterable[Finding]) -> list[str]:
    return [finding.code for finding in findings]


def changed(path: str, old: str, new: str) -> dict[str, bytes]:
    assert old.encode() in BASE[path], (path, old)
    return BASE | {path: BASE[path].replace(old.encode(), new.encode())}


def pins(body: str) -> dict[str, bytes]:
    return changed("fleet/pins.yaml", "img@n1: {residency: always, reason: printer}", body)


def test_the_fleet_of_this_repository_is_clean() -> None:
    assert document_findings(fleet_files(), TODAY) == ()


def test_without_an_inventory_unknown_names_are_warnings() -> None:
    files = changed("fleet/aliases.yaml", "[big, small]", "[big, small, federated]")
    with_inventory = document_findings(files, TODAY)
    assert [(f.code, f.severity) for f in with_inventory] == [("unknownModel", Severity.ERROR)]
    del files[INVENTORY]
    without = document_findings(files, TODAY)
    assert [(f.code, f.severity) for f in without] == [
        ("unknownModel", Severity.WARNING),
        ("unknownLane", Severity.WARNING),
    ]
    assert all("inventory --write" in (f.hint or "") for f in without)


def test_a_member_that_is_only_seen_may_be_named() -> None:
    files = changed(INVENTORY, "  lanes:", "    guest: {member: true}\n  lanes:")
    files["fleet/pins.yaml"] = pins("small@guest: {}")["fleet/pins.yaml"]
    assert document_findings(files, TODAY) == ()


@pytest.mark.parametrize(
    ("path", "broken", "still"),
    [
        ("fleet/nodes/n2.yaml", "unknownField", []),
        ("recipes/r-img.yaml", "unknownField", []),
        ("fleet/lanes/pair.yaml", "unknownField", []),
        ("fleet/aliases.yaml", "unknownField", []),
        ("fleet/pool.yaml", "unknownField", []),
    ],
)
def test_what_a_broken_document_may_have_named_is_let_pass(path: str, broken: str, still: list[str]) -> None:
    files = BASE | {path: BASE[path] + b"  odd: 1\n"}
    assert codes(document_findings(files, TODAY)) == [broken, *still]


PINS_THAT_GO_TOGETHER = {
    "two nodes": "small@n1: {residency: always}\nimg@n2: {residency: always}",
    "one node": "small@n2: {residency: always}\nimg@n2: {residency: always}",
    # 60 + 40 + 30 is too much, but auto lanes take turns.
    "auto lanes": "big@n1+n2: {residency: always}\nsmall@n2: {residency: auto}\nimg@n2: {residency: auto}",
    "no residency": "big@n1+n2: {}\nsmall@n2: {}\nimg@n2: {}",
    "preferred makes room for auto": "small@n2: {residency: preferred}\nbig@n1+n2: {residency: auto}\nimg@n2: {}",
    "a model without known memory": "cloudy@n2: {residency: always}",
}
PINS_THAT_EXCLUDE = {
    "three on one node": "big@n1+n2: {residency: always}\nimg@n2: {residency: always}\nsmall@n2: {residency: always}",
    "preferred counts": "big@n1+n2: {residency: always}\nimg@n2: {residency: preferred}\nsmall@n2: {residency: always}",
    "auto beside always": "big@n1+n2: {residency: always}\nimg@n2: {residency: always}\nsmall@n2: {residency: auto}",
}


@pytest.mark.parametrize("body", PINS_THAT_GO_TOGETHER.values(), ids=PINS_THAT_GO_TOGETHER.keys())
def test_pins_that_go_together(body: str) -> None:
    assert "pinsExclude" not in codes(document_findings(pins(body.replace("\n", "\n  ")), TODAY))


@pytest.mark.parametrize("body", PINS_THAT_EXCLUDE.values(), ids=PINS_THAT_EXCLUDE.keys())
def test_pins_that_exclude_each_other(body: str) -> None:
    findings = document_findings(pins(body.replace("\n", "\n  ")), TODAY)
    assert codes(findings) == ["pinsExclude"]
    assert (findings[0].wanted, findings[0].found) == ("at most 106.7 GiB", "130 GiB")


def test_models_of_one_lane_are_counted_once() -> None:
    lane = "  lanes:\n    both: {models: [small, img], kind: chat, nodes: [n2], owner: n2, memoryGb: {n2: 60}}\n"
    files = changed(INVENTORY, "  lanes:\n", lane)
    files["recipes/r-img.yaml"] = BASE["recipes/r-img.yaml"].replace(b"memoryGb: 30", b"memoryGb: 90")
    files["recipes/r-small.yaml"] = BASE["recipes/r-small.yaml"].replace(b"memoryGb: 40", b"memoryGb: 90")
    files[INVENTORY] = files[INVENTORY].replace(b"memoryGb: {n2: 40}", b"memoryGb: {n2: 90}")
    files["fleet/pins.yaml"] = pins("img@n2: {residency: always}\n  small@n2: {residency: always}")["fleet/pins.yaml"]
    assert document_findings(files, TODAY) == ()


def test_what_runs_over_budget_when_a_pool_is_adopted_may_be_pinned() -> None:
    running = "state: running, residency: always, memoryGb: {n2: 115}"
    files = changed(INVENTORY, "state: stopped, memoryGb: {n2: 40}", running)
    files["recipes/r-small.yaml"] = BASE["recipes/r-small.yaml"].replace(b"memoryGb: 40", b"memoryGb: 115")
    files["fleet/pins.yaml"] = pins("small@n2: {residency: always}")["fleet/pins.yaml"]
    assert document_findings(files, TODAY) == ()
    files[INVENTORY] = files[INVENTORY].replace(b"state: running", b"state: stopped")
    assert codes(document_findings(files, TODAY)) == ["pinTooLarge"]


@pytest.mark.parametrize(
    ("declared", "at_the_head", "code"),
    [
        ("serve", "serve", None),
        ("hold", "cordon", None),
        ("cordon", "serve", "pinOnCordonedNode"),
        ("serve", "drain", "pinOnCordonedNode"),
    ],
)
def test_pins_on_nodes_that_lanes_leave(declared: str, at_the_head: str, code: str | None) -> None:
    files = changed("fleet/nodes/n1.yaml", "apiKeyEnv", f"state: {declared}\n  apiKeyEnv")
    files[INVENTORY] = BASE[INVENTORY].replace(b"n1: {platform", f"n1: {{state: {at_the_head}, platform".encode())
    assert codes(document_findings(files, TODAY)) == ([code] if code else [])


@pytest.mark.parametrize(
    ("expires", "today", "code"),
    [
        ("2026-12-08", date(2026, 11, 30), None),
        ("2026-12-07", date(2026, 11, 30), "pinExpiresSoon"),
        ("2026-12-01", date(2026, 11, 30), "pinExpiresSoon"),
        ("2026-11-30", date(2026, 11, 30), "pinExpired"),
        ("2028-02-29", date(2026, 11, 30), None),
        ("2027-02-29", date(2026, 11, 30), "noSuchDay"),
    ],
)
def test_pins_get_old(expires: str, today: date, code: str | None) -> None:
    assert codes(document_findings(pins(f"img@n1: {{expires: {expires}}}"), today)) == ([code] if code else [])


SECRETS = {
    "key of an issuer": ({"reason": "sk-proj-abcdefgh12345678"}, ["secretInText"]),
    "token in a sentence": ({"reason": "call with ghp_0123456789abcdef please"}, ["secretInText"]),
    "header": ({"manual": {"start": "curl -H 'Authorization: Bearer abc.def-ghi_jkl'"}}, ["secretInText"]),
    "JSON web token": ({"reason": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc"}, ["secretInText"]),
    "private key": ({"x": "-----BEGIN OPENSSH PRIVATE KEY-----"}, ["secretInText"]),
    "as a key of a map": ({"labels": {"sk-abcdefgh12345678": "x"}}, ["secretInText"]),
    "in a list": ({"x": ["a", "hf_abcdefghijkl"]}, ["secretInText"]),
    "password in a URL": ({"endpoint": "http://u:p@h:8100"}, ["secretInUrl"]),
    "user in a URL": ({"endpoint": "https://token@h/"}, ["secretInUrl"]),
    "password in a text": ({"reason": "see https://u:p@h/x"}, ["secretInUrl"]),
    "key in a query": ({"healthUrl": "http://h/health?a=1&api_key=abc"}, ["secretInUrl"]),
    "hexadecimal name": ({"apiKeyEnv": "0F1E2D3C4B5A69788796A5B4"}, ["secretForName"]),
    "key as name": ({"apiKeyEnv": "sk-abcdefgh12345678"}, ["secretForName"]),
    "variable": ({"env": {"API_KEY": "plain"}}, ["secretInLaunch"]),
    "flag and value": ({"args": ["--api-key", "plain"]}, ["secretInLaunch"]),
    "flag with value": ({"args": ["--token=plain"]}, ["secretInLaunch"]),
}
NO_SECRETS = {
    "name": {"apiKeyEnv": "LLOOM_CLUSTER_KEY_2"},
    "long name": {"apiKeyEnv": "LLOOM_CLUSTER_OPENROUTER_API_KEY_FOR_SPARKS"},
    "digest": {"plan": "sha256:" + "a1" * 32},
    "revision": {"revision": "0123456789abcdef0123456789abcdef01234567"},
    "artifact": {"model": "sk-learn/some-model"},
    "reference": {"env": {"API_KEY": "${API_KEY}", "HF_TOKEN": "{{ token }}", "KEY": "<your key>"}},
    "empty": {"env": {"API_KEY": ""}},
    "other variable": {"env": {"TOKENIZERS_PARALLELISM": "true", "MAX_TOKENS": "12"}},
    "flags of tokens": {"args": ["--max-tokens", "100", "--tokenizer", "x", "--api-key", "${KEY}", "--token", "--v"]},
    "URL": {"endpoint": "http://10.0.0.1:8100/path?verbose=1"},
    "user of a source": {"source": "git+ssh://git@example.org/repo"},
    "digest of an image": {"image": "docker://vllm/vllm-openai@sha256:00"},
    "mail in a reason": {"reason": "ask ops@example.org"},
    "pin": {"qwen3-embedding-4b@spark-node-03": {}},
    "numbers": {"a": [1, None, True]},
}


@pytest.mark.parametrize(("data", "expected"), SECRETS.values(), ids=SECRETS.keys())
def test_secrets_are_found_and_not_shown(data: object, expected: list[str]) -> None:
    findings = list(secret_findings(parse(dump({"spec": data}).encode(), "x.yaml")))
    assert codes(findings) == expected
    for finding in findings:
        assert "sk-" not in repr(finding)
        assert "plain" not in repr(finding)


@pytest.mark.parametrize("data", NO_SECRETS.values(), ids=NO_SECRETS.keys())
def test_what_is_no_secret(data: object) -> None:
    assert list(secret_findings(parse(dump({"spec": data}).encode(), "x.yaml"))) == []


PATHS = sorted(BASE)
PIECES = [
    b"",
    b"\x00",
    b"\xff",
    b"{",
    b"}",
    b"[",
    b"]",
    b": ",
    b"- ",
    b"&a ",
    b"*a",
    b"!!x ",
    b"'",
    b'"',
    b"\n",
    b"#",
    b"-1",
    b"~",
]


@st.composite
def vandalised(draw: st.DrawFn) -> dict[str, bytes]:
    """The base with one to three cuts and insertions at random places."""
    files = dict(BASE)
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from(PATHS))
        data = files[path]
        at = draw(st.integers(0, len(data)))
        cut = draw(st.sampled_from([0, 1, 5, 40]))
        files[path] = data[:at] + draw(st.sampled_from(PIECES)) + data[at + cut :]
    return files


@settings(max_examples=250, deadline=None, derandomize=True, database=None)
@given(vandalised())
def test_any_bytes_give_findings_with_places_never_a_crash(files: dict[str, bytes]) -> None:
    for finding in document_findings(files, TODAY):
        assert finding.file in BASE
        assert finding.hint


def test_the_order_of_files_does_not_matter() -> None:
    files = fleet_files() | {"fleet/pins.yaml": b"x", "fleet/nodes/n.yaml": b"y"}
    backwards = dict(reversed(files.items()))
    assert document_findings(files, TODAY) == document_findings(backwards, TODAY)
