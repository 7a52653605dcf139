"""A plan for a person: the verdict first, then what starts where, what stops, what changes, and what is missing.

A pure function of the plan: the same plan gives the same text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from lloom_gitops.model.plan import Cause, DomainBudget, Plan, PlannedRoute, RouteChange, StartChange, Step
from lloom_gitops.model.words import StepKind
from lloom_gitops.render.amounts import counted, duration, gb, listed, number
from lloom_gitops.render.bars import ASCII, UNICODE, bar
from lloom_gitops.render.causes import STOPS, cause_text, causes_text, gap_text, lane_reason, spelled
from lloom_gitops.render.clean import shown, width_of
from lloom_gitops.render.layout import MIN_WIDTH, pad, table, wrap
from lloom_gitops.render.page import Page

_INDENT = "  "
_ALL_DOMAINS = 12
"""Up to so many memory domains all are shown; of more, only those in which something changes."""


def plan_text(plan: Plan, page: Page = Page()) -> str:
    """The whole plan in sections, each left out where it has nothing to say; ends with a newline."""
    blocks = [_head(plan, page)]
    for title, write in _SECTIONS:
        lines = write(plan, page)
        if lines:
            blocks.append([page.paint.strong(title), *lines])
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"


def verdict_text(plan: Plan) -> str:
    """The plan in one sentence or two: what it does, what is covered then, and how good it is."""
    if not plan.steps:
        says = shown(plan.says).rstrip(".") or "nothing to do: what runs is what is wanted"
        return f"{says[0].upper()}{says[1:]}. {_coverage(plan)}"
    return f"{_actions(plan)}. {_coverage(plan)} {_proof(plan)}"


def _actions(plan: Plan) -> str:
    verdict, manual = plan.verdict, len(plan.diff.manual)
    done = []
    if verdict.start:
        load = f"{gb(verdict.load_gb)} in about {duration(verdict.load_seconds)}"
        done.append(f"starts {counted(verdict.start, 'lane')} ({load})")
    if verdict.stop:
        done.append(f"stops {counted(verdict.stop, 'lane')}")
    if plan.diff.residency:
        done.append(f"changes the residency of {counted(len(plan.diff.residency), 'lane')}")
    if plan.diff.routes:
        done.append(f"changes {counted(len(plan.diff.routes), 'route')}")
    if manual:
        done.append(f"leaves {counted(manual, 'step')} to do by hand")
    sentence = listed(done) if done else f"takes {counted(len(plan.steps), 'step')}"
    return f"This plan {sentence}"


def _coverage(plan: Plan) -> str:
    count = plan.verdict.aliases
    said = [f"{counted(count.covered, 'alias', 'aliases')} covered"]
    if count.external:
        said.append(f"{count.external} on an external model only")
    if count.uncovered:
        said.append(f"{count.uncovered} not covered")
    return f"{listed(said).capitalize()}."


def _proof(plan: Plan) -> str:
    if plan.verdict.proof == "optimal":
        return "No better plan exists."
    gap = plan.verdict.gap_percent
    return "Not proven best." if gap is None else f"Not proven best: at most {number(gap)} % from the bound."


def _head(plan: Plan, page: Page) -> list[str]:
    lines = []
    if plan.inputs.what_if:
        flags = shown(" ".join(f"--{flag.replace('=', ' ', 1)}" for flag in plan.inputs.what_if))
        lines += wrap(f"What if ({flags}): this plan only shows; it can't be written or applied.", page.width)
    return [*lines, *wrap(verdict_text(plan), page.width)]


def _starts(plan: Plan, page: Page) -> list[str]:
    rows = [_start_row(change) for change in plan.diff.start]
    lines = []
    for change, block in zip(plan.diff.start, table(rows, page.width, f"{_INDENT}+ "), strict=True):
        lines += _marked(block, page.paint.good)
        planned = plan.lanes.get(change.lane)
        if planned is not None:
            because = lane_reason(planned.because.reason)
            lines += wrap(f"because {because}", page.width, _INDENT * 3)
            for other, causes in planned.because.rejected.items():
                if other in plan.budget:
                    continue  # `explain` says what keeps a lane off each node
                lines += wrap(f"not {shown(other)}: {causes_text(causes)}", page.width, _INDENT * 3)
    return lines


def _start_row(change: StartChange) -> list[str]:
    takes = "load time unknown" if change.load_seconds is None else f"about {duration(change.load_seconds)}"
    return [shown(change.lane), _nodes(change.nodes), str(change.residency), gb(change.load_gb), takes]


def _stops(plan: Plan, page: Page) -> list[str]:
    by_hand = {step.lane for step in plan.steps if step.kind is StepKind.MANUAL and step.does == "stop"}
    rows = [
        [
            shown(change.lane),
            _nodes(change.nodes),
            f"{change.why}: {STOPS[change.why]}{', by hand' if change.lane in by_hand else ''}",
        ]
        for change in plan.diff.stop
    ]
    return _blocks(rows, page, "- ", page.paint.bad)


def _residency(plan: Plan, page: Page) -> list[str]:
    rows = []
    for change in plan.diff.residency:
        said = f"{change.before} {page.arrow} {change.after}"
        if change.wished is not None and change.because is not None:
            said += f"; {change.wished} is wished, but {cause_text(change.because)}"
        if change.restarts:
            said += "; this gateway restarts the lane for it"
        rows.append([shown(change.lane), said])
    return _blocks(rows, page, "~ ", page.paint.warn)


def _routes(plan: Plan, page: Page) -> list[str]:
    lines = []
    for change in plan.diff.routes:
        lines += _marked(wrap(shown(change.alias), page.width, f"{_INDENT}~ "), page.paint.warn)
        lines += wrap(_route(change.before, "nothing"), page.width, f"{_INDENT * 3}before  ")
        lines += wrap(_route(change.after, "nothing: the alias is removed"), page.width, f"{_INDENT * 3}after   ")
        answers = _answers(plan, change)
        if answers:
            lines += wrap(answers, page.width, f"{_INDENT * 3}then    ")
        planned = plan.routes.get(change.alias)
        lines += [] if planned is None else _left_out(planned, page)
    return lines


def _left_out(planned: PlannedRoute, page: Page) -> list[str]:
    """What keeps models of the alias's own order out of its route."""
    lines = []
    for model, causes in _by_model(planned.because).items():
        lines += wrap(f"{shown(model)}: {causes_text(causes)}", page.width, f"{_INDENT * 3}not     ")
    return lines


