"""`explain` has words for every code, says of a name what the plan says, and names what would help."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest
from msgspec.structs import replace

import lloom_gitops
from lloom_gitops.model.desired import Alias
from lloom_gitops.model.errors import ExitCode
from lloom_gitops.model.inventory import ObservedLane
from lloom_gitops.model.plan import Cause, Plan
from lloom_gitops.model.words import LaneState, Liveness, ModelKind, NodeState, Outcome, Seen, StepKind
from lloom_gitops.planner import plan
from lloom_gitops.planner.elsewhere import EACH_NODE, OTHERS
from lloom_gitops.render.causes import CAUSES
from lloom_gitops.render.code_pages import EXITS, NOTES, OUTCOMES, STEPS, code_pages, known_codes
from lloom_gitops.render.explain_text import code_text, explain_text
from lloom_gitops.render.explained import AliasFacts, LaneFacts, explained, names
from lloom_gitops.render.page import Page
from lloom_gitops.render.remedies import REMEDIES, TOOK, needed, took
from tests.catalog.pools import pool, spark
from tests.pools import three_spark

PACKAGE = Path(lloom_gitops.__file__).parent
PAIR = ("spark-node-01", "spark-node-02")


def note_codes() -> Iterator[str]:
    for path in (PACKAGE / "planner").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Note":
                yield from (
                    word.value.value
                    for word in node.keywords
                    if word.arg == "code" and isinstance(word.value, ast.Constant)
                )


def test_every_code_has_a_page() -> None:
    assert set(note_codes()) == NOTES.keys()
    assert CAUSES.keys() == REMEDIES.keys()
    assert TOOK.keys() <= CAUSES.keys()
    assert (STEPS.keys(), OUTCOMES.keys(), EXITS.keys()) == (set(StepKind), set(Outcome), set(ExitCode))
    assert all(code_text(code_pages(code), Page()) for code in known_codes())
    assert code_pages("noSuchCode") == ()


def test_a_code_with_two_meanings_has_both() -> None:
    assert [page.family for page in code_pages("nodeLost")] == [
        "a reason that something is not there",
        "a note in a plan",
    ]


def pair_cordoned(*, latched: bool, external: bool = False) -> Plan:
    """The pair's nodes cordoned; the 27B may be latched; the aliases may have no external model."""
    desired, inventory = three_spark()
    nodes = {n: replace(node, state=NodeState.CORDON) if n in PAIR else node for n, node in desired.nodes.items()}
    aliases = {n: alias if external else replace(alias, external=()) for n, alias in desired.aliases.items()}
    routes = {n: replace(alias, route=alias.route[:-1]) for n, alias in inventory.aliases.items() if n == "cognition"}
    if latched:
        lane = replace(inventory.lanes["qwen38-27b-03"], latched=True)
        inventory = replace(inventory, lanes={**inventory.lanes, "qwen38-27b-03": lane})
    if not external:
        inventory = replace(inventory, aliases={**inventory.aliases, **routes})
    return plan(replace(desired, nodes=nodes, aliases=aliases), inventory)


def test_what_an_alias_lacks_and_what_took_it() -> None:
    desired, inventory = three_spark()
    lane = replace(inventory.lanes["qwen38-27b-03"], memory_gb={"spark-node-03": Decimal(110)})
    pair = replace(inventory.lanes["qwen38-pair"], state=LaneState.STOPPED)
    nodes = {n: replace(node, state=NodeState.CORDON) if n in PAIR else node for n, node in desired.nodes.items()}
    aliases = {"cognition": replace(desired.aliases["cognition"], external=())}
    made = plan(
        replace(desired, nodes=nodes, aliases={**desired.aliases, **aliases}),
        replace(
            inventory,
            lanes={**inventory.lanes, "qwen38-27b-03": lane, "qwen38-pair": pair},
            aliases={name: alias for name, alias in inventory.aliases.items() if "cognition" not in name},
        ),
    )
    said = explain_text(made, explained(made, "cognition"), Page())
    assert "nothing serves it" in said
    assert "GB more in spark-node-03/unified:0" in said
    assert "spark-node-01 uncordoned" in said


