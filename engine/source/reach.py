"""How the Hub is reached: where it is, through which proxy, and trusting whose certificates."""

from __future__ import annotations

import os
import re
import ssl
import sys
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import lru_cache
from ipaddress import ip_address, ip_network
from pathlib import Path
from urllib.parse import unquote, urlsplit

from engine.errors import HubError, UsageError
from engine.source.reference import is_web_address
from engine.text import printable
from engine.words import tr

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_MOST_CERTIFICATES_BYTES = 16 * 2**20


class ProxyChoice(StrEnum):
    """Who says which proxy is used."""

    SYSTEM = "system"
    """The environment, and where that says nothing the system's settings."""
    ENVIRONMENT = "environment"
    MANUAL = "manual"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Reach:
    """The way to the Hub, as a person sets it. Holds no password and no token."""

    proxy: ProxyChoice = ProxyChoice.SYSTEM
    address: str = ""
    """Of the proxy, for ``MANUAL``."""
    no_proxy: str = ""
    """Hosts, domains and networks that are asked without it, for ``MANUAL``."""
    ca_file: str = ""
    """Certificates to trust beside those of this computer."""
    mirror: str = ""
    """Another Hub; empty for ``HF_ENDPOINT``, else huggingface.co."""

    def checked(self) -> Reach:
        """The same, with its addresses in full.

        Raises:
            UsageError: one of them can't be one; ``field`` is its name here.
        """
        address, mirror = self.address.strip(), self.mirror.strip()
        if self.proxy is ProxyChoice.MANUAL:
            address = _proxy_address(address)
        if mirror:
            mirror = _mirror_address(mirror)
        return replace(self, address=address, mirror=mirror, ca_file=self.ca_file.strip())


@dataclass(frozen=True, slots=True)
class Proxy:
    """One proxy. Its text holds neither name nor password."""

    scheme: str
    host: str
    port: int
    said_by: ProxyChoice
    credentials: tuple[str, str] | None = field(default=None, repr=False)

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"{self.scheme}://{self}"


def _proxy_address(text: str) -> str:
    if not text:
        raise UsageError(
            tr("Type the proxy’s address, such as proxy.example.com:8080."), field="address"
        )
    text = text if "://" in text else f"http://{text}"
    if "@" in text:
        # Whatever stands before it may be a password, and is repeated nowhere.
        raise UsageError(
            tr(
                "No name or password is kept here: put the address with both into https_proxy of "
                "the environment, and choose Environment."
            ),
            field="address",
        )
    try:
        return _parsed(text, ProxyChoice.MANUAL).url
    except HubError as error:
        raise UsageError(error.message, field="address") from None


def _mirror_address(text: str) -> str:
    text = text if "://" in text else f"https://{text}"
    if "@" in text:
        message = tr("No name or password is kept here: give a token under Access to the Hub.")
        raise UsageError(message, field="mirror")
    if not is_web_address(text) or re.search(r"[\s?#]", text) or printable(text) != text:
        message = tr("“{text}” is no server’s address, such as https://hub.example.com.")
        raise UsageError(message.format(text=printable(text, 80)), field="mirror")
    return text.rstrip("/")


def proxy_for(reach: Reach, scheme: str, host: str, port: int) -> Proxy | None:
    """The proxy on the way to a server, if there is one. This computer is never asked through one.

    Raises:
        HubError: the proxy is of a kind that can't be used, or its address is none.
    """
    if reach.proxy is ProxyChoice.NONE or host in LOOPBACK:
        return None
    if reach.proxy is ProxyChoice.MANUAL:
        spares = is_spared(host, port, _listed(reach.no_proxy))
        return None if spares else _parsed(reach.address, reach.proxy)
    # Slow to import, and not needed by who never asks the Hub.
    from urllib import request  # noqa: PLC0415

    found = request.getproxies_environment()
    if found.keys() - {"no"} or reach.proxy is ProxyChoice.ENVIRONMENT:
        spares = is_spared(host, port, _listed(found.get("no", "")))
        said_by = ProxyChoice.ENVIRONMENT
    elif sys.platform in {"darwin", "win32"}:
        found, spares = request.getproxies(), request.proxy_bypass(host)
        said_by = ProxyChoice.SYSTEM
    else:
        from engine.source import desktop_proxy  # noqa: PLC0415 - as above

        desktop = desktop_proxy.settings()
        found, spares = desktop.proxies, is_spared(host, port, desktop.spared)
        said_by = ProxyChoice.SYSTEM
    address = found.get(scheme) or found.get("all") or ""
    return None if spares or not address else _parsed(address, said_by)


