"""`inventory`: observe the gateways, print or write what was seen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from lloom_gitops.drivers.observe import Observation
    from lloom_gitops.model.desired import Desired
    from lloom_gitops.model.inventory import Inventory


def inventory(
    ctx: typer.Context,
    write: Annotated[bool, typer.Option("--write", help="Write fleet/observed/inventory.yaml, if it changed.")] = False,
    node: Annotated[list[str] | None, typer.Option("--node", help="Ask only this node; may be repeated.")] = None,
) -> None:
    """Observe the gateways; print or write the inventory.

    \b
    Example:
      lloom-gitops inventory
      lloom-gitops inventory --node spark-node-03 --write
    """
    from lloom_gitops.catalog.settle import settle
    from lloom_gitops.cli.fleet import Fleet, replace_file, results_branch
    from lloom_gitops.cli.output import put, put_json, tell
    from lloom_gitops.codec.desired import PATHS
    from lloom_gitops.codec.documents import dump_document
    from lloom_gitops.codec.values import encode
    from lloom_gitops.model.document import Kind, Metadata
    from lloom_gitops.model.inventory import Inventory

    fleet = Fleet(ctx.obj.repo)
    desired = fleet.wanted().desired
    committed = fleet.document(Kind.INVENTORY, results_branch(desired))
    previous = Inventory() if committed is None else committed.document.spec
    seen = observe(desired, previous, node or [])
    for note in seen.notes:
        tell(note)
    settled = settle(previous, seen.inventory)
    moved = _moved(encode(previous), encode(settled))
    changed = committed is None or bool(moved)
    path = ctx.obj.repo / PATHS[Kind.INVENTORY]
    if write and changed:
        replace_file(path, dump_document(Kind.INVENTORY, Metadata(name="inventory"), settled).encode())
    if ctx.obj.json:
        put_json(
            {
                "answered": sorted(seen.answered),
                "notes": seen.notes,
                "changed": moved,
                "written": write and changed,
                "inventory": encode(seen.inventory),
            }
        )
    elif not write:
        put(dump_document(Kind.INVENTORY, Metadata(name="inventory"), seen.inventory))
    tell(_verdict(PATHS[Kind.INVENTORY], moved, write=write, changed=changed))


def observe(desired: Desired, previous: Inventory, only: list[str]) -> Observation:
    """What the gateways of the nodes `only` (none: all) say now; raises Unreachable where none can be read."""
    import os

    from lloom_gitops.cli.output import tell
    from lloom_gitops.drivers.clock import SystemClock
    from lloom_gitops.drivers.gateway_http_key import gateway_key
    from lloom_gitops.drivers.observe import Observer
    from lloom_gitops.model.errors import Unreachable, UsageError

    for name in only:
        if name not in desired.nodes:
            known = ", ".join(sorted(desired.nodes)) or "none"
            raise UsageError(code="noSuchNode", message=f"--node {name}: no such node", hint=f"declared nodes: {known}")
    asked = sorted(set(only) or set(desired.nodes))
    tell(f"asking {len(asked)} gateway{'s' if len(asked) != 1 else ''}: {', '.join(asked)}")
    observer = Observer(desired, lambda declared: gateway_key(declared, os.environ), SystemClock(), nodes=asked)
    seen = observer.observe(previous, {})
    if seen.failed:
        raise Unreachable(
            code="noGateway",
            message="no gateway could be read: " + ("; ".join(seen.notes) or "no node has an endpoint"),
            hint="look at the endpoints in fleet/nodes/, and that the variables named there hold the keys",
        )
    return seen


def _moved(before: dict[str, dict[str, object]], after: dict[str, dict[str, object]]) -> list[str]:
    """Entries that differ, as `lanes/image-03`."""
    return [
        f"{section}/{name}"
        for section in sorted({*before, *after})
        for name in sorted({*before.get(section, {}), *after.get(section, {})})
        if before.get(section, {}).get(name) != after.get(section, {}).get(name)
    ]


def _verdict(path: str, moved: list[str], *, write: bool, changed: bool) -> str:
    if not changed:
        return f"{path} is up to date: nothing that matters changed"
    what = f": {', '.join(moved)}" if moved else ""
    return f"wrote {path}{what}" if write else f"--write would write {path}{what}"
