"""Reasons of the closed lists in words, with the numbers that a cause carries."""

from __future__ import annotations

import re
from collections.abc import Iterable

from lloom_gitops.model.plan import Cause
from lloom_gitops.model.words import StopReason
from lloom_gitops.render.amounts import gb
from lloom_gitops.render.clean import shown

CAUSES: dict[str, str] = {
    "accelerator": "{node} has no accelerator that it runs on",
    "agentOnly": "only the agent may change it",
    "budget": "the residency sums of {domain} leave too little room",
    "capacityUnknown": "the memory of {node} is not known",
    "command": "a command that it needs is missing on {node}",
    "computeArch": "{node} has another compute arch",
    "contextWindow": "its context window is too small",
    "cordoned": "{node} is cordoned",
    "disk": "too little disk on {node}",
    "draining": "{node} is being drained",
    "excluded": "it is kept off {node} after failed starts",
    "external": "an external model answers",
    "foreign": "memory of {domain} is used by something that is not ours",
    "gateway": "the gateway of {node} can't do that",
    "hold": "{node} is on hold",
    "image": "a container image that it needs is missing on {node}",
    "installs": "it is not installed, and installs are not considered",
    "kind": "it is of another kind",
    "latched": "its last load was aborted by the memory guard; start it once by hand",
    "left": "{node} left the pool",
    "loadPeak": "its load would not fit into {domain} while it loads",
    "lost": "{node} is lost",
    "memory": "it does not fit into {domain}",
    "notDeclared": "{node} is not declared in fleet/nodes",
    "notInstalled": "it is not installed",
    "notLinked": "the nodes are not linked in pairs",
    "notRunning": "a person has to start it, and it does not run",
    "onTheWay": "there is no order of steps that leaves enough room in {domain}",
    "noLane": "no lane serves it",
    "noVariant": "nothing here can serve it",
    "pinned": "a pin puts it elsewhere",
    "platform": "{node} has another platform",
    "profile": "the active profile wants something else",
    "sequences": "it serves too few sequences at once",
    "suspect": "{node} does not answer at the moment",
    "unknown": "what {node} runs is not known",
    "weights": "its weights are not on {node}",
}
"""Reason to sentence; `{node}`, `{lane}`, `{model}`, `{alias}` and `{domain}` stand for the cause's own."""

LANES: dict[str, str] = {
    "answersFirst": "it answers first",
    "best": "of the ways to serve this it ranks best",
    "kept": "it stays as it is",
    "onlyFit": "nothing else can serve this",
    "pinned": "a pin wants it here",
    "profile": "the active profile wants it",
    "running": "it runs here already",
}
"""Why a lane is in the plan."""

STOPS: dict[StopReason, str] = {
    StopReason.VACATE: "its node is being emptied",
    StopReason.ROOM: "its memory is needed for what was planned",
    StopReason.MOVED: "its model moved, and what takes over is up",
    StopReason.ASKED: "people asked for it",
}
"""The four reasons for which a running lane may be stopped (docs/concepts.md)."""

_NAMES = ("node", "lane", "model", "alias", "domain")
_ABSENT = {"node": "the node", "lane": "the lane", "model": "the model", "alias": "the alias", "domain": "memory"}


def cause_text(cause: Cause) -> str:
    """One cause as a clause without a full stop; a reason that this build has no words for is spelled out."""
    template = CAUSES.get(cause.reason)
    named = {name: shown(getattr(cause, name) or _ABSENT[name]) for name in _NAMES}
    sentence = template.format(**named) if template else spelled(cause.reason)
    used = {name for name in _NAMES if template and f"{{{name}}}" in template}
    rest = [f"{name} {named[name]}" for name in _NAMES if getattr(cause, name) and name not in used]
    facts = [*rest, *_figures(cause)]
    said = f"{sentence} ({', '.join(facts)})" if facts else sentence
    return f"{said}: {shown(cause.says)}" if cause.says else said


def causes_text(causes: Iterable[Cause]) -> str:
    """All causes in their order, in one line."""
    return "; ".join(cause_text(cause) for cause in causes)


def lane_reason(reason: str) -> str:
    """Why a lane is in the plan, as a clause."""
    return LANES.get(reason) or spelled(reason)


def spelled(code: str) -> str:
    """A camelCase word as words: `headLost` is `head lost`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", shown(code)).lower()


def _figures(cause: Cause) -> list[str]:
    figures = []
    if cause.short_gb is not None:
        figures.append(f"{gb(cause.short_gb)} short")
    if cause.needs_gb is not None:
        figures.append(f"needs {gb(cause.needs_gb)}")
    if cause.has_gb is not None:
        figures.append(f"has {gb(cause.has_gb)}")
    if cause.needs is not None:
        figures.append(f"needs {shown(cause.needs)}")
    if cause.has is not None:
        figures.append(f"has {shown(cause.has)}")
    return figures
