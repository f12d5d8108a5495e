"""What a device holds, as rows that add up to it, and the words that explain other tools."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import TYPE_CHECKING

from engine.telemetry import mapped
from engine.telemetry.commands import NOTHING, Recognised, recognise
from engine.telemetry.pressure import spilled_bytes
from engine.telemetry.snapshot import DeviceReading, Missing, PoolKind, Quality
from engine.units import MIB, UnitSystem
from engine.words import tr, tr_later
from gui.kit import format as fmt
from gui.live import explain, told

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from engine.seen.model import RuntimeSeen
    from engine.telemetry.snapshot import ProcessReading, TelemetrySnapshot

_MOST_PROCESSES = 24
_IDLE_CARD_BYTES = 64 * MIB
"""A card in use by nobody shows 0 to 50 MiB outside any process (nvidia-smi outputs)."""
_MAPPED = tr_later(
    "A runtime has mapped them and reads them for every token. The system calls them available: "
    "it may drop them, and the run becomes slow"
)
_SPILLED = tr_later("Work of this device that was moved to system RAM, where it is far slower")
_SMALLEST_SHARE = 1 / 500
"""Smaller processes are folded into one row, unless a runtime is recognised in them."""


_RESERVED_WORDS = {
    "driver": (
        tr_later("{size} driver"),
        tr_later("Driver"),
        tr_later("What the driver keeps for itself"),
    ),
    "outside": (
        tr_later("{size} outside"),
        tr_later("Held outside this container"),
        tr_later("Other programs of the machine"),
    ),
    "macos": (
        tr_later("{size} macOS"),
        tr_later("macOS"),
        tr_later("Kept by macOS for itself and for apps"),
    ),
    "system": (
        tr_later("{size} system"),
        tr_later("System"),
        tr_later("The kernel and its tables: held in no process's name"),
    ),
}
"""Term of the balance, row label and reason of the reserved part, by who holds it."""


class Kind(Enum):
    """What a row is about; decides its look."""

    RUNTIME = auto()
    APART = auto()
    """A runtime that holds nothing on this device: elsewhere, or in processes not known."""
    PROCESS = auto()
    REST = auto()
    """Held, but in no process's name."""
    FREE = auto()
    DRIVER = auto()
    TOTAL = auto()
    BESIDE = auto()
    """Its work that lies in other memory: part of no sum here."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table."""

    kind: Kind
    label: str
    pid: int = 0
    """0 where the row is no single process."""
    runtime: str = ""
    """Runtime and model, where they are known."""
    size_bytes: int | None = None
    """None where it is not known; ``tooltip`` then says why."""
    share: float = 0.0
    """Of the device's total, 0 to 1."""
    tooltip: str = ""
    adds_up: bool = True
    """False where the figure counts memory that others are counted for too."""
    seen: RuntimeSeen | None = None
    """Its runtime, in the one row of it that tells the figures."""


@dataclass(frozen=True, slots=True)
class HoldsState:
    """Everything the tab shows of one device at one moment."""

    uuid: str
    rows: tuple[Row, ...]
    passages: tuple[explain.Passage, ...]
    unit: UnitSystem
    total_bytes: int | None
    process_count: int | None
    """Processes listed, folded ones included; None where the driver doesn't list them."""
    balance: str
    """``23.24 used + 0.40 free + 0.35 driver = 23.99 GiB`` for the status line, or empty."""
    note: str = ""
    """What is special about this device now."""


