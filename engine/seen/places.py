"""Where a group of processes may answer: which of the listening sockets are asked, which not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from engine.seen import identify

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engine.seen.groups import Group, Process
    from engine.seen.sockets import Listening
    from engine.telemetry.address import Address

_MOST_TRIED = 3
"""Sockets of one runtime that are asked: its others belong to its own protocols."""
_FORWARDERS: Final = frozenset({
    "docker-proxy", "rootlessport", "slirp4netns", "pasta", "conmon", "com.docker.backend",
    "vpnkit", "gvproxy", "wslrelay",
})  # fmt: skip
"""Programs that listen for what runs in a container: the socket is theirs, the answer is not."""


class Places(NamedTuple):
    """What is asked for one group."""

    addresses: tuple[Address, ...]
    are_its_own: bool
    """Whether its processes listen there; else nobody says whose the sockets are."""


def of_group(group: Group, listening: Iterable[Listening]) -> Places:
    """Where a group may answer: the stated port, the usual ones, then others of its head.

    Workers listen too, for each other: a question in HTTP is none of their protocol, so of theirs
    only the stated and the usual port is asked. A service of another user, or in a container, owns
    no socket that is told: there it is a usual port of nobody, and the answer has to agree.
    """
    listening = tuple(listening)
    usual = next((k.ports for k in identify.KINDS if k.runtime == group.runtime), ())
    stated = _stated_port(group.head.words)
    wanted = {stated, *usual}
    members = frozenset(group.pids)
    own = [
        s.address
        for s in listening
        if s.pid == group.head.pid or (s.pid in members and s.address.port in wanted)
    ]
    found = own or [s.address for s in listening if s.pid is None and s.address.port in wanted]
    found.sort(key=lambda a: (a.port != stated, a.port not in usual, a.port, ":" in a.host))
    ports = dict.fromkeys(address.port for address in found)
    ordered = [next(a for a in found if a.port == port) for port in ports]
    return Places(tuple(ordered[: 1 if stated in ports else _MOST_TRIED]), bool(own))


def without_forwarders(
    listening: Iterable[Listening], processes: Iterable[Process]
) -> tuple[Listening, ...]:
    """``listening``, in which what a container's forwarder holds is nobody's."""
    forwarders = frozenset(p.pid for p in processes if p.program in _FORWARDERS)
    return tuple(s._replace(pid=None) if s.pid in forwarders else s for s in listening)


def is_among(address: Address, asked: Iterable[Address]) -> bool:
    """Whether it was asked, under this name of the computer or another."""
    if not address.is_loopback:
        return address in asked
    return any(one.is_loopback and one.port == address.port for one in asked)


def _stated_port(words: tuple[str, ...]) -> int:
    for at, word in enumerate(words):
        option, _, value = word.partition("=")
        if option == "--port":
            value = value or (words[at + 1] if at + 1 < len(words) else "")
            return int(value) if value.isdecimal() else 0
    return 0
