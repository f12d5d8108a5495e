"""Only the newest question is answered; a burst asks once."""

from __future__ import annotations

import threading

from gui.kit.latest import LatestOnly
from gui.kit.loader import ModelLoader
from gui.kit.tasks import TaskRunner
from gui.kit.throttle import Debounce


def test_that_an_older_answer_that_comes_late_is_not_heard(qtbot):
    runner = TaskRunner()
    latest = LatestOnly(runner)
    heard = []
    latest.succeeded.connect(heard.append)
    release = threading.Event()
    latest.submit(lambda _token: release.wait(5) and "old")
    latest.submit(lambda _token: "new")
    qtbot.waitUntil(lambda: heard == ["new"])
    release.set()
    assert runner.shutdown(3000)
    qtbot.waitUntil(lambda: not latest.is_busy)
    assert heard == ["new"]


def test_that_busy_is_told_once_for_a_row_of_questions(qtbot):
    runner = TaskRunner()
    latest = LatestOnly(runner)
    told = []
    latest.busy_changed.connect(told.append)
    for _ in range(5):
        latest.submit(lambda _token: 1)
    with qtbot.waitSignal(latest.succeeded):
        pass
    assert told == [True, False]
    assert runner.shutdown(3000)


def test_that_a_cancelled_question_stays_silent(qtbot):
    runner = TaskRunner()
    latest = LatestOnly(runner)
    heard = []
    latest.succeeded.connect(heard.append)
    latest.failed.connect(heard.append)
    latest.submit(lambda _token: 1)
    latest.cancel()
    assert not latest.is_busy
    assert runner.shutdown(3000)
    assert heard == []


def test_that_an_error_while_reading_a_model_is_told(qtbot):
    runner = TaskRunner()
    loader = ModelLoader(runner)

    def fetch(_token):
        raise OSError("no disk")

    with qtbot.waitSignal(loader.failed) as caught:
        loader.load(fetch)
    assert str(caught.args[0]) == "no disk"
    assert runner.shutdown(3000)


def test_that_a_burst_of_requests_acts_once(qtbot, qapp):
    acted = []
    debounce = Debounce(1, lambda: acted.append(1), qapp)
    for _ in range(50):
        debounce.request()
    qtbot.waitUntil(lambda: bool(acted))
    assert acted == [1]
    assert not debounce.is_pending
