"""What a judge of plans looks at: the pool's facts and the plan, indexed once, in words that every rule uses.

Written from the specification alone: nothing here comes from the planner, so that a fault there can't hide here. Memory
figures come from the one memory-budget function (catalog.memory), which is a rule of the pool and not of the search.
"""

from __future__ import annotations

from decimal import Decimal
from functools import cached_property
from typing import Any

import msgspec

from lloom_gitops.catalog.facts import facts, lanes_of_route
from lloom_gitops.catalog.memory import DomainLimit, footprint, keys_of_nodes, limits, peak
from lloom_gitops.model.desired import Alias, Desired, Lane, Profile
from lloom_gitops.model.inventory import Inventory, ObservedLane
from lloom_gitops.model.plan import Plan, Step
from lloom_gitops.model.recipe import Recipe, RecipeProcess, processes
from lloom_gitops.model.words import (
    Feature,
    LaneState,
    Liveness,
    Management,
    ModelKind,
    NodeState,
    Residency,
    Seen,
    StepKind,
    StopReason,
)

from .plan_recipes import memory_of_install, sequences


class LaneFacts(msgspec.Struct, frozen=True, kw_only=True):
    """One lane as the judge sees it: observed, or (with `installs`) a recipe that the plan installs first.

    `memory` and `peak` are MiB by domain key, `load_ms` is 0 where unknown.
    """

    id: str
    models: tuple[str, ...]
    kind: ModelKind
    nodes: tuple[str, ...]
    owner: str
    managed: bool
    state: LaneState
    residency: Residency
    memory: dict[str, int]
    peak: dict[str, int]
    load_ms: int = 0
    context_window: int | None = None
    sequences: int | None = None
    latched: bool = False
    excluded_nodes: tuple[str, ...] = ()
    started_by: str | None = None
    recipe: str | None = None
    installs: bool = False
    document: Lane = Lane()

    @property
    def loaded(self) -> bool:
        """Running, loading, or unknown (which counts as running)."""
        return self.state.loaded


