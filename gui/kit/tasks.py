"""Work off the GUI thread, with results delivered on it.

Three rules make this safe, and each one answers a crash seen in the wild:

* the runner, not the pool, owns every QObject, so nothing is destroyed on a
  pool thread;
* results come home through one signal connected to one bound slot, because a
  lambda or a plain function may be called on the emitting thread;
* a cancelled task stays silent: it ends, but neither succeeds nor fails.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QThreadPool, Signal, Slot

from engine.cancel import CancelToken

if TYPE_CHECKING:
    from collections.abc import Callable


class Task(QObject):
    """One submitted job, as the GUI sees it. All signals arrive on the GUI thread."""

    succeeded = Signal(object)
    failed = Signal(object)
    ended = Signal()

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self.token = CancelToken()

    def cancel(self) -> None:
        """Ask the job to stop; only ``ended`` follows."""
        self.token.cancel()


class TaskRunner(QObject):
    """Runs jobs on its own pool and hands back a ``Task`` for each."""

    _settled = Signal(object, object, object)

    def __init__(self, parent: QObject | None = None, threads: int = 4) -> None:
        super().__init__(parent)
        self._pool = QThreadPool(self)
        self._pool.setMaxThreadCount(threads)
        self._live: set[Task] = set()
        self._closing = False
        self._settled.connect(self._on_settled)

    def submit(self, job: Callable[[CancelToken], object]) -> Task:
        """Start ``job`` on the pool. Call from the GUI thread only."""
        task = Task(self)
        if self._closing:
            task.cancel()
        self._live.add(task)
        settled = self._settled

        def run() -> None:
            result: object = None
            error: BaseException | None = None
            try:
                task.token.raise_if_cancelled()
                result = job(task.token)
            except BaseException as exc:  # noqa: BLE001 - every failure is reported, none is lost
                error = exc
            # A job that outlived the time limit of shutdown finds the runner gone.
            with contextlib.suppress(RuntimeError):
                settled.emit(task, result, error)

        self._pool.start(run)
        return task

    @Slot(object, object, object)
    def _on_settled(self, task: Task, result: object, error: BaseException | None) -> None:
        self._live.discard(task)
        if not task.token.cancelled:
            if error is None:
                task.succeeded.emit(result)
            else:
                task.failed.emit(error)
        task.ended.emit()
        task.deleteLater()

    def shutdown(self, timeout_ms: int) -> bool:
        """Cancel everything and wait. Returns whether the pool came to rest."""
        self._closing = True
        for task in self._live:
            task.cancel()
        return self._pool.waitForDone(timeout_ms)
