"""What a gateway says in words of its own goes into status and commits: without keys, paths and addresses."""

from __future__ import annotations

import pytest

from lloom_gitops.catalog.sighting_wire import prose


@pytest.mark.parametrize(
    ("said", "told"),
    [
        pytest.param("no answer from http://10.0.0.7:8301/v1", "no answer from …", id="url"),
        pytest.param("connect ECONNREFUSED 10.0.0.7:8301", "connect ECONNREFUSED …", id="address"),
        pytest.param("connect ECONNREFUSED localhost:8301", "connect ECONNREFUSED …", id="own address"),
        pytest.param("getaddrinfo spark.lan:8301 failed", "getaddrinfo … failed", id="host and port"),
        pytest.param("no file /srv/models/a.gguf", "no file …", id="path"),
        pytest.param("wrong key sk-0123456789abcdef", "wrong key …", id="key by its prefix"),
        pytest.param("wrong key 9f2c41d07aa1", "wrong key …", id="key by the word before it"),
        pytest.param("api_key=9f2c41d07aa1 is old", "api_key=… is old", id="assignment"),
        pytest.param("Authorization: Basic dXNlcjpwYXNz1", "Authorization: Basic …", id="basic"),
        pytest.param("got Bearer abcdefgh12345", "got …", id="bearer"),
        pytest.param("sk-\x1b0123456789abcdef", "…", id="key broken by a control character"),
        pytest.param("a" * 190 + " sk-0123456789abcdef", "a" * 190 + " …", id="key where the text is cut"),
        pytest.param("token limit of 4096 reached", "token limit of 4096 reached", id="no key: a limit"),
        pytest.param("qwen38-27b-03 at 110.2 GB of 121.7", "qwen38-27b-03 at 110.2 GB of 121.7", id="figures"),
        pytest.param("key of unsloth-Qwen3.8 is missing", "key of unsloth-Qwen3.8 is missing", id="no key: a name"),
        pytest.param("", None, id="empty"),
        pytest.param(17, None, id="number"),
    ],
)
def test_a_message_is_told_without_secrets_and_places(said: object, told: str | None) -> None:
    assert prose(said) == told
