"""A tiny model server for a real gateway to run: 503 on /health until it is loaded, then answers."""

from __future__ import annotations

import argparse
import json
import os
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--pids", type=Path, required=True)
    parser.add_argument("--load-seconds", type=float, default=1.0)
    parser.add_argument("--exit-after", type=float)
    options = parser.parse_args()
    (options.pids / str(os.getpid())).touch()
    ready_at = time.monotonic() + options.load_seconds
    if options.exit_after is not None:
        threading.Timer(options.exit_after, os._exit, [1]).start()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._answer(200 if time.monotonic() >= ready_at else 503, {"ok": True})

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}")
            if body.get("stream"):
                self._stream(int(body.get("max_tokens", 20)))
                return
            time.sleep(0.05)
            usage = {"prompt_tokens": 10, "completion_tokens": 20, "total_tokens": 30}
            if self.path.endswith("/embeddings"):
                data = [{"object": "embedding", "index": 0, "embedding": [0.1, 0.2, 0.3]}]
                self._answer(200, {"object": "list", "data": data, "usage": usage})
                return
            message = {"role": "assistant", "content": "word " * 20}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            self._answer(200, {"object": "chat.completion", "choices": [choice], "usage": usage})

        def _answer(self, status: int, body: dict) -> None:
            raw = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def _stream(self, tokens: int) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("connection", "close")
            self.end_headers()
            for _ in range(tokens):
                event = {"choices": [{"index": 0, "delta": {"content": "word "}}]}
                self.wfile.write(b"data: " + json.dumps(event).encode() + b"\n\n")
                self.wfile.flush()
                time.sleep(0.025)
            self.wfile.write(b"data: [DONE]\n\n")

        def log_message(self, *arguments: object) -> None:
            """Say nothing."""

    ThreadingHTTPServer(("127.0.0.1", options.port), Handler).serve_forever()


if __name__ == "__main__":
    sys.exit(main())
