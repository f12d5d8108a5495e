"""The small window that stays in front: what it shows, and that it is there again."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest

from engine.telemetry.snapshot import Missing
from gui.kit.settings import Settings, SettingsStore
from tests.helpers.readings import GIB, host, moment


@pytest.fixture
def quiet(app):
    app.watch.stop()
    return app


def test_that_its_command_opens_it_in_front_of_all_and_closes_it(quiet):
    command = quiet.window.commands["compact"]
    command.trigger()
    window = quiet.compact.window
    assert window.isVisible()
    assert window.windowFlags() & Qt.WindowType.WindowStaysOnTopHint
    assert command.isChecked()
    command.trigger()
    assert quiet.compact.window is None
    assert not command.isChecked()
    command.trigger()
    quiet.compact.window.close()
    assert not command.isChecked()


def test_that_it_shows_use_free_and_the_plans_verdict(quiet):
    quiet.window.commands["compact"].trigger()
    window = quiet.compact.window
    quiet.watch._on_sampled(moment(host(used_bytes=19 * GIB, free_bytes=45 * GIB)))
    ((name, words),) = window.rows
    assert name == quiet.model.state.here.slots[0].device.name
    assert words == "19.0 used, 45.0 GiB free"
    assert window.headline.text() == quiet.model.state.sizing.verdict.headline
    quiet.watch._on_sampled(moment(host(used_bytes=Missing("the driver sleeps"))))
    ((_, words),) = window.rows
    assert words == "the driver sleeps"


def test_that_figures_that_are_old_are_called_old(quiet):
    quiet.window.commands["compact"].trigger()
    quiet.watch.aged.emit("12 s ago")
    assert quiet.compact.window.age.text() == "Last sample 12 s ago"
    quiet.watch.aged.emit("")
    assert not quiet.compact.window.age.isVisible()


def test_that_a_double_click_brings_the_whole_window(quiet):
    quiet.window.commands["compact"].trigger()
    quiet.window.showMinimized()
    QTest.mouseDClick(quiet.compact.window, Qt.MouseButton.LeftButton, pos=QPoint(5, 5))
    assert not quiet.window.isMinimized()


def test_that_it_is_open_again_where_it_was(quiet, start, tmp_path):
    quiet.window.commands["compact"].trigger()
    quiet.compact.window.move(200, 120)
    quiet.compact.window.resize(420, 180)
    quiet.window.close()
    assert SettingsStore(tmp_path / "settings").load().compact
    again = start()
    window = again.compact.window
    assert window.isVisible()
    assert (window.width(), window.height()) == (420, 180)


def test_that_nothing_is_cut_at_twice_the_text(start, tmp_path, qtbot):
    store = SettingsStore(tmp_path / "settings")
    store.save(Settings(text_percent=200, compact=True))
    app = start()
    qtbot.waitUntil(lambda: app.model.state.sizing is not None, timeout=20_000)
    window = app.compact.window
    qtbot.waitUntil(lambda: bool(window.headline.text()), timeout=10_000)
    window.adjustSize()
    for row in window._rows:
        assert row.words.width() >= row.words.sizeHint().width()
    assert window.headline.height() >= window.headline.heightForWidth(window.headline.width())
