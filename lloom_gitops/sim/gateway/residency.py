"""Residency over HTTP (newer builds): a job that rewrites the flags in the config file, live."""

from __future__ import annotations

from lloom_gitops.sim.gateway.edits import edit_config
from lloom_gitops.sim.gateway.node import Node
from lloom_gitops.sim.gateway.refusals import Doc, GatewayRefusal, authority_forbidden, bad_request
from lloom_gitops.sim.gateway.tasks import Flow
from lloom_gitops.sim.gateway.wire import Handler, Reply, Request, at_once

_FLAGS = {"always": "keepWarm", "preferred": "preferredWarm", "auto": None}


def policy_of(entry: Doc) -> str:
    if entry.get("keepWarm") is True:
        return "always"
    return "preferred" if entry.get("preferredWarm") is True else "auto"


def set_policy(document: Doc, lane: str, policy: str) -> None:
    """Write one residency into a config document, as the two flags that stand for it."""
    entry = document["runtimes"][lane]
    for flag in ("keepWarm", "preferredWarm"):
        entry.pop(flag, None)
    flag_name = _FLAGS[policy]
    if flag_name is not None:
        entry[flag_name] = True


def _post(node: Node, request: Request) -> Flow:
    lane, body = request.arguments[0], request.body()
    entry = node.config.runtime(lane)
    if entry is None:
        raise bad_request(f"unknown runtime {lane}", code="not_found", status=404)
    owner = node.config.owner(lane)
    if request.headers.get("x-lloom-requester-node", node.node_id) != owner:
        raise authority_forbidden(lane, owner)
    policy = body.get("policy")
    if body.get("yes") is not True or policy not in _FLAGS:
        raise bad_request("residency needs policy auto, preferred or always, and yes=true")
    if node.config.group_of(lane) is not None:
        raise bad_request(f"runtime {lane} is a member of a group", code="invalid_residency_policy", status=409)
    before = node.residency_jobs.get(lane)
    if before is not None and before["status"] == "pending":
        before["status"] = "superseded"
    node.residency_count += 1
    previous = policy_of(entry)
    job: Doc = {
        "runtimeId": lane,
        "policy": policy,
        "previousPolicy": previous,
        "id": node.residency_count,
        "changed": policy != previous,
        "status": "pending",
        "error": None,
    }
    node.residency_jobs[lane] = job
    reply = Reply(202, {"ok": True, **job})
    node.run(_carry_out(node, lane, policy, job))
    return at_once(reply)


def _carry_out(node: Node, lane: str, policy: str, job: Doc) -> Flow:
    if job["changed"]:
        try:
            yield from edit_config(node, lambda document: set_policy(document, lane, policy))
        except GatewayRefusal as refusal:
            job |= {"status": "failed", "error": refusal.message}
            return
    if job["status"] == "pending":
        job["status"] = "succeeded"


def _get(node: Node, request: Request) -> Flow:
    return at_once({"ok": True, "job": node.residency_jobs.get(request.arguments[0])})


ROUTES: dict[tuple[str, str], Handler] = {
    ("POST", "gateway/runtimes/:lane/residency"): _post,
    ("GET", "gateway/runtimes/:lane/residency"): _get,
}
