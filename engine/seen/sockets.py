"""Where processes of this computer listen, as far as that can be asked without leaving it."""

from __future__ import annotations

from ipaddress import ip_address
from typing import TYPE_CHECKING, NamedTuple

from engine.telemetry.address import Address, is_loopback

if TYPE_CHECKING:
    from collections.abc import Iterable

_EVERYWHERE = frozenset({"0.0.0.0", "::", "*", ""})  # noqa: S104 - read, not bound


class Listening(NamedTuple):
    """One socket that takes connections."""

    address: Address
    """On the loopback."""
    pid: int | None
    """None where the system doesn't tell whose it is: another user's, or a container's."""


def listening(pids: Iterable[int] = ()) -> tuple[Listening, ...]:
    """Sockets of this computer that can be reached over its loopback.

    Args:
        pids: processes to ask one by one where the system gives no list of all (macOS).
    """
    import psutil

    found: set[tuple[str, int, int | None]] = set()
    try:
        for one in psutil.net_connections(kind="tcp"):
            if one.status == psutil.CONN_LISTEN and one.laddr:
                found.add((one.laddr.ip, one.laddr.port, one.pid))
    except (psutil.Error, OSError):
        for pid in pids:
            found |= _of(pid)
    rows = (_reachable(*row) for row in found)
    return tuple(sorted((r for r in rows if r), key=lambda r: (r.address, r.pid or 0)))


def _of(pid: int) -> set[tuple[str, int, int | None]]:
    import psutil

    try:
        connections = psutil.Process(pid).net_connections(kind="tcp")
    except (psutil.Error, OSError):
        return set()
    return {
        (one.laddr.ip, one.laddr.port, pid)
        for one in connections
        if one.status == psutil.CONN_LISTEN and one.laddr
    }


def _reachable(ip: str, port: int, pid: int | None) -> Listening | None:
    """The socket under a loopback address; None where it listens on another one alone."""
    if ip in _EVERYWHERE:
        is_six = ":" in ip
        return Listening(Address("::1" if is_six else "127.0.0.1", port), pid)
    if not is_loopback(ip):
        return None
    return Listening(Address(str(ip_address(ip)), port), pid)
