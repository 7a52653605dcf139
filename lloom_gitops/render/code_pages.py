"""The page of one code: what a finding, a reason, a note, a step, an outcome or an exit code means and asks for."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from lloom_gitops.checks.documents_codes import MEANINGS as OF_DOCUMENTS
from lloom_gitops.checks.plan_codes import MEANINGS as OF_PLANS
from lloom_gitops.model.errors import ExitCode
from lloom_gitops.model.words import Outcome, StepKind
from lloom_gitops.render.causes import CAUSES, GAPS, LANES, STOPS
from lloom_gitops.render.remedies import REMEDIES
from lloom_gitops.render.status_text import REASONS, RESULTS

NOTES: dict[str, str] = {
    "belowWish": "A lane has less residency than people wish, because memory forces it; the plan says by how much.",
    "headLost": "The head is lost, so that routes can't be written until it is back. Nothing is left half done.",
    "inferredArch": "A recipe does not say its compute archs; they were read from the launch setting that is named.",
    "inferredSequences": "A recipe does not say how many sequences it serves at once; a launch setting does.",
    "inferredTensorParallel": "A recipe does not say its tensor parallel degree; a launch setting asks for more ranks.",
    "nodeLost": "A node is lost or has left: its lanes don't count, and routes lead elsewhere.",
    "nodeNeverSeen": "A declared node was never seen, so nothing is planned there.",
    "nodeUnreadable": "A node can't be read now: everything on it keeps its last state, and nothing is moved for it.",
    "notRouted": "A lane keeps running though no route uses it. Outside cordon and drain nothing stops it for that.",
    "oneModelRoute": "The head's build gives an alias one model, so that the rest of its route is left out.",
    "overBudget": "A domain was over its budget when the pool was adopted. It stays so, and may only shrink.",
    "residencyByConfig": "The gateway's build takes residency from its own file, so that a person sets it.",
    "residencyRestarts": "The gateway's build restarts a lane for a new residency; the plan counts the load.",
    "scaledFigures": "What answers first was measured on other machines; its figures are scaled by memory bandwidth.",
    "stopWhenBack": "A lane ran on a node that is lost, and others answer now. Stop it when the node is back.",
    "undeclaredNode": "A node is enrolled only. Declare it in `fleet/nodes/`, and its lanes can be routed to.",
}
"""Notes of a plan: what each says; a note changes nothing."""

STEPS: dict[StepKind, str] = {
    StepKind.INSTALL: "The gateway of the node installs a recipe: weights, image, an entry in its configuration.",
    StepKind.START: "The owner's gateway loads a lane with the planned residency, and it is seen to run.",
    StepKind.RESIDENCY: "The owner's gateway changes what a lane is kept loaded for.",
    StepKind.ROUTE: "The head's gateway writes an alias's route: its models in order and the lane behind each.",
    StepKind.DRAIN: "Nothing is sent to a lane any more; its requests in flight end, or the time limit does.",
    StepKind.STOP: "The owner's gateway unloads a lane, after its routes have left it.",
    StepKind.MANUAL: "A person does it, as the step says. It is done when it is seen done, or confirmed.",
}
"""Kinds of steps."""

OUTCOMES: dict[Outcome, str] = {
    Outcome.DONE: "It was carried out and seen to hold.",
    Outcome.ALREADY: "Its effect held before anything was done.",
    Outcome.SKIPPED: "A step that it waits for did not come to its end.",
    Outcome.FAILED: "The gateway refused it, or its effect was not seen in time.",
    Outcome.STALE: "A fact that it relies on no longer holds; the tip is planned anew.",
    Outcome.UNKNOWN: "After a crash or a lost connection its effect can't be told; it is observed first.",
    Outcome.WAITING: "It waits for a person, and holds up nothing else.",
}
"""What became of a step."""

EXITS: dict[ExitCode, str] = {
    ExitCode.OK: "Done, or nothing to do (and it says which).",
    ExitCode.BUG: "An unexpected failure: a bug, reported as one.",
    ExitCode.USAGE: "The call's words are off.",
    ExitCode.FINDINGS: "Documents have findings that are errors; `lloom-gitops check` shows all of them.",
    ExitCode.CHANGES: "`plan --exit-code`: there are steps to take.",
    ExitCode.REFUSED: "Refused: stale, not authentic or not current, unsigned, over a cap, a wish that can't be met.",
    ExitCode.CONFLICT: "The branch moved and the retries are used up, or another agent holds the lease.",
    ExitCode.UNREACHABLE: "The outside could not be reached: a gateway, or the remote.",
    ExitCode.SIMULATION: "An expectation or a judge of a simulation failed.",
    ExitCode.PARTIAL: "Applied in part, or failed: see the status.",
}
"""Exit codes of the command line."""


class CodePage(msgspec.Struct, frozen=True):
    """One meaning of a code: which list it stands in, what it says, what to do about it (empty: nothing)."""

    code: str
    family: str
    says: str
    remedy: str = ""


def code_pages(code: str) -> tuple[CodePage, ...]:
    """Every meaning of a code, in the order of the lists; empty where no list has it."""
    found = (_page(code, family, look(code)) for family, look in _FAMILIES)
    return tuple(page for page in found if page is not None)


def known_codes() -> tuple[str, ...]:
    """All codes that have a page, sorted."""
    lists = (OF_DOCUMENTS, OF_PLANS, CAUSES, LANES, GAPS, STOPS, NOTES, STEPS, OUTCOMES, RESULTS, REASONS)
    return tuple(sorted({str(code) for each in lists for code in each} | {str(int(code)) for code in EXITS}))


def _page(code: str, family: str, found: tuple[str, str] | None) -> CodePage | None:
    return None if found is None else CodePage(code, family, *found)


def _document(code: str) -> tuple[str, str] | None:
    return OF_DOCUMENTS.get(code)


def _cause(code: str) -> tuple[str, str] | None:
    return None if code not in CAUSES else (_plain(CAUSES[code]), _plain(REMEDIES[code]))


def _plain(template: str) -> str:
    """A sentence about anything: its blanks named."""
    names = ("node", "lane", "model", "recipe", "domain", "needs", "has", "short")
    blanks = {name: {"short": "SIZE"}.get(name, name.upper()) for name in names}
    return template.format(**blanks)


def _words(table: dict[str, str]) -> Callable[[str], tuple[str, str] | None]:
    return lambda code: None if code not in table else (_plain(table[code]), "")


def _exit(code: str) -> tuple[str, str] | None:
    said = {str(int(exit_code)): says for exit_code, says in EXITS.items()}
    return None if code not in said else (said[code], "")


_FAMILIES: tuple[tuple[str, Callable[[str], tuple[str, str] | None]], ...] = (
    ("a finding about documents", _document),
    ("a finding about a plan", _words(OF_PLANS)),
    ("a reason that something is not there", _cause),
    ("a reason that a lane is in the plan", _words(LANES)),
    ("a reason that an alias answers nothing for a while", _words(GAPS)),
    ("a reason that a running lane is stopped", _words({str(word): says for word, says in STOPS.items()})),
    ("a note in a plan", _words(NOTES)),
    ("a kind of step", _words({str(word): says for word, says in STEPS.items()})),
    ("an outcome of a step", _words({str(word): says for word, says in OUTCOMES.items()})),
    ("a result of an apply", _words({str(word): says for word, says in RESULTS.items()})),
    ("a reason for what the controller decided", _words(REASONS)),
    ("an exit code", _exit),
)
