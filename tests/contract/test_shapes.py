"""The comparison itself: it has to catch every kind of difference."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract.shapes import differences

SAMPLE = {"id": "a", "n": 3, "at": "<time>", "pid": "<int?>", "rows": [{"ok": True}], "none": None}
GOOD: dict[str, Any] = {
    "id": "a",
    "n": 7,
    "at": "2026-11-30T17:34:21.394Z",
    "pid": None,
    "rows": [{"ok": True}, {"ok": True}],
    "none": None,
}


def test_like_is_like() -> None:
    assert differences(GOOD, SAMPLE) == []
    assert differences({**GOOD, "extra": 1}, SAMPLE, more=True) == []


@pytest.mark.parametrize(
    ("change", "where"),
    [
        pytest.param({"id": "b"}, "/id", id="another word"),
        pytest.param({"n": "7"}, "/n", id="a word for a figure"),
        pytest.param({"n": True}, "/n", id="a truth for a figure"),
        pytest.param({"at": "yesterday"}, "/at", id="no time"),
        pytest.param({"pid": "1"}, "/pid", id="no whole number"),
        pytest.param({"rows": [{"ok": True}, {"ok": False}]}, "/rows/1/ok", id="in a later element"),
        pytest.param({"none": 0}, "/none", id="something for nothing"),
        pytest.param({"extra": 1}, "/extra", id="a key too many"),
    ],
)
def test_differences_are_found(change: dict[str, Any], where: str) -> None:
    found = differences({**GOOD, **change}, SAMPLE)
    assert len(found) == 1
    assert found[0].startswith(f"{where}:")


def test_a_missing_key_is_found() -> None:
    assert differences({k: v for k, v in GOOD.items() if k != "n"}, SAMPLE) == ["/n: missing"]
