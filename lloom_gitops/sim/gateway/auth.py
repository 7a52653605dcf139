"""Who may call what: the four classes of routes and the keys they want. Pure, per build."""

from __future__ import annotations

from collections.abc import Mapping

from lloom_gitops.sim.gateway.document import Build, GatewayConfig
from lloom_gitops.sim.gateway.refusals import Doc, GatewayRefusal

_PUBLIC = frozenset({"/health", "/", "/gateway/dashboard", "/gateway/security"})
_TELEMETRY = frozenset({"/gateway/status", "/gateway/metrics", "/gateway/models"})
_LOOPBACK_NAMES = frozenset({"localhost", "::1", "0:0:0:0:0:0:0:1"})


def is_loopback(host: str) -> bool:
    name = host.strip().lower().strip("[]")
    return name in _LOOPBACK_NAMES or name.startswith("127.")


def presented_key(headers: Mapping[str, str]) -> str | None:
    """The caller's key: bearer first, then `x-api-key`."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and token.strip():
        return token.strip()
    return headers.get("x-api-key") or None


def route_class(method: str, path: str) -> str:
    if method == "OPTIONS" or (method == "GET" and path in _PUBLIC):
        return "public"
    if path.startswith("/gateway/"):
        return "admin-write" if method == "POST" else "admin-read"
    return "inference"


def refuse(config: GatewayConfig, method: str, path: str, headers: Mapping[str, str]) -> GatewayRefusal | None:
    """Why a call is not let in; None: it is."""
    security = config.doc["security"]
    public = security["publicTelemetry"] is True and method == "GET" and path in _TELEMETRY
    kind = "public" if public else route_class(method, path)
    newer = config.build is Build.NEWER
    if newer and path.startswith("/gateway/") and (denied := _foreign_origin(config, headers)) is not None:
        return denied
    if kind == "public":
        return None
    key = presented_key(headers)
    admin_keys = [k for k in security["adminApiKeys"] if k]
    inference_keys = [k for k in security["apiKeys"] if k]
    is_admin = key is not None and key in (admin_keys or inference_keys)
    is_inference = key is not None and key in (inference_keys or admin_keys)
    if newer and path.startswith("/gateway/deployment-fence/") and (not admin_keys or key not in admin_keys):
        return _denied(403, "deployment_admin_key_required", "deployment routes need an explicit admin key")
    if not is_loopback(config.doc["server"]["host"]):
        return _refuse_remote(security, kind, is_admin, is_inference, newer, bool(admin_keys))
    if kind != "inference" and admin_keys:
        return None if is_admin else _denied(401, "unauthorized", "missing or invalid admin authorization token")
    if security["allowMissingAuth"] is True or is_admin or is_inference:
        return None
    return _denied(401, "unauthorized", "missing or invalid authorization token")


def _refuse_remote(
    security: Doc, kind: str, is_admin: bool, is_inference: bool, newer: bool, keyed: bool
) -> GatewayRefusal | None:
    """A gateway that listens on more than loopback."""
    if kind == "admin-write":
        if newer and not keyed:
            return _denied(403, "admin_key_required", "admin writes need an admin key")
        if security["allowRemoteAdmin"] is not True:
            return _denied(403, "remote_admin_disabled", "Admin write endpoints are disabled on non-loopback binds.")
        if newer and not is_admin:
            return _denied(403, "admin_key_required", "admin writes need an admin key")
    allowed = is_admin or (kind == "inference" and is_inference)
    return None if allowed else _denied(401, "unauthorized", "missing or invalid authorization token")


def _foreign_origin(config: GatewayConfig, headers: Mapping[str, str]) -> GatewayRefusal | None:
    host = headers.get("host", "")
    name = host.rsplit(":", 1)[0] if not host.endswith("]") else host
    if is_loopback(config.doc["server"]["host"]) and not is_loopback(name):
        return _denied(403, "admin_origin_denied", "the Host header must name this machine")
    origin = headers.get("origin")
    if origin is not None and origin.split("://", 1)[-1] != host:
        return _denied(403, "admin_origin_denied", "the Origin header must match the host")
    return None


def _denied(status: int, code: str, message: str) -> GatewayRefusal:
    kind = "authentication_error" if status == 401 else "permission_error"
    return GatewayRefusal(message, status=status, code=code, kind=kind)


def public_status(config: GatewayConfig) -> Doc:
    """The body of `/gateway/security`: no secrets."""
    security, host = config.doc["security"], config.doc["server"]["host"]
    loopback = is_loopback(host)
    keyed = any(security["adminApiKeys"])
    return {
        "loopback": loopback,
        "bindHost": host,
        "allowMissingAuth": security["allowMissingAuth"] is True,
        "allowRemoteAdmin": security["allowRemoteAdmin"] is True,
        "allowNonLoopbackBind": security["allowNonLoopbackBind"] is True,
        "authRequired": not loopback or security["allowMissingAuth"] is not True,
        "adminAuthRequired": keyed or not loopback,
        "inferenceKeysConfigured": any(security["apiKeys"]),
        "adminKeysConfigured": keyed,
        "publicTelemetry": security["publicTelemetry"] is True,
    }
