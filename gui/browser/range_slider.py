"""A slider with two handles on a logarithmic scale.

Each end is a ``QSlider`` of its own, so that keyboard and screen reader have what they know;
only the mouse and the painting are done here for both.
"""

from __future__ import annotations

from math import log2
from typing import TYPE_CHECKING

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QPainter, QPaintEvent, QPalette, QPen
from PySide6.QtWidgets import QSizePolicy, QSlider, QWidget
from typing_extensions import override

from engine.words import tr
from gui.browser.filters import ANY, Span

if TYPE_CHECKING:
    from collections.abc import Callable

    from PySide6.QtGui import QFocusEvent, QMouseEvent, QResizeEvent

_STOPS_PER_OCTAVE = 4
_EDGE = 7


class _End(QSlider):
    """One of the two numbers: takes keys, paints nothing."""

    def __init__(self, parent: QWidget, stops: int) -> None:
        super().__init__(Qt.Orientation.Horizontal, parent)
        self._painter = parent
        self.setRange(0, stops)
        self.setPageStep(_STOPS_PER_OCTAVE)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        """The parent draws both ends."""

    @override
    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self._painter.update()

    @override
    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self._painter.update()


class RangeSlider(QWidget):
    """From and to; at its ends it lets everything below or above through."""

    moved = Signal(object)
    """The ``Span`` the user chose."""

    def __init__(
        self, name: str, limits: Span, say: Callable[[int], str], parent: QWidget | None = None
    ) -> None:
        """Make a slider from one end of ``limits`` (both above 0) to the other.

        Args:
            name: what is chosen, for screen readers; English, as the ends are called by it.
            limits: numbers at the two ends.
            say: writes a number.
            parent: the widget it lies in.
        """
        super().__init__(parent)
        self._name, self._limits, self._say = name, limits, say
        self._stops = round(log2(limits.high / limits.low) * _STOPS_PER_OCTAVE)
        self.low, self.high = _End(self, self._stops), _End(self, self._stops)
        self.low.setObjectName(f"{name} from")
        self.high.setObjectName(f"{name} to")
        self._held: _End | None = None
        self._quiet = False
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.low.valueChanged.connect(self._on_low)
        self.high.valueChanged.connect(self._on_high)
        self.set_span(ANY)

    @property
    def span(self) -> Span:
        """What is let through."""
        low, high = self.low.value(), self.high.value()
        return Span(
            self._number(low) if low else ANY.low,
            self._number(high) if high < self._stops else ANY.high,
        )

    def set_span(self, span: Span) -> None:
        """Stand nearest to ``span``; tells nobody."""
        self._quiet = True
        self.low.setValue(self._stop(span.low))
        self.high.setValue(self._stop(span.high))
        self._quiet = False
        self._name_ends()
        self.update()

    def _number(self, stop: int) -> int:
        """The number of a stop, to two figures."""
        exact = self._limits.low * 2 ** (stop / _STOPS_PER_OCTAVE)
        return int(float(f"{exact:.1e}"))

    def _stop(self, number: int) -> int:
        inside = min(max(number, self._limits.low), self._limits.high)
        return round(log2(inside / self._limits.low) * _STOPS_PER_OCTAVE)

    def _on_low(self, stop: int) -> None:
        self._moved(self.low, min(stop, self.high.value()))

    def _on_high(self, stop: int) -> None:
        self._moved(self.high, max(stop, self.low.value()))

    def _moved(self, end: _End, stop: int) -> None:
        if self._quiet:
            return
        self._quiet = True
        end.setValue(stop)
        self._quiet = False
        self._name_ends()
        self.update()
        self.moved.emit(self.span)

    def _name_ends(self) -> None:
        span = self.span
        low = self._say(span.low) if span.low > ANY.low else tr("any")
        high = self._say(span.high) if span.high < ANY.high else tr("any")
        name = tr(self._name)
        self.low.setAccessibleName(tr("{name} from, {low}").format(name=name, low=low))
        self.high.setAccessibleName(tr("{name} to, {high}").format(name=name, high=high))

    def _x(self, stop: int) -> float:
        return _EDGE + stop / self._stops * (self.width() - 2 * _EDGE)

    @override
    def sizeHint(self) -> QSize:
        return QSize(150, 24)

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        for end in (self.low, self.high):
            end.setGeometry(self.rect())

    @override
    def mousePressEvent(self, event: QMouseEvent) -> None:
        x = event.position().x()
        far_low, far_high = abs(x - self._x(self.low.value())), abs(x - self._x(self.high.value()))
        # Where both stand on one spot, the side of the press says which one is meant.
        is_low = far_low < far_high or (far_low == far_high and x < self._x(self.low.value()))
        self._held = self.low if is_low else self.high
        self._held.setFocus(Qt.FocusReason.MouseFocusReason)
        self._drag(x)

    @override
    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self._drag(event.position().x())

    @override
    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        self._held = None

    def _drag(self, x: float) -> None:
        if self._held is not None:
            share = (x - _EDGE) / max(1, self.width() - 2 * _EDGE)
            self._held.setValue(round(min(max(share, 0), 1) * self._stops))

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        colors, middle = self.palette(), self.height() / 2
        accent = colors.color(QPalette.ColorRole.Accent)
        low, high = self._x(self.low.value()), self._x(self.high.value())
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.fillRect(QRectF(0, middle - 1, self.width(), 2), colors.dark())
        painter.fillRect(QRectF(low, middle - 1, high - low, 2), accent)
        for end, x in ((self.low, low), (self.high, high)):
            if end.hasFocus():
                painter.setPen(Qt.PenStyle.NoPen)
                painter.setBrush(colors.highlight())
                painter.drawEllipse(QPointF(x, middle), 10, 10)
            painter.setPen(QPen(accent, 2))
            painter.setBrush(colors.button())
            painter.drawEllipse(QPointF(x, middle), 5, 5)
