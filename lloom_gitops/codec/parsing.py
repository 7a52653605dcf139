"""One YAML 1.2 parse for everything: plain values, and the line and column of each.

libyaml's event stream gives structure and marks; meaning (core schema, duplicate keys, what is refused) is ours, so
that people's files and programs' files are read by the same rules. All faults of a file are reported, not the first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from lloom_gitops.model.errors import Finding

from .codes import MEANINGS
from .scalars import NumberRefused, resolve
from .wording import looks_secret, short

MAX_BYTES = 1024 * 1024
MAX_MACHINE_BYTES = 16 * 1024 * 1024
MAX_DEPTH = 32
MAX_ALIASES = 64
# What aliases may add when written out; a bomb of nine lists of nine would be 387 million.
MAX_ALIASED_NODES = 10_000

_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")

# libyaml's where PyYAML was built with it: twenty times as fast, the same events.
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

Place = tuple[int, int]


@dataclass(slots=True)
class Tree:
    """Places of a collection's entries: of the key in a map, of the item in a list; `inner` where they nest."""

    places: dict[str | int, Place] = field(default_factory=dict)
    inner: dict[str | int, Tree] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Parsed:
    """A parsed file. `value` is plain data (dict, list, str, int, Decimal, bool, None), None if it can't be read."""

    file: str
    value: Any
    findings: tuple[Finding, ...]
    _tree: Tree

    def place(self, pointer: str) -> Place:
        """Line and column (from 1) of what a JSON Pointer names: a map's key or a list's item.

        Of a pointer that leads nowhere, the place of its deepest part that exists.
        """
        place, tree = (1, 1), self._tree
        for token in split_pointer(pointer):
            key: str | int = token
            if key not in tree.places and token.isdigit():
                key = int(token)
            if key not in tree.places:
                break
            place = tree.places[key]
            tree = tree.inner.get(key, Tree())
        return place

    def finding(self, code: str, pointer: str, message: str, hint: str | None = None, **rest: Any) -> Finding:
        """A finding at the place of `pointer`; `rest` as in Finding. The code's remedy where no other hint is given.

        A key of a map that looks like a secret is not shown.
        """
        line, column = self.place(pointer)
        if looks_secret(pointer):
            pointer = join_pointer(*("…" if looks_secret(token) else token for token in split_pointer(pointer)))
        hint = hint or (MEANINGS[code].remedy if code in MEANINGS else None)
        return Finding(
            code=code, message=message, file=self.file, line=line, column=column, pointer=pointer, hint=hint, **rest
        )


def split_pointer(pointer: str) -> list[str]:
    """The unescaped tokens of a JSON Pointer (RFC 6901)."""
    return [token.replace("~1", "/").replace("~0", "~") for token in pointer.split("/")[1:]]


def join_pointer(*tokens: str | int) -> str:
    """A JSON Pointer from unescaped tokens."""
    return "".join("/" + str(token).replace("~", "~0").replace("/", "~1") for token in tokens)


def parse(data: bytes, file: str, *, limit: int = MAX_BYTES) -> Parsed:
    """Parse one YAML 1.2 document. `file` names it in findings; `limit` is in bytes. Raises nothing for any input."""
    reading = _Reading(file)
    value = None
    try:
        value = reading.document(reading.admit(data, limit))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = (mark.line + 1, mark.column + 1) if mark else (0, 0)
        reading.report("yamlSyntax", place, str(error.problem or error.context))
    except yaml.YAMLError as error:
        reading.report("yamlSyntax", (0, 0), str(error).splitlines()[0])
    except _Stop:
        pass
    return Parsed(file, value, tuple(sorted(reading.findings, key=lambda finding: finding.sort_key)), reading.tree)


def _place_in(before: str) -> Place:
    last = before.rfind("\n")
    return before.count("\n") + 1, len(before) - last


class _Stop(Exception):
    """Reading on makes no sense; the finding is reported already."""


@dataclass(slots=True)
class _Anchored:
    """What an anchor names; `size` counts nodes with aliases written out, `height` levels of collections."""

    value: Any
    tree: Tree | None
    size: int = 1
    height: int = 0
    done: bool = True


@dataclass(slots=True)
class _Frame:
    """A collection that is being read; `key` is the map's key whose value comes next."""

    value: Any
    tree: Tree
    anchored: _Anchored
    key: str | None = None
    wants_key: bool = False


