"""Has a step's effect been achieved? Told from facts alone (`catalog.facts`), never from what a call answered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any

from lloom_gitops.model.plan import Read, Step
from lloom_gitops.model.words import LaneState, Liveness, Seen, StepKind

Facts = Mapping[str, Any]
"""The inventory's `spec` as plain data, as `catalog.facts.facts` makes it. The agent adds `activeRequests` to a lane
that is to be drained."""


class Effect(StrEnum):
    """What the facts say of a step's effect.

    holds: achieved. underWay: it is coming about (loading, stopping). absent: not there. untold: the lane's state is
    unknown. unreadable: the node that owns it did not answer, so nothing in its facts is evidence.
    """

    HOLDS = "holds"
    UNDER_WAY = "underWay"
    ABSENT = "absent"
    UNTOLD = "untold"
    UNREADABLE = "unreadable"


_STOPPING = (LaneState.DRAINING.value, LaneState.STOPPING.value)
_DOWN = (LaneState.STOPPED.value, LaneState.FAILED.value)

IDEMPOTENT = frozenset({StepKind.START, StepKind.RESIDENCY, StepKind.ROUTE, StepKind.DRAIN, StepKind.STOP})
"""Kinds that may be carried out again once they were observed not done: a second admission of a lane that is up, a stop
of one that is down and a setting that is set change nothing. An install starts a job each time."""


def judge(step: Step, facts: Facts, head: str) -> Effect:
    """Whether the effect of `step` is there. `head` is the node whose gateway holds the routes."""
    owner = owner_of(step, facts, head)
    if owner is not None and not readable(owner, facts):
        return Effect.UNREADABLE
    match step.does if step.kind is StepKind.MANUAL else step.kind.value:
        case "start":
            return _started(step, facts)
        case "stop":
            return _stopped(step, facts)
        case "route":
            return _routed(step, facts)
        case "residency":
            return _resident(step, facts)
        case "drain":
            return _drained(step, facts)
        case "install":
            return Effect.HOLDS if step.lane in facts["lanes"] else Effect.ABSENT
    return Effect.ABSENT


def owner_of(step: Step, facts: Facts, head: str) -> str | None:
    """The node whose gateway knows what became of a step."""
    if step.node is not None:
        return step.node
    if step.alias is not None and step.lane is None:
        return head
    lane = facts["lanes"].get(step.lane)
    return None if lane is None else str(lane["owner"])


def nodes_of(step: Step, facts: Facts, head: str) -> frozenset[str]:
    """Every node that the step and its reads speak of: what must be seen afresh before the step runs."""
    named = {owner_of(step, facts, head), *nodes_taken(step, facts)}
    for read in step.reads:
        named.update(read_nodes(read, facts, head))
    return frozenset(node for node in named if node is not None)


def read_nodes(read: Read, facts: Facts, head: str) -> Iterator[str]:
    """The nodes whose gateways know what a read asks."""
    tree, name = _top(read)
    if tree == "nodes":
        yield name
        # A distributed lane takes memory here, while another node's gateway tells its state.
        yield from (lane["owner"] for lane in facts["lanes"].values() if name in lane["nodes"])
    elif tree == "aliases":
        yield head
    elif tree == "lanes":
        yield from lane_nodes(name, facts)


def touches(step: Step, read: Read, facts: Facts) -> bool:
    """Whether carrying out `step` can change what `read` finds."""
    tree, name = _top(read)
    if tree == "aliases":
        return step.alias == name
    if tree == "lanes":
        return step.lane == name
    return step.lane is not None and name in nodes_taken(step, facts)


def nodes_taken(step: Step, facts: Facts) -> frozenset[str]:
    """The nodes of a step's lane; before the lane is there, the node that will own it."""
    return frozenset((*lane_nodes(step.lane, facts), *(() if step.node is None else (step.node,))))


def lane_nodes(lane: str | None, facts: Facts) -> tuple[str, ...]:
    """The nodes of a lane, its owner among them; none for a lane that is not there."""
    seen = facts["lanes"].get(lane)
    return () if seen is None else tuple(dict.fromkeys((*seen["nodes"], seen["owner"])))


def readable(node: str, facts: Facts) -> bool:
    """Whether the node answered when these facts were taken."""
    seen = facts["nodes"].get(node)
    return seen is not None and seen.get("seen", Seen.PRESENT.value) == Seen.PRESENT.value


def gone(node: str, facts: Facts) -> bool:
    """Whether the node is lost or left."""
    seen = facts["nodes"].get(node)
    return seen is not None and Liveness(seen.get("liveness", Liveness.READY.value)).gone


def has_its_room(step: Step, facts: Facts) -> bool:
    """Whether the lane that a step starts holds its memory already."""
    lane = facts["lanes"].get(step.lane)
    return step.kind is StepKind.START and lane is not None and LaneState(lane["state"]).holds_memory


def broken(step: Step, facts: Facts) -> str | None:
    """Why a start can't come about any more, in words; None while it still may."""
    lane = facts["lanes"].get(step.lane, {})
    if lane.get("latched"):
        return "the memory guard has latched the lane"
    return "the lane failed" if lane.get("state") == LaneState.FAILED.value else None


def _top(read: Read) -> tuple[str, str]:
    tokens = [token.replace("~1", "/").replace("~0", "~") for token in read.at.split("/")[1:]]
    return (tokens[0], tokens[1]) if len(tokens) > 1 else (tokens[0] if tokens else "", "")


def _started(step: Step, facts: Facts) -> Effect:
    lane = facts["lanes"].get(step.lane)
    if lane is None:
        return Effect.ABSENT
    match lane["state"]:
        case LaneState.RUNNING.value:
            asked = step.residency if step.kind is StepKind.START else None
            return Effect.HOLDS if asked is None or lane["residency"] == asked.value else Effect.ABSENT
        case LaneState.LOADING.value:
            return Effect.UNDER_WAY
        case LaneState.UNKNOWN.value:
            return Effect.UNTOLD
    return Effect.ABSENT


def _stopped(step: Step, facts: Facts) -> Effect:
    lane = facts["lanes"].get(step.lane)
    if lane is None or lane["state"] in _DOWN:
        return Effect.HOLDS
    if lane["state"] in _STOPPING:
        return Effect.UNDER_WAY
    return Effect.UNTOLD if lane["state"] == LaneState.UNKNOWN.value else Effect.ABSENT


def _routed(step: Step, facts: Facts) -> Effect:
    seen = facts["aliases"].get(step.alias)
    if seen is None:
        return Effect.ABSENT if step.route else Effect.HOLDS
    same = list(seen["route"]) == list(step.route or ())
    if step.lanes is not None:
        same = same and list(seen["lanes"]) == list(step.lanes)
    return Effect.HOLDS if same else Effect.ABSENT


def _resident(step: Step, facts: Facts) -> Effect:
    lane = facts["lanes"].get(step.lane)
    asked = None if step.residency is None else step.residency.value
    return Effect.HOLDS if lane is not None and lane["residency"] == asked else Effect.ABSENT


def _drained(step: Step, facts: Facts) -> Effect:
    lane = facts["lanes"].get(step.lane)
    if lane is None or lane["state"] in _DOWN:
        return Effect.HOLDS
    return Effect.HOLDS if lane.get("activeRequests") == 0 else Effect.ABSENT
