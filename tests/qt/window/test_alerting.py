"""The ceiling's alert and the word for spill and scarce memory, as the window shows them."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QPushButton

from engine.telemetry.snapshot import Missing, Pressure
from gui.kit.settings import Settings, SettingsStore
from tests.helpers.readings import GIB, card, host, moment


@pytest.fixture
def quiet(start):
    """The window, with no samples but those of the test."""
    app = start()
    app.watch.stop()
    return app


def sample(app, *devices, seconds: range) -> None:
    for second in seconds:
        app.watch._on_sampled(moment(*devices, second=second))


def full(**changes):
    return card(total_bytes=100 * GIB, reserved_bytes=0, **changes)


def test_that_nothing_is_told_unless_it_was_asked_for(quiet):
    sample(quiet, full(used_bytes=99 * GIB), host(), seconds=range(40))
    assert not quiet.alerting.notice.isVisible()


def test_that_it_is_told_once_an_episode_after_it_held(quiet):
    page = quiet.alerting.page
    page.alert.click()
    page.percent.setValue(90)
    page.seconds.setValue(5)
    notice = quiet.alerting.notice
    sample(quiet, full(used_bytes=91 * GIB), host(), seconds=range(5))
    assert not notice.isVisible()
    sample(quiet, full(used_bytes=91 * GIB), host(), seconds=range(5, 6))
    assert notice.isVisible()
    said = "NVIDIA GeForce RTX 4090 is at 91 % of its ceiling: 91.0 of 100.0 GiB"
    assert notice.line.text() == said
    notice.dismiss()
    sample(quiet, full(used_bytes=92 * GIB), host(), seconds=range(6, 60))
    assert not notice.isVisible()
    sample(quiet, full(used_bytes=50 * GIB), host(), seconds=range(60, 61))
    sample(quiet, full(used_bytes=95 * GIB), host(), seconds=range(61, 70))
    assert notice.isVisible()


def test_that_it_is_told_with_so_much_left_too(quiet):
    page = quiet.alerting.page
    page.alert.click()
    page.percent.setValue(95)
    page.left.setValue(8)
    page.seconds.setValue(1)
    notice = quiet.alerting.notice
    sample(quiet, full(used_bytes=91 * GIB), host(), seconds=range(5))
    assert not notice.isVisible()  # 9 GiB are left
    sample(quiet, full(used_bytes=92 * GIB), host(), seconds=range(5, 8))
    assert notice.isVisible()


def test_that_a_computer_about_to_kill_what_runs_is_told_unasked(quiet):
    notice = quiet.alerting.notice
    short = host(free_bytes=3 * GIB)
    sample(quiet, short, seconds=range(10))
    assert not notice.isVisible()  # it may pass
    sample(quiet, short, seconds=range(10, 11))
    assert notice.line.text() == "This computer runs out of memory: 3.0 GiB left"
    assert "killed by the system" in notice.second.text()
    notice.dismiss()
    sample(quiet, short, seconds=range(11, 60))
    assert not notice.isVisible()
    sample(quiet, host(), seconds=range(60, 61))
    sample(quiet, host(pressure=Pressure.CRITICAL), seconds=range(61, 72))
    assert notice.line.text() == "This computer runs out of memory"


def test_that_nothing_is_told_for_an_hour_if_so_wished(quiet, qtbot):
    page, notice = quiet.alerting.page, quiet.alerting.notice
    page.alert.click()
    page.seconds.setValue(1)
    sample(quiet, full(used_bytes=99 * GIB), host(), seconds=range(3))
    snooze = next(b for b in notice.findChildren(QPushButton) if b.text() == "Not for an hour")
    qtbot.mouseClick(snooze, Qt.MouseButton.LeftButton)
    assert not notice.isVisible()

    def again(start):
        sample(quiet, full(used_bytes=10 * GIB), host(), seconds=range(start, start + 1))
        sample(quiet, full(used_bytes=99 * GIB), host(), seconds=range(start + 1, start + 4))
        return notice.isVisible()

    assert not again(3590)
    assert again(3610)


def test_that_the_settings_are_kept_and_nonsense_is_not(quiet, tmp_path):
    quiet.alerting.page.alert.click()
    quiet.alerting.page.percent.setValue(80)
    store = SettingsStore(tmp_path / "kept")
    store.save(quiet.settings)
    read = store.load()
    assert (read.alert, read.alert_percent, read.alert_seconds) == (True, 80, 10)
    store.save(Settings(alert_percent=7, alert_seconds=10**9))
    read = store.load()
    assert (read.alert_percent, read.alert_seconds) == (95, 10)
    assert not Settings().alert


def test_that_the_figures_can_be_changed_only_where_they_count(quiet):
    page = quiet.alerting.page
    assert not page.percent.isEnabled()
    page.alert.click()
    assert page.percent.isEnabled()


def test_that_spill_and_scarce_memory_stand_in_the_status_line_and_go_again(quiet):
    item = quiet.window.status_line.pressure
    sample(quiet, card(), host(), seconds=range(1))
    assert not item.isVisible()
    sample(quiet, card(spill_bytes=2 * GIB), host(), seconds=range(1, 2))
    assert item.isVisible()
    assert item.words.full_text == "2.0 GiB spilled to system memory"
    sample(quiet, card(), host(free_bytes=3 * GIB), seconds=range(2, 3))
    assert item.words.full_text == "Memory is scarce: 3.0 GiB left"
    sample(quiet, card(), host(pressure=Pressure.CRITICAL), seconds=range(3, 4))
    assert item.words.full_text == "Memory pressure, critical"
    sample(quiet, card(), host(pressure=Pressure.SOME), seconds=range(4, 5))
    assert item.words.full_text == "Memory pressure"
    sample(quiet, card(spill_bytes=Missing("not told")), host(), seconds=range(5, 6))
    assert not item.isVisible()


def test_that_what_was_told_of_this_computer_is_not_told_of_another(quiet):
    notice = quiet.alerting.notice
    short = host(free_bytes=3 * GIB)
    sample(quiet, short, seconds=range(11))
    assert notice.isVisible()
    quiet.window.commands["simulated"].trigger()
    assert not notice.isVisible()
    # Another machine that is short of memory is not "this computer".
    sample(quiet, short, seconds=range(100, 160))
    assert not notice.isVisible()
