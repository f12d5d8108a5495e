"""A recording in the window: read whole beside its playing, scrubbed, stepped, and left again."""

from __future__ import annotations

import json
import threading
from dataclasses import replace

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from engine.cancel import CancelToken
from engine.telemetry.markers import Marker, MarkerKind
from engine.telemetry.record import Recorder
from engine.telemetry.snapshot import Pressure
from gui.kit.charts.kept import Kept
from gui.kit.replay_bar import clock
from gui.recorded import read
from tests.helpers.readings import ENGINE, GIB, card, host, moment

SAMPLES = 900


@pytest.fixture
def path(tmp_path):
    """A quarter of an hour of a card that this computer has not, with a load in it."""
    made = tmp_path / "session.jsonl"
    recorder = Recorder(made, {})
    for second in range(SAMPLES):
        used = (1 if second < 300 else 15) * GIB + second
        recorder.write(moment(card(used_bytes=used), host(), second=second))
        if second == 300:
            load = Marker(MarkerKind.LOAD, 400.0, 1.75e9 + 300, "", "GPU-0", 14 * GIB)
            recorder.mark(load)
        while recorder._waiting.full():
            pass
    recorder.close()
    return made


@pytest.fixture
def playing(start, qtbot, path):
    app = start(replay=path)
    app.window.resize(1440, 900)
    qtbot.waitUntil(lambda: app.playing.is_read, timeout=20_000)
    qtbot.waitUntil(lambda: app.model.state.fit is not None, timeout=20_000)
    app.playing.bar.play_wanted.emit(False)
    return app


def shown(app) -> int:
    """Which sample the window shows."""
    (device, *_) = app.watch.last.devices
    return device.used_bytes % GIB


def test_that_it_opens_on_the_recorded_machine_and_is_marked_as_recorded(playing):
    device = playing.model.state.here.slots[0].device
    assert device.name == "RTX 4090"
    assert "recorded" in playing.window.windowTitle()
    assert playing.view.strip.device.itemText(0) == "RTX 4090, recorded"
    assert playing.playing.bar.isVisible()
    assert playing.playing.bar.place.full_text.endswith(f"of {clock(SAMPLES - 1)}")


def test_that_the_whole_recording_is_in_the_picture_once_it_was_read(playing):
    values = playing.view.picture.series["GPU-0"].window(0, 1e9)
    assert values.shape[1] == SAMPLES
    ((place, marker),) = playing.view.picture.kept.markers
    assert (place, marker.kind) == (400.0, MarkerKind.LOAD)


def test_that_scrubbing_shows_that_moment_in_tables_and_picture(playing, qtbot):
    scrub = playing.playing.bar.scrub
    scrub.setFocus()
    QTest.keyClick(scrub, Qt.Key.Key_End)
    qtbot.waitUntil(lambda: shown(playing) == SAMPLES - 1)
    assert playing.view.picture.window_now().end_s == 100 + SAMPLES - 1
    QTest.keyClick(scrub, Qt.Key.Key_Left)
    qtbot.waitUntil(lambda: shown(playing) == SAMPLES - 2)
    QTest.keyClick(scrub, Qt.Key.Key_Home)
    qtbot.waitUntil(lambda: shown(playing) == 0)
    playing.playing.bar.on.click()
    qtbot.waitUntil(lambda: shown(playing) == 1)
    QTest.keyClick(scrub, Qt.Key.Key_PageDown)
    qtbot.waitUntil(lambda: 55 < shown(playing) < 65)


def test_that_a_recording_that_plays_says_that_it_takes_no_marker(playing, path):
    before = path.read_bytes()
    playing.window.commands["mark"].trigger()
    assert playing.note.isVisible()
    assert "takes no further markers" in playing.note.line.text()
    assert path.read_bytes() == before


def test_that_a_marker_of_the_list_is_gone_to(playing, qtbot):
    (action,) = playing.playing.bar.markers.menu().actions()
    assert action.text() == "0:05:00  Load, +14.0 GiB"
    action.trigger()
    qtbot.waitUntil(lambda: shown(playing) == 300)


def test_that_it_plays_on_sixty_times_as_fast_and_holds(playing, qtbot):
    bar = playing.playing.bar
    bar.seek_wanted.emit(10.0)
    qtbot.waitUntil(lambda: shown(playing) == 10)
    bar.speed.setCurrentText("60\u00d7")
    bar.speed.activated.emit(bar.speed.currentIndex())
    assert bar.play.accessibleName() == "Let the recording go on"
    bar.play.click()
    qtbot.waitUntil(lambda: shown(playing) > 60, timeout=10_000)
    assert bar.play.accessibleName() == "Hold the recording"
    bar.play.click()
    at = shown(playing)
    assert at < 300


def test_that_it_stands_at_its_end_and_begins_anew(playing, qtbot):
    bar = playing.playing.bar
    bar.seek_wanted.emit(SAMPLES - 1.5)
    qtbot.waitUntil(lambda: shown(playing) == SAMPLES - 2)
    with qtbot.waitSignal(playing.watch.ended, timeout=10_000):
        bar.play.click()
    assert shown(playing) == SAMPLES - 1
    assert bar.play.accessibleName() == "Let the recording go on"
    bar.play.click()
    qtbot.waitUntil(lambda: shown(playing) < 5, timeout=10_000)


def test_that_leaving_it_returns_to_this_computer_with_nothing_of_it_left(playing, qtbot):
    playing.playing.bar.leave.click()
    assert playing.watch.replay is None
    assert not playing.playing.bar.isVisible()
    qtbot.waitUntil(lambda: "host" in playing.view.picture.series, timeout=10_000)
    assert "GPU-0" not in playing.view.picture.series
    assert playing.view.picture.kept.markers == []