class Scene:
    """Desired state, inventory and plan, with what the rules ask of them. Never changes; answers are kept."""

    def __init__(self, desired: Desired, inventory: Inventory, plan: Plan) -> None:
        self.desired = desired
        self.inventory = inventory
        self.plan = plan

    # -- nodes -----------------------------------------------------------------------------------------------------

    def node_state(self, node: str) -> NodeState:
        """The stricter of what the repository and the head say of a node (lifecycle.md, Nodes)."""
        declared = self.desired.nodes.get(node)
        seen = self.inventory.nodes.get(node)
        states = [declared.state if declared else NodeState.SERVE]
        if seen is not None and seen.state is not None:
            states.append(seen.state)
        return max(states, key=lambda state: state.strictness)

    def gone(self, node: str) -> bool:
        """Lost or left: nothing on it counts."""
        seen = self.inventory.nodes.get(node)
        return seen is not None and seen.liveness.gone

    def ready(self, node: str) -> bool:
        """Seen at the last observation, and alive."""
        seen = self.inventory.nodes.get(node)
        return seen is not None and seen.seen is Seen.PRESENT and seen.liveness is Liveness.READY

    def unreadable(self, node: str) -> bool:
        """Not lost, but not answering: everything on it keeps its last state."""
        return not self.gone(node) and not self.ready(node)

    def leaving(self, node: str) -> bool:
        """Cordoned or draining."""
        return self.node_state(node) in (NodeState.CORDON, NodeState.DRAIN)

    def has(self, node: str, feature: Feature) -> bool:
        """Whether the node's gateway build can do something."""
        seen = self.inventory.nodes.get(node)
        return seen is not None and feature in seen.gateway.features

    def fabrics(self, a: str, b: str) -> frozenset[str]:
        """Fabrics of direct links, as reported by either side or declared by either side; links are symmetric."""
        found: set[str] = set()
        for here, there in ((a, b), (b, a)):
            seen, declared = self.inventory.nodes.get(here), self.desired.nodes.get(here)
            links = (seen.links if seen else ()) + (declared.links if declared else ())
            found.update(link.fabric for link in links if link.peer == there)
        return frozenset(found)

    # -- lanes -----------------------------------------------------------------------------------------------------

    def hands_off(self, lane: LaneFacts) -> bool:
        """A node of it is on hold, unreadable or not declared: it stays as it is, and counts."""
        return self.undeclared(lane) or any(
            self.unreadable(n) or self.node_state(n) is NodeState.HOLD for n in lane.nodes
        )

    def undeclared(self, lane: LaneFacts) -> bool:
        """A node of it is enrolled only, so that nobody has said how to reach it."""
        return any(node not in self.desired.nodes for node in lane.nodes)

    def dead(self, lane: LaneFacts) -> bool:
        """A node of it is lost or left, so it serves nothing."""
        return any(self.gone(node) for node in lane.nodes)

    def vacating(self, lane: LaneFacts) -> bool:
        """A node of it is cordoned or draining (a hold on another of its nodes is stricter)."""
        return not self.hands_off(lane) and any(self.leaving(node) for node in lane.nodes)

    def draining_node(self, lane: LaneFacts) -> bool:
        """A node of it is to be emptied."""
        return not self.hands_off(lane) and any(self.node_state(n) is NodeState.DRAIN for n in lane.nodes)

    @cached_property
    def tree(self) -> dict[str, Any]:
        """The facts that reads point into, as things are now."""
        return facts(self.desired, self.inventory)

    @cached_property
    def limits(self) -> dict[str, DomainLimit]:
        """Limit and budget of every domain, by key."""
        return limits(self.desired, self.inventory)

    @cached_property
    def domain_keys(self) -> dict[str, tuple[str, ...]]:
        """Domain keys of each node."""
        return keys_of_nodes(self.limits)

    @cached_property
    def lanes(self) -> dict[str, LaneFacts]:
        """All lanes: those seen, and those that the plan installs."""
        result = {name: self._observed(name, lane) for name, lane in self.inventory.lanes.items()}
        for name, step in self.installs.items():
            facts = self._installed(name, step)
            if name not in result and facts is not None:
                result[name] = facts
        return result

    @cached_property
    def installs(self) -> dict[str, Step]:
        """The install step of each lane that has one."""
        return {s.lane: s for s in self.plan.steps if s.kind is StepKind.INSTALL and s.lane is not None}

    def _observed(self, name: str, lane: ObservedLane) -> LaneFacts:
        steady = footprint(self.desired.pool, lane, self.domain_keys)
        document = self.desired.lanes.get(name, Lane())
        return LaneFacts(
            id=name,
            models=lane.models,
            kind=lane.kind,
            nodes=lane.nodes,
            owner=lane.owner,
            managed=lane.management is Management.MANAGED,
            state=lane.state,
            residency=lane.residency,
            memory=steady,
            peak=peak(lane, steady, self.domain_keys),
            load_ms=int((lane.load_seconds or Decimal(0)) * 1000),
            context_window=lane.context_window,
            sequences=lane.max_sequences,
            latched=lane.latched,
            excluded_nodes=lane.excluded_nodes,
            started_by=lane.started_by,
            recipe=lane.recipe.id if lane.recipe else None,
            document=document,
        )

    def _installed(self, name: str, step: Step) -> LaneFacts | None:
        """Facts of a lane that does not exist yet, from its recipe; the plan only says which recipe goes where."""
        planned = self.plan.lanes.get(name)
        recipe = self.desired.recipes.get(step.recipe or "")
        process = _process(recipe, planned.models if planned else ()) if recipe is not None else None
        if planned is None or recipe is None or process is None:
            return None
        memory = memory_of_install(recipe, process, planned, self.domain_keys)
        if memory is None:
            return None
        settings = [model.settings for model in process.models]
        return LaneFacts(
            id=name,
            models=tuple(model.gateway_model for model in process.models),
            kind=process.models[0].kind,
            nodes=planned.nodes,
            owner=planned.nodes[0],
            managed=True,
            state=LaneState.STOPPED,
            residency=Residency.AUTO,
            memory={key: steady for key, (steady, _) in memory.items()},
            peak={key: loading for key, (_, loading) in memory.items()},
            load_ms=int((recipe.spec.load_seconds or Decimal(0)) * 1000),
            context_window=min((s.context_window for s in settings if s.context_window), default=None),
            sequences=sequences(process),
            recipe=step.recipe,
            installs=True,
        )

    @cached_property
    def lanes_of_model(self) -> dict[str, tuple[str, ...]]:
        """Lane ids of each model, sorted."""
        result: dict[str, list[str]] = {}
        for name in sorted(self.lanes):
            for model in self.lanes[name].models:
                result.setdefault(model, []).append(name)
        return {model: tuple(names) for model, names in result.items()}

    @cached_property
    def own_models(self) -> frozenset[str]:
        """Models that lanes serve or that aliases name as such; anything else in a route is external."""
        external = {model for alias in self.desired.aliases.values() for model in alias.external}
        named = {model for alias in self.desired.aliases.values() for model in alias.models}
        return frozenset({*self.lanes_of_model, *named} - external)

    def meets(self, lane: LaneFacts, alias: Alias) -> bool:
        """Whether a lane meets an alias's needs; an unknown figure is not enough where one is needed."""
        needs = alias.needs
        if needs.kind is not None and lane.kind is not needs.kind:
            return False
        enough = ((needs.context_window, lane.context_window), (needs.sequences, lane.sequences))
        return all(need is None or (have is not None and have >= need) for need, have in enough)

    # -- the plan --------------------------------------------------------------------------------------------------

    @cached_property
    def started(self) -> dict[str, Step]:
        """The last start step of each lane that the plan itself starts (a manual start is no part of the outcome)."""
        return {s.lane: s for s in self.plan.steps if s.kind is StepKind.START and s.lane is not None}

    @cached_property
    def stops(self) -> dict[str, Step]:
        """The stop step of each lane that is stopped, by us or by hand."""
        return {s.lane: s for s in self.plan.steps if s.lane is not None and is_stop(s)}

    @cached_property
    def left(self) -> frozenset[str]:
        """Lanes that are stopped for good: not for room, and not started again."""
        return frozenset(
            name for name, step in self.stops.items() if step.why is not StopReason.ROOM and name not in self.started
        )

    @cached_property
    def residency(self) -> dict[str, Residency]:
        """Residency of every lane in the planned outcome: as planned, else as it is.

        A managed lane that leaves for good is auto: any other residency would load it again.
        """
        result = {name: lane.residency for name, lane in self.lanes.items()}
        result.update(dict.fromkeys((name for name in self.left if self.lanes[name].managed), Residency.AUTO))
        result.update((name, planned.residency) for name, planned in self.plan.lanes.items() if name in result)
        return result

    @cached_property
    def routed(self) -> frozenset[str]:
        """Lanes in a planned route, or in the kept route of an alias that is not declared here."""
        routes = [
            route
            for name, route in self.routes_after.items()
            if name in self.plan.routes or name not in self.desired.aliases
        ]
        lanes = [lane for _, behind in routes for lane in behind]
        return frozenset(lane for lane in lanes if lane is not None)

    @cached_property
    def led_to(self) -> frozenset[str]:
        """Lanes in any route of the outcome, also in those of aliases that nothing covers, which stay as they are."""
        lanes = [lane for _, behind in self.routes_after.values() for lane in behind]
        return frozenset(lane for lane in lanes if lane is not None)

    @cached_property
    def routes_before(self) -> dict[str, tuple[tuple[str, ...], tuple[str | None, ...]]]:
        """Route and lanes of every alias of the head as things are now."""
        return {
            name: (alias.route, lanes_of_route(self.inventory, alias)) for name, alias in self.inventory.aliases.items()
        }

    @cached_property
    def routes_after(self) -> dict[str, tuple[tuple[str, ...], tuple[str | None, ...]]]:
        """Route and lanes of every alias in the planned outcome; an alias that is removed is not in it."""
        result = {name: (planned.route, planned.lanes) for name, planned in self.plan.routes.items() if planned.route}
        removed = {change.alias for change in self.plan.diff.routes if not change.after}
        for name, before in self.routes_before.items():
            if name not in self.plan.routes and name not in removed:
                result[name] = before
        return result

    @cached_property
    def profile(self) -> Profile | None:
        """The active profile: its routes, residency and pins are hard."""
        return self.desired.profiles.get(self.desired.pool.active_profile or "")

    def wished_order(self, alias: str) -> tuple[tuple[str, ...], frozenset[str]]:
        """The order in which models may answer (the active profile's where it has one), and which are external."""
        wishes = self.desired.aliases[alias]
        order = (*wishes.models, *wishes.external)
        if self.profile is not None and alias in self.profile.routes:
            order = self.profile.routes[alias]
        own = {entry for entry in order if entry in wishes.models or entry in self.lanes_of_model}
        return order, frozenset(order) - (own - set(wishes.external))

    @cached_property
    def served(self) -> frozenset[str]:
        """Aliases that have a route in the planned outcome."""
        return frozenset(name for name, planned in self.plan.routes.items() if planned.route)

    def first_lane(self, alias: str) -> LaneFacts | None:
        """The lane that answers first in the planned outcome; None for an external model or nothing."""
        planned = self.plan.routes.get(alias)
        if planned is None or not planned.lanes or planned.lanes[0] is None:
            return None
        return self.lanes.get(planned.lanes[0])

    @cached_property
    def routed_now(self) -> frozenset[str]:
        """Lanes in a route as things are now."""
        return frozenset(lane for _, behind in self.routes_before.values() for lane in behind if lane is not None)

    def held_on_cordoned(self, alias: str) -> bool:
        """Only lanes that should leave serve it (heldOnCordoned): it counts as served by nothing."""
        planned = self.plan.routes.get(alias)
        if planned is None or not planned.route or alias not in self.desired.aliases or self.wished_order(alias)[1]:
            return False
        return all(name in self.lanes and self.vacating(self.lanes[name]) for name in planned.lanes if name)


def is_stop(step: Step) -> bool:
    """A stop of ours, or one that a person is asked for."""
    return step.kind is StepKind.STOP or (step.kind is StepKind.MANUAL and step.does == "stop")


def _process(recipe: Recipe, models: tuple[str, ...]) -> RecipeProcess | None:
    for process in processes(recipe.spec):
        if {model.gateway_model for model in process.models} & set(models):
            return process
    return None
