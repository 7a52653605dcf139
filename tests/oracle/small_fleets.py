"""Random small fleets for the oracle, richer than the planner's own pools: each fleet shows a few dimensions at once.

A fleet first draws which dimensions it shows, so that rare ones meet each other; what is loaded always fits the limits,
since nothing else can be observed.
"""

from __future__ import annotations

from decimal import Decimal

from hypothesis import strategies as st
from msgspec.structs import replace

from lloom_gitops.catalog.memory import footprint, keys_of_nodes, limits
from lloom_gitops.model.desired import Alias, Desired, Lane, Link, Needs, Node, Pin, Profile, Slo
from lloom_gitops.model.inventory import (
    Accelerator,
    Demand,
    GatewayBuild,
    Inventory,
    MemoryDomain,
    ObservedAlias,
    ObservedLane,
    ObservedNode,
    Performance,
)
from lloom_gitops.model.pool import Memory, Pool
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

Fleet = tuple[Desired, Inventory]

DIMENSIONS = (
    "devices",
    "mac",
    "pairs",
    "peaks",
    "aborts",
    "measured",
    "basis",
    "pins",
    "profile",
    "states",
    "silent",
    "unknown",
    "shared",
    "sets",
    "external",
    "goals",
    "demand",
    "oldNode",
    "oldHead",
    "unmanaged",
    "agent",
    "stops",
    "latched",
    "foreign",
    "further",
    "needs",
    "unlisted",
)
NODES = ("n1", "n2", "n3")
MODELS = ("m1", "m2", "m3", "m4")
CLOUD = "cloud/x"
_MODERN = tuple(Feature)


@st.composite
def fleets(draw: st.DrawFn, sure: tuple[str, ...] = ()) -> Fleet:
    """A desired state and what was seen, with the head ready and readable; it shows at least what is `sure`."""
    shows = frozenset(draw(st.lists(st.sampled_from(DIMENSIONS), max_size=8, unique=True))) | frozenset(sure)
    names = NODES[: draw(st.integers(1, 3))]
    nodes = {name: draw(_nodes(name, names, shows)) for name in names}
    models = MODELS[: draw(st.integers(2, 4))]
    lanes = draw(_lanes(models, nodes, shows))
    aliases = {f"a{index}": draw(_aliases(models, shows)) for index in range(draw(st.integers(1, 4)))}
    desired = Desired(
        name="pool",
        pool=draw(_pools(names[0], models, shows)),
        nodes={name: Node(state=draw(_states(shows))) for name in names},
        unlisted=draw(st.sampled_from(["keep", "remove"])) if "unlisted" in shows else "keep",
        aliases=aliases,
        lanes=draw(_documents(tuple(lanes))) if "stops" in shows else {},
        profiles={"p": draw(_profiles(aliases, lanes))} if "profile" in shows else {},
        # A profile's residencies and a pin may contradict each other; which is given up then is nobody's rule.
        pins=draw(_pins(lanes)) if "pins" in shows and "profile" not in shows and lanes else {},
    )
    inventory = Inventory(
        nodes=nodes,
        lanes=lanes,
        aliases=draw(_routes(desired, lanes, shows)),
        performance={model: draw(_figures()) for model in (*models, CLOUD) if draw(st.booleans())},
        demand={name: draw(_demand()) for name in aliases if "demand" in shows and draw(st.booleans())},
    )
    return desired, possible(desired, inventory)


@st.composite
def _nodes(draw: st.DrawFn, name: str, names: tuple[str, ...], shows: frozenset[str]) -> ObservedNode:
    kinds = ["spark", *(kind for kind in ("devices", "mac") if kind in shows)]
    silent = "silent" in shows and name != names[0]
    liveness = draw(st.sampled_from([Liveness.READY, *([Liveness.SUSPECT, Liveness.LOST] if silent else [])]))
    old = ("oldHead" in shows and name == names[0]) or ("oldNode" in shows and draw(st.booleans()))
    capacity = draw(st.sampled_from([Decimal(32), Decimal(64), Decimal("121.7")]))
    unknown = "unknown" in shows and bool(draw(st.booleans()))
    foreign = draw(st.sampled_from([Decimal(0), Decimal(5)])) if "foreign" in shows else Decimal(0)
    kind = draw(st.sampled_from(kinds))
    domains: tuple[MemoryDomain, ...] = (
        MemoryDomain(
            id="unified:0", kind=DomainKind.UNIFIED, capacity_gb=None if unknown else capacity, foreign_gb=foreign
        ),
    )
    if kind == "devices":
        device = draw(st.sampled_from([Decimal(24), Decimal(48)]))
        domains = (
            *(MemoryDomain(id=f"device:{i}", kind=DomainKind.DEVICE, capacity_gb=device) for i in range(2)),
            MemoryDomain(id="system:0", kind=DomainKind.SYSTEM, capacity_gb=capacity, foreign_gb=foreign),
        )
    peers = [peer for peer in names if peer != name] if "pairs" in shows and draw(st.booleans()) else []
    return ObservedNode(
        seen=Seen.PRESENT if liveness is Liveness.READY else Seen.UNKNOWN,
        liveness=liveness,
        platform="macos-arm64" if kind == "mac" else "linux-arm64",
        accelerators=(Accelerator(kind="metal" if kind == "mac" else "cuda"),),
        memory_domains=domains,
        links=tuple(Link(peer=peer, fabric="sync") for peer in peers),
        gateway=GatewayBuild(features=() if old else _MODERN),
    )


