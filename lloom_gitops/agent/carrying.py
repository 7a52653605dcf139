"""Steps to calls: which port a step is carried out through, at which node, with which limit."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from lloom_gitops.model.inventory import Inventory
from lloom_gitops.model.plan import Step
from lloom_gitops.model.words import Feature, LaneState, Management, StepKind
from lloom_gitops.ports import Clock, Gateway, GatewayAnswer, GatewayConfig

_DRAIN_POLL_SECONDS = 0.5
_RESIDENCY_SECONDS = 60
INTERRUPTED = "interrupted"


class StepCarrier:
    """`ports.StepDriver` over the pool's gateways and the head's config file.

    `gateways` by node id; `config` is None where the agent was not told where the head's config file lies. `known`
    gives the latest inventory (owners, the head's names of models). `stopping` ends a drain early: watching changes
    nothing.
    """

    def __init__(
        self,
        *,
        head: str,
        gateways: Mapping[str, Gateway],
        config: GatewayConfig | None,
        clock: Clock,
        known: Callable[[], Inventory],
        stopping: Callable[[], bool],
    ) -> None:
        self._head = head
        self._gateways = gateways
        self._config = config
        self._clock = clock
        self._known = known
        self._stopping = stopping

    def carry_out(self, step: Step) -> GatewayAnswer:
        """Make the step's call and wait for its answer, at most the step's own time limit long."""
        if step.kind is StepKind.ROUTE:
            return self._route(step)
        node = self._owner(step)
        gateway = self._gateways.get(node)
        if gateway is None:
            return _refused("noEndpoint", f"{node} has no endpoint to talk to")
        seconds = float(step.timeout_seconds or 0)
        match step.kind:
            case StepKind.START:
                return self._start(gateway, step, node, seconds)
            case StepKind.STOP:
                return gateway.stop(step.lane or "", seconds)
            case StepKind.RESIDENCY:
                return self._residency(gateway, step, node, seconds)
            case StepKind.DRAIN:
                return self._drain(gateway, step, seconds)
            case StepKind.INSTALL:
                return gateway.install(step.recipe or "", seconds)
        raise ValueError(f"a person does {step.id}")

    def _owner(self, step: Step) -> str:
        lane = self._known().lanes.get(step.lane or "")
        return step.node or (lane.owner if lane is not None else "")

    def _start(self, gateway: Gateway, step: Step, node: str, seconds: float) -> GatewayAnswer:
        answer = gateway.admit(step.lane or "", seconds)
        if answer.kind != "ok" or step.residency is None:
            return answer
        reading = gateway.read_lane(step.lane or "", distributed=self._distributed(step))
        if reading is not None and reading.residency is step.residency:
            return answer
        # After the load: a lane that is kept before it is up may be loaded by the gateway itself, past admission.
        return self._residency(gateway, step, node, _RESIDENCY_SECONDS)

    def _residency(self, gateway: Gateway, step: Step, node: str, seconds: float) -> GatewayAnswer:
        assert step.residency is not None
        if Feature.RESIDENCY in gateway.features():
            return gateway.set_residency(step.lane or "", step.residency, seconds)
        if node != self._head:
            return _refused("residencyByHand", f"{node}'s gateway build changes residency only in its own config file")
        if self._config is None:
            return _NO_CONFIG
        return self._config.set_residency(step.lane or "", step.residency)

    def _route(self, step: Step) -> GatewayAnswer:
        if self._config is None:
            return _NO_CONFIG
        lanes = step.lanes or (None,) * len(step.route or ())
        members = tuple(self._member(model, lane) for model, lane in zip(step.route or (), lanes, strict=True))
        return self._config.set_route(step.alias or "", members)

    def _member(self, model: str, lane: str | None) -> str:
        """The head's own name of a route's entry: that of the lane behind it, else the model's."""
        seen = self._known().lanes.get(lane or "")
        return model if seen is None or seen.head_model is None else seen.head_model

    def _drain(self, gateway: Gateway, step: Step, seconds: float) -> GatewayAnswer:
        """Watch the owner's own count until it is zero or the limit is there; then the stop may cut what is left.

        A lane that a person stops and whose requests nobody counts is left to the person's own look.
        """
        deadline = self._clock.monotonic() + seconds
        left: int | None = None
        read = False
        while True:
            reading = gateway.read_lane(step.lane or "", distributed=self._distributed(step))
            if reading is not None:
                read, left = True, reading.active_requests
                if left == 0 or not LaneState(reading.state).holds_memory:
                    return GatewayAnswer(kind="ok")
                if left is None and self._by_hand(step):
                    return GatewayAnswer(kind="ok", says="nobody counts its requests: look before you stop it")
            if self._stopping():
                return GatewayAnswer(kind="refused", code=INTERRUPTED, says="the drain was cut short", retry="later")
            if self._clock.monotonic() >= deadline:
                break
            self._clock.sleep(min(_DRAIN_POLL_SECONDS, max(0.0, deadline - self._clock.monotonic())))
        if not read:
            return GatewayAnswer(kind="unreachable", says="the owner did not answer while its requests were watched")
        count = "requests it does not count" if left is None else f"{left} requests"
        return GatewayAnswer(kind="ok", says=f"its limit of {step.timeout_seconds} s ended with {count} in flight")

    def _by_hand(self, step: Step) -> bool:
        lane = self._known().lanes.get(step.lane or "")
        return lane is not None and lane.management is Management.UNMANAGED

    def _distributed(self, step: Step) -> bool:
        lane = self._known().lanes.get(step.lane or "")
        return lane is not None and len(lane.nodes) > 1


def _refused(code: str, says: str) -> GatewayAnswer:
    return GatewayAnswer(kind="refused", code=code, says=says, retry="never")


_NO_CONFIG = _refused("noGatewayConfig", "the agent was not told where the head gateway's config file lies")
