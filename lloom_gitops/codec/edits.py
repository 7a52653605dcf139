"""Edits of a person's YAML in place: one value put or taken away, every other byte left as it is.

ruamel.yaml's round-trip composer tells where each node starts and ends; only that stretch of the text is replaced. Its
own writer would keep comments and order too, but not indents, blanks or line breaks of the rest. Each edit is proved:
the new text must read as the old value with just that change, or nothing is given back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lloom_gitops.model.errors import Refused

from .emitting import dump
from .parsing import parse
from .scalars import Scalar, write

Plain = Scalar | Mapping[str, Scalar]
"""What can be put: a scalar, or a flat map, which stands on one line."""

_BOM = "\ufeff"


def put(data: bytes, path: Sequence[str], value: Plain, order: Sequence[str] = ()) -> bytes:
    """`data` with `value` at `path`; the same bytes where it reads so already.

    All but the last key of `path` must lead to maps. A new key goes behind the last one that stands before it in
    `order`, else to the end of its map. Raises Refused where the place can't be edited without touching more.
    """
    return _edited(data, path, value, lambda text: _put(text, path, value, order))


def take(data: bytes, path: Sequence[str]) -> bytes:
    """`data` without the entry at `path`, with what stands on its own lines; the same bytes where there is none.

    Raises Refused as `put` does.
    """
    return _edited(data, path, _GONE, lambda text: _take(text, path))


_GONE: Any = object()


def _edited(data: bytes, path: Sequence[str], value: Any, change: Callable[[str], str]) -> bytes:
    """The change, proved by reading the result again."""
    from ruamel.yaml.error import YAMLError

    old = parse(data, "").value
    wanted = _changed(old, list(path), value)
    if wanted == old:
        return data
    text = data.decode("utf-8")
    mark = _BOM if text.startswith(_BOM) else ""
    try:
        new = (mark + change(text.removeprefix(mark))).encode("utf-8")
    except (YAMLError, LookupError, ValueError):
        raise _not_editable(path) from None
    result = parse(new, "")
    if result.findings or result.value != wanted:
        raise _not_editable(path)
    return new


def _not_editable(path: Sequence[str]) -> Refused:
    return Refused(
        code="notEditable",
        message=f"{'.'.join(path)} is written in a way that can't be changed without touching more",
        hint="anchors, for example; change it in an editor",
    )


def _changed(value: Any, path: list[str], new: Any) -> Any:
    """What the document reads as after the edit."""
    key, rest = path[0], path[1:]
    held = value if isinstance(value, dict) else {}
    inner = _changed(held.get(key), rest, new) if rest else new
    kept = {name: each for name, each in held.items() if name != key}
    absent = rest and new is _GONE and key not in held
    return value if absent else kept if inner is _GONE else {**held, key: inner}


class _Map:
    """A map of the text: its entries as ruamel's nodes, and where they end."""

    def __init__(self, text: str, node: Any, name: Any = None, outer: _Map | None = None) -> None:
        if node.id != "mapping":
            raise LookupError("no map")
        self.text, self.node, self.name, self.outer = text, node, name, outer
        self.entries: list[tuple[Any, Any]] = list(node.value)
        self.flow: bool = bool(node.flow_style)

    def find(self, key: str) -> int | None:
        """The index of a key."""
        return next((at for at, (name, _) in enumerate(self.entries) if name.value == key), None)

    def inner(self, key: str) -> _Map:
        """The map that is a key's value."""
        at = self.find(key)
        if at is None:
            raise LookupError(key)
        name, value = self.entries[at]
        return _Map(self.text, value, name, self)

    def end(self, at: int) -> int:
        """Where an entry's text ends, before any comment."""
        return _end(self.text, *self.entries[at])


def _end(text: str, name: Any, value: Any) -> int:
    """Behind the last character of an entry. A block collection's own mark stands at the next token, too far."""
    if value.id == "scalar" and value.start_mark.index == value.end_mark.index:
        return _colon(text, name)
    if value.id == "scalar" or value.flow_style:
        return int(value.end_mark.index)
    last = value.value[-1]
    return _end(text, *(last if value.id == "mapping" else (name, last)))


def _colon(text: str, name: Any) -> int:
    """Behind the colon of a key."""
    return text.index(":", name.end_mark.index) + 1


def _map_at(text: str, path: Sequence[str]) -> _Map:
    from ruamel.yaml import YAML

    found = _Map(text, YAML(typ="rt", pure=True).compose(text))
    for key in path:
        found = found.inner(key)
    return found


def _put(text: str, path: Sequence[str], value: Plain, order: Sequence[str]) -> str:
    held, key = _map_at(text, path[:-1]), path[-1]
    at = held.find(key)
    if at is not None:
        return _replace(text, *held.entries[at], value)
    before = set(order[: order.index(key)]) if key in order else set()
    places = [place for place, (name, _) in enumerate(held.entries) if name.value in before]
    behind = places[-1] if places else len(held.entries) - 1
    if held.entries:
        return _into_flow(held, behind, key, value) if held.flow else _into_block(held, behind, key, value)
    if isinstance(value, Mapping) and held.outer is not None and not held.outer.flow:
        return _open(held, key, value)
    inside = (held.node.start_mark.index + 1, held.node.end_mark.index - 1)
    return _splice(text, *_uncommented(text, *inside), _entry(key, value))