@st.composite
def _lanes(
    draw: st.DrawFn, models: tuple[str, ...], nodes: dict[str, ObservedNode], shows: frozenset[str]
) -> dict[str, ObservedLane]:
    result = {}
    for model in models:
        for index in range(draw(st.sampled_from([1, 1, 2, 0] if "further" in shows else [1, 1, 1, 0]))):
            served: tuple[str, ...] = (model,)
            if "shared" in shows and draw(st.booleans()):
                served = tuple(sorted({model, draw(st.sampled_from(models))}))
            result[f"{model}-l{index}"] = draw(_lane(served, nodes, shows))
    return dict(list(result.items())[:6])


@st.composite
def _lane(
    draw: st.DrawFn, models: tuple[str, ...], nodes: dict[str, ObservedNode], shows: frozenset[str]
) -> ObservedLane:
    managed = not ("unmanaged" in shows and draw(st.sampled_from([False, False, True])))
    size = Decimal(draw(st.sampled_from([4, 10, 16, 22, 30, 40, 60])))
    count = draw(st.sampled_from([1, 2])) if "pairs" in shows else 1
    members = tuple(sorted(draw(st.permutations(sorted(nodes)))[:count]))
    places = [key for node in members for key in draw(_places(node, nodes[node]))]
    memory = dict.fromkeys(places, size)
    memory |= {key: Decimal(4) for key in places if "/system" in key}
    state = draw(st.sampled_from([LaneState.RUNNING, LaneState.STOPPED]))
    stopped = state is LaneState.STOPPED and managed
    return ObservedLane(
        models=models,
        kind=ModelKind.CHAT,
        nodes=members,
        management=Management.MANAGED if managed else Management.UNMANAGED,
        owner=members[0],
        state=state,
        residency=draw(st.sampled_from(list(Residency))) if managed else Residency.AUTO,
        memory_gb=memory,
        measured_gb=draw(_measured(memory)) if shows & {"measured", "basis"} else {},
        abort_gb={key: gb + 5 for key, gb in memory.items()} if "aborts" in shows and draw(st.booleans()) else {},
        load_peak_gb={key: gb + 8 for key, gb in memory.items()} if "peaks" in shows and draw(st.booleans()) else {},
        latched="latched" in shows and stopped and draw(st.booleans()),
        excluded_nodes=members[:1] if "latched" in shows and stopped and draw(st.booleans()) else (),
        context_window=draw(st.sampled_from([8192, 131072, None])) if "needs" in shows else 131072,
        max_sequences=4,
        load_seconds=Decimal(draw(st.sampled_from([1, 20, 90, 300]))),
        started_by="agent" if "agent" in shows and draw(st.booleans()) else None,
    )


@st.composite
def _places(draw: st.DrawFn, name: str, node: ObservedNode) -> list[str]:
    """Domain keys that a lane on this node fills: one or two devices, and the system besides at times."""
    if len(node.memory_domains) == 1:
        return [name]
    devices = [f"{name}/device:0", f"{name}/device:1"]
    chosen = draw(st.sampled_from([devices[:1], devices[1:], devices]))
    return [*chosen, *([f"{name}/system:0"] if draw(st.booleans()) else [])]


@st.composite
def _measured(draw: st.DrawFn, memory: dict[str, Decimal]) -> dict[str, Decimal]:
    change = draw(st.sampled_from([None, Decimal("0.6"), Decimal("1.2")]))
    return {} if change is None else {key: gb * change for key, gb in memory.items()}


@st.composite
def _aliases(draw: st.DrawFn, models: tuple[str, ...], shows: frozenset[str]) -> Alias:
    order = draw(st.permutations(models))[: draw(st.integers(1, min(3, len(models))))]
    return Alias(
        models=tuple(order),
        external=(CLOUD,) if "external" in shows and draw(st.booleans()) else (),
        needs=Needs(context_window=draw(st.sampled_from([None, 8192, 100000]))) if "needs" in shows else Needs(),
        slo=draw(st.sampled_from([Slo(), Slo(ttft_ms=500), Slo(tokens_per_second=Decimal(20))]))
        if "goals" in shows
        else Slo(),
        residency=draw(st.sampled_from(list(Residency))),
        interim=draw(st.sampled_from(["local", "external", "gap"])),
        priority=draw(st.sampled_from([20, 50, 70, 100])),
    )


