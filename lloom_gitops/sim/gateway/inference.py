"""Inference over HTTP: answers that hold a slot for as long as the lane would take, streams that a stop cuts."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator

from starlette.responses import Response, StreamingResponse

from lloom_gitops.sim.gateway.catalogue import advertised
from lloom_gitops.sim.gateway.fencing import check_fence
from lloom_gitops.sim.gateway.machine import LaneTraits
from lloom_gitops.sim.gateway.refusals import Doc, GatewayRefusal, no_route
from lloom_gitops.sim.gateway.requests import Call, close_call, is_cut, open_call
from lloom_gitops.sim.gateway.runner import Runner
from lloom_gitops.sim.gateway.wire import Reply, Request, refused, render

KINDS = {
    "/v1/chat/completions": "chat",
    "/v1/embeddings": "embedding",
    "/v1/images/generations": "image",
    "/v1/videos/generations": "video",
    "/v1/audio/speech": "audio_speech",
    "/v1/audio/transcriptions": "audio_transcription",
    "/v1/audio/generations": "audio_generation",
}
_DEFAULT_TOKENS = 20
_INPUT_TOKENS = 10
_JSON = {"content-type": "application/json; charset=utf-8"}
_SLICE_SECONDS = 0.05


class Inference:
    """The `/v1/` routes of one gateway."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._node = runner.node

    def models(self) -> Doc:
        created = self._node.now // 1000
        rows = advertised(self._node.config, aliases=False)
        return {
            "object": "list",
            "data": [
                {"id": m["id"], "object": "model", "created": created, "owned_by": "lloom", "metadata": _metadata(m)}
                for m in rows
            ],
        }

    async def respond(self, request: Request) -> Response:
        check_fence(self._node, request.method, request.path)
        body = request.body()
        kind = KINDS[request.path]
        stream = kind == "chat" and body.get("stream") is True
        opening = open_call(self._node, request.path, kind, body.get("model"), stream=stream, bytes_in=len(request.raw))
        call: Call = await self._runner.run(opening)
        if call.lane is None:
            return await self._forward(call, request, body)
        tokens = int(body.get("max_tokens") or _DEFAULT_TOKENS) if kind == "chat" else 0
        if stream:
            return StreamingResponse(self._stream(call, tokens), headers={"content-type": "text/event-stream"})
        return await self._whole(call, kind, tokens)

    async def _whole(self, call: Call, kind: str, tokens: int) -> Response:
        traits = self._node.traits(call.lane or "")
        alive = await self._work(call, traits.request_ms + _decode_ms(traits, tokens))
        if not alive:
            error = GatewayRefusal("fetch failed", status=502, code="upstream_error", kind="upstream_error")
            self._close(call, status=502, first_ms=None, error="fetch failed")
            return Response(render(refused(error)), status_code=502, headers=_JSON)
        answer = answer_body(kind, call.upstream, tokens)
        raw = json.dumps(answer).encode()
        took = self._node.now - call.begun
        self._close(call, status=200, first_ms=took, output_tokens=tokens, bytes_out=len(raw))
        return Response(raw, headers={"content-type": "application/json"})

    async def _stream(self, call: Call, tokens: int) -> AsyncIterator[bytes]:
        traits = self._node.traits(call.lane or "")
        sent, said = 0, 0
        first: int | None = None
        status, error = 499, "client disconnected"
        try:
            alive = await self._work(call, traits.request_ms)
            decode = _decode_ms(traits, tokens)
            steps = max(1, -(-self._node.machine.scaled(decode) // round(1000 * _SLICE_SECONDS)))
            for step in range(steps):
                if not alive:
                    break
                first = self._node.now - call.begun if first is None else first
                chunk = _event({"choices": [{"index": 0, "delta": {"content": "word "}}]})
                sent += len(chunk)
                said = tokens * (step + 1) // steps
                yield chunk
                alive = await self._work(call, decode // steps)
            status, error = (200, "") if alive else (502, "terminated")
            if alive:
                yield b"data: [DONE]\n\n"
        finally:
            self._close(call, status=status, first_ms=first, output_tokens=said, bytes_out=sent, error=error or None)

    async def _work(self, call: Call, duration_ms: int) -> bool:
        """Let a lane work for so long; False as soon as it is gone."""
        left = self._node.machine.scaled(duration_ms) / 1000
        while left > 0 and not is_cut(self._node, call):
            await asyncio.sleep(min(_SLICE_SECONDS, left))
            left -= _SLICE_SECONDS
        self._runner.kick()
        return not is_cut(self._node, call)

    def _close(
        self,
        call: Call,
        *,
        status: int,
        first_ms: int | None,
        output_tokens: int = 0,
        bytes_out: int = 0,
        error: str | None = None,
    ) -> None:
        self._runner.catch_up()
        close_call(
            self._node,
            call,
            status=status,
            first_ms=first_ms,
            input_tokens=_INPUT_TOKENS if status == 200 else 0,
            output_tokens=output_tokens,
            bytes_out=bytes_out,
            error=error,
        )
        self._runner.kick()

    async def _forward(self, call: Call, request: Request, body: Doc) -> Response:
        """Pass a call on to who answers it: another gateway for its lane, else the server behind the backend."""
        import httpx

        try:
            base, key = self._upstream(call)
        except GatewayRefusal as refusal:
            self._close(call, status=502, first_ms=None, error=refusal.message)
            raise
        url = base.rstrip("/") + request.path.removeprefix("/v1")
        model = call.model["id"] if call.target.get("runtime") else call.upstream
        headers = {"authorization": f"Bearer {key}"} if key else {}
        try:
            answer = await self._runner.client.post(url, json={**body, "model": model}, headers=headers)
        except httpx.HTTPError:
            self._close(call, status=502, first_ms=None, error="fetch failed")
            raise GatewayRefusal("fetch failed", status=502, code="upstream_error", kind="upstream_error") from None
        self._runner.kick()
        took = self._node.now - call.begun
        ok = answer.status_code < 400
        said = int(body.get("max_tokens") or _DEFAULT_TOKENS) if call.model.get("kind", "chat") == "chat" else 0
        self._close(
            call,
            status=answer.status_code,
            first_ms=took if ok else None,
            output_tokens=said if ok else 0,
            bytes_out=len(answer.content),
            error=None if ok else f"upstream answered {answer.status_code}",
        )
        kind = answer.headers.get("content-type", "application/json")
        return Response(answer.content, status_code=answer.status_code, headers={"content-type": kind})

    def _upstream(self, call: Call) -> tuple[str, str | None]:
        """Base URL and key of who answers a call that no lane of this node answers."""
        config = self._node.config
        if call.target.get("runtime"):
            holder = config.nodes[config.node_of(call.target["runtime"]) or config.leader]
            base = f"{holder.get('endpoint', '')}/v1"
        else:
            holder = config.doc["backends"][call.target["backend"]]
            base = holder["baseUrl"]
        key_env = holder.get("apiKeyEnv") or (config.doc["cluster"].get("apiKeyEnv") if "endpoint" in holder else None)
        key = holder.get("apiKey") or os.environ.get(key_env or "")
        if key_env and not key and self._node.newer:
            text = f"backend {call.target['backend']} needs {key_env}"
            raise GatewayRefusal(text, status=503, code="MODEL_TARGET_NOT_CONFIGURED", kind="model_target_error")
        return base, key


def _metadata(model: Doc) -> Doc:
    body: Doc = {"name": model.get("name"), "kind": model.get("kind", "chat"), "capabilities": [], "tags": []}
    return {**body, "contextWindow": model["contextWindow"]} if "contextWindow" in model else body


def _decode_ms(traits: LaneTraits, tokens: int) -> int:
    return round(1000 * tokens / traits.tokens_per_second)


def _event(body: Doc) -> bytes:
    return b"data: " + json.dumps(body).encode() + b"\n\n"


def answer_body(kind: str, model: str, tokens: int) -> Doc:
    """What a model server answers, as far as clients look at it."""
    usage = {
        "prompt_tokens": _INPUT_TOKENS,
        "completion_tokens": tokens,
        "total_tokens": _INPUT_TOKENS + tokens,
    }
    if kind == "embedding":
        data = [{"object": "embedding", "index": 0, "embedding": [0.1, 0.2, 0.3]}]
        return {"object": "list", "model": model, "data": data, "usage": usage}
    if kind != "chat":
        return {"object": kind, "model": model, "data": [{"url": f"sim:{kind}"}]}
    message = {"role": "assistant", "content": "word " * tokens}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return {"id": "sim", "object": "chat.completion", "model": model, "choices": [choice], "usage": usage}


def plain_answer(request: Request, path: str) -> Reply:
    """The answer of a server that no gateway runs: one by hand, or a cloud provider."""
    kind = KINDS.get("/" + path)
    if kind is None or request.method != "POST":
        raise no_route(f"/{path}")
    body = request.body()
    return Reply(200, answer_body(kind, str(body.get("model")), int(body.get("max_tokens") or _DEFAULT_TOKENS)))
