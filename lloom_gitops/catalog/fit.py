"""Whether a node fits a recipe: platform, accelerators, compute arch, commands, images, disk (PLN-3, CAT-2)."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from itertools import combinations

from lloom_gitops.model.desired import Desired
from lloom_gitops.model.inventory import Inventory, ObservedNode
from lloom_gitops.model.plan import Cause
from lloom_gitops.model.recipe import Recipe

# Words that LLooM's recipes use for a machine beside those it reports itself.
_IMPLIED = {"cuda": ("nvidia-gpu",), "metal": ("apple-gpu",), "gb10": ("dgx-spark",)}
_ARCH_SETTINGS = ("CUTE_DSL_ARCH", "TORCH_CUDA_ARCH_LIST")


def tags(node: ObservedNode) -> frozenset[str]:
    """Accelerator words of a node in lower case: kinds, names, and what they imply (`sm_12x` is blackwell)."""
    words: set[str] = set()
    for accelerator in node.accelerators or ():
        words |= {accelerator.kind.lower(), (accelerator.name or "").lower()}
        if (accelerator.compute_arch or "").startswith("sm_12"):
            words.add("blackwell")
    for word in tuple(words):
        words.update(_IMPLIED.get(word, ()))
    return frozenset(words - {""})


def needed_archs(recipe: Recipe) -> tuple[tuple[str, ...], str | None]:
    """Compute archs of a recipe and, where they are inferred, the launch setting they come from.

    `sm_121a` builds run on `sm_121`; `12.1a` in a torch list is the same arch.
    """
    needs = recipe.spec.requirements
    if needs.compute_archs:
        return needs.compute_archs, None
    for setting in _ARCH_SETTINGS:
        value = recipe.spec.launch.env.get(setting)
        if value:
            names = [part.strip() for part in value.replace(";", " ").split() if part.strip()]
            return tuple(dict.fromkeys(_arch(name) for name in names)), f"{setting}={value}"
    return (), None


def _arch(name: str) -> str:
    plain = name.removesuffix("+PTX").rstrip("af")
    return plain if plain.startswith("sm_") else "sm_" + plain.replace(".", "")


def unfit(recipe: Recipe, name: str, node: ObservedNode, *, installed: bool) -> Iterator[Cause]:
    """What keeps a recipe off a node. Of an installed lane's node only what is known speaks against it."""
    needs = recipe.spec.requirements
    words = tags(node)
    archs, _ = (needs.compute_archs, None) if installed else needed_archs(recipe)
    has_archs = sorted({acc.compute_arch for acc in node.accelerators or () if acc.compute_arch})
    missing = sorted({word.lower() for word in needs.accelerators} - words)
    absent = sorted(set(needs.commands) - set(node.commands or ()))
    rows = (
        ("platform", node.platform is not None, bool(needs.platforms) and node.platform not in needs.platforms),
        ("accelerator", bool(words), bool(missing)),
        ("computeArch", bool(has_archs), bool(archs) and not set(archs) & set(has_archs)),
        ("commands", node.commands is not None, bool(absent)),
    )
    said = {
        "platform": (", ".join(needs.platforms), node.platform or "unknown"),
        "accelerator": (", ".join(needs.accelerators), ", ".join(sorted(words)) or "unknown"),
        "computeArch": (", ".join(archs), ", ".join(has_archs) or "unknown"),
        "commands": (", ".join(absent), ", ".join(node.commands or ()) or "none"),
    }
    for reason, known, broken in rows:
        if broken and (known or not installed):
            wanted, has = said[reason]
            yield Cause(reason=reason, node=name, needs=wanted, has=has)
    short = Decimal(0) if installed else disk_short(recipe, node)
    if short > 0:
        yield Cause(reason="disk", node=name, short_gb=short)


def disk_short(recipe: Recipe, node: ObservedNode) -> Decimal:
    """GB of disk missing for weights that are not cached yet; unknown free space is none."""
    cached = {weights.model for weights in node.weights or ()}
    need = recipe.spec.requirements.disk_gb
    if need is None or all(model.model in cached for model in recipe.spec.models):
        return Decimal(0)
    return need - max((disk.free_gb or Decimal(0) for disk in node.disks or ()), default=Decimal(0))


def linked(desired: Desired, inventory: Inventory, a: str, b: str) -> bool:
    """A direct link, as reported or declared by either side; links are symmetric (PLN-2)."""
    for here, there in ((a, b), (b, a)):
        seen, declared = inventory.nodes.get(here), desired.nodes.get(here)
        links = (seen.links if seen else ()) + (declared.links if declared else ())
        if any(link.peer == there for link in links):
            return True
    return False


def unlinked(desired: Desired, inventory: Inventory, nodes: tuple[str, ...]) -> tuple[str, str] | None:
    """The first pair of nodes without a direct link, or None."""
    return next((pair for pair in combinations(nodes, 2) if not linked(desired, inventory, *pair)), None)
