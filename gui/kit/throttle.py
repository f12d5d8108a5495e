"""Acting once after a burst of requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer, Signal

if TYPE_CHECKING:
    from collections.abc import Callable


class Debounce(QObject):
    """Fires ``due`` once the requests have paused for ``delay_ms``."""

    due = Signal()

    def __init__(self, delay_ms: int, action: Callable[[], None], parent: QObject) -> None:
        super().__init__(parent)
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(delay_ms)
        self._timer.timeout.connect(self.due)
        self.due.connect(action)

    def request(self) -> None:
        """Ask for the action; asking again starts the pause anew."""
        self._timer.start()

    def cancel(self) -> None:
        """Drop a pending request."""
        self._timer.stop()

    @property
    def is_pending(self) -> bool:
        """Whether the action is still to come."""
        return self._timer.isActive()
