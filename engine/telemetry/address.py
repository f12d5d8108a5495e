"""Where a runtime, an exporter or a server answers: as a person types it, or as a socket says."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from engine.errors import EndpointError
from engine.text import printable
from engine.words import tr

_LONGEST = 300
PORTS: Final = {"http": 80, "https": 443}
"""Of each scheme that is spoken, the usual port."""


@dataclass(frozen=True, slots=True, order=True)
class Address:
    """Scheme, host and port, and the folder below which the runtime answers."""

    host: str
    port: int
    scheme: str = "http"
    folder: str = ""
    """``/v2`` behind a proxy that has the server in a folder; else empty."""

    @property
    def is_loopback(self) -> bool:
        """Whether what is sent there stays on this computer."""
        return is_loopback(self.host)

    @property
    def origin(self) -> str:
        """Scheme, host and port: what a key belongs to."""
        return f"{self.scheme}://{self.shown}"

    @property
    def shown(self) -> str:
        """Host and port, as a machine is called by them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

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
    """The address in ``text``: ``8080``, ``gpu-box:9400``, ``http://10.0.0.5:8000/v1``.

    The page that was typed is left out: each reader knows its own, and its folder is all it needs.

    Raises:
        EndpointError: it is none.
    """
    written = text.strip()
    if written.isdigit():
        written = f"localhost:{written}"
    try:
        parts = urlsplit(written if "://" in written else f"http://{written}")
        host, port = parts.hostname, parts.port
    except ValueError:
        parts, host, port = urlsplit(""), None, None
    is_whole = bool(host) and parts.scheme in PORTS and len(written) <= _LONGEST
    if not is_whole or host is None or printable(host) != host or any(c.isspace() for c in written):
        message = tr("This is no address: it reads like localhost:8080 or http://gpu-box:9400.")
        raise EndpointError(message, field="address")
    if parts.username or parts.password:
        message = tr("Leave name and password out of the address: a key is asked for when needed.")
        raise EndpointError(message, field="address")
    folder = parts.path.rstrip("/")
    for page in ("/v1", "/metrics", "/graph"):
        folder = folder.removesuffix(page).rstrip("/")
    return Address(host.lower(), port or PORTS[parts.scheme], parts.scheme, folder)
