"""No test reaches beyond this computer; what one tried to reach is written down."""

from __future__ import annotations

_LOOPBACK = {"127.0.0.1", "::1", "localhost", ""}
_PLACES = {"socket.connect": 1, "socket.sendto": 1, "socket.sendmsg": 1, "socket.getaddrinfo": 0}
"""Where each event carries its address or host."""

REACHED: list[str] = []
"""Hosts beyond this computer that were asked for, by any thread, since the tests began."""


class NetworkUsedError(BaseException):
    """A test reached for the network. No ``Exception``, so that no client swallows it."""


def guard(event: str, args: tuple[object, ...]) -> None:
    """An audit hook: refuses each way out before anything is sent."""
    place = _PLACES.get(event)
    if place is None:
        return
    host = args[place]
    if isinstance(host, tuple):
        host = host[0]
    elif event != "socket.getaddrinfo":
        # A path: a socket of this computer, or no address at all.
        return
    if isinstance(host, bytes):
        host = host.decode()
    if (host or "") not in _LOOPBACK:
        REACHED.append(str(host))
        message = f"this test reached for the network: {host}"
        raise NetworkUsedError(message)
