"""A local server that answers as an exporter or as Prometheus does, with what a test gives it."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Answer = tuple[int, str, dict[str, str]]


class Exporter:
    """Places of the server and what they answer; ``asked`` has every path with its query."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.places: dict[str, Callable[[dict[str, str]], Answer]] = {}
        self.address = ""

    def page(self, text: str, path: str = "/metrics") -> None:
        """Answer ``path`` with ``text``."""
        self.places[path] = lambda _: (200, text, {})

    def redirect(self, place: str, path: str = "/metrics") -> None:
        """Lead ``path`` elsewhere."""
        self.places[path] = lambda _: (302, "", {"Location": place})

    def prometheus(self, *rows: dict[str, Any]) -> None:
        """Answer as a Prometheus server that has these series."""

        def query(fields: dict[str, str]) -> Answer:
            if fields["query"] == "vector(1)":
                return 200, json.dumps(vector({"metric": {}, "value": [1.0, "1"]})), {}
            return 200, json.dumps(vector(*rows)), {}

        self.places["/api/v1/query"] = query
        self.places["/api/v1/query_range"] = lambda _: (200, json.dumps(vector(*rows)), {})


def vector(*rows: dict[str, Any]) -> dict[str, Any]:
    """An answer of Prometheus' API with these series."""
    return {"status": "success", "data": {"resultType": "vector", "result": list(rows)}}


@contextmanager
def serving() -> Iterator[Exporter]:
    """A server on this computer, as long as the block lasts."""
    exporter = Exporter()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            exporter.asked.append(self.path)
            parts = urlsplit(self.path)
            fields = {key: values[0] for key, values in parse_qs(parts.query).items()}
            place = exporter.places.get(parts.path, lambda _: (404, "no such page", {}))
            status, text, headers = place(fields)
            self.send_response(status)
            for key, value in headers.items():
                self.send_header(key, value)
            body = text.encode()
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    exporter.address = f"127.0.0.1:{server.server_address[1]}"
    try:
        yield exporter
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
