"""The 2 px bar at the top edge of what is loading; silent for the first 400 ms."""

from __future__ import annotations

from PySide6.QtCore import QElapsedTimer, QRectF, Qt, QTimer
from PySide6.QtGui import QPainter, QPaintEvent, QPalette
from PySide6.QtWidgets import QStyle, QWidget
from typing_extensions import override

from engine.words import tr

QUIET_MS = 400
_FRAME_MS = 40
_LAP_MS = 1600
_SHARE = 0.28


class ProgressLine(QWidget):
    """Runs along the edge while something of unknown length is going on.

    Where things should keep still it stands over the whole edge.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFixedHeight(2)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setAccessibleName(tr("Loading"))
        self._clock = QElapsedTimer()
        self._quiet = QTimer(self)
        self._quiet.setSingleShot(True)
        self._quiet.setInterval(QUIET_MS)
        self._quiet.timeout.connect(self._on_quiet_over)
        self._frames = QTimer(self)
        self._frames.setInterval(_FRAME_MS)
        self._frames.timeout.connect(self.update)
        self.is_visible = False

    def set_busy(self, busy: bool) -> None:  # noqa: FBT001 - connected to a signal of one bool
        """Start or end; a job shorter than 400 ms shows nothing."""
        if busy:
            if not self.is_visible:
                self._quiet.start()
            return
        self._quiet.stop()
        self._frames.stop()
        self.is_visible = False
        self.update()

    def _on_quiet_over(self) -> None:
        self.is_visible = True
        self._clock.start()
        if self._may_move():
            self._frames.start()
        self.update()

    def _may_move(self) -> bool:
        """What the system says of moving things, or the style sheet in its place."""
        return self.style().styleHint(QStyle.StyleHint.SH_Widget_Animation_Duration, None, self) > 0

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        if not self.is_visible:
            return
        accent = self.palette().color(QPalette.ColorRole.Accent)
        if not self._frames.isActive():
            QPainter(self).fillRect(self.rect(), accent)
            return
        share = (self._clock.elapsed() % _LAP_MS) / _LAP_MS
        left = (share * (1 + _SHARE) - _SHARE) * self.width()
        QPainter(self).fillRect(QRectF(left, 0, _SHARE * self.width(), 2), accent)
