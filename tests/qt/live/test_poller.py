"""Sampling off the GUI thread: what arrives, where, and how it ends."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from PySide6.QtCore import QCoreApplication, QObject, Slot

from engine.errors import TelemetryError
from engine.telemetry.probe import LiveSampler
from engine.telemetry.record import RecordingEndedError
from engine.telemetry.snapshot import DeviceReading, PoolKind, TelemetrySnapshot
from gui.kit.poller import TelemetryPoller

if TYPE_CHECKING:
    import pytest

GIB = 2**30


def snapshot(second: int) -> TelemetrySnapshot:
    total = 80 * GIB  # beyond 32 bits, where a plain integer signal would lose it
    reading = DeviceReading("GPU-0", "x", PoolKind.VRAM, total, 0, total, 0, (), "test")
    return TelemetrySnapshot(float(second), float(second), (reading,))


class Counting:
    """A sampler that says on which thread it was used."""

    def __init__(self) -> None:
        self.threads: set[int] = {threading.get_ident()}
        self.count = 0
        self.closed = threading.Event()

    def sample(self) -> TelemetrySnapshot:
        self.threads.add(threading.get_ident())
        self.count += 1
        return snapshot(self.count)

    def close(self) -> None:
        self.threads.add(threading.get_ident())
        self.closed.set()


class Sink(QObject):
    def __init__(self) -> None:
        super().__init__()
        self.snapshots: list[TelemetrySnapshot] = []
        self.errors: list[TelemetryError] = []
        self.threads: set[int] = set()

    @Slot(object)
    def take(self, snapshot: TelemetrySnapshot) -> None:
        self.snapshots.append(snapshot)
        self.threads.add(threading.get_ident())

    @Slot(object)
    def fail(self, error: TelemetryError) -> None:
        self.errors.append(error)


def test_that_samples_arrive_whole_and_in_order_on_the_gui_thread(qtbot):
    samplers: list[Counting] = []

    def opened() -> Counting:
        samplers.append(Counting())
        return samplers[-1]

    poller, sink = TelemetryPoller(opened, interval_ms=1), Sink()
    poller.sampled.connect(sink.take)
    poller.start()
    qtbot.waitUntil(lambda: len(sink.snapshots) >= 20)
    assert poller.stop()
    times = [s.monotonic_s for s in sink.snapshots]
    assert times == sorted(times)
    assert sink.snapshots[0].devices[0].total_bytes == 80 * GIB
    assert sink.threads == {threading.get_ident()}
    assert threading.get_ident() not in samplers[0].threads
    assert samplers[0].closed.is_set()


def test_that_the_first_sample_does_not_wait_for_the_interval(qtbot):
    poller = TelemetryPoller(Counting, interval_ms=3_600_000)
    with qtbot.waitSignal(poller.sampled, timeout=5000):
        poller.start()
    assert poller.stop()


def test_that_a_late_tick_is_skipped_and_not_made_up_for(qtbot):
    gate = threading.Event()

    class Slow(Counting):
        def sample(self) -> TelemetrySnapshot:
            gate.wait()
            return super().sample()

    sampler = Slow()
    quick = TelemetryPoller(Counting, interval_ms=1)
    slow = TelemetryPoller(lambda: sampler, interval_ms=1)
    ticks = Sink()
    quick.sampled.connect(ticks.take)
    slow.start()
    quick.start()
    qtbot.waitUntil(
        lambda: len(ticks.snapshots) >= 50
    )  # as many ticks have passed for the slow one
    assert quick.stop()
    with qtbot.waitSignal(slow.sampled, timeout=5000):
        gate.set()
    assert sampler.count < 50
    assert slow.stop()


def test_that_a_failure_is_told_once_while_it_lasts_and_the_sampler_asked_again(qtbot):
    class Flaky(Counting):
        def sample(self) -> TelemetrySnapshot:
            found = super().sample()
            if self.count <= 5:
                raise TelemetryError("not yet")
            return found

    poller, sink = TelemetryPoller(Flaky, interval_ms=1), Sink()
    poller.sampled.connect(sink.take)
    poller.failed.connect(sink.fail)
    poller.start()
    qtbot.waitUntil(lambda: len(sink.snapshots) >= 2)
    assert [e.message for e in sink.errors] == ["not yet"]
    assert poller.stop()


def test_that_a_sampler_that_cannot_be_opened_is_told(qtbot):
    def refuse() -> Counting:
        raise TelemetryError("no driver")

    poller = TelemetryPoller(refuse)
    with qtbot.waitSignal(poller.failed, timeout=5000) as told:
        poller.start()
    assert told.args[0].message == "no driver"
    assert poller.stop()


def test_that_a_source_without_news_tells_nothing_and_one_that_ended_can_go_on(qtbot):
    class Tape(Counting):
        def sample(self) -> TelemetrySnapshot | None:
            self.count += 1
            if self.count in {3, 4}:
                raise RecordingEndedError("ended")
            return snapshot(self.count) if self.count % 2 else None

    poller, sink = TelemetryPoller(Tape, interval_ms=1), Sink()
    poller.sampled.connect(sink.take)
    poller.failed.connect(sink.fail)
    poller.start()
    qtbot.waitUntil(lambda: len(sink.snapshots) >= 3)
    assert poller.stop()
    assert [s.monotonic_s for s in sink.snapshots[:3]] == [1.0, 5.0, 7.0]
    assert len(sink.errors) == 1


def test_that_stopping_twice_or_before_the_start_is_harmless(qtbot):
    poller = TelemetryPoller(Counting)
    assert poller.stop()
    poller.start()
    poller.start()
    assert poller.stop()
    assert poller.stop()
    assert not poller.is_running


def test_that_it_starts_again_after_a_stop(qtbot):
    poller = TelemetryPoller(Counting, interval_ms=1)
    for _ in range(3):
        with qtbot.waitSignal(poller.sampled, timeout=5000):
            poller.start()
        assert poller.stop()


def test_that_a_driver_that_never_answers_does_not_hold_up_the_end(
    qtbot, caplog: pytest.LogCaptureFixture
):
    gate = threading.Event()
    asked = threading.Event()

    class Hung(Counting):
        def sample(self) -> TelemetrySnapshot:
            asked.set()
            gate.wait()
            return super().sample()

    sampler = Hung()
    poller = TelemetryPoller(lambda: sampler)
    poller.start()
    assert asked.wait(10)
    assert not poller.stop(timeout_ms=10)
    assert "its thread is left" in caplog.text
    gate.set()
    assert sampler.closed.wait(10)


class Loading:
    """An adapter whose device gains a GiB with every sample while a test says so."""

    name = "loading"

    def __init__(self) -> None:
        self.used = GIB
        self.grows = True

    def sample(self) -> tuple[DeviceReading, ...]:
        self.used += GIB if self.grows else 0
        return (DeviceReading("GPU-0", "x", PoolKind.VRAM, 80 * GIB, self.used, 0, 0, (), "test"),)

    def close(self) -> None:
        pass


def test_that_the_timer_follows_the_pace_of_what_happens(qtbot):
    adapter, clock = Loading(), [0.0]
    sampler = LiveSampler((adapter,), 10, 10, lambda: clock[0])
    poller, sink = TelemetryPoller(lambda: sampler, 50), Sink()
    poller.sampled.connect(sink.take)
    poller.start()
    qtbot.waitUntil(lambda: poller.interval_s == 0.01, timeout=10_000)  # a fifth: it is loaded
    adapter.grows = False
    clock[0] = 60.0
    qtbot.waitUntil(lambda: poller.interval_s == 0.05, timeout=10_000)
    poller.see(is_seen=False)
    qtbot.waitUntil(lambda: poller.interval_s == 0.3, timeout=10_000)
    poller.see(is_seen=True)
    qtbot.waitUntil(lambda: poller.interval_s == 0.05, timeout=10_000)
    assert poller.stop(10_000)


def test_that_what_was_on_its_way_when_it_was_stopped_is_told_no_more(qtbot):
    asked_again = threading.Event()

    class Pair(Counting):
        def sample(self) -> TelemetrySnapshot:
            if self.count:
                asked_again.set()
            return super().sample()

    sink = Sink()
    poller = TelemetryPoller(Pair, interval_ms=1)
    poller.sampled.connect(sink.take)
    poller.start()
    # The first sample waits in the queue of this thread by now.
    assert asked_again.wait(10)
    assert poller.stop()
    QCoreApplication.processEvents()
    assert sink.snapshots == []
