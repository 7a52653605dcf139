"""Whether a node fits a recipe: platform, accelerators, compute arch, commands, image, disk (PLN-3, CAT-2)."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from lloom_gitops.model.inventory import ObservedNode
from lloom_gitops.model.plan import Cause
from lloom_gitops.model.recipe import Recipe

from .inferred import needed_archs

# Words that LLooM's recipes use for a machine beside those it reports itself.
_IMPLIED = {"cuda": ("nvidia-gpu",), "metal": ("apple-gpu",), "gb10": ("dgx-spark",)}


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


def unfit(recipe: Recipe, name: str, node: ObservedNode, *, installed: bool) -> Iterator[Cause]:
    """What keeps a recipe off a node. Of an installed lane's node only what is known speaks against it."""
    needs = recipe.spec.requirements
    words = tags(node)
    archs = needs.compute_archs if installed else needed_archs(recipe).value
    has_archs = sorted({acc.compute_arch for acc in node.accelerators or () if acc.compute_arch})
    missing = sorted({word.lower() for word in needs.accelerators} - words)
    absent = sorted(set(needs.commands) - set(node.commands or ()))
    image = recipe.spec.backend.image
    rows = (
        ("platform", node.platform is not None, bool(needs.platforms) and node.platform not in needs.platforms),
        ("accelerator", bool(words), bool(missing)),
        ("computeArch", bool(has_archs), bool(archs) and not set(archs) & set(has_archs)),
        ("commands", node.commands is not None, bool(absent)),
        # An install pulls what is missing.
        ("image", installed and node.images is not None, installed and not has_image(image, node)),
    )
    said = {
        "platform": (", ".join(needs.platforms), node.platform or "unknown"),
        "accelerator": (", ".join(needs.accelerators), ", ".join(sorted(words)) or "unknown"),
        "computeArch": (", ".join(archs), ", ".join(has_archs) or "unknown"),
        "commands": (", ".join(absent), ", ".join(node.commands or ()) or "none"),
        "image": (image or "", ", ".join(node.images or ()) or "none"),
    }
    for reason, known, broken in rows:
        if broken and (known or not installed):
            wanted, has = said[reason]
            yield Cause(reason=reason, node=name, needs=wanted, has=has)
    short = Decimal(0) if installed else disk_short(recipe, node)
    if short > 0:
        yield Cause(reason="disk", node=name, short_gb=short)


def has_image(image: str | None, node: ObservedNode) -> bool:
    """Whether a node may have an image. A tag and a digest of the same repository can't be told apart from here."""
    if image is None or image in (node.images or ()):
        return True
    kin = [other for other in node.images or () if _repository(other) == _repository(image)]
    return any(("@" in other) != ("@" in image) for other in kin)


def _repository(image: str) -> str:
    plain = image.partition("@")[0]
    head, slash, name = plain.rpartition("/")
    return f"{head}{slash}{name.partition(':')[0]}"


def disk_short(recipe: Recipe, node: ObservedNode) -> Decimal:
    """GB of disk missing for weights that are not cached yet; unknown free space is none."""
    cached = {weights.model for weights in node.weights or ()}
    need = recipe.spec.requirements.disk_gb
    if need is None or all(model.model in cached for model in recipe.spec.models):
        return Decimal(0)
    return need - max((disk.free_gb or Decimal(0) for disk in node.disks or ()), default=Decimal(0))
