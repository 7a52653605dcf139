"""Progress of an apply on stderr: a live table in a terminal, one line for each news elsewhere."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any

from lloom_gitops.cli.output import tell

if TYPE_CHECKING:
    from lloom_gitops.agent.apply import Progress


class PlainProgress:
    """`[2/5] done start:image-03`, in the order in which things happen."""

    def __enter__(self) -> PlainProgress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def __call__(self, news: Progress) -> None:
        """Say one news."""
        word = news.outcome or "begin"
        tell(f"[{news.settled}/{news.total}] {word} {news.step.id}" + (f": {news.says}" if news.says else ""))


class LiveProgress(PlainProgress):
    """A table that is redrawn in place."""

    def __init__(self) -> None:
        self._rows: dict[str, tuple[str, str]] = {}
        self._live: Any = None

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def __call__(self, news: Progress) -> None:
        """Show one news."""
        if self._live is None:
            from rich.console import Console
            from rich.live import Live

            self._live = Live(console=Console(stderr=True), refresh_per_second=8)
            self._live.start()
        self._rows[news.step.id] = (news.outcome or "", news.says or "")
        self._live.update(self._table(f"{news.settled} of {news.total} steps"))

    def _table(self, title: str) -> Any:
        from rich.spinner import Spinner
        from rich.table import Table
        from rich.text import Text

        table = Table(title=title, box=None, show_header=False, title_justify="left")
        for step, (outcome, says) in self._rows.items():
            table.add_row(Text(outcome) if outcome else Spinner("dots"), Text(step), Text(says))
        return table


def progress(*, live: bool) -> PlainProgress:
    """Live where stderr is a terminal and colours are wanted."""
    import sys

    return LiveProgress() if live and sys.stderr.isatty() else PlainProgress()
