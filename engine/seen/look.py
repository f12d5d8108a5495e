"""One look at all runtimes of this computer: processes, their sockets, what answers there."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from engine.seen import attribution, groups, identify, places, sockets
from engine.seen.asker import Asker, KeyWantedError
from engine.seen.commanded import commanded
from engine.seen.model import NOT_STATED, ModelSeen, Reach, RuntimeSeen
from engine.telemetry.address import Address
from engine.telemetry.commands import recognise
from engine.telemetry.snapshot import Missing, Quality
from engine.words import tr

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from engine.seen.groups import Group, Process
    from engine.seen.places import Places
    from engine.seen.sockets import Listening
    from engine.telemetry.snapshot import ProcessReading, TelemetrySnapshot
    from engine.telemetry.wire import Asking

_PAUSES_S: Final = (10.0, 30.0, 60.0)
"""Between questions to an address that did not answer as a runtime, growing."""
_HEARD: Final = frozenset({Reach.ANSWERS, Reach.LOADING, Reach.WANTS_KEY})
_SERVE_MANY: Final = frozenset({"ollama", "lmstudio"})
"""Runtimes that serve whatever is asked for: a command line names no model of theirs."""


@dataclass(frozen=True, slots=True)
class Here:
    """What of this computer is looked at; made values in tests."""

    processes: Callable[[], Iterable[Process]] = groups.running
    listening: Callable[[Iterable[int]], tuple[Listening, ...]] = sockets.listening


@dataclass(slots=True)
class _Met:
    """What is remembered of an address between looks."""

    runtime: str = ""
    key: str = ""
    """That it wanted and was given."""
    failures: int = 0
    again_at: float = 0.0
    last: tuple[RuntimeSeen, ...] = ()
    """What is said of it until it is asked again."""


_Key = tuple[Address, int]
"""An address, and the process that listens there: another one is met anew. 0 for nobody's."""


@dataclass(slots=True)
class Looker:
    """Looks again and again; an address that is none is asked ever more seldom."""

    here: Here = field(default_factory=Here)
    key_of: Callable[[Address], str] = lambda _address: ""
    """The API key that was given for an address, empty for none; looked up when one is wanted."""
    clock: Callable[[], float] = time.monotonic
    _met: dict[_Key, _Met] = field(default_factory=dict[_Key, _Met])

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
        pids = [pid for group in found for pid in group.pids]
        listening = places.without_forwarders(self.here.listening(pids), processes)
        rows: list[RuntimeSeen] = []
        asked: set[Address] = set()
        for group in found:
            told = self._group(group, places.of_group(group, listening), asking, asked)
            rows += _with_memory(told, group, snapshot)
        added = tuple(added)
        usual = (s.address for s in listening if s.pid is None and s.address.port in identify.PORTS)
        for address in dict.fromkeys((*added, *usual)):
            if not places.is_among(address, asked):
                asked.add(address)
                rows += self._at(address, "", asking, is_added=address in added)
        rows += (_plain(p, snapshot) for p in attribution.plain(snapshot, {*pids, own}))
        self._forget(asked)
        return tuple(sorted(rows, key=lambda row: row.key))

    def ask_again(self, address: Address) -> None:
        """Ask ``address`` at the next look, whatever came of it: its key is known now."""
        self._met = {key: met for key, met in self._met.items() if key[0] != address}

    def _forget(self, asked: set[Address]) -> None:
        """What nobody listens at any more."""
        self._met = {key: met for key, met in self._met.items() if key[0] in asked}

    def _group(
        self, group: Group, place: Places, asking: Asking, asked: set[Address]
    ) -> tuple[RuntimeSeen, ...]:
        """What a group says at the first of its addresses that answers as a runtime.

        ``asked`` is told each address that is spoken for.
        """
        silent: tuple[RuntimeSeen, ...] = ()
        for address in place.addresses:
            if places.is_among(address, asked):
                continue
            rows = self._at(address, group.runtime, asking, pid=group.head.pid)
            if place.are_its_own:
                asked.add(address)
            if not rows or rows[0].reach not in _HEARD:
                silent = silent or rows
            elif place.are_its_own or _agrees(rows, group):
                asked.add(address)
                return tuple(commanded(_named(row, group), group) for row in rows)
        if silent and place.are_its_own:
            return tuple(commanded(row, group) for row in silent)
        reach, why = Reach.NO_ADDRESS, tr("it listens nowhere that can be told")
        if place.are_its_own:
            reach, why = Reach.SILENT, tr("it does not answer as a runtime does")
        return (commanded(RuntimeSeen(group.runtime, group.label, reach, why), group),)

    def _at(
        self,
        address: Address,
        runtime: str,
        asking: Asking,
        *,
        pid: int = 0,
        is_added: bool = False,
    ) -> tuple[RuntimeSeen, ...]:
        met = self._met.setdefault((address, pid), _Met(runtime))
        if self.clock() < met.again_at:
            return met.last
        label = address.host if is_added else ""
        try:
            rows, trouble = self._read(address, runtime or met.runtime, asking, met)
        except KeyWantedError as error:
            wants = _unread(runtime, label, Reach.WANTS_KEY, error.message, address)
            return self._put_off(met, wants)
        if rows and rows[0].reach in _HEARD:
            self._met[address, pid] = _Met(rows[0].runtime, met.key)
            return rows
        if not rows and not is_added:
            return self._put_off(met)
        why = trouble or tr("it does not answer as a runtime does")
        return self._put_off(met, _unread(runtime, label, Reach.SILENT, why, address))

    def _read(
        self, address: Address, runtime: str, asking: Asking, met: _Met
    ) -> tuple[tuple[RuntimeSeen, ...], str]:
        """What answers there, and what went wrong; with a key only where one is wanted.

        Raises:
            KeyWantedError: it wants one, and none was given or another one.
        """
        asker = Asker(address, asking, met.key)
        try:
            return identify.read(asker, runtime), asker.trouble()
        except KeyWantedError:
            key = self.key_of(address)
            if not key or key == met.key:
                raise
        asker = Asker(address, asking, key)
        rows = identify.read(asker, runtime)
        met.key = key
        return rows, asker.trouble()

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


