"""A slider over numbers that are given it one by one: dragged, or stepped by keys."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QPainter, QPaintEvent, QPalette, QPen, QWheelEvent
from PySide6.QtWidgets import QSlider, QWidget
from typing_extensions import override

from gui.kit.format import count
from gui.kit.theme import text_scale

if TYPE_CHECKING:
    from collections.abc import Sequence

_HEIGHT = 28
_WIDTH, _LEAST = 150, 72
_KNOB, _HALO = 5, 10
_EDGE = 7
"""From the widget's edge to the middle of the knob at either end."""


def octaves(low: int, high: int, parts: int) -> tuple[int, ...]:
    """Stops from ``low`` to exactly ``high``, ``parts`` to each doubling, evenly within it.

    So they are round where ``low`` is, and none is there twice where numbers are small.
    """
    found = {low, max(low, high)}
    base = low
    while base < high:
        steps = (base * (parts + part) for part in range(parts))
        found |= {step // parts for step in steps if step % parts == 0 and step < high * parts}
        base *= 2
    return tuple(sorted(found))


class StopSlider(QSlider):
    """Stands at one of its stops; what lies between two is shown at the nearer."""

    moved_to = Signal(object)
    """The number the user moved to."""
    held = Signal(bool)
    """Whether it is being dragged."""

    def __init__(self, stops: Sequence[float], parent: QWidget | None = None) -> None:
        super().__init__(Qt.Orientation.Horizontal, parent)
        self._stops: tuple[float, ...] = ()
        self._quiet = False
        self._wanted_width = _WIDTH
        self.set_stops(stops)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.valueChanged.connect(self._on_value_changed)
        self.sliderPressed.connect(lambda: self.held.emit(True))  # noqa: FBT003 - a signal's
        self.sliderReleased.connect(lambda: self.held.emit(False))  # noqa: FBT003 - as above

    @property
    def stops(self) -> tuple[float, ...]:
        """The numbers it stands at, rising."""
        return self._stops

    def set_stops(self, stops: Sequence[float]) -> None:
        """Run over ``stops``, which rise; tells nobody. One alone leaves nothing to move."""
        if tuple(stops) != self._stops:
            self._stops = tuple(stops)
            self._quiet = True
            self.setRange(0, len(self._stops) - 1)
            self._quiet = False
            self.setEnabled(len(self._stops) > 1)

    def set_number(self, number: float) -> None:
        """Stand nearest to ``number``; tells nobody."""
        after = min(bisect_left(self._stops, number), len(self._stops) - 1)
        before = max(0, after - 1)
        is_nearer = number - self._stops[before] < self._stops[after] - number
        self._quiet = True
        self.setValue(before if is_nearer else after)
        self._quiet = False
        # What a screen reader says by itself is the place among the stops.
        self.setAccessibleDescription(_said(number))

    def number_at(self, stop: int) -> float:
        """The number of a stop."""
        return self._stops[stop]

    def want_width(self, width: int) -> None:
        """The width it would like to have, at plain text size."""
        if width != self._wanted_width:
            self._wanted_width = width
            self.updateGeometry()

    @override
    def sizeHint(self) -> QSize:
        return QSize(self._wanted_width, _HEIGHT) * text_scale()

    @override
    def minimumSizeHint(self) -> QSize:
        return QSize(_LEAST, round(_HEIGHT * text_scale()))

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
        scale, middle = text_scale(), self.height() / 2
        share = self.value() / max(1, self.maximum())
        edge = _EDGE * scale
        center = QPointF(edge + share * (self.width() - 2 * edge), middle)
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.fillRect(QRectF(0, middle - 1, self.width(), 2), colors.dark())
        painter.fillRect(QRectF(0, middle - 1, center.x(), 2), accent)
        if self.hasFocus():
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(colors.highlight())
            painter.drawEllipse(center, _HALO * scale, _HALO * scale)
        painter.setPen(QPen(accent, 2 * scale))
        painter.setBrush(colors.button())
        painter.drawEllipse(center, _KNOB * scale, _KNOB * scale)

    def _on_value_changed(self, stop: int) -> None:
        if not self._quiet:
            number = self.number_at(stop)
            self.setAccessibleDescription(_said(number))
            self.moved_to.emit(number)


def _said(number: float) -> str:
    return count(number) if isinstance(number, int) else f"{number:g}"
