"""The way out to the network: limits, cancellation and offline mode for every request.

huggingface_hub sets no time limit of its own (most calls pass ``timeout=None``, which
overrides one set on the client), sleeps out a 429 and retries inside its calls. So the
limits sit below it, in the transport of the HTTP client that it is given; failures leave
as our own errors, which it doesn't know and therefore doesn't retry.

One client serves the process. What applies to a request is decided by the ``Policy`` in
force on the calling thread.
"""

from __future__ import annotations

import os
import re
import threading
import time
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING
from urllib.request import getproxies, proxy_bypass

import httpcore2
import httpx2
from typing_extensions import override

from engine.errors import HubError, HubOfflineError, HubRateLimitedError, HubTimeoutError

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from engine.cancel import CancelToken

MAX_ANSWER_BYTES = 64 * 2**20
"""The headers of a model in 282 files take some 20 MB in one answer."""
_SLICE_S = 0.1
"""How long a blocked read may ignore a cancelled token."""
_WHOLE_REQUEST = 6
"""A request may take so many time limits altogether, however fast it goes on."""
_LEAST_BYTES = 1024
"""What has to come within each time limit: a server that drips is as good as silent."""
_RATE_LIMIT = re.compile(r'"\w+"\s*;\s*r\s*=\s*\d+\s*;\s*t\s*=\s*(\d+)')
_LOOPBACK = {"localhost", "127.0.0.1", "::1"}


@dataclass(frozen=True, slots=True)
class Policy:
    """What a job grants its requests."""

    token: CancelToken
    timeout_s: float
    offline: bool
    endpoint: str
    """Where a token may be sent to: scheme, host and port."""


_POLICY: ContextVar[Policy | None] = ContextVar("hub_policy", default=None)


class _SlowError(httpcore2.ReadTimeout):
    """One of our own limits is reached; its text says which."""


class _Clock:
    """When the request in hand has to have brought something, and when to be done."""

    def __init__(self, timeout_s: float) -> None:
        self._limit_s = timeout_s
        now = time.monotonic()
        self._done_at = now + _WHOLE_REQUEST * timeout_s
        self._next_at = now + timeout_s
        self._brought: int | None = None

    def took(self, size_bytes: int) -> None:
        """Bytes came. The first, and each ``_LEAST_BYTES`` after it, begin a new time limit."""
        brought = self._brought
        self._brought = 0 if brought is None else brought + size_bytes
        if brought is None or self._brought >= _LEAST_BYTES:
            self._brought = 0
            self._next_at = time.monotonic() + self._limit_s

    def left_s(self) -> float:
        """Seconds until a limit is reached.

        Raises:
            _SlowError: one is reached.
        """
        now = time.monotonic()
        left = min(self._next_at, self._done_at) - now
        if left > 0:
            return left
        if now >= self._done_at:
            why = f"it was not done after {_WHOLE_REQUEST * self._limit_s:g} s"
        elif self._brought is None:
            why = f"nothing came for {self._limit_s:g} s"
        else:
            why = f"fewer than {_LEAST_BYTES:,} bytes came in {self._limit_s:g} s"
        raise _SlowError(why)


_CLOCK: ContextVar[_Clock] = ContextVar("hub_clock")


@contextmanager
def policy_in_force(policy: Policy) -> Generator[None]:
    """Apply ``policy`` to every request of this thread in the block."""
    kept = _POLICY.set(policy)
    try:
        yield
    finally:
        _POLICY.reset(kept)


def _policy() -> Policy:
    policy = _POLICY.get()
    if policy is None:
        raise HubOfflineError("Nobody asked for the network, so nothing was sent.")
    return policy


_installing = threading.Lock()
_installed = threading.Event()


def install() -> None:
    """Have huggingface_hub talk through our transport; imports it on the first call."""
    with _installing:
        if _installed.is_set():
            return
        # Read once at its import. Without the first it asks huggingface.co for
        # /api/agent-harnesses; without the third it sends a token that nobody chose to use.
        os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
        os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
        os.environ.setdefault("HF_HUB_DISABLE_IMPLICIT_TOKEN", "1")
        from huggingface_hub import set_client_factory

        transport = _Transport()
        set_client_factory(
            lambda: httpx2.Client(transport=transport, follow_redirects=True, timeout=None)
        )
        _installed.set()


class _Stream(httpcore2.NetworkStream):
    """A connection whose reads wake up to look at the token and the clock."""

    def __init__(self, inner: httpcore2.NetworkStream) -> None:
        self._inner = inner

    @override
    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        policy, clock = _policy(), _CLOCK.get()
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
        self._inner.write(buffer, _policy().timeout_s)

    @override
    def close(self) -> None:
        self._inner.close()

    @override
    def start_tls(
        self, ssl_context: object, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        inner = self._inner.start_tls(ssl_context, server_hostname, _policy().timeout_s)  # pyright: ignore[reportArgumentType]  # spelled as object to keep ssl unimported
        return _Stream(inner)

    @override
    def get_extra_info(self, info: str) -> object:
        return self._inner.get_extra_info(info)


class _Backend(httpcore2.SyncBackend):
    """Opens connections within the limit of the policy."""

    @override
    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: object = None,
    ) -> httpcore2.NetworkStream:
        policy = _policy()
        policy.token.raise_if_cancelled()
        return _Stream(super().connect_tcp(host, port, policy.timeout_s, local_address))


