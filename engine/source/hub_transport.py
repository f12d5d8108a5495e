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
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import httpcore2
import httpx2
from typing_extensions import override

from engine.cancel import JobCancelledError
from engine.errors import HubError, HubOfflineError, PlimsollError
from engine.source.activity import ACTIVITY, Asked
from engine.source.hub_policy import CLOCK, Clock, policy_here
from engine.source.hub_wire import Backend, tell_passage, tell_proxy
from engine.source.reach import Proxy, proxy_for, tls_context
from engine.source.trail import Step
from engine.source.way_errors import is_beyond_proxy, our_errors, refusal, refused_by_proxy
from engine.text import printable
from engine.words import tr

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterator

MAX_ANSWER_BYTES = 64 * 2**20
"""The headers of a model in 282 files take some 20 MB in one answer."""
_PORTS = {"http": 80, "https": 443}

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

        transport = Transport()
        set_client_factory(
            lambda: httpx2.Client(transport=transport, follow_redirects=True, timeout=None)
        )
        _installed.set()


class _Note:
    """What the list of activity says of one request."""

    def __init__(self, request: httpx2.Request, proxy: Proxy | None) -> None:
        self._began = time.monotonic()
        self._asked: Asked = ACTIVITY.begin(
            request.method,
            request.url.netloc.decode("ascii", "replace").rpartition("@")[2],
            request.url.path,
            str(proxy or ""),
        )

    @property
    def elapsed_ms(self) -> int:
        """Milliseconds since the request began."""
        return round((time.monotonic() - self._began) * 1000)

    def answered(self, status: int) -> None:
        """The head of the answer is here."""
        self._asked = replace(self._asked, status=status)

    def end(self, received_bytes: int = 0, trouble: BaseException | None = None) -> None:
        """The answer is over, or there is none. Only the first call counts."""
        if self._asked.duration_s is not None:
            return
        if trouble is None or isinstance(trouble, GeneratorExit):
            words = ""
        elif isinstance(trouble, JobCancelledError):
            words = tr("Stopped")
        elif isinstance(trouble, PlimsollError):
            words = printable(trouble.message, 300)
        else:
            words = type(trouble).__name__
        self._asked = replace(
            self._asked,
            received_bytes=received_bytes,
            duration_s=time.monotonic() - self._began,
            trouble=words,
        )
        ACTIVITY.end(self._asked)


class _Body(httpx2.SyncByteStream):
    """An answer's body, at most ``MAX_ANSWER_BYTES`` of it, with our errors."""

    def __init__(
        self, inner: httpcore2.Response, host: str, proxy: Proxy | None, note: _Note
    ) -> None:
        self._inner = inner
        self._host = host
        self._proxy = proxy
        self._note = note
        self._total_bytes = 0

    @override
    def __iter__(self) -> Iterator[bytes]:
        try:
            with our_errors(self._host, self._proxy):
                for chunk in self._inner.iter_stream():
                    self._total_bytes += len(chunk)
                    self._hold_to_limit()
                    yield chunk
        except BaseException as exc:
            self._note.end(self._total_bytes, exc)
            raise

    def _hold_to_limit(self) -> None:
        if self._total_bytes > MAX_ANSWER_BYTES:
            message = tr("{host} sent an answer without end; it was given up.")
            raise HubError(message.format(host=self._host))

    @override
    def close(self) -> None:
        self._inner.close()
        self._note.end(self._total_bytes)


_CLOSED_MEANWHILE = "Server disconnected without sending a response."
"""What httpcore says of a connection that ends before a byte of the answer."""
_ONLY_READ = (b"GET", b"HEAD")


