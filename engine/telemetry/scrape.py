"""Fetching figures from an address that the user typed, and from no other.

Bounded in time and size; a redirect is followed on the same host only. Nothing is sent but the
question: no cookie, no token, no name.
"""

from __future__ import annotations

import http.client
import ssl
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Protocol
from urllib.parse import urljoin, urlsplit

from engine.errors import TelemetryError
from engine.source import reach
from engine.source.activity import ACTIVITY
from engine.text import printable
from engine.words import tr

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator

LIMIT_S: Final = 5.0
MOST_BYTES: Final = 16 * 2**20
_MOST_REDIRECTS = 3
_CHUNK = 64 * 1024
_LONGEST = 1000
_PORTS: Final = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Address:
    """Where an exporter or a Prometheus server is."""

    scheme: str
    host: str
    port: int
    path: str
    """Empty where only the server was named."""

    @property
    def shown(self) -> str:
        """As a person writes it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    def under(self, path: str) -> Address:
        """Another place on the same server, below what was typed of a folder."""
        folder = self.path.removesuffix("/").removesuffix("/metrics").removesuffix("/graph")
        return replace(self, path=folder + path)


class Get(Protocol):
    """Fetches a place of a server; replaced in tests."""

    def __call__(self, place: Address) -> tuple[int, str]:
        """Status and text.

        Raises:
            TelemetryError: nothing came, or too much.
        """
        ...


def address(typed: str) -> Address:
    """The address in ``gpu-box:9400``, ``http://10.0.0.5:9090`` or with a path.

    Raises:
        TelemetryError: it is none.
    """
    written = typed.strip()
    try:
        parts = urlsplit(written if "://" in written else f"http://{written}")
        host, port = parts.hostname or "", parts.port
    except ValueError:
        parts, host, port = urlsplit(""), "", None
    is_odd = len(written) > _LONGEST or printable(written) != written or " " in written
    if not host or is_odd or parts.scheme not in _PORTS or parts.username or parts.password:
        message = tr(
            "{typed!r} is no address of an exporter: it reads like gpu-box:9400 or "
            "http://prometheus:9090."
        )
        raise TelemetryError(message.format(typed=printable(written, 120)), field="prometheus")
    path = parts.path.rstrip("/")
    return Address(parts.scheme, host, port or _PORTS[parts.scheme], path)


def get(place: Address, limit_s: float = LIMIT_S) -> tuple[int, str]:
    """Status and text at ``place``; any status that is no redirect is an answer.

    Raises:
        TelemetryError: no whole answer within the limits, or one that leads to another host.
    """
    until = time.monotonic() + limit_s
    for _ in range(_MOST_REDIRECTS + 1):
        status, text, leads_to = _asked(place, until)
        if not leads_to:
            return status, text
        place = _elsewhere(place, leads_to)
    raise TelemetryError(tr("{place} leads in circles.").format(place=place.shown))


def _elsewhere(place: Address, leads_to: str) -> Address:
    try:
        parts = urlsplit(urljoin(f"{place.scheme}://{place.shown}{place.path or '/'}", leads_to))
        goal = parts.hostname, parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        parts, goal = urlsplit(""), None
    if goal != (place.host, place.port):
        message = tr("{place} leads to {host}, which nobody asked for, so it was not followed.")
        host = printable(parts.netloc, 80) or "?"
        raise TelemetryError(message.format(place=place.shown, host=host))
    query = f"?{parts.query}" if parts.query else ""
    return replace(place, scheme=parts.scheme, path=parts.path + query)


def _asked(place: Address, until: float) -> tuple[int, str, str]:
    """Status, text, and where it leads."""
    connection = _connection(place, max(until - time.monotonic(), 0.1))
    noted = ACTIVITY.begin("GET", place.shown, place.path or "/", "")
    began, trouble, status, size = time.monotonic(), "", None, 0
    try:
        headers = {"Accept": "text/plain, application/json", "Accept-Encoding": "identity"}
        connection.request("GET", place.path or "/", headers=headers)
        answer = connection.getresponse()
        status = answer.status
        body = b"".join(_chunks(answer, connection, place, until))
        size = len(body)
        leads_to = (answer.getheader("Location") or "") if 300 <= status < 400 else ""
        return status, body.decode("utf-8", errors="replace"), leads_to
    except (OSError, http.client.HTTPException, ValueError) as error:
        trouble = _why(error)
        message = tr("{place} cannot be read: {why}.")
        raise TelemetryError(message.format(place=place.shown, why=trouble)) from error
    finally:
        connection.close()
        took = time.monotonic() - began
        ACTIVITY.end(
            replace(noted, status=status, received_bytes=size, duration_s=took, trouble=trouble)
        )


def _connection(place: Address, limit_s: float) -> http.client.HTTPConnection:
    if place.scheme == "https":
        return http.client.HTTPSConnection(
            place.host, place.port, timeout=limit_s, context=reach.tls_context("")
        )
    return http.client.HTTPConnection(place.host, place.port, timeout=limit_s)


def _chunks(
    answer: http.client.HTTPResponse,
    connection: http.client.HTTPConnection,
    place: Address,
    until: float,
) -> Iterator[bytes]:
    total = 0
    while chunk := answer.read1(_CHUNK):
        total += len(chunk)
        if total > MOST_BYTES:
            message = tr("{place} answers with more than 16 MiB, which is no list of figures.")
            raise TelemetryError(message.format(place=place.shown))
        left = until - time.monotonic()
        if left <= 0:
            raise TimeoutError
        wire: socket.socket | None = connection.sock
        if wire is not None:
            wire.settimeout(left)
        yield chunk


def _why(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return tr("it has not answered in time")
    if isinstance(error, ConnectionRefusedError):
        return tr("nothing listens there")
    if isinstance(error, ssl.SSLError):
        return tr("its certificate is not trusted here")
    if isinstance(error, OSError):
        return printable(error.strerror or type(error).__name__, 80)
    return tr("it does not answer as a web server does")
