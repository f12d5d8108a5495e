"""Which sources work on this computer, and one sampler over all of them."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import TelemetryError
from engine.telemetry.adapters import amd, intel
from engine.telemetry.adapters.apple import AppleAdapter
from engine.telemetry.adapters.host import HostAdapter
from engine.telemetry.adapters.nvidia import NvidiaAdapter
from engine.telemetry.adapters.simulated import SimulatedAdapter
from engine.telemetry.adapters.windows import WindowsAdapter
from engine.telemetry.lane import Lane
from engine.telemetry.merge import merged
from engine.telemetry.pace import Pace
from engine.telemetry.power import Power
from engine.telemetry.snapshot import TelemetrySnapshot
from engine.words import tr

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from engine.telemetry.lane import Adapter
    from engine.telemetry.snapshot import DeviceReading

DEADLINE_S = 0.5
"""How long a snapshot waits for a driver; well below the 1 s between snapshots."""
OPENING_S = 5.0
"""How long the first one waits: without a resident driver, loading it takes 1 to 3 s."""

_SOURCES: dict[str, tuple[Callable[[], Adapter], ...]] = {
    "linux": (NvidiaAdapter, amd.with_library, intel.with_library),
    "win32": (NvidiaAdapter, WindowsAdapter),
    "darwin": (AppleAdapter,),
}
"""The sources of GPUs that a system can have."""


def open_sampler(deadline_s: float = DEADLINE_S, opening_s: float = OPENING_S) -> LiveSampler:
    """A sampler over every source that works here: GPUs first, the host last.

    Nothing is asked here: a driver is opened on its own thread, by the first sample, and one that
    isn't there yet is looked for again every half a minute.
    """
    made = (source() for source in _SOURCES.get(sys.platform, (NvidiaAdapter,)))
    return LiveSampler((*made, HostAdapter()), deadline_s, opening_s)


def host_sampler() -> LiveSampler:
    """A sampler over the computer's own memory, which asks no driver."""
    return LiveSampler((HostAdapter(),))


def simulated_sampler() -> LiveSampler:
    """A sampler over a machine that isn't there."""
    return LiveSampler((SimulatedAdapter(),))


class LiveSampler:
    """Samples every adapter at once; each has its own thread and deadline."""

    def __init__(
        self,
        adapters: Sequence[Adapter],
        deadline_s: float = DEADLINE_S,
        opening_s: float = OPENING_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Start a thread for each adapter.

        Args:
            adapters: in the order of their devices; the host last.
            deadline_s: how long a snapshot waits for one of them.
            opening_s: how long the first one waits.
            clock: tells seconds.
        """
        self.pace = Pace(Power(Path("/"), clock).is_battery, clock)
        """How often to sample."""
        self._clock = clock
        self._lanes = tuple(Lane(adapter, deadline_s, opening_s, clock) for adapter in adapters)

    @property
    def interval_s(self) -> float:
        """Seconds after which there is something new, at the pace that is kept now."""
        soonest = min((lane.every_s for lane in self._lanes), default=0.0)
        return max(self.pace.interval_s, soonest * self.pace.factor)

    def sample(self) -> TelemetrySnapshot:
        """All devices now. Takes at most the deadline, however many sources hang.

        Raises:
            TelemetryError: nothing at all could be read.
        """
        factor = self.pace.factor
        for lane in self._lanes:
            lane.ask(factor)
        devices: list[DeviceReading] = []
        notes: list[str] = []
        urgent: list[str] = []
        for lane in reversed(self._lanes):  # the host first: it never hangs
            readings, failure = lane.answer()
            devices[:0] = readings
            if failure:
                notes.append(failure)
            if failure and lane.asks_user:
                urgent.append(failure)
        if not devices:
            message = " ".join(notes) or tr("No device of this computer could be read.")
            raise TelemetryError(message)
        snapshot = TelemetrySnapshot(
            self._clock(), time.time(), merged(devices), tuple(notes), tuple(urgent)
        )
        self.pace.take(snapshot)
        return snapshot

    def close(self) -> None:
        """Stop every source."""
        for lane in self._lanes:
            lane.close()
