"""`pin`, `unpin`, `cordon`, `uncordon`, `drain`, `profile`: a person's wishes, put into their YAML in place."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer

from lloom_gitops.cli.context import Context
from lloom_gitops.model.errors import DocumentError, Refused, UsageError
from lloom_gitops.model.words import NodeState, Residency

if TYPE_CHECKING:
    from lloom_gitops.cli.fleet import Fleet
    from lloom_gitops.model.document import Spec

Place = Annotated[str, typer.Argument(metavar="MODEL@NODE", help="The model, and the node or NODE+NODE.")]
NodeName = Annotated[str, typer.Argument(metavar="NODE", help="A node that fleet/nodes/ declares.")]
Why = Annotated[str | None, typer.Option(metavar="TEXT", help="Why, for people; it stands in the document.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Write nothing; show the difference.")]
Commit = Annotated[bool, typer.Option("--commit", help="Commit the edited file, and nothing else, onto this branch.")]
Wish = Annotated[Residency | None, typer.Option(metavar="always|preferred|auto", help="Left out: as the aliases wish.")]
RecipeId = Annotated[str | None, typer.Option(metavar="ID", help="Serve it with this recipe.")]
Expires = Annotated[str | None, typer.Option(metavar="YYYY-MM-DD", help="Day from which check calls the pin old.")]

_PINS = "fleet/pins.yaml"


def pin(
    ctx: typer.Context,
    place: Place,
    residency: Wish = None,
    recipe: RecipeId = None,
    reason: Why = None,
    expires: Expires = None,
    dry_run: DryRun = False,
    commit: Commit = False,
) -> None:
    """Pin a model to a node: a hard wish that it is served from there. Of a pin that is there, change what is named.

    Writes the file in fleet/pins/ that has the pin, else fleet/pins.yaml; comments and order stay.

    \b
    Examples:
      lloom-gitops pin qwen3.8-27b@spark-node-03 --residency always --reason "indexer runs there"
      lloom-gitops pin qwen3.8-flash-next@spark-node-01+spark-node-02 --dry-run
    """
    from lloom_gitops.cli.edit_file import Edit, carry_out
    from lloom_gitops.codec.edits import put
    from lloom_gitops.model.desired import Pin

    names = _Names(ctx.obj)
    _refuse_unknown_place(names, place)
    if recipe is not None:
        names.refuse_unknown("recipe", recipe, names.loaded.readable.recipes, "`lloom-gitops recipe list` shows them")
    _refuse_odd_day(expires)
    given = {"residency": residency and residency.value, "recipe": recipe, "reason": reason, "expires": expires}
    wish = {field: value for field, value in given.items() if value is not None}
    key = names.pin(place)
    path, data = names.pins_file(key)
    if key is None:
        data = put(data, ("spec", place), wish)
    else:
        for field, value in wish.items():
            data = put(data, ("spec", key, field), value, _fields(Pin))
    model, _, nodes = (key or place).rpartition("@")
    edit = Edit(path, data, f"{model} is pinned to {nodes}", f"Pin {model} to {nodes}", reason)
    carry_out(ctx.obj, names.fleet, edit, dry_run=dry_run, commit=commit)


def unpin(ctx: typer.Context, place: Place, dry_run: DryRun = False, commit: Commit = False) -> None:
    """Take a pin away. Pins of profiles stay: a profile is changed as a whole, in an editor.

    \b
    Example:
      lloom-gitops unpin qwen3.8-27b@spark-node-03
    """
    from lloom_gitops.cli.edit_file import Edit, carry_out
    from lloom_gitops.codec.edits import take

    names = _Names(ctx.obj)
    key = names.pin(place)
    if key is None:
        _refuse_unknown_place(names, place)
    path, data = names.pins_file(key)
    after = names.fleet.files.get(path) if key is None else take(data, ("spec", key))
    model, _, nodes = (key or place).rpartition("@")
    active = names.loaded.readable.pool.active_profile
    profile = names.loaded.readable.profiles.get(active or "")
    by_profile = profile is not None and (key or place) in profile.pins
    holds = f"{model} is not pinned to {nodes}" + (f" (but by the active profile {active})" if by_profile else "")
    edit = Edit(path, after, holds, f"Unpin {model} from {nodes}")
    carry_out(ctx.obj, names.fleet, edit, dry_run=dry_run, commit=commit)


def cordon(
    ctx: typer.Context, node: NodeName, reason: Why = None, dry_run: DryRun = False, commit: Commit = False
) -> None:
    """Plan nothing on a node any more. Its lanes leave as far as every alias stays covered without them.

    \b
    Example:
      lloom-gitops cordon spark-node-01 --reason "new firmware"
    """
    _set_state(ctx.obj, node, NodeState.CORDON, reason, dry_run=dry_run, commit=commit)


def uncordon(ctx: typer.Context, node: NodeName, dry_run: DryRun = False, commit: Commit = False) -> None:
    """Let a node that is cordoned or drains serve again; the reason goes with it.

    \b
    Example:
      lloom-gitops uncordon spark-node-01
    """
    _set_state(ctx.obj, node, NodeState.SERVE, None, dry_run=dry_run, commit=commit)


def drain(
    ctx: typer.Context, node: NodeName, reason: Why = None, dry_run: DryRun = False, commit: Commit = False
) -> None:
    """Empty a node: as cordon, and what would stay there is stopped too.

    \b
    Example:
      lloom-gitops drain spark-node-01 --reason "moves to another rack"
    """
    _set_state(ctx.obj, node, NodeState.DRAIN, reason, dry_run=dry_run, commit=commit)


def profile(
    ctx: typer.Context,
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="A profile of fleet/profiles/.")] = None,
    none: Annotated[bool, typer.Option("--none", help="Let no profile be active.")] = False,
    dry_run: DryRun = False,
    commit: Commit = False,
) -> None:
    """Make a profile the active one: its routes, residency and pins become hard. Or none, with --none.

    \b
    Examples:
      lloom-gitops profile standalone
      lloom-gitops profile --none
    """
    from lloom_gitops.cli.edit_file import Edit, carry_out
    from lloom_gitops.codec.desired import POOL_FILE
    from lloom_gitops.codec.edits import put
    from lloom_gitops.model.pool import Pool

    if (name is None) != none:
        message = "name one profile, or say --none" if name is None else f"{name} and --none exclude each other"
        raise UsageError(code="usage", message=message)
    names = _Names(ctx.obj)
    if name is not None:
        names.refuse_unknown("profile", name, names.loaded.readable.profiles)
    path, data = names.file("pool", POOL_FILE)
    if names.loaded.readable.pool.active_profile != name:
        data = put(data, ("spec", "activeProfile"), name, _fields(Pool))
    holds = "no profile is active" if name is None else f"{name} is the active profile"
    subject = "Make no profile the active one" if name is None else f"Make {name} the active profile"
    carry_out(ctx.obj, names.fleet, Edit(path, data, holds, subject), dry_run=dry_run, commit=commit)


_HOLDS = {NodeState.SERVE: "serves", NodeState.CORDON: "is cordoned", NodeState.DRAIN: "is to be drained"}
_DOES = {NodeState.SERVE: "Uncordon", NodeState.CORDON: "Cordon", NodeState.DRAIN: "Drain"}


def _set_state(
    context: Context, name: str, state: NodeState, reason: str | None, *, dry_run: bool, commit: bool
) -> None:
    from lloom_gitops.cli.edit_file import Edit, carry_out
    from lloom_gitops.codec.edits import put, take
    from lloom_gitops.model.desired import Node

    names = _Names(context)
    nodes = names.loaded.readable.nodes
    names.refuse_unknown("declared node", name, nodes)
    path, data = names.file("nodes", f"fleet/nodes/{name}.yaml", name)
    node = nodes[name]
    if node.state is NodeState.HOLD:
        raise Refused(
            code="nodeHeld",
            message=f"{name} is in state hold, hands off: no command changes that",
            hint=f"who works on it sets `state` in {path} by hand",
        )
    if node.state is not state:
        data = put(data, ("spec", "state"), state.value, _fields(Node))
        if state is NodeState.SERVE and node.reason is not None:
            data = take(data, ("spec", "reason"))
    if reason is not None:
        data = put(data, ("spec", "reason"), reason, _fields(Node))
    edit = Edit(path, data, f"{name} {_HOLDS[state]}", f"{_DOES[state]} {name}", reason)
    carry_out(context, names.fleet, edit, dry_run=dry_run, commit=commit)


class _Names:
    """The documents as they are, broken ones left out, and the names in them."""

    def __init__(self, context: Context) -> None:
        from lloom_gitops.cli.fleet import Fleet
        from lloom_gitops.codec.desired import load_desired

        self.fleet: Fleet = Fleet(context.repo)
        self.loaded = load_desired(self.fleet.files, self.fleet.unread)

    def refuse_unknown(self, word: str, name: str, known: Iterable[str], hint: str | None = None) -> None:
        """A name that nothing has; where documents can't be read, their findings, as it could stand in one of them."""
        from lloom_gitops.codec.wording import nearest

        names = sorted(known)
        if name not in names:
            self.fleet.wanted()
            hint = nearest(name, names) or hint or f"known: {', '.join(names) or 'none'}"
            raise UsageError(code="unknownName", message=f"there is no {word} {name!r}", hint=hint)

    def file(self, section: str, usual: str, *name: str) -> tuple[str, bytes]:
        """Path and content of the document that holds what a section names; raises DocumentError if it is broken."""
        from lloom_gitops.codec.parsing import join_pointer

        path = self.loaded.places.file(join_pointer(section, *name))
        if path is None:
            self.fleet.wanted()
        return path or usual, self.fleet.files[path or usual]

    def pin(self, place: str) -> str | None:
        """The pin of a place as it is written, whatever the order of its nodes."""
        return next((key for key in self.loaded.readable.pins if _same_place(key, place)), None)

    def pins_file(self, key: str | None) -> tuple[str, bytes]:
        """Where a pin stands, or a new one goes: fleet/pins.yaml, unless fleet/pins/ has the only file of pins."""
        from lloom_gitops.codec.desired import desired_kind
        from lloom_gitops.codec.edits import new_document
        from lloom_gitops.model.document import API_VERSION, Kind

        if key is not None:
            return self.file("pins", _PINS, key)
        there = [path for path in self.fleet.files if desired_kind(path) is Kind.PINS]
        path = there[0] if len(there) == 1 else _PINS
        if path in self.fleet.files:
            return path, self.fleet.files[path]
        document = {"apiVersion": API_VERSION, "kind": Kind.PINS.value, "metadata": {"name": "pins"}, "spec": {}}
        return path, new_document("../schemas/pins.v1.schema.json", document)


