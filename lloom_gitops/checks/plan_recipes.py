"""What a recipe that a plan installs must be given, read from the recipe alone (documents.md, Recipe; CAT-2)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from decimal import Decimal

from lloom_gitops.catalog.memory import mib_up
from lloom_gitops.model.plan import PlannedLane
from lloom_gitops.model.recipe import Launch, Recipe, RecipeProcess, processes


def _launches(recipe: Recipe) -> list[Launch]:
    return [recipe.spec.launch, *(process.launch for process in processes(recipe.spec))]


def _option(launches: Iterable[Launch], names: str) -> int | None:
    """The first whole number given to one of some options, as the next argument or after `=`."""
    for launch in launches:
        found = re.search(rf"(?:^|\0)(?:{names})[\0=](\d+)(?:\0|$)", "\0".join(launch.args))
        if found:
            return int(found[1])
    return None


def compute_archs(recipe: Recipe) -> frozenset[str]:
    """Archs of which a node needs one: as written, else what the launch settings build for."""
    if recipe.spec.requirements.compute_archs:
        return frozenset(recipe.spec.requirements.compute_archs)
    for name in ("CUTE_DSL_ARCH", "TORCH_CUDA_ARCH_LIST"):
        for launch in _launches(recipe):
            digits = re.findall(r"(?:sm_)?(\d+)\.?(\d*)[af]?(?:\+PTX)?", launch.env.get(name, ""))
            if digits:
                return frozenset(f"sm_{major}{minor}" for major, minor in digits)
    return frozenset()


def sequences(process: RecipeProcess) -> int | None:
    """Sequences at once: the fewest that a model of the process says, else what it is launched with."""
    said = [model.settings.max_sequences for model in process.models if model.settings.max_sequences]
    if said:
        return min(said)
    given = process.launch.env.get("MAX_NUM_SEQS", "")
    return (int(given) if given.isdigit() else 0) or _option([process.launch], "--max-num-seqs") or None


def ranks(recipe: Recipe) -> list[tuple[int, int]]:
    """Legal pairs of nodes and devices of each: as written, or more for a higher tensor parallel degree."""
    needs = recipe.spec.requirements
    written = needs.nodes * needs.devices_per_node
    degree = needs.tensor_parallel or _option(_launches(recipe), "--tensor-parallel-size|-tp|--tp-size|--tp") or written
    if degree <= written:
        return [(needs.nodes, needs.devices_per_node)]
    within = (needs.nodes, (degree + needs.nodes - 1) // needs.nodes)
    return [within, (degree, 1)] if written == 1 else [within]


def memory_of_install(
    recipe: Recipe, process: RecipeProcess, planned: PlannedLane, keys: Mapping[str, tuple[str, ...]]
) -> dict[str, tuple[int, int]] | None:
    """MiB loaded and while loading by domain key, on the devices that the plan names.

    None: the plan gives the recipe nodes or devices that it can't run on.
    """
    if process.memory_gb is None:
        return None
    needs = recipe.spec.requirements
    rank = (mib_up(process.memory_gb), mib_up(max(process.memory_gb, needs.load_peak_gb or Decimal(0))))
    host = mib_up(needs.host_memory_gb)
    result: dict[str, tuple[int, int]] = {}
    for node in planned.nodes:
        there = keys.get(node, ())
        devices = [key for key in there if "/device" in key] or list(there[:1])
        taken = [key for key in devices if key in planned.memory_gb]
        if (len(planned.nodes), len(taken)) not in ranks(recipe):
            return None
        result.update(dict.fromkeys(taken, rank))
        result.update((key, (host, host)) for key in there if "/system" in key and host)
    return result
