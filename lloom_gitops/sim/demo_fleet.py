"""The three-Spark fleet as files, for simulated gateways: from the installed package, or the checkout's own fleet."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from lloom_gitops.codec.desired import OTHER_PATHS
from lloom_gitops.model.document import Kind
from lloom_gitops.sim.three_spark import PAIR

KEY_ENV = "LLOOM_CLUSTER_KEY"
"""The variable that the fleet's nodes name for the gateways' admin key."""

_PACKAGE = Path(__file__).resolve().parent.parent
_INSTALLED = _PACKAGE / "_demo"
_LEFT_OUT = frozenset(path for path, kind in OTHER_PATHS.items() if kind is not Kind.INVENTORY)
"""Plans, results and holds of the fleet that was copied are not the new one's."""


def lay_out_fleet(folder: Path, urls: Mapping[str, str], health_url: str) -> None:
    """Write `fleet/` and `recipes/` into `folder`: nodes at `urls` (by id), the hand-run pair's health at `health_url`.

    The inventory comes along as committed in the original: what the simulated pool looks like at its start.
    """
    source = _INSTALLED if _INSTALLED.is_dir() else _PACKAGE.parent
    values = {f"fleet/nodes/{node}.yaml": ("endpoint", url) for node, url in urls.items()}
    values[f"fleet/lanes/{PAIR}.yaml"] = ("healthUrl", health_url)
    for path in sorted(path for part in ("fleet", "recipes") for path in (source / part).rglob("*.yaml")):
        name = path.relative_to(source).as_posix()
        if name in _LEFT_OUT:
            continue
        text = path.read_text("utf-8")
        if name in values:
            text = _with_value(text, *values[name])
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")


def cordon(folder: Path, node: str, reason: str) -> None:
    """Do what a person does in an editor: set a node's state."""
    path = folder / f"fleet/nodes/{node}.yaml"
    path.write_text(path.read_text("utf-8").rstrip("\n") + f"\n  state: cordon\n  reason: {reason}\n", "utf-8")


def _with_value(text: str, field: str, value: str) -> str:
    changed, count = re.subn(rf"^(\s+{field}: ).*$", lambda found: found[1] + value, text, flags=re.MULTILINE)
    if count != 1:
        raise ValueError(f"the fleet's document has {count} lines with {field}, not one")
    return changed
