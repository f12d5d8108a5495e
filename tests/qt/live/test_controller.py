"""Live readings, recording them, and playing a recording in their place."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from PySide6.QtCore import QObject, Slot

from engine.errors import TelemetryError
from engine.telemetry.record import Replay
from gui.live.controller import LiveController, Source
from tests.helpers.readings import GIB, card, host, moment

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from engine.telemetry.snapshot import TelemetrySnapshot


class Steady:
    """One more GiB used with every sample."""

    def __init__(self) -> None:
        self.count = 0

    def sample(self) -> TelemetrySnapshot:
        self.count += 1
        used = self.count % 20 * GIB
        return moment(card(used_bytes=used), host(), second=self.count)

    def close(self) -> None:
        pass


class Sink(QObject):
    def __init__(self) -> None:
        super().__init__()
        self.snapshots: list[TelemetrySnapshot] = []
        self.sources: list[Source] = []
        self.recording: list[bool] = []
        self.errors: list[TelemetryError] = []

    @Slot(object)
    def sample(self, snapshot: TelemetrySnapshot) -> None:
        self.snapshots.append(snapshot)

    @Slot(object)
    def source(self, source: Source) -> None:
        self.sources.append(source)

    @Slot(bool)
    def record(self, recording: bool) -> None:
        self.recording.append(recording)

    @Slot(object)
    def fail(self, error: TelemetryError) -> None:
        self.errors.append(error)


@pytest.fixture
def sink() -> Sink:
    return Sink()


@pytest.fixture
def live(qtbot, sink: Sink) -> Iterator[LiveController]:
    made = LiveController(Steady, interval_ms=1)
    made.sampled.connect(sink.sample)
    made.source_changed.connect(sink.source)
    made.recording_changed.connect(sink.record)
    made.failed.connect(sink.fail)
    yield made
    assert made.stop()


def recorded(qtbot, live: LiveController, sink: Sink, path: Path, count: int = 5) -> Path:
    live.start()
    live.record_to(path)
    already = len(sink.snapshots)
    qtbot.waitUntil(lambda: len(sink.snapshots) >= already + count)
    live.stop()
    return path


def test_that_samples_come_and_the_last_one_is_at_hand(qtbot, live: LiveController, sink: Sink):
    live.start()
    qtbot.waitUntil(lambda: len(sink.snapshots) >= 3)
    assert sink.sources == [Source("this computer", is_replay=False)]
    assert live.latest is sink.snapshots[-1]


def test_that_what_is_recorded_plays_back_the_same(
    qtbot, live: LiveController, sink: Sink, tmp_path: Path
):
    live.set_machine({"name": "this computer"})
    path = recorded(qtbot, live, sink, tmp_path / "run.jsonl")
    assert sink.recording == [True, False]
    replay = Replay(path)
    played = list(replay.snapshots())
    replay.close()
    assert replay.machine == {"name": "this computer"}
    measured = {s.monotonic_s: s.devices[0].used_bytes for s in sink.snapshots}
    assert len(played) >= 5
    assert {s.monotonic_s: s.devices[0].used_bytes for s in played}.items() <= measured.items()


def test_that_a_recording_begun_late_starts_with_the_sample_on_screen(
    qtbot, live: LiveController, sink: Sink, tmp_path: Path
):
    live.start()
    qtbot.waitUntil(lambda: len(sink.snapshots) >= 3)
    live.stop()
    last = live.latest
    live.record_to(tmp_path / "late.jsonl")
    live.stop_recording()
    replay = Replay(tmp_path / "late.jsonl")
    (first,) = replay.snapshots()
    replay.close()
    assert last is not None
    assert first.monotonic_s == last.monotonic_s


def test_that_a_recording_takes_the_place_of_live_readings_and_says_when_it_ends(
    qtbot, live: LiveController, sink: Sink, tmp_path: Path
):
    path = recorded(qtbot, live, sink, tmp_path / "run.jsonl")
    sink.snapshots.clear()
    live.open_recording(path, speed=50)
    qtbot.waitUntil(lambda: sink.sources[-1].has_ended)
    assert sink.sources[-1].is_replay
    assert sink.sources[-1].name == "run.jsonl"
    assert all("recording run.jsonl" in s.devices[0].source for s in sink.snapshots)
    assert not sink.errors
    live.start()
    qtbot.waitUntil(lambda: sink.snapshots[-1].devices[0].source == "NVML 580.126.09")
    assert not live.source.is_replay


def test_that_a_file_that_is_no_recording_changes_nothing(
    qtbot, live: LiveController, sink: Sink, tmp_path: Path
):
    live.start()
    qtbot.waitUntil(lambda: bool(sink.snapshots))
    other = tmp_path / "config.json"
    other.write_text("{}")
    with pytest.raises(TelemetryError, match="is not a recording"):
        live.open_recording(other)
    already = len(sink.snapshots)
    qtbot.waitUntil(lambda: len(sink.snapshots) > already)
    assert len(sink.sources) == 1


def test_that_a_place_that_cannot_be_written_is_told_and_sampling_goes_on(
    qtbot, live: LiveController, sink: Sink, tmp_path: Path
):
    live.start()
    with pytest.raises(TelemetryError, match="cannot be written"):
        live.record_to(tmp_path / "nowhere" / "x.jsonl")
    assert not live.is_recording
    qtbot.waitUntil(lambda: bool(sink.snapshots))


def test_that_a_failure_is_told_once_and_not_every_second(qtbot, sink: Sink):
    class Broken(Steady):
        def sample(self) -> TelemetrySnapshot:
            super().sample()
            if self.count <= 5:
                raise TelemetryError("no device could be read")
            return moment(host(), second=self.count)

    live = LiveController(Broken, interval_ms=1)
    live.failed.connect(sink.fail)
    live.sampled.connect(sink.sample)
    live.start()
    qtbot.waitUntil(lambda: bool(sink.snapshots))
    assert [e.message for e in sink.errors] == ["no device could be read"]
    assert live.stop()