def _agrees(rows: tuple[RuntimeSeen, ...], group: Group) -> bool:
    """Whether what answers at a socket of nobody may be this group's: its runtime and its model."""
    row = rows[0]
    if row.runtime != group.runtime:
        return False
    if not group.model or group.runtime in _SERVE_MANY or isinstance(row.model, Missing):
        return True
    said = (name.replace("\\", "/").rpartition("/")[2] for name in (row.model.name, row.model.file))
    return group.model.casefold() in {name.partition(":")[0].casefold() for name in said}


def _named(row: RuntimeSeen, group: Group) -> RuntimeSeen:
    """A server whose answer has no shape of its own is what its process is."""
    return row if row.runtime else replace(row, runtime=group.runtime, label=group.label)


def _with_memory(
    rows: tuple[RuntimeSeen, ...], group: Group, snapshot: TelemetrySnapshot
) -> Iterator[RuntimeSeen]:
    """Each row with the processes that hold it; a model of several, those that name its file."""
    if len(rows) == 1:
        held = attribution.held(group.pids, snapshot)
        yield replace(rows[0], pids=group.pids, held=held, cpu_s=_cpu_s(group, group.pids))
        return
    shared = tr("Several models share these processes: what each holds is not told apart.")
    untold = Missing(tr("several models share these processes"))
    together = tuple(
        replace(held, size_bytes=untold, quality=Quality.NOT_REPORTED)
        for held in attribution.held(group.pids, snapshot)
    )
    for row in rows:
        file = row.model.file if isinstance(row.model, ModelSeen) else ""
        pids = _naming(file, group) if file else ()
        if pids:
            held = attribution.held(pids, snapshot)
            yield replace(row, pids=pids, held=held, cpu_s=_cpu_s(group, pids))
        else:
            notes = (*row.notes, shared)
            yield replace(row, pids=group.pids[:1], held=together, notes=notes)


def _cpu_s(group: Group, pids: tuple[int, ...]) -> float | Missing:
    """Processor time of those of ``group`` that are ``pids``."""
    times = [process.cpu_s for process in group.members if process.pid in pids]
    known = [time for time in times if time is not None]
    if len(known) < len(times):
        return Missing(tr("the system doesn’t tell the processor time of these processes"))
    return sum(known)


def _naming(file: str, group: Group) -> tuple[int, ...]:
    """Processes of ``group`` that have ``file`` on their command line, or its name."""
    name = file.replace("\\", "/").rpartition("/")[2]
    return tuple(p.pid for p in group.members[1:] if any(name in word for word in p.words))


def _plain(process: ProcessReading, snapshot: TelemetrySnapshot) -> RuntimeSeen:
    seen = recognise(process.name, process.command)
    why = tr("a program of one’s own has nothing to ask")
    absent = dict.fromkeys(("pool", "running", "waiting", "version"), Missing(why))
    return RuntimeSeen(
        "",
        seen.label,
        Reach.NO_ADDRESS,
        why,
        pids=(process.pid,),
        model=ModelSeen(seen.model) if seen.model else NOT_STATED,
        held=attribution.held((process.pid,), snapshot),
        **absent,
    )