class _Body(httpx2.SyncByteStream):
    """An answer's body, at most ``MAX_ANSWER_BYTES`` of it, with our errors."""

    def __init__(self, inner: httpcore2.Response, host: str) -> None:
        self._inner = inner
        self._host = host

    @override
    def __iter__(self) -> Iterator[bytes]:
        total = 0
        with _our_errors(self._host):
            for chunk in self._inner.iter_stream():
                total += len(chunk)
                if total > MAX_ANSWER_BYTES:
                    raise HubError(f"{self._host} sent an answer without end; it was given up.")
                yield chunk

    @override
    def close(self) -> None:
        self._inner.close()


class _Transport(httpx2.BaseTransport):
    """Sends one request under the policy in force."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pools: dict[str, httpcore2.ConnectionPool] = {}

    @override
    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        policy = _policy()
        policy.token.raise_if_cancelled()
        host = request.url.host
        if policy.offline:
            raise HubOfflineError("Offline mode is on, so the Hub was not asked.")
        if origin(str(request.url)) != policy.endpoint:
            request.headers.pop("Authorization", None)
        # An answer that unpacks to a thousand times its size would pass every limit here.
        request.headers["Accept-Encoding"] = "identity"
        _CLOCK.set(_Clock(policy.timeout_s))
        with _our_errors(host):
            answer = self._pool(request.url).handle_request(
                httpcore2.Request(
                    method=request.method,
                    url=httpcore2.URL(
                        scheme=request.url.raw_scheme,
                        host=request.url.raw_host,
                        port=request.url.port,
                        target=request.url.raw_path,
                    ),
                    headers=request.headers.raw,
                    content=request.stream,
                    extensions={"timeout": {"pool": policy.timeout_s}},
                )
            )
        response = httpx2.Response(
            answer.status,
            headers=answer.headers,
            stream=_Body(answer, host),
        )
        if response.status_code in {408, 429} or response.status_code >= 500:
            response.close()
            raise _refusal(response, host)
        if response.headers.get("Content-Encoding", "identity") != "identity":
            response.close()
            raise HubError(f"{host} sent a packed answer that was not asked for.")
        return response

    def _pool(self, url: httpx2.URL) -> httpcore2.ConnectionPool:
        """Connections to ``url``, through the proxy that the environment names for it."""
        proxy = "" if url.host in _LOOPBACK or proxy_bypass(url.host) else _proxy(url.scheme)
        with self._lock:
            if proxy not in self._pools:
                context, backend = httpx2.create_ssl_context(), _Backend()
                self._pools[proxy] = (
                    httpcore2.HTTPProxy(
                        proxy_url=proxy, ssl_context=context, network_backend=backend
                    )
                    if proxy
                    else httpcore2.ConnectionPool(ssl_context=context, network_backend=backend)
                )
            return self._pools[proxy]

    @override
    def close(self) -> None:
        with self._lock:
            pools, self._pools = self._pools, {}
        for pool in pools.values():
            pool.close()


def _proxy(scheme: str) -> str:
    found = getproxies()
    proxy = found.get(scheme) or found.get("all") or ""
    if proxy and "://" not in proxy:
        proxy = "http://" + proxy
    if proxy and not proxy.startswith(("http://", "https://")):
        kind = proxy.split(":", 1)[0][:20]
        raise HubError(f"The proxy of this computer is of the kind {kind}; only HTTP ones work.")
    return proxy


def origin(url: str) -> str:
    """Scheme, host and port of ``url``."""
    parsed = httpx2.URL(url)
    port = parsed.port or {"http": 80, "https": 443}.get(parsed.scheme)
    return f"{parsed.scheme}://{parsed.host}:{port}"


@contextmanager
def _our_errors(host: str) -> Generator[None]:
    """Turn what the HTTP library raises into our errors.

    Raises:
        HubTimeoutError: no answer in time.
        HubOfflineError: no connection.
        HubError: a connection that broke off, or an answer that is no HTTP.
    """
    try:
        yield
    except _SlowError as exc:
        raise HubTimeoutError(f"{host} did not answer in time ({exc}); try again later.") from exc
    except httpcore2.TimeoutException as exc:
        raise HubTimeoutError(f"{host} did not answer in time; try again later.") from exc
    except httpcore2.ConnectError as exc:
        raise HubOfflineError(f"{host} cannot be reached: {_said(exc)}.") from exc
    except httpcore2.ProxyError as exc:
        raise HubError(f"The proxy refused the way to {host}: {_said(exc)}.") from exc
    except (httpcore2.NetworkError, httpcore2.ProtocolError) as exc:
        raise HubError(f"{host} broke off its answer: {_said(exc)}.") from exc


def _said(exc: Exception) -> str:
    """The library's words without the system's code, to end a sentence with."""
    words = re.sub(r"^\[Errno -?\d+\] ", "", str(exc))
    return words.rstrip(". ") or type(exc).__name__


def _refusal(response: httpx2.Response, host: str) -> HubError:
    """The error for an answer that says: not now."""
    status = response.status_code
    if status == 408:
        return HubTimeoutError(f"{host} gave up waiting (408); try again later.")
    if status != 429:
        return HubError(f"{host} has trouble of its own ({status}); try again later.")
    wait_s = _wait_s(response)
    when = "in a while" if wait_s is None else f"in {wait_s} s"
    return HubRateLimitedError(f"{host} asks for a pause; try again {when}.", wait_s=wait_s)


def _wait_s(response: httpx2.Response) -> int | None:
    """Seconds to wait, from ``RateLimit`` or ``Retry-After`` (a number or a date)."""
    match = _RATE_LIMIT.search(response.headers.get("RateLimit", ""))
    if match:
        return int(match[1])
    after = response.headers.get("Retry-After", "").strip()
    if after.isdecimal():
        return int(after[:9])
    try:
        return max(0, round((parsedate_to_datetime(after) - datetime.now(UTC)).total_seconds()))
    except (ValueError, TypeError):
        return None
