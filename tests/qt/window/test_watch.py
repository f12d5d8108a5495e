"""Watching: trouble is said once, and what is old is called old."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from PySide6.QtCore import QObject
from PySide6.QtWidgets import QWidget

from engine.errors import TelemetryError
from engine.telemetry import plain
from engine.telemetry.record import SCHEMA, RecordingEndedError
from engine.telemetry.snapshot import Missing, ProcessReading
from gui.watch import Watch, is_out_of_sight, lost, sampling_words
from tests.helpers.readings import GIB, card, moment


@pytest.fixture
def parent(qapp):
    return QObject()


@pytest.fixture
def watch(parent):
    made = Watch(None, parent)
    yield made
    made.stop()


def test_that_one_sample_is_there_before_anything_starts(watch):
    assert watch.last.devices
    assert watch.machine().is_here
    assert sampling_words(watch.last, watch.interval_s) == "Sampling every 1 s, psutil"
    assert sampling_words(watch.last, 0.2) == "Sampling every 0.2 s, psutil"


def test_that_the_same_trouble_is_told_once_until_a_sample_comes(watch):
    told, again = [], []
    watch.failed.connect(told.append)
    watch.regained.connect(again.append)
    for _ in range(3):
        watch._on_failed(TelemetryError("GPU 0 is lost."))
    watch._on_sampled(watch.last)
    watch._on_failed(TelemetryError("GPU 0 is lost."))
    assert len(told) == 2
    assert again == told[:1]


def test_that_the_end_of_a_recording_is_no_trouble(watch):
    told, ended = [], []
    watch.failed.connect(told.append)
    watch.ended.connect(lambda: ended.append(1))
    watch._on_failed(RecordingEndedError("over"))
    assert (told, ended) == ([], [1])


def test_that_a_recording_plays_to_its_end_and_a_wrong_one_changes_nothing(watch, qtbot, tmp_path):
    path = tmp_path / "two.jsonl"
    lines = [
        {"schema": SCHEMA, "machine": {}},
        plain.to_dict(watch.last),
        plain.to_dict(watch.last),
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    (tmp_path / "wrong.jsonl").write_text("[]\n")
    with pytest.raises(TelemetryError):
        watch.watch(tmp_path / "wrong.jsonl")
    assert watch.replay is None
    with qtbot.waitSignal(watch.ended, timeout=10_000):
        watch.watch(path)
    assert len(watch.recorded) == 2
    assert sampling_words(watch.recorded[-1]).startswith("Playing recording two.jsonl")


def test_that_a_recording_that_cannot_be_written_is_a_sentence(watch, tmp_path):
    with pytest.raises(TelemetryError, match="cannot be written"):
        watch.record(tmp_path / "no" / "such" / "folder.jsonl")
    assert not watch.is_recording


def test_that_a_device_that_is_lost_is_said_once(watch):
    told = []
    watch.failed.connect(told.append)
    there = moment(card())
    gone = moment(card(used_bytes=Missing("the GPU fell off the bus")))
    again = []
    watch.regained.connect(again.append)
    watch.last = there
    for seen in (there, gone, gone, there):
        watch._on_sampled(seen)
    (error,) = told
    words = "NVIDIA GeForce RTX 4090 can\u2019t be read: the GPU fell off the bus. The plan stays."
    assert str(error) == words
    assert again == told


def test_that_one_answer_that_comes_too_late_is_no_loss(watch):
    told = []
    watch.failed.connect(told.append)
    there = moment(card())
    late = moment(card(used_bytes=Missing("the driver has not answered for 1 s")))
    watch.last = there
    for seen in (late, there, late, there):
        watch._on_sampled(seen)
    assert told == []


def test_that_a_device_that_the_driver_no_longer_names_is_said(watch):
    there = moment(card())
    ((_uuid, words),) = lost(there, replace(there, devices=()))
    assert words.startswith("NVIDIA GeForce RTX 4090 is gone")


def test_that_what_only_its_user_can_mend_is_said_once_and_taken_back(watch):
    told, again = [], []
    watch.failed.connect(told.append)
    watch.regained.connect(again.append)
    words = "NVIDIA devices cannot be read: the driver was updated; restart the computer."
    watch.last = moment(card())
    updated = replace(moment(card()), notes=(words, "another"), urgent=(words,))
    for seen in (updated, updated, moment(card()), updated):
        watch._on_sampled(seen)
    assert [str(error) for error in told] == [words, words]
    assert again == told[:1]


def test_that_only_windows_that_were_all_put_away_are_out_of_sight(qtbot):
    assert not is_out_of_sight()  # none is shown yet, as at the start
    one, two = QWidget(), QWidget()
    for widget in (one, two):
        qtbot.addWidget(widget)
        widget.show()
    one.showMinimized()
    assert not is_out_of_sight()
    two.showMinimized()
    assert is_out_of_sight()
    two.showNormal()
    assert not is_out_of_sight()


def test_that_work_that_moved_to_system_memory_is_said_once(watch):
    told = []
    watch.failed.connect(told.append)
    sizes = (GIB // 10, 2 * GIB, 2 * GIB)
    rows = [
        ProcessReading(7, "llama-server", 15 * GIB, "llama-server", spill_bytes=size)
        for size in sizes
    ]
    watch.last = moment(card(processes=(rows[0],)))
    for second, row in enumerate(rows):
        watch._on_sampled(moment(card(processes=(row,)), second=second))
    (error,) = told
    assert str(error).startswith("1.9 GiB of llama-server on NVIDIA GeForce RTX 4090 run from")


def test_that_trouble_with_a_machine_is_taken_back_once_another_is_watched(watch):
    told, again = [], []
    watch.failed.connect(told.append)
    watch.regained.connect(again.append)
    watch._on_failed(TelemetryError("Nothing answers at gpu-box:9400."))
    server = ProcessReading(4711, "llama-server", 20 * GIB, "llama-server -m ~/m.gguf")
    watch.last = moment(card(processes=(server,)))
    for second, spilled in enumerate((0, 2 * GIB)):
        row = replace(server, spill_bytes=spilled)
        watch._on_sampled(moment(card(processes=(row,)), second=second))
    assert len(told) == 2
    watch.watch(None)
    assert again == told
