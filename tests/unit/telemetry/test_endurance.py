"""A simulated machine for a long time, whole and with every kind of fault."""

from __future__ import annotations

import gc
import json
import sys
import tracemalloc
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from engine.devices.here import this_machine
from engine.errors import TelemetryError
from engine.telemetry import plain
from engine.telemetry.adapters.simulated import (
    CYCLE_S,
    DEVICES,
    PROCESSES,
    RESERVED_BYTES,
    TOTAL_BYTES,
    SimulatedAdapter,
    model_bytes,
)
from engine.telemetry.outline import Outlines
from engine.telemetry.probe import LiveSampler
from engine.telemetry.snapshot import Missing, PoolKind
from engine.telemetry.spill import SpillWatch
from tests.helpers.faults import FAULTS, Faulty

if TYPE_CHECKING:
    from engine.telemetry.snapshot import TelemetrySnapshot

GIB = 2**30


class Clock:
    """A clock that a test moves by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_that_the_simulated_machine_is_the_same_at_the_same_second():
    clock, again = Clock(), Clock()
    first, second = SimulatedAdapter(clock=clock), SimulatedAdapter(clock=again)
    for at in (0.0, 33.3, 70.0, 123.4, 250.0, 299.9):
        clock.now = again.now = at
        assert first.sample() == second.sample()
    clock.now, again.now = 10.0, 10.0 + CYCLE_S
    assert first.sample() == second.sample()


def test_that_the_simulated_devices_add_up_in_every_phase():
    clock = Clock()
    adapter = SimulatedAdapter(clock=clock)
    for at in range(0, 300, 7):
        clock.now = float(at)
        *cards, host = adapter.sample()
        assert len(cards) == DEVICES == 8
        assert host.pool is PoolKind.HOST
        for card in cards:
            assert isinstance(card.used_bytes, int)
            assert isinstance(card.free_bytes, int)
            assert card.free_bytes >= 0
            assert card.used_bytes + card.free_bytes + RESERVED_BYTES == TOTAL_BYTES
            assert not isinstance(card.processes, Missing)
            assert len(card.processes) == PROCESSES - (0 if 20 <= at < 280 else 1)


def test_that_the_simulated_run_has_its_phases():
    # Before, half of the load, prefill's peak above decode's start, full pool, unloaded
    assert model_bytes(10) == 0
    assert round((model_bytes(40) - model_bytes(20)) / GIB) == 19
    assert model_bytes(70) - model_bytes(80) == 3 * GIB
    assert model_bytes(139.9) < model_bytes(140) == model_bytes(270)
    assert model_bytes(280) == 0


def test_that_the_simulated_machine_can_be_planned_for_and_watched(
    capsys: pytest.CaptureFixture[str],
):
    from engine.cli.entry import main

    sampler = LiveSampler((SimulatedAdapter(),), 10, 10)
    machine = this_machine(sampler.sample())
    sampler.close()
    assert [slot.device.total_bytes for slot in machine.slots] == [TOTAL_BYTES] * 8
    assert main(["watch", "--simulate", "--jsonl", "--count", "1"]) == 0
    assert len(json.loads(capsys.readouterr().out)["devices"]) == 9


def check(snapshot: TelemetrySnapshot) -> None:
    """What holds of every snapshot, whatever a driver does: no figure that isn't one."""
    plain.to_dict(snapshot)
    for device in snapshot.devices:
        sizes = (device.total_bytes, device.used_bytes, device.free_bytes)
        for size in sizes:
            assert isinstance(size, Missing) or 0 <= size < 2**50
            assert not isinstance(size, Missing) or size.reason


def test_that_every_lane_recovers_from_every_fault_in_ten_thousand_steps():
    clock = Clock()
    sources = [Faulty(SimulatedAdapter(1, 1, clock), seed) for seed in range(3)]
    # A call that hangs is past its deadline at once, as the clock of the lanes is the test's.
    sampler = LiveSampler(sources, deadline_s=0.002, opening_s=10.0, clock=clock)
    healthy = SimulatedAdapter(1, 1, clock)
    recovered = 0
    for step in range(10_000):
        clock.now += 0.1
        with suppress(TelemetryError):  # before any of them has answered
            check(sampler.sample())
        for source in sources:
            source.release()
        if step % 500 == 499:
            recovered += recovers(sampler, sources, clock, healthy)
    sampler.close()
    assert recovered == 20
    # Every kind of fault was there, many times
    assert all(sum(source.seen[fault] for source in sources) > 50 for fault in FAULTS)


def recovers(
    sampler: LiveSampler, sources: list[Faulty], clock: Clock, healthy: SimulatedAdapter
) -> int:
    """Whether all lanes give a healthy source's figures once the faults are over."""
    for source in sources:
        source.is_calm = True
    for _ in range(2000):
        clock.now += 0.1
        for source in sources:
            source.release()
        snapshot = sampler.sample()
        expected = [d.used_bytes for d in healthy.sample()] * len(sources)
        if not snapshot.notes and [d.used_bytes for d in snapshot.devices] == expected:
            break
    else:
        return 0
    for source in sources:
        source.is_calm = False
        source.release()
    return 1


@pytest.mark.skipif(sys.implementation.name != "cpython", reason="counts CPython's blocks")
def test_that_sampling_on_and_on_keeps_nothing():
    """What doesn't grow with the time: samples, spills and an hour's outline.

    Eight devices with forty processes: what a day's 864,000 samples would leave, by a part.

    One object kept for each sample would be 1,500 blocks here; the limit lies at a tenth.
    """
    clock = Clock()
    sampler = LiveSampler((SimulatedAdapter(clock=clock),), 10, 10, clock)
    watch = SpillWatch()
    kept = Outlines(600)

    def run(samples: int) -> int:
        for _ in range(samples):
            clock.now += 0.1
            snapshot = sampler.sample()
            watch.take(snapshot)
            kept.append(snapshot)
        gc.collect()
        return sys.getallocatedblocks()

    run(700)  # a minute of it: all that is kept of a minute is there
    before = run(3000)  # a whole cycle of the simulated run
    after = run(3000)
    sampler.close()
    assert after - before < 300


def test_that_an_hour_of_samples_takes_few_megabytes():
    clock = Clock()
    sampler = LiveSampler((SimulatedAdapter(clock=clock),), 10, 10, clock)
    snapshots = []
    for _ in range(200):
        clock.now += 1.0
        snapshots.append(sampler.sample())
    sampler.close()
    kept = Outlines()
    tracemalloc.start()
    try:
        for snapshot in snapshots[:120]:
            kept.append(snapshot)
        before = tracemalloc.get_traced_memory()[0]  # Python's own stores are full by now
        for snapshot in snapshots[120:]:
            kept.append(snapshot)
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert grown / 80 * 3600 < 5e6
    first, *_, last = kept
    assert first.devices[0].used_bytes != last.devices[0].used_bytes
    assert (last.monotonic_s, len(last.devices)) == (200.0, 9)
    assert {d.total_bytes for d in last.devices[:8]} == {TOTAL_BYTES}
