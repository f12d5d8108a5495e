"""What nobody caught: logged, and shown as one sentence in the window."""

from __future__ import annotations

import logging
import sys
import threading
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

if TYPE_CHECKING:
    from types import TracebackType

_log = logging.getLogger("plimsoll.gui")


class Faults(QObject):
    """Stands at both of Python's last exits while it is ``installed``."""

    happened = Signal(object)
    """The exception, always on the GUI thread."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._before = (sys.excepthook, threading.excepthook)

    def install(self) -> None:
        """Take over the hooks."""
        sys.excepthook = self._on_fault
        threading.excepthook = self._on_thread_fault

    def remove(self) -> None:
        """Give the hooks back."""
        sys.excepthook, threading.excepthook = self._before

    def _on_fault(
        self,
        kind: type[BaseException],
        error: BaseException,
        trace: TracebackType | None,
    ) -> None:
        if issubclass(kind, KeyboardInterrupt):
            self._before[0](kind, error, trace)
            return
        _log.error("a fault that nobody caught", exc_info=error)
        self.happened.emit(error)

    def _on_thread_fault(self, found: threading.ExceptHookArgs) -> None:
        if found.exc_value is not None:
            _log.error("a fault in a thread", exc_info=found.exc_value)
            self.happened.emit(found.exc_value)
