"""HiGHS behind one function: the least levels of a programme, each fixed before the next. Imported when first needed.

One thread and limits on nodes and simplex iterations, never on time, so that the same programme gives the same answer
on any machine.
"""

from __future__ import annotations

from math import gcd
from typing import Any

import msgspec

from .programme import LEVELS, Programme

SLACK = 0.5
"""Levels are whole numbers, so half a unit above a level's value keeps it and forgives rounding."""
TOLERANCE = 1e-6
ITERATIONS = 200_000


class Solved(msgspec.Struct, frozen=True, kw_only=True):
    """Lower bounds of the levels that were solved to proof, in order, and the last solution's values."""

    bound: tuple[int, ...]
    levels: tuple[int, ...]
    values: list[float]


def _highspy() -> Any:
    import highspy

    return highspy


def engine() -> str:
    """The engine's name in a plan, with its version."""
    highspy = _highspy()
    return f"highs {highspy.HIGHS_VERSION_MAJOR}.{highspy.HIGHS_VERSION_MINOR}.{highspy.HIGHS_VERSION_PATCH}"


def quiet_solver(highspy: Any) -> Any:
    """A solver that prints nothing: its own constructor would greet on standard output before it can be silenced."""

    class Quiet(highspy.Highs):  # type: ignore[misc]
        def enableCallbacks(self) -> None:
            self.silent()
            super().enableCallbacks()

    return Quiet()


def solve(programme: Programme, *, whole: bool, nodes: int = 0) -> Solved | None:
    """The least levels; `whole`: with whole numbers (at most `nodes` nodes a level), else of the relaxation."""
    highspy = _highspy()
    solver = quiet_solver(highspy)
    for option, value in _options(nodes).items():
        solver.setOptionValue(option, value)
    solver.passModel(model_of(highspy, programme, whole=whole))
    bound: list[int] = []
    levels: list[int] = []
    values: list[float] = []
    for level in range(LEVELS):
        unit = gcd(*(column.cost[level] for column in programme.columns)) or 1
        cost = [float(column.cost[level] // unit) for column in programme.columns]
        if any(cost):
            solver.changeColsCost(len(cost), list(range(len(cost))), cost)
            solver.run()
            info = solver.getInfo()
            if info.primal_solution_status != highspy.SolutionStatus.kSolutionStatusFeasible:
                break
            values = list(solver.getSolution().col_value)
            value = info.objective_function_value
            proven = info.mip_dual_bound if whole else value
            bound.append(_least(proven) * unit)
            levels.append(round(value) * unit)
            terms = [(index, factor) for index, factor in enumerate(cost) if factor]
            solver.addRow(-highspy.kHighsInf, value + SLACK, len(terms), [i for i, _ in terms], [f for _, f in terms])
            if whole and _least(proven) < round(value):
                break  # a later level says nothing while this one may still be lower
        else:
            bound.append(0)
            levels.append(0)
    return Solved(bound=tuple(bound), levels=tuple(levels), values=values) if values else None


def _least(value: float) -> int:
    """The least whole number that a level can have above a bound that is exact up to rounding."""
    return -int(-(value - TOLERANCE * max(1.0, abs(value))) // 1)


def _options(nodes: int) -> dict[str, Any]:
    return {
        "threads": 1,
        "parallel": "off",
        "random_seed": 0,
        "mip_rel_gap": 0.0,
        "mip_abs_gap": 0.9,
        "mip_max_nodes": nodes,
        "simplex_iteration_limit": ITERATIONS,
    }


def model_of(highspy: Any, programme: Programme, *, whole: bool) -> Any:
    """The programme as an LP of HiGHS, or with whole numbers as a MIP."""
    lp = highspy.HighsLp()
    columns, rows = programme.columns, programme.rows
    lp.num_col_, lp.num_row_ = len(columns), len(rows)
    lp.col_cost_ = [0.0] * len(columns)
    lp.col_lower_ = [0.0] * len(columns)
    lp.col_upper_ = [1.0] * len(columns)
    lp.row_lower_ = [-highspy.kHighsInf if row.least is None else float(row.least) for row in rows]
    lp.row_upper_ = [float(row.most) for row in rows]
    starts, index, value = [0], [], []
    for row in rows:
        index += [column for column, _ in row.terms]
        value += [float(factor) for _, factor in row.terms]
        starts.append(len(index))
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = starts, index, value
    if whole:
        kinds = highspy.HighsVarType
        lp.integrality_ = [kinds.kInteger if column.whole else kinds.kContinuous for column in columns]
    return lp
