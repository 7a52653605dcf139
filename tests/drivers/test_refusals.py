"""Dry admission plans as real gateways wrote them: what must not be applied, and whether it passes by itself."""

from __future__ import annotations

from typing import Any

import pytest

from lloom_gitops.drivers.gateway_http_refusals import RETRY_OF_CODE, admission_refusal, retry_of


def plan(**facts: Any) -> dict[str, Any]:
    """A plan that would start `big-03` (100 GB) on a node with a budget of 112 GB, as clustered gateways answer."""
    node = {"reachable": True, "requestedAddsMemoryGb": 100, "memoryBudgetGb": 112, "overBudgetGb": 0}
    return {
        "ok": True,
        "admission": {"allowed": True, "clustered": True, "overBudgetGb": 0, "nodes": {"spark-node-03": node}},
        "runtimes": [
            {"runtimeId": "image-03", "memoryGb": 30, "resourcesByNode": {"spark-node-03": {"memoryGb": 30}}},
            {"runtimeId": "pinned-03", "memoryGb": 20, "resourcesByNode": {"spark-node-03": {"memoryGb": 20}}},
            {"runtimeId": "chat-01", "memoryGb": 40, "resourcesByNode": {"spark-node-01": {"memoryGb": 40}}},
        ],
        "actions": [{"type": "start", "runtimeId": "big-03", "reason": "requested-runtime", "memoryGb": 100}],
        "protected": [{"runtimeId": "pinned-03", "protectedReasons": ["keep-warm"]}],
        "validationErrors": [],
    } | facts


def short(node: str, gb: float, *protected: tuple[str, list[str]], reachable: bool = True) -> dict[str, Any]:
    """The part of a plan that does not fit."""
    block = {"reachable": reachable, "requestedAddsMemoryGb": 100, "memoryBudgetGb": 112, "overBudgetGb": gb}
    return {
        "admission": {"allowed": False, "clustered": True, "overBudgetGb": gb, "nodes": {node: block}},
        "protected": [{"runtimeId": lane, "protectedReasons": reasons} for lane, reasons in protected],
    }


STOP = {"type": "stop", "runtimeId": "image-03", "reason": "node-memory-budget", "freesMemoryGb": 30}
IMAGE_BUSY = ("image-03", ["active-requests"])
PLANS = {
    "fits": (plan(), None, None),
    "already loaded": (plan(actions=[]), None, None),
    "would stop another lane": (plan(actions=[STOP, *plan()["actions"]]), "wouldEvict", "later"),
    "pinned lanes in the way": (
        plan(**short("spark-node-03", 8, ("pinned-03", ["keep-warm"]))),
        "runtime_capacity_impossible",
        "never",
    ),
    "a busy lane in the way": (plan(**short("spark-node-03", 28, IMAGE_BUSY)), "runtime_capacity_busy", "later"),
    "a busy lane too small to matter": (
        plan(**short("spark-node-03", 31, IMAGE_BUSY)),
        "runtime_capacity_impossible",
        "never",
    ),
    "a busy lane of another node": (
        plan(**short("spark-node-03", 8, ("chat-01", ["active-requests"]))),
        "runtime_capacity_impossible",
        "never",
    ),
    "a busy lane that is pinned as well": (
        plan(**short("spark-node-03", 8, ("image-03", ["active-requests", "keep-warm"]))),
        "runtime_capacity_impossible",
        "never",
    ),
    "one machine, a busy lane in the way": (
        plan(
            admission={"allowed": False, "overBudgetGb": 19.5}, protected=plan(**short("x", 1, IMAGE_BUSY))["protected"]
        ),
        "runtime_capacity_busy",
        "later",
    ),
    "one machine, too big": (
        plan(admission={"allowed": False, "overBudgetGb": 19.5}),
        "runtime_capacity_impossible",
        "never",
    ),
    "unknown lane": (plan(ok=False, validationErrors=["unknown runtime no-such"]), "invalidPlan", "never"),
    "node down": (
        plan(
            ok=False,
            validationErrors=["cluster node spark-node-03 is unreachable"],
            **short("spark-node-03", 0, reachable=False),
        ),
        "nodeUnreachable",
        "later",
    ),
}


@pytest.mark.parametrize(("body", "code", "retry"), PLANS.values(), ids=PLANS)
def test_numbers_decide(body: dict[str, Any], code: str | None, retry: str | None) -> None:
    got = admission_refusal("big-03", body)
    assert (got and got.code, got and got.retry) == (code, retry)


def test_an_eviction_is_refused_by_name() -> None:
    got = admission_refusal("big-03", plan(actions=[STOP, *plan()["actions"]]))
    assert got is not None
    assert got.says == "loading big-03 would make the gateway stop image-03"
    assert got.body == {"lanes": ["image-03"]}


@pytest.mark.parametrize(
    "body", [{}, {"admission": [], "actions": "x", "runtimes": None, "protected": 3}], ids=["empty", "odd"]
)
def test_an_odd_plan_harms_nobody(body: dict[str, Any]) -> None:
    assert admission_refusal("big-03", body) is None


@pytest.mark.parametrize(
    ("status", "code", "retry"),
    [
        (503, "runtime_capacity_impossible", "never"),
        (429, "runtime_capacity_busy", "later"),
        (403, "RUNTIME_AUTHORITY_FORBIDDEN", "never"),
        (503, "deployment_fenced", "later"),
        (409, "invalid_something", "later"),
        (400, "bad_request", "never"),
        (500, "server_error", "later"),
        (401, "unauthorized", "never"),
    ],
)
def test_temporary_or_permanent(status: int, code: str, retry: str) -> None:
    assert retry_of(status, code) == retry
    assert set(RETRY_OF_CODE.values()) == {"later", "never"}
