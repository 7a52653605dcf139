"""What people changed, in words: golden texts, what is never shown, and what makes no difference."""

from __future__ import annotations

import msgspec
import pytest

from lloom_gitops.codec.desired import LoadedDesired, load_desired
from lloom_gitops.model.desired import Desired
from lloom_gitops.render.page import Page
from lloom_gitops.render.wishes_text import wish_changes, wishes_text

HEAD = "apiVersion: lloom-gitops/v1\n"
FILES = {
    "fleet/pool.yaml": "kind: Pool\nmetadata: {name: home}\nspec:\n  head: n1\n  controller: {mode: advise}\n",
    "fleet/nodes/n1.yaml": "kind: Node\nmetadata: {name: n1, labels: {hardware: gb10}}\n"
    "spec:\n  endpoint: http://10.0.0.1:8100\n  apiKeyEnv: LLOOM_KEY\n",
    "fleet/aliases.yaml": "kind: Aliases\nmetadata: {name: aliases}\n"
    "spec:\n  aliases:\n    chat: {models: [a, b], needs: {sequences: 4}}\n",
    "fleet/lanes/pair.yaml": "kind: Lane\nmetadata: {name: pair}\nspec:\n  management: unmanaged\n"
    "  pool: {models: [a], kind: chat, nodes: [n1], memoryGb: 96, healthUrl: 'http://10.0.0.1:8205/health'}\n",
    "fleet/pins.yaml": "kind: Pins\nmetadata: {name: pins}\nspec: {}\n",
    "fleet/profiles/night.yaml": "kind: Profile\nmetadata: {name: night}\nspec:\n  routes: {chat: [a]}\n",
    "recipes/r.yaml": "kind: Recipe\nmetadata: {name: r}\nspec:\n  version: 1\n  backend: {id: vllm}\n"
    "  models: [{model: org/b, gatewayModel: b, kind: chat, launch: {env: {HF_HOME: /m}}}]\n",
}


def load(files: dict[str, str]) -> LoadedDesired:
    return load_desired({path: (HEAD + text).encode() for path, text in files.items()})


def desired(files: dict[str, str]) -> Desired:
    loaded = load(files)
    assert loaded.desired is not None, loaded.findings
    return loaded.desired


def told(*edits: tuple[str, str, str], added: dict[str, str] | None = None, width: int = 200) -> str:
    """The words for FILES with each (path, old, new) replaced; a file whose text is replaced by nothing is gone."""
    files = {**FILES, **(added or {})}
    for path, old, new in edits:
        assert old in files[path]
        files[path] = files[path].replace(old, new)
    after = desired({path: text for path, text in files.items() if text})
    return wishes_text(wish_changes(desired(FILES), after), Page(width=width))


N1, POOL, ALIASES, PINS = "fleet/nodes/n1.yaml", "fleet/pool.yaml", "fleet/aliases.yaml", "fleet/pins.yaml"
LANE, RECIPE, PROFILE = "fleet/lanes/pair.yaml", "recipes/r.yaml", "fleet/profiles/night.yaml"
PIN = '{m@n1: {residency: always, reason: "see http://u:p@x/y, or ask"}}'
N2 = "kind: Node\nmetadata: {name: n2, labels: {a: b}}\nspec: {endpoint: 'http://10.0.0.2:8100'}\n"

