"""GPUs of any maker on Windows: counters tell who holds what, DXGI how much there is.

A process's *Dedicated Usage* is what it was promised, which may exceed the card; *Local Usage* is
what lies on the card and *Non Local Usage* what lies in the system's memory (systeminformer issue
2389 and PR 2971). So the latter two are shown, and the promise in the details only.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from engine.errors import TelemetryError
from engine.telemetry.adapters import plausible
from engine.telemetry.adapters.names import Names
from engine.telemetry.adapters.windows_door import WindowsDoor
from engine.telemetry.adapters.windows_facts import (
    ADAPTER_COUNTERS,
    PROCESS_COUNTERS,
    SIZE_UNKNOWN,
    Counted,
    Graphics,
)
from engine.telemetry.snapshot import (
    DeviceReading,
    Missing,
    Part,
    PoolKind,
    ProcessReading,
    Quality,
)
from engine.text import printable
from engine.units import GIB
from engine.words import tr, tr_later

if TYPE_CHECKING:
    from collections.abc import Callable

SOURCE: Final = "Windows counters"
UUID_PREFIX: Final = "luid_"

_ADAPTER = re.compile(r"(luid_0x[0-9a-f]+_0x[0-9a-f]+)(?:_phys_\d+)?$", re.IGNORECASE)
_PROCESS = re.compile(r"pid_(\d+)_(luid_0x[0-9a-f]+_0x[0-9a-f]+)(?:_phys_\d+)?$", re.IGNORECASE)
_APU = re.compile(
    r"Radeon(?:\(TM\))?(?: (?:RX )?Vega \d+(?= Graphics))?(?: \d{3,4}[MS])?(?: Graphics)?$"
)
_SMALLEST_CARD_BYTES = GIB
"""Graphics of a processor set aside 128 MiB and take the rest from the system."""

_LARGEST_BYTES: Final = 2**50
"""Above it is no size: a counter that has run over."""

_NO_RESERVE = tr_later("Windows counts the driver's part as used")
_OVER_FULL = tr_later("more is counted as used than there is")
_NO_COUNTER = tr_later("Windows has no counter for it")
_DEDICATED = tr_later("its own memory")
_WINDOW = tr_later("system memory used by the GPU")


class Door(Protocol):
    """What is asked of Windows itself."""

    def graphics(self) -> tuple[Graphics, ...]:
        """The display adapters that are no software."""
        ...

    def counted(self) -> Counted:
        """The counters now.

        Raises:
            TelemetryError: Windows has none, or they can't be read.
        """
        ...

    def close(self) -> None:
        """Let go of the counters."""
        ...


class WindowsAdapter:
    """Every display adapter of a Windows computer."""

    name = "Windows"
    every_s = 1.0
    """A collection goes through every process that uses a GPU: some 5 to 20 ms."""

    def __init__(
        self,
        door: Callable[[], Door] | None = None,
        name_of: Callable[[int], tuple[str, str]] | None = None,
    ) -> None:
        """Nothing is opened before the first sample.

        Args:
            door: opens what is asked of Windows.
            name_of: name and command line of a process.
        """
        self._open = door or open_door
        self._name_of = name_of or names()
        self._door: Door | None = None
        self._graphics: tuple[Graphics, ...] = ()

    def sample(self) -> tuple[DeviceReading, ...]:
        """One reading per adapter.

        Raises:
            TelemetryError: Windows' counters can't be read.
        """
        if self._door is None:
            self._door = self._open()
            self._graphics = self._door.graphics()
        return readings(self._door.counted(), self._graphics, self._name_of)

    def close(self) -> None:
        """Let go of the counters."""
        if self._door is not None:
            self._door.close()
            self._door = None


def readings(
    counted: Counted,
    graphics: tuple[Graphics, ...],
    name_of: Callable[[int], tuple[str, str]],
) -> tuple[DeviceReading, ...]:
    """One reading per display adapter that is known to DXGI or seen in the counters."""
    used = {counter: _by_adapter(counted, counter) for counter in ADAPTER_COUNTERS}
    known = {one.luid: one for one in graphics}
    if not graphics:
        seen = dict.fromkeys(luid for by_luid in used.values() for luid in by_luid)
        unnamed = tr("Display adapter {luid}")
        known = {
            luid: Graphics(luid, unnamed.format(luid=luid), Missing(tr(SIZE_UNKNOWN)))
            for luid in seen
        }
    held = _by_process(counted)
    return tuple(
        _reading(
            one,
            used["Dedicated Usage"].get(luid),
            used["Shared Usage"].get(luid),
            _processes(held.get(luid, {}), name_of),
        )
        for luid, one in known.items()
    )


def _reading(
    one: Graphics,
    dedicated: int | None,
    shared: int | None,
    processes: tuple[ProcessReading, ...],
) -> DeviceReading:
    none = Missing(tr(_NO_COUNTER))
    own: int | Missing = none if dedicated is None else dedicated
    borrowed: int | Missing = none if shared is None else shared
    total = one.dedicated_bytes
    pool, parts = PoolKind.VRAM, ()
    if isinstance(total, int) and _shares(one.name, total):
        pool = PoolKind.WINDOW if total < _SMALLEST_CARD_BYTES else PoolKind.CARVE_OUT
        parts = (
            Part(tr(_DEDICATED), total, own),
            Part(tr(_WINDOW), one.shared_bytes, borrowed),
        )
        total = total + one.shared_bytes or Missing(tr(SIZE_UNKNOWN))
        own = own + borrowed if isinstance(own, int) and isinstance(borrowed, int) else none
        borrowed = Missing(tr_later("this GPU works in the system's memory anyway"))
        processes = tuple(_whole(process) for process in processes)
    free: int | Missing = own if isinstance(own, Missing) else none
    note = ""
    if isinstance(total, Missing):
        free = total
    elif isinstance(own, int):
        free = total - own if own <= total else Missing(tr(_OVER_FULL))
        note = "" if own <= total else tr("Windows counts more as used than there is.")
    return DeviceReading(
        uuid=one.luid,
        name=printable(one.name, 120),
        pool=pool,
        total_bytes=total,
        used_bytes=own,
        free_bytes=free,
        reserved_bytes=Missing(tr(_NO_RESERVE)),
        processes=plausible.marked(processes, own if isinstance(own, int) else None),
        source=SOURCE,
        note=note,
        spill_bytes=borrowed,
        parts=parts,
        pci_address=one.pci_address,
        vendor=one.vendor,
    )


def _shares(name: str, dedicated: int) -> bool:
    """Whether the adapter is a processor's graphics, which works in the system's memory."""
    return dedicated < _SMALLEST_CARD_BYTES or bool(_APU.search(name))


def _whole(process: ProcessReading) -> ProcessReading:
    """Where the system's memory is the GPU's, what lies there is no spill."""
    used, spill = process.used_bytes, process.spill_bytes
    if isinstance(used, Missing) or isinstance(spill, Missing):
        return process
    return replace(process, used_bytes=used + spill, spill_bytes=0, system_bytes=spill)


def _by_adapter(counted: Counted, counter: str) -> dict[str, int]:
    """Bytes by LUID; linked cards of one adapter (``phys_0``, ``phys_1``) together."""
    found: dict[str, int] = {}
    for instance, size in counted.adapters.get(counter, {}).items():
        match = _ADAPTER.match(instance)
        if match and 0 <= size < _LARGEST_BYTES:
            luid = match[1].lower()
            found[luid] = found.get(luid, 0) + size
    return found


def _by_process(counted: Counted) -> dict[str, dict[int, dict[str, int]]]:
    """Bytes by LUID, process and counter."""
    found: dict[str, dict[int, dict[str, int]]] = {}
    for counter in PROCESS_COUNTERS:
        for instance, size in counted.processes.get(counter, {}).items():
            match = _PROCESS.match(instance)
            if match and 0 <= size < _LARGEST_BYTES:
                by_counter = found.setdefault(match[2].lower(), {}).setdefault(int(match[1]), {})
                by_counter[counter] = by_counter.get(counter, 0) + size
    return found


def _processes(
    held: dict[int, dict[str, int]], name_of: Callable[[int], tuple[str, str]]
) -> tuple[ProcessReading, ...]:
    none = Missing(tr(_NO_COUNTER))
    rows: list[tuple[int, ProcessReading]] = []
    for pid, sizes in held.items():
        promised = sizes.get("Dedicated Usage")
        resident = sizes.get("Local Usage")
        used = promised if resident is None else resident
        spill = sizes.get("Non Local Usage")
        if not pid or not (used or spill):
            continue
        name, command = name_of(pid)
        reading = ProcessReading(
            pid,
            name,
            none if used is None else used,
            command=command,
            quality=Quality.COMMITTED if resident is None else Quality.RESIDENT,
            spill_bytes=none if spill is None else spill,
            committed_bytes=none if promised is None else promised,
        )
        rows.append((used or 0, reading))
    return tuple(reading for _, reading in sorted(rows, key=lambda r: (-r[0], r[1].pid)))


def names() -> Callable[[int], tuple[str, str]]:
    """Name and command line of this computer's processes."""
    return Names(Path("/")).of


def open_door() -> Door:
    """Windows itself.

    Raises:
        TelemetryError: it has no such counters.
    """
    try:
        return WindowsDoor()
    except OSError as error:
        message = tr("Windows' GPU counters cannot be read: {error}.")
        raise TelemetryError(message.format(error=printable(str(error), 120))) from error