def _states(shows: frozenset[str]) -> st.SearchStrategy[NodeState]:
    return st.sampled_from([NodeState.SERVE, NodeState.SERVE, *(list(NodeState) if "states" in shows else [])])


@st.composite
def _pools(draw: st.DrawFn, head: str, models: tuple[str, ...], shows: frozenset[str]) -> Pool:
    return Pool(
        head=head,
        active_profile="p" if "profile" in shows else None,
        memory=Memory(basis="measured", margin_gb=Decimal(2)) if "basis" in shows else Memory(),
        co_resident=(tuple(draw(st.permutations(models))[:2]),) if "sets" in shows else (),
    )


@st.composite
def _documents(draw: st.DrawFn, lanes: tuple[str, ...]) -> dict[str, Lane]:
    """A document for each lane: what people ask of it."""
    return {
        name: Lane(
            when_unrouted=draw(st.sampled_from(["keep", "stop"])),
            state=draw(st.sampled_from(["any", "any", "stopped"])),
        )
        for name in lanes
    }


@st.composite
def _profiles(draw: st.DrawFn, aliases: dict[str, Alias], lanes: dict[str, ObservedLane]) -> Profile:
    routes = {}
    for name, alias in aliases.items():
        if draw(st.booleans()):
            entries = draw(st.permutations(alias.models))[: draw(st.integers(1, len(alias.models)))]
            routes[name] = (*entries, *alias.external[: draw(st.integers(0, 1))])
    wished = [draw(st.sampled_from(sorted(lanes)))] if bool(lanes) and draw(st.booleans()) else []
    return Profile(routes=routes, residency={name: draw(st.sampled_from(list(Residency))) for name in wished})


@st.composite
def _pins(draw: st.DrawFn, lanes: dict[str, ObservedLane]) -> dict[str, Pin]:
    lane = lanes[draw(st.sampled_from(sorted(lanes)))]
    residency = draw(st.sampled_from([None, *Residency]))
    return {f"{draw(st.sampled_from(lane.models))}@{'+'.join(lane.nodes)}": Pin(residency=residency)}


@st.composite
def _routes(
    draw: st.DrawFn, desired: Desired, lanes: dict[str, ObservedLane], shows: frozenset[str]
) -> dict[str, ObservedAlias]:
    """Routes at the head, mostly what aliases ask for; an old head's have one model, `unlisted` adds one of others."""
    result = {}
    for name, alias in desired.aliases.items():
        wanted = [*alias.models, *alias.external]
        if draw(st.sampled_from([True, True, False])):
            kept = [model for model in wanted if draw(st.sampled_from([True, True, False]))] or wanted[:1]
            result[name] = _route(draw, kept[:1] if "oldHead" in shows else kept, lanes)
    if "unlisted" in shows and lanes:
        lane = lanes[draw(st.sampled_from(sorted(lanes)))]
        result["foreign"] = _route(draw, [lane.models[0]], lanes)
    return result


def _route(draw: st.DrawFn, models: list[str], lanes: dict[str, ObservedLane]) -> ObservedAlias:
    behind: list[str | None] = []
    for model in models:
        serving = sorted(name for name, lane in lanes.items() if model in lane.models)
        behind.append(draw(st.sampled_from(serving)) if serving else None)
    return ObservedAlias(route=tuple(models), lanes=tuple(behind))


@st.composite
def _figures(draw: st.DrawFn) -> Performance:
    speed = draw(st.sampled_from([None, Decimal(8), Decimal(40)]))
    return Performance(ttft_ms=draw(st.sampled_from([None, 200, 900, 3000])), tokens_per_second=speed)


@st.composite
def _demand(draw: st.DrawFn) -> Demand:
    return Demand(
        requests_per_hour=Decimal(draw(st.sampled_from([0, 2, 30]))),
        output_tokens=draw(st.sampled_from([None, 0, 500])),
    )


def possible(desired: Desired, inventory: Inventory) -> Inventory:
    """The inventory with so many lanes stopped that what is loaded fits the limits, where they are known."""
    domains = limits(desired, inventory)
    keys = keys_of_nodes(domains)
    free = {key: row.limit_mib for key, row in domains.items()}
    lanes = {}
    for name, lane in inventory.lanes.items():
        memory = footprint(desired.pool, lane, keys)
        if lane.state.loaded and any((left := free.get(key)) is not None and left < mib for key, mib in memory.items()):
            lanes[name] = replace(lane, state=LaneState.STOPPED)
            continue
        lanes[name] = lane
        for key, mib in memory.items() if lane.state.loaded else ():
            left = free.get(key)
            free[key] = None if left is None else left - mib
    return replace(inventory, lanes=lanes)