def _listed(text: str) -> list[str]:
    return [entry for entry in re.split(r"[\s,;]+", text) if entry]


def is_spared(host: str, port: int, entries: list[str]) -> bool:
    """Whether ``entries`` name a host: names, domains, addresses, networks, ``*``."""
    host = host.lower()
    for entry in entries:
        name = entry.lower().removeprefix("*").lstrip(".").removesuffix(f":{port}")
        if not name or host == name or host.endswith(f".{name}"):
            return True
        try:
            if ip_address(host) in ip_network(entry, strict=False):
                return True
        except ValueError:
            continue
    return False


def _parsed(address: str, said_by: ProxyChoice) -> Proxy:
    text = address if "://" in address else f"http://{address}"
    scheme = text.partition("://")[0].lower()
    if scheme not in {"http", "https"}:
        message = tr("The proxy of this computer is of the kind {kind}; only HTTP ones work.")
        raise HubError(message.format(kind=printable(scheme, 20)), field="proxy")
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port or (80 if scheme == "http" else 443)
    except ValueError:
        host, port = None, 0
        parts = urlsplit("")
    if not host or re.search(r"\s", host) or printable(host) != host:
        # Not repeated: it may hold a password.
        message = tr("The proxy’s address is none: it reads like proxy.example.com:8080.")
        raise HubError(message, field="proxy")
    name, password = unquote(parts.username or ""), unquote(parts.password or "")
    return Proxy(scheme, host, port, said_by, (name, password) if name or password else None)


def tls_context(ca_file: str) -> ssl.SSLContext:
    """Trusts what this computer trusts (or ``SSL_CERT_FILE`` says), and ``ca_file``.

    Raises:
        HubError: the file can't be read, or holds no certificate.
    """
    if not ca_file:
        return _context("", 0)
    try:
        return _context(ca_file, Path(ca_file).stat().st_mtime_ns)
    except (OSError, ValueError) as exc:
        # An error of TLS is one of the system's too, with a code for a reason.
        why = exc.strerror if isinstance(exc, OSError) and not isinstance(exc, ssl.SSLError) else ""
        name = printable(ca_file, 200)
        if why:
            message = tr("The certificates {name} can’t be read ({why}): choose another file.")
            raise HubError(message.format(name=name, why=why), field="ca_file") from exc
        message = tr("{name} holds no certificate: choose a file in PEM or DER form.")
        raise HubError(message.format(name=name), field="ca_file") from exc


@lru_cache(maxsize=4)
def _context(ca_file: str, _changed_at: int) -> ssl.SSLContext:
    import httpx2  # noqa: PLC0415 - slow to import

    context = httpx2.create_ssl_context()
    if ca_file:
        with Path(ca_file).open("rb") as file:
            data = file.read(_MOST_CERTIFICATES_BYTES)
        is_text = b"-----BEGIN" in data
        # Comments between the certificates may be in any language.
        context.load_verify_locations(
            cadata=data.decode("ascii", "ignore") if is_text else data or b"\0"
        )
    return context


def mirror_of_environment() -> str:
    """The Hub that ``HF_ENDPOINT`` names, if it does."""
    return os.environ.get("HF_ENDPOINT", "").rstrip("/")
