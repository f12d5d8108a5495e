"""What a verdict on a plan or a run is shown with: its mark, and changes with their margins."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QFontMetrics, QPainter, QPainterPath, QPaintEvent
from PySide6.QtWidgets import QAbstractButton, QSizePolicy, QWidget
from typing_extensions import override

from gui.kit.icons import pixmap

if TYPE_CHECKING:
    from gui.kit.theme import Theme

_SQUARE, _PICTURE = 32, 18


class VerdictMark(QWidget):
    """The verdict's icon in a tinted square."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme: Theme | None = None
        self._color = "unknown"
        self._icon = "circle-help"

    def show_mark(self, theme: Theme, color: str, picture: str) -> None:
        """Show ``picture`` in the status colour ``color``."""
        self._theme, self._color, self._icon = theme, color, picture
        self.setFixedSize(theme.grown(_SQUARE), theme.grown(_SQUARE))
        self.update()

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        if self._theme is None:
            return
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(self._theme.color(f"{self._color}.soft"))
        painter.drawRoundedRect(QRectF(self.rect()), 4, 4)
        size = self._theme.grown(_PICTURE)
        color = self._theme.color(self._color)
        picture = pixmap(self._icon, color, size, self.devicePixelRatioF())
        painter.drawPixmap((self.width() - size) // 2, (self.height() - size) // 2, picture)


class MarginButton(QAbstractButton):
    """One change that would help, with the margin it would bring in the colour of its verdict."""

    def __init__(self, text: str, margin: str, color: str, theme: Theme) -> None:
        super().__init__()
        self._margin = margin
        self._color = color
        self._theme = theme
        self.setText(text)
        self.setAccessibleName(f"{text}: {margin}" if margin else text)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.setFont(theme.font("body.strong"))

    @override
    def sizeHint(self) -> QSize:
        return QSize(self._label_width() + self._margin_width(), self._theme.size("button.action"))

    @override
    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def _label_width(self) -> int:
        return self.fontMetrics().horizontalAdvance(self.text()) + 21

    def _margin_width(self) -> int:
        metrics = QFontMetrics(self._theme.font("small.strong.num"))
        return metrics.horizontalAdvance(self._margin) + 21 if self._margin else 0

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        theme = self._theme
        color = self._color
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        outline = QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5)
        shape = QPainterPath()
        shape.addRoundedRect(outline, 4, 4)
        hovered = self.underMouse() or self.isDown()
        painter.fillPath(shape, theme.color("surface.hover" if hovered else "surface.control"))
        split = self._label_width()
        painter.save()
        painter.setClipPath(shape)
        painter.fillRect(
            split, 0, self.width() - split, self.height(), theme.color(f"{color}.soft")
        )
        painter.restore()
        painter.setPen(theme.color("accent"))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawRoundedRect(outline, 4, 4)
        painter.setFont(self.font())
        painter.setPen(theme.color("accent.text"))
        flags = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft
        painter.drawText(self.rect().adjusted(11, 0, 0, 0), flags, self.text())
        painter.setFont(theme.font("small.strong.num"))
        painter.setPen(theme.color(color))
        painter.drawText(self.rect().adjusted(split + 10, 0, 0, 0), flags, self._margin)
