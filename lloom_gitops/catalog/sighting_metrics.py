"""Warm figures and demand from a gateway's metrics (pure). Too few samples, or too short a time, is unknown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from statistics import median
from typing import Any

import msgspec

from lloom_gitops.catalog.sighting_wire import amount, by_id, items, table, text, whole
from lloom_gitops.model.inventory import Demand, Performance
from lloom_gitops.model.words import ModelKind

_FEWEST_SAMPLES = 5
_FEWEST_HOURS = Decimal(1)
_WIDTH_HOURS = {"7d": 168, "30d": 720}


def period_of(window_hours: int) -> str:
    """The shortest period of `/gateway/metrics` that covers a window; `today` covers next to nothing after midnight."""
    return "7d" if window_hours <= _WIDTH_HOURS["7d"] else "30d"


def performance(metrics: Mapping[str, Any], kinds: Mapping[str, ModelKind]) -> dict[str, Performance]:
    """Figures by model id of that gateway. `kinds` names the models that count, with their kind.

    Embeddings have no token rate: what the gateway counts as their output is estimated from bytes. Media count not at
    all: how long they take depends on what was asked for.
    """
    buckets = by_id(metrics.get("models"))
    live = table(table(metrics.get("performance")).get("models"))
    recent = [table(row) for row in items(metrics.get("recent"))]
    found: dict[str, Performance] = {}
    for model, kind in sorted(kinds.items()):
        if kind not in (ModelKind.CHAT, ModelKind.EMBEDDING):
            continue
        bucket = buckets.get(model, {})
        window = table(live.get(model))
        ttft = _ttft(bucket, window, [row for row in recent if row.get("model") == model])
        rate = _rate(bucket, window) if kind is ModelKind.CHAT else None
        if ttft is not None or rate is not None:
            found[model] = Performance(ttft_ms=ttft, tokens_per_second=rate)
    return found


def _ttft(bucket: Mapping[str, Any], window: Mapping[str, Any], recent: list[dict[str, Any]]) -> int | None:
    """Typical time to the first content, without cold loads as far as the build lets us tell them apart."""
    if (whole(window.get("samples")) or 0) >= _FEWEST_SAMPLES:
        return whole(window.get("meanFirstContentMs"))
    times = [whole(row.get("firstContentMs")) for row in recent if row.get("ok") is True]
    known = [time for time in times if time is not None]
    if len(known) >= _FEWEST_SAMPLES:
        return round(median(known))
    count, total = whole(bucket.get("firstContentCount")) or 0, whole(bucket.get("firstContentMs")) or 0
    if count < _FEWEST_SAMPLES:
        return None
    # The longest one is likely to have waited for a load.
    return round((total - (whole(bucket.get("maxFirstContentMs")) or 0)) / (count - 1))


def _rate(bucket: Mapping[str, Any], window: Mapping[str, Any]) -> Decimal | None:
    if (whole(window.get("samples")) or 0) >= _FEWEST_SAMPLES and amount(window.get("tokensPerSecond")):
        return amount(window.get("tokensPerSecond"))
    if (whole(bucket.get("decodeSamples")) or 0) < _FEWEST_SAMPLES:
        return None
    return amount(bucket.get("decodeTokensPerSecond")) or None


def demand(metrics: Mapping[str, Any], period: str, routes: Mapping[str, tuple[str, ...]]) -> dict[str, Demand] | None:
    """Demand by alias from the head's metrics; None while they cover less than an hour.

    Older builds count by model alone. What was asked for is known there of the last requests only: a model's count is
    shared out by them, or evenly among the aliases routed to it where none of them tells (CAT-7). Requests by the
    model's own id are nobody's demand. `routes` holds the head's own ids.
    """
    hours = _hours(metrics, period)
    if hours is None:
        return None
    counts = _by_request(metrics, routes) if "requested" in metrics else _by_model(metrics, routes)
    return {
        alias: Demand(requests_per_hour=_rough(count.requests / hours), output_tokens=count.mean_tokens)
        for alias, count in sorted(counts.items())
        if count.requests
    }


class _Count(msgspec.Struct, frozen=True):
    """Requests; and of the streamed ones, whose tokens are counted and not estimated, how many and their tokens."""

    requests: Decimal = Decimal(0)
    streams: Decimal = Decimal(0)
    tokens: Decimal = Decimal(0)

    @property
    def mean_tokens(self) -> int | None:
        return round(self.tokens / self.streams) if self.streams else None

    def plus(self, bucket: Mapping[str, Any], share: Decimal) -> _Count:
        return _Count(
            self.requests + (whole(bucket.get("requests")) or 0) * share,
            self.streams + (whole(bucket.get("decodeSamples")) or 0) * share,
            self.tokens + (whole(bucket.get("decodeTokens")) or 0) * share,
        )


def _by_request(metrics: Mapping[str, Any], routes: Mapping[str, tuple[str, ...]]) -> dict[str, _Count]:
    """Newer builds keep a bucket for each id that clients asked for."""
    buckets = by_id(metrics.get("requested"))
    return {alias: _Count().plus(buckets[alias], Decimal(1)) for alias in routes if alias in buckets}


def _by_model(metrics: Mapping[str, Any], routes: Mapping[str, tuple[str, ...]]) -> dict[str, _Count]:
    counts = {alias: _Count() for alias in routes}
    for model, bucket in by_id(metrics.get("models")).items():
        for alias, share in _shares(model, metrics, routes).items():
            counts[alias] = counts[alias].plus(bucket, share)
    return counts


def _shares(model: str, metrics: Mapping[str, Any], routes: Mapping[str, tuple[str, ...]]) -> dict[str, Decimal]:
    """Part of a model's requests that each alias asked for."""
    recent = (table(row) for row in items(metrics.get("recent")))
    asked = Counter(text(row.get("requestedModel")) for row in recent if row.get("model") == model)
    asked.pop(None, None)
    if asked:
        total = Decimal(asked.total())
        return {alias: count / total for alias, count in asked.items() if alias is not None and alias in routes}
    routed = [alias for alias, route in routes.items() if model in route]
    return dict.fromkeys(routed, Decimal(1) / len(routed)) if routed else {}


def _rough(rate: Decimal) -> Decimal:
    """Two significant digits: more would be noise, and never enter a decision."""
    places = 1 - rate.adjusted()
    return amount(rate, places) or Decimal(0)


def _hours(metrics: Mapping[str, Any], period: str) -> Decimal | None:
    """Hours that the counts cover: the period, or less when the gateway began to count later."""
    now = _time(metrics.get("generatedAt"))
    since = _time(table(metrics.get("persistence")).get("since"))
    if now is None or since is None:
        return None
    counted = Decimal(str((now - since).total_seconds())) / 3600
    return min(counted, Decimal(_WIDTH_HOURS[period])) if counted >= _FEWEST_HOURS else None


def _time(value: Any) -> datetime | None:
    try:
        found = datetime.fromisoformat(str(value))
    except ValueError:
        return None
    return found if found.tzinfo is not None else None
