"""One gateway over HTTP (`ports.Gateway`): tolerant of old and new builds, told apart by what they show."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from lloom_gitops.catalog.sighting_routes import effective_routes
from lloom_gitops.catalog.sighting_wire import items, prose, table, text
from lloom_gitops.catalog.sighting_words import (
    features,
    lane_latched,
    lane_residency,
    lane_state,
    requests_in_flight,
    runtime_rows,
)
from lloom_gitops.drivers.gateway_http_call import GatewayCalls, connection_refused, within
from lloom_gitops.drivers.gateway_http_refusals import LATER, NEVER, NOT_STARTED, admission_refusal, refused
from lloom_gitops.model.words import LaneState, Residency
from lloom_gitops.ports import Clock, GatewayAnswer, LaneReading

READ_SECONDS = 10.0
"""Limit of a read. A gateway itself waits up to 5 s for a node it can't reach, and 1.5 s for each hung lane."""

_POLL_SECONDS = 0.5
_HEALTH_SECONDS = 3.0
_ABSENT = frozenset({"not_found", "http404", "http405"})


class HttpGateway:
    """A gateway's admin API. Talk to the node that owns the lane: newer builds refuse everybody else's lanes.

    `key` is an admin key or None; `health_urls` names the health address of lanes that the gateway does not manage.
    """

    def __init__(
        self, endpoint: str, key: str | None, clock: Clock, *, health_urls: Mapping[str, str] | None = None
    ) -> None:
        self._calls = GatewayCalls(endpoint, key)
        self._clock = clock
        self._health_urls = dict(health_urls or {})
        self._features: frozenset[str] = frozenset()

    def features(self) -> frozenset[str]:
        """What this build can do beyond the oldest (`model.words.Feature`); what it could when it answered last."""
        found = self.features_now()
        if found is not None:
            self._features = found
        return self._features

    def features_now(self) -> frozenset[str] | None:
        """As `features`, but None when the gateway can't be read now."""
        node = self._calls.get("/gateway/node", READ_SECONDS)
        routing = self._calls.get("/gateway/routing", READ_SECONDS) if node.kind == "ok" else node
        if routing.kind != "ok":
            return None
        found = features(node.body, routing.body, has_profiles(self._calls))
        return None if found is None else frozenset(found)

    def reachable(self) -> GatewayAnswer:
        """Whether the gateway answers and takes changes: `deployment_fenced` while its fence is up."""
        status = self._calls.get("/gateway/status", READ_SECONDS)
        if status.kind == "ok" and table(status.body.get("deploymentFence")).get("fenced") is True:
            return refused("deployment_fenced", "the gateway's deployment fence is up", LATER)
        return status

    def read_lane(self, lane: str, *, distributed: bool) -> LaneReading | None:
        """The lane as its owner shows it now; None when the gateway can't be read.

        A readable gateway that does not know the lane gives state `unknown` (or what the lane's health address tells).
        """
        answer = self._calls.get("/gateway/status" if distributed else "/gateway/node", READ_SECONDS)
        if answer.kind != "ok" or not table(answer.body.get("node") or answer.body.get("runtimeManager")):
            return None
        row = runtime_rows(answer.body).get(lane)
        if row is None:
            url = self._health_urls.get(lane)
            return LaneReading(state=LaneState.UNKNOWN if url is None else probe_health(url))
        return LaneReading(
            state=lane_state(row),
            active_requests=requests_in_flight(row),
            residency=lane_residency(row),
            latched=lane_latched(row),
            last_error=prose(row.get("lastError")),
        )

    def admission(self, lane: str) -> GatewayAnswer:
        """A dry admission: `body` is the gateway's plan, refused when loading now would not fit or would stop lanes."""
        answer = self._calls.get(f"/gateway/runtimes/plan?runtime={quote(lane, safe='')}", READ_SECONDS)
        if answer.kind != "ok":
            return answer
        return admission_refusal(lane, answer.body) or answer

    def admit(self, lane: str, timeout_seconds: float) -> GatewayAnswer:
        """Load the lane through admission; holds for the whole load. Never evicts, never restarts a healthy lane."""
        deadline = self._clock.monotonic() + timeout_seconds
        plan = self.admission(lane)
        if plan.kind != "ok":
            return plan
        loaded = any(row.get("requested") and row.get("loaded") for row in map(table, items(plan.body.get("runtimes"))))
        # A lane that is up would be warmed up again, for nothing.
        body = {"apply": True, "yes": True, "force": False, "warmup": not loaded}
        answer = self._write(f"/gateway/runtimes/{quote(lane, safe='')}/admit", body, self._left(deadline))
        if answer.kind == "refused" and answer.code == "bad_request":
            return self._explained(lane, answer)
        return _admitted(lane, answer)

    def stop(self, lane: str, timeout_seconds: float) -> GatewayAnswer:
        """Stop the lane. The gateway does not drain: streams in flight are cut, so wait for them first."""
        answer = self._write(f"/gateway/runtimes/{quote(lane, safe='')}/stop", {}, timeout_seconds)
        if answer.kind == "ok" and answer.body.get("reason") == "externally-managed":
            return refused("externally-managed", f"{lane} is not managed by this gateway", NEVER, answer.body)
        return answer

    def set_residency(self, lane: str, residency: Residency, timeout_seconds: float) -> GatewayAnswer:
        """Change residency by the route that newer builds have, and wait for its job (`noRoute` on older ones)."""
        path = f"/gateway/runtimes/{quote(lane, safe='')}/residency"
        deadline = self._clock.monotonic() + timeout_seconds
        answer = self._write(path, {"policy": residency.value, "yes": True}, timeout_seconds)
        if answer.kind == "refused" and answer.code in _ABSENT:
            return refused("noRoute", "this build changes residency only through its config file", NEVER, answer.body)
        if answer.kind != "ok":
            return answer
        mine = answer.body.get("id")
        return self._await_job(path, deadline, lambda job: job.get("id") == mine, pending="pending")

    def install(self, recipe: str, timeout_seconds: float) -> GatewayAnswer:
        """Install a recipe (downloads, image builds, config entries) and wait for the job; one a gateway at a time."""
        deadline = self._clock.monotonic() + timeout_seconds
        plan = self._write("/gateway/installations/plan", {"recipeId": recipe}, timeout_seconds)
        if plan.kind == "refused" and plan.code in _ABSENT:
            return refused("noRoute", "this build installs nothing over HTTP", NEVER, plan.body)
        mine = text(plan.body.get("planId"))
        if plan.kind != "ok" or mine is None:
            return plan
        answer = self._write("/gateway/installations", {"planId": mine, "yes": True}, self._left(deadline))
        if answer.kind != "ok":
            return answer
        return self._await_job(
            "/gateway/installations", deadline, lambda job: job.get("planId") == mine, pending="running"
        )

    def routing(self) -> Mapping[str, Sequence[str]] | None:
        """The ordered route each alias has in effect, in this gateway's model ids; None when it can't be read."""
        answer = self._calls.get("/gateway/routing", READ_SECONDS)
        return effective_routes(answer.body) if answer.kind == "ok" else None

    def route_profiles(self, alias: str) -> Mapping[str, Sequence[str]]:
        """Member lists of an alias by profile (newer builds), none while members are suspended or it can't be read."""
        answer = self._calls.get("/gateway/routing", READ_SECONDS)
        entry = table(table(answer.body.get("aliases")).get(alias))
        named = {} if items(entry.get("suspendedMembers")) else table(entry.get("routeProfiles"))
        return {name: tuple(map(str, items(table(profile).get("members")))) for name, profile in named.items()}

    def use_route_profile(self, alias: str, profile: str, timeout_seconds: float) -> GatewayAnswer:
        """Make one of an alias's route profiles the active one (newer builds)."""
        path = f"/gateway/routes/{quote(alias, safe='')}/profile"
        return self._write(path, {"profile": profile}, timeout_seconds)

    def close(self) -> None:
        """Give up the connections."""
        self._calls.close()

    def _write(self, path: str, body: dict[str, Any], seconds: float) -> GatewayAnswer:
        return self._calls.call("POST", path, body, seconds)

    def _left(self, deadline: float) -> float:
        return max(1.0, deadline - self._clock.monotonic())

    def _explained(self, lane: str, answer: GatewayAnswer) -> GatewayAnswer:
        """Old builds refuse and fail with prose only: the numbers of a fresh dry plan tell which it was."""
        again = self.admission(lane)
        if again.kind == "refused":
            return refused(again.code or "bad_request", answer.says or "", again.retry or LATER, answer.body)
        return refused("startFailed", answer.says or "", LATER, answer.body)

    def _await_job(
        self, path: str, deadline: float, mine: Callable[[Mapping[str, Any]], bool], *, pending: str
    ) -> GatewayAnswer:
        """Watch a job of the gateway until it ended, another took its place, or the time is up."""
        while True:
            answer = self._calls.get(path, min(READ_SECONDS, self._left(deadline)))
            job = table(answer.body.get("job"))
            if answer.kind == "ok":
                if not job or not mine(job):
                    return GatewayAnswer(kind="lost", code="jobGone", says="the gateway forgot the job", retry=LATER)
                if job.get("status") == "succeeded":
                    return GatewayAnswer(kind="ok", body=job)
                if job.get("status") != pending:
                    says = prose(job.get("error")) or f"the job ended as {text(job.get('status'))}"
                    return refused("jobFailed", says, LATER, job)
            if self._clock.monotonic() >= deadline:
                return GatewayAnswer(kind="lost", code="timeout", says="the job goes on", retry=LATER)
            self._clock.sleep(_POLL_SECONDS)


