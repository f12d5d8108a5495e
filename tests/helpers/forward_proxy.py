"""A forward proxy on 127.0.0.1, as companies have one: tunnels, whole addresses, a password.

Every name leads to one server of this computer, so that a test may use any.
"""

from __future__ import annotations

import contextlib
import select
import socket
import threading
from base64 import b64encode
from contextlib import contextmanager
from dataclasses import dataclass, field
from socketserver import StreamRequestHandler, ThreadingTCPServer
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass
class ForwardProxy:
    """What it does, and what it was asked: method and target."""

    upstream: tuple[str, int]
    port: int = 0
    refuses: str = ""
    """The status line's end with which everything is refused: ``403 Forbidden``."""
    password: str = ""
    """``name:password`` that has to be given; empty for none."""
    asked: list[tuple[str, str]] = field(default_factory=list)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"


@contextmanager
def proxying(url: str, **behaviour: str) -> Iterator[ForwardProxy]:
    """A proxy that leads to the server at ``url``, whatever name it is asked for."""
    parts = urlsplit(url)
    made = ForwardProxy((parts.hostname, parts.port or 80), **behaviour)

    class Handler(_Handler):
        proxy = made

    ThreadingTCPServer.allow_reuse_address = True
    with ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        made.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield made
        server.shutdown()
        thread.join(5)


class _Handler(StreamRequestHandler):
    proxy: ForwardProxy

    def handle(self) -> None:
        with contextlib.suppress(OSError):
            self._serve()

    def _serve(self) -> None:
        method, target, _ = self.rfile.readline().decode("latin-1").split(" ", 2)
        headers = []
        while (line := self.rfile.readline()) not in {b"\r\n", b""}:
            headers.append(line)
        self.proxy.asked.append((method, target))
        if self.proxy.refuses:
            self._refuse(self.proxy.refuses)
        elif self.proxy.password and not self._is_welcome(headers):
            self._refuse("407 Proxy Authentication Required")
        else:
            with socket.create_connection(self.proxy.upstream, 10) as beyond:
                if method == "CONNECT":
                    self.wfile.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                else:
                    self._pass_on(beyond, method, target, headers)
                self._pump(beyond)

    def _is_welcome(self, headers: list[bytes]) -> bool:
        wanted = b"Basic " + b64encode(self.proxy.password.encode())
        return any(
            name.lower() == b"proxy-authorization" and value.strip() == wanted
            for name, _, value in (line.partition(b":") for line in headers)
        )

    def _refuse(self, status: str) -> None:
        answer = f"HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        self.wfile.write(answer.encode())

    def _pass_on(self, beyond: socket.socket, method: str, target: str, headers: list) -> None:
        parts = urlsplit(target)
        path = f"{parts.path}?{parts.query}" if parts.query else parts.path
        kept = [
            line for line in headers
            if not line.lower().startswith((b"proxy-", b"connection"))
        ]  # fmt: skip
        head = f"{method} {path} HTTP/1.1\r\n".encode() + b"".join(kept)
        beyond.sendall(head + b"Connection: close\r\n\r\n")

    def _pump(self, beyond: socket.socket) -> None:
        ways = {self.connection: beyond, beyond: self.connection}
        while True:
            for ready in select.select(list(ways), [], [], 10)[0] or [None]:
                data = ready.recv(65536) if ready is not None else b""
                if not data:
                    return
                ways[ready].sendall(data)
