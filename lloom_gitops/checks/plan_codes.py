"""The closed list of what the judge of plans can find, one meaning each (docs/reference/plan-findings.md)."""

from __future__ import annotations

from lloom_gitops.model.errors import Finding

MEANINGS: dict[str, str] = {
    "planUnknownLane": "The plan names a lane that is not in the inventory and that no step installs.",
    "planUnknownNode": "The plan names a node that is neither declared nor seen.",
    "planUnknownAlias": "The plan names an alias that is neither declared nor seen.",
    "planUnknownStep": "A step waits for a step that is not in the plan.",
    "planStepRepeated": "Two steps have the same id.",
    "planStepName": "A step's id does not come from its content (`kind:lane`, `route:alias`; a repeat gets `~2`).",
    "planStepOrder": "A step is listed before one that it waits for, so the list is no order to work in.",
    "planInputs": "The plan names another desired state or inventory than the one it is judged against.",
    "planLaneFacts": "A planned lane's models, nodes or memory are not those of the lane.",
    "planLaneOnLostNode": "The outcome counts on a lane of which a node is lost or left.",
    "planLaneStopped": "The outcome counts on a lane that the plan stops.",
    "planStartNotServing": "A lane starts on a node that is not ready, or that is on hold, cordoned or draining.",
    "planStartBlocked": "A lane starts that can't: latched, excluded, stopped by wish, not linked, not matching, "
    "no disk, or where the capacity is unknown.",
    "planStartNeedless": "A lane starts that nothing in the plan needs loaded.",
    "planStartTwice": "More than one lane of a model is started.",
    "planStartMissing": "A lane that the outcome needs loaded is not started.",
    "planUnmanagedStep": "A person starts and stops lanes that LLooM does not manage, and only those.",
    "planOverResidency": "Always and preferred lanes of a domain take more than its budget.",
    "planOverOnDemand": "An auto lane does not fit beside the always lanes.",
    "planOverCoResident": "The auto lanes of a co-resident set do not fit together beside the always lanes.",
    "planOverLoadPeak": "A lane's load peak does not fit beside the other always lanes.",
    "planMemoryOnTheWay": "At some point of an allowed order a load does not fit beside all that holds memory.",
    "planBudgetFigure": "A figure of the budget block is not what the sums give, or a domain is missing there.",
    "planRouteLane": "A route's entry does not name the lane that serves its model (external entries name none).",
    "planRouteNeeds": "A route leads to a lane that does not meet the alias's needs.",
    "planRouteUnavailable": "A route leads to a lane that can't serve: lost, stopped, not running, cordoned, latched, "
    "or without memory to load.",
    "planRouteOrder": "A route is not in the alias's own (or the active profile's) order, external models last.",
    "planRouteMissing": "A model that is covered, or an external one, is left out of a route.",
    "planRouteOldBuild": "The head's build gives an alias one model; the plan gives more, or does not say so.",
    "planRouteForeign": "The plan changes the route of an alias that is not declared.",
    "planUnlisted": "An alias that is not declared is removed where it should be kept, or kept.",
    "planUncovered": "An alias that nothing serves is not listed, or one is listed that is served, or without causes.",
    "planExpects": "A route's expected figures are not those of what answers first.",
    "planResidencyTooMuch": "A lane gets more residency than people wished.",
    "planResidencyTooLittle": "A lane gets less residency than wished, and memory does not force it.",
    "planResidencyUnsaid": "A lane gets less residency than wished, and the plan does not say so with the numbers.",
    "planResidencyChanged": "A lane's residency changes where it is to be left as it is.",
    "planStopReason": "A lane is stopped without one of the four reasons, or the reason does not hold.",
    "planStopMissing": "A lane that has to leave stays.",
    "planStopLost": "A lane is drained or stopped on a node that is lost or left.",
    "planStopHandsOff": "A lane is changed of which a node is on hold or unreadable.",
    "planStopIdle": "A lane is stopped that holds no memory.",
    "planDrainAlone": "A lane is drained and not stopped.",
    "planDiffStart": "The diff's starts are not the plan's.",
    "planDiffStop": "The diff's stops are not the plan's.",
    "planDiffResidency": "The diff's residency changes are not the difference between now and the outcome.",
    "planDiffRoutes": "The diff's route changes are not the difference between now and the outcome.",
    "planDiffManual": "The diff's manual part is not the plan's manual steps, or one says nothing.",
    "planVerdict": "A figure of the verdict does not add up.",
    "planNothing": "A plan has steps exactly when it changes something, and one without steps says why.",
    "planLevels": "A level of the objective is not the one recomputed from the outcome.",
    "planCosts": "The shares of a level do not add up to it.",
    "planStepNode": "A step asks another gateway than the lane's owner, or than the head for a route.",
    "planStepTimeout": "A step has no time limit, or a drain not that of its draining node.",
    "planStepRoute": "An alias's last route step is not the planned route, or an earlier one is not marked interim.",
    "planStepResidency": "A step gives another residency than planned, or leaves to a person what the gateway can do.",
    "planStepReads": "A step does not read the facts that it relies on.",
    "planOrderStartRoute": "A route leads to a lane before its start is done.",
    "planOrderRouteDrain": "A lane is drained before an alias has left it.",
    "planOrderDrainStop": "A lane is stopped before it is drained.",
    "planOrderBeforeStart": "A lane starts before it is installed, or before a residency that is set by hand.",
    "planOrderResidencyStop": "A stop comes before a residency downgrade.",
    "planReadFails": "A step's read does not hold in the state that the plan itself makes there.",
    "planAliasStranded": "An alias that was served is left with nothing by our own hand, and no gap says so.",
    "planGapUnseen": "A gap is listed for an alias that is served all the time.",
    "planOutcome": "Carrying out the steps does not give the planned outcome.",
    "planWishUnmet": "A pin or an entry of the active profile is neither met nor listed as unmet.",
    "planWishMet": "A wish is listed as unmet that is met, or that nobody has.",
    "planWishCause": "An unmet wish has no cause.",
}

_HINT = "the planner broke a rule of its own: please report the desired state and the inventory with this finding"


def fault(code: str, pointer: str, message: str, *, wanted: str | None = None, found: str | None = None) -> Finding:
    """A finding about a plan; `pointer` is a JSON Pointer into the plan's `spec`. The code must be in the list."""
    assert code in MEANINGS, code
    return Finding(code=code, pointer=pointer, message=message, wanted=wanted, found=found, hint=_HINT)


def at(*tokens: str | int) -> str:
    """A JSON Pointer from its tokens."""
    return "".join("/" + str(token).replace("~", "~0").replace("/", "~1") for token in tokens)
