"""Findings (faults of documents and plans) and refusals (errors that end a command with an exit code)."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum, StrEnum

import msgspec


class Severity(StrEnum):
    """How bad a finding is: an `error` is fatal (exit 3), a `warning` is not."""

    ERROR = "error"
    WARNING = "warning"


class ExitCode(IntEnum):
    """The command line's exit codes; one meaning each (docs/reference/cli.md)."""

    OK = 0
    BUG = 1
    USAGE = 2
    FINDINGS = 3
    CHANGES = 4
    REFUSED = 5
    CONFLICT = 6
    UNREACHABLE = 7
    SIMULATION = 8
    PARTIAL = 9


class Finding(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One fault of a document or plan, with its place.

    `file` is relative to the repository, `line` and `column` count from 1 (0: the whole file), `pointer` is a JSON
    Pointer into the document. `wanted` and `found` are short texts; `hint` says what to do.
    """

    code: str
    message: str
    severity: Severity = Severity.ERROR
    file: str = ""
    line: int = 0
    column: int = 0
    pointer: str = ""
    wanted: str | None = None
    found: str | None = None
    hint: str | None = None

    @property
    def place(self) -> str:
        """`file:line:column`, as editors and terminals link it."""
        if not self.file:
            return ""
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file

    @property
    def sort_key(self) -> tuple[str, int, int, str, str, str]:
        """Order of findings: by place, then code, then text."""
        return (self.file, self.line, self.column, self.code, self.pointer, self.message)


class LloomGitopsError(Exception):
    """A refusal or failure that the user is told about. `code` is a closed camelCase word, `hint` says what to do."""

    exit_code: ExitCode = ExitCode.BUG

    def __init__(self, *, code: str, message: str, hint: str | None = None, findings: Sequence[Finding] = ()) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint
        self.findings = tuple(findings)


class UsageError(LloomGitopsError):
    """The call's words are off (exit 2)."""

    exit_code = ExitCode.USAGE


class DocumentError(LloomGitopsError):
    """Documents have fatal findings (exit 3); `findings` holds all of them."""

    exit_code = ExitCode.FINDINGS


class Refused(LloomGitopsError):
    """Stale, not authentic, not current, unsigned, over a cap: a new plan or a person is needed (exit 5)."""

    exit_code = ExitCode.REFUSED


class Conflict(LloomGitopsError):
    """The branch moved and the retries are used up, or the lease is held (exit 6)."""

    exit_code = ExitCode.CONFLICT


class Unreachable(LloomGitopsError):
    """The outside (a gateway, the remote) could not be reached (exit 7)."""

    exit_code = ExitCode.UNREACHABLE
