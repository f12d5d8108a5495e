"""One moment of measurement. A value that is missing carries its reason, and is never 0."""

from __future__ import annotations

import os
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol

from engine.words import tr_later

SIMULATOR: Final = "simulator"
"""The source of readings that nobody took."""


@dataclass(frozen=True, slots=True)
class Missing:
    """Why there is no value, in a phrase a person can read."""

    reason: str


class PoolKind(StrEnum):
    """Which memory a reading is about."""

    VRAM = "vram"
    """A card's own."""
    UNIFIED = "unified"
    """The system's, shared with a GPU that has no limit of its own (GB10, Jetson)."""
    WIRED = "unified-soft"
    """The system's, of which the GPU may wire a part (Apple); above it nothing fails, it swaps."""
    CARVE_OUT = "carve-out"
    """An APU's: a part that the firmware set aside, and system memory mapped beside it (GTT)."""
    WINDOW = "shared-window"
    """The part of the system's memory that an integrated GPU may use (Intel, Windows)."""
    HOST = "host"

    @property
    def is_shared(self) -> bool:
        """Whether these bytes are the computer's own memory."""
        return self is not PoolKind.VRAM


class Quality(StrEnum):
    """How far a process's figure can be trusted."""

    EXACT = "exact"
    RESIDENT = "resident"
    """What lies in memory now; more may be promised."""
    COMMITTED = "committed"
    """Promised, and not all of it in memory."""
    OVER_COUNTS = "over-counts shared"
    """Buffers shared with other processes are counted for each."""
    NOT_REPORTED = "not reported"


class Pressure(StrEnum):
    """Whether programs wait for memory, as the system itself judges it."""

    UNKNOWN = "unknown"
    NONE = "none"
    SOME = "some"
    CRITICAL = "critical"


@dataclass(frozen=True, slots=True)
class Part:
    """One of the pools that a device's memory is made of: a carve-out, or GTT."""

    name: str
    total_bytes: int | Missing
    used_bytes: int | Missing


_NO_SPILL = Missing(tr_later("this source does not tell what lies in system memory"))
_NO_SYSTEM = Missing(tr_later("this source does not tell where it lies"))
_NO_COMMIT = Missing(tr_later("this source does not tell what was promised"))
_NO_CEILING = Missing(tr_later("this source states no limit of its own"))
_NO_AVAILABLE = Missing(tr_later("what is free is all that can be had"))


@dataclass(frozen=True, slots=True)
class ProcessReading:
    """What one process holds on one device."""

    pid: int
    name: str
    used_bytes: int | Missing
    command: str = ""
    """The command line, cut to a sane length; tokens and keys in it are masked."""
    file_bytes: int | Missing = Missing(tr_later("mapped files are told apart in host memory only"))
    """Resident pages of mapped files (a GGUF opened with mmap): reclaimable, not in ``used``."""
    quality: Quality = Quality.EXACT
    spill_bytes: int | Missing = _NO_SPILL
    """Of this process's work on the device, what lies in system memory; not in ``used``."""
    system_bytes: int | Missing = _NO_SYSTEM
    """Of ``used``, what lies in the system's memory (GTT of an APU)."""
    committed_bytes: int | Missing = _NO_COMMIT
    """What it was promised, which may be more than there is: for the details only."""


@dataclass(frozen=True, slots=True)
class DeviceReading:
    """One device at one moment. ``used + free + reserved = total`` where all four are there."""

    uuid: str
    name: str
    pool: PoolKind
    total_bytes: int | Missing
    used_bytes: int | Missing
    free_bytes: int | Missing
    reserved_bytes: int | Missing
    """What the driver keeps for itself."""
    processes: tuple[ProcessReading, ...] | Missing
    source: str
    """``NVML 13.580.65``, ``psutil``, ``replay of …``."""
    note: str = ""
    """What a reader should know of this device now: a container's limit, a lost GPU."""
    sm_count: int = 0
    """Streaming multiprocessors, where the driver tells; else 0."""
    compute_capability: float = 0.0
    """CUDA compute capability, where the driver tells; else 0."""
    ceiling_bytes: int | Missing = _NO_CEILING
    """What one process may get when nothing else runs: a wired limit, a GTT limit, a slice."""
    available_bytes: int | Missing = _NO_AVAILABLE
    """What a new process could get now, where that is not ``free`` (shared pools)."""
    spill_bytes: int | Missing = _NO_SPILL
    """Of the device's work, what lies in system memory (Windows shared memory, GTT of a card)."""
    parts: tuple[Part, ...] = ()
    """The pools behind ``total``, where there are several."""
    age_s: float = 0.0
    """How old the figures are: above 0 where the source answers less often than it is asked."""
    vendor: str = ""
    """Who makes it (``AMD``), as far as the source says."""
    pressure: Pressure = Pressure.UNKNOWN
    machine: str = ""
    """Of several computers that one source tells of, the one it is in; else empty."""
    pci_address: str = ""
    """``0000:61:00.0`` where the source tells: what two sources call by different names is one."""


@dataclass(frozen=True, slots=True)
class TelemetrySnapshot:
    """All devices at one moment."""

    monotonic_s: float
    """For spacing samples; never jumps."""
    wall_time_s: float
    """Unix time, for clocks on an axis."""
    devices: tuple[DeviceReading, ...]
    notes: tuple[str, ...] = ()
    """Sources that did not answer and why."""
    urgent: tuple[str, ...] = ()
    """Of the notes, those that ask their reader to do something; of this moment, never recorded."""

    @property
    def is_simulated(self) -> bool:
        """Whether it is of a machine that isn't there, sampled now or played from a recording."""
        return any(device.source.endswith(SIMULATOR) for device in self.devices)


def own_bytes(reading: DeviceReading) -> int:
    """What this program itself holds on a device: it belongs to no plan and to no others."""
    if isinstance(reading.processes, Missing):
        return 0
    ours = [p.used_bytes for p in reading.processes if p.pid == os.getpid()]
    return sum(size for size in ours if not isinstance(size, Missing))


class Sampler(Protocol):
    """Delivers snapshots. ``sample`` may block for a bounded time: call it off the UI thread."""

    def sample(self) -> TelemetrySnapshot:
        """The state of all devices now.

        Raises:
            TelemetryError: nothing at all could be read.
        """
        ...

    def close(self) -> None:
        """Release drivers and files."""
        ...
