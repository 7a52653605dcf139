"""What each answer to an alias costs on levels 1 to 6: the levels of an outcome in which nothing else happens."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import msgspec

from lloom_gitops.model.words import Residency

from .objective import latency, static_levels
from .outcome import Choice, Outcome, Served
from .world import World, unsuitable

Row = tuple[int, ...]
"""Levels 1 to 6 of one alias. Loads are not in it: they belong to lanes."""

FREE: Row = (0,) * 6


class Answer(msgspec.Struct, frozen=True):
    """A lane that may answer an alias first, with the model it answers as and that model's place in the order."""

    lane: str
    model: str
    place: int


class Prices:
    """Prices of one world's aliases, each computed when first asked for."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._rows: dict[tuple[str, str, str | None, Residency], Row] = {}

    def answers(self, alias: str, lanes: Mapping[str, tuple[str, ...]], able: Collection[str]) -> list[Answer]:
        """Lanes that meet an alias's needs and may be used, in its own order of models and in theirs of lanes."""
        world, needs, found = self.world, self.world.alias(alias).needs, []
        for place, entry in enumerate(world.entries[alias]):
            for name in () if entry.external else lanes.get(entry.model) or world.by_model.get(entry.model, ()):
                if name in able and unsuitable(world.variants[name], needs) is None:
                    found.append(Answer(name, entry.model, place))
        return found

    def without_lane(self, alias: str) -> Row:
        """The price where no lane answers: the first external model does, or nothing."""
        external = next((entry.model for entry in self.world.entries[alias] if entry.external), None)
        return self.of(alias, external or "", None, Residency.AUTO)

    def of(self, alias: str, model: str, lane: str | None, residency: Residency) -> Row:
        """The price of one answer; `lane` None: the external `model`, or nothing where that is empty."""
        key = (alias, model, lane, residency)
        if key not in self._rows:
            self._rows[key] = self._row(*key)
        return self._rows[key]

    def _row(self, alias: str, model: str, lane: str | None, residency: Residency) -> Row:
        served = Served(entries=((model, lane),) if model else ())
        outcome = Outcome(
            choice=Choice(residency={}, lanes={}),
            residency={} if lane is None else {lane: residency},
            shortages={},
            served={alias: served},
            held=(),
            leaving=(),
            staying=(),
            wished={},
        )
        wait = latency(self.world, outcome, alias, served) if model else 0
        return (*static_levels(self.world, outcome), wait)


def added(total: Row, row: Row, sign: int = 1) -> Row:
    """The sum of two rows, or their difference."""
    return tuple(t + sign * r for t, r in zip(total, row, strict=True))
