"""The real clock."""

from __future__ import annotations

import time
from datetime import UTC, datetime


class SystemClock:
    """`ports.Clock` over the machine's own clock."""

    def now(self) -> datetime:
        """The time now, aware, in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds that never go back; only differences mean something."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait; not at all for zero or less."""
        if seconds > 0:
            time.sleep(seconds)
