"""The three-Spark pool as gateway configs: two Sparks with a hand-run pair, a third with its own lanes, a MacBook.

Observing the pool that `three_spark_spec` describes yields the inventory of the project's three-Spark fleet. The head
(spark-node-01) reaches the models of the other nodes as `<node>/<model>`; the pair is no lane of any gateway but a
server that somebody runs by hand, known to the head as a model with a backend.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lloom_gitops.sim.pool import PoolSpec, SimPool

Doc = dict[str, Any]

HEAD = "spark-node-01"
NODES = ("spark-node-01", "spark-node-02", "spark-node-03", "macbook-local")
PAIR = "qwen38-pair"
PAIR_MODEL = "qwen3.8-flash-next"

_SPARK_MEMORY_GB = 121.7
_POLICY: Doc = {"autoEvict": True, "reserveMemoryGb": 8, "maxMemoryUtilization": 0.95}
_MAC_POLICY: Doc = {"autoEvict": True, "reserveMemoryGb": 8}
_DEEP_ROUTE = [PAIR_MODEL, "spark-node-03/qwen3.8-27b", "cloud/openrouter/q38fn"]
_EMBEDDING_ROUTE = [
    "spark-node-03/qwen3-embedding-4b",
    "macbook-local/qwen3-embedding-4b",
    "cloud/openrouter/qwen3-embedding-4b",
]
_ROUTES: dict[str, list[str]] = {
    "cognition": _DEEP_ROUTE,
    "cognition-deep": _DEEP_ROUTE,
    "embeddings": _EMBEDDING_ROUTE,
    "speech": ["spark-node-03/qwen3-tts-1.7b"],
    "hear": ["spark-node-03/whisper-large-v3-turbo"],
    "image": ["spark-node-03/qwen-image-2.1"],
    "music": ["spark-node-03/ace-step-1.5-xl"],
    "video": ["spark-node-03/ltx-2.5"],
}
_SPARK_WEIGHTS = ["RadixArk/Qwen3.8-Flash-Next-NVFP4"]
_THIRD_WEIGHTS = [
    "unsloth/Qwen3.8-27B-NVFP4",
    "Qwen/Qwen3-Embedding-4B",
    "Qwen/Qwen3-TTS-1.7B",
    "openai/whisper-large-v3-turbo",
    "Qwen/Qwen-Image-2.1",
    "ACE-Step/ACE-Step-1.5-XL-SFT",
    "Lightricks/LTX-2.5",
]


def three_spark_spec(
    *, build: str = "newer", time_scale: float = 100.0, standalone: bool = False, poll_ms: int = 50
) -> PoolSpec:
    """The pool, ready for `start_pool`. `standalone`: the pair is down and the 27B on spark-node-03 runs, pinned."""
    configs = three_spark_configs(build=build, standalone=standalone)
    return PoolSpec(configs, build=build, time_scale=time_scale, poll_ms=poll_ms, env={"OPENROUTER_SIM_KEY": "sim"})


def three_spark_configs(*, build: str = "newer", standalone: bool = False) -> dict[str, Doc]:
    """One gateway config a node; endpoints and ports are `start_pool`'s."""
    return {
        "spark-node-01": _head(build, pair_up=not standalone, standalone=standalone),
        "spark-node-02": _second(pair_up=not standalone),
        "spark-node-03": _third(build, standalone=standalone),
        "macbook-local": _mac(),
    }


def pair_health_url(urls: Mapping[str, str]) -> str:
    """Where the hand-run pair answers its health check, for the pool's lane document."""
    return f"{urls[HEAD]}/sim/unmanaged/{PAIR}/health"


def set_pair(pool: SimPool, *, up: bool) -> None:
    """What a person does by hand: start or stop the pair's server on both of its nodes."""
    for node in ("spark-node-01", "spark-node-02"):
        pool.control(node, "start-unmanaged" if up else "stop-unmanaged", id=PAIR)


