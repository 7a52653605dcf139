"""The gateway's metrics: cumulative buckets, recent requests, what is active. Shapes of `/gateway/metrics`."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

from lloom_gitops.sim.gateway.refusals import Doc
from lloom_gitops.sim.gateway.stamps import iso

_KEPT = 200
_SHOWN = 50
_RATES = 10
_DAY_MS = 86_400_000
_PERIOD_DAYS = {"today": 1, "7d": 7, "30d": 30}
_SUMS = (
    "requests", "errors", "streams", "durationMs", "responseBytes", "firstContentCount", "firstContentMs",
    "generationDurationMs", "decodeTokens", "decodeSamples", "estimatedDecodeSamples", "inputTokens",
    "outputTokens", "totalTokens",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """One request that ended. `first_ms` None: nothing came back."""

    at: int
    route: str
    model: str
    requested: str
    upstream: str
    kind: str
    backend: str
    runtime: str | None
    target: str
    node: str | None
    status: int
    stream: bool
    duration_ms: int
    first_ms: int | None
    input_tokens: int = 0
    output_tokens: int = 0
    bytes_out: int = 0
    bytes_in: int = 0
    error: str | None = None

    @property
    def ok(self) -> bool:
        return self.status < 400

    @property
    def decoding_ms(self) -> int:
        return self.duration_ms - (self.first_ms or 0)

    @property
    def decode_rate(self) -> float:
        """Tokens a second after the first one."""
        return 1000 * (self.output_tokens - 1) / self.decoding_ms


@dataclass(slots=True)
class Bucket:
    id: str
    sums: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_SUMS, 0))
    least_first: int | None = None
    most_first: int | None = None
    rates: list[float] = field(default_factory=list)
    last: Doc | None = None

    def add(self, served: Served) -> None:
        sums = self.sums
        sums["requests"] += 1
        sums["errors"] += not served.ok
        sums["streams"] += served.stream
        sums["durationMs"] += served.duration_ms
        sums["responseBytes"] += served.bytes_out
        sums["inputTokens"] += served.input_tokens
        sums["outputTokens"] += served.output_tokens
        sums["totalTokens"] += served.input_tokens + served.output_tokens
        self.last = {
            "at": iso(served.at),
            "status": served.status,
            "ok": served.ok,
            "durationMs": served.duration_ms,
            "firstContentMs": served.first_ms,
            **({"error": served.error} if served.error else {}),
        }
        if served.first_ms is None:
            return
        sums["firstContentCount"] += 1
        sums["firstContentMs"] += served.first_ms
        self.least_first = min(served.first_ms, self.least_first if self.least_first is not None else served.first_ms)
        self.most_first = max(served.first_ms, self.most_first or 0)
        if _decoded(served):
            sums["generationDurationMs"] += served.decoding_ms
            sums["decodeTokens"] += served.output_tokens - 1
            sums["decodeSamples"] += 1
            self.rates = [*self.rates, served.decode_rate][-_RATES:]

    def merge(self, other: Bucket) -> None:
        for key in _SUMS:
            self.sums[key] += other.sums[key]
        firsts = [f for f in (self.least_first, other.least_first) if f is not None]
        self.least_first = min(firsts, default=None)
        self.most_first = max((f for f in (self.most_first, other.most_first) if f is not None), default=None)
        self.rates = [*self.rates, *other.rates][-_RATES:]
        self.last = other.last or self.last

    def body(self) -> Doc:
        sums = self.sums
        body: Doc = {"id": self.id, **{key: sums[key] for key in _SUMS[:7]}}
        body |= {"minFirstContentMs": self.least_first, "maxFirstContentMs": self.most_first}
        body |= {key: sums[key] for key in _SUMS[7:11]}
        body["recentDecodeRates"] = self.rates
        body |= {key: sums[key] for key in _SUMS[11:]}
        requests, firsts = sums["requests"], sums["firstContentCount"]
        seconds = sums["durationMs"] / 1000
        return {
            **body,
            "last": self.last,
            "avgDurationMs": round(sums["durationMs"] / requests, 2) if requests else 0,
            "avgFirstContentMs": round(sums["firstContentMs"] / firsts, 2) if firsts else None,
            "outputTokensPerSecond": round(sums["outputTokens"] / seconds, 2) if seconds else 0,
            "decodeTokensPerSecond": round(sum(self.rates) / len(self.rates), 2) if self.rates else None,
        }


class Ledger:
    """Everything counted since `since`: by UTC day, so that periods can be told apart. `recent` is oldest first."""

    def __init__(self, since: int) -> None:
        self.since = since
        self.days: dict[int, dict[str, dict[str, Bucket]]] = {}
        self.recent: deque[tuple[Served, int]] = deque(maxlen=_KEPT)
        self.active: dict[int, Doc] = {}
        self.count = 0

    def begin(self, now: int, facts: Doc) -> int:
        self.count += 1
        self.active[self.count] = {"id": f"conn_{self.count}", "startedAt": iso(now), "begun": now, **facts}
        return self.count

    def end(self, connection: int, served: Served, *, listed: bool = True) -> None:
        """Count a request that ended; `listed` ones show among the recent."""
        self.active.pop(connection, None)
        if listed:
            self.recent.append((served, connection))
        day = self.days.setdefault(served.at // _DAY_MS, {"models": {}, "routes": {}, "requested": {}})
        for group, key in (("models", served.model), ("routes", served.route), ("requested", served.requested)):
            day[group].setdefault(key, Bucket(key)).add(served)

    def body(self, now: int, *, newer: bool, period: str = "all", model: str | None = None) -> Doc:
        """The body of `/gateway/metrics`, without `host` and `persistence`. `model` narrows all but the totals."""
        period = period if period in _PERIOD_DAYS else "all"
        groups = self._groups(now, period)
        totals = Bucket(period)
        for bucket in groups["models"].values():
            totals.merge(bucket)
        models = {key: b for key, b in groups["models"].items() if model in (None, key)}
        recent = [(s, c) for s, c in self.recent if model in (None, s.model)]
        body: Doc = {
            "object": "gateway.metrics",
            "generatedAt": iso(now),
            "period": period,
            "totals": totals.body(),
            "models": [b.body() for b in models.values()],
            "routes": [b.body() for b in groups["routes"].values()],
            "active": [self._active(now, facts) for facts in self.active.values() if model in (None, facts["model"])],
            "rolling": {"short": _rolling(recent, now, 10_000), "minute": _rolling(recent, now, 60_000)},
            "recent": [_recent(s, c) for s, c in recent[-_SHOWN:]],
        }
        if newer:
            body["requested"] = [b.body() for b in groups["requested"].values()]
            body["performance"] = self._performance(now)
        return body

    def _groups(self, now: int, period: str) -> dict[str, dict[str, Bucket]]:
        first = now // _DAY_MS - _PERIOD_DAYS[period] + 1 if period in _PERIOD_DAYS else 0
        merged: dict[str, dict[str, Bucket]] = {"models": {}, "routes": {}, "requested": {}}
        for day in sorted(self.days):
            if day >= first:
                for group, buckets in self.days[day].items():
                    for key, bucket in buckets.items():
                        merged[group].setdefault(key, Bucket(key)).merge(bucket)
        return merged

    def _active(self, now: int, facts: Doc) -> Doc:
        return {**{k: v for k, v in facts.items() if k != "begun"}, "elapsedMs": now - facts["begun"]}

    def _performance(self, now: int) -> Doc:
        window = 600_000
        samples: dict[str, list[Served]] = {}
        for served, _ in self.recent:
            if now - served.at <= window:
                samples.setdefault(served.model, []).append(served)
        active = [facts["model"] for facts in self.active.values()]
        models = {m: _performance_of(found, active.count(m)) for m, found in samples.items()}
        return {"windowMs": window, "maxSamplesPerModel": 256, "models": models}

    def snapshot(self) -> Doc:
        """Totals and daily roll-ups, as JSON: what survives a restart."""
        return {
            "since": self.since,
            "days": {
                str(day): {
                    group: [{f: getattr(b, f) for f in Bucket.__dataclass_fields__} for b in buckets.values()]
                    for group, buckets in groups.items()
                }
                for day, groups in self.days.items()
            },
        }

    def restore(self, saved: dict[str, Any]) -> None:
        self.since = saved["since"]
        self.days = {
            int(day): {group: {b["id"]: Bucket(**b) for b in buckets} for group, buckets in groups.items()}
            for day, groups in saved["days"].items()
        }


def _rolling(recent: list[tuple[Served, int]], now: int, window: int) -> Doc:
    within = [s for s, _ in recent if now - s.at <= window]
    tokens = sum(s.output_tokens for s in within)
    decoded = sum(s.output_tokens for s in within if s.stream)
    seconds = sum(s.duration_ms for s in within) / 1000
    return {
        "windowMs": window,
        "requests": len(within),
        "outputTokens": tokens,
        "decodeTokens": decoded,
        "outputTokensPerSecond": round(tokens / seconds, 2) if seconds else 0,
    }


def _performance_of(samples: list[Served], active: int) -> Doc:
    good = [s for s in samples if s.ok]
    durations = sorted(s.duration_ms for s in good)
    firsts = [s.first_ms for s in good if s.first_ms is not None]
    tokens = [s.output_tokens for s in good]
    rates = [s.decode_rate for s in good if _decoded(s)]
    return {
        "samples": len(samples),
        "successes": len(good),
        "errors": len(samples) - len(good),
        "lastSampleAt": max(s.at for s in samples),
        "activeRequests": active,
        "meanDurationMs": _mean(durations),
        "p95DurationMs": durations[min(len(durations) - 1, -(-len(durations) * 95 // 100) - 1)] if durations else None,
        "meanFirstContentMs": _mean(firsts),
        "meanOutputTokens": _mean(tokens),
        "tokensPerSecond": _mean(rates),
    }


def _decoded(served: Served) -> bool:
    return served.stream and served.first_ms is not None and served.output_tokens > 1 and served.decoding_ms > 0


def _mean(values: list[int] | list[float]) -> float | None:
    return round(sum(values) / len(values), 1) if values else None


def _recent(served: Served, connection: int) -> Doc:
    row: Doc = {
        "id": f"conn_{connection}",
        "at": iso(served.at),
        "route": served.route,
        "model": served.model,
        "requestedModel": served.requested,
        "upstreamModel": served.upstream,
        "kind": served.kind,
        "backend": served.backend,
        "runtime": served.runtime,
        "target": served.target,
        "node": served.node,
        "caller": None,
        "status": served.status,
        "ok": served.ok,
        "stream": served.stream,
        "durationMs": served.duration_ms,
        "firstContentMs": served.first_ms,
        "lastContentMs": served.duration_ms if served.first_ms is not None else None,
        "responseBytes": served.bytes_out,
        "requestBytes": served.bytes_in,
        "outputChars": 4 * served.output_tokens,
        "usage": _usage(served) if served.ok else None,
    }
    return {**row, "error": served.error} if served.error else row


def _usage(served: Served) -> Doc:
    tokens = {"input_tokens": served.input_tokens, "output_tokens": served.output_tokens}
    return {**tokens, "total_tokens": served.input_tokens + served.output_tokens}