def present(
    reading: DeviceReading,
    unit: UnitSystem,
    models: Mapping[str, str] | None = None,
    before: explain.Passage | None = None,
    runtimes: tuple[RuntimeSeen, ...] = (),
) -> HoldsState:
    """The state for one device.

    Args:
        reading: the device now.
        unit: GiB or GB.
        models: model by runtime where another process of the snapshot gives it away.
        before: the passage on what was held before the run.
        runtimes: those of this computer, and those that were added.
    """
    total = reading.total_bytes
    if isinstance(total, Missing):
        return _unreadable(reading, unit, tr(total.reason))
    rows = tuple(_rows(reading, total, _Names(models or {}, runtimes, reading)))
    passages = tuple(p for p in (explain.why(reading, unit), before) if p)
    held = reading.processes
    return HoldsState(
        uuid=reading.uuid,
        rows=rows,
        passages=passages,
        unit=unit,
        total_bytes=total,
        process_count=None if isinstance(held, Missing) else _count(held),
        balance=balance(reading, unit),
        note=tr(reading.note),
    )


def models_by_runtime(snapshot: TelemetrySnapshot) -> dict[str, str]:
    """Each runtime's model, where the processes of the snapshot name exactly one.

    A worker's title (``VLLM::EngineCore``) doesn't name the model, its parent's command does.
    """
    found: dict[str, set[str]] = {}
    for reading in snapshot.devices:
        for process in _processes(reading):
            seen = recognise(process.name, process.command)
            if seen.model:
                found.setdefault(seen.runtime, set()).add(seen.model)
    return {runtime: next(iter(names)) for runtime, names in found.items() if len(names) == 1}


def balance(reading: DeviceReading, unit: UnitSystem) -> str:
    """Used + free + reserved = total, in words for the status line; empty where one is missing."""
    total, used, free = reading.total_bytes, reading.used_bytes, reading.free_bytes
    if isinstance(total, Missing) or isinstance(used, Missing) or isinstance(free, Missing):
        return ""
    terms = [
        tr("{size} used").format(size=fmt.size_number(used, unit)),
        tr("{size} free").format(size=fmt.size_number(free, unit)),
    ]
    if isinstance(reading.reserved_bytes, int) and reading.reserved_bytes:
        term = tr(_RESERVED_WORDS[_holder(reading)][0])
        terms.append(term.format(size=fmt.size_number(reading.reserved_bytes, unit)))
    return f"{' + '.join(terms)} = {fmt.size(total, unit)}"


class _Names:
    """Which runtime a process belongs to, and in which row its figures stand."""

    def __init__(
        self,
        models: Mapping[str, str],
        runtimes: tuple[RuntimeSeen, ...],
        reading: DeviceReading,
    ) -> None:
        self._models = models
        self._by_pid = {pid: seen for seen in runtimes for pid in seen.pids}
        sizes = {p.pid: p.used_bytes for p in _processes(reading) if p.pid in self._by_pid}
        self._tells = {
            max(here, key=lambda pid: size if isinstance(size := sizes[pid], int) else -1)
            for seen in runtimes
            if (here := [pid for pid in seen.pids if pid in sizes])
        }
        self.apart = tuple(seen for seen in runtimes if not seen.held)
        """Those without a row of their own on any device."""

    def words(self, pid: int, seen: Recognised) -> str:
        """Runtime and model of a process."""
        if pid in self._by_pid:
            return told.name(self._by_pid[pid], is_short=True)
        model = seen.model or self._models.get(seen.runtime, "")
        return ", ".join(filter(None, (seen.label, model)))

    def told(self, pid: int) -> RuntimeSeen | None:
        """The runtime whose figures stand in the row of ``pid``."""
        return self._by_pid[pid] if pid in self._tells else None