def test_an_alias_says_what_answers_and_what_it_costs() -> None:
    made = pair_cordoned(latched=False, external=True)
    said = explain_text(made, explained(made, "cognition"), Page())
    assert "answered by qwen3.8-27b on qwen38-27b-03 then cloud/openrouter/q38fn (external)" in said
    assert "costs 100 on level 4 (steps down the order of models), of 180" in said
    assert "expects first token in 1000 ms and 20.8 tokens/s (a benchmark" in said


def test_a_lane_says_why_not_elsewhere() -> None:
    made = pair_cordoned(latched=False, external=True)
    (facts,) = explained(made, "qwen38-27b-03")
    assert isinstance(facts, LaneFacts)
    assert facts.planned is not None
    rejected = facts.planned.because.rejected
    assert set(rejected) == {"qwen38-pair", "macbook-local", *PAIR}
    assert [cause.reason for cause in rejected["macbook-local"]] == [
        *("platform", "accelerator", "computeArch", "commands", "notInstalled"),
    ]


def test_a_name_of_two_things_explains_both() -> None:
    made = pair_cordoned(latched=False, external=True)
    assert [subject.word for subject in explained(made, "qwen3-embedding-4b")] == ["lane", "model"]


def test_every_name_has_something_to_say() -> None:
    desired, inventory = three_spark()
    lost = {
        n: replace(node, seen=Seen.UNKNOWN, liveness=Liveness.LOST) if n in PAIR else node
        for n, node in inventory.nodes.items()
    }
    for made in (pair_cordoned(latched=True), plan(desired, replace(inventory, nodes=lost))):
        for name in names(made):
            subjects = explained(made, name)
            text = explain_text(made, subjects, Page(width=80))
            assert len(text.splitlines()) > len(subjects), name
            assert all(len(line) <= 80 for line in text.splitlines())


def test_the_whole_alias_by_what_is_missing() -> None:
    made = pair_cordoned(latched=True)
    (facts,) = explained(made, "cognition")
    assert isinstance(facts, AliasFacts)
    reasons = {cause.reason for cause in facts.causes}
    assert {"latched", "heldOnCordoned"} <= reasons


@pytest.mark.parametrize(
    ("causes", "needs", "taken"),
    [
        ((Cause(reason="memory", lane="a", domain="n/u", short_gb=Decimal("26.5")),), "26.5 GB more in n/u", ""),
        ((Cause(reason="cordoned", node="n"),) * 2, "n uncordoned", "the cordon of n"),
        ((Cause(reason="notChosen", lane="a"),), "", ""),
        (
            (Cause(reason="cordoned", node="n"), Cause(reason="disk", node="n", short_gb=Decimal(3))),
            "n uncordoned and 3 GB more free disk on n",
            "the cordon of n",
        ),
    ],
    ids=["memory", "said once", "nothing in the way", "all of them"],
)
def test_what_would_help(causes: tuple[Cause, ...], needs: str, taken: str) -> None:
    assert (needed(causes), took(causes)) == (needs, taken)


def test_in_a_large_pool_a_lane_says_once_what_keeps_it_off_the_others() -> None:
    nodes = {f"n{number:02}": spark() for number in range(EACH_NODE + 1)}
    lane = ObservedLane(
        models=("m",),
        kind=ModelKind.CHAT,
        nodes=("n03",),
        owner="n03",
        state=LaneState.RUNNING,
        memory_gb={"n03": Decimal(30)},
    )
    desired, inventory = pool(nodes, {}, {"a": Alias(models=("m",))}, lanes={"l": lane})
    planning = replace(desired.pool, planning=replace(desired.pool.planning, consider_installs=False))
    made = plan(replace(desired, pool=planning), inventory)
    assert [(name, [c.reason for c in causes]) for name, causes in made.lanes["l"].because.rejected.items()] == [
        (OTHERS, ["notInstalled"])
    ]
    few = {name: nodes[name] for name in sorted(nodes)[:EACH_NODE]}
    declared = {name: desired.nodes[name] for name in few}
    made = plan(replace(desired, pool=planning, nodes=declared), replace(inventory, nodes=few))
    assert set(made.lanes["l"].because.rejected) == few.keys() - {"n03"}