def test_that_reading_can_be_given_up_and_taken_up(playing, qtbot, path):
    playing.filing.play(path)
    bar = playing.playing.bar
    assert not playing.playing.is_read
    assert bar.read.text() == "Cancel"
    bar.read.click()
    assert bar.reading.full_text.startswith("Plays forwards only")
    assert not bar.back.isEnabled()
    bar.read.click()
    qtbot.waitUntil(lambda: playing.playing.is_read, timeout=20_000)
    assert bar.scrub.isVisible()


def test_that_damage_is_said_and_what_comes_before_it_plays(playing, qtbot, path):
    broken = path.with_name("broken.jsonl")
    lines = path.read_text().splitlines(keepends=True)
    broken.write_text("".join([*lines[:50], "garbage\n", *lines[50:]]))
    playing.filing.play(broken)
    qtbot.waitUntil(lambda: playing.playing.is_read, timeout=20_000)
    said = "The recording 'broken.jsonl' is damaged in line 51: it is not JSON."
    assert playing.trouble.line.text() == said
    playing.playing.bar.play_wanted.emit(False)
    playing.playing.bar.seek_wanted.emit(30.0)
    qtbot.waitUntil(lambda: shown(playing) == 30)


def test_that_a_hostile_device_list_fills_no_memory(playing, qtbot, path):
    hostile = path.with_name("hostile.jsonl")
    header, sample, *_ = path.read_text().splitlines()
    moment_ = json.loads(sample)
    first = moment_["devices"][0]
    moment_["devices"] += [{**first, "uuid": f"GPU-{n}"} for n in range(1, 100)] + [{**first}]
    hostile.write_text("\n".join([header, json.dumps(moment_), json.dumps(moment_), ""]))
    playing.filing.play(hostile)
    qtbot.waitUntil(lambda: playing.playing.is_read, timeout=20_000)
    assert len(playing.view.picture.series) == 64


@pytest.mark.parametrize("samples", [0, 1, 2])
def test_that_a_recording_that_was_stopped_at_once_is_shown_or_refused(
    playing, qtbot, path, samples
):
    short = path.with_name("short.jsonl")
    lines = path.read_text().splitlines(keepends=True)
    short.write_text("".join(lines[: 1 + samples]))
    playing.trouble.dismiss()
    playing.filing.play(short)
    if not samples:
        qtbot.waitUntil(playing.trouble.isVisible)
        assert playing.trouble.line.text().startswith("The recording 'short.jsonl' ")
        assert playing.playing.bar.place.full_text.endswith(f"of {clock(SAMPLES - 1)}")
        return
    qtbot.waitUntil(lambda: playing.playing.is_read, timeout=20_000)
    length = "0:00:00 of 0:00:01" if samples == 2 else "0:00:00"
    playing.playing.bar.play_wanted.emit(False)
    playing.playing.bar.seek_wanted.emit(0.0)
    qtbot.waitUntil(lambda: playing.playing.bar.place.full_text == length)
    playing.playing.bar.scrub.show_place(1e6)
    assert playing.playing.bar.scrub.value() == playing.playing.bar.scrub.maximum()
    for button in (playing.playing.bar.back, playing.playing.bar.on):
        button.click()
    playing.playing.bar.seek_wanted.emit(0.0)
    playing.playing.bar.play_wanted.emit(True)
    qtbot.waitUntil(lambda: shown(playing) == samples - 1, timeout=10_000)
    assert not playing.trouble.isVisible()


def test_that_the_plans_share_is_that_of_the_whole_recording(playing, qtbot):
    def share():
        return set(playing.view.picture.series["GPU-0"].window(0, 1e9)[2])

    # The engine of the recording is vLLM's, like the plan's; it holds 22.83 GiB throughout.
    expected = {round(22.83 * GIB)}
    qtbot.waitUntil(lambda: share() == expected, timeout=10_000)


def test_that_it_can_be_sent_anywhere_before_all_of_it_is_in_the_picture(
    start, qtbot, path, monkeypatch
):
    gate = threading.Event()

    def late(*given):
        gate.wait(30)
        return read(*given)

    monkeypatch.setattr("gui.playing.read", late)
    app = start(replay=path)
    qtbot.waitUntil(app.playing.bar.scrub.isVisible, timeout=20_000)
    app.playing.bar.play_wanted.emit(False)
    for second in (700, 200):
        app.playing.bar.seek_wanted.emit(float(second))
        qtbot.waitUntil(lambda at=second: shown(app) == at)
        assert app.view.picture.series["GPU-0"].values[0].tolist() == [100 + second]
    gate.set()
    qtbot.waitUntil(lambda: app.playing.is_read, timeout=20_000)
    assert app.view.picture.series["GPU-0"].window(0, 1e9).shape[1] == SAMPLES
    assert app.view.picture.window_now().end_s == 300


def test_that_a_recording_keeps_when_memory_ran_short_as_sampling_does(tmp_path):
    held = (replace(ENGINE, name="llama-server", spill_bytes=GIB),)
    spilled = card(spill_bytes=2 * GIB, processes=held)
    short = host(available_bytes=GIB, pressure=Pressure.SOME)
    seen = [moment(card(), host()), moment(spilled, host(), second=1)]
    seen += [moment(spilled, short, second=2), moment(card(), short, second=3)]
    live, made = Kept(), tmp_path / "spill.jsonl"
    recorder = Recorder(made, {})
    for snapshot in seen:
        live.append(snapshot, None)
        recorder.write(snapshot)
    recorder.close()
    _, kept = read(made, None, CancelToken())
    assert len(kept.strains.all) == 2
    assert kept.strains.all == live.strains.all
