"""Plans of larger pools: legal, the same whatever the order of the input, and proven or honest about their bound."""

from __future__ import annotations

import pytest

from benchmarks.planner import shuffled
from benchmarks.pools import make
from lloom_gitops.checks.plan import judge
from lloom_gitops.codec import digest
from lloom_gitops.planner import plan

POOLS = [(12, "adopt"), (30, "adopt"), (100, "adopt"), (200, "adopt"), (12, "place"), (30, "place")]


@pytest.mark.parametrize(("nodes", "kind"), POOLS, ids=[f"{nodes} {kind}" for nodes, kind in POOLS])
def test_plans_of_larger_pools(nodes: int, kind: str) -> None:
    desired, inventory = make(nodes, kind, seed=2)
    made = plan(desired, inventory)
    found = judge(desired, inventory, made)
    assert not found, "\n".join(f"{f.code} {f.pointer}: {f.message} ({f.wanted} / {f.found})" for f in found[:5])
    assert digest(plan(*shuffled(desired, inventory))) == digest(made)
    verdict = made.verdict
    assert (verdict.proof == "optimal") == (verdict.bound is None) == (made.inputs.engine == "exact")
    if verdict.bound is not None:
        assert verdict.bound <= verdict.levels[: len(verdict.bound)]
