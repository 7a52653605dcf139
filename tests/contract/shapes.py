"""Compare an answer with a sample of a real gateway: keys, types and words; figures by type only."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
_KINDS: dict[str, Any] = {
    "<text>": lambda value: isinstance(value, str),
    "<time>": lambda value: isinstance(value, str) and _TIME.fullmatch(value) is not None,
    "<bool>": lambda value: isinstance(value, bool),
    "<int>": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "<number>": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "<object>": lambda value: isinstance(value, dict),
    "<list>": lambda value: isinstance(value, list),
    "<any>": lambda _: True,
}


def sample(name: str) -> Any:
    """The samples of a file in `samples/`."""
    return json.loads((Path(__file__).parent / "samples" / f"{name}.json").read_text())


def differences(seen: Any, wanted: Any, *, more: bool = False, at: str = "") -> list[str]:
    """Where `seen` is not shaped as `wanted`; `more` allows keys that the sample lacks (newer builds add some).

    A list of one sample element stands for any number of its like.
    """
    if isinstance(wanted, str) and wanted.rstrip("?>") + ">" in _KINDS:
        kind = wanted.rstrip("?>") + ">"
        return (
            [] if _KINDS[kind](seen) or (wanted.endswith("?>") and seen is None) else [f"{at}: {seen!r} is no {wanted}"]
        )
    if isinstance(wanted, dict):
        return _object_differences(seen, wanted, more, at)
    if isinstance(wanted, list):
        return _list_differences(seen, wanted, more, at)
    if isinstance(wanted, int | float) and not isinstance(wanted, bool):
        return [] if _KINDS["<number>"](seen) else [f"{at}: {seen!r} is no number"]
    return [] if seen == wanted else [f"{at}: {seen!r} instead of {wanted!r}"]


def _object_differences(seen: Any, wanted: dict[str, Any], more: bool, at: str) -> list[str]:
    if not isinstance(seen, dict):
        return [f"{at}: {seen!r} is no object"]
    found = [f"{at}/{key}: missing" for key in wanted if key not in seen]
    found += [f"{at}/{key}: not in the sample" for key in seen if key not in wanted and not more]
    for key, value in wanted.items():
        if key in seen:
            found += differences(seen[key], value, more=more, at=f"{at}/{key}")
    return found


def _list_differences(seen: Any, wanted: list[Any], more: bool, at: str) -> list[str]:
    if not isinstance(seen, list):
        return [f"{at}: {seen!r} is no list"]
    if len(wanted) == 1:
        wanted = wanted * len(seen)
    if wanted and len(seen) != len(wanted):
        return [f"{at}: {len(seen)} elements instead of {len(wanted)}"]
    return [
        d
        for i, (s, w) in enumerate(zip(seen, wanted, strict=False))
        for d in differences(s, w, more=more, at=f"{at}/{i}")
    ]
