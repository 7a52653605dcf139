"""What people changed in the documents they write, in words: `fleet/nodes/a.yaml: state serve → cordon`.

For showing only: nothing is decided by it. A default that is written out, the order of names, and how aliases and pins
are split over files make no difference.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import msgspec

from lloom_gitops.codec.parsing import join_pointer
from lloom_gitops.codec.values import encode
from lloom_gitops.codec.wording import short
from lloom_gitops.model.desired import Desired
from lloom_gitops.render.clean import shown
from lloom_gitops.render.layout import wrap
from lloom_gitops.render.page import Page

FileOf = Callable[[str], str | None]
"""The file that holds what a pointer into Desired names (`/nodes/spark-node-01`), None where it is not known."""

_FOLDERS = {name: f"fleet/{name}" for name in ("nodes", "lanes", "profiles", "policies")} | {"recipes": "recipes"}
_FILES = {"aliases": "fleet/aliases.yaml", "unlisted": "fleet/aliases.yaml", "pins": "fleet/pins.yaml"}
_HIDDEN = frozenset({"endpoint", "healthUrl", "apiKeyEnv", "apiKeyFile", "launch", "lloom"})
"""Fields of which is said only that they changed: addresses, and where keys may stand."""


class WishChange(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One value that people changed. `change` is added, removed or changed; `field` is empty for a whole document.

    `before` and `after` are short texts that may be shown; None where the value is not shown or not there.
    """

    file: str
    name: str
    field: str
    change: str
    before: str | None = None
    after: str | None = None


def wish_changes(before: Desired, after: Desired, file_of: FileOf = lambda _: None) -> tuple[WishChange, ...]:
    """What differs between two desired states, by file, then name, then field."""
    from deepdiff import DeepDiff

    sides = (_Side(before), _Side(after))
    found = DeepDiff(sides[0].leaves, sides[1].leaves, view="tree", threshold_to_diff_deeper=0)
    rows = []
    for change, levels in found.items():
        word = {"dictionary_item_added": "added", "dictionary_item_removed": "removed"}.get(change, "changed")
        rows += [_change(level.path(output_format="list"), word, *sides, file_of) for level in levels]
    whole = {row.file for row in rows if not row.name and not row.field}
    kept = [row for row in rows if not row.field or row.name or row.file not in whole]
    return tuple(sorted(kept, key=lambda row: (row.file, row.name, row.field)))


class _Side:
    """One desired state: `filled` with its defaults, as they are in force; `said` without; `leaves` to be compared,
    where a list is one text, as a new order of models is one change."""

    def __init__(self, desired: Desired) -> None:
        self.said: dict[str, Any] = encode(desired)
        self.filled: dict[str, Any] = msgspec.to_builtins(desired, builtin_types=(Decimal,))
        self.leaves = _leaves(self.filled)

    def shown(self, path: Sequence[str]) -> str:
        """The value at a path on one line, cut; URLs, keys and control characters are never shown."""
        value = _at(self.said, path)
        value = _at(self.filled, path) if value is None else value
        return "unset" if value is None else short(_one_line(value, hide=_HIDDEN))


def _leaves(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _leaves(each) for key, each in value.items()}
    return None if value is None else _one_line(value)


def _at(value: Any, path: Sequence[str]) -> Any:
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _one_line(value: Any, hide: frozenset[str] = frozenset()) -> str:
    if isinstance(value, dict):
        entries = ((key, each) for key, each in value.items() if each is not None and key not in hide)
        return "{" + ", ".join(f"{shown(key)}: {_one_line(each, hide)}" for key, each in entries) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_one_line(each, hide) for each in value) + "]"
    return str(value).lower() if isinstance(value, bool) else shown(str(value)) if hide else str(value)


def wishes_text(changes: Sequence[WishChange], page: Page = Page()) -> str:
    """A line for each change, wrapped to the page; ends with a newline where there is one."""
    lines = (line for change in changes for line in wrap(_words(change, page), page.width, _MARKS[change.change]))
    return "".join(f"{line}\n" for line in lines)


_MARKS = {"added": "  + ", "removed": "  - ", "changed": "  ~ "}


def _words(change: WishChange, page: Page) -> str:
    about = " ".join(shown(word) for word in (change.name, change.field) if word)
    head = f"{shown(change.file)}: {about}".removesuffix(": ").rstrip()
    if change.change == "changed" and (change.before is not None or change.after is not None):
        return f"{head} {change.before} {page.arrow} {change.after}"
    value = change.after if change.after is not None else change.before
    return f"{head} {change.change}" + (f": {value}" if value is not None else "")


def _change(path: list[str], word: str, before: _Side, after: _Side, file_of: FileOf) -> WishChange:
    section, *rest = path
    fields = path if section in ("name", "unlisted") else rest
    if section == "node_labels":
        section, fields = "nodes", [rest[0], "labels", *rest[1:]]
    name = fields[0] if section in ("aliases", "pins", *_FOLDERS) else ""
    fields = fields[1:] if name else fields
    fields = fields[1:] if section == "recipes" and fields[:1] == ["spec"] else fields
    in_shared_file = section in ("aliases", "pins")
    told = [None if word == skipped else side.shown(path) for side, skipped in ((before, "added"), (after, "removed"))]
    if _HIDDEN & {*fields} or not (fields or in_shared_file) or told[0] == told[1]:
        told = [None, None]
    return WishChange(
        file=_file(section, name, file_of),
        name=name if in_shared_file else "",
        field=".".join(fields),
        change=word,
        before=told[0],
        after=told[1],
    )


def _file(section: str, name: str, file_of: FileOf) -> str:
    known = file_of(join_pointer(section, name) if name else f"/{section}")
    if known is not None:
        return known
    if section in _FILES:
        return _FILES[section]
    return f"{_FOLDERS[section]}/{name}.yaml" if name else "fleet/pool.yaml"
