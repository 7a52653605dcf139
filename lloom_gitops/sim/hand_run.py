"""A model server that a person runs by hand: no gateway starts or stops it, only its health address tells of it."""

from __future__ import annotations

import http.server
import threading
from types import TracebackType


class HandRunServer:
    """Answers 200 on loopback while it is up; stopped, nothing listens at its port any more."""

    def __init__(self, path: str = "/health") -> None:
        self._path = path
        self._server: http.server.ThreadingHTTPServer | None = None
        self._port = 0

    @property
    def health_url(self) -> str:
        """Its health address, known once it was started."""
        return f"http://127.0.0.1:{self._port}{self._path}"

    def start(self) -> None:
        """Start it, again at its old port."""
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", self._port), _Healthy)
        self._port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True, name="hand-run").start()

    def stop(self) -> None:
        """Stop it; harmless when it is down."""
        server, self._server = self._server, None
        if server is not None:
            server.shutdown()
            server.server_close()

    def __enter__(self) -> HandRunServer:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


class _Healthy(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        return
