"""Whatever JSON a gateway answers with, its driver gives an answer of ours and never raises."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from lloom_gitops.drivers.gateway_http import HttpGateway
from lloom_gitops.model.words import LaneState, Residency
from lloom_gitops.ports import GatewayAnswer

from .bodies import newer, node

KINDS = {"ok", "refused", "lost", "unreachable"}
WORDS = [
    "ok", "node", "runtimeManager", "runtimes", "lane", "status", "healthy", "admission", "allowed", "nodes", "actions",
    "protected", "validationErrors", "runtimeId", "results", "result", "reason", "job", "id", "planId", "aliases",
    "routes", "members", "routeProfiles", "deploymentFence", "fenced", "activeRequests", "error",
]  # fmt: skip
keys = st.sampled_from(WORDS)
odd = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from([*WORDS, "succeeded", "stop"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=8,
)
answers = st.builds(GatewayAnswer, kind=st.sampled_from(sorted(KINDS)), body=st.dictionaries(keys, odd, max_size=5))


class Calls:
    """Answers in turn, then the last one for ever."""

    def __init__(self, given: list[GatewayAnswer]) -> None:
        self._given = given

    def get(self, path: str, seconds: float) -> GatewayAnswer:
        return self._given.pop(0) if len(self._given) > 1 else self._given[0]

    def call(self, method: str, path: str, body: dict[str, Any] | None, seconds: float) -> GatewayAnswer:
        return self.get(path, seconds)


class Hurried:
    """A clock on which each look takes ten seconds."""

    def __init__(self) -> None:
        self.time = 0.0

    def monotonic(self) -> float:
        self.time += 10
        return self.time

    def now(self) -> Any:
        raise AssertionError("nobody needs the time of day")

    def sleep(self, seconds: float) -> None:
        self.time += seconds


def driver(given: list[GatewayAnswer]) -> HttpGateway:
    made = HttpGateway("http://unused.invalid", None, Hurried())
    made._calls = Calls(given)  # type: ignore[assignment]
    return made


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_odd_answers(data: st.DataObject) -> None:
    given_ones = data.draw(st.lists(answers, min_size=1, max_size=4))
    asks: dict[str, Callable[[HttpGateway], GatewayAnswer]] = {
        "admission": lambda d: d.admission("lane"),
        "admit": lambda d: d.admit("lane", 30),
        "stop": lambda d: d.stop("lane", 30),
        "residency": lambda d: d.set_residency("lane", Residency.ALWAYS, 30),
        "install": lambda d: d.install("recipe", 30),
        "reachable": lambda d: d.reachable(),
    }
    ask = asks[data.draw(st.sampled_from(sorted(asks)))]
    assert ask(driver(list(given_ones))).kind in KINDS
    assert driver(list(given_ones)).features() <= {"residency", "routeMembers", "suspend", "memoryGuard"}
    routes = driver(list(given_ones)).routing()
    assert routes is None or all(isinstance(m, str) for route in routes.values() for m in route)
    driver(list(given_ones)).route_profiles("lane")
    for distributed in (False, True):
        reading = driver(list(given_ones)).read_lane("lane", distributed=distributed)
        assert reading is None or reading.state in set(LaneState)


def test_features_stay_what_they_were_while_nobody_answers() -> None:
    """A silent gateway is no old build."""
    shown = GatewayAnswer(kind="ok", body=node("a", {"lane": newer()}))
    routing = GatewayAnswer(kind="ok", body={"aliases": {}, "routes": {}})
    gone = GatewayAnswer(kind="unreachable")
    asked = driver([shown, routing, gone])
    known = {"residency", "routeMembers", "suspend"}
    assert asked.features() == known
    assert asked.features_now() is None
    assert asked.features() == known
