"""Why a lane, model, alias or node is planned as it is: everything that a plan says about one name.

Pure functions of the plan: nothing is planned again, so what is said is what was decided. A name may mean several
things (a lane and the model it serves); each has its own section.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from lloom_gitops.model.plan import Cause, Plan
from lloom_gitops.render.amounts import counted, gb, listed, number
from lloom_gitops.render.causes import STOPS, cause_text, causes_text, lane_reason
from lloom_gitops.render.clean import shown
from lloom_gitops.render.code_pages import CodePage
from lloom_gitops.render.explained import AliasFacts, LaneFacts, ModelFacts, NodeFacts, Subject
from lloom_gitops.render.layout import table, wrap
from lloom_gitops.render.page import Page
from lloom_gitops.render.remedies import needed, took

LEVELS = {
    "uncovered": (1, "aliases that nothing serves"),
    "external": (2, "aliases on an external model only"),
    "slo_misses": (3, "missed latency goals, weighted by demand"),
    "order": (4, "steps down the order of models"),
    "below_wish": (5, "residency wishes not met"),
    "latency": (6, "requests an hour, in thousandths, times expected milliseconds"),
    "loads": (6, "milliseconds of loading, times the weight in thousandths"),
}
"""Field of the plan's costs to its level and what that counts."""

SOURCES = {"metrics": "measured live", "benchmark": "a benchmark", "scaled": "scaled from a benchmark"}
"""Where expected figures come from."""

_INDENT = "  "


def explain_text(plan: Plan, subjects: Iterable[Subject], page: Page) -> str:
    """A section for each thing that a name stands for; ends with a newline."""
    return "\n".join("\n".join(_section(plan, subject, page)) + "\n" for subject in subjects)


def code_text(pages: Iterable[CodePage], page: Page) -> str:
    """The page of a code: one paragraph a meaning; ends with a newline."""
    blocks = []
    for each in pages:
        lines = [page.paint.strong(f"{each.code}: {each.family}"), *wrap(each.says, page.width, _INDENT)]
        blocks.append(lines + (wrap(f"What would help: {each.remedy}", page.width, _INDENT) if each.remedy else []))
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"


def _section(plan: Plan, subject: Subject, page: Page) -> list[str]:
    match subject:
        case AliasFacts():
            body = _alias(plan, subject, page)
        case LaneFacts():
            body = _lane(subject, page)
        case ModelFacts():
            body = _model(subject, page)
        case NodeFacts():
            body = _node(subject, page)
    title = page.paint.strong(f"{subject.word} {shown(subject.name)}")
    return [title, *body, *_costs(plan, subject, page), *_steps_and_notes(subject, page)]


def _alias(plan: Plan, facts: AliasFacts, page: Page) -> Iterator[str]:
    if facts.route is None:
        yield from wrap("nothing serves it", page.width, _INDENT)
    else:
        yield from wrap(f"answered by {_entries(facts)}", page.width, _INDENT)
        yield from _figures(facts, page)
    if facts.change is not None:
        before = ", ".join(shown(model) for model in facts.change.before) or "nothing"
        yield from wrap(f"before: {before}", page.width, _INDENT)
    yield from _missing(facts.causes, page)
    for gap in facts.gaps:
        yield from wrap(f"answers nothing for a while: {shown(gap.because)}", page.width, _INDENT)
    if facts.causes and (facts.route is None or not any(facts.route.lanes)):
        yield from _cover(plan, facts, page)


def _entries(facts: AliasFacts) -> str:
    route = facts.route
    assert route is not None
    words = [
        f"{shown(model)} on {shown(lane)}" if lane else f"{shown(model)} (external)"
        for model, lane in zip(route.route, route.lanes, strict=True)
    ]
    return listed(words, "then")


def _figures(facts: AliasFacts, page: Page) -> Iterator[str]:
    expects = facts.route.expects if facts.route else None
    if expects is None or expects.source is None:
        return
    said = []
    if expects.ttft_ms is not None:
        said.append(f"first token in {expects.ttft_ms} ms")
    if expects.tokens_per_second is not None:
        said.append(f"{number(expects.tokens_per_second)} tokens/s")
    made_on = f" on {shown(expects.hardware)}" if expects.hardware else ""
    source = SOURCES.get(expects.source, shown(expects.source))
    yield from wrap(f"expects {listed(said)} ({source}{made_on})", page.width, _INDENT)


def _missing(causes: tuple[Cause, ...], page: Page) -> Iterator[str]:
    """What keeps each model out, in the alias's own order."""
    for model, rows in _grouped(causes, lambda cause: cause.model or cause.lane or "others").items():
        yield from wrap(f"not {shown(model)}:", page.width, _INDENT)
        for cause in rows:
            yield from wrap(cause_text(cause), page.width, f"{_INDENT * 2}- ")


def _cover(plan: Plan, facts: AliasFacts, page: Page) -> Iterator[str]:
    """Each way to cover it: what one lane, or one recipe on one node, needs; and what took the lane away."""
    held = [cause for cause in facts.causes if cause.reason != "heldOnCordoned"]
    ways = _grouped(held, lambda cause: cause.lane or f"{cause.recipe or cause.model} {cause.node or ''}")
    rows = [(needed(causes), took(causes)) for causes in ways.values()]
    said = [f"{needs} (what took it: {taken})" if taken else needs for needs, taken in rows if needs]
    if said:
        yield from wrap("it would be covered by any one of these:", page.width, _INDENT)
        for each in dict.fromkeys(said):
            yield from wrap(each, page.width, f"{_INDENT * 2}- ")
    elif not plan.routes.get(facts.name):
        yield from wrap("nothing that the plan knows would cover it", page.width, _INDENT)


