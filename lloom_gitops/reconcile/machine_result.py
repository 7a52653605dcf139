"""What an apply came to, from the outcomes of its steps; and the words of a refused step."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import msgspec

from lloom_gitops.catalog.facts import found
from lloom_gitops.model.plan import Read
from lloom_gitops.model.words import Outcome, Result
from lloom_gitops.reconcile.effects import Facts
from lloom_gitops.reconcile.machine_state import StepState

REMEDY = "run `lloom-gitops plan --write` to plan from what is there now"


def judge_result(states: Iterable[StepState], stopped_by: str | None) -> Result:
    """The result of an apply whose steps came to these states."""
    states = list(states)
    outcomes = {state.outcome for state in states if not state.fell_away}
    good = bool(outcomes & {Outcome.DONE, Outcome.ALREADY}) or any(state.fell_away for state in states)
    bad = outcomes & {Outcome.FAILED, Outcome.STALE, Outcome.UNKNOWN, Outcome.SKIPPED}
    if not states:
        return Result.NOTHING
    if stopped_by is not None and Outcome.SKIPPED in outcomes:
        return Result.SUPERSEDED
    if bad:
        return Result.PARTIAL if good else Result.FAILED
    return Result.WAITING if Outcome.WAITING in outcomes else Result.SUCCEEDED


def stale_words(read: Read | None, facts: Facts) -> str:
    """Node or lane, field, expected, found and the remedy, of a read that no longer holds."""
    if read is None:
        return f"what it relies on can't be read; {REMEDY}"
    _, tree, name, *field = [token.replace("~1", "/").replace("~0", "~") for token in read.at.split("/")]
    where = name if tree == "nodes" else f"{tree[:-1] if tree == 'lanes' else 'alias'} {name}"
    lane = facts["lanes"].get(name) if tree == "lanes" else None
    if lane is not None:
        where += f" on {lane['owner']}"
    least = read.at_least
    wanted = _shown(read.equals) if least is msgspec.UNSET else f"at least {_shown(least)}"
    return f"{where}: {'/'.join(field)} expected {wanted}, found {_shown(found(read, facts))}; {REMEDY}"


def _shown(value: Any) -> str:
    if value is None:
        return "unknown"
    if isinstance(value, Decimal):
        return f"{value.normalize():f}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_shown(item) for item in value) + "]"
    return str(value)