def _rows(reading: DeviceReading, total: int, names: _Names) -> Iterable[Row]:
    listed = _without_doubles(reading, total, names)
    yield from _folded(listed, total)
    for seen in names.apart:
        tooltip = tr("It holds nothing here, as far as its processes are known")
        yield Row(
            Kind.APART,
            seen.label,
            runtime=told.name(seen, is_short=True),
            seen=seen,
            tooltip=tooltip,
        )
    used, free, reserved = reading.used_bytes, reading.free_bytes, reading.reserved_bytes
    if isinstance(used, int):
        files = min(mapped.model_bytes(reading.processes), used)
        rest = used - files - sum(row.size_bytes or 0 for row in listed if row.adds_up)
        if files:
            yield Row(Kind.REST, tr("Mapped model files"), size_bytes=files, share=files / total,
                      tooltip=f"{_exact(files)}\n{tr(_MAPPED)}")  # fmt: skip
        if abs(rest) >= MIB:  # a driver's figures for processes are in MiB
            label, tooltip = _rest_words(reading, rest, listed)
            yield Row(Kind.REST, label, size_bytes=rest, share=rest / total, tooltip=tooltip)
    if isinstance(free, int):
        label = tr("Free, below the load line")
        yield Row(Kind.FREE, label, size_bytes=free, share=free / total, tooltip=_exact(free))
    if isinstance(reserved, int) and reserved:
        _, label, reason = _RESERVED_WORDS[_holder(reading)]
        yield Row(Kind.DRIVER, tr(label), size_bytes=reserved, share=reserved / total,
                  tooltip=f"{_exact(reserved)}\n{tr(reason)}")  # fmt: skip
    elif isinstance(reserved, Missing) and reading.pool is PoolKind.VRAM:
        words = tr("Not told apart: {reason}").format(reason=tr(reserved.reason))
        yield Row(Kind.DRIVER, tr("Driver"), tooltip=words)
    yield Row(Kind.TOTAL, _whole(reading), size_bytes=total, share=1.0, tooltip=_exact(total))
    spilled = spilled_bytes(reading)
    if spilled is not None:
        yield Row(Kind.BESIDE, tr("Besides, in system RAM"), size_bytes=spilled, adds_up=False,
                  tooltip=f"{_exact(spilled)}\n{tr(_SPILLED)}")  # fmt: skip


def _without_doubles(reading: DeviceReading, total: int, names: _Names) -> list[Row]:
    """A row per process; where they hold more than the device, those that count doubly are told.

    xpu-smi gave one browser 7,692 MiB on a card with 3,642 MiB in use (xpumanager issue 145).
    """
    held = _processes(reading)
    rows = [_process_row(p, total, names) for p in held]
    used = reading.used_bytes
    if isinstance(used, Missing) or sum(row.size_bytes or 0 for row in rows) <= used:
        return rows
    words = tr("≥, shared memory counted more than once")
    return [
        replace(row, adds_up=False, runtime=", ".join(filter(None, (row.runtime, words))))
        if process.quality is Quality.OVER_COUNTS
        else row
        for process, row in zip(held, rows, strict=True)
    ]


def _holder(reading: DeviceReading) -> str:
    """Who holds the reserved part: a key of ``_RESERVED_WORDS``."""
    if reading.pool is PoolKind.VRAM:
        return "driver"
    if reading.pool is PoolKind.WIRED:
        return "macos"
    return "outside" if reading.name == "Container" else "system"


def _process_row(process: ProcessReading, total: int, names: _Names) -> Row:
    seen = recognise(process.name, process.command) if process.pid else NOTHING
    used = process.used_bytes
    size = None if isinstance(used, Missing) else used
    runtime = names.told(process.pid)
    return Row(
        kind=Kind.RUNTIME if seen.runtime or runtime else Kind.PROCESS,
        label=_name(process, seen),
        pid=process.pid,
        runtime=names.words(process.pid, seen),
        size_bytes=size,
        share=(size or 0) / total,
        tooltip=_process_tooltip(process),
        seen=runtime,
    )


def _name(process: ProcessReading, seen: Recognised) -> str:
    if seen.runtime and seen.part:
        is_command = seen.part == "serve"
        return f"{seen.label} {seen.part}" if is_command else f"{seen.label}, {tr(seen.part)}"
    return process.name or tr("process {pid}").format(pid=process.pid)


def _process_tooltip(process: ProcessReading) -> str:
    used = process.used_bytes
    lines = [tr(used.reason) if isinstance(used, Missing) else _exact(used)]
    if isinstance(process.file_bytes, int) and process.file_bytes:
        words = tr("and {bytes} of mapped files, which can be given up")
        lines.append(words.format(bytes=_exact(process.file_bytes)))
    lines += _further(process)
    if process.command:
        lines.append(process.command)
    return "\n".join(lines)


