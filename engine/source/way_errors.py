"""What can go wrong on the way to a server, in one sentence that says what to do."""

from __future__ import annotations

import re
import ssl
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

import httpcore2

from engine.errors import HubError, HubOfflineError, HubRateLimitedError, HubTimeoutError
from engine.text import printable
from engine.words import tr

if TYPE_CHECKING:
    from collections.abc import Generator

    import httpx2

    from engine.source.reach import Proxy

_RATE_LIMIT = re.compile(r'"\w+"\s*;\s*r\s*=\s*\d+\s*;\s*t\s*=\s*(\d+)')
_BAD_GATEWAY = re.compile(r"50[234]\b")
# OpenSSL's codes of X509_verify_cert: not yet valid, expired; not for this name or address.
_WRONG_DATE, _WRONG_NAME = {9, 10}, {62, 64}


class SlowError(httpcore2.ReadTimeout):
    """One of our own limits is reached; its text says which."""


class UnknownNameError(httpcore2.ConnectError):
    """There is no address for the name that is the text."""


class TlsError(httpcore2.ConnectError):
    """No encrypted connection to a host, and why."""

    def __init__(self, host: str, why: BaseException | None) -> None:
        super().__init__(host)
        self.host = host
        # Kept here too: the library's pool forgets the cause of what it passes on.
        self.why = why


def is_beyond_proxy(exc: httpcore2.ProxyError) -> bool:
    """Whether the proxy would, but found no way on."""
    return bool(_BAD_GATEWAY.match(str(exc)))


@contextmanager
def our_errors(host: str, proxy: Proxy | None) -> Generator[None]:
    """Turn what the HTTP library raises into our errors.

    Raises:
        HubTimeoutError: no answer in time.
        HubOfflineError: no connection.
        HubError: a connection that broke off, or an answer that is no HTTP.
    """
    try:
        yield
    except SlowError as exc:
        message = tr("{host} did not answer in time ({why}); try again later.")
        raise HubTimeoutError(message.format(host=host, why=exc)) from exc
    except httpcore2.TimeoutException as exc:
        if proxy is not None and isinstance(exc, httpcore2.ConnectTimeout):
            message = tr("The proxy {proxy} did not answer in time: check its address.")
            raise HubOfflineError(message.format(proxy=proxy), field="proxy") from exc
        message = tr("{host} did not answer in time; try again later.")
        raise HubTimeoutError(message.format(host=host)) from exc
    except UnknownNameError as exc:
        raise _unknown_name(host, proxy) from exc
    except TlsError as exc:
        raise HubOfflineError(_tls(exc), field="ca_file") from exc
    except httpcore2.ConnectError as exc:
        if proxy is not None:
            message = tr("The proxy {proxy} cannot be reached ({why}): check its address.")
            said = message.format(proxy=proxy, why=_said(exc))
            raise HubOfflineError(said, field="proxy") from exc
        message = tr(
            "{host} cannot be reached ({why}): check the address, and whether a proxy is needed."
        )
        raise HubOfflineError(message.format(host=host, why=_said(exc))) from exc
    except httpcore2.ProxyError as exc:
        raise refused_by_proxy(str(exc), host, proxy) from exc
    except (httpcore2.NetworkError, httpcore2.ProtocolError) as exc:
        message = tr("{host} broke off its answer: {why}.")
        raise HubError(message.format(host=host, why=_said(exc))) from exc


def _unknown_name(host: str, proxy: Proxy | None) -> HubOfflineError:
    if proxy is not None:
        message = tr("No proxy of the name {host} was found: check its address.")
        return HubOfflineError(message.format(host=printable(proxy.host, 80)), field="proxy")
    message = tr(
        "No server of the name {host} was found: check the address, and whether this computer is "
        "connected."
    )
    return HubOfflineError(message.format(host=printable(host, 80)))


def _tls(exc: TlsError) -> str:
    cause, host = exc.why, printable(exc.host, 80)
    if isinstance(cause, ssl.SSLCertVerificationError):
        if cause.verify_code in _WRONG_DATE:
            message = tr(
                "The certificate of {host} is not valid today: check this computer’s clock, or "
                "tell who runs the server."
            )
        elif cause.verify_code in _WRONG_NAME:
            message = tr(
                "The certificate that {host} shows is another server’s: check the address."
            )
        else:
            message = tr(
                "The certificate of {host} is not trusted here: add your company’s certificates "
                "under Network, or by SSL_CERT_FILE."
            )
        return message.format(host=host)
    if isinstance(cause, ssl.SSLError):
        message = tr(
            "{host} speaks no TLS there ({why}): check the address, which may have to begin with "
            "http://."
        )
        return message.format(host=host, why=(cause.reason or "TLS").replace("_", " ").lower())
    message = tr("{host} broke off while the connection was encrypted; try again later.")
    return message.format(host=host)


def refused_by_proxy(said: str, host: str, proxy: Proxy | None) -> HubOfflineError:
    """The proxy would not, and ``said`` a status and perhaps words."""
    said = printable(said.strip(), 80)
    if said.startswith("407"):
        if proxy is not None and proxy.credentials is not None:
            message = tr("The proxy {proxy} does not take the name and password in https_proxy.")
        else:
            message = tr(
                "The proxy {proxy} wants a name and password: put the address with both into "
                "https_proxy of the environment, and choose Environment."
            )
    elif _BAD_GATEWAY.match(said):
        message = tr("The proxy {proxy} cannot reach {host} ({said}): check the Hub’s address.")
    else:
        message = tr(
            "The proxy {proxy} refused the way to {host} ({said}): ask who runs it to allow that."
        )
    words = message.format(proxy=proxy, host=host, said=said)
    return HubOfflineError(words, field="proxy")


def _said(exc: Exception) -> str:
    """The library's words without the system's code, to end a sentence with."""
    words = re.sub(r"^\[Errno -?\d+\] ", "", str(exc))
    return printable(words.rstrip(". "), 200) or type(exc).__name__


def refusal(response: httpx2.Response, host: str) -> HubError | None:
    """The error for an answer that says: not now. None for any other."""
    status = response.status_code
    if status == 408:
        message = tr("{host} gave up waiting (408); try again later.")
        return HubTimeoutError(message.format(host=host))
    if status == 429:
        wait_s = _wait_s(response)
        if wait_s is None:
            message = tr("{host} asks for a pause; try again in a while.")
        else:
            message = tr("{host} asks for a pause; try again in {seconds} s.")
        words = message.format(host=host, seconds=wait_s)
        return HubRateLimitedError(words, wait_s=wait_s)
    if status >= 500:
        message = tr("{host} has trouble of its own ({status}); try again later.")
        return HubError(message.format(host=host, status=status))
    return None


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
