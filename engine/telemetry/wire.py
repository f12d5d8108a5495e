"""Questions to runtimes, exporters and Prometheus servers: short, bounded in time and size.

Nobody is asked but who is on this computer or where the user said: no redirect leads to another
host, and nothing goes through a proxy.
"""

from __future__ import annotations

import http.client
import io
import socket
import ssl
import time
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urljoin, urlsplit

from typing_extensions import override

from engine.errors import EndpointError
from engine.source.activity import ACTIVITY
from engine.telemetry.address import PORTS
from engine.text import printable
from engine.words import figures, tr

if TYPE_CHECKING:
    from collections.abc import Generator

    from engine.cancel import CancelToken
    from engine.telemetry.address import Address

LIMIT_S: Final = 2.0
"""How long one question may take altogether."""
MOST_BYTES: Final = 16 * 2**20
"""Of one answer: a metrics page with many labels takes some hundred KiB, a server's past more."""
_MOST_REDIRECTS = 3
_TICK_S = 0.1
"""How long a cancelled question goes on at most."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back."""

    status: int
    body: bytes

    @property
    def text(self) -> str:
        """The body, whatever bytes it has."""
        return self.body.decode("utf-8", errors="replace")


@dataclass(frozen=True, slots=True)
class Asking:
    """What a job grants its questions."""

    token: CancelToken
    offline: bool = False
    """Nothing but this computer is asked."""
    limit_s: float = LIMIT_S


def ask(
    address: Address,
    path: str,
    asking: Asking,
    *,
    key: str = "",
    body: bytes | None = None,
) -> Answer:
    """Ask once; any status is an answer, but for one that leads to another host.

    Args:
        address: which server.
        path: ``/metrics``, with its query.
        asking: how long and how far.
        key: sent as a bearer; empty for none.
        body: JSON to post; None to get.

    Raises:
        EndpointError: no answer within the limits.
        JobCancelledError: the token was cancelled.
    """
    if asking.offline and not address.is_loopback:
        message = tr("Offline mode is on, so {address} was not asked.")
        raise EndpointError(message.format(address=address), field="offline")
    method = "GET" if body is None else "POST"
    headers = {"Accept-Encoding": "identity", "Connection": "close"}
    if key:
        headers["Authorization"] = f"Bearer {key}"
    if body is not None:
        headers["Content-Type"] = "application/json"
    until = time.monotonic() + asking.limit_s
    place = address.folder + path
    for _ in range(_MOST_REDIRECTS + 1):
        with noted(address, method, place) as note, connected(address, asking, until) as wire:
            wire.request(method, place, body, headers)
            answer = wire.getresponse()
            note.status = answer.status
            if not 300 <= answer.status < 400:
                return Answer(answer.status, _whole(answer, address, note))
            place = _led(address, place, answer.getheader("Location") or "")
    raise EndpointError(tr("{address} leads {path} in circles.").format(address=address, path=path))


