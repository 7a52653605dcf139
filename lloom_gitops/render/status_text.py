"""The status for a person: how it stands in one sentence, then steps, aliases, nodes and drift."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lloom_gitops.model.status import ControllerStatus, Status, StepStatus
from lloom_gitops.model.words import Outcome, Result
from lloom_gitops.render.amounts import counted, duration, listed, short_id
from lloom_gitops.render.causes import spelled
from lloom_gitops.render.clean import shown
from lloom_gitops.render.layout import table, wrap
from lloom_gitops.render.page import Page

RESULTS: dict[Result, str] = {
    Result.SUCCEEDED: "is carried out",
    Result.PARTIAL: "is carried out in part",
    Result.FAILED: "failed",
    Result.SUPERSEDED: "was overtaken by a newer one",
    Result.WAITING: "waits for a person",
    Result.NOTHING: "had nothing to do",
}
"""What became of the plan, as the rest of a sentence."""

DECISIONS: dict[str, str] = {
    "apply": "The agent applied it",
    "wait": "The controller waits until the plan is stable",
    "hold": "The controller holds",
    "nothing": "The controller sees nothing to do",
    "unplanned": "The branch wants something that no plan covers yet",
    "refuse": "The controller refuses",
}
"""What the controller decided, as the start of a sentence."""


REASONS: dict[str, str] = {
    "cooldown": "the last change is too short ago",
    "drift": "what runs differs from the plan, and no plan says what to do",
    "gaps": "an alias would answer nothing for a while, and nobody confirmed that",
    "merged": "what was merged is planned and applied",
    "noPlan": "there is no committed plan",
    "notAuthentic": "the committed plan does not re-derive from what it names",
    "notCurrent": "the committed plan was made from another desired state",
    "nothingToDo": "what runs is what is wanted",
    "overStops": "it would stop more lanes than may be stopped unasked",
    "reverted": "a person took these moves back",
    "reviewStands": "its moves were reviewed in an earlier plan",
    "reviewed": "it was reviewed and merged",
    "suspended": "applying is suspended",
    "waits": "only steps for a person are left",
    "whatIf": "the committed plan is a what-if plan, which only shows",
}
"""Why the agent decided as it did."""


def why_text(status: Status | None) -> str:
    """One sentence that says how it stands and why."""
    if status is None:
        return "No agent has written a status yet: nothing was applied."
    parts = [_plan_clause(status)]
    if status.controller is not None:
        parts.append(_controller_clause(status.controller))
    return f"{'; '.join(part for part in parts if part)}."


def status_text(status: Status | None, page: Page) -> str:
    """The sentence of `why_text`, then a section for each thing that there is something to say about."""
    blocks = [wrap(why_text(status), page.width)]
    if status is not None:
        for title, lines in (
            ("Steps", _steps(status, page)),
            ("Aliases", _aliases(status, page)),
            ("Nodes", _lines([[shown(node), shown(each.state)] for node, each in status.nodes.items()], page)),
            ("Drift", _drift(status, page)),
            ("Agent", _agent(status, page)),
        ):
            if lines:
                blocks.append([page.paint.strong(title), *lines])
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"


def _plan_clause(status: Status) -> str:
    if status.plan is None:
        said = "No plan was applied yet"
    else:
        said = f"Plan {shown(short_id(status.plan))} {RESULTS[status.result]}"
    if status.superseded_by:
        said += f" ({shown(short_id(status.superseded_by))})"
    failed = [step for step, each in status.steps.items() if each.outcome in (Outcome.FAILED, Outcome.STALE)]
    waiting = [step for step, each in status.steps.items() if each.outcome is Outcome.WAITING]
    for steps, word in ((failed, "see"), (waiting, "waiting for")):
        if steps:
            more = f" and {counted(len(steps) - 1, 'more', 'more')}" if len(steps) > 1 else ""
            said += f", {word} {shown(steps[0])}{more}{_says(status.steps[steps[0]])}"
    conditions = status.conditions
    if conditions is not None and not conditions.ready and not failed and not waiting:
        said += f", not ready: {spelled(conditions.reason)}"
    return said


def _says(step: StepStatus) -> str:
    return f" ({shown(step.says)})" if step.says else ""


def _controller_clause(controller: ControllerStatus) -> str:
    decision = DECISIONS.get(controller.decision) or f"The controller decides {spelled(controller.decision)}"
    because = because_text(controller.because)
    said = decision[0].lower() + decision[1:]
    return f"{said}: {because}" if because else said


def because_text(because: Mapping[str, Any]) -> str:
    """A reason in words with its facts and what to do next: `the last change is too short ago (left 4 min)`."""
    reason = str(because.get("reason", ""))
    said = REASONS.get(reason) or spelled(reason)
    says = shown(str(because.get("says") or ""))
    facts = [] if not says or (said and said in says) else [says]  # a plan's own sentence says it already
    facts += [_fact(name, value) for name, value in because.items() if name not in _WORDS and value is not None]
    if facts:
        said = f"{said} ({', '.join(facts)})" if said else ", ".join(facts)
    hint = because.get("hint")
    return f"{said}; next: {shown(str(hint))}" if hint else said


_WORDS = frozenset({"reason", "says", "hint"})


def _fact(name: str, value: Any) -> str:
    if name.endswith("Seconds") and isinstance(value, int):
        return f"{spelled(name.removesuffix('Seconds'))} {duration(value)}"
    return f"{spelled(name)} {_plain(value)}"


def _plain(value: Any) -> str:
    if isinstance(value, list | tuple):
        return listed([_plain(each) for each in value]) or "nothing"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "nothing" if value is None else shown(str(value))


def _steps(status: Status, page: Page) -> list[str]:
    rows = []
    for name, step in status.steps.items():
        said = shown(step.says) if step.says else ""
        if step.outcome is Outcome.FAILED and step.retry == "never":
            said = f"{said}; not tried again until something changes".removeprefix("; ")
        rows.append([str(step.outcome), shown(name), said])
    warn = page.paint.warn
    tones = {Outcome.FAILED: page.paint.bad, Outcome.STALE: warn, Outcome.UNKNOWN: warn, Outcome.WAITING: warn}
    lines = []
    for step, block in zip(status.steps.values(), table(rows, page.width, "  "), strict=True):
        lines += _toned(block, tones.get(step.outcome))
    return lines


def _toned(block: Sequence[str], tone: Callable[[str], str] | None) -> list[str]:
    """The block with its first word painted."""
    if tone is None:
        return list(block)
    word, gap, rest = block[0].lstrip().partition(" ")
    return [f"  {tone(word)}{gap}{rest}", *block[1:]]


def _aliases(status: Status, page: Page) -> list[str]:
    rows = []
    for alias, each in status.aliases.items():
        # What is planned but not loaded, the gateway loads on request.
        serving = shown(each.serving) if each.serving else "nothing loaded" if each.planned else "nothing"
        wanted = "" if each.planned == each.serving else f"planned: {shown(each.planned or 'nothing')}"
        rows.append([shown(alias), serving, wanted])
    return _lines(rows, page)


def _drift(status: Status, page: Page) -> list[str]:
    rows = []
    for drift in status.drift:
        sides = f"planned {_plain(drift.planned)}, seen {_plain(drift.seen)}"
        rows.append([shown(drift.lane or drift.alias or ""), f"{spelled(drift.field)}: {sides}"])
    return _lines(rows, page)


def _agent(status: Status, page: Page) -> list[str]:
    facts = []
    if status.agent is not None:
        facts.append(f"{shown(status.agent.name)}, epoch {status.agent.epoch}")
    if status.controller is not None:
        facts.append(f"mode {status.controller.mode}")
    conditions = status.conditions
    if conditions is not None:
        facts += [
            f"{word} {shown(short_id(commit))}"
            for word, commit in (("attempted", conditions.attempted), ("applied", conditions.applied))
            if commit
        ]
    return wrap(", ".join(facts), page.width, "  ") if facts else []


def _lines(rows: Sequence[Sequence[str]], page: Page) -> list[str]:
    return [line for block in table(rows, page.width, "  ") for line in block]