def _replace(text: str, name: Any, node: Any, value: Plain) -> str:
    start, end = node.start_mark.index, node.end_mark.index
    if node.id != "scalar" or node.style in ("|", ">"):
        raise LookupError("not a scalar of one line")
    if start == end:
        start = end = _colon(text, name)
        return _splice(text, start, end, f" {_inline(value)}")
    return _splice(text, start, end, _quoted_as(node.style, value))


def _quoted_as(style: str | None, value: Plain) -> str:
    """A scalar in the quotes that stood there; bare where there were none, if it can be."""
    if not isinstance(value, str) or style is None:
        return _inline(value)
    if style == "'":
        return "'" + value.replace("'", "''") + "'"
    bare = write(value)
    return bare if bare.startswith('"') else f'"{bare}"'


def _into_flow(held: _Map, behind: int, key: str, value: Plain) -> str:
    end = held.end(behind)
    return _splice(held.text, end, end, f", {_entry(key, value)}")


def _into_block(held: _Map, behind: int, key: str, value: Plain) -> str:
    indent = " " * held.entries[0][0].start_mark.column
    return _new_line(held.text, held.end(behind), indent + _entry(key, value))


def _open(held: _Map, key: str, value: Plain) -> str:
    """An empty `{}` in a block becomes a block with one entry."""
    assert held.outer is not None
    colon, end = _colon(held.text, held.name), held.node.end_mark.index
    text = _splice(held.text, *_uncommented(held.text, colon, end), "")
    return _new_line(text, colon, " " * (held.name.start_mark.column + 2) + _entry(key, value))


def _new_line(text: str, at: int, line: str) -> str:
    """`line` behind the line that `at` is in, with the text's own line ends; a last line without one stays so."""
    end = text.find("\n", at)
    if end < 0:
        return text + _line_end(text) + line
    return _splice(text, end + 1, end + 1, line + _line_end(text))


def _take(text: str, path: Sequence[str]) -> str:
    held = _map_at(text, path[:-1])
    at = held.find(path[-1])
    if at is None:
        raise LookupError(path[-1])
    start, end = held.entries[at][0].start_mark.index, held.end(at)
    if held.flow:
        return _splice(text, *_flow_entry(held, at, start, end), "")
    if text[_line_start(text, start) : start].strip(" "):
        raise LookupError("not at the start of its line")
    text = _without_lines(text, start, end)
    if len(held.entries) > 1:
        return text
    colon = _colon(text, held.name)  # the map is empty now, and must not read as null
    return _splice(text, colon, colon, " {}")


def _flow_entry(held: _Map, at: int, start: int, end: int) -> tuple[int, int]:
    """The stretch of an entry of a flow map, with one comma; whole lines where it stands on lines of its own."""
    text, last = held.text, at == len(held.entries) - 1
    line, stop = _line_start(text, start), _line_stop(text, end)
    rest = text[end:stop].strip().removeprefix(",").lstrip()
    if not text[line:start].strip() and (not rest or rest.startswith("#")) and stop < held.node.end_mark.index:
        return line, stop
    if at > 0:
        return _uncommented(text, held.end(at - 1), start)[0], end
    return start, end if last else _uncommented(text, end, held.entries[at + 1][0].start_mark.index)[1]


def _uncommented(text: str, start: int, end: int) -> tuple[int, int]:
    """The stretch itself, if no comment of a person could get lost with it."""
    if "#" in text[start:end]:
        raise LookupError("a comment")
    return start, end


def _without_lines(text: str, start: int, end: int) -> str:
    """The text without the whole lines from `start` to `end`; a last line without a line end leaves none behind."""
    first, stop = _line_start(text, start), _line_stop(text, end)
    if stop == len(text) and not text.endswith("\n"):
        first -= len(_line_end(text))
    return _splice(text, first, stop, "")


def _line_start(text: str, at: int) -> int:
    return text.rfind("\n", 0, at) + 1


def _line_stop(text: str, at: int) -> int:
    """The start of the next line, or the end of the text."""
    end = text.find("\n", at)
    return len(text) if end < 0 else end + 1


def _line_end(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _entry(key: str, value: Plain) -> str:
    return f"{write(key)}: {_inline(value)}"


def _inline(value: Plain) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(_entry(key, each) for key, each in value.items()) + "}"
    return write(value)


def _splice(text: str, start: int, end: int, new: str) -> str:
    return text[:start] + new + text[end:]


def new_document(schema: str, document: dict[str, Any]) -> bytes:
    """A new file for people: the line that editors complete from (`schema` as the file sees it), then the document."""
    return f"# yaml-language-server: $schema={schema}\n{dump(document, keep_order=True)}".encode()
