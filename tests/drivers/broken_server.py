"""A server on loopback that misbehaves on purpose, one way a path, and remembers what it was sent."""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

HTML = b"<!doctype html><title>502 Bad Gateway</title>"


@dataclass
class BrokenServer:
    """`behaviours` by path; `seen` collects the heads of all requests as text."""

    url: str
    behaviours: dict[str, Callable[[socket.socket], None]]
    seen: list[str] = field(default_factory=list)
    released: threading.Event = field(default_factory=threading.Event)


def answer(status: int, body: bytes, *headers: str) -> Callable[[socket.socket], None]:
    """A complete answer of any kind."""
    lines = [f"HTTP/1.1 {status} X", f"content-length: {len(body)}", "connection: close", *headers]

    def send(client: socket.socket) -> None:
        client.sendall("\r\n".join([*lines, "", ""]).encode() + body)

    return send


def json_answer(status: int, body: Any) -> Callable[[socket.socket], None]:
    return answer(status, json.dumps(body).encode(), "content-type: application/json")


def reset(client: socket.socket) -> None:
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def half(client: socket.socket) -> None:
    client.sendall(b'HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{"ok"')


def garbage(client: socket.socket) -> None:
    client.sendall(b"\x00\x01 this is not HTTP\r\n\r\n")


def huge(client: socket.socket) -> None:
    client.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000000\r\n\r\n")
    with contextlib.suppress(OSError):
        while True:
            client.sendall(b"x" * 1_000_000)


@contextmanager
def broken_server() -> Iterator[BrokenServer]:
    """Serve until the block ends; whoever still waits for an answer is let go then."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = BrokenServer(f"http://127.0.0.1:{listener.getsockname()[1]}", {})

    def hang(client: socket.socket) -> None:
        server.released.wait()

    def drip(client: socket.socket) -> None:
        client.sendall(b"HTTP/1.1 200 OK\r\nx-slow: ")
        with contextlib.suppress(OSError):
            while not server.released.wait(0.02):
                client.sendall(b".")

    server.behaviours.update(
        {"/hang": hang, "/drip": drip, "/reset": reset, "/half": half, "/garbage": garbage, "/huge": huge}
    )

    def serve(client: socket.socket) -> None:
        with client:
            head = b""
            while b"\r\n\r\n" not in head and (part := client.recv(65536)):
                head += part
            text = head.decode("latin-1")
            server.seen.append(text)
            path = text.split(" ")[1].split("?")[0] if " " in text else ""
            server.behaviours.get(path, answer(404, b"nothing here"))(client)

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = listener.accept()
                threading.Thread(target=serve, args=(client,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield server
    finally:
        server.released.set()
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
