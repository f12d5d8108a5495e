"""The first picture of a window, before the rest of the program is made."""

from __future__ import annotations

from PySide6.QtCore import QDeadlineTimer, QEventLoop, QTimer
from PySide6.QtWidgets import QApplication, QWidget

_PATIENCE_MS = 250
"""A window that the desktop keeps out of sight is not waited for any longer."""


def await_picture(window: QWidget) -> None:
    """Let ``window``, just shown, be drawn; clicks and keys wait for those who answer them."""
    awaited = QEventLoop.ProcessEventsFlag.ExcludeUserInputEvents
    deadline = QDeadlineTimer(_PATIENCE_MS)
    alarm = QTimer()
    alarm.setSingleShot(True)
    alarm.start(_PATIENCE_MS)
    handle = window.windowHandle()
    while not handle.isExposed() and not deadline.hasExpired():
        QApplication.processEvents(awaited | QEventLoop.ProcessEventsFlag.WaitForMoreEvents)
    QApplication.processEvents(awaited)
