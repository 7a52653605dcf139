"""The audit trail for a person: plans and what came of them, newest first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from lloom_gitops.render.amounts import short_id
from lloom_gitops.render.clean import shown
from lloom_gitops.render.layout import wrap
from lloom_gitops.render.page import Page

_GOOD = frozenset({"succeeded"})
_BAD = frozenset({"failed", "partial"})
_FACTS = (("Trigger", "asked by"), ("Reviewed-As", "reviewed as"), ("Steps", "steps"), ("Agent", "agent"))
_DIGESTS = frozenset({"Reviewed-As"})


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One commit of the trail. `when` is ISO 8601, `plan` the id of the plan that it commits or is about, `result` the
    word of its trailer, `trailers` all of them."""

    commit: str
    when: str
    who: str
    subject: str
    plan: str | None = None
    result: str | None = None
    body: tuple[str, ...] = ()
    trailers: Mapping[str, str] | None = None


def log_text(entries: Iterable[LogEntry], page: Page, *, steps: bool = False) -> str:
    """A block of lines a commit; with `steps` also what its body says of each step. Empty for no entries."""
    return "".join("\n".join(_block(entry, page, steps)) + "\n" for entry in entries)


def _block(entry: LogEntry, page: Page, steps: bool) -> list[str]:
    commit = f"{shown(entry.commit[:8]):<8}"
    head, *rest = wrap(shown(entry.subject), page.width, f"{commit}  ", " " * 10)
    lines = [f"{page.paint.faint(commit)}{head[len(commit) :]}", *rest]
    facts = [f"{_minute(entry.when)} by {shown(entry.who)}"]
    if entry.plan:
        facts.append(f"plan {shown(short_id(entry.plan))}")
    trailers = entry.trailers or {}
    for name, words in _FACTS:
        value = trailers.get(name)
        if value:
            facts.append(f"{words} {shown(short_id(value) if name in _DIGESTS else value)}")
    lines += wrap(", ".join(facts), page.width, " " * 10)
    if entry.result:
        head, *rest = wrap(shown(entry.result), page.width, " " * 17)
        lines += [f"{' ' * 10}result {_tone(entry.result, page)(head.strip())}", *rest]
    if steps:
        for line in entry.body:
            lines += wrap(shown(line), page.width, " " * 12)
    return lines


def _tone(result: str, page: Page) -> Callable[[str], str]:
    return page.paint.good if result in _GOOD else page.paint.bad if result in _BAD else page.paint.warn


def _minute(when: str) -> str:
    """`2026-10-02 14:03 +02:00` of an ISO 8601 time."""
    if len(when) < 19 or when[10] != "T":
        return shown(when)
    zone = when[19:].replace("Z", "+00:00")
    return shown(f"{when[:10]} {when[11:16]} {zone}".rstrip())