GOLDEN = [
    pytest.param([(N1, "spec:\n", "spec:\n  state: cordon\n")], f"  ~ {N1}: state serve → cordon\n", id="state"),
    pytest.param(
        [(N1, "spec:\n", "spec:\n  reason: firmware\n")], f"  ~ {N1}: reason unset → firmware\n", id="from unset"
    ),
    pytest.param([(N1, "10.0.0.1", "10.0.0.9")], f"  ~ {N1}: endpoint changed\n", id="an endpoint is not shown"),
    pytest.param([(N1, "LLOOM_KEY", "LLOOM_OTHER")], f"  ~ {N1}: apiKeyEnv changed\n", id="nor where a key is"),
    pytest.param([(N1, "gb10", "gb200")], f"  ~ {N1}: labels.hardware gb10 → gb200\n", id="label"),
    pytest.param([(LANE, "8205", "8206")], f"  ~ {LANE}: pool.healthUrl changed\n", id="a health URL is not shown"),
    pytest.param([(LANE, "96", "98.50")], f"  ~ {LANE}: pool.memoryGb 96 → 98.5\n", id="figure"),
    pytest.param([(LANE, FILES[LANE], "")], f"  - {LANE} removed\n", id="a document that is gone"),
    pytest.param([(POOL, "advise", "auto")], f"  ~ {POOL}: controller.mode advise → auto\n", id="pool"),
    pytest.param([(POOL, "home", "house")], f"  ~ {POOL}: name home → house\n", id="name of the pool"),
    pytest.param([(ALIASES, "[a, b]", "[b, a]")], f"  ~ {ALIASES}: chat models [a, b] → [b, a]\n", id="order"),
    pytest.param([(ALIASES, "sequences: 4", "")], f"  ~ {ALIASES}: chat needs.sequences 4 → unset\n", id="to unset"),
    pytest.param(
        [(ALIASES, "aliases:\n", "unlisted: remove\n  aliases:\n    hear: {models: [w], residency: auto}\n")],
        f"  ~ {ALIASES}: unlisted keep → remove\n  + {ALIASES}: hear added: {{models: [w]}}\n",
        id="an alias, its defaults left out",
    ),
    pytest.param(
        [(PINS, "{}", PIN)],
        f"  + {PINS}: m@n1 added: {{reason: see [url] or ask, residency: always}}\n",
        id="a pin, without its URL",
    ),
    pytest.param(
        [(PINS, "{}", "{m@n1: {reason: sk-abcdefghijkl}}")], f"  + {PINS}: m@n1 added: (not shown)\n", id="a secret"
    ),
    pytest.param(
        [(PINS, "{}", "{m@n1: {reason: '" + "long " * 30 + "'}}")],
        f"  + {PINS}: m@n1 added: {{reason: {'long ' * 9}lon...\n",
        id="a long text is cut",
    ),
    pytest.param(
        [(PROFILE, "{chat: [a]}", "{chat: [a], hear: [w]}")], f"  + {PROFILE}: routes.hear added: [w]\n", id="an entry"
    ),
    pytest.param([(RECIPE, "/m}", "/n}")], f"  ~ {RECIPE}: models changed\n", id="launch settings are not shown"),
    pytest.param([(RECIPE, "version: 1", "version: 2")], f"  ~ {RECIPE}: version 1 → 2\n", id="recipe"),
]


@pytest.mark.parametrize(("edits", "text"), GOLDEN)
def test_golden_words(edits: list[tuple[str, str, str]], text: str) -> None:
    assert told(*edits) == text


def test_a_new_node_is_one_line_without_its_endpoint() -> None:
    assert told(added={"fleet/nodes/n2.yaml": N2}) == "  + fleet/nodes/n2.yaml added\n"


SAME = [
    pytest.param([(N1, "spec:\n", "spec:\n  state: serve\n  drainSeconds: 1800\n")], id="defaults written out"),
    pytest.param(
        [(ALIASES, "{models: [a, b], needs: {sequences: 4}}", "{needs: {sequences: 4}, models: [a, b]}")], id="order"
    ),
    pytest.param([(POOL, "{mode: advise}", "{mode: 'advise'}  # by hand")], id="quotes and comments"),
]


@pytest.mark.parametrize("edits", SAME)
def test_what_makes_no_difference(edits: list[tuple[str, str, str]]) -> None:
    assert told(*edits) == ""


def test_files_are_named_as_they_are() -> None:
    before = load(FILES)
    files = {**FILES, "fleet/aliases/talk.yaml": FILES[ALIASES].replace("sequences: 4", "sequences: 5")}
    del files[ALIASES]
    after = load(files)
    assert before.desired
    assert after.desired
    changes = wish_changes(before.desired, after.desired, after.places.file)
    assert [(change.file, change.field) for change in changes] == [("fleet/aliases/talk.yaml", "needs.sequences")]
    assert msgspec.to_builtins(changes[0]) == {
        "file": "fleet/aliases/talk.yaml",
        "name": "chat",
        "field": "needs.sequences",
        "change": "changed",
        "before": "4",
        "after": "5",
    }


def test_nothing_hostile_gets_through() -> None:
    base = desired(FILES)
    node = msgspec.structs.replace(base.nodes["n1"], reason="a\x1b[31m\u202eb\nc")
    nodes = {"n1": node, "x\x1b]0;": node}
    text = wishes_text(wish_changes(base, msgspec.structs.replace(base, nodes=nodes)))
    assert all(char.isprintable() for char in text.replace("\n", ""))
    assert len(text.splitlines()) == 2


def test_lines_are_wrapped() -> None:
    text = told((PINS, "{}", PIN), width=60)
    assert all(len(line) <= 60 for line in text.splitlines())
    assert len(text.splitlines()) == 2
