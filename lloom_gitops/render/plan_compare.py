"""A what-if plan against the committed one: what would be otherwise."""

from __future__ import annotations

from collections.abc import Sequence

from lloom_gitops.model.plan import Plan
from lloom_gitops.render.clean import shown
from lloom_gitops.render.layout import table
from lloom_gitops.render.page import Page


def compared_text(committed: Plan | None, made: Plan, page: Page) -> str:
    """Lanes, routes and coverage in which `made` differs from the committed plan; ends with a newline."""
    if committed is None:
        return "There is no committed plan to compare with.\n"
    rows = [*_lanes(committed, made, page), *_routes(committed, made, page), *_coverage(committed, made)]
    if not rows:
        return "The committed plan has the same lanes, residencies and routes.\n"
    lines = [line for block in table(rows, page.width, "  ") for line in block]
    title = page.paint.strong("Against the committed plan")
    return "\n".join([title, *lines]) + "\n"


def _lanes(committed: Plan, made: Plan, page: Page) -> list[list[str]]:
    rows = []
    for lane in sorted(committed.lanes.keys() | made.lanes.keys()):
        sides = [
            plan.lanes[lane].residency.value if lane in plan.lanes else "not planned" for plan in (committed, made)
        ]
        if sides[0] != sides[1]:
            rows.append(["lane", shown(lane), f" {page.arrow} ".join(sides)])
    return rows


def _routes(committed: Plan, made: Plan, page: Page) -> list[list[str]]:
    rows = []
    for alias in sorted(committed.routes.keys() | made.routes.keys()):
        sides = [_route(each.routes[alias].route) if alias in each.routes else "nothing" for each in (committed, made)]
        if sides[0] != sides[1]:
            rows.append(["route", shown(alias), f" {page.arrow} ".join(sides)])
    return rows


def _route(models: Sequence[str]) -> str:
    return ", ".join(shown(model) for model in models) or "nothing"


def _coverage(committed: Plan, made: Plan) -> list[list[str]]:
    lost = sorted(made.uncovered.keys() - committed.uncovered.keys())
    won = sorted(committed.uncovered.keys() - made.uncovered.keys())
    rows = [["alias", shown(alias), "would not be covered any more"] for alias in lost]
    return rows + [["alias", shown(alias), "would be covered again"] for alias in won]
