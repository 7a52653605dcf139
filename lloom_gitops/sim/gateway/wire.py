"""Requests and replies as values: what the routes take and give."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from lloom_gitops.sim.gateway.node import Node
from lloom_gitops.sim.gateway.refusals import Doc, GatewayRefusal
from lloom_gitops.sim.gateway.tasks import Flow


@dataclass(frozen=True, slots=True)
class Request:
    """One call. `path` is as sent (percent-encoded), `query` decoded, header names in lower case."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    raw: bytes = b""
    arguments: tuple[str, ...] = ()
    """What the route's `:name` parts stand for; filled in by routing."""

    def body(self) -> Doc:
        """The JSON body; an empty one is `{}`. Malformed JSON is a 500, as the gateway has it."""
        if not self.raw.strip():
            return {}
        try:
            parsed = json.loads(self.raw)
        except ValueError as error:
            raise GatewayRefusal(str(error)) from None
        return parsed if isinstance(parsed, dict) else {}


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    body: Doc
    headers: Mapping[str, str] = field(default_factory=dict)


Handler = Callable[[Node, Request], Flow]


def refused(refusal: GatewayRefusal) -> Reply:
    headers = {} if refusal.retry_after is None else {"retry-after": str(refusal.retry_after)}
    return Reply(refusal.status, refusal.body(), headers)


def at_once(value: Doc | Reply) -> Flow:
    """A flow that has its answer at once."""
    return value
    yield  # pragma: no cover


def render(reply: Reply) -> bytes:
    """The bytes of a reply: pretty-printed, but for the machine profile."""
    if "content-type" in reply.headers:
        return json.dumps(reply.body, separators=(",", ":")).encode()
    return json.dumps(reply.body, indent=2).encode()
