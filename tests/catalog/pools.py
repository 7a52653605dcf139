"""Machines and recipes that the tests of the catalog place: Sparks, a Mac, and a server with four devices."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from lloom_gitops.model.desired import Alias, Desired, Link, Node
from lloom_gitops.model.document import Metadata
from lloom_gitops.model.inventory import (
    Accelerator,
    Disk,
    GatewayBuild,
    Inventory,
    MemoryDomain,
    ObservedNode,
)
from lloom_gitops.model.pool import Planning, Pool
from lloom_gitops.model.recipe import (
    Backend,
    Benchmark,
    Launch,
    ModelSettings,
    Recipe,
    RecipeModel,
    RecipeSpec,
    Requirements,
)
from lloom_gitops.model.words import DomainKind, Feature, ModelKind

ALL = GatewayBuild(features=tuple(Feature))


def spark(*links: tuple[str, str], **fields: Any) -> ObservedNode:
    """A DGX Spark with direct links to peers, each over a fabric."""
    return ObservedNode(
        platform="linux-arm64",
        accelerators=(Accelerator(kind="cuda", name="GB10", compute_arch="sm_121"),),
        memory_domains=(MemoryDomain(id="unified:0", kind=DomainKind.UNIFIED, capacity_gb=Decimal("121.7")),),
        disks=(Disk(root="models", free_gb=Decimal(500)),),
        commands=("docker",),
        links=tuple(Link(peer=peer, fabric=fabric) for peer, fabric in links),
        gateway=ALL,
        **fields,
    )


def mac(capacity: int = 96) -> ObservedNode:
    """A Mac: one domain for everything."""
    return ObservedNode(
        platform="darwin-arm64",
        accelerators=(Accelerator(kind="metal", name="Apple M2 Max", compute_arch="apple-metal"),),
        memory_domains=(MemoryDomain(id="unified:0", kind=DomainKind.UNIFIED, capacity_gb=Decimal(capacity)),),
        commands=(),
        gateway=ALL,
    )


def server(*, devices: int = 4, gb: int = 48, foreign: Decimal = Decimal(0), **fields: Any) -> ObservedNode:
    """A CUDA server: a domain a device, and its own memory. `foreign` is in use on its third device."""
    domains = [MemoryDomain(id="system:0", kind=DomainKind.SYSTEM, capacity_gb=Decimal(256))]
    for number in range(devices):
        domains.append(
            MemoryDomain(
                id=f"device:cuda:{number}",
                kind=DomainKind.DEVICE,
                capacity_gb=Decimal(gb),
                foreign_gb=foreign if number == 2 else Decimal(0),
            )
        )
    return ObservedNode(
        platform="linux-x64",
        accelerators=(Accelerator(kind="cuda", name="NVIDIA L40S", compute_arch="sm_89", count=devices),),
        memory_domains=tuple(domains),
        disks=(Disk(root="models", free_gb=Decimal(500)),),
        commands=("docker",),
        gateway=ALL,
        **fields,
    )


def recipe(
    model: str = "m",
    *,
    needs: Requirements | None = None,
    env: dict[str, str] | None = None,
    args: tuple[str, ...] = (),
    benchmarks: tuple[Benchmark, ...] = (),
    **settings: Any,
) -> Recipe:
    """A recipe of one chat model."""
    served = RecipeModel(
        model=f"org/{model}", gateway_model=model, kind=ModelKind.CHAT, settings=ModelSettings(**settings)
    )
    spec = RecipeSpec(
        backend=Backend(id="vllm"),
        requirements=needs or Requirements(memory_gb=Decimal(40)),
        models=(served,),
        load_seconds=Decimal(100),
        benchmarks=benchmarks,
        launch=Launch(env=env or {}, args=args),
    )
    return Recipe(metadata=Metadata(name=model), spec=spec)


def pool(
    nodes: dict[str, ObservedNode],
    recipes: dict[str, Recipe],
    aliases: dict[str, Alias] | None = None,
    labels: dict[str, str] | None = None,
    **inventory: Any,
) -> tuple[Desired, Inventory]:
    """A pool that considers installs; all nodes are declared."""
    desired = Desired(
        name="pool",
        pool=Pool(head=next(iter(nodes)), planning=Planning(consider_installs=True)),
        nodes={name: Node() for name in nodes},
        node_labels={name: {"hardware": label} for name, label in (labels or {}).items()},
        aliases=aliases or {},
        recipes=recipes,
    )
    return desired, Inventory(nodes=nodes, **inventory)
