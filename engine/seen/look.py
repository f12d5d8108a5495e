"""One look at all runtimes of this computer: processes, their sockets, what answers there."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from engine.seen import attribution, groups, identify, sockets
from engine.seen.address import Address
from engine.seen.asker import Asker, KeyWantedError
from engine.seen.commanded import commanded
from engine.seen.model import NOT_STATED, ModelSeen, Reach, RuntimeSeen
from engine.telemetry.commands import recognise
from engine.telemetry.snapshot import Missing
from engine.words import tr

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from engine.seen.groups import Group, Process
    from engine.seen.sockets import Listening
    from engine.seen.wire import Asking
    from engine.telemetry.snapshot import TelemetrySnapshot

_MOST_TRIED = 3
"""Sockets of one runtime that are asked: its others belong to its own protocols."""
_PAUSES_S: Final = (10.0, 30.0, 60.0)
"""Between questions to an address that did not answer as a runtime, growing."""


@dataclass(frozen=True, slots=True)
class Here:
    """What of this computer is looked at; made values in tests."""

    processes: Callable[[], Iterable[Process]] = groups.running
    listening: Callable[[Iterable[int]], tuple[Listening, ...]] = sockets.listening


@dataclass(slots=True)
class _Met:
    """What is remembered of an address between looks."""

    runtime: str = ""
    failures: int = 0
    again_at: float = 0.0
    last: tuple[RuntimeSeen, ...] = ()
    """What is said of it until it is asked again."""


@dataclass(slots=True)
class Looker:
    """Looks again and again; an address that is none is asked ever more seldom."""

    here: Here = field(default_factory=Here)
    key_of: Callable[[Address], str] = lambda _address: ""
    """The API key that was given for an address; empty for none."""
    clock: Callable[[], float] = time.monotonic
    _met: dict[Address, _Met] = field(default_factory=dict[Address, "_Met"])

    def look(
        self, snapshot: TelemetrySnapshot, asking: Asking, added: Iterable[Address] = ()
    ) -> tuple[RuntimeSeen, ...]:
        """Every runtime that is seen now. Takes 2 s for each that does not answer.

        Args:
            snapshot: what the drivers say, as fresh as it is.
            asking: how long and how far may be asked.
            added: addresses that the user typed; asked wherever they are.

        Raises:
            JobCancelledError: the token was cancelled.
        """
        own = os.getpid()
        processes = [p for p in self.here.processes() if p.pid != own]
        found = groups.grouped(processes)
        listening = self.here.listening([pid for group in found for pid in group.pids])
        rows: list[RuntimeSeen] = []
        asked: set[Address] = set()
        for group in found:
            tried = _addresses(group, listening)
            asked |= set(tried)
            rows += _with_memory(self._group(group, tried, asking), group, snapshot)
        strangers = (s.address for s in listening if s.pid is None)
        usual = [a for a in strangers if a.port in identify.PORTS]
        for address in dict.fromkeys((*added, *usual)):
            if not _is_among(address, asked):
                asked.add(address)
                rows += self._at(address, "", asking, is_added=address in added)
        taken = {pid for group in found for pid in group.pids} | {own}
        rows += [_plain(p.pid, p.name, p.command, snapshot)
                 for p in attribution.plain(snapshot, taken)]  # fmt: skip
        return tuple(sorted(rows, key=lambda row: row.key))

    def ask_again(self, address: Address) -> None:
        """Ask ``address`` at the next look, whatever came of it: its key is known now."""
        self._met.pop(address, None)

    def _group(
        self, group: Group, tried: tuple[Address, ...], asking: Asking
    ) -> tuple[RuntimeSeen, ...]:
        """What a group says at the first of its addresses that answers as a runtime."""
        best: tuple[RuntimeSeen, ...] = ()
        for address in tried:
            rows = self._at(address, group.runtime, asking, is_added=False)
            if rows and rows[0].reach in {Reach.ANSWERS, Reach.LOADING, Reach.WANTS_KEY}:
                return tuple(commanded(row, group) for row in rows)
            best = best or rows
        if best:
            return tuple(commanded(row, group) for row in best)
        reach = Reach.SILENT if tried else Reach.NO_ADDRESS
        why = tr("it does not answer as a runtime does") if tried else tr("it listens nowhere")
        return (commanded(RuntimeSeen(group.runtime, group.label, reach, why), group),)

    def _at(
        self, address: Address, runtime: str, asking: Asking, *, is_added: bool
    ) -> tuple[RuntimeSeen, ...]:
        met = self._met.setdefault(address, _Met(runtime))
        if self.clock() < met.again_at:
            return met.last
        asker = Asker(address, asking, self.key_of(address))
        label = address.host if is_added else ""
        try:
            rows = identify.read(asker, runtime or met.runtime)
        except KeyWantedError as error:
            return self._put_off(
                met, _unread(runtime, label, Reach.WANTS_KEY, error.message, address)
            )
        if rows and rows[0].reach in {Reach.ANSWERS, Reach.LOADING}:
            self._met[address] = _Met(rows[0].runtime)
            return rows
        if not rows and not is_added:
            return self._put_off(met)
        why = asker.trouble() or tr("it does not answer as a runtime does")
        return self._put_off(met, _unread(runtime, label, Reach.SILENT, why, address))

    def _put_off(self, met: _Met, *last: RuntimeSeen) -> tuple[RuntimeSeen, ...]:
        """Leave an address alone for a while, in which ``last`` is what is known of it."""
        pause_s = _PAUSES_S[min(met.failures, len(_PAUSES_S) - 1)]
        met.failures += 1
        met.again_at = self.clock() + pause_s
        met.last = last
        return last


def _unread(runtime: str, label: str, reach: Reach, why: str, address: Address) -> RuntimeSeen:
    known = next((kind.label for kind in identify.KINDS if kind.runtime == runtime), label)
    return RuntimeSeen(runtime, known or tr("Unknown"), reach, why, address)


def _addresses(group: Group, listening: tuple[Listening, ...]) -> tuple[Address, ...]:
    """Where a group may answer: its head's sockets, the stated and the usual port first.

    Workers listen too, for each other: a question in HTTP is none of their protocol, so they are
    not asked.
    """
    usual = next((k.ports for k in identify.KINDS if k.runtime == group.runtime), ())
    stated = _stated_port(group.head.words)
    own = [s.address for s in listening if s.pid == group.head.pid]
    own.sort(key=lambda a: (a.port != stated, a.port not in usual, a.port, ":" in a.host))
    by_port = {address.port: address for address in reversed(own)}
    ordered = sorted(by_port.values(), key=own.index)
    if stated in by_port:
        return (by_port[stated],)
    return tuple(ordered[:_MOST_TRIED])


def _stated_port(words: tuple[str, ...]) -> int:
    for at, word in enumerate(words):
        option, _, value = word.partition("=")
        if option == "--port":
            value = value or (words[at + 1] if at + 1 < len(words) else "")
            return int(value) if value.isdecimal() else 0
    return 0


def _is_among(address: Address, asked: set[Address]) -> bool:
    """Whether it was asked, under this name of the computer or another."""
    if not address.is_loopback:
        return address in asked
    return any(one.is_loopback and one.port == address.port for one in asked)


def _with_memory(
    rows: tuple[RuntimeSeen, ...], group: Group, snapshot: TelemetrySnapshot
) -> Iterator[RuntimeSeen]:
    """Each row with the processes that hold it; a model of several, those that name its file."""
    if len(rows) == 1:
        yield replace(rows[0], pids=group.pids, held=attribution.held(group.pids, snapshot))
        return
    for row in rows:
        file = row.model.file if isinstance(row.model, ModelSeen) else ""
        pids = _naming(file, group) if file else ()
        yield replace(
            row,
            pids=pids or group.pids[:1],
            held=attribution.held(pids, snapshot) if pids else (),
            notes=row.notes if pids else (*row.notes, tr(
                "Several models share these processes: what each holds is not told apart.")),
        )  # fmt: skip


def _naming(file: str, group: Group) -> tuple[int, ...]:
    """Processes of ``group`` that have ``file`` on their command line, or its name."""
    name = file.replace("\\", "/").rpartition("/")[2]
    return tuple(p.pid for p in group.members[1:] if any(name in word for word in p.words))


def _plain(pid: int, name: str, command: str, snapshot: TelemetrySnapshot) -> RuntimeSeen:
    seen = recognise(name, command)
    model = ModelSeen(seen.model) if seen.model else NOT_STATED
    why = tr("a program of one’s own has nothing to ask")
    return RuntimeSeen(
        "", seen.label, Reach.NO_ADDRESS, why, pids=(pid,), model=model,
        version=NOT_STATED, pool=Missing(why), running=Missing(why), waiting=Missing(why),
        held=attribution.held((pid,), snapshot),
    )  # fmt: skip
