"""A slider over a range of powers of two, with eight stops to the octave."""

from __future__ import annotations

from math import log2

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QPainter, QPaintEvent, QPalette, QPen, QWheelEvent
from PySide6.QtWidgets import QSlider, QWidget
from typing_extensions import override

STOPS_PER_OCTAVE = 8
_COARSE = 128
"""Between two octaves a stop is a multiple of this (of a quarter below 2,048), so that dragging
gives round numbers."""


class LogSlider(QSlider):
    """Whole numbers from ``minimum`` to ``maximum`` on a logarithmic scale."""

    moved_to = Signal(object)
    """The number (``int``) the user moved to."""

    def __init__(self, minimum: int, maximum: int, parent: QWidget | None = None) -> None:
        super().__init__(Qt.Orientation.Horizontal, parent)
        self._low = minimum
        self._high = maximum
        self.set_limits(minimum, maximum)
        self.setPageStep(STOPS_PER_OCTAVE)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.valueChanged.connect(self._on_value_changed)
        self._quiet = False
        self._wanted_width = 150

    def want_width(self, width: int) -> None:
        """The width it would like to have."""
        if width != self._wanted_width:
            self._wanted_width = width
            self.updateGeometry()

    def set_limits(self, minimum: int, maximum: int) -> None:
        """Run from ``minimum`` to ``maximum``; the last stop is exactly ``maximum``."""
        self._low, self._high = minimum, max(maximum, minimum + 1)
        self._quiet = True
        self.setRange(0, round(log2(self._high / self._low) * STOPS_PER_OCTAVE))
        self._quiet = False

    def set_number(self, number: int) -> None:
        """Stand nearest to ``number``; tells nobody."""
        inside = min(max(number, self._low), self._high)
        self._quiet = True
        self.setValue(round(log2(inside / self._low) * STOPS_PER_OCTAVE))
        self._quiet = False

    def number_at(self, stop: int) -> int:
        """The number of a stop."""
        if stop >= self.maximum():
            return self._high
        exact = self._low * 2 ** (stop / STOPS_PER_OCTAVE)
        if stop % STOPS_PER_OCTAVE == 0:
            return round(exact)
        coarse = _COARSE if exact >= 16 * _COARSE else _COARSE // 4
        return round(exact / coarse) * coarse

    @override
    def sizeHint(self) -> QSize:
        return QSize(self._wanted_width, 28)

    @override
    def minimumSizeHint(self) -> QSize:
        return QSize(72, 28)

    @override
    def wheelEvent(self, event: QWheelEvent) -> None:
        if self.hasFocus():
            super().wheelEvent(event)
        else:
            event.ignore()

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        colors = self.palette()
        group = QPalette.ColorGroup.Normal if self.isEnabled() else QPalette.ColorGroup.Disabled
        accent = colors.color(group, QPalette.ColorRole.Accent)
        middle = self.height() / 2
        share = self.value() / max(1, self.maximum())
        center = QPointF(7 + share * (self.width() - 14), middle)
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.fillRect(QRectF(0, middle - 1, self.width(), 2), colors.dark())
        painter.fillRect(QRectF(0, middle - 1, center.x(), 2), accent)
        if self.hasFocus():
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(colors.highlight())
            painter.drawEllipse(center, 10, 10)
        painter.setPen(QPen(accent, 2))
        painter.setBrush(colors.button())
        painter.drawEllipse(center, 5, 5)

    def _on_value_changed(self, stop: int) -> None:
        if not self._quiet:
            self.moved_to.emit(self.number_at(stop))