def _lane(facts: LaneFacts, page: Page) -> Iterator[str]:
    planned = facts.planned
    if planned is not None:
        where = listed(shown(node) for node in planned.nodes)
        size = listed(f"{gb(amount)} in {shown(key)}" for key, amount in planned.memory_gb.items())
        yield from wrap(f"on {where}, {planned.residency}, {size or 'no memory that is known'}", page.width, _INDENT)
        yield from wrap(f"here because {lane_reason(planned.because.reason)}", page.width, _INDENT)
    yield from _answers(facts, page)
    for before, after, cause in facts.residency:
        why = f": {cause_text(cause)}" if cause is not None else ""
        yield from wrap(f"residency {before} {page.arrow} {after}{why}", page.width, _INDENT)
    if facts.start is not None:
        takes = gb(facts.start.load_gb)
        yield from wrap(f"is started: {takes} to load", page.width, _INDENT)
    if facts.stop is not None:
        yield from wrap(f"is stopped ({facts.stop.why}): {STOPS[facts.stop.why]}", page.width, _INDENT)
    if facts.planned is None and facts.stop is None and not facts.kept_out:
        yield from wrap("the plan does not use it", page.width, _INDENT)
    for alias, causes in facts.kept_out:
        yield from wrap(f"not for {shown(alias)}: {causes_text(causes)}", page.width, _INDENT)
        help_ = needed(causes)
        if help_:
            yield from wrap(f"needs {help_}", page.width, _INDENT * 2)
    if planned is not None:
        rows = [[shown(other), causes_text(causes)] for other, causes in planned.because.rejected.items()]
        for block in table(rows, page.width, f"{_INDENT}not "):
            yield from block


def _model(facts: ModelFacts, page: Page) -> Iterator[str]:
    for lane, planned in facts.lanes:
        where = listed(shown(node) for node in planned.nodes)
        yield from wrap(f"served by {shown(lane)} on {where}, {planned.residency}", page.width, _INDENT)
    if not facts.lanes:
        yield from wrap("no lane of the plan serves it", page.width, _INDENT)
    yield from _answers(facts, page)
    for alias, causes in facts.kept_out:
        yield from wrap(f"not for {shown(alias)}:", page.width, _INDENT)
        for cause in causes:
            yield from wrap(cause_text(cause), page.width, f"{_INDENT * 2}- ")


def _answers(facts: LaneFacts | ModelFacts, page: Page) -> Iterator[str]:
    for alias, place in facts.answers:
        how = "first" if place == 0 else f"as entry {place + 1}"
        yield from wrap(f"answers {shown(alias)} {how}", page.width, _INDENT)


def _node(facts: NodeFacts, page: Page) -> Iterator[str]:
    if facts.role is not None:
        words = [str(facts.role.liveness), str(facts.role.state)]
        words += [] if facts.role.declared else ["not declared"]
        yield from wrap(", ".join(words), page.width, _INDENT)
    for row in facts.budget:
        budget = "unknown" if row.budget_gb is None else gb(row.budget_gb)
        left = "" if row.free_gb is None else f", {gb(row.free_gb)} left"
        said = f"always {number(row.always_gb)}, preferred {number(row.preferred_gb)}"
        largest = f", largest auto {number(row.largest_auto_gb)}" if row.largest_auto_gb else ""
        yield from wrap(f"{row.domain}: budget {budget}, {said}{largest}{left}", page.width, _INDENT)
    rows = [
        [shown(lane), str(planned.residency), f"because {lane_reason(planned.because.reason)}"]
        for lane, planned in facts.lanes
    ]
    for block in table(rows, page.width, f"{_INDENT}has "):
        yield from block
    away = [[shown(lane), causes_text(causes)] for lane, causes in facts.kept_off]
    for block in table(away, page.width, f"{_INDENT}not "):
        yield from block


def _costs(plan: Plan, subject: Subject, page: Page) -> Iterator[str]:
    """What it costs on each level, beside the level's total."""
    for field, share in subject.costs.items():
        level, says = LEVELS[field]
        total = plan.verdict.levels[level - 1]
        whole = "all of it" if share == total else f"of {total}"
        yield from wrap(f"costs {share} on level {level} ({says}), {whole}", page.width, _INDENT)


def _steps_and_notes(subject: Subject, page: Page) -> Iterator[str]:
    if subject.steps:
        said = ", ".join(shown(step) for step in subject.steps)
        yield from wrap(f"{counted(len(subject.steps), 'step')}: {said}", page.width, _INDENT)
    for note in subject.notes:
        made = f" (from {shown(note.setting)})" if note.setting else ""
        yield from wrap(f"{shown(note.code)}: {shown(note.says or '')}{made}", page.width, _INDENT)


def _grouped(causes: Iterable[Cause], key: Callable[[Cause], str]) -> dict[str, list[Cause]]:
    groups: dict[str, list[Cause]] = {}
    for cause in causes:
        groups.setdefault(key(cause), []).append(cause)
    return groups