def _admitted(lane: str, answer: GatewayAnswer) -> GatewayAnswer:
    """HTTP 200 says little: unknown, disabled and externally managed lanes get it too."""
    if answer.kind != "ok":
        return answer
    for row in map(table, items(answer.body.get("results"))):
        reason = text(table(row.get("result")).get("reason"))
        if row.get("runtimeId") == lane and reason in NOT_STARTED:
            return refused(reason, f"{lane} was not started: {reason}", NEVER, answer.body)
    return answer


def has_profiles(calls: GatewayCalls) -> bool | None:
    """Whether the build knows fleet profiles (a gateway without a config file knows them too, with 409)."""
    answer = calls.get("/gateway/fleet/profiles", READ_SECONDS)
    if answer.kind == "ok":
        return True
    if answer.kind != "refused" or answer.code in ("unauthorized", "redirected"):
        return None
    return answer.code not in _ABSENT


def probe_health(url: str) -> LaneState:
    """State of a lane that no gateway manages, from its health address.

    2xx runs, 5xx is up but not ready, a refused connection is stopped; anything else proves nothing.
    """
    return within(_HEALTH_SECONDS, lambda: _probe(url)) or LaneState.UNKNOWN


def _probe(url: str) -> LaneState:
    import httpx

    try:
        with httpx.stream("GET", url, timeout=_HEALTH_SECONDS, follow_redirects=False, trust_env=False) as response:
            status = response.status_code
    except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as fault:
        return LaneState.STOPPED if connection_refused(fault) else LaneState.UNKNOWN
    if 200 <= status < 300:
        return LaneState.RUNNING
    return LaneState.LOADING if status >= 500 else LaneState.UNKNOWN
