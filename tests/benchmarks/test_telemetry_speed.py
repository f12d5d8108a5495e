"""What watching costs: a share of one core, and what a day of it leaves in memory."""

from __future__ import annotations

import gc
import os
import time
from typing import TYPE_CHECKING

import psutil
import pytest

from engine.telemetry.adapters.host import HostAdapter
from engine.telemetry.adapters.simulated import SimulatedAdapter
from engine.telemetry.outline import Outlines
from engine.telemetry.probe import LiveSampler
from engine.telemetry.spill import SpillWatch
from gui.kit.charts.series import Sample, Series
from tests.benchmarks.pace import allowed, quietest

if TYPE_CHECKING:
    from engine.telemetry.snapshot import TelemetrySnapshot

pytestmark = pytest.mark.benchmark

SHARE_OF_A_CORE = 0.01
GROWTH_BYTES = 10e6
HOURS = float(os.environ.get("PLIMSOLL_SOAK_HOURS", "0.5"))
"""How much of a day at 10 Hz; 24 takes some ten minutes."""


class Clock:
    """A clock that a test moves by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Watched:
    """What becomes of a sample: kept for the charts and for the report, judged for spills."""

    def __init__(self) -> None:
        self._series: dict[str, Series] = {}
        self._kept = Outlines()
        self._spills = SpillWatch()

    def take(self, snapshot: TelemetrySnapshot) -> None:
        for device in snapshot.devices:
            used = device.used_bytes if isinstance(device.used_bytes, int) else None
            series = self._series.setdefault(device.uuid, Series())
            series.append(Sample(snapshot.monotonic_s, used))
        self._kept.append(snapshot)
        self._spills.take(snapshot)


def test_that_eight_devices_and_forty_processes_take_under_a_percent_of_a_core(note):
    clock = Clock()
    sampler = LiveSampler((SimulatedAdapter(clock=clock),), 10, 10, clock)
    watched = Watched()
    watched.take(sampler.sample())

    def once() -> float:
        began = time.process_time()
        for _ in range(50):
            clock.now += 1.0
            watched.take(sampler.sample())
        return (time.process_time() - began) / 50  # seconds of a core for each second

    share = quietest(once, SHARE_OF_A_CORE)
    sampler.close()
    note("watching 8 devices of 40 processes at 1 Hz, of a core", f"{share:.2%}", "1 %")
    assert share <= allowed(SHARE_OF_A_CORE)


def test_that_this_computer_s_own_memory_takes_under_a_percent_of_a_core(note):
    clock = Clock()
    sampler = LiveSampler((HostAdapter(clock=clock),), 10, 10, clock)
    sampler.sample()

    def once() -> float:
        began = time.process_time()
        for _ in range(10):
            clock.now += 1.0
            sampler.sample()
        return (time.process_time() - began) / 10

    share = quietest(once, SHARE_OF_A_CORE)
    sampler.close()
    note("watching the host at 1 Hz, of a core", f"{share:.2%}", "1 %")
    assert share <= allowed(SHARE_OF_A_CORE)


def test_that_a_day_at_ten_samples_a_second_stays_under_ten_megabytes(note):
    clock = Clock()
    sampler = LiveSampler((SimulatedAdapter(clock=clock),), 10, 10, clock)
    watched = Watched()
    process = psutil.Process()

    def run(samples: int) -> int:
        for _ in range(samples):
            clock.now += 0.1
            watched.take(sampler.sample())
        gc.collect()
        return process.memory_info().rss

    before = run(600)
    after = run(round(HOURS * 36_000))
    sampler.close()
    note(f"memory grows in {HOURS:g} h at 10 Hz by", f"{(after - before) / 1e6:.1f} MB", "10 MB")
    assert after - before < GROWTH_BYTES
