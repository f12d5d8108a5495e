"""A runtime's endpoint on 127.0.0.1 that answers what was recorded, and notes what it was asked."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from engine.telemetry.address import Address

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@dataclass
class Recorded:
    """What is answered by path; anything else is a 404."""

    answers: dict[str, Any] = field(default_factory=dict[str, Any])
    """Text, bytes, something for JSON, or a function that writes to the handler."""
    key: str = ""
    """The key that is asked for; empty for none."""
    asked: list[str] = field(default_factory=list[str])
    """``GET /metrics``, in order."""
    keys: list[str] = field(default_factory=list[str])
    """The ``Authorization`` of each request."""
    bodies: list[Any] = field(default_factory=list[Any])
    """The JSON of each post."""
    release: threading.Event = field(default_factory=threading.Event)
    """Ends an answer that waits, so that no thread outlives its test."""
    address: Address = field(default_factory=lambda: Address("127.0.0.1", 0))


@contextmanager
def serving(answers: dict[str, Any], *, key: str = "") -> Iterator[Recorded]:
    """A server of ``answers`` until the end of the block."""
    recorded = Recorded(answers, key)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler_of(recorded))
    server.daemon_threads = True
    recorded.address = Address("127.0.0.1", server.server_port)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield recorded
    finally:
        recorded.release.set()
        server.shutdown()
        server.server_close()


def streamed(pieces: int, usage: dict[str, int] | None = None, *, waits: bool = False) -> Any:
    """An answer to ``/v1/completions`` of so many pieces; ``waits`` before the last one."""

    def write(handler: BaseHTTPRequestHandler, recorded: Recorded) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream")
        handler.end_headers()
        for number in range(pieces):
            if waits and number == pieces - 1:
                handler.wfile.flush()
                recorded.release.wait(30)
            _event(handler, {"choices": [{"text": "a"}], "usage": None})
        if usage is not None:
            _event(handler, {"choices": [], "usage": usage})
        handler.wfile.write(b"data: [DONE]\n\n")

    return write


def _event(handler: BaseHTTPRequestHandler, said: object) -> None:
    handler.wfile.write(b"data: " + json.dumps(said).encode() + b"\n\n")
    handler.wfile.flush()


def _handler_of(recorded: Recorded) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer()

        def do_POST(self) -> None:
            self._answer()

        def _answer(self) -> None:
            recorded.asked.append(f"{self.command} {self.path}")
            recorded.keys.append(self.headers.get("Authorization", ""))
            if self.command == "POST":
                length = int(self.headers["Content-Length"])
                recorded.bodies.append(json.loads(self.rfile.read(length)))
            if recorded.key and self.headers.get("Authorization") != f"Bearer {recorded.key}":
                self._say(401, b'{"error": "unauthorized"}')
                return
            answer = recorded.answers.get(self.path)
            if answer is None:
                self._say(404, b"not found")
            elif callable(answer):
                _written(answer, self, recorded)
            else:
                self._say(200, _bytes(answer))

        def _say(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    return Handler


def _written(
    write: Callable[[Any, Recorded], None], handler: BaseHTTPRequestHandler, recorded: Recorded
) -> None:
    with suppress(BrokenPipeError, ConnectionResetError):  # who asked has left
        write(handler, recorded)


def _bytes(answer: Any) -> bytes:
    if isinstance(answer, bytes):
        return answer
    return answer.encode() if isinstance(answer, str) else json.dumps(answer).encode()
