"""Steps to calls: which port, which node, which limit; and how a drain is watched."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from lloom_gitops.agent.carrying import StepCarrier
from lloom_gitops.model.inventory import Inventory, ObservedLane
from lloom_gitops.model.plan import Step
from lloom_gitops.model.words import Feature, Management, ModelKind, Residency, StepKind
from lloom_gitops.ports import GatewayAnswer, LaneReading

OK = GatewayAnswer(kind="ok")


class FakeClock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds

    def now(self) -> Any:
        raise AssertionError("no step asks for the time of day")


class FakeGateway:
    """Records calls; `readings` are what looks at a lane find, the last one for ever."""

    def __init__(self, features: Sequence[Feature] = (), readings: Sequence[LaneReading | None] = ()) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self._features = frozenset(features)
        self._readings = list(readings) or [LaneReading(state="running")]
        self.answers: dict[str, GatewayAnswer] = {}

    def features(self) -> frozenset[str]:
        return self._features

    def read_lane(self, lane: str, *, distributed: bool) -> LaneReading | None:
        self.calls.append(("read_lane", lane, distributed))
        return self._readings.pop(0) if len(self._readings) > 1 else self._readings[0]

    def __getattr__(self, name: str) -> Any:
        def call(*args: Any) -> GatewayAnswer:
            self.calls.append((name, *args))
            return self.answers.get(name, OK)

        return call

    @property
    def changes(self) -> list[tuple[Any, ...]]:
        return [call for call in self.calls if call[0] != "read_lane"]


def lane(owner: str, *nodes: str, **rest: Any) -> ObservedLane:
    return ObservedLane(models=("m",), kind=ModelKind.CHAT, nodes=nodes or (owner,), owner=owner, **rest)


KNOWN = Inventory(
    lanes={
        "a": lane("n2", head_model="n2/model-a"),
        "plain": lane("n1"),
        "group": lane("n1", "n1", "n2"),
        "hand": lane("n2", management=Management.UNMANAGED),
    }
)


class Scene:
    def __init__(self, gateway: FakeGateway, *, config: bool = True, stopping: bool = False) -> None:
        self.gateway, self.clock, self.config = gateway, FakeClock(), FakeGateway()
        self.carrier = StepCarrier(
            head="n1",
            gateways={"n1": gateway, "n2": gateway},
            config=self.config if config else None,  # type: ignore[arg-type]
            clock=self.clock,
            known=lambda: KNOWN,
            stopping=lambda: stopping,
        )


def step(kind: StepKind, **fields: Any) -> Step:
    return Step(id="x", kind=kind, **{"timeout_seconds": 90, **fields})


NEWER = (Feature.RESIDENCY, Feature.ROUTE_MEMBERS)
START = step(StepKind.START, node="n2", lane="a", residency=Residency.ALWAYS)


@pytest.mark.parametrize(
    ("made", "features", "calls", "edits"),
    [
        (START, NEWER, [("admit", "a", 90.0), ("set_residency", "a", Residency.ALWAYS, 60)], []),
        (step(StepKind.START, node="n2", lane="a"), NEWER, [("admit", "a", 90.0)], []),
        (step(StepKind.STOP, node="n2", lane="a"), (), [("stop", "a", 90.0)], []),
        (step(StepKind.STOP, lane="a"), (), [("stop", "a", 90.0)], []),
        (
            step(StepKind.RESIDENCY, node="n2", lane="a", residency=Residency.AUTO),
            NEWER,
            [("set_residency", "a", Residency.AUTO, 90.0)],
            [],
        ),
        (
            step(StepKind.RESIDENCY, node="n1", lane="plain", residency=Residency.AUTO),
            (),
            [],
            [("set_residency", "plain", Residency.AUTO)],
        ),
        (
            step(StepKind.ROUTE, node="n1", alias="chat", route=("m", "m2", "cloud"), lanes=("a", "plain", None)),
            NEWER,
            [],
            [("set_route", "chat", ("n2/model-a", "m2", "cloud"))],
        ),
        (step(StepKind.ROUTE, node="n1", alias="gone", route=(), lanes=()), NEWER, [], [("set_route", "gone", ())]),
        (step(StepKind.INSTALL, node="n2", lane="new", recipe="r"), NEWER, [("install", "r", 90.0)], []),
    ],
    ids=["start, then its residency", "start", "stop", "stop without a node: its owner", "residency by HTTP",
         "residency in the head's file", "route in the head's own names", "an alias removed", "install"],
)  # fmt: skip
def test_a_step_becomes_a_call(made: Step, features: Any, calls: list[Any], edits: list[Any]) -> None:
    scene = Scene(FakeGateway(features))
    assert scene.carrier.carry_out(made) == OK
    assert scene.gateway.changes == calls
    assert scene.config.changes == edits


def test_a_residency_that_is_there_is_not_set_again() -> None:
    scene = Scene(FakeGateway(NEWER, [LaneReading(state="running", residency=Residency.ALWAYS)]))
    assert scene.carrier.carry_out(START) == OK
    assert scene.gateway.changes == [("admit", "a", 90.0)]


def test_a_lane_that_did_not_load_gets_no_residency() -> None:
    scene = Scene(FakeGateway(NEWER))
    refusal = GatewayAnswer(kind="refused", code="wouldEvict", retry="later")
    scene.gateway.answers["admit"] = refusal
    assert scene.carrier.carry_out(START) == refusal
    assert scene.gateway.changes == [("admit", "a", 90.0)]


@pytest.mark.parametrize(
    ("made", "config", "code"),
    [
        (step(StepKind.ROUTE, node="n1", alias="chat", route=("m",)), False, "noGatewayConfig"),
        (step(StepKind.RESIDENCY, node="n1", lane="plain", residency=Residency.AUTO), False, "noGatewayConfig"),
        (step(StepKind.RESIDENCY, node="n2", lane="a", residency=Residency.AUTO), True, "residencyByHand"),
        (step(StepKind.STOP, node="n9", lane="a"), True, "noEndpoint"),
    ],
)
def test_what_can_not_be_done_here_is_refused_for_good(made: Step, config: bool, code: str) -> None:
    answer = Scene(FakeGateway(), config=config).carrier.carry_out(made)
    assert (answer.kind, answer.code, answer.retry) == ("refused", code, "never")


def busy(count: int | None, state: str = "running") -> LaneReading:
    return LaneReading(state=state, active_requests=count)


@pytest.mark.parametrize(
    ("lane_id", "readings", "kind", "says", "seconds"),
    [
        ("a", [busy(2), busy(1), busy(0)], "ok", None, 1.0),
        ("a", [busy(3)], "ok", "its limit of 90 s ended with 3 requests in flight", 90.0),
        ("a", [busy(None)], "ok", "its limit of 90 s ended with requests it does not count in flight", 90.0),
        ("a", [busy(None, "stopped")], "ok", None, 0.0),
        ("a", [None], "unreachable", "the owner did not answer while its requests were watched", 90.0),
        ("a", [None, busy(0)], "ok", None, 0.5),
        ("hand", [busy(None)], "ok", "nobody counts its requests: look before you stop it", 0.0),
    ],
    ids=["until none is left", "the limit", "uncounted", "down already", "unreadable", "unreadable once", "by hand"],
)
def test_a_drain(lane_id: str, readings: Any, kind: str, says: str | None, seconds: float) -> None:
    scene = Scene(FakeGateway((), readings))
    answer = scene.carrier.carry_out(step(StepKind.DRAIN, lane=lane_id))
    assert (answer.kind, answer.says) == (kind, says)
    assert scene.clock.seconds == seconds
    assert scene.gateway.changes == [], "a drain only watches"


def test_a_drain_ends_when_the_apply_is_to_end() -> None:
    answer = Scene(FakeGateway((), [busy(2)]), stopping=True).carrier.carry_out(step(StepKind.DRAIN, lane="a"))
    assert (answer.kind, answer.code) == ("refused", "interrupted")


def test_a_group_is_read_as_one() -> None:
    scene = Scene(FakeGateway((), [busy(0)]))
    scene.carrier.carry_out(step(StepKind.DRAIN, lane="group"))
    assert scene.gateway.calls == [("read_lane", "group", True)]
