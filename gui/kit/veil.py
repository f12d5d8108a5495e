"""What makes a part of the window pale while what it shows belongs to an earlier plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QPainter, QPalette
from PySide6.QtWidgets import QWidget
from typing_extensions import override

if TYPE_CHECKING:
    from PySide6.QtGui import QPaintEvent

_LEFT = 0.35
"""How much of what lies below is seen."""


class Veil(QWidget):
    """The ground's colour over all of a widget, which works on below it as before.

    Qt's own effect of this look paints what the style sheet fills black where only a part of
    the widget is drawn anew.
    """

    def __init__(self, over: QWidget) -> None:
        super().__init__(over)
        self._over = over
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        over.installEventFilter(self)
        self.hide()

    def lay(self, *, laid: bool) -> None:
        """Cover the widget, or uncover it."""
        self.setGeometry(self._over.rect())
        self.raise_()
        self.setVisible(laid)

    @override
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Resize:
            self.setGeometry(self._over.rect())
        return super().eventFilter(watched, event)

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        color = self.palette().color(QPalette.ColorRole.Base)
        color.setAlphaF(1 - _LEFT)
        QPainter(self).fillRect(event.rect(), color)
