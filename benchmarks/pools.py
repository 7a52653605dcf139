"""Pools of any size from a seed: Sparks with pair and ring links, CUDA servers, Macs; models, aliases, demand.

Two kinds. `adopt`: a pool that runs, with a lane on a node for each model. `place`: the same models as recipes that
nobody has installed yet. Both want 80 % of the accelerators' memory. Same seed, same pool on every Python version:
chance is drawn with `Random.random` alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from random import Random
from typing import TypeVar

from lloom_gitops.catalog.memory import keys_of_nodes, limits
from lloom_gitops.model.desired import Alias, Desired, Link, Needs, Node, Slo
from lloom_gitops.model.document import Metadata
from lloom_gitops.model.inventory import (
    Accelerator,
    Demand,
    Disk,
    GatewayBuild,
    Inventory,
    MemoryDomain,
    ObservedAlias,
    ObservedLane,
    ObservedNode,
    Performance,
)
from lloom_gitops.model.pool import Planning, Pool
from lloom_gitops.model.recipe import Backend, ModelSettings, Recipe, RecipeModel, RecipeSpec, Requirements
from lloom_gitops.model.words import DomainKind, Feature, LaneState, ModelKind, Residency

MODELS_A_NODE = 1.7
WANTED = 0.8
EXTERNAL = "cloud/openrouter/fallback"
T = TypeVar("T")

FAMILIES = {
    "spark": ("linux-arm64", "cuda", "GB10", "sm_121"),
    "server": ("linux-x64", "cuda", "L40S", "sm_89"),
    "mac": ("darwin-arm64", "metal", None, "apple-metal"),
}


@dataclass(frozen=True)
class Model:
    """A model: where it runs (`family`, `nodes` ranks, `devices` each), GiB a domain, and where `adopt` puts it."""

    name: str
    family: str
    keys: tuple[str, ...]
    members: tuple[str, ...]
    devices: int
    gib: Decimal
    load_seconds: int


class Chance:
    """Draws by `Random.random` alone, which no Python version changes."""

    def __init__(self, seed: str) -> None:
        self._random = Random(seed)

    def below(self, share: float) -> bool:
        return self._random.random() < share

    def whole(self, low: int, high: int) -> int:
        return low + int(self._random.random() * (high - low + 1))

    def among(self, rows: list[T] | tuple[T, ...]) -> T:
        return rows[int(self._random.random() * len(rows))]


def make(nodes: int, kind: str, seed: int = 1) -> tuple[Desired, Inventory]:
    """The pool of a size: its desired state and its inventory. `kind`: adopt or place."""
    chance = Chance(f"{seed}/{nodes}")
    seen = _nodes(nodes, chance)
    names = sorted(seen)
    empty = Desired(name="benchmark", pool=Pool(head=names[0]), nodes={name: Node() for name in names})
    models = _models(round(MODELS_A_NODE * nodes), empty, Inventory(nodes=seen), chance)
    aliases = _aliases(models, chance)
    demand = {
        name: Demand(requests_per_hour=Decimal(chance.whole(1, 120)), output_tokens=chance.whole(50, 900))
        for name in aliases
        if chance.below(0.8)
    }
    performance = {
        model.name: Performance(ttft_ms=chance.whole(150, 4000), tokens_per_second=Decimal(chance.whole(8, 90)))
        for model in models
    }
    inventory = Inventory(nodes=seen, performance=performance, demand=demand)
    if kind == "place":
        pool = Pool(head=names[0], planning=Planning(consider_installs=True))
        recipes = {f"r-{model.name}": _recipe(model) for model in models}
        return Desired(name="benchmark", pool=pool, nodes=empty.nodes, aliases=aliases, recipes=recipes), inventory
    lanes = _lanes(models, aliases, empty, inventory)
    routes = {
        name: ObservedAlias(
            route=(*alias.models, *alias.external),
            lanes=(*(f"lane-{model}" for model in alias.models), *(None for _ in alias.external)),
        )
        for name, alias in aliases.items()
    }
    desired = Desired(name="benchmark", pool=empty.pool, nodes=empty.nodes, aliases=aliases)
    return desired, Inventory(nodes=seen, lanes=lanes, aliases=routes, performance=performance, demand=demand)


def _nodes(count: int, chance: Chance) -> dict[str, ObservedNode]:
    """Nodes by name; Sparks come alone, in linked pairs, and in rings of four."""
    seen: dict[str, ObservedNode] = {}
    while len(seen) < count:
        family = chance.among(("spark", "spark", "spark", "server", "server", "mac", "mac"))
        size = min(chance.among((1, 2, 2, 4)), count - len(seen)) if family == "spark" else 1
        group = [f"{family}-{len(seen) + index:05d}" for index in range(size)]
        for index, name in enumerate(group):
            peers = {group[index - 1], group[(index + 1) % size]} - {name}
            seen[name] = _node(family, peers, chance)
    return seen


def _node(family: str, peers: set[str], chance: Chance) -> ObservedNode:
    platform, kind, gpu, arch = FAMILIES[family]
    count = chance.among((1, 2, 4, 8)) if family == "server" else 1
    return ObservedNode(
        platform=platform,
        accelerators=(Accelerator(kind=kind, name=gpu, compute_arch=arch, count=count),),
        memory_domains=_domains(family, count, chance),
        disks=(Disk(root="models", free_gb=Decimal(chance.whole(400, 4000))),),
        commands=("docker",),
        links=tuple(Link(peer=peer, fabric="nvidia-sync") for peer in sorted(peers)),
        gateway=GatewayBuild(features=tuple(Feature)),
    )


def _domains(family: str, count: int, chance: Chance) -> tuple[MemoryDomain, ...]:
    if family == "server":
        gib = Decimal(chance.among((24, 48, 80)))
        devices = [MemoryDomain(id=f"device:{i}", kind=DomainKind.DEVICE, capacity_gb=gib) for i in range(count)]
        system = MemoryDomain(id="system:0", kind=DomainKind.SYSTEM, capacity_gb=Decimal(128 * count))
        return (*devices, system)
    gib = Decimal("121.7") if family == "spark" else Decimal(chance.among((32, 64, 96, 128, 192, 512)))
    return (MemoryDomain(id="unified:0", kind=DomainKind.UNIFIED, capacity_gb=gib),)


def _models(count: int, desired: Desired, inventory: Inventory, chance: Chance) -> list[Model]:
    """Models with a place each: of three drawn domains the emptiest, for its share of what is wanted in all."""
    by_key = limits(desired, inventory)
    keys = keys_of_nodes(by_key)
    budget = {key: limit.budget_mib or 0 for key, limit in by_key.items() if not limit.domain.startswith("system")}
    domains = sorted(budget)
    used = dict.fromkeys(domains, 0)
    drawn: list[tuple[tuple[str, ...], tuple[str, ...], int, int]] = []
    for _ in range(count):
        picks = [chance.among(domains) for _ in range(3)]
        first = min(picks, key=lambda key: (used[key] / budget[key], key))
        members, places, devices = _spread(first, keys, inventory, chance)
        room = min(budget[key] for key in places)
        mib = int(room * chance.among((0.1, 0.15, 0.2, 0.3, 0.45, 0.6, 0.8)))
        drawn.append((members, places, devices, mib))
        for key in places:
            used[key] += mib
    scale = WANTED * sum(budget.values()) / sum(used.values())
    models = []
    for index, (members, places, devices, mib) in enumerate(drawn):
        gib = round(min(mib * scale, 0.9 * min(budget[key] for key in places)) / 1024, 1)
        models.append(
            Model(
                name=f"model-{index:05d}",
                family=members[0].split("-")[0],
                keys=places,
                members=members,
                devices=devices,
                gib=Decimal(str(max(0.5, gib))),
                load_seconds=20 + int(3 * gib) + chance.whole(0, 60),
            )
        )
    return models


def _spread(
    first: str, keys: dict[str, tuple[str, ...]], inventory: Inventory, chance: Chance
) -> tuple[tuple[str, ...], tuple[str, ...], int]:
    """Nodes and domains of a lane that begins at a domain: some on a linked pair, some on several devices."""
    node = first.split("/", maxsplit=1)[0]
    links = inventory.nodes[node].links
    if links and chance.below(0.15):
        members = tuple(sorted((node, chance.among(links).peer)))
        return members, members, 1
    devices = [key for key in keys[node] if "/device" in key]
    wide = chance.among((1, 1, 1, 2, 4))
    if len(devices) >= wide > 1:
        at = devices.index(first) // wide * wide
        return (node,), tuple(devices[at : at + wide]), wide
    return (node,), (first,), 1


def _aliases(models: list[Model], chance: Chance) -> dict[str, Alias]:
    """One alias for nine of ten models, some with further models: mostly of the same team, some from anywhere."""
    aliases = {}
    for index, model in enumerate(models):
        if chance.below(0.1):
            continue
        order = [model.name]
        while chance.below(0.4) and len(order) < 3:
            near = (index + chance.whole(-8, 8)) % len(models)
            other = models[near if chance.below(0.8) else chance.whole(0, len(models) - 1)].name
            order += [other] if other not in order else []
        aliases[f"alias-{index:05d}"] = Alias(
            models=tuple(order),
            external=(EXTERNAL,) if chance.below(0.3) else (),
            needs=Needs(kind=ModelKind.CHAT, context_window=32768),
            slo=Slo(ttft_ms=chance.among((1000, 2000, 3000))) if chance.below(0.3) else Slo(),
            residency=chance.among((Residency.ALWAYS,) * 3 + (Residency.PREFERRED,) * 3 + (Residency.AUTO,) * 4),
            priority=chance.among((20, 50, 100, 100, 200)),
        )
    return aliases


def _recipe(model: Model) -> Recipe:
    platform, kind, _, arch = FAMILIES[model.family]
    spec = RecipeSpec(
        backend=Backend(id="vllm"),
        requirements=Requirements(
            platforms=(platform,),
            accelerators=(kind,),
            compute_archs=(arch,),
            nodes=len(model.members),
            devices_per_node=model.devices,
            memory_gb=model.gib,
            disk_gb=(model.gib * len(model.keys)).to_integral_value(),
        ),
        models=(
            RecipeModel(
                model=f"org/{model.name}",
                gateway_model=model.name,
                kind=ModelKind.CHAT,
                settings=ModelSettings(context_window=65536, max_sequences=8),
            ),
        ),
        load_seconds=Decimal(model.load_seconds),
    )
    return Recipe(metadata=Metadata(name=f"r-{model.name}"), spec=spec)


def _lanes(
    models: list[Model], aliases: dict[str, Alias], desired: Desired, inventory: Inventory
) -> dict[str, ObservedLane]:
    """A lane for each model; running, with the residency its first alias wishes, while its domains have room."""
    left = {key: limit.budget_mib or 0 for key, limit in limits(desired, inventory).items()}
    wished = {alias.models[0]: alias.residency for alias in aliases.values()}
    lanes = {}
    for model in models:
        mib = int(model.gib * 1024) + 1
        fits = all(left[key] >= mib for key in model.keys)
        for key in model.keys:
            left[key] -= mib if fits else 0
        lanes[f"lane-{model.name}"] = ObservedLane(
            models=(model.name,),
            kind=ModelKind.CHAT,
            nodes=model.members,
            owner=model.members[0],
            state=LaneState.RUNNING if fits else LaneState.STOPPED,
            residency=wished.get(model.name, Residency.AUTO) if fits else Residency.AUTO,
            memory_gb=dict.fromkeys(model.keys, model.gib),
            context_window=65536,
            max_sequences=8,
            load_seconds=Decimal(model.load_seconds),
            started_by="agent",
        )
    return lanes
