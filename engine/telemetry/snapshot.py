"""One moment of measurement. A value that is missing carries its reason, and is never 0."""

from __future__ import annotations

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
