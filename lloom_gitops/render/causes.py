"""Reasons of the closed lists in words, with the numbers that a cause carries."""

from __future__ import annotations

import re
from collections.abc import Iterable

from lloom_gitops.model.plan import Cause
from lloom_gitops.model.words import StopReason
from lloom_gitops.render.amounts import gb
from lloom_gitops.render.clean import shown

CAUSES: dict[str, str] = {
    "accelerator": "{node} lacks an accelerator that {lane} runs on",
    "capacityUnknown": "the capacity of {domain} is not known, and nothing new is placed there",
    "coResident": "lanes that must be able to be loaded together would not fit into {domain}",
    "commands": "{node} lacks a command that {lane} needs",
    "computeArch": "{node} has none of the compute archs of {lane}",
    "conflict": "it can't be met together with the others",
    "contextTooSmall": "the context window of {lane} is too small",
    "cordoned": "{node} is cordoned",
    "disk": "{node} has too little disk for the weights of {lane}",
    "devicesTooFew": "{node} has too few devices for {lane}",
    "draining": "{node} is being drained",
    "excludedAfterFailure": "{lane} is kept off {node} after failed starts",
    "fixedAsItIs": "{lane} stays as it is: nothing may change there now",
    "heldOnCordoned": "only {lane} serves it, so that lane stays although its node is to be emptied",
    "image": "{node} lacks the image that {lane} runs from",
    "installable": "only a recipe that is not installed serves {model} ({recipe}; see `plan --consider-installs`)",
    "latched": "{lane} is latched: the memory guard aborted its last load, and a person has to start it once",
    "loadPeak": "{lane} would not fit into {domain} while it loads",
    "memory": "{lane} does not fit into {domain}",
    "memoryUnknown": "how much memory {lane} takes is not known, and it is placed nowhere",
    "noLane": "no lane and no recipe serves {model}",
    "noLink": "{node} has no direct link to another node that {lane} needs",
    "noRoom": "{lane} would not fit into {domain} beside what is loaded there",
    "nodeLost": "{node} is lost",
    "nodeUnreadable": "{node} can't be read now, and nothing changes there",
    "notChosen": "{lane} could serve, and something better does",
    "notInstalled": "{lane} is not installed on {node}",
    "notRunning": "{lane} does not run, and only a person can start it",
    "onHold": "{node} is on hold, and nothing changes there",
    "pinnedElsewhere": "a pin puts {model} elsewhere",
    "platform": "{node} is of a platform that {lane} does not run on",
    "runByHand": "{lane} is run by hand, and only a person can move it",
    "sequencesTooFew": "{lane} serves too few sequences at once",
    "stoppedByRequest": "the document of {lane} says that it stays stopped",
    "undeclaredNode": "{node} is enrolled only: nothing can be routed there before it is declared",
    "wrongKind": "{lane} is of another kind",
}
"""Reason to sentence; `{node}`, `{lane}` (or its recipe), `{model}` and `{domain}` stand for the cause's own."""

LANES: dict[str, str] = {
    "asItIs": "nothing may change it now",
    "firstChoice": "it is the first choice of an alias",
    "heldOnCordoned": "nothing else serves its aliases, so it stays although its node is to be emptied",
    "laterEntry": "it is a later entry of a route",
    "notRouted": "no route uses it; it keeps what it has",
    "onlyFit": "it is the only lane left that can serve this",
    "pinned": "a pin or the active profile wants it",
}
"""Why a lane is in the plan."""

GAPS: dict[str, str] = {
    "drain": "{lane} is drained, and nothing else serves it",
    "restart": "{lane} is restarted for another residency, and nothing else serves it",
    "room": "memory is needed for {lane}, and nothing answers meanwhile",
}
"""Why an alias answers nothing for a while; the plan writes `drain:LANE` or `room:LANE`."""

STOPS: dict[StopReason, str] = {
    StopReason.VACATE: "its node is being emptied",
    StopReason.ROOM: "its memory is needed for what was planned",
    StopReason.MOVED: "its model moved, and what takes over is up",
    StopReason.ASKED: "people asked for it",
}
"""The four reasons for which a running lane may be stopped (docs/concepts.md)."""

_NAMES = ("node", "lane", "recipe", "model", "alias", "domain")
_UNNAMED = {"lane": "it", "domain": "its memory"}


def cause_text(cause: Cause) -> str:
    """One cause as a clause without a full stop; a reason that this build has no words for is spelled out."""
    template = CAUSES.get(cause.reason)
    named = {name: shown(getattr(cause, name) or _UNNAMED.get(name, f"the {name}")) for name in _NAMES}
    if cause.lane is None and cause.recipe is not None:
        named["lane"] = shown(cause.recipe)
    sentence = template.format(**named) if template else spelled(cause.reason)
    rest = [
        f"{name} {named[name]}"
        for name in ("node", "domain")
        if getattr(cause, name) and not (template and f"{{{name}}}" in template)
    ]
    facts = [*rest, *_figures(cause)]
    said = f"{sentence} ({', '.join(facts)})" if facts else sentence
    return f"{said}: {shown(cause.says)}" if cause.says else said


def causes_text(causes: Iterable[Cause]) -> str:
    """All causes in their order, in one line."""
    return "; ".join(cause_text(cause) for cause in causes)


def lane_reason(reason: str) -> str:
    """Why a lane is in the plan, as a clause."""
    return LANES.get(reason) or spelled(reason)


def gap_text(because: str) -> str:
    """Why there is a gap, as a clause."""
    reason, _, lane = because.partition(":")
    template = GAPS.get(reason)
    return template.format(lane=shown(lane)) if template else spelled(because)


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