def _head(build: str, *, pair_up: bool, standalone: bool) -> Doc:
    third = [_proxied(model, kind, lane, window) for lane, model, kind, window in _THIRD_MODELS]
    mac = [{**_proxied("mac/qwen3-embedding-4b", "embedding", "mac-embedding", 40960)}]
    mac[0]["as"] = "macbook-local/qwen3-embedding-4b"
    pair: Doc = {"id": PAIR_MODEL, "name": PAIR_MODEL, "kind": "chat", "backend": PAIR, "contextWindow": 262144}
    external = [
        {"id": "cloud/openrouter/q38fn", "kind": "chat", "backend": "openrouter", "contextWindow": 262144},
        {"id": "cloud/openrouter/qwen3-embedding-4b", "kind": "embedding", "backend": "openrouter"},
    ]
    return {
        "name": HEAD,
        "cluster": {
            "id": "three-spark",
            "leaderNode": HEAD,
            "nodes": {
                "spark-node-01": _node(_SPARK_MEMORY_GB),
                "spark-node-02": _node(_SPARK_MEMORY_GB),
                "spark-node-03": {**_node(_SPARK_MEMORY_GB), "proxy": {"models": third}},
                "macbook-local": {**_node(96), "proxy": {"models": mac}},
            },
        },
        "runtimePolicy": dict(_POLICY),
        "backends": {
            PAIR: {"type": "openai", "baseUrl": "{url:spark-node-01}/sim/unmanaged/" + PAIR + "/v1"},
            "openrouter": {
                "type": "openai",
                "baseUrl": "{url:spark-node-01}/sim/external/v1",
                "apiKeyEnv": "OPENROUTER_SIM_KEY",
            },
        },
        "models": [pair, *external],
        "runtimes": {},
        "aliases": {alias: _alias(route, build, standalone) for alias, route in _ROUTES.items()},
        "sim": {
            "machine": _spark(peer="spark-node-02", weights=_SPARK_WEIGHTS),
            "unmanaged": {PAIR: {"up": pair_up, "memoryGb": 96}},
            "served": _served(),
        },
    }


def _alias(route: list[str], build: str, standalone: bool) -> Doc:
    """An alias as a build can hold it: the snapshot knows one target only."""
    members = [m for m in route if not (standalone and m == PAIR_MODEL)]
    return {"target": members[0]} if build == "snapshot" else {"members": members}


def _second(*, pair_up: bool) -> Doc:
    return {
        "name": "spark-node-02",
        "cluster": _alone("spark-node-02", _SPARK_MEMORY_GB),
        "runtimePolicy": dict(_POLICY),
        "sim": {
            "machine": _spark(peer="spark-node-01", weights=_SPARK_WEIGHTS),
            "unmanaged": {PAIR: {"up": pair_up, "memoryGb": 96}},
        },
    }


# lane, model, kind, context window
_THIRD_MODELS: list[tuple[str, str, str, int | None]] = [
    ("qwen38-27b-03", "qwen3.8-27b", "chat", 262144),
    ("qwen3-embedding-4b", "qwen3-embedding-4b", "embedding", 8192),
    ("spark03-tts", "qwen3-tts-1.7b", "audio_speech", None),
    ("spark03-stt", "whisper-large-v3-turbo", "audio_transcription", None),
    ("image-03", "qwen-image-2.1", "image", None),
    ("music-03", "ace-step-1.5-xl", "audio_generation", None),
    ("video-03", "ltx-2.5", "video", None),
]


def _third(build: str, *, standalone: bool) -> Doc:
    chat: Doc = {"maxConcurrency": 4, "recipe": {"id": "linux-nvidia-gb10-qwen38-27b-nvfp4-vllm", "version": 1}}
    always = "always" if standalone else "auto"
    lanes = {
        "qwen38-27b-03": {**_lane(8301, 40, 180, always, up=standalone), **chat},
        "qwen3-embedding-4b": {**_lane(8302, 12, 60, "always", up=True), "maxConcurrency": 8},
        "spark03-tts": _lane(8303, 6, 30, "always", up=True),
        "spark03-stt": _lane(8304, 6, 20, "always", up=True),
        "image-03": _lane(8305, 38, 182, "preferred", up=True),
        "music-03": _lane(8306, 35, 40, "auto", up=False),
        "video-03": _lane(8307, 42, 60, "auto", up=False),
    }
    lanes["image-03"]["sim"]["rssGb"] = 31.2
    if build == "snapshot":
        lanes["image-03"].pop("preferredWarm")
    machine = _spark(peer=None, weights=_THIRD_WEIGHTS)
    machine["loadSeconds"] = {lane: entry["sim"]["loadSeconds"] for lane, entry in lanes.items()}
    return {
        "name": "spark-node-03",
        "cluster": _alone("spark-node-03", _SPARK_MEMORY_GB),
        "runtimePolicy": dict(_POLICY),
        "backends": {lane: _local_backend(entry) for lane, entry in lanes.items()},
        "runtimes": lanes,
        "models": [_model(model, kind, lane, window) for lane, model, kind, window in _THIRD_MODELS],
        "sim": {"machine": machine},
    }


