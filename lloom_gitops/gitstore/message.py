"""Commit messages: an imperative subject, one body line a step, and the trailers that carry the audit facts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

SUBJECT_LIMIT = 72
"""Characters of a subject (documents.md, Commit)."""

TRAILERS = (
    "Plan-Id",
    "Plan-Commit",
    "Reviewed-As",
    "Result",
    "Steps",
    "Trigger",
    "Agent",
    "Inventory-Digest",
)
"""The trailers we write, in the order in which they stand in a message."""

_BLANK_LINES = re.compile(r"\n[ \t]*\n")
_TRAILER_LINE = re.compile(r"([A-Za-z0-9][A-Za-z0-9-]*): ?(.*)\Z")


def clean_text(text: str) -> str:
    """`text` as one line: white space folded, control and format characters dropped, so that nothing that a node or
    a gateway said can add a line, a trailer or an escape sequence to a commit."""
    spaced = "".join(" " if c.isspace() else c for c in text)
    return " ".join("".join(c for c in spaced if c.isprintable()).split())


@dataclass(frozen=True, slots=True)
class CommitMessage:
    """A message as we write it. Texts are cleaned and the subject is cut on construction, so two messages that render
    alike are equal.

    `trailers` may hold only names of `TRAILERS`; empty values are left out.
    """

    subject: str
    body: tuple[str, ...] = ()
    trailers: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        unknown = [name for name in self.trailers if name not in TRAILERS]
        if unknown:
            raise ValueError(f"not a trailer of ours: {unknown[0]!r}")
        subject = clean_text(self.subject)
        if not subject:
            raise ValueError("a commit needs a subject")
        if len(subject) > SUBJECT_LIMIT:
            subject = subject[: SUBJECT_LIMIT - 1].rstrip() + "…"
        values = ((name, clean_text(self.trailers.get(name, ""))) for name in TRAILERS)
        object.__setattr__(self, "subject", subject)
        object.__setattr__(self, "body", tuple(line for line in map(clean_text, self.body) if line))
        object.__setattr__(self, "trailers", MappingProxyType({name: value for name, value in values if value}))

    def render(self) -> str:
        """The message's text; `parse_message` reads it back to an equal value."""
        parts = [self.subject]
        # Indented, so that no body line can pass for a trailer, and git never takes the block for one.
        if self.body:
            parts.append("\n".join(f"  {line}" for line in self.body))
        if self.trailers:
            parts.append("\n".join(f"{name}: {value}" for name, value in self.trailers.items()))
        return "\n\n".join(parts) + "\n"


def split_message(text: str) -> tuple[str, tuple[str, ...], dict[str, str]]:
    """Subject, body lines and trailers of any commit's message, also of one that a person or a forge wrote.

    Trailers are the last of several paragraphs, if each of its lines is one or one of them is ours (a forge or
    `cherry-pick -x` may add lines of its own); of a name that comes twice the last wins.
    """
    paragraphs = [block.strip("\n").split("\n") for block in _BLANK_LINES.split(text) if block.strip()]
    if not paragraphs:
        return "", (), {}
    subject = " ".join(line.strip() for line in paragraphs[0])
    trailers = _trailers(paragraphs[-1]) if len(paragraphs) > 1 else {}
    middle = paragraphs[1:-1] if trailers else paragraphs[1:]
    return subject, tuple(line.strip() for block in middle for line in block), trailers


def parse_message(text: str) -> CommitMessage:
    """What `CommitMessage.render` wrote, as an equal value; trailers that are not ours are dropped."""
    subject, body, trailers = split_message(text)
    return CommitMessage(subject, body, {name: value for name, value in trailers.items() if name in TRAILERS})


def _trailers(lines: list[str]) -> dict[str, str]:
    found = {match[1]: match[2].strip() for match in map(_TRAILER_LINE.match, lines) if match is not None}
    whole = all(_TRAILER_LINE.match(line) for line in lines)
    return found if whole or any(name in TRAILERS for name in found) else {}
