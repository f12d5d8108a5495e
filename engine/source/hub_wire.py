"""Connections that keep to the policy in force: its limits, its token, its way."""

from __future__ import annotations

import socket
import time
from typing import TYPE_CHECKING, Any, cast

import httpcore2
from typing_extensions import override

from engine.source.hub_policy import CLOCK, Policy, policy_here
from engine.source.reach import Proxy, ProxyChoice
from engine.source.trail import Step
from engine.source.way_errors import TlsError, UnknownNameError
from engine.text import printable
from engine.words import tr, tr_later

if TYPE_CHECKING:
    import ssl

_SLICE_S = 0.1
"""How long a blocked read may ignore a cancelled token."""
_SAID_BY = {
    ProxyChoice.SYSTEM: tr_later("Through {proxy}, as this computer is set"),
    ProxyChoice.ENVIRONMENT: tr_later("Through {proxy}, as the environment says"),
    ProxyChoice.MANUAL: tr_later("Through {proxy}"),
}


class _Stream(httpcore2.NetworkStream):
    """A connection whose reads wake up to look at the token and the clock."""

    def __init__(
        self, inner: httpcore2.NetworkStream, proxy: Proxy | None, *, is_plain: bool = True
    ) -> None:
        self._inner = inner
        self._proxy = proxy
        self._is_plain = is_plain

    @override
    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        policy, clock = policy_here(), CLOCK.get()
        while True:
            policy.token.raise_if_cancelled()
            left = clock.left_s()
            try:
                data = self._inner.read(max_bytes, min(left, _SLICE_S))
            except httpcore2.ReadTimeout:
                continue
            clock.took(len(data))
            return data

    @override
    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._inner.write(buffer, policy_here().timeout_s)

    @override
    def close(self) -> None:
        self._inner.close()

    @override
    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore2.NetworkStream:
        policy, proxy, host = policy_here(), self._proxy, server_hostname or ""
        is_to_proxy = self._is_plain and proxy is not None and proxy.scheme == "https"
        if proxy is not None and not is_to_proxy:
            tell_proxy(policy, proxy, host)
        try:
            inner = self._inner.start_tls(ssl_context, server_hostname, policy.timeout_s)
        except httpcore2.ConnectTimeout as exc:
            raise httpcore2.ReadTimeout(str(exc)) from exc
        except httpcore2.ConnectError as exc:
            raise TlsError(host, exc.__cause__) from exc
        if not is_to_proxy:
            policy.tell(Step.TLS, _tls_words(inner))
        return _Stream(inner, proxy, is_plain=False)

    @override
    def get_extra_info(self, info: str) -> object:
        return self._inner.get_extra_info(info)


def tell_passage(policy: Policy, proxy: Proxy) -> None:
    """The proxy lets the request through, whatever comes after."""
    policy.tell(Step.PROXY, tr(_SAID_BY[proxy.said_by]).format(proxy=proxy))


def tell_proxy(policy: Policy, proxy: Proxy, host: str) -> None:
    """The proxy is connected to ``host``."""
    tell_passage(policy, proxy)
    policy.tell(Step.CONNECT, tr("The proxy is connected to {host}").format(host=host))


def _tls_words(stream: httpcore2.NetworkStream) -> str:
    found = stream.get_extra_info("ssl_object")
    version = str(found.version()).replace("v", " ")
    # Where the system itself checks certificates, Python is not told whose it is.
    issuer = cast("dict[str, Any]", found.getpeercert() or {}).get("issuer", ())
    names = {key: value for part in issuer for key, value in part}
    by = printable(str(names.get("organizationName") or names.get("commonName") or ""), 60)
    if by:
        return tr("{version}, with a certificate of {by}").format(version=version, by=by)
    return tr("{version}, and the certificate is trusted").format(version=version)


class Backend(httpcore2.SyncBackend):
    """Opens connections within the limit of the policy."""

    def __init__(self, proxy: Proxy | None) -> None:
        super().__init__()
        self._proxy = proxy

    @override
    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: object = None,
    ) -> httpcore2.NetworkStream:
        policy = policy_here()
        policy.token.raise_if_cancelled()
        addresses = _addresses(host, port)
        policy.tell(Step.NAME, _name_words(host, addresses))
        done_at = time.monotonic() + policy.timeout_s
        for place, address in enumerate(addresses):
            policy.token.raise_if_cancelled()
            # So that one dead address of several doesn't take the time of all.
            share_s = max(0.1, (done_at - time.monotonic()) / (len(addresses) - place))
            try:
                inner = super().connect_tcp(address, port, share_s, local_address)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout):
                if place == len(addresses) - 1:
                    raise
                continue
            if self._proxy is None:
                words = tr("Connected to {address}, port {port}")
                policy.tell(Step.CONNECT, words.format(address=address, port=port))
            return _Stream(inner, self._proxy)
        raise UnknownNameError(host)


def _addresses(host: str, port: int) -> list[str]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as exc:
        raise UnknownNameError(host) from exc
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


def _name_words(host: str, addresses: list[str]) -> str:
    if addresses == [host]:
        return tr("{host} is an address itself").format(host=host)
    return tr("{host} is {addresses}").format(host=host, addresses=", ".join(addresses[:3]))
