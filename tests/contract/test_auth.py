"""Who is let in, with admin and inference keys set and a loopback bind."""

from __future__ import annotations

import pytest

from tests.contract.shapes import sample
from tests.contract.world import INFERENCE_KEY, N1, Gateways

ERRORS = sample("errors")


@pytest.mark.parametrize(
    ("method", "path", "key", "name"),
    [
        pytest.param("GET", "/gateway/status", None, "auth-missing-read", id="read without a key"),
        pytest.param("POST", "/gateway/runtimes/chat-a-01/start", None, "auth-missing-write", id="write without a key"),
        pytest.param("GET", "/gateway/status", INFERENCE_KEY, "auth-inference-key-on-admin", id="inference key"),
        pytest.param("GET", "/gateway/status", "nope", "auth-wrong-key", id="wrong key"),
        pytest.param("GET", "/gateway/nope", None, "auth-missing-read", id="unknown admin path without a key"),
    ],
)
def test_refused(gateways: Gateways, method: str, path: str, key: str | None, name: str) -> None:
    answer = gateways.call(N1, method, path, key=key)
    assert (answer.status_code, answer.json()) == (401, ERRORS[name]["body"])


def test_x_api_key_counts_where_there_is_no_bearer(gateways: Gateways) -> None:
    answer = gateways.call(N1, "GET", "/gateway/routing", key=None)
    assert answer.status_code == 401
    url = gateways.pool.urls[N1] + "/gateway/routing"
    assert gateways.pool.client.get(url, headers={"x-api-key": gateways.pool.key}).status_code == 200


def test_inference_is_open_on_loopback(gateways: Gateways) -> None:
    assert gateways.call(N1, "GET", "/v1/models", key=None).status_code == 200
