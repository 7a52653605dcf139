"""Times as the gateway writes them."""

from __future__ import annotations

from datetime import UTC, datetime


def iso(epoch_ms: int | None) -> str | None:
    """ISO 8601 with milliseconds and `Z`; None stays None."""
    if epoch_ms is None:
        return None
    at = datetime.fromtimestamp(epoch_ms // 1000, tz=UTC)
    return f"{at:%Y-%m-%dT%H:%M:%S}.{epoch_ms % 1000:03d}Z"
