"""One bounded call to a gateway: time, size and redirects limited, every fault of the network in our own words."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotInTime
from typing import TYPE_CHECKING, Any, Self, TypeVar

import msgspec

from lloom_gitops.catalog.sighting_wire import prose, table, text
from lloom_gitops.drivers.gateway_http_refusals import LATER, NEVER, refused, retry_of
from lloom_gitops.ports import GatewayAnswer

if TYPE_CHECKING:
    from collections.abc import Callable

    import httpx

_T = TypeVar("_T")

LARGEST_ANSWER = 16 * 1024 * 1024
"""Bytes of an answer that are read at most; a status of a large cluster with all its events stays far below."""

_CONNECT_SECONDS = 5.0
_SHORTEST_KEY = 8


class GatewayCalls:
    """Calls to one gateway. Safe to use from several threads.

    `key` is sent as a bearer token and nowhere else. Proxies and credentials of the environment are not used, redirects
    not followed, `Origin` not sent. Each call has its own connection: a call on one that the gateway has just given up
    would be *lost* although it was never delivered.
    """

    def __init__(self, endpoint: str, key: str | None) -> None:
        self.endpoint = endpoint.rstrip("/")
        self._key = key
        self._client: httpx.Client | None = None
        self._lock = threading.Lock()

    def get(self, path: str, seconds: float) -> GatewayAnswer:
        """GET; see `call`."""
        return self.call("GET", path, None, seconds)

    def call(self, method: str, path: str, body: dict[str, Any] | None, seconds: float) -> GatewayAnswer:
        """The answer within `seconds`, all in all; a thread that hangs on the network is left behind."""
        return within(seconds, lambda: self._exchange(method, path, body, seconds)) or _lost("timeout", seconds)

    def close(self) -> None:
        """Give up the connections."""
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _exchange(self, method: str, path: str, body: dict[str, Any] | None, seconds: float) -> GatewayAnswer:
        import httpx

        timeout = httpx.Timeout(seconds, connect=min(seconds, _CONNECT_SECONDS))
        try:
            with self._open().stream(method, self.endpoint + path, json=body, timeout=timeout) as response:
                return _judge(response.status_code, self._without_key(_read(response)))
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, OSError, ValueError, RuntimeError) as fault:
            # The fault's own text may quote a header (and so the key), therefore only its kind is told.
            return fault_answer(fault, seconds)

    def _without_key(self, raw: bytes | None) -> bytes | None:
        """The body without our own key, which a gateway's message may quote. A very short one may be any word."""
        if raw is None or self._key is None or len(self._key) < _SHORTEST_KEY:
            return raw
        return raw.replace(self._key.encode(), "…".encode())

    def _open(self) -> httpx.Client:
        import httpx

        with self._lock:
            if self._client is None:
                headers = {"accept": "application/json", "accept-encoding": "identity"}
                if self._key is not None:
                    headers["authorization"] = f"Bearer {self._key}"
                self._client = httpx.Client(
                    headers=headers,
                    follow_redirects=False,
                    trust_env=False,
                    limits=httpx.Limits(max_keepalive_connections=0),
                )
            return self._client


def within(seconds: float, work: Callable[[], _T]) -> _T | None:
    """What `work` returns, or None when it takes longer. A daemon thread, so that a hung one never holds up an exit."""
    done: Future[_T] = Future()

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as fault:
            done.set_exception(fault)

    threading.Thread(target=run, daemon=True, name="gateway-call").start()
    try:
        return done.result(timeout=seconds)
    except NotInTime:
        return None


def connection_refused(fault: BaseException | None) -> bool:
    """Whether somebody answered that nothing listens there: the only failure to connect that proves something."""
    while fault is not None:
        if isinstance(fault, ConnectionRefusedError):
            return True
        fault = fault.__cause__ or fault.__context__
    return False


def fault_answer(fault: BaseException, seconds: float) -> GatewayAnswer:
    """A fault of the network or of the client in our words: never delivered, or lost on the way."""
    import httpx

    if isinstance(fault, UnicodeError | httpx.LocalProtocolError):
        return GatewayAnswer(kind="unreachable", code="badKey", says="the key can't be sent as a header", retry=NEVER)
    if isinstance(fault, httpx.InvalidURL | httpx.UnsupportedProtocol):
        return GatewayAnswer(kind="unreachable", code="badEndpoint", says="the endpoint is no HTTP URL", retry=NEVER)
    if isinstance(fault, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout | httpx.ProxyError):
        says = "nothing listens at the endpoint" if connection_refused(fault) else "the endpoint can't be reached"
        return GatewayAnswer(kind="unreachable", code="noConnection", says=says, retry=LATER)
    if isinstance(fault, httpx.TimeoutException):
        return _lost("timeout", seconds)
    return GatewayAnswer(kind="lost", code="broken", says="the connection broke before the answer", retry=LATER)


def _lost(code: str, seconds: float) -> GatewayAnswer:
    return GatewayAnswer(kind="lost", code=code, says=f"no answer within {seconds:g} s", retry=LATER)


def _read(response: httpx.Response) -> bytes | None:
    """The body, or None when it is larger than we read."""
    kept = bytearray()
    for chunk in response.iter_raw():
        kept += chunk
        if len(kept) > LARGEST_ANSWER:
            return None
    return bytes(kept)


def _judge(status: int, raw: bytes | None) -> GatewayAnswer:
    if 300 <= status < 400:
        return refused("redirected", f"HTTP {status}: the endpoint redirects, which is not followed", NEVER)
    if raw is None:
        return GatewayAnswer(kind="lost", code="tooLarge", says="the answer is larger than 16 MiB", retry=LATER)
    body = _decoded(raw)
    if 400 <= status < 500 or (status >= 500 and body is not None and "error" in body):
        error = table((body or {}).get("error"))
        code = text(error.get("code")) or f"http{status}"
        says = prose(error.get("message")) or f"HTTP {status}"
        return refused(code, says, retry_of(status, code), body)
    if body is None or status >= 500:
        # A page of something in between: whether the gateway got the call can't be told.
        return GatewayAnswer(kind="lost", code="notJson", says=f"HTTP {status} without a JSON object", retry=LATER)
    return GatewayAnswer(kind="ok", body=body)


def _decoded(raw: bytes) -> dict[str, Any] | None:
    try:
        value = msgspec.json.decode(raw or b"null")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
