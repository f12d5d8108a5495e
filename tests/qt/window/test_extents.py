"""Least, average and most below the picture: counted, begun anew, folded away for want of room."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from engine.telemetry.snapshot import TelemetrySnapshot
from engine.units import UnitSystem
from gui.kit.charts.extents import ExtentStrip, lines, wordings
from gui.kit.charts.picture import MemoryPicture
from gui.kit.charts.scene import scene_for
from gui.kit.theme import load_theme
from tests.helpers import sizings
from tests.helpers.readings import GIB, card, moment

BINARY = UnitSystem.BINARY


@pytest.fixture
def picture(qtbot):
    made = MemoryPicture(load_theme("light"))
    qtbot.addWidget(made)
    made.set_scene(scene_for(sizings.sizing()))
    return made


@pytest.fixture
def measured(app, qtbot):
    qtbot.waitUntil(app.charting.extents.isVisible, timeout=10_000)
    return app


def sample(picture, *used_gib, uuid="GPU-0") -> None:
    """One sample a second of a card."""
    for second, used in enumerate(used_gib):
        reading = card(uuid=uuid, used_bytes=round(used * GIB))
        picture.append(TelemetrySnapshot(1000 + second, 1.75e9 + second, (reading,)))


def test_that_one_device_is_told_whole_then_more_shortly(picture):
    sample(picture, 2, 23, 5)
    began = picture.clock_words(1000)
    assert wordings(picture, BINARY, 1.0) == (
        f"Least 2.00, average 10.00, most 23.00 GiB since {began}, sampled every 1 s",
        f"Least 2.00, average 10.00, most 23.00 GiB since {began}",
        "Least 2.00, average 10.00, most 23.00 GiB",
        "Most 23.00 GiB",
    )
    assert wordings(picture, BINARY, None)[0] == wordings(picture, BINARY, 0.2)[1]
    assert "sampled every 0.2 s" in wordings(picture, BINARY, 0.2)[0]


def test_that_several_devices_are_told_by_rank(picture):
    picture.set_scene(scene_for(sizings.many_ranks(4)))
    cards = [card(uuid=f"GPU-{n}", used_bytes=(20 + n) * GIB) for n in range(4)]
    picture.append(moment(*cards))
    said = wordings(picture, BINARY, None)
    assert said[-2:] == (
        "Most: Rank 0 20.00, Rank 1 21.00, Rank 2 22.00, Rank 3 23.00 GiB",
        "Most 23.00 GiB, Rank 3",
    )
    assert said[-3].startswith("Rank 0: Least 20.00, average 20.00, most 20.00 GiB; Rank 1: ")
    assert [line.split(":")[0] for line in lines(picture, BINARY)] == [
        f"Rank {n}" for n in range(4)
    ]


def test_that_the_wording_follows_the_width_and_goes_before_it_is_cut(picture, qtbot):
    action = picture.addAction("&Reset least and most")
    strip = ExtentStrip(picture, action)
    qtbot.addWidget(strip)
    strip.set_theme(load_theme("light"))
    picture.resize(900, 300)
    picture.show()
    sample(picture, 2, 23, 5)
    said = wordings(picture, BINARY, 1.0)
    shown = []
    for width in (900, 480, 380, 200):
        picture.setMinimumSize(1, 1)
        picture.resize(width, 300)
        strip.tell(said, "", can_reset=True)
        assert strip.words.fontMetrics().horizontalAdvance(strip.words.text()) < width
        shown.append(strip.words.text())
    assert shown == [said[0], said[1], said[2], said[3]]
    picture.resize(90, 300)
    assert strip.isHidden()
    picture.resize(900, 300)
    assert strip.words.text() == said[0]
    assert not strip.isHidden()
    picture.resize(900, 180)
    assert strip.isHidden()
    strip.tell((), "", can_reset=False)
    picture.resize(900, 300)
    assert strip.isHidden()


def test_that_it_stands_below_the_picture_and_says_how_often_is_looked(measured):
    strip, picture = measured.charting.extents, measured.view.picture
    assert strip.words.text().startswith("Least ")
    assert strip.words.text().endswith("sampled every 1 s")
    assert strip.mapTo(measured.view, strip.rect().topLeft()).y() >= picture.geometry().bottom()
    assert "between two samples" in strip.words.toolTip()


def test_that_reset_begins_anew_in_place(measured, qtbot):
    strip, kept = measured.charting.extents, measured.view.picture.kept
    assert strip.reset.accessibleName() == "Reset least and most"
    QTest.mouseClick(strip.reset, Qt.MouseButton.LeftButton)
    assert kept.extents == {}
    assert strip.words.text() == "Nothing was measured since the reset"
    assert strip.isVisible()
    qtbot.waitUntil(lambda: strip.words.text().startswith("Least "), timeout=10_000)


def test_that_it_is_not_there_for_a_machine_that_is_not_here(measured, qtbot):
    measured.model.choose_device("RTX 4090")
    qtbot.waitUntil(measured.charting.extents.isHidden, timeout=10_000)


@pytest.mark.parametrize("percent", [100, 200])
def test_that_the_smallest_window_shows_it_whole_or_not_at_all(measured, qtbot, percent):
    app = measured
    app.welcome.dismiss()
    app.window.resize(960, 600)
    app.dressing._change(text_percent=percent)
    qtbot.waitUntil(lambda: app.window.width() == 960)
    least = app.view.picture.minimumSizeHint().height()
    qtbot.waitUntil(lambda: app.view.picture.height() >= least)
    strip = app.charting.extents
    qtbot.waitUntil(lambda: strip.isVisible() is (percent == 100), timeout=10_000)
    if strip.isVisible():
        width = strip.words.fontMetrics().horizontalAdvance(strip.words.text())
        assert strip.words.width() >= width
        assert strip.reset.geometry().right() < strip.width()
