"""One moment of measurement. A value that is missing carries its reason, and is never 0."""

from __future__ import annotations

import os
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Missing:
    """Why there is no value, in a phrase a person can read."""

    reason: str


class PoolKind(StrEnum):
    """Which memory a reading is about."""

    VRAM = "vram"
    UNIFIED = "unified"
    HOST = "host"


@dataclass(frozen=True, slots=True)
class ProcessReading:
    """What one process holds on one device."""

    pid: int
    name: str
    used_bytes: int | Missing
    command: str = ""
    """The command line, cut to a sane length; tokens and keys in it are masked."""
    file_bytes: int | Missing = Missing("mapped files are told apart in host memory only")
    """Resident pages of mapped files (a GGUF opened with mmap): reclaimable, not in ``used``."""


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
