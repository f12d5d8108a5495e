"""How often the devices are asked: once a second, oftener while something is loaded.

The peak of a load lasts less than a second, so a change of 256 MiB makes the pace fast for 20 s.
On a battery everything is asked a fifth as often; while nobody looks, as seldom as is useful.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from engine.telemetry.commands import recognise
from engine.telemetry.mapped import held_bytes
from engine.telemetry.snapshot import DeviceReading, Missing, PoolKind
from engine.units import MIB

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.telemetry.snapshot import TelemetrySnapshot

DEFAULT_S: Final = 1.0
FAST_S: Final = 0.2
UNSEEN_S: Final = 6.0
FAST_FOR_S: Final = 20.0
BATTERY_FACTOR: Final = 5.0
LOAD_BYTES: Final = 256 * MIB


class Pace:
    """Says after each snapshot how long to wait for the next."""

    def __init__(
        self, is_battery: Callable[[], bool], clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Start at the usual pace.

        Args:
            is_battery: whether the computer runs on its battery.
            clock: tells seconds.
        """
        self.is_seen = True
        """Whether anybody looks at the figures; a recording looks too."""
        self._is_battery = is_battery
        self._clock = clock
        self._held: dict[str, int] = {}
        self._fast_until = 0.0

    @property
    def factor(self) -> float:
        """How many times as long everything waits as on mains."""
        return BATTERY_FACTOR if self._is_battery() else 1.0

    @property
    def interval_s(self) -> float:
        """Seconds from one snapshot to the next."""
        if self._clock() < self._fast_until:
            return FAST_S
        return (DEFAULT_S if self.is_seen else UNSEEN_S) * self.factor

    def take(self, snapshot: TelemetrySnapshot) -> None:
        """See whether something is being loaded."""
        for device in snapshot.devices:
            held = _held(device)
            if held is None:
                continue
            before = self._held.get(device.uuid, held)
            self._held[device.uuid] = held
            if abs(held - before) >= LOAD_BYTES:
                self._fast_until = self._clock() + FAST_FOR_S


def _held(device: DeviceReading) -> int | None:
    """What a load changes: all that a GPU holds, and of the host what runtimes hold."""
    if device.pool is not PoolKind.HOST:
        return device.used_bytes if isinstance(device.used_bytes, int) else None
    if isinstance(device.processes, Missing):
        return None
    runtimes = (p for p in device.processes if recognise(p.name, p.command).runtime)
    return sum(size for p in runtimes if isinstance(size := held_bytes(p), int))
