"""Random small pools for properties: nodes of several sizes and states, lanes, aliases, pins, profiles."""

from __future__ import annotations

from decimal import Decimal

from hypothesis import strategies as st
from msgspec.structs import replace

from lloom_gitops.model.desired import Alias, Desired, Lane, Needs, Node, Pin, Profile, Slo
from lloom_gitops.model.inventory import (
    Accelerator,
    Admission,
    Demand,
    GatewayBuild,
    Inventory,
    MemoryDomain,
    ObservedAlias,
    ObservedLane,
    ObservedNode,
    Performance,
)
from lloom_gitops.model.pool import Pool
from lloom_gitops.model.words import (
    DomainKind,
    Feature,
    LaneState,
    Liveness,
    Management,
    ModelKind,
    NodeState,
    Residency,
    Seen,
)

ALL_FEATURES = tuple(Feature)
NODES = ("n1", "n2", "n3")
MODELS = ("m1", "m2", "m3", "m4")
EXTERNAL = "cloud/x"


@st.composite
def nodes(draw: st.DrawFn) -> ObservedNode:
    liveness = draw(st.sampled_from([Liveness.READY] * 6 + [Liveness.SUSPECT, Liveness.LOST]))
    capacity = draw(st.sampled_from([Decimal(32), Decimal(64), Decimal("121.7"), None]))
    return ObservedNode(
        seen=Seen.PRESENT if liveness is Liveness.READY else Seen.UNKNOWN,
        liveness=liveness,
        platform="linux-arm64",
        accelerators=(Accelerator(kind="cuda", name="GB10", compute_arch="sm_121"),),
        memory_domains=(MemoryDomain(id="unified:0", kind=DomainKind.UNIFIED, capacity_gb=capacity),),
        admission=Admission(reserve_gb=Decimal(8), guard_ceiling=Decimal("0.9")),
        gateway=GatewayBuild(features=draw(st.sampled_from([ALL_FEATURES, ALL_FEATURES, ()]))),
    )


@st.composite
def lanes(draw: st.DrawFn, model: str, names: tuple[str, ...]) -> ObservedLane:
    managed = draw(st.sampled_from([True, True, True, False]))
    size = draw(st.sampled_from([4, 12, 20, 38, 60, 90]))
    members = tuple(draw(st.permutations(names))[: draw(st.sampled_from([1, 1, 1, 2]))])
    members = tuple(sorted(members))
    state = draw(st.sampled_from([LaneState.RUNNING, LaneState.STOPPED, LaneState.STOPPED, LaneState.LOADING]))
    return ObservedLane(
        models=(model,),
        kind=ModelKind.CHAT,
        nodes=members,
        management=Management.MANAGED if managed else Management.UNMANAGED,
        owner=members[0],
        state=state,
        residency=draw(st.sampled_from(list(Residency))),
        memory_gb={node: Decimal(size) for node in members},
        load_peak_gb=draw(st.sampled_from([{}, {node: Decimal(size + 6) for node in members}])),
        latched=draw(st.sampled_from([False] * 7 + [True])) if managed and state is LaneState.STOPPED else False,
        context_window=draw(st.sampled_from([8192, 131072, None])),
        load_seconds=Decimal(draw(st.integers(0, 400))),
        started_by=draw(st.sampled_from([None, "agent"])),
    )


@st.composite
def aliases(draw: st.DrawFn, models: tuple[str, ...]) -> Alias:
    order = draw(st.permutations(models))[: draw(st.integers(1, len(models)))]
    return Alias(
        models=tuple(order),
        external=draw(st.sampled_from([(), (EXTERNAL,)])),
        needs=Needs(context_window=draw(st.sampled_from([None, None, 8192, 100000]))),
        slo=draw(st.sampled_from([Slo(), Slo(ttft_ms=500)])),
        residency=draw(st.sampled_from(list(Residency))),
        interim=draw(st.sampled_from(["local", "external", "gap"])),
        priority=draw(st.sampled_from([20, 50, 70, 100])),
    )


def _possible(seen: dict[str, ObservedNode], observed: dict[str, ObservedLane]) -> dict[str, ObservedLane]:
    """The lanes with so many stopped that what is loaded could really be loaded, and residencies that fit a budget."""
    room = {name: (node.memory_domains[0].capacity_gb or Decimal(64)) * Decimal("0.75") for name, node in seen.items()}
    kept = dict(room)
    result = {}
    for name, lane in observed.items():
        fits = all(lane.load_peak_gb.get(node, gb) <= room[node] for node, gb in lane.memory_gb.items())
        if lane.state.loaded and fits:
            room = {
                node: left - lane.load_peak_gb.get(node, lane.memory_gb.get(node, Decimal(0)))
                for node, left in room.items()
            }
        elif lane.state.loaded:
            lane = replace(lane, state=LaneState.STOPPED)
        holds = lane.residency is not Residency.AUTO
        if holds and all(gb + 8 <= kept[node] for node, gb in lane.memory_gb.items()):
            kept = {node: left - lane.memory_gb.get(node, Decimal(0)) for node, left in kept.items()}
        elif holds:
            lane = replace(lane, residency=Residency.AUTO)
        result[name] = lane
    return result


@st.composite
def pools(draw: st.DrawFn) -> tuple[Desired, Inventory]:
    """A desired state and an inventory in which at least one node was read."""
    names = NODES[: draw(st.integers(1, 3))]
    seen = {name: draw(nodes()) for name in names}
    if all(node.seen is Seen.UNKNOWN for node in seen.values()):
        seen[names[0]] = ObservedNode(memory_domains=seen[names[0]].memory_domains)
    models = MODELS[: draw(st.integers(1, 4))]
    observed: dict[str, ObservedLane] = {}
    for model in models:
        for index in range(draw(st.integers(0, 2))):
            observed[f"{model}-l{index}"] = draw(lanes(model, names))
    observed = _possible(seen, observed)
    wanted = {f"a{index}": draw(aliases(models)) for index in range(draw(st.integers(1, 4)))}
    routes = {}
    for alias in wanted:
        if draw(st.booleans()):
            route = tuple(draw(st.permutations([*models, EXTERNAL]))[: draw(st.integers(1, 2))])
            routes[alias] = ObservedAlias(route=route)
    pins = {}
    if observed and draw(st.sampled_from([False, False, True])):
        lane = observed[draw(st.sampled_from(sorted(observed)))]
        residency = draw(st.sampled_from([None, Residency.ALWAYS, Residency.AUTO]))
        pins[f"{lane.models[0]}@{'+'.join(lane.nodes)}"] = Pin(residency=residency)
    desired = Desired(
        name="pool",
        pool=Pool(head=names[0]),
        nodes={name: Node(state=draw(st.sampled_from([NodeState.SERVE] * 5 + list(NodeState)))) for name in names},
        aliases=wanted,
        lanes={
            name: Lane(when_unrouted=draw(st.sampled_from(["keep", "stop"])))
            for name in sorted(observed)
            if draw(st.booleans())
        },
        profiles={"p": Profile()},
        pins=pins,
    )
    inventory = Inventory(
        nodes=seen,
        lanes=observed,
        aliases=routes,
        performance={m: Performance(ttft_ms=draw(st.integers(50, 3000))) for m in models if draw(st.booleans())},
        demand={a: Demand(requests_per_hour=Decimal(draw(st.integers(0, 90)))) for a in wanted if draw(st.booleans())},
    )
    return desired, inventory
