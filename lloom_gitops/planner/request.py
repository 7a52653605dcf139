"""What-if requests: the flags of `plan` that change the question without changing the repository."""

from __future__ import annotations

import msgspec

from lloom_gitops.model.desired import Desired, Node, Pin
from lloom_gitops.model.words import NodeState

EFFORTS = ("quick", "normal", "deep")


class PlanRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What-if flags. Anything set here makes a plan that only shows (lifecycle.md): `inputs.whatIf` names it."""

    pins: dict[str, Pin] = {}
    cordons: tuple[str, ...] = ()
    profile: str | None = None
    consider_installs: bool = False
    effort: str | None = None
    inventory: str | None = None

    @property
    def what_if(self) -> tuple[str, ...]:
        """The flags in a fixed order, as `flag=value`; `inventory` names a file that was handed in."""
        flags = [f"pin={key}" for key in sorted(self.pins)]
        flags += [f"cordon={node}" for node in sorted(self.cordons)]
        flags += [f"profile={self.profile}"] if self.profile is not None else []
        flags += ["consider-installs"] if self.consider_installs else []
        flags += [f"effort={self.effort}"] if self.effort is not None else []
        flags += [f"inventory={self.inventory}"] if self.inventory is not None else []
        return tuple(flags)


def effective(desired: Desired, request: PlanRequest) -> Desired:
    """The desired state with the request merged in: what the planner and the judge are asked about."""
    replace = msgspec.structs.replace
    nodes = dict(desired.nodes)
    for name in request.cordons:
        node = nodes.get(name, Node())
        stricter = node.state.strictness >= NodeState.CORDON.strictness
        nodes[name] = node if stricter else replace(node, state=NodeState.CORDON)
    pool = desired.pool
    if request.profile is not None:
        pool = replace(pool, active_profile=request.profile)
    planning = pool.planning
    if request.consider_installs:
        planning = replace(planning, consider_installs=True)
    if request.effort is not None:
        planning = replace(planning, effort=request.effort)
    return replace(desired, pool=replace(pool, planning=planning), nodes=nodes, pins={**desired.pins, **request.pins})