def _further(process: ProcessReading) -> Iterable[str]:
    """What else is known of a process: where its work lies, how far its figure can be trusted."""
    if process.quality is Quality.COMMITTED:
        yield tr("promised, and not all of it in memory")
    elif isinstance(process.committed_bytes, int) and process.committed_bytes:
        yield tr("{bytes} were promised").format(bytes=_exact(process.committed_bytes))
    if isinstance(process.spill_bytes, int) and process.spill_bytes:
        words = tr("and {bytes} of its work in system memory, which is slow")
        yield words.format(bytes=_exact(process.spill_bytes))


def _folded(rows: list[Row], total: int) -> Iterable[Row]:
    """The rows worth reading; the rest as one."""

    def counts(row: Row) -> bool:
        return row.kind is Kind.RUNTIME or row.size_bytes is None or row.share >= _SMALLEST_SHARE

    ordered = sorted(rows, key=lambda r: (r.kind is not Kind.RUNTIME, -(r.size_bytes or 0)))
    shown = [row for row in ordered if row.pid and counts(row)][:_MOST_PROCESSES]
    kept = {id(row) for row in shown}
    hidden = [row for row in rows if id(row) not in kept]
    yield from shown
    if len(hidden) == 1:
        yield hidden[0]
    elif hidden:
        size = sum(row.size_bytes or 0 for row in hidden if row.adds_up)
        names = ", ".join(dict.fromkeys(row.label for row in hidden[:12]))
        yield Row(Kind.PROCESS, tr("Other programs"), size_bytes=size, share=size / total,
                  tooltip=f"{_exact(size)}\n{names}")  # fmt: skip


def _rest_words(reading: DeviceReading, rest: int, listed: list[Row]) -> tuple[str, str]:
    """How to call what is held in no process's name, and why."""
    exact = _exact(rest)
    if rest < 0:
        words = tr("{bytes}: processes share these pages").format(bytes=exact)
        return tr("Shared, counted more than once"), words
    label = tr("In no process's name")
    reason = tr("Driver buffers and contexts that end late")
    if isinstance(reading.processes, Missing):
        label, reason = tr("Held, processes not told"), tr(reading.processes.reason)
    elif any(row.size_bytes is None for row in listed):
        label = tr("Held by the processes above")
        reason = tr("The driver doesn't say which process holds how much")
    elif reading.pool is PoolKind.HOST:
        label = tr("System")
        reason = tr("The kernel, its tables and memory shared between processes")
    elif reading.pool in {PoolKind.UNIFIED, PoolKind.WINDOW}:
        label, reason = tr("System and other programs"), tr("In use, but not through the GPU")
    elif not listed and rest > _IDLE_CARD_BYTES:
        label = tr("Outside this container")
        reason = tr("The driver lists no process here, yet memory is in use")
    return label, f"{exact}\n{reason}"


def _unreadable(reading: DeviceReading, unit: UnitSystem, reason: str) -> HoldsState:
    row = Row(Kind.TOTAL, _whole(reading), tooltip=reason)
    return HoldsState(
        reading.uuid, (row,), (explain.unreadable(reason),), unit, None, None, "", tr(reading.note)
    )


def _whole(reading: DeviceReading) -> str:
    if reading.pool is PoolKind.VRAM:
        return tr("Card")
    return tr("Container") if reading.name == "Container" else tr("Computer")


def _processes(reading: DeviceReading) -> tuple[ProcessReading, ...]:
    return () if isinstance(reading.processes, Missing) else reading.processes


def _count(held: tuple[ProcessReading, ...]) -> int:
    return sum(1 for process in held if process.pid)


def _exact(size_bytes: int) -> str:
    return fmt.exact_bytes(size_bytes)
