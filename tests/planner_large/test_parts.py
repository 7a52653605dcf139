"""A world searched in parts gives the plan of the same world searched whole."""

from __future__ import annotations

from hypothesis import HealthCheck, assume, given, settings

from lloom_gitops.model.desired import Desired
from lloom_gitops.model.inventory import Inventory
from lloom_gitops.planner.best import find
from lloom_gitops.planner.search import Search
from lloom_gitops.planner.wishes import hopeless, wishes_of, with_wishes
from lloom_gitops.planner.world import World, build
from tests.planner.small_pools import pools

lenient = settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)


def world_of(pool: tuple[Desired, Inventory]) -> World:
    """The pool's world with the hard wishes that are not hopeless."""
    world = build(*pool)
    return with_wishes(world, tuple(wish for wish in wishes_of(pool[0]) if hopeless(world, wish) is None))


@lenient
@given(pools())
def test_parts_together_are_the_whole(pool: tuple[Desired, Inventory]) -> None:
    world = world_of(pool)
    whole = Search(world).run()
    assume(whole is None or whole.exact)
    found = find(world)
    assert (found is None) == (whole is None)
    if found is None or whole is None:
        return
    assert found.exact
    assert found.levels == whole.levels
    assert found.outcome == whole.outcome
