"""Builds a model to count its parameters, in a job, and tells what to show at each moment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal, Slot

from engine.verify.interpreter import find
from engine.verify.meta import verify
from gui.kit.latest import LatestOnly
from gui.sizing import verify_words as words

if TYPE_CHECKING:
    from engine.architecture.model import Model
    from engine.cancel import CancelToken
    from engine.verify.meta import Verification
    from gui.kit.tasks import TaskRunner


class VerifyViewModel(QObject):
    """One verification at a time; a newer one ends the older."""

    changed = Signal(object)
    """The new ``words.Shown``."""
    python_found = Signal(str)
    """A Python that has what it takes; building begins."""
    _found = Signal(object, str)

    def __init__(self, runner: TaskRunner, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._model: Model | None = None
        self._python = ""
        self.shown: words.Shown | None = None
        self._latest = LatestOnly(runner, self)
        self._latest.succeeded.connect(self._on_succeeded)
        self._latest.failed.connect(self._on_failed)
        self._found.connect(self._on_found)

    def start(self, model: Model, python: str) -> None:
        """Build ``model`` with ``python``; an empty one is looked for."""
        self._model, self._python = model, python
        self._publish(words.looking(model, python))
        found = self._found

        def job(token: CancelToken) -> Verification:
            path = find(token, python or None)
            found.emit(token, path)
            return verify(model, token, path)

        self._latest.submit(job)

    def choose(self, python: str) -> None:
        """Build again, with this Python."""
        if self._model is not None:
            self.start(self._model, python)

    def cancel(self) -> None:
        """End what is being built; nothing more is told."""
        self._latest.cancel()

    @property
    def is_busy(self) -> bool:
        """Whether something is being built."""
        return self._latest.is_busy

    @Slot(object, str)
    def _on_found(self, token: CancelToken, python: str) -> None:
        if self.shown is not None and not token.cancelled:
            self._publish(words.building(self.shown, python))
            self.python_found.emit(python)

    @Slot(object)
    def _on_succeeded(self, found: Verification) -> None:
        if self.shown is not None:
            self._publish(words.verified(self.shown, found))

    @Slot(object)
    def _on_failed(self, error: BaseException) -> None:
        if self.shown is not None:
            self._publish(words.trouble(self.shown, error, self._python))

    def _publish(self, shown: words.Shown) -> None:
        self.shown = shown
        self.changed.emit(shown)
