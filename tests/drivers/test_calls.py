"""One call to a gateway: each way in which network, proxies or a hostile server can fail it, told in our own words."""

from __future__ import annotations

import inspect
import socket
from collections.abc import Iterator

import httpx
import pytest

from lloom_gitops.drivers.gateway_http import probe_health
from lloom_gitops.drivers.gateway_http_call import GatewayCalls, connection_refused, fault_answer
from lloom_gitops.model.words import LaneState

from .broken_server import HTML, BrokenServer, answer, broken_server, json_answer

KEY = "sk-very-secret-key"
PLACES = "spawn /opt/me/bin/x ENOENT at http://10.1.2.3:8000/v1 (10.1.2.3:80, ~/models, ../x, C:\\x): Qwen/Qwen3 at 1/2"


@pytest.fixture
def server() -> Iterator[BrokenServer]:
    with broken_server() as running:
        running.behaviours.update(
            {
                "/ok": json_answer(200, {"ok": True}),
                "/html": answer(200, HTML),
                "/bad-gateway": answer(502, HTML),
                "/array": json_answer(200, [1]),
                "/empty": answer(200, b""),
                "/deep": answer(200, b"[" * 100_000),
                "/not-utf8": answer(200, b'{"a": "\xff"}'),
                "/gzip": answer(200, b"\x1f\x8b\x08garbage", "content-encoding: gzip"),
                "/redirect": answer(302, b"", f"location: {running.url}/ok"),
                "/404": answer(404, b"plain text"),
                "/unauthorized": json_answer(401, {"error": {"message": "missing token", "code": "unauthorized"}}),
                "/failed": json_answer(500, {"error": {"message": "lane exited", "code": "server_error"}}),
                "/busy": json_answer(429, {"error": {"message": "busy", "code": "runtime_capacity_busy"}}),
                "/never": json_answer(503, {"error": {"message": "no", "code": "runtime_capacity_impossible"}}),
                "/places": json_answer(500, {"error": {"message": PLACES, "code": "server_error"}}),
                "/escape": json_answer(503, {"error": {"message": "\x1b[31mred\nline", "code": "x"}}),
            }
        )
        yield running


FAULTS = {
    "fine": ("/ok", "ok", None, None),
    "page of a proxy": ("/html", "lost", "notJson", "later"),
    "error page of a proxy": ("/bad-gateway", "lost", "notJson", "later"),
    "JSON but no object": ("/array", "lost", "notJson", "later"),
    "nothing": ("/empty", "lost", "notJson", "later"),
    "nested without end": ("/deep", "lost", "notJson", "later"),
    "not UTF-8": ("/not-utf8", "lost", "notJson", "later"),
    "compressed unasked": ("/gzip", "lost", "notJson", "later"),
    "larger than we read": ("/huge", "lost", "tooLarge", "later"),
    "cut off": ("/half", "lost", "broken", "later"),
    "reset": ("/reset", "lost", "broken", "later"),
    "no HTTP at all": ("/garbage", "lost", "broken", "later"),
    "hung": ("/hang", "lost", "timeout", "later"),
    "a byte now and then": ("/drip", "lost", "timeout", "later"),
    "redirect": ("/redirect", "refused", "redirected", "never"),
    "plain 404": ("/404", "refused", "http404", "never"),
    "wrong key": ("/unauthorized", "refused", "unauthorized", "never"),
    "failed start": ("/failed", "refused", "server_error", "later"),
    "busy": ("/busy", "refused", "runtime_capacity_busy", "later"),
    "never fits": ("/never", "refused", "runtime_capacity_impossible", "never"),
}


@pytest.mark.parametrize(("path", "kind", "code", "retry"), FAULTS.values(), ids=FAULTS)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_each_fault_has_its_words(
    server: BrokenServer, method: str, path: str, kind: str, code: str, retry: str
) -> None:
    seconds = 0.3 if path in ("/hang", "/drip") else 10.0
    with GatewayCalls(server.url, KEY) as calls:
        got = calls.call(method, path, {"a": 1} if method == "POST" else None, seconds)
    assert (got.kind, got.code, got.retry) == (kind, code, retry)
    assert KEY not in repr(got)
    assert got.kind == "ok" or got.says


