"""The pool as the oracle sees it: facts of nodes, lanes and aliases, with no opinion of what is best.

Read from documents.md and lifecycle.md alone; shares nothing with the planner. Memory figures come from the one
memory-budget function.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from itertools import combinations

from lloom_gitops.catalog.memory import footprint, keys_of_nodes, limits, peak
from lloom_gitops.model.desired import Alias, Desired, Lane, Pin
from lloom_gitops.model.inventory import Inventory, ObservedLane
from lloom_gitops.model.words import (
    Feature,
    Liveness,
    Management,
    ModelKind,
    NodeState,
    Residency,
    Seen,
)

Route = tuple[tuple[str, str | None], ...]
"""A route: each entry is a model and the lane behind it, None for an external model."""


@dataclass(frozen=True)
class LaneFacts:
    """One lane: what it is, what it holds now, and what may be done with it. Memory is MiB by domain key."""

    id: str
    models: tuple[str, ...]
    kind: ModelKind
    nodes: tuple[str, ...]
    managed: bool
    loaded: bool
    holds: bool
    residency: Residency
    memory: dict[str, int]
    peak: dict[str, int]
    load_ms: int
    context_window: int | None
    sequences: int | None
    by_agent: bool
    asked_stopped: bool
    stop_unrouted: bool
    latched: bool
    dead: bool
    hands_off: bool
    leaving: bool
    draining: bool
    known: bool
    able: bool
    restartable: bool
    edit_restarts: bool

    @property
    def startable(self) -> bool:
        """Whether a plan may start it, room apart: nothing new is placed where the capacity is unknown."""
        return self.restartable and self.known

    @property
    def untouchable(self) -> bool:
        """Its residency stays as it is: a node of it is lost, on hold, unreadable, or to be emptied."""
        return self.dead or self.hands_off or self.leaving


@dataclass(frozen=True)
class AliasFacts:
    """One declared alias: the order in which models may answer, and its route as things are now."""

    name: str
    wish: Alias
    order: tuple[tuple[str, bool], ...]
    """Models in the order that holds (the active profile's where it has one); True marks an external one."""
    now: Route | None


@dataclass
class World:
    """Desired state and inventory, read once."""

    desired: Desired
    inventory: Inventory
    lanes: dict[str, LaneFacts] = field(default_factory=dict)
    aliases: dict[str, AliasFacts] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.lanes = {name: self._lane(name, lane) for name, lane in sorted(self.inventory.lanes.items())}
        self.aliases = {name: self._alias(name, alias) for name, alias in sorted(self.desired.aliases.items())}

    # -- nodes

    def state(self, node: str) -> NodeState:
        """Of the repository's word and the head's, the stricter holds."""
        declared, seen = self.desired.nodes.get(node), self.inventory.nodes.get(node)
        states = [declared.state if declared else NodeState.SERVE, (seen.state if seen else None) or NodeState.SERVE]
        return max(states, key=lambda state: state.strictness)

    def gone(self, node: str) -> bool:
        seen = self.inventory.nodes.get(node)
        return seen is not None and seen.liveness in (Liveness.LOST, Liveness.LEFT)

    def ready(self, node: str) -> bool:
        seen = self.inventory.nodes.get(node)
        return seen is not None and seen.liveness is Liveness.READY and seen.seen is Seen.PRESENT

    def can(self, node: str, feature: Feature) -> bool:
        seen = self.inventory.nodes.get(node)
        return seen is not None and feature in seen.gateway.features

    def _linked(self, a: str, b: str) -> bool:
        for here, there in ((a, b), (b, a)):
            seen, declared = self.inventory.nodes.get(here), self.desired.nodes.get(here)
            said = (*(seen.links if seen else ()), *(declared.links if declared else ()))
            if there in {link.peer for link in said}:
                return True
        return False

    @property
    def one_model_routes(self) -> bool:
        """The head's build gives an alias one model."""
        return not self.can(self.desired.pool.head, Feature.ROUTE_MEMBERS)

    @cached_property
    def limits(self) -> dict[str, tuple[int, int]]:
        """Limit and budget (MiB) of each domain that is not on a lost node; unknown capacity takes nothing new."""
        return {
            key: (row.limit_mib or 0, row.budget_mib or 0)
            for key, row in limits(self.desired, self.inventory).items()
            if not self.gone(row.node)
        }

    @cached_property
    def known_domains(self) -> frozenset[str]:
        """Domains of which the capacity is known, on nodes that are not lost."""
        rows = limits(self.desired, self.inventory)
        return frozenset(key for key in self.limits if rows[key].limit_mib is not None)

    # -- lanes and aliases

    def _lane(self, name: str, lane: ObservedLane) -> LaneFacts:
        keys = keys_of_nodes(limits(self.desired, self.inventory))
        memory = footprint(self.desired.pool, lane, keys)
        document = self.desired.lanes.get(name, Lane())
        hands_off = any(self.state(n) is NodeState.HOLD or not (self.ready(n) or self.gone(n)) for n in lane.nodes)
        states = {self.state(n) for n in lane.nodes}
        linked = all(self._linked(a, b) for a, b in combinations(lane.nodes, 2))
        able = linked and not lane.latched and not set(lane.nodes) & set(lane.excluded_nodes)
        known = all(key in self.known_domains for key in memory)
        return LaneFacts(
            id=name,
            models=lane.models,
            kind=lane.kind,
            nodes=lane.nodes,
            managed=lane.management is Management.MANAGED,
            loaded=lane.state.loaded,
            holds=lane.state.holds_memory,
            residency=lane.residency,
            memory=memory,
            peak=peak(lane, memory, keys),
            load_ms=int((lane.load_seconds or Decimal(0)) * 1000),
            context_window=lane.context_window,
            sequences=lane.max_sequences,
            by_agent=lane.started_by == "agent",
            asked_stopped=document.state == "stopped",
            stop_unrouted=document.when_unrouted == "stop",
            latched=lane.latched,
            dead=any(self.gone(n) for n in lane.nodes),
            hands_off=hands_off,
            leaving=not hands_off and bool(states & {NodeState.CORDON, NodeState.DRAIN}),
            draining=not hands_off and NodeState.DRAIN in states,
            known=known,
            able=able,
            restartable=able
            and document.state != "stopped"
            and states == {NodeState.SERVE}
            and all(self.ready(n) for n in lane.nodes),
            edit_restarts=not self.can(lane.owner, Feature.RESIDENCY),
        )

    def _alias(self, name: str, alias: Alias) -> AliasFacts:
        profile = self.desired.profiles.get(self.desired.pool.active_profile or "")
        order = [(model, False) for model in alias.models] + [(model, True) for model in alias.external]
        if profile is not None and name in profile.routes:
            ours = {model for lane in self.inventory.lanes.values() for model in lane.models} | set(alias.models)
            order = [(entry, entry in alias.external or entry not in ours) for entry in profile.routes[name]]
        return AliasFacts(name=name, wish=alias, order=tuple(order), now=self.route_now(name))

    def route_now(self, alias: str) -> Route | None:
        """The alias's route at the head, with the lane behind each entry (left out: the model's only lane)."""
        seen = self.inventory.aliases.get(alias)
        if seen is None:
            return None
        behind = seen.lanes if seen.lanes is not None else tuple(self._only_lane(model) for model in seen.route)
        return tuple(zip(seen.route, behind, strict=True))

    def _only_lane(self, model: str) -> str | None:
        serving = sorted(name for name, lane in self.inventory.lanes.items() if model in lane.models)
        loaded = [name for name in serving if self.inventory.lanes[name].state.loaded]
        return next(iter(loaded or serving), None)

    def meets(self, lane: LaneFacts, alias: AliasFacts) -> bool:
        """Whether the lane meets the alias's needs; an unknown figure does not meet one that is asked for."""
        needs = alias.wish.needs
        return (
            (needs.kind is None or needs.kind is lane.kind)
            and (needs.context_window is None or (lane.context_window or 0) >= needs.context_window)
            and (needs.sequences is None or (lane.sequences or 0) >= needs.sequences)
        )

    # -- hard wishes

    @cached_property
    def hard(self) -> dict[str, Pin]:
        """Hard wishes by key: pins, the profile's over the pool's, and `=KEY` for the profile's residencies."""
        profile = self.desired.profiles.get(self.desired.pool.active_profile or "")
        wishes = {**self.desired.pins, **(profile.pins if profile else {})}
        wishes |= {f"={key}": Pin(residency=rank) for key, rank in (profile.residency if profile else {}).items()}
        return wishes

    def named(self, key: str, lane: LaneFacts) -> bool:
        """Whether a hard wish names this lane, by id or as MODEL@NODE+NODE."""
        key = key.removeprefix("=")
        model, at, place = key.rpartition("@")
        return key == lane.id or (bool(at) and model in lane.models and set(place.split("+")) == set(lane.nodes))
