"""The same instance for HiGHS and CP-SAT, with a time limit: what the planner is compared with. CP-SAT is an extra."""

from __future__ import annotations

import time

from lloom_gitops.model.desired import Desired
from lloom_gitops.model.inventory import Inventory
from lloom_gitops.planner.highs import SLACK, model_of, quiet_solver
from lloom_gitops.planner.memory_sums import rules_of
from lloom_gitops.planner.optimist import Optimist
from lloom_gitops.planner.outcome import ideal_residency
from lloom_gitops.planner.programme import LEVELS, Programme
from lloom_gitops.planner.search import lane_options, residency_options
from lloom_gitops.planner.world import LaneRole, build


def programme_of(desired: Desired, inventory: Inventory) -> Programme:
    """The whole pool as one programme, every lane's residency open."""
    world = build(desired, inventory)
    lanes = {model: rows[0] for model, rows in lane_options(world).items()}
    wanted = ideal_residency(world, lanes)
    rows = {name: residency_options(world, name, wanted[name]) for name in wanted}
    able = {n for n, role in world.roles.items() if n in wanted or role in (LaneRole.FIXED, LaneRole.LEAVING)}
    return Programme(Optimist(world, rules_of(world), rows, lanes, able))


def highs(programme: Programme, seconds: float) -> tuple[int, ...]:
    """Levels that HiGHS reaches in a time, one after the other."""
    import highspy

    solver = quiet_solver(highspy)
    solver.setOptionValue("threads", 1)
    solver.passModel(model_of(highspy, programme, whole=True))
    levels: list[int] = []
    end = time.perf_counter() + seconds
    for level in range(LEVELS):
        left = end - time.perf_counter()
        cost = [float(column.cost[level]) for column in programme.columns]
        if left <= 0:
            break
        if not any(cost):
            levels.append(0)
            continue
        solver.changeColsCost(len(cost), list(range(len(cost))), cost)
        solver.setOptionValue("time_limit", solver.getRunTime() + left)
        solver.run()
        if solver.getInfo().primal_solution_status != highspy.SolutionStatus.kSolutionStatusFeasible:
            break
        value = solver.getInfo().objective_function_value
        levels.append(round(value))
        used = [index for index, factor in enumerate(cost) if factor]
        solver.addRow(-highspy.kHighsInf, value + SLACK, len(used), used, [cost[index] for index in used])
    return tuple(levels)


def cp_sat(programme: Programme, seconds: float) -> tuple[int, ...]:
    """Levels that CP-SAT reaches in a time, one after the other."""
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    columns = [model.new_bool_var(str(index)) for index in range(len(programme.columns))]
    for row in programme.rows:
        total = sum(factor * columns[index] for index, factor in row.terms)
        model.add(total <= row.most)
        if row.least is not None:
            model.add(total >= row.least)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    levels: list[int] = []
    end = time.perf_counter() + seconds
    for level in range(LEVELS):
        left = end - time.perf_counter()
        terms = [(index, column.cost[level]) for index, column in enumerate(programme.columns) if column.cost[level]]
        if left <= 0:
            break
        if not terms:
            levels.append(0)
            continue
        total = sum(cost * columns[index] for index, cost in terms)
        model.minimize(total)
        solver.parameters.max_time_in_seconds = left
        if solver.solve(model) not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            break
        levels.append(round(solver.objective_value))
        model.add(total <= levels[-1])
        model.clear_hints()
        for column in columns:
            model.add_hint(column, solver.value(column))
    return tuple(levels)
