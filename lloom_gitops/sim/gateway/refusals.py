"""What a gateway refuses with: an HTTP status and the error body of the build that answers."""

from __future__ import annotations

from typing import Any

Doc = dict[str, Any]


class GatewayRefusal(Exception):
    """An answer other than 200: `status`, `code`, `type` and prose, as the gateway's error body carries them."""

    def __init__(
        self,
        message: str,
        *,
        status: int = 500,
        code: str = "server_error",
        kind: str | None = None,
        retry_after: int | None = None,
        model: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.code = code
        self.kind = kind or ("server_error" if status == 500 else "invalid_request_error")
        self.retry_after = retry_after
        self.model = model

    def body(self) -> Doc:
        error: Doc = {"message": self.message, "type": self.kind, "code": self.code}
        if self.model is not None:
            error["model"] = self.model
        return {"error": error}


def bad_request(message: str, code: str = "bad_request", status: int = 400) -> GatewayRefusal:
    return GatewayRefusal(message, status=status, code=code)


def no_route(path: str) -> GatewayRefusal:
    return bad_request(f"unknown route: {path}", code="not_found", status=404)


def admission_refusal(message: str, code: str, *, temporary: bool = False) -> GatewayRefusal:
    """A refusal of admission; `retry-after: 2` goes along even where it is permanent."""
    return GatewayRefusal(
        message, status=429 if temporary else 503, code=code, kind="runtime_admission_error", retry_after=2
    )


def authority_forbidden(lane: str, owner: str) -> GatewayRefusal:
    return GatewayRefusal(
        f"runtime {lane} is owned by node {owner}; call its gateway",
        status=403,
        code="RUNTIME_AUTHORITY_FORBIDDEN",
        kind="runtime_authority_error",
    )


def under_maintenance(lane: str) -> GatewayRefusal:
    return GatewayRefusal(
        f"runtime {lane} is suspended for maintenance",
        status=503,
        code="RUNTIME_MAINTENANCE",
        kind="runtime_maintenance_error",
        retry_after=5,
    )
