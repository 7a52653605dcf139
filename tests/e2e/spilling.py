"""A gateway that refuses to load a lane, in words that hold more than they should; else it passes everything on."""

from __future__ import annotations

import http.client
import http.server
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def spilling_gateway(url: str, message: str) -> Iterator[str]:
    """Stands before the gateway at `url`; its own URL. An admission fails for good, and `message` says why."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._pass_on()

        def do_POST(self) -> None:
            if self.path.endswith("/admit"):
                error = {"code": "runtime_memory_safety_abort", "message": message}
                self._answer(503, json.dumps({"error": error}).encode())
            else:
                self._pass_on()

        def _pass_on(self) -> None:
            behind = http.client.HTTPConnection(url.removeprefix("http://"), timeout=30)
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            behind.request(self.command, self.path, body, dict(self.headers))
            answer = behind.getresponse()
            self._answer(answer.status, answer.read())
            behind.close()

        def _answer(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("content-type", "application/json; charset=utf-8")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            return

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
