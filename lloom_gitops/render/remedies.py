"""What would take a reason away: the other half of every explanation."""

from __future__ import annotations

from collections.abc import Iterable

from lloom_gitops.model.plan import Cause
from lloom_gitops.render.amounts import gb, listed
from lloom_gitops.render.clean import shown

REMEDIES: dict[str, str] = {
    "accelerator": "a node with an accelerator it runs on ({needs})",
    "capacityUnknown": "the capacity of {domain}: let its gateway report it, or set `assumeMemoryGb`",
    "coResident": "{short} more in {domain}, or a smaller co-resident set",
    "commands": "{needs} installed on {node}",
    "computeArch": "a node with one of its compute archs ({needs})",
    "conflict": "one of the wishes that exclude each other taken back",
    "contextTooSmall": "a context window of {needs} for {lane} (it has {has}), or a smaller need of the alias",
    "cordoned": "{node} uncordoned",
    "devicesTooFew": "a node with {needs} devices",
    "disk": "{short} more free disk on {node}",
    "draining": "the drain of {node} ended",
    "excludedAfterFailure": "{lane} started once on {node} with success: its gateway keeps why it failed",
    "fixedAsItIs": "its node able to be changed again",
    "heldOnCordoned": "another lane for the aliases that it holds, or its node uncordoned",
    "image": "{needs} pulled on {node}",
    "installable": "`plan --consider-installs`, or the recipe installed: {recipe}",
    "latched": "{lane} started once by hand, with more memory free or its estimate corrected",
    "loadPeak": "{short} more in {domain} while it loads",
    "memory": "{short} more in {domain}",
    "memoryUnknown": "`requirements.memoryGb` in the recipe {recipe}",
    "noLane": "a recipe or a lane that serves {model}",
    "noLink": "one fabric that links {node} with the other nodes of {lane}",
    "noRoom": "{short} more in {domain} beside what is loaded",
    "nodeLost": "{node} back",
    "nodeUnreadable": "{node} readable again",
    "notChosen": "",
    "notInstalled": "its recipe installed on {node}",
    "notRunning": "{lane} started by hand",
    "onHold": "the hold of {node} ended",
    "pinnedElsewhere": "the pin of {model} lifted",
    "platform": "a node of its platform ({needs})",
    "runByHand": "a person who moves {lane}",
    "sequencesTooFew": "{needs} sequences at once from {lane} (it has {has}), or a smaller need of the alias",
    "stoppedByRequest": "`state: any` in the document of {lane}",
    "undeclaredNode": "{node} declared in `fleet/nodes/`",
    "wrongKind": "a model of the kind {needs}",
}
"""Reason to what would take it away; empty: nothing is in the way, something else is only better."""

TOOK: dict[str, str] = {
    "cordoned": "the cordon of {node}",
    "draining": "the drain of {node}",
    "latched": "the latch of {lane}",
    "nodeLost": "the loss of {node}",
    "onHold": "the hold of {node}",
    "stoppedByRequest": "`state: stopped` of {lane}",
}
"""Reasons that took something away which else would serve."""


def remedy(cause: Cause) -> str:
    """What would take a cause away, as a clause; empty where nothing is in the way."""
    return _filled(REMEDIES.get(cause.reason, ""), cause)


def needed(causes: Iterable[Cause]) -> str:
    """What would take all of some causes away, in their order; empty where nothing would."""
    words = list(dict.fromkeys(text for cause in causes if (text := remedy(cause))))
    return listed(words) if words else ""


def took(causes: Iterable[Cause]) -> str:
    """What took it, of some causes; empty where none of them did."""
    words = list(dict.fromkeys(_filled(TOOK[cause.reason], cause) for cause in causes if cause.reason in TOOK))
    return listed(words) if words else ""


def _filled(template: str, cause: Cause) -> str:
    names = ("node", "recipe", "model", "domain", "needs", "has")
    values = {name: shown(getattr(cause, name) or f"the {name}") for name in names}
    lane = shown(cause.lane or cause.recipe or "it")
    short = gb(cause.short_gb) if cause.short_gb is not None else "room"
    return template.format(lane=lane, short=short, **values)
