"""Whatever a node, a gateway or a document says, it can't drive the terminal, forge a line or leak an address."""

from __future__ import annotations

import unicodedata
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lloom_gitops.model.errors import DocumentError, Finding
from lloom_gitops.model.plan import (
    AliasCount,
    Because,
    Cause,
    Diff,
    DomainBudget,
    Gap,
    ManualChange,
    Note,
    Plan,
    PlanInputs,
    PlannedLane,
    PlannedRoute,
    ResidencyChange,
    RouteChange,
    StartChange,
    Step,
    StopChange,
    Unmet,
    Verdict,
)
from lloom_gitops.model.status import AgentStatus, AliasStatus, Conditions, ControllerStatus, Drift, Status, StepStatus
from lloom_gitops.model.words import Mode, Outcome, Residency, StepKind, StopReason
from lloom_gitops.render.clean import width_of
from lloom_gitops.render.findings import error_text, github_annotations
from lloom_gitops.render.log_text import LogEntry, log_text
from lloom_gitops.render.page import Page
from lloom_gitops.render.paint import Paint
from lloom_gitops.render.plan_compare import compared_text
from lloom_gitops.render.plan_text import plan_text
from lloom_gitops.render.status_text import status_text, why_text

HOSTILE = {
    "escape sequence": "\x1b[31mred\x1b[0m",
    "eight-bit control": "a\x9b31mb",
    "line feed": "line\nVerdict: nothing to do",
    "carriage return": "stop\rnothing",
    "bidi override": "a\u202eb\u2066c",
    "zero width": "a\u200b\u2060b",
    "line separator": "a\u2028b",
    "null": "a\x00b",
    "lone surrogate": "a\ud800b",
    "long word": "x" * 300,
    "wide characters": "模型" * 60,
    "address": "https://user:secret@10.0.0.1:8100/x?key=abc",
    "blank": " ",
    "empty": "",
}


def plan_of(text: str) -> Plan:
    """A plan that holds `text` wherever a plan holds text."""
    cause = Cause(
        reason=text, node=text, lane=text, model=text, domain=text, short_gb=Decimal("0.04"), has=text, says=text
    )
    return Plan(
        inputs=PlanInputs(desired=text, inventory=text, what_if=(text,)),
        verdict=Verdict(levels=(1,), proof="bounded", aliases=AliasCount(covered=1, external=1, uncovered=1), start=1),
        lanes={
            text: PlannedLane(
                models=(text,),
                nodes=(text,),
                residency=Residency.AUTO,
                memory_gb={},
                because=Because(reason=text, rejected={text: (cause, msg(cause, "memory"))}),
            )
        },
        routes={text: PlannedRoute(route=(text, text), lanes=(text, None), because=(cause,))},
        uncovered={text: (cause, msg(cause, "latched"))},
        unmet=(Unmet(wish=text, causes=(cause,)),),
        gaps=(Gap(alias=text, seconds=3725, because=f"room:{text}"),),
        budget={
            text: (DomainBudget(domain=text, budget_gb=Decimal(1), after_gb=Decimal(2)), DomainBudget(domain=text))
        },
        diff=Diff(
            start=(StartChange(lane=text, nodes=(text, text), residency=Residency.AUTO, load_gb=Decimal(1)),),
            stop=(StopChange(lane=text, nodes=(text,), why=StopReason.ROOM),),
            residency=(
                ResidencyChange(
                    lane=text, before=Residency.ALWAYS, after=Residency.AUTO, wished=Residency.ALWAYS, because=cause
                ),
            ),
            routes=(
                RouteChange(alias=text, before=(), after=(text,)),
                RouteChange(alias=text, before=(text,), after=()),
            ),
            manual=(ManualChange(step=text, does="stop", says=text),),
        ),
        steps=(Step(id=text, kind=StepKind.MANUAL, does="stop", lane=text, node=text, says=text, after=(text,)),),
        notes=(Note(code=text, node=text, lane=text, alias=text, recipe=text, says=text),),
    )


