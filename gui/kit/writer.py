"""Files written off the GUI thread, one after another; the newest text of each file is the last."""

from __future__ import annotations

import logging
import threading
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal, Slot

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from engine.cancel import CancelToken
    from gui.kit.tasks import TaskRunner

_log = logging.getLogger("plimsoll.gui")

_CLOSE_WITHIN_S = 2.0
"""How long leaving waits for a disk that doesn't answer."""


@dataclass(frozen=True, slots=True, eq=False)
class Written:
    """What came of one writing."""

    path: Path
    token: object
    """What it was submitted with."""
    error: Exception | None = None


class Writer(QObject):
    """Nothing that was submitted is left out, but for a text that a newer one replaces in time."""

    settled = Signal(object)
    """A ``Written``, in the order of submission."""

    def __init__(self, runner: TaskRunner, parent: QObject) -> None:
        super().__init__(parent)
        self._runner = runner
        self._guard = threading.Lock()
        """Held while the lists below are looked at."""
        self._waiting: dict[Path, tuple[Callable[[], None], object]] = {}
        self._done: deque[Written] = deque()
        self._writing = threading.Lock()
        """Held while a file is written."""

    def submit(self, path: Path, write: Callable[[], None], token: object = None) -> None:
        """Write ``path`` after what is being written; what still waits for it is given up.

        Args:
            path: the file.
            write: writes it; runs in a worker.
            token: comes back with the answer.
        """
        with self._guard:
            self._waiting.pop(path, None)
            self._waiting[path] = (write, token)
        self._runner.submit(self._work).succeeded.connect(self._deliver)

    def close(self) -> None:
        """Write here and now what still waits."""
        if self._writing.acquire(timeout=_CLOSE_WITHIN_S):
            try:
                self._drain()
            finally:
                self._writing.release()
        else:
            _log.warning("a file was still being written when the window closed")
        self._deliver()

    def _work(self, _token: CancelToken) -> None:
        with self._writing:
            self._drain()

    def _drain(self) -> None:
        while True:
            with self._guard:
                if not self._waiting:
                    return
                path = next(iter(self._waiting))
                write, token = self._waiting.pop(path)
            error = None
            try:
                write()
            except Exception as exc:  # noqa: BLE001 - every failure is reported, none is lost
                error = exc
            self._done.append(Written(path, token, error))

    @Slot()
    def _deliver(self) -> None:
        while self._done:
            self.settled.emit(self._done.popleft())