def test_a_redirect_is_not_followed(server: BrokenServer) -> None:
    with GatewayCalls(server.url, KEY) as calls:
        calls.get("/redirect", 5)
    assert len(server.seen) == 1


def test_text_of_a_gateway_is_cleaned(server: BrokenServer) -> None:
    with GatewayCalls(server.url, KEY) as calls:
        assert calls.get("/escape", 5).says == "[31mredline"


def test_a_message_tells_no_paths_and_addresses(server: BrokenServer) -> None:
    """What a gateway says ends up in commits."""
    with GatewayCalls(server.url, KEY) as calls:
        assert calls.get("/places", 5).says == "spawn … ENOENT at … (…, … … … Qwen/Qwen3 at 1/2"


def test_only_the_authorization_header_carries_the_key(server: BrokenServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
    with GatewayCalls(server.url + "/", KEY) as calls:
        assert calls.call("POST", "/ok", {}, 5).kind == "ok"
    (head,) = server.seen
    lines = head.lower().split("\r\n")
    assert [line for line in lines if KEY in line] == [f"authorization: bearer {KEY}"]
    assert not [line for line in lines if line.startswith(("origin:", "cookie:", "referer:"))]


@pytest.mark.parametrize(
    ("endpoint", "key", "code"),
    [
        pytest.param("ftp://127.0.0.1", None, "badEndpoint", id="no HTTP"),
        pytest.param("http://[::1", None, "badEndpoint", id="no URL"),
        pytest.param(None, "two\r\nlines", "badKey", id="key with a line break"),
        pytest.param(None, "schlüssel", "badKey", id="key with an umlaut"),
        pytest.param("http://127.0.0.1:1", None, "noConnection", id="nothing listens"),
    ],
)
def test_what_was_never_sent_is_unreachable(
    server: BrokenServer, endpoint: str | None, key: str | None, code: str
) -> None:
    with GatewayCalls(endpoint or server.url, key) as calls:
        got = calls.get("/gateway/node", 5)
    assert (got.kind, got.code) == ("unreachable", code)
    assert key is None or key not in repr(got)


def test_every_exception_of_the_client_has_an_answer() -> None:
    request = httpx.Request("GET", "http://example.invalid")
    faults = [
        member
        for _, member in inspect.getmembers(httpx, inspect.isclass)
        if issubclass(member, httpx.HTTPError | httpx.InvalidURL | httpx.StreamError)
    ]
    assert len(faults) > 20
    for fault in faults:
        text = f"Illegal header value {KEY}"
        made = fault.__new__(fault)
        Exception.__init__(made, text)
        got = fault_answer(made, 5)
        assert got.kind in ("lost", "unreachable"), fault
        assert got.says, fault
        assert KEY not in repr(got), fault
    assert fault_answer(httpx.ConnectTimeout("x", request=request), 5).kind == "unreachable"
    assert fault_answer(httpx.ReadTimeout("x", request=request), 5).kind == "lost"
    assert fault_answer(httpx.WriteError("x", request=request), 5).kind == "lost"


def test_only_a_refused_connection_proves_a_stopped_lane(server: BrokenServer) -> None:
    server.behaviours["/loading"] = answer(503, b"loading")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    assert probe_health(f"{server.url}/ok") is LaneState.RUNNING
    assert probe_health(f"{server.url}/loading") is LaneState.LOADING
    assert probe_health(f"{server.url}/404") is LaneState.UNKNOWN
    assert probe_health(f"{server.url}/reset") is LaneState.UNKNOWN
    assert probe_health("http://host.invalid/health") is LaneState.UNKNOWN
    assert probe_health("no address") is LaneState.UNKNOWN
    assert probe_health(f"http://127.0.0.1:{port}/health") is LaneState.STOPPED
    assert not connection_refused(None)
