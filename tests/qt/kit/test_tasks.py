"""Jobs run off the GUI thread and come home on it."""

from __future__ import annotations

import gc
import threading
import weakref

from PySide6.QtCore import QCoreApplication, QEvent, QObject, Slot

from engine.units import GIB
from gui.kit.tasks import Task, TaskRunner


class Sink(QObject):
    def __init__(self) -> None:
        super().__init__()
        self.results: list[object] = []
        self.errors: list[BaseException] = []
        self.threads: set[int] = set()

    @Slot(object)
    def ok(self, result: object) -> None:
        self.results.append(result)
        self.threads.add(threading.get_ident())

    @Slot(object)
    def bad(self, error: BaseException) -> None:
        self.errors.append(error)
        self.threads.add(threading.get_ident())


def _until_cancelled(token) -> None:
    while True:
        token.raise_if_cancelled()


def test_that_two_thousand_results_beyond_32_bits_arrive_whole_on_the_gui_thread(qtbot):
    runner, sink = TaskRunner(), Sink()
    for i in range(2000):
        task = runner.submit(lambda _token, i=i: 80 * GIB + i)
        task.succeeded.connect(sink.ok)
    qtbot.waitUntil(lambda: len(sink.results) == 2000, timeout=20_000)
    assert sorted(sink.results) == [80 * GIB + i for i in range(2000)]
    assert sink.threads == {threading.get_ident()}
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    assert not runner.findChildren(Task)
    assert runner.shutdown(3000)


def test_that_an_error_arrives_and_a_cancelled_job_stays_silent(qtbot):
    runner, sink = TaskRunner(), Sink()

    def fail(_token) -> None:
        raise ValueError("x")

    runner.submit(fail).failed.connect(sink.bad)
    slow = runner.submit(_until_cancelled)
    slow.succeeded.connect(sink.ok)
    slow.failed.connect(sink.bad)
    with qtbot.waitSignal(slow.ended, timeout=5000):
        slow.cancel()
    qtbot.waitUntil(lambda: len(sink.errors) == 1)
    assert isinstance(sink.errors[0], ValueError)
    assert sink.results == []
    assert runner.shutdown(3000)


def test_that_shutdown_ends_jobs_in_the_middle_and_delivers_none(qtbot):
    runner, sink = TaskRunner(), Sink()
    for _ in range(20):
        runner.submit(_until_cancelled).succeeded.connect(sink.ok)
    assert runner.shutdown(5000)
    late = runner.submit(lambda _token: 1)
    late.succeeded.connect(sink.ok)
    with qtbot.waitSignal(late.ended, timeout=3000):
        pass
    assert sink.results == []


def test_that_a_receiver_that_died_first_is_not_called(qtbot):
    runner, sink = TaskRunner(), Sink()
    release = threading.Event()
    task = runner.submit(lambda _token: release.wait(5))
    task.succeeded.connect(sink.ok)
    gone = weakref.ref(sink)
    del sink
    gc.collect()
    assert gone() is None
    with qtbot.waitSignal(task.ended, timeout=5000):
        release.set()
    assert runner.shutdown(3000)
