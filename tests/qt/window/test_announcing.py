"""A screen reader hears what changes in the picture: a sentence, at most every 10 seconds."""

from __future__ import annotations

from dataclasses import replace

import pytest
from PySide6.QtWidgets import QApplication

from gui import announcing


class Clock:
    """Stands until it is told otherwise."""

    def __init__(self):
        self.now = None

    def isValid(self):  # noqa: N802 - Qt's name
        return self.now is not None

    def start(self):
        self.now = 0

    def elapsed(self):
        return self.now


@pytest.fixture
def heard(monkeypatch):
    """What is announced, and by whom; from before the window is made."""
    found = []
    monkeypatch.setattr(announcing, "announce", lambda who, words: found.append((who, words)))
    return found


@pytest.fixture
def clock(heard, app, monkeypatch):
    app.watch.stop()
    # What was sampled before that is heard now, and not later.
    QApplication.processEvents()
    made = Clock()
    monkeypatch.setattr(app.announcing, "_since", made)
    monkeypatch.setattr(app.announcing, "_held_bytes", None)
    return made


def sample(app, share):
    """A sample in which ``share`` of the plan's device is held."""
    slot = app.model.state.machine.slots[0]
    line = slot.device.allocatable.likely_bytes
    last = app.watch.last
    devices = tuple(
        replace(one, used_bytes=round(share * line)) if one.uuid == slot.uuid else one
        for one in last.devices
    )
    app.watch.sampled.emit(replace(last, devices=devices))
    return line


def test_that_what_is_measured_is_heard_no_more_often_than_every_ten_seconds(app, heard, clock):
    heard.clear()
    sample(app, 0.25)
    clock.now = 9_999
    line = sample(app, 0.5)
    assert len(heard) == 1
    clock.now = 10_000
    sample(app, 0.5)
    assert len(heard) == 2
    who, words = heard[-1]
    assert who is app.view.picture
    half = f"{line / 2 / 2**30:.1f} GiB"
    assert words == f"Measured: {half}, {half} below the load line"


def test_that_what_hardly_changes_is_not_said_again(app, heard, clock):
    sample(app, 0.500)
    heard.clear()
    clock.now = 60_000
    sample(app, 0.509)
    assert not heard
    sample(app, 0.511)
    assert len(heard) == 1


def test_that_above_the_line_is_said_so(app, heard, clock):
    heard.clear()
    line = sample(app, 1.5)
    assert heard[0][1].endswith(f"{line / 2 / 2**30:.1f} GiB above the load line")


def test_that_another_machine_hears_nothing_of_this_ones_memory(app, heard, clock, qtbot):
    app.model.choose_device("RTX 4090")
    qtbot.waitUntil(lambda: any(w == app.view.verdict.headline.full_text for _, w in heard))
    heard.clear()
    app.watch.sampled.emit(app.watch.last)
    assert not heard


def test_that_a_new_verdict_is_heard_once_and_the_same_is_not(app, heard, clock, qtbot):
    qtbot.waitUntil(lambda: bool(heard))
    heard.clear()
    app.model.edit("concurrency", concurrency=2)
    app.model.edit("concurrency", concurrency=3)
    qtbot.waitUntil(lambda: bool(heard))
    assert heard == [(app.view.picture, app.view.verdict.headline.full_text)]
    assert "GiB" in heard[0][1]
    heard.clear()
    app.model.set_emptied(emptied=app.model.state.plan.emptied)
    app.announcing._say_plan()
    assert not heard
