"""Where a runtime answers, as a person types it or as its socket says."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from engine.errors import EndpointError
from engine.text import printable
from engine.words import tr

_LONGEST = 300
_PORTS: Final = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True, order=True)
class Address:
    """Scheme, host and port, and the folder below which the runtime answers."""

    host: str
    port: int
    scheme: str = "http"
    folder: str = ""
    """``/v2`` behind a proxy that has the runtime in a folder; else empty."""

    @property
    def is_loopback(self) -> bool:
        """Whether what is sent there stays on this computer."""
        return is_loopback(self.host)

    @property
    def origin(self) -> str:
        """Scheme, host and port: what a key belongs to."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"

    def __str__(self) -> str:
        return self.origin + self.folder


def is_loopback(host: str) -> bool:
    """Whether ``host`` is this computer without anybody being asked for its address."""
    if host == "localhost":
        return True
    try:
        found = ip_address(host)
    except ValueError:
        return False
    mapped = getattr(found, "ipv4_mapped", None)
    return (mapped or found).is_loopback


def parsed(text: str) -> Address:
    """The address in ``text``: ``8080``, ``localhost:8080``, ``http://10.0.0.5:8000/v1``.

    Raises:
        EndpointError: it is none.
    """
    written = text.strip()
    if written.isdigit():
        written = f"localhost:{written}"
    parts = urlsplit(written if "://" in written else f"http://{written}")
    try:
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    is_whole = bool(host) and parts.scheme in _PORTS and len(written) <= _LONGEST
    if not is_whole or host is None or printable(host) != host or any(c.isspace() for c in written):
        message = tr("This is no address of a runtime: it reads like localhost:8080.")
        raise EndpointError(message, field="address")
    if parts.username or parts.password:
        message = tr("Leave name and password out of the address: a key is asked for when needed.")
        raise EndpointError(message, field="address")
    folder = parts.path.rstrip("/").removesuffix("/v1").removesuffix("/metrics").rstrip("/")
    return Address(host.lower(), port or _PORTS[parts.scheme], parts.scheme, folder)