def msg(cause: Cause, reason: str) -> Cause:
    return Cause(reason=reason, node=cause.node, lane=cause.lane, domain=cause.domain, says=cause.says)


def status_of(text: str) -> Status:
    """A status that holds `text` wherever a status holds text."""
    return Status(
        plan=text,
        superseded_by=text,
        steps={text: StepStatus(outcome=Outcome.FAILED, says=text, retry="never")},
        aliases={text: AliasStatus(serving=text, planned=None)},
        drift=(Drift(lane=text, field=text, planned=text, seen=[text]),),
        controller=ControllerStatus(mode=Mode.AUTO, decision=text, because={"reason": text, text: text}),
        conditions=Conditions(ready=False, reason=text, attempted=text, applied=text),
        agent=AgentStatus(name=text),
    )


def texts_of(text: str, page: Page) -> dict[str, str]:
    entry = LogEntry(commit=text, when=text, who=text, subject=text, plan=text, result=text, body=(text,))
    finding = Finding(code=text, message=text, file=text, line=1, pointer=text, wanted=text, found=text, hint=text)
    error = DocumentError(code=text, message=text, hint=text, findings=[finding])
    return {
        "plan": plan_text(plan_of(text), page),
        "comparison": compared_text(plan_of("other"), plan_of(text), page),
        "status": status_text(status_of(text), page),
        "why": why_text(status_of(text)),
        "log": log_text([entry], page, steps=True),
        "error": error_text(error, page.paint),
        "annotation": github_annotations([finding]),
    }


def assert_harmless(said: str) -> None:
    lines = said.split("\n")
    assert not [line for line in lines if any(unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp", "Cs") for c in line)]


@pytest.mark.parametrize("width", [40, 60, 100, 200])
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_text_from_outside_is_made_visible(text: str, width: int) -> None:
    for said in texts_of(text, Page(width=width)).values():
        assert_harmless(said)


@pytest.mark.parametrize("width", [60, 80, 100])
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_no_line_is_wider_than_the_page(text: str, width: int) -> None:
    said = texts_of(text, Page(width=width))
    for kind in ("plan", "comparison", "status", "log"):
        assert max(width_of(line) for line in said[kind].split("\n")) <= width, kind


def test_no_address_and_no_key_is_shown() -> None:
    said = texts_of(HOSTILE["address"], Page(width=400))
    for kind in ("plan", "comparison", "status", "why", "log"):
        assert "secret" not in said[kind], kind
        assert "10.0.0.1" not in said[kind], kind


def test_a_name_can_not_forge_a_line() -> None:
    plain, forged = (plan_text(plan_of(text), Page()) for text in ("name", "name\n\nNothing to do: all is well."))
    assert "Nothing to do: all is well." not in forged.split("\n")
    assert len(plain.split("\n\n")) == len(forged.split("\n\n"))


def test_an_annotation_stays_one_command() -> None:
    finding = Finding(code="c", message="50 % of\r\n::error::forged", file="a,line=9:b\n::warning::x", line=3)
    said = github_annotations([finding])
    assert said.count("\n") == 0
    assert said.startswith("::error file=a%2Cline=9%3Ab")
    assert "50 %25 of" in said


@settings(max_examples=60, deadline=None)
@given(text=st.text(max_size=40), width=st.integers(60, 120), color=st.booleans())
def test_any_text_at_any_width(text: str, width: int, color: bool) -> None:
    for kind, said in texts_of(text, Page(width=width, paint=Paint(color=color))).items():
        bare = said
        for code in ("31", "32", "33", "1", "2", "0"):
            bare = bare.replace(f"\x1b[{code}m", "")
        assert_harmless(bare)
        if kind in ("plan", "status", "log"):
            assert max(width_of(line) for line in bare.split("\n")) <= width
