"""The closed list of what can be found in documents, one meaning and one remedy each (docs/reference/findings.md)."""

from __future__ import annotations

from lloom_gitops.codec.codes import MEANINGS as OF_SHAPE
from lloom_gitops.codec.codes import Meaning

MEANINGS: dict[str, Meaning] = {
    **OF_SHAPE,
    # Files
    "nameOfFile": Meaning(
        "A document's name and its file's name differ (a warning).", "rename the file, so that people find it"
    ),
    # References
    "unknownHead": Meaning(
        "`head` names a node that is neither declared nor seen.", "name a node of `fleet/nodes/`, or declare it"
    ),
    "unknownNode": Meaning(
        "A pin, a link, a lane or a profile names a node that is neither declared nor seen.",
        "correct the name, or declare the node in `fleet/nodes/`",
    ),
    "unknownModel": Meaning(
        "A model that no recipe, no lane and no running lane serves.",
        "correct the name, add a recipe or a lane, or name it under `external`",
    ),
    "unknownAlias": Meaning("A profile's route names an alias that does not exist.", "correct it, or add the alias"),
    "unknownLane": Meaning("A profile names a lane that is neither declared nor seen.", "correct the lane's id"),
    "unknownProfile": Meaning("`activeProfile` names no profile.", "name one of `fleet/profiles/`, or null"),
    "unknownRecipe": Meaning("A pin names a recipe that does not exist.", "name one of `recipes/`"),
    "recipeOfOtherModel": Meaning(
        "A pin names a recipe that does not serve the pinned model.", "name a recipe that serves it, or none"
    ),
    "externalAsModel": Meaning(
        "A model stands in `models` and in `external`: it would count as local and as a fallback.",
        "keep it under `external` if no lane of the pool serves it",
    ),
    "aliasEmpty": Meaning("An alias names neither models nor external ones.", "name at least one"),
    "linkToItself": Meaning("A node is linked to itself.", "name the peer at the other end"),
    "livenessOrder": Meaning("A node would be lost before it is suspect.", "make lostSeconds the larger of the two"),
    "resultsBranchMissing": Meaning(
        "Results go to a branch that is not named.", "name it in `writeBack.resultsBranch`, or use `results: commit`"
    ),
    "laneWithoutFacts": Meaning(
        "A lane that LLooM does not manage has no `pool` block, so no plan can count on it (a warning).",
        "add its models, kind, nodes and memoryGb",
    ),
    "laneNotSeen": Meaning(
        "Settings of a managed lane that the inventory does not have (a warning).", "correct the lane's id"
    ),
    # Pins
    "pinsExclude": Meaning(
        "Pins can't be met together: other residencies for one place, or more memory than the budget of a domain, "
        "even with the smallest lane of each.",
        "take one of them away, or give it less residency",
    ),
    "pinTooLarge": Meaning(
        "A pin alone takes more than the budget of its node.", "pin it to a larger node, or take a smaller recipe"
    ),
    "pinOnCordonedNode": Meaning(
        "A pin's node is cordoned or draining (a warning): the pin is suspended.", "uncordon the node, or move the pin"
    ),
    "pinExpiresSoon": Meaning(
        "A pin's `expires` is at most a week away (a warning). The planner ignores the day.",
        "renew it, or take it away",
    ),
    "pinExpired": Meaning("A pin's `expires` has passed (a warning).", "renew it, or take it away"),
    "noSuchDay": Meaning("A day that no calendar has.", "correct it: YYYY-MM-DD"),
    # Secrets
    "secretForName": Meaning(
        "A key seems to stand where the name of an environment variable belongs.",
        "revoke the key: it is in git. Then name the variable that holds the new one",
    ),
    "secretInUrl": Meaning(
        "A URL holds a user, a password, a key or a token.",
        "revoke it: it is in git. Then take it out; `apiKeyEnv` names where a key is",
    ),
    "secretInText": Meaning(
        "A text holds what looks like a key or token.", "revoke it: it is in git. Then take it out"
    ),
    "secretInLaunch": Meaning(
        "Launch settings hold a key or token in plain text.",
        "revoke it: it is in git. Then refer to it, as in `${NAME}`",
    ),
}
