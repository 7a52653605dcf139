"""The rows of the three-Spark case: the planner's plan is legal, and its first five levels are those of the case."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from msgspec.structs import replace

from lloom_gitops.checks.plan import judge
from lloom_gitops.model.desired import Desired
from lloom_gitops.model.inventory import Inventory, ObservedAlias
from lloom_gitops.model.words import Feature, LaneState, Liveness, NodeState, Residency, Seen
from lloom_gitops.planner import PlanRequest, effective, plan
from tests.judge.plans import STANDALONE, pool

Pool = tuple[Desired, Inventory]
PAIR_NODES = ("spark-node-01", "spark-node-02")


def _changed(table: dict[str, Any], names: tuple[str, ...], **fields: Any) -> dict[str, Any]:
    return {name: replace(row, **fields) if name in names else row for name, row in table.items()}


def cordoned(*names: str) -> Callable[[Pool], Pool]:
    return lambda pool: (replace(pool[0], nodes=_changed(pool[0].nodes, names, state=NodeState.CORDON)), pool[1])


def nodes(*names: str, **fields: Any) -> Callable[[Pool], Pool]:
    return lambda pool: (pool[0], replace(pool[1], nodes=_changed(pool[1].nodes, names, **fields)))


def lane(name: str, **fields: Any) -> Callable[[Pool], Pool]:
    return lambda pool: (pool[0], replace(pool[1], lanes=_changed(pool[1].lanes, (name,), **fields)))


def document(name: str, **fields: Any) -> Callable[[Pool], Pool]:
    return lambda pool: (replace(pool[0], lanes=_changed(pool[0].lanes, (name,), **fields)), pool[1])


def standalone_routes(pool: Pool) -> Pool:
    aliases = dict.fromkeys(("cognition", "cognition-deep"), ObservedAlias(route=STANDALONE))
    return pool[0], replace(pool[1], aliases={**pool[1].aliases, **aliases})


def old_builds(pool: Pool) -> Pool:
    seen = pool[1].nodes
    head = replace(seen["spark-node-01"], gateway=replace(seen["spark-node-01"].gateway, features=(Feature.RESIDENCY,)))
    third = replace(seen["spark-node-03"], gateway=replace(seen["spark-node-03"].gateway, features=()))
    routes = {name: replace(alias, route=alias.route[:1]) for name, alias in pool[1].aliases.items()}
    found = {**seen, "spark-node-01": head, "spark-node-03": third}
    return pool[0], replace(pool[1], nodes=found, aliases=routes)


both = cordoned(*PAIR_NODES)
TAKEN = (0, 0, 0, 180, 0)
FINE = (0, 0, 0, 0, 0)
ROWS = {
    "as it is": ((), None, FINE),
    "01 and 02 cordoned": ((both,), None, TAKEN),
    "01 and 02 lost": ((nodes(*PAIR_NODES, liveness=Liveness.LOST),), None, TAKEN),
    "01 and 02 unreadable": ((nodes(*PAIR_NODES, liveness=Liveness.SUSPECT, seen=Seen.UNKNOWN),), None, FINE),
    "only 01 cordoned": ((cordoned("spark-node-01"),), None, TAKEN),
    "pair stopped by hand": ((lane("qwen38-pair", state=LaneState.STOPPED),), None, TAKEN),
    "back again": (
        (lane("qwen38-27b-03", state=LaneState.RUNNING, residency=Residency.ALWAYS), standalone_routes),
        None,
        FINE,
    ),
    "27B needs 45": (
        (both, lane("qwen38-27b-03", memory_gb={"spark-node-03": Decimal(45)})),
        None,
        (0, 0, 0, 180, 70),
    ),
    "standalone profile": ((), "standalone", TAKEN),
    "standalone profile, the pair stops when unrouted": (
        (document("qwen38-pair", when_unrouted="stop"),),
        "standalone",
        TAKEN,
    ),
    "macbook cordoned": ((cordoned("macbook-local"),), None, FINE),
    "old builds": ((both, old_builds), None, TAKEN),
    "27B latched": ((both, lane("qwen38-27b-03", latched=True)), None, (0, 180, 0, 0, 0)),
}


@pytest.mark.parametrize(("changes", "profile", "levels"), ROWS.values(), ids=ROWS)
def test_a_row_is_planned_and_judged(
    changes: tuple[Callable[[Pool], Pool], ...], profile: str | None, levels: tuple[int, ...]
) -> None:
    desired, inventory = pool()
    for change in changes:
        desired, inventory = change((desired, inventory))
    request = PlanRequest(profile=profile)
    made = plan(desired, inventory, request)
    findings = judge(effective(desired, request), inventory, made)
    assert [f"{f.code} {f.pointer}: {f.message}" for f in findings] == []
    assert made.verdict.levels[:5] == levels
