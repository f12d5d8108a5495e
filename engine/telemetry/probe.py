"""Which sources work on this computer, and one sampler over all of them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from engine.errors import TelemetryError
from engine.telemetry.adapters.host import HostAdapter
from engine.telemetry.adapters.nvidia import LIBRARY_NOT_FOUND, NvidiaAdapter
from engine.telemetry.lane import Adapter, Lane
from engine.telemetry.snapshot import TelemetrySnapshot

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.telemetry.snapshot import DeviceReading, Sampler

DEADLINE_S = 0.5
"""How long a snapshot waits for a driver; well below the 1 s between snapshots."""


def open_sampler(deadline_s: float = DEADLINE_S) -> Sampler:
    """A sampler over every source that works here: GPUs first, the host last."""
    adapters: list[Adapter] = []
    notes: list[str] = []
    nvidia = NvidiaAdapter()
    try:
        nvidia.open()
    except TelemetryError as error:
        if error.field == str(LIBRARY_NOT_FOUND):
            notes.append(error.message)
        else:  # there is a driver, only not now: keep asking
            adapters.append(nvidia)
    else:
        adapters.append(nvidia)
    adapters.append(HostAdapter())
    return LiveSampler(adapters, deadline_s, tuple(notes))


class LiveSampler:
    """Samples every adapter at once; each has its own thread and deadline."""

    def __init__(
        self, adapters: Sequence[Adapter], deadline_s: float, notes: tuple[str, ...] = ()
    ) -> None:
        self._lanes = tuple(Lane(adapter, deadline_s) for adapter in adapters)
        self._notes = notes

    def sample(self) -> TelemetrySnapshot:
        """All devices now. Takes at most the deadline per source that hangs.

        Raises:
            TelemetryError: nothing at all could be read.
        """
        for lane in self._lanes:
            lane.ask()
        devices: list[DeviceReading] = []
        notes = list(self._notes)
        for lane in reversed(self._lanes):  # the host first: it never hangs
            readings, failure = lane.answer()
            devices[:0] = readings
            if failure:
                notes.append(failure)
        if not devices:
            message = " ".join(notes) or "No device of this computer could be read."
            raise TelemetryError(message)
        return TelemetrySnapshot(time.monotonic(), time.time(), tuple(devices), tuple(notes))

    def close(self) -> None:
        """Stop every source."""
        for lane in self._lanes:
            lane.close()
