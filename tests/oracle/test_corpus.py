"""The frozen fleets: the planner finds each proven tuple, the judge passes, and the oracle proves it anew."""

from __future__ import annotations

from collections import Counter
from itertools import chain
from pathlib import Path

import pytest

from .ablation import WITHOUT
from .freeze import missed
from .frozen import all_files, read
from .oracle import best

FILES = all_files()


def _known(path: Path) -> object:
    """A fleet that the planner is known to miss is marked in its file; the mark must go once it is found."""
    xfail = read(path).xfail
    marks = [pytest.mark.xfail(reason=xfail, strict=True)] if xfail else []
    return pytest.param(path, id=path.stem, marks=marks)


@pytest.mark.parametrize("path", list(map(_known, FILES)))
def test_the_planner_finds_the_proven_tuple(path: Path) -> None:
    assert missed(read(path)) is None


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_oracle_proves_the_tuple_anew(path: Path) -> None:
    frozen = read(path)
    found = best(frozen.desired, frozen.inventory)
    assert found is not None
    assert found.levels == frozen.levels


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_file_is_canonical(path: Path) -> None:
    assert read(path).text() == path.read_text()


def test_every_dimension_decides_in_some_fleets() -> None:
    shown = Counter(chain.from_iterable(read(path).shows for path in FILES))
    assert set(shown) == set(WITHOUT)
    assert min(shown.values()) >= 3