def _same_place(one: str, other: str) -> bool:
    return _parts(one) == _parts(other)


def _parts(place: str) -> tuple[str, list[str]]:
    model, _, nodes = place.rpartition("@")
    return model, sorted(nodes.split("+"))


def _refuse_unknown_place(names: _Names, place: str) -> None:
    """MODEL@NODE whose model nothing serves, or whose nodes are none of the pool's."""
    from lloom_gitops.checks.documents_scene import Scene
    from lloom_gitops.codec.desired import PATHS
    from lloom_gitops.drivers.clock import SystemClock
    from lloom_gitops.model.document import Kind

    model, nodes = _parts(place)
    if not model or not all(nodes):
        raise UsageError(code="usage", message=f"{place}: a pin is MODEL@NODE or MODEL@NODE+NODE")
    try:
        found = names.fleet.document(Kind.INVENTORY, names.fleet.results_branch)
    except DocumentError:
        found = None  # the agent writes it again; it must not block a person's edit
    scene = Scene(names.loaded, found.document.spec if found else None, SystemClock().now().date())
    for node in nodes:
        names.refuse_unknown("node", node, scene.nodes)
    unseen = None if found else f"without {PATHS[Kind.INVENTORY]} only recipes and declared lanes name models"
    names.refuse_unknown("model", model, scene.models, unseen)


def _refuse_odd_day(expires: str | None) -> None:
    from datetime import date

    try:
        if expires is not None and date.fromisoformat(expires).isoformat() != expires:
            raise ValueError
    except ValueError:
        message = f"--expires {expires}: a day is YYYY-MM-DD, for example 2027-01-31"
        raise UsageError(code="usage", message=message) from None


def _fields(spec: type[Spec]) -> tuple[str, ...]:
    """The fields of a kind in the order in which they are documented."""
    import msgspec

    return tuple(field.encode_name for field in msgspec.structs.fields(spec))
