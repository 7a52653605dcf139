"""Recipe: how a model, or several that share one process, is installed and served (documents.md, Recipe)."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import msgspec

from .document import Metadata, Spec
from .words import ModelKind


class Backend(Spec, frozen=True, kw_only=True):
    """The server program: LLooM's backend id, and its container image where it has one."""

    id: str
    image: str | None = None


class Requirements(Spec, frozen=True, kw_only=True):
    """What a machine must have. Absent lists ask for nothing, except `computeArchs`: absent means "infer it".

    `memoryGb` is the lane's own estimate once loaded (GiB; per rank on a unified node, per device elsewhere), not the
    size of the machine; None is unknown. `loadPeakGb` is the same while loading (None: as `memoryGb`). `hostMemoryGb`
    comes from the system domain besides. `diskGb` (GB) None is unknown. `tensorParallel` None means
    nodes x devicesPerNode, or what the launch settings say.
    """

    platforms: tuple[str, ...] = ()
    accelerators: tuple[str, ...] = ()
    compute_archs: tuple[str, ...] = ()
    nodes: int = 1
    devices_per_node: int = 1
    tensor_parallel: int | None = None
    memory_gb: Decimal | None = None
    host_memory_gb: Decimal = Decimal(0)
    load_peak_gb: Decimal | None = None
    disk_gb: Decimal | None = None
    commands: tuple[str, ...] = ()


class Launch(Spec, frozen=True, kw_only=True):
    """How the server is started, as far as a requirement may be inferred from it. Templates (`${port}`) stay as is."""

    env: dict[str, str] = {}
    args: tuple[str, ...] = ()


class ModelSettings(Spec, frozen=True, kw_only=True):
    """Settings of one model. `memoryGb` (GiB) is given where the model has a process of its own that needs less."""

    context_window: int | None = None
    max_sequences: int | None = None
    start_timeout_seconds: int | None = None
    memory_gb: Decimal | None = None


class RecipeModel(Spec, frozen=True, kw_only=True):
    """One model of a recipe. `model` is the artifact, `gatewayModel` the id that aliases name.

    Models with the same `runtime` share one process (none given: all of them do). `image` and `launch` are given where
    the processes differ; what they leave out is the recipe's.
    """

    model: str
    gateway_model: str
    kind: ModelKind
    revision: str | None = None
    runtime: str | None = None
    image: str | None = None
    settings: ModelSettings = ModelSettings()
    launch: Launch = Launch()


class Benchmark(Spec, frozen=True, kw_only=True):
    """A published or measured figure. `hardware` matches a node's label; `model` (gateway id) None: the recipe's."""

    hardware: str
    model: str | None = None
    ttft_ms: int | None = None
    tokens_per_second: Decimal | None = None
    sequences: int = 1
    source: str | None = None


class RecipeSpec(Spec, frozen=True, kw_only=True):
    """Spec of a Recipe document. `lloom` is what an imported LLooM recipe says besides (catalog.lloom_recipe)."""

    version: int = 1
    backend: Backend
    requirements: Requirements = Requirements()
    models: tuple[RecipeModel, ...]
    load_seconds: Decimal | None = None
    benchmarks: tuple[Benchmark, ...] = ()
    launch: Launch = Launch()
    lloom: dict[str, Any] | None = None


class Recipe(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A Recipe document without its envelope words."""

    metadata: Metadata
    spec: RecipeSpec


class RecipeProcess(msgspec.Struct, frozen=True, kw_only=True):
    """One process that a recipe would start: the models in it, and what holds for it (GiB; None is unknown)."""

    models: tuple[RecipeModel, ...]
    memory_gb: Decimal | None
    image: str | None
    launch: Launch


def processes(spec: RecipeSpec) -> tuple[RecipeProcess, ...]:
    """Group a recipe's models by `runtime`, in order of first mention, and resolve what each process inherits.

    A process needs the largest memory among its models; a model that says nothing has the recipe's.
    """
    groups: dict[str | None, list[RecipeModel]] = {}
    for model in spec.models:
        groups.setdefault(model.runtime, []).append(model)
    return tuple(_process(spec, tuple(models)) for models in groups.values())


def _process(spec: RecipeSpec, models: tuple[RecipeModel, ...]) -> RecipeProcess:
    needs = [m.settings.memory_gb if m.settings.memory_gb is not None else spec.requirements.memory_gb for m in models]
    known = [need for need in needs if need is not None]
    images = [model.image for model in models if model.image is not None]
    env = next((model.launch.env for model in models if model.launch.env), spec.launch.env)
    args = next((model.launch.args for model in models if model.launch.args), spec.launch.args)
    return RecipeProcess(
        models=models,
        memory_gb=max(known) if known else None,
        image=images[0] if images else spec.backend.image,
        launch=Launch(env=env, args=args),
    )