def _mac() -> Doc:
    lane = {**_lane(8401, 4, 10, "auto", up=False), "maxConcurrency": 8}
    return {
        "name": "macbook-local",
        "cluster": _alone("macbook-local", 96),
        "runtimePolicy": dict(_MAC_POLICY),
        "backends": {"mac-embedding": _local_backend(lane)},
        "runtimes": {"mac-embedding": lane},
        "models": [_model("mac/qwen3-embedding-4b", "embedding", "mac-embedding", 40960)],
        "sim": {
            "machine": {
                "memoryGb": 96,
                "foreignGb": 20,
                "platform": "darwin",
                "arch": "arm64",
                "cpus": 12,
                "accelerators": ["apple-gpu", "metal", "apple-neural-engine", "ane"],
                "devices": [
                    {"id": "metal:0", "kind": "gpu", "vendor": "apple", "name": "Apple M2 Max", "backend": "metal"}
                ],
                "memoryDomains": [{"id": "unified:0", "kind": "unified", "capacityGb": 96}],
                "computeArchs": ["apple-metal"],
                "disks": [{"root": "models", "freeGb": 300}],
                "weights": [{"model": "qwen3-embedding:4b"}],
                "commands": [],
                "links": [],
                "loadSeconds": {"mac-embedding": 10},
                "inventory": {
                    "accelerators": [{"kind": "metal", "name": "M2 Max", "computeArch": "apple-metal", "count": 1}]
                },
            }
        },
    }


def _spark(*, peer: str | None, weights: list[str]) -> Doc:
    device = {
        "id": "cuda:0",
        "kind": "gpu",
        "vendor": "nvidia",
        "name": "NVIDIA GB10",
        "backend": "cuda",
        "computeCapability": "12.1",
        "accelerators": ["cuda", "nvidia-gpu", "blackwell", "gb10"],
    }
    return {
        "memoryGb": _SPARK_MEMORY_GB,
        "platform": "linux",
        "arch": "arm64",
        "cpus": 20,
        "accelerators": ["cuda", "nvidia-gpu", "blackwell", "gb10", "dgx-spark"],
        "devices": [device],
        "computeArchs": ["sm_121"],
        "disks": [{"root": "models", "freeGb": 800}],
        "weights": [{"model": model} for model in weights],
        "commands": ["docker"],
        "links": [{"peer": peer, "fabric": "nvidia-sync"}] if peer is not None else [],
        "inventory": {
            "accelerators": [{"kind": "cuda", "name": "GB10", "computeArch": "sm_121", "count": 1}],
            "memoryDomains": [{"id": "unified:0", "kind": "unified", "capacityGb": _SPARK_MEMORY_GB}],
        },
    }


def _lane(port: int, memory_gb: float, load_seconds: float, residency: str, *, up: bool) -> Doc:
    flags = {"always": {"keepWarm": True}, "preferred": {"preferredWarm": True}, "auto": {}}[residency]
    return {
        "enabled": True,
        "command": "model-server",
        "args": ["--port", str(port)],
        "port": port,
        "healthUrl": f"http://127.0.0.1:{port}/health",
        "memoryGb": memory_gb,
        **flags,
        "sim": {"loadSeconds": load_seconds, "running": up},
    }


def _local_backend(lane: Doc) -> Doc:
    return {"type": "openai", "baseUrl": f"http://127.0.0.1:{lane['port']}/v1"}


def _model(model: str, kind: str, lane: str, window: int | None) -> Doc:
    body: Doc = {"id": model, "name": model.rsplit("/", 1)[-1], "kind": kind, "backend": lane, "runtime": lane}
    return {**body, "contextWindow": window} if window is not None else body


def _proxied(model: str, kind: str, lane: str, window: int | None) -> Doc:
    body: Doc = {"id": model, "kind": kind, "remoteRuntime": lane}
    return {**body, "contextWindow": window} if window is not None else body


def _node(memory_gb: float) -> Doc:
    return {"resources": {"memoryGb": memory_gb}}


def _alone(node: str, memory_gb: float) -> Doc:
    """A sovereign gateway's own cluster block: itself."""
    return {"id": node, "nodeId": node, "leaderNode": node, "nodes": {node: _node(memory_gb)}}


def _served() -> list[Doc]:
    """A day of requests at the head, so that demand and speed are observed as the fixture has them.

    A token more than it says: a gateway does not count the first one as decoded.
    """
    pair: Doc = {"model": PAIR_MODEL, "ttftMs": 830, "tokensPerSecond": 45.2}
    embedding: Doc = {"model": "spark-node-03/qwen3-embedding-4b", "requested": "embeddings", "ttftMs": 57}
    return [
        {**pair, "requested": "cognition", "count": 40 * 24, "outputTokens": 601, "recent": 20},
        {**pair, "requested": "cognition-deep", "count": 4 * 24, "outputTokens": 2001, "recent": 2},
        {**embedding, "count": 300 * 24, "recent": 20},
        {"model": "spark-node-03/qwen-image-2.1", "requested": "image", "count": 6 * 24, "recent": 3},
        {"model": "spark-node-03/ltx-2.5", "requested": "video", "count": 12, "recent": 1},
    ]
