"""The entry of the command line: runs a command and turns whatever comes of it into words and an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lloom_gitops import __version__

if TYPE_CHECKING:
    from lloom_gitops.model.errors import LloomGitopsError

INTERRUPTED = 130
"""Exit code after Ctrl-C, as a shell counts it (128 + SIGINT)."""
PIPE_CLOSED = 141
"""Exit code when the reader of stdout went away, as a shell counts it (128 + SIGPIPE)."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit code follows docs/reference/cli.md."""
    words = list(sys.argv[1:] if argv is None else argv)
    if words == ["--version"]:  # before anything else is imported: scripts ask for it often
        print(f"lloom-gitops {__version__}")
        return 0
    try:
        code = _run(words)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # What is still buffered has no reader; without this, the interpreter would complain about it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE_CLOSED
    return code


def _run(words: list[str]) -> int:
    from typer import Abort, TyperException

    from lloom_gitops.cli.output import tell
    from lloom_gitops.cli.registry import application
    from lloom_gitops.model.errors import ExitCode, LloomGitopsError, UsageError

    try:
        code = application().main(args=words, prog_name="lloom-gitops", standalone_mode=False)
    except LloomGitopsError as error:
        return _report(error, words)
    except TyperException as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            tell(error.format_message())
            return int(ExitCode.USAGE)
        return _report(UsageError(code="usage", message=error.format_message(), hint=_help_hint(error)), words)
    except Abort:
        return INTERRUPTED
    except (KeyboardInterrupt, BrokenPipeError):
        raise
    except SystemExit as ended:
        # typer turns a closed pipe into an exit with code 1, which here means a bug
        if isinstance(ended.__context__, BrokenPipeError):
            raise ended.__context__ from None
        raise
    except Exception as error:
        return _report_bug(error, words)
    return int(code) if isinstance(code, int) else 0


def _help_hint(error: Exception) -> str:
    path = getattr(getattr(error, "ctx", None), "command_path", "lloom-gitops")
    return f"`{path} --help` shows how it is called"


def _report(error: LloomGitopsError, words: list[str]) -> int:
    """Say what a refusal says: as JSON on stdout where asked for, else as text on stderr."""
    from lloom_gitops.cli.output import put_json, tell
    from lloom_gitops.render.findings import error_text
    from lloom_gitops.render.paint import Paint

    if _asks_json(words):
        said = {"code": error.code, "message": error.message, "hint": error.hint, "exitCode": int(error.exit_code)}
        put_json({"error": {**said, "findings": list(error.findings)}})
    else:
        tell(error_text(error, Paint(color="--no-color" not in words and sys.stderr.isatty())))
    return int(error.exit_code)


def _report_bug(error: Exception, words: list[str]) -> int:
    import traceback

    from lloom_gitops.cli.output import tell
    from lloom_gitops.model.errors import LloomGitopsError

    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "lloom_gitops" in Path(frame.filename).parts] or frames
    where = f"{Path(ours[-1].filename).name}:{ours[-1].lineno}"
    bug = LloomGitopsError(
        code="bug",
        message=f"this is a bug in lloom-gitops: {type(error).__name__} at {where}: {error}",
        hint="run it again as `lloom-gitops -v ...` and report what it prints",
    )
    code = _report(bug, words)
    if any(word in ("-v", "-vv") for word in words):
        tell("".join(traceback.format_exception(error)))
    return code


def _asks_json(words: list[str]) -> bool:
    return "--json" in words[: words.index("--") if "--" in words else len(words)]


if __name__ == "__main__":
    sys.exit(main())
