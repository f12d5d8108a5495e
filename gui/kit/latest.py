"""Of several runs of the same question only the newest may answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal, Slot

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.cancel import CancelToken
    from gui.kit.tasks import Task, TaskRunner


class LatestOnly(QObject):
    """Submits jobs one after another; a newer one cancels the older and silences it.

    Cancellation is a courtesy to the machine; the silence is the guarantee, since a job that
    has just settled cannot be cancelled any more.
    """

    succeeded = Signal(object)
    failed = Signal(object)
    busy_changed = Signal(bool)

    def __init__(self, runner: TaskRunner, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._runner = runner
        self._current: Task | None = None

    @property
    def is_busy(self) -> bool:
        """Whether an answer is still to come."""
        return self._current is not None

    def submit(self, job: Callable[[CancelToken], object]) -> None:
        """Ask again; whatever was asked before is forgotten."""
        was_busy = self.is_busy
        self._forget()
        task = self._runner.submit(job)
        self._current = task
        task.succeeded.connect(self._on_succeeded)
        task.failed.connect(self._on_failed)
        if not was_busy:
            self.busy_changed.emit(self.is_busy)

    def cancel(self) -> None:
        """Forget the question; nothing will arrive."""
        if self._current is not None:
            self._forget()
            self.busy_changed.emit(self.is_busy)

    def _forget(self) -> None:
        if self._current is not None:
            self._current.succeeded.disconnect(self._on_succeeded)
            self._current.failed.disconnect(self._on_failed)
            self._current.cancel()
            self._current = None

    @Slot(object)
    def _on_succeeded(self, result: object) -> None:
        self._current = None
        self.busy_changed.emit(self.is_busy)
        self.succeeded.emit(result)

    @Slot(object)
    def _on_failed(self, error: object) -> None:
        self._current = None
        self.busy_changed.emit(self.is_busy)
        self.failed.emit(error)