class _Reading:
    """State of one parse."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.findings: list[Finding] = []
        self.root: Any = None
        self.tree = Tree()
        self.frames: list[_Frame] = []
        self.anchors: dict[str, _Anchored] = {}
        self.aliases = 0
        self.aliased_nodes = 0

    def report(self, code: str, place: Place, message: str) -> None:
        line, column = place
        hint = MEANINGS[code].remedy
        self.findings.append(Finding(code=code, message=message, file=self.file, line=line, column=column, hint=hint))

    def admit(self, data: bytes, limit: int) -> bytes:
        """The bytes without a byte order mark, if they are few enough, UTF-8, and without control characters."""
        if len(data) > limit:
            self.report("fileTooLarge", (0, 0), f"{len(data)} bytes, at most {limit} are read")
            raise _Stop
        data = data.removeprefix(b"\xef\xbb\xbf")
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError as error:
            place = _place_in(data[: error.start].decode("utf-8"))
            self.report("notUtf8", place, "not UTF-8")
            raise _Stop from None
        if control := _CONTROL.search(text):
            message = f"control character U+{ord(control[0]):04X}"
            place = _place_in(text[: control.start()])
            self.report("controlCharacter", place, message)
            raise _Stop
        return data

    def document(self, data: bytes) -> Any:
        """The value of the one document in `data`; raises yaml.YAMLError or _Stop where reading can't go on."""
        documents = 0
        for event in _events(data):
            match event:
                case yaml.ScalarEvent():
                    self.scalar(event)
                case yaml.MappingStartEvent() | yaml.SequenceStartEvent():
                    self.open(event)
                case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                    self.close()
                case yaml.AliasEvent():
                    self.alias(event)
                case yaml.DocumentStartEvent():
                    documents += 1
                    if documents > 1:
                        self.report("severalDocuments", _at(event), "a second document")
                        raise _Stop
                case _:
                    pass
        return self.root

    def scalar(self, event: Any) -> None:
        self.refuse_tag(event)
        value: Any = event.value
        if event.implicit[0]:
            try:
                value = resolve(value)
            except NumberRefused as refused:
                self.report("numberRefused", _at(event), str(refused))
                value = 0
        anchored = _Anchored(value, None)
        self.remember(event, anchored)
        self.add(anchored, event, bare=event.implicit[0])
        self.grow(anchored)

    def open(self, event: Any) -> None:
        self.refuse_tag(event)
        if len(self.frames) >= MAX_DEPTH:
            self.report("tooDeep", _at(event), f"nested deeper than {MAX_DEPTH} levels")
            raise _Stop
        is_map = isinstance(event, yaml.MappingStartEvent)
        tree = Tree()
        anchored = _Anchored({} if is_map else [], tree, done=False)
        self.remember(event, anchored)
        self.add(anchored, event)
        self.frames.append(_Frame(anchored.value, tree, anchored, wants_key=is_map))

    def close(self) -> None:
        anchored = self.frames.pop().anchored
        anchored.done = True
        anchored.height += 1
        self.grow(anchored)

    def grow(self, anchored: _Anchored) -> None:
        if self.frames:
            parent = self.frames[-1].anchored
            parent.size += anchored.size
            parent.height = max(parent.height, anchored.height)

    def alias(self, event: Any) -> None:
        self.aliases += 1
        anchored = self.anchors.get(event.anchor)
        if anchored is None:
            self.report("unknownAnchor", _at(event), f"*{event.anchor} names no anchor")
            anchored = _Anchored(None, None)
        if not anchored.done:
            self.report("recursiveAlias", _at(event), f"*{event.anchor} contains itself")
            raise _Stop
        self.aliased_nodes += anchored.size
        too_deep = len(self.frames) + anchored.height > MAX_DEPTH
        if self.aliases > MAX_ALIASES or self.aliased_nodes > MAX_ALIASED_NODES or too_deep:
            what = (
                f"more than {MAX_ALIASES} aliases, or more than {MAX_ALIASED_NODES} nodes or {MAX_DEPTH} levels by them"
            )
            self.report("tooManyAliases", _at(event), what)
            raise _Stop
        self.add(anchored, event)
        self.grow(anchored)

    def remember(self, event: Any, anchored: _Anchored) -> None:
        if event.anchor is not None:
            self.anchors[event.anchor] = anchored

    def refuse_tag(self, event: Any) -> None:
        if event.tag is not None:
            self.report("tagRefused", _at(event), f"tag {short(event.tag)}")

    def add(self, anchored: _Anchored, event: Any, *, bare: bool = False) -> None:
        """Put a value where it belongs; the value of a refused key is dropped."""
        if not self.frames:
            self.root = anchored.value
            self.tree = anchored.tree or self.tree
            return
        frame = self.frames[-1]
        if frame.wants_key:
            frame.wants_key = False
            frame.key = self.key(frame, anchored.value, event, bare)
            return
        if isinstance(frame.value, list):
            key: str | int | None = len(frame.value)
            frame.value.append(anchored.value)
            frame.tree.places[len(frame.tree.places)] = _at(event)
        else:
            key, frame.wants_key = frame.key, True
            if key is None:
                return
            frame.value[key] = anchored.value
        if anchored.tree is not None and key is not None:
            frame.tree.inner[key] = anchored.tree

    def key(self, frame: _Frame, key: Any, event: Any, bare: bool) -> str | None:
        """The key if it can be kept, else None and a finding."""
        if not isinstance(key, str) or isinstance(event, yaml.AliasEvent):
            self.report("keyNotString", _at(event), "a key that is not a string")
        elif key == "<<" and bare:
            self.report("mergeKey", _at(event), "merge keys are not YAML 1.2")
        elif key in frame.value:
            line = frame.tree.places[key][0]
            self.report("duplicateKey", _at(event), f"{short(key)} is already set in line {line}")
        else:
            frame.tree.places[key] = _at(event)
            return key
        return None


def _at(event: Any) -> Place:
    mark = event.start_mark
    return mark.line + 1, mark.column + 1


def _events(data: bytes) -> Iterator[Any]:
    parser = _LOADER(data)
    while (event := parser.get_event()) is not None:
        yield event
