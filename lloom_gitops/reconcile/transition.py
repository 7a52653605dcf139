"""What has to change between what runs now and the planned outcome: the input of the step order."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import msgspec

from lloom_gitops.catalog.memory import DomainLimit
from lloom_gitops.catalog.variants import Variant
from lloom_gitops.model.desired import Alias
from lloom_gitops.model.pool import StepTimeouts
from lloom_gitops.model.words import Feature, Residency, StopReason

Route = tuple[tuple[str, ...], tuple[str | None, ...]]


def answering(route: Route, variants: Mapping[str, Variant], externals: Collection[str]) -> str | None:
    """The lane that answers a route now: the first loaded one, unless an external model stands before it."""
    for model, lane in zip(*route, strict=False):
        if lane is None and model in externals:
            return None
        if lane is not None and lane in variants and variants[lane].loaded:
            return lane
    return None


class Change(msgspec.Struct, frozen=True):
    """A residency before and after."""

    before: Residency
    after: Residency


class Transition(msgspec.Struct, frozen=True, kw_only=True):
    """Starts, stops, residency and route changes, with the facts that order them.

    `before` and `after` are routes by alias (models, lanes); `after` has covered aliases only. `externals` are the
    external models: a model without a lane that is none of them answers nobody. `installs` are lanes that do not exist
    yet (those that are started are in `starts` too). `starts` are lanes in the order in which they should load, `stops`
    those wanted for their own sake (vacate, moved, asked); stops that only make room are found by `make_room`.
    `residency` holds every planned lane's residency, `changes` those of lanes not
    started. `drain_seconds` is set for lanes of a draining node; `untouchable` lanes are on nodes that stay as is.
    """

    variants: dict[str, Variant]
    limits: dict[str, DomainLimit]
    head: str
    aliases: dict[str, Alias]
    before: dict[str, Route]
    externals: frozenset[str]
    after: dict[str, Route]
    removed: tuple[str, ...]
    residency: dict[str, Residency]
    installs: tuple[str, ...]
    starts: tuple[str, ...]
    stops: dict[str, StopReason]
    changes: dict[str, Change]
    manual_starts: tuple[str, ...]
    features: dict[str, frozenset[Feature]]
    timeouts: StepTimeouts
    drain_seconds: dict[str, int]
    untouchable: frozenset[str]

    def answered_now(self) -> dict[str, tuple[str, ...]]:
        """Aliases that each lane answers now, by id."""
        found: dict[str, list[str]] = {}
        for alias in sorted(self.before):
            lane = self.answering(alias)
            if lane is not None:
                found.setdefault(lane, []).append(alias)
        return {lane: tuple(aliases) for lane, aliases in found.items()}

    @property
    def changed_routes(self) -> tuple[str, ...]:
        """Aliases whose route or lanes differ, by id."""
        return tuple(alias for alias in sorted(self.after) if self.after[alias] != self.before.get(alias, ((), ())))

    def answering(self, alias: str) -> str | None:
        """The lane that answers an alias now: the first loaded one, unless an external model stands before it."""
        return answering(self.before.get(alias, ((), ())), self.variants, self.externals)

    def can(self, node: str, feature: Feature) -> bool:
        """Whether a node's gateway build has a feature."""
        return feature in self.features.get(node, frozenset())