def _whole(answer: http.client.HTTPResponse, address: Address, note: Note) -> bytes:
    data = answer.read(MOST_BYTES + 1)
    note.received_bytes = len(data)
    if len(data) > MOST_BYTES:
        message = tr("{address} answers more than {most} MiB to one question.")
        raise EndpointError(message.format(address=address, most=MOST_BYTES // 2**20))
    return data


def _led(address: Address, place: str, leads_to: str) -> str:
    """Where on the same server ``place`` leads.

    Raises:
        EndpointError: it is another one, or none at all.
    """
    try:
        parts = urlsplit(urljoin(address.origin + place, leads_to))
        goal = parts.scheme, parts.hostname, parts.port or PORTS.get(parts.scheme)
    except ValueError:
        parts, goal = urlsplit(""), None
    if not leads_to or goal != (address.scheme, address.host, address.port):
        message = tr("{address} leads {path} elsewhere ({place}), which is not followed.")
        where = printable(leads_to, 120) or "?"
        path = printable(place.partition("?")[0], 120)
        raise EndpointError(message.format(address=address.origin, path=path, place=where))
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


@dataclass(slots=True)
class Note:
    """What the list of activity is told of one question."""

    status: int | None = None
    received_bytes: int = 0


@contextmanager
def noted(address: Address, method: str, path: str) -> Generator[Note]:
    """Put one question into the list of activity, whatever becomes of it; ``path`` is whole."""
    asked = ACTIVITY.begin(method, address.shown, path, "", repeats=True)
    began, note, trouble = time.monotonic(), Note(), ""
    try:
        yield note
    except EndpointError as error:
        trouble = error.message
        raise
    except BaseException as error:
        trouble = type(error).__name__
        raise
    finally:
        ACTIVITY.end(
            replace(
                asked,
                status=note.status,
                received_bytes=note.received_bytes,
                duration_s=time.monotonic() - began,
                trouble=trouble,
            )
        )


@contextmanager
def connected(
    address: Address, asking: Asking, until: float
) -> Generator[http.client.HTTPConnection]:
    """A connection on which every wait ends at ``until`` (monotonic seconds) or by the token.

    Raises:
        EndpointError: nothing answers there, or not in time, or not as HTTP does.
        JobCancelledError: the token was cancelled.
    """
    wire = _Connection(address, asking.token, until)
    try:
        yield wire
    except TimeoutError as error:
        message = tr("{address} has not answered within {limit} s.")
        limit = figures(format(asking.limit_s, "g"))
        raise EndpointError(message.format(address=address, limit=limit)) from error
    except ConnectionRefusedError as error:
        message = tr("Nothing answers at {address}.")
        raise EndpointError(message.format(address=address)) from error
    except ssl.SSLError as error:
        message = tr("{address} cannot be reached safely: its certificate is not trusted here.")
        raise EndpointError(message.format(address=address)) from error
    except OSError as error:
        message = tr("{address} cannot be reached ({why}).")
        why = error.strerror or type(error).__name__
        raise EndpointError(message.format(address=address, why=why)) from error
    except (http.client.HTTPException, ValueError) as error:
        message = tr("{address} does not answer as a web server does.")
        raise EndpointError(message.format(address=address)) from error
    finally:
        wire.end()


class _Connection(http.client.HTTPConnection):
    """HTTP over a socket whose waits look at a token and a time."""

    def __init__(self, address: Address, token: CancelToken, until: float) -> None:
        super().__init__(address.host, address.port)
        self._address = address
        self._token = token
        self._until = until
        self._found: socket.socket | None = None

    @override
    def connect(self) -> None:
        self._found = self._reached()
        if self._address.scheme == "https":
            from engine.source.reach import tls_context  # noqa: PLC0415 - slow to import

            self._found.settimeout(max(self._until - time.monotonic(), _TICK_S))
            context = tls_context("")
            self._found = context.wrap_socket(self._found, server_hostname=self._address.host)
        self.sock: Any = _Facade(self._found, self._token, self._until)

    def end(self) -> None:
        """Close the socket; ``close`` alone leaves it to an answer that is being read."""
        self.close()
        if self._found is not None:
            self._found.close()

    def _reached(self) -> socket.socket:
        # Nobody is asked where this computer is.
        hosts = ("127.0.0.1", "::1") if self.host == "localhost" else (self.host,)
        for host in hosts:
            self._token.raise_if_cancelled()
            left = self._until - time.monotonic()
            if left <= 0:
                raise TimeoutError
            try:
                return socket.create_connection((host, self.port), timeout=left)
            except ConnectionRefusedError:
                if host == hosts[-1]:
                    raise
        raise ConnectionRefusedError


class _Facade:
    """A socket as ``http.client`` uses one."""

    def __init__(self, inner: socket.socket, token: CancelToken, until: float) -> None:
        self._inner = inner
        self._reader = _Watched(inner, token, until)
        self._until = until

    def sendall(self, data: bytes) -> None:
        """Send all of ``data``; our questions are small."""
        self._inner.settimeout(max(self._until - time.monotonic(), _TICK_S))
        self._inner.sendall(data)

    def makefile(self, _mode: str) -> io.BufferedReader:
        """What answers are read from."""
        self._inner.settimeout(_TICK_S)
        return io.BufferedReader(self._reader)

    def close(self) -> None:
        """Leave the socket to who reads from it."""


class _Watched(io.RawIOBase):
    """What a socket receives; every wait is short."""

    def __init__(self, inner: socket.socket, token: CancelToken, until: float) -> None:
        super().__init__()
        self._inner = inner
        self._token = token
        self._until = until

    @override
    def readable(self) -> bool:
        return True

    @override
    def readinto(self, buffer: Any, /) -> int:
        while True:
            self._token.raise_if_cancelled()
            if time.monotonic() >= self._until:
                raise TimeoutError
            try:
                return self._inner.recv_into(buffer)
            except TimeoutError:
                continue
