"""Read a gateway config file: expand the environment, fill defaults, make federated models, judge."""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from typing import Any

from lloom_gitops.sim.gateway.document import Build, GatewayConfig, route_of, targets_of
from lloom_gitops.sim.gateway.judge import config_errors
from lloom_gitops.sim.gateway.refusals import Doc

_ENV = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


class InvalidConfig(Exception):
    """The file is not taken over; a running gateway keeps the old one and only its log says so."""

    def __init__(self, errors: list[str]) -> None:
        super().__init__("Invalid LLooM config:\n" + "\n".join(f"- {error}" for error in errors))
        self.errors = errors


def expand_env(value: Any, env: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return _ENV.sub(lambda m: env.get(m.group(1), ""), value)
    if isinstance(value, list):
        return [expand_env(item, env) for item in value]
    if isinstance(value, dict):
        return {key: expand_env(item, env) for key, item in value.items()}
    return value


def read_config(template: Doc, build: Build, env: Mapping[str, str]) -> GatewayConfig:
    """Complete and judge a parsed config file; `env` fills `${NAME}` and names the node. Raises `InvalidConfig`."""
    if not isinstance(template, dict):
        raise InvalidConfig(["the config is not an object"])
    doc: Doc = expand_env(copy.deepcopy(template), env)
    for section, default in _SECTIONS.items():
        doc[section] = {**default, **(doc.get(section) or {})}
    doc["models"] = list(doc.get("models") or [])
    cluster = doc["cluster"]
    cluster["nodes"] = {name: node or {} for name, node in (cluster.get("nodes") or {}).items()}
    node_id = env.get("LLOOM_NODE_ID") or cluster.get("nodeId") or env.get("HOSTNAME") or "localhost"
    _federate(doc)
    if build is Build.NEWER:
        _complete_newer(doc)
    config = GatewayConfig(template=template, doc=doc, node_id=str(node_id), build=build, env=env)
    errors = config_errors(config)
    if errors:
        raise InvalidConfig(errors)
    return config


_SECTIONS: dict[str, Doc] = {
    "server": {"host": "127.0.0.1", "port": 8100},
    "security": {
        "allowMissingAuth": True,
        "allowRemoteAdmin": False,
        "allowNonLoopbackBind": False,
        "publicTelemetry": False,
        "apiKeys": [],
        "adminApiKeys": [],
    },
    "logging": {},
    "defaults": {},
    "aliases": {},
    "backends": {},
    "runtimes": {},
    "cluster": {},
}


def _federate(doc: Doc) -> None:
    """Make a backend and models of every node that proxies some."""
    for node_id, node in doc["cluster"]["nodes"].items():
        proxy = node.get("proxy") or {}
        entries = [{"id": e} if isinstance(e, str) else dict(e) for e in proxy.get("models") or []]
        if proxy.get("enabled") is False or not entries or not (node.get("endpoint") or proxy.get("baseUrl")):
            continue
        backend = proxy.get("backend") or f"lloom-node-{node_id.lower()}"
        key_env = node.get("apiKeyEnv") or doc["cluster"].get("apiKeyEnv")
        doc["backends"].setdefault(
            backend,
            {
                "type": "openai",
                "baseUrl": proxy.get("baseUrl") or node["endpoint"].rstrip("/") + "/v1",
                **({"apiKeyEnv": key_env} if key_env else {}),
                "timeoutMs": proxy.get("timeoutMs", 1800000),
            },
        )
        namespace = "" if proxy.get("namespace") is False else str(proxy.get("namespace", node_id))
        for entry in entries:
            _federate_model(doc, node_id, backend, namespace, entry)


def _federate_model(doc: Doc, node_id: str, backend: str, namespace: str, entry: Doc) -> None:
    remote = entry.get("id") or entry.get("model")
    if not remote:
        return
    model_id = entry.get("as") or (f"{namespace}/{remote}" if namespace else remote)
    target = {
        "id": entry.get("targetId", node_id),
        "node": node_id,
        "backend": backend,
        "upstreamModel": remote,
        "weight": entry.get("weight", 1),
    }
    if entry.get("remoteRuntime"):
        target["remoteRuntime"] = entry["remoteRuntime"]
    present = next((m for m in doc["models"] if m.get("id") == model_id), None)
    if present is not None:
        present["targets"] = [*targets_of(present), target]
        present.pop("backend", None)
        present.pop("runtime", None)
        return
    own = {"id", "model", "as", "targetId", "weight", "backend", "runtime", "remoteRuntime", "targets"}
    doc["models"].append(
        {
            "id": model_id,
            "name": str(remote).rsplit("/", 1)[-1],
            "kind": "chat",
            **{key: value for key, value in entry.items() if key not in own},
            "upstreamModel": remote,
            "targets": [target],
            "federated": True,
        }
    )


def _complete_newer(doc: Doc) -> None:
    """What newer builds rewrite on load: the legacy pin, and legacy alias forms to members."""
    for entry in doc["runtimes"].values():
        policy = entry.get("policy") or {}
        if entry.get("evictable") is False or policy.get("evictable") is False:
            entry["keepWarm"] = True
    for name, alias in doc["aliases"].items():
        if isinstance(alias, str) or "members" not in alias:
            rest = {} if isinstance(alias, str) else {k: v for k, v in alias.items() if k not in _LEGACY}
            optional = [] if isinstance(alias, str) else list(alias.get("optionalFallbacks") or [])
            doc["aliases"][name] = {**rest, "members": [*route_of(alias), *optional]}
            if optional:
                doc["aliases"][name]["optionalMembers"] = optional


_LEGACY = frozenset({"target", "fallbacks", "optionalFallbacks"})
