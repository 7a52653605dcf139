"""Serves one node over HTTP: admin routes, inference, and the sim's own `/sim/` routes.

`/sim/unmanaged/<id>/health` answers for a server that somebody runs by hand (200 while it is up, else 503);
`/sim/unmanaged/<id>/v1/...` and `/sim/external/v1/...` answer inference for it and for a cloud provider.
`POST /sim/control` injects faults; `{"action": "hang"}` without a lane freezes the gateway itself until `unhang`.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from lloom_gitops.sim.gateway import api, auth, control
from lloom_gitops.sim.gateway.inference import KINDS, Inference, plain_answer
from lloom_gitops.sim.gateway.refusals import Doc, GatewayRefusal, no_route
from lloom_gitops.sim.gateway.runner import Runner
from lloom_gitops.sim.gateway.wire import Reply, Request, refused, render

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send


class GatewayApp:
    """The ASGI application of one simulated gateway."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._node = runner.node
        self._inference = Inference(runner)
        self._awake = asyncio.Event()
        self._awake.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        response = await self._respond(HttpRequest(scope, receive))
        await response(scope, receive, send)

    async def _respond(self, http: HttpRequest) -> Response:
        request = Request(
            method=http.method,
            path=http.scope["raw_path"].decode("ascii"),
            query=dict(http.query_params),
            headers=dict(http.headers),
            raw=await http.body(),
        )
        try:
            if request.path.startswith("/sim/"):
                return _send(self._sim(request))
            await self._awake.wait()
            if request.path.startswith("/v1/"):
                return await self._infer(request)
        except GatewayRefusal as refusal:
            return _send(refused(refusal))
        reply: Reply = await self._runner.run(api.answer(self._node, request))
        return _send(reply)

    async def _infer(self, request: Request) -> Response:
        denied = auth.refuse(self._node.config, request.method, request.path, request.headers)
        if denied is not None:
            raise denied
        if request.method == "GET" and request.path == "/v1/models":
            return _send(Reply(200, self._inference.models()))
        if request.method != "POST" or request.path not in KINDS:
            raise no_route(request.path)
        return await self._inference.respond(request)

    def _sim(self, request: Request) -> Reply:
        parts = [unquote(part) for part in request.path[1:].split("/")]
        if parts == ["sim", "control"] and request.method == "POST":
            return self._control(request)
        if len(parts) >= 4 and parts[1] == "unmanaged":
            up = self._node.machine.unmanaged.get(parts[2]) is True
            if not up:
                return Reply(503, {"ok": False})
            return Reply(200, {"ok": True}) if parts[3:] == ["health"] else plain_answer(request, "/".join(parts[3:]))
        if len(parts) >= 4 and parts[1] == "external":
            return plain_answer(request, "/".join(parts[2:]))
        raise no_route(request.path)

    def _control(self, request: Request) -> Reply:
        keys = [key for key in self._node.config.doc["security"]["adminApiKeys"] if key]
        if keys and auth.presented_key(request.headers) not in keys:
            raise GatewayRefusal("the control route needs an admin key", status=401, code="unauthorized")
        body: Doc = request.body()
        frozen = {"hang": False, "unhang": True}
        if body.get("action") in frozen and "lane" not in body:
            (self._awake.set if frozen[body["action"]] else self._awake.clear)()
            return Reply(200, {"ok": True})
        self._runner.catch_up()
        done = control.act(self._node, body)
        self._runner.kick()
        return Reply(200, done)


def _send(reply: Reply) -> Response:
    headers: dict[str, Any] = {"content-type": "application/json; charset=utf-8", **reply.headers}
    return Response(render(reply), status_code=reply.status, headers=headers)
