"""Every reason of the closed lists has words, every word is used, and numbers have one form."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest

from lloom_gitops.model.plan import Cause
from lloom_gitops.model.words import Result, StopReason
from lloom_gitops.render.amounts import counted, duration, gb, listed, number, short_id
from lloom_gitops.render.bars import ASCII, bar
from lloom_gitops.render.causes import CAUSES, GAPS, LANES, STOPS, cause_text, gap_text, spelled
from lloom_gitops.render.status_text import REASONS, RESULTS, because_text

PACKAGE = Path(__file__).resolve().parents[2] / "lloom_gitops"
DECIDING = ("planner", "reconcile", "catalog", "control", "agent")


def trees(*packages: str) -> Iterator[ast.AST]:
    for package in packages:
        for path in (PACKAGE / package).rglob("*.py"):
            yield ast.parse(path.read_text("utf-8"))


def constants(*packages: str) -> set[str]:
    found = (node.value for tree in trees(*packages) for node in ast.walk(tree) if isinstance(node, ast.Constant))
    return {value for value in found if isinstance(value, str)}


def given(call: str, word: str) -> set[str]:
    """Constants given as `word=` to calls of `call`."""
    return {
        keyword.value.value
        for tree in trees(*DECIDING)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == call
        for keyword in node.keywords
        if keyword.arg == word and isinstance(keyword.value, ast.Constant)
    }


def returned(function: str) -> set[str]:
    """Constants that a function of the planner returns."""
    return {
        part.value
        for tree in trees("planner")
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name == function
        for back in ast.walk(node)
        if isinstance(back, ast.Return) and back.value is not None
        for part in ast.walk(back.value)
        if isinstance(part, ast.Constant) and isinstance(part.value, str)
    }


def reasons_in_maps() -> set[str]:
    """Constants that stand as `{"reason": ...}` in a decision."""
    return {
        value.value
        for tree in trees("control")
        for node in ast.walk(tree)
        if isinstance(node, ast.Dict)
        for key, value in zip(node.keys, node.values, strict=True)
        if isinstance(key, ast.Constant) and key.value == "reason" and isinstance(value, ast.Constant)
    }


def test_every_cause_has_words() -> None:
    found = given("Cause", "reason")
    assert len(found) > 8
    assert found - CAUSES.keys() == set(), "give it a sentence in render/causes.py"


def test_every_reason_of_a_lane_has_words() -> None:
    assert returned("_reason") == LANES.keys()


def test_every_reason_of_a_decision_has_words() -> None:
    found = reasons_in_maps()
    assert "nothingToDo" in found
    assert found - REASONS.keys() == set(), "give it a sentence in render/status_text.py"


def test_no_words_for_reasons_that_nothing_gives() -> None:
    known = constants(*DECIDING)
    gaps = {text.split(":")[0] for text in known if ":" in text}
    assert CAUSES.keys() - known == set()
    assert GAPS.keys() - gaps == set()


def test_the_closed_enums_are_covered() -> None:
    assert STOPS.keys() == set(StopReason)
    assert RESULTS.keys() == set(Result)


@pytest.mark.parametrize(
    ("cause", "said"),
    [
        pytest.param(
            Cause(reason="memory", lane="video-03", domain="spark-node-03/unified:0", short_gb=Decimal("27.31")),
            "video-03 does not fit into spark-node-03/unified:0 (27.3 GB short)",
            id="with the number",
        ),
        pytest.param(
            Cause(reason="contextTooSmall", lane="a", needs="131072", has="unknown"),
            "the context window of a is too small (needs 131072, has unknown)",
            id="needs and has",
        ),
        pytest.param(Cause(reason="cordoned", node="n1", lane="a"), "n1 is cordoned", id="only what it names"),
        pytest.param(
            Cause(reason="pinnedElsewhere", model="m", says="b, c"),
            "a pin puts m elsewhere: b, c",
            id="with its own words",
        ),
        pytest.param(Cause(reason="brandNew", node="n1"), "brand new (node n1)", id="a reason of a newer planner"),
    ],
)
def test_a_cause_is_a_clause_with_its_numbers(cause: Cause, said: str) -> None:
    assert cause_text(cause) == said


@pytest.mark.parametrize(
    ("because", "said"),
    [
        pytest.param({}, "", id="nothing"),
        pytest.param(
            {"reason": "suspended", "says": "firmware day"}, "applying is suspended (firmware day)", id="says"
        ),
        pytest.param(
            {"reason": "reverted", "hint": "`lloom-gitops resume`"},
            "a person took these moves back; next: `lloom-gitops resume`",
            id="hint",
        ),
        pytest.param(
            {"reason": "waits", "steps": ["a", "b"]}, "only steps for a person are left (steps a and b)", id="list"
        ),
        pytest.param({"reason": "newReason", "leftSeconds": 240}, "new reason (left 4 min)", id="time"),
        pytest.param(
            {"reason": "nothingToDo", "says": "nothing to do: what runs is what is wanted"},
            "what runs is what is wanted",
            id="said once",
        ),
    ],
)
def test_a_decision_says_why(because: dict[str, object], said: str) -> None:
    assert because_text(because) == said


def test_gaps_and_spelling() -> None:
    assert gap_text("drain:music-03") == "music-03 is drained, and nothing else serves it"
    assert gap_text("somethingElse") == "something else"
    assert spelled("headLost") == "head lost"


@pytest.mark.parametrize(
    ("amount", "said"),
    [
        ("40", "40"),
        ("27.30", "27.3"),
        ("0.04", "0"),
        ("-0.04", "0"),
        ("0.05", "0.1"),
        ("106.75", "106.8"),
        ("100", "100"),
    ],
)
def test_numbers_have_at_most_one_decimal(amount: str, said: str) -> None:
    assert number(Decimal(amount)) == said
    assert gb(Decimal(amount)) == f"{said} GB"


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0, "0 s"),
        (119, "119 s"),
        (180, "3 min"),
        (182, "3 min 2 s"),
        (3600, "1 h"),
        (5400, "1 h 30 min"),
        (86399, "23 h 59 min 59 s"),
    ],
)
def test_durations_lose_no_second(seconds: int, said: str) -> None:
    assert duration(seconds) == said


def test_counting_and_listing() -> None:
    assert [counted(n, "lane") for n in (0, 1, 2)] == ["no lane", "1 lane", "2 lanes"]
    assert [listed(words) for words in ([], ["a"], ["a", "b"], ["a", "b", "c"])] == ["", "a", "a and b", "a, b and c"]
    assert short_id("sha256:4f2a91c0ffff") == "4f2a91c0"
    assert short_id(None) == ""


@pytest.mark.parametrize(
    ("used", "budget", "shown"),
    [
        pytest.param("0", "10", "..........", id="empty"),
        pytest.param("0.01", "10", "#.........", id="a little shows"),
        pytest.param("5", "10", "#####.....", id="half"),
        pytest.param("9.99", "10", "#########.", id="nearly full is not full"),
        pytest.param("10", "10", "##########", id="full"),
        pytest.param("10.01", "10", "#########>", id="over"),
        pytest.param("1", "0", "#########>", id="over nothing"),
        pytest.param("0", "0", "..........", id="nothing of nothing"),
        pytest.param("4", None, "??????????", id="unknown"),
    ],
)
def test_a_bar_never_rounds_into_a_lie(used: str, budget: str | None, shown: str) -> None:
    assert bar(Decimal(used), None if budget is None else Decimal(budget), ASCII, width=10) == shown
