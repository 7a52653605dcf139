"""Installations (newer builds): the only way over HTTP to make a gateway download and declare a lane.

The sim knows the recipes of the config's `sim.recipes`: `{id: {seconds, summary, runtimes, models, backends}}`; an
installation takes its time and then adds those entries to the config file. `fails` is the text of a job that fails.
"""

# ruff: noqa: ARG001 - route handlers share one signature
from __future__ import annotations

import copy
import hashlib

from lloom_gitops.sim.gateway.edits import edit_config
from lloom_gitops.sim.gateway.node import Node
from lloom_gitops.sim.gateway.refusals import Doc, GatewayRefusal, bad_request
from lloom_gitops.sim.gateway.tasks import Flow, pause
from lloom_gitops.sim.gateway.wire import Handler, Reply, Request, at_once

_PLAN_LIVES_MS = 1_800_000


def _known(node: Node) -> dict[str, Doc]:
    return dict((node.config.doc.get("sim") or {}).get("recipes") or {})


def _plan(node: Node, request: Request) -> Flow:
    body = request.body()
    recipe_id = body.get("recipeId")
    if set(body) != {"recipeId"} or recipe_id not in _known(node):
        raise bad_request(f"no installable recipe: {recipe_id}", code="installation_plan_failed")
    recipe = _known(node)[recipe_id]
    plan_id = hashlib.sha256(f"{node.boot_id} {recipe_id} {node.now} {len(node.install_plans)}".encode()).hexdigest()
    planned: Doc = {
        "planId": plan_id[:48],
        "kind": "recipe",
        "summary": recipe.get("summary", f"install {recipe_id}"),
        "details": {"recipe": {"id": recipe_id}, "models": recipe.get("models") or [], "backend": {}, "ports": {}},
    }
    made = {"recipe": recipe, "template": node.config.template, "at": node.now}
    node.install_plans[planned["planId"]] = made
    return at_once(planned)


def _start(node: Node, request: Request) -> Flow:
    body = request.body()
    if set(body) != {"planId", "yes"} or body["yes"] is not True:
        raise bad_request("an installation needs planId and yes=true, nothing else", code="installation_start_failed")
    plan = node.install_plans.get(body["planId"])
    if plan is None or node.now - plan["at"] > _PLAN_LIVES_MS:
        raise bad_request("unknown or expired installation plan", code="installation_start_failed")
    running = node.install_job is not None and node.install_job["status"] == "running"
    if running or plan["template"] != node.config.template:
        why = "another installation is running" if running else "the config changed since the plan"
        raise bad_request(why, code="installation_start_failed", status=409)
    job_id = hashlib.sha256(f"job {body['planId']}".encode()).hexdigest()[:32]
    job: Doc = {"id": job_id, "planId": body["planId"], "status": "running", "detail": "started", "error": None}
    node.install_job = job
    node.run(_carry_out(node, plan["recipe"], job))
    return at_once(Reply(202, {"job": dict(job)}))


def _carry_out(node: Node, recipe: Doc, job: Doc) -> Flow:
    yield from pause(node.tasks, node.machine.scaled(round(1000 * float(recipe.get("seconds", 1)))))
    if recipe.get("fails"):
        job |= {"status": "failed", "error": recipe["fails"]}
        return
    try:
        yield from edit_config(node, lambda document: _add(document, recipe))
    except GatewayRefusal as refusal:
        job |= {"status": "failed", "error": refusal.message}
        return
    job |= {"status": "succeeded", "detail": "configured"}


def _add(document: Doc, recipe: Doc) -> None:
    for section in ("runtimes", "backends"):
        document.setdefault(section, {}).update(copy.deepcopy(recipe.get(section) or {}))
    document.setdefault("models", []).extend(copy.deepcopy(recipe.get("models") or []))


def _get(node: Node, request: Request) -> Flow:
    return at_once({"job": node.install_job})


ROUTES: dict[tuple[str, str], Handler] = {
    ("POST", "gateway/installations/plan"): _plan,
    ("POST", "gateway/installations"): _start,
    ("GET", "gateway/installations"): _get,
}
