"""No bound is above the best outcome, and HiGHS finds what the exact search finds."""

from __future__ import annotations

from hypothesis import HealthCheck, assume, given, settings

from lloom_gitops.model.desired import Desired
from lloom_gitops.model.inventory import Inventory
from lloom_gitops.planner.highs import solve
from lloom_gitops.planner.memory_sums import rules_of
from lloom_gitops.planner.optimist import Optimist
from lloom_gitops.planner.outcome import ideal_residency
from lloom_gitops.planner.programme import Programme
from lloom_gitops.planner.search import Search, lane_options, residency_options
from lloom_gitops.planner.world import LaneRole, World
from tests.planner.small_pools import pools

from .test_parts import world_of

lenient = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)


def optimist_of(world: World) -> Optimist:
    """The optimist of a world in which every lane is varied and each model has one order of lanes."""
    lanes = {model: rows[0] for model, rows in lane_options(world).items()}
    wanted = ideal_residency(world, lanes)
    rows = {name: residency_options(world, name, wanted[name]) for name in wanted}
    able = {n for n, role in world.roles.items() if n in wanted or role in (LaneRole.FIXED, LaneRole.LEAVING)}
    return Optimist(world, rules_of(world), rows, lanes, able)


@lenient
@given(pools())
def test_bounds_are_never_above_the_best(pool: tuple[Desired, Inventory]) -> None:
    world = world_of(pool)
    assume(all(len(rows) == 1 for rows in lane_options(world).values()))
    best = Search(world).run()
    assume(best is not None and best.exact)
    assert best is not None
    optimist = optimist_of(world)
    assert optimist.bound()[:6] <= best.levels[:6]
    for whole in (False, True):
        solved = solve(Programme(optimist), whole=whole, nodes=100)
        assert solved is None or solved.bound <= best.levels[: len(solved.bound)]