def _by_model(causes: Iterable[Cause]) -> dict[str, list[Cause]]:
    grouped: dict[str, list[Cause]] = {}
    for cause in causes:
        grouped.setdefault(cause.model or cause.lane or "others", []).append(cause)
    return grouped


def _route(models: Sequence[str], nothing: str) -> str:
    return ", ".join(shown(model) for model in models) or nothing


def _answers(plan: Plan, change: RouteChange) -> str:
    planned = plan.routes.get(change.alias)
    if planned is None or not planned.route:
        return ""
    lane = planned.lanes[0] if planned.lanes else None
    if lane is None:
        return f"{shown(planned.route[0])} answers, an external model"
    where = f" on {_nodes(plan.lanes[lane].nodes)}" if lane in plan.lanes else ""
    figures = []
    if planned.expects.ttft_ms is not None:
        figures.append(f"first token in {planned.expects.ttft_ms} ms")
    if planned.expects.tokens_per_second is not None:
        figures.append(f"{number(planned.expects.tokens_per_second)} tokens/s")
    expects = f"; expects {listed(figures)}" if figures else ""
    return f"{shown(lane)}{where} answers first{expects}"


def _memory(plan: Plan, page: Page) -> list[str]:
    domains = [
        (node if len(budgets) == 1 else f"{node}/{budget.domain}", budget)
        for node, budgets in plan.budget.items()
        for budget in budgets
    ]
    if not domains or not plan.steps:
        return []
    moved = [(name, budget) for name, budget in domains if budget.before_gb != budget.after_gb]
    listed_domains = domains if len(domains) <= _ALL_DOMAINS else moved
    name_width = max((width_of(shown(name)) for name, _ in listed_domains), default=0)
    lines = []
    for name, budget in listed_domains:
        lines += _memory_lines(shown(name), min(name_width, max(page.width, MIN_WIDTH) // 4), budget, page)
    left = len(domains) - len(listed_domains)
    return [*lines, f"{_INDENT}{counted(left, 'other domain')} as before"] if left else lines


def _memory_lines(name: str, name_width: int, budget: DomainBudget, page: Page) -> list[str]:
    glyphs = ASCII if page.ascii_only else UNICODE
    first = f"{_INDENT}{pad(name, name_width)}  "
    lines = [] if width_of(name) <= name_width else wrap(name, page.width, _INDENT)
    hang = " " * (name_width + 4)
    for word, used in (("before", budget.before_gb), ("after", budget.after_gb)):
        start = hang if lines else first
        whole = "of an unknown budget" if budget.budget_gb is None else f"of {gb(budget.budget_gb)}"
        over = budget.budget_gb is not None and used > budget.budget_gb
        note = f", over by {gb(used - (budget.budget_gb or 0))}" if over else ""
        lines += wrap(
            f"{number(used)} {whole}{note}", page.width, f"{start}{word:<6}  {bar(used, budget.budget_gb, glyphs)}  "
        )
    sums = [
        (budget.always_gb, "always"),
        (budget.preferred_gb, "preferred"),
        (budget.largest_auto_gb, "largest auto"),
    ]
    said = ", ".join(f"{word} {number(amount)}" for amount, word in sums if amount)
    return [*lines, *(wrap(said, page.width, f"{hang}        ") if said else [])]


def _uncovered(plan: Plan, page: Page) -> list[str]:
    lines = []
    for alias, causes in plan.uncovered.items():
        lines += _marked(wrap(shown(alias), page.width, f"{_INDENT}! "), page.paint.bad)
        for cause in causes:
            lines += wrap(cause_text(cause), page.width, f"{_INDENT * 3}- ")
    return lines


def _external(plan: Plan, page: Page) -> list[str]:
    changed = {change.alias for change in plan.diff.routes}
    lines = []
    for alias, planned in plan.routes.items():
        if not planned.route or any(lane is not None for lane in planned.lanes):
            continue
        lines += _marked(
            wrap(f"{shown(alias)}: {_route(planned.route, '')}", page.width, f"{_INDENT}! "), page.paint.warn
        )
        lines += [] if alias in changed else _left_out(planned, page)
    return lines


def _unmet(plan: Plan, page: Page) -> list[str]:
    rows = [[shown(unmet.wish), causes_text(unmet.causes)] for unmet in plan.unmet]
    return _blocks(rows, page, "! ", page.paint.warn)


def _gaps(plan: Plan, page: Page) -> list[str]:
    rows = []
    for gap in plan.gaps:
        time = f"for about {duration(gap.seconds)}" if gap.seconds else "until something serves it again"
        rows.append([shown(gap.alias), f"answers nothing {time}: {gap_text(gap.because)}"])
    return _blocks(rows, page, "! ", page.paint.bad)


def _steps(plan: Plan, page: Page) -> list[str]:
    places = {step.id: place for place, step in enumerate(plan.steps, start=1)}
    digits = len(str(len(places)))
    rows = [
        [f"{place:>{digits}}", shown(step.id), _step_words(step, plan, places)]
        for place, step in enumerate(plan.steps, start=1)
    ]
    return [line for block in table(rows, page.width, _INDENT) for line in block]


def _step_words(step: Step, plan: Plan, places: dict[str, int]) -> str:
    said = []
    if step.kind is StepKind.MANUAL:
        said.append(f"by hand on {_where(step, plan)}: {shown(step.says or step.does or 'see the node')}")
    elif step.node:
        said.append(f"on {shown(step.node)}")
    if step.interim:
        said.append("for the time being")
    if step.timeout_seconds is not None:
        said.append(f"at most {duration(step.timeout_seconds)}")
    if step.after:
        said.append(f"after {listed(str(places.get(other, shown(other))) for other in step.after)}")
    return ", ".join(said)


def _where(step: Step, plan: Plan) -> str:
    stopped = {change.lane: change.nodes for change in plan.diff.stop}
    if step.lane in stopped:
        return _nodes(stopped[step.lane])
    if step.lane in plan.lanes:
        return _nodes(plan.lanes[step.lane].nodes)
    return shown(step.node or "its node")


def _notes(plan: Plan, page: Page) -> list[str]:
    rows = []
    for note in plan.notes:
        about = [shown(word) for word in (note.node, note.lane, note.alias, note.recipe) if word]
        said = shown(note.says) if note.says else spelled(note.code)
        said += f" (from {shown(note.setting)})" if note.setting else ""
        rows.append([shown(note.code), f"{', '.join(about)}: {said}" if about else said])
    return _blocks(rows, page, "", page.paint.faint)


_SECTIONS: tuple[tuple[str, Callable[[Plan, Page], list[str]]], ...] = (
    ("Starts", _starts),
    ("Stops", _stops),
    ("Residency", _residency),
    ("Routes", _routes),
    ("Not covered", _uncovered),
    ("On an external model only", _external),
    ("Wishes that can't be met now", _unmet),
    ("Gaps", _gaps),
    ("Memory, GB loaded", _memory),
    ("Steps, in this order", _steps),
    ("Notes", _notes),
)


def _nodes(nodes: Iterable[str]) -> str:
    return listed(shown(node) for node in nodes)


def _blocks(rows: Sequence[Sequence[str]], page: Page, mark: str, tone: Callable[[str], str]) -> list[str]:
    return [line for block in table(rows, page.width, f"{_INDENT}{mark}") for line in _marked(block, tone)]


def _marked(block: Sequence[str], tone: Callable[[str], str]) -> list[str]:
    """The block with its first line's mark painted; the mark stands after the indent."""
    first, *rest = block
    return [f"{_INDENT}{tone(first[2:3])}{first[3:]}", *rest]
