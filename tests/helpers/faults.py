"""Sources that fail in every way that drivers fail, by a list that a seed makes."""

from __future__ import annotations

import random
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from engine.errors import TelemetryError
from engine.telemetry.snapshot import Missing

if TYPE_CHECKING:
    from engine.telemetry.lane import Adapter
    from engine.telemetry.snapshot import DeviceReading

FAULTS = ("hang", "error", "garbage", "lost", "reload")


class Faulty:
    """An adapter whose answers a test spoils: one fault at a time, which lasts some samples."""

    def __init__(self, inner: Adapter, seed: int, *, share: float = 0.02) -> None:
        self.name = f"{inner.name} {seed}"
        self._inner = inner
        self._random = random.Random(seed)
        self._share = share
        self._fault = ""
        self._left = 0
        self._gate = threading.Event()
        self.seen: dict[str, int] = dict.fromkeys(FAULTS, 0)
        self.is_calm = False
        """No new faults while this is set."""

    def release(self) -> None:
        """Let a call that hangs return."""
        self._gate.set()

    def sample(self) -> tuple[DeviceReading, ...]:
        """The inner adapter's readings, or what a broken driver makes of them."""
        if self._left:
            self._left -= 1
        else:
            self._fault = ""
        if not self._fault and not self.is_calm and self._random.random() < self._share:
            self._fault = self._random.choice(FAULTS)
            self._left = 0 if self._fault == "hang" else self._random.randrange(4)
            self.seen[self._fault] += 1
        return self._answered(self._inner.sample())

    def _answered(self, readings: tuple[DeviceReading, ...]) -> tuple[DeviceReading, ...]:
        if self._fault == "hang":
            self._gate.clear()
            self._gate.wait(30)
        if self._fault == "error":
            raise TelemetryError("The driver is gone.")
        if self._fault == "garbage":
            raise self._random.choice(
                (ValueError("0xFFFFFFFFFFFFFFFF"), OSError(5, "I/O error"), MemoryError())
            )
        if self._fault == "lost":
            gone: Any = Missing("the GPU fell off the bus")
            first = replace(readings[0], used_bytes=gone, free_bytes=gone, processes=gone)
            return (first, *readings[1:])
        if self._fault == "reload":
            return cast("tuple[DeviceReading, ...]", ())
        return readings

    def close(self) -> None:
        """Nothing is held."""