class Transport(httpx2.BaseTransport):
    """Sends one request under the policy in force."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pools: dict[tuple[Proxy | None, ssl.SSLContext], httpcore2.ConnectionPool] = {}

    @override
    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        policy, url = policy_here(), request.url
        policy.token.raise_if_cancelled()
        if url.scheme not in _PORTS:
            message = tr("The Hub points to an address of the kind {kind}, which is not followed.")
            raise HubError(message.format(kind=printable(url.scheme, 20)))
        if policy.offline:
            raise HubOfflineError(tr("Offline mode is on, so the Hub was not asked."))
        if origin(str(url)) != policy.endpoint:
            request.headers.pop("Authorization", None)
        elif policy.bearer:
            request.headers["Authorization"] = f"Bearer {policy.bearer}"
        # An answer that unpacks to a thousand times its size would pass every limit here.
        request.headers["Accept-Encoding"] = "identity"
        CLOCK.set(Clock(policy.timeout_s))
        proxy = proxy_for(policy.reach, url.scheme, url.host, url.port or _PORTS[url.scheme])
        pool = self._pool(proxy, policy.reach.ca_file)
        if proxy is None:
            policy.tell(Step.PROXY, tr("None is used"), is_needed=False)
        if url.scheme == "http":
            policy.tell(Step.TLS, tr("Not used: the address begins with http://"), is_needed=False)
        note = _Note(request, proxy)
        try:
            return self._answered(request, pool, proxy, note)
        except BaseException as exc:
            note.end(trouble=exc)
            raise

    def _answered(
        self,
        request: httpx2.Request,
        pool: httpcore2.ConnectionPool,
        proxy: Proxy | None,
        note: _Note,
    ) -> httpx2.Response:
        policy, url = policy_here(), request.url
        sent = httpcore2.Request(
            method=request.method,
            url=httpcore2.URL(
                scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path
            ),
            headers=request.headers.raw,
            content=request.stream,
            extensions={"timeout": {"pool": policy.timeout_s}},
        )
        with our_errors(url.host, proxy):
            try:
                answer = _asked(pool, sent)
            except httpcore2.ProxyError as exc:
                if proxy is not None and is_beyond_proxy(exc):
                    tell_passage(policy, proxy)
                raise
        note.answered(answer.status)
        body = _Body(answer, url.host, proxy, note)
        response = httpx2.Response(answer.status, headers=answer.headers, stream=body)
        trouble = _trouble(response, url.host, proxy)
        if proxy is not None and response.status_code != 407:
            tell_proxy(policy, proxy, url.host)
        if trouble is not None:
            note.end(trouble=trouble)
            response.close()
            raise trouble
        words = tr("Answered {status} after {milliseconds} ms")
        policy.tell(Step.ANSWER, words.format(status=answer.status, milliseconds=note.elapsed_ms))
        return response

    def _pool(self, proxy: Proxy | None, ca_file: str) -> httpcore2.ConnectionPool:
        """Connections through ``proxy`` that trust what is trusted now."""
        context = tls_context(ca_file)
        with self._lock:
            if (proxy, context) not in self._pools:
                self._pools[proxy, context] = _new_pool(proxy, context)
            return self._pools[proxy, context]

    @override
    def close(self) -> None:
        with self._lock:
            pools, self._pools = self._pools, {}
        for pool in pools.values():
            pool.close()


def _asked(pool: httpcore2.ConnectionPool, sent: httpcore2.Request) -> httpcore2.Response:
    """The answer; asked twice where a kept connection was closed as the question went out.

    Servers and proxies close what they kept open whenever they like. The question was then never
    read, and one that only reads may be asked again.
    """
    try:
        return pool.handle_request(sent)
    except httpcore2.RemoteProtocolError as exc:
        if str(exc) != _CLOSED_MEANWHILE or sent.method not in _ONLY_READ:
            raise
        return pool.handle_request(sent)


def _new_pool(proxy: Proxy | None, context: ssl.SSLContext) -> httpcore2.ConnectionPool:
    backend = Backend(proxy)
    if proxy is None:
        return httpcore2.ConnectionPool(ssl_context=context, network_backend=backend)
    name, password = proxy.credentials or ("", "")
    return httpcore2.HTTPProxy(
        proxy_url=proxy.url,
        proxy_auth=(name.encode(), password.encode()) if proxy.credentials else None,
        ssl_context=context,
        proxy_ssl_context=context if proxy.scheme == "https" else None,
        network_backend=backend,
    )


def _trouble(response: httpx2.Response, host: str, proxy: Proxy | None) -> HubError | None:
    """Why an answer is none that the client could use."""
    if response.status_code == 407 and proxy is not None:
        return refused_by_proxy("407", host, proxy)
    if response.headers.get("Content-Encoding", "identity") != "identity":
        message = tr("{host} sent a packed answer that was not asked for.")
        return refusal(response, host) or HubError(message.format(host=host))
    return refusal(response, host)


def origin(url: str) -> str:
    """Scheme, host and port of ``url``."""
    parsed = httpx2.URL(url)
    port = parsed.port or _PORTS.get(parsed.scheme)
    return f"{parsed.scheme}://{parsed.host}:{port}"
