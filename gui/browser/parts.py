"""The browser's own small widgets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QPoint, QRect, Qt, Signal
from PySide6.QtGui import QAction, QActionGroup, QPainter, QPaintEvent
from PySide6.QtWidgets import (
    QLabel,
    QLineEdit,
    QMenu,
    QPushButton,
    QToolButton,
    QVBoxLayout,
    QWidget,
)
from typing_extensions import override

from gui.browser.listing import Sort
from gui.browser.rows import Source
from gui.kit.controls import Segments, label
from gui.kit.format import count
from gui.kit.icons import icon, pixmap
from gui.kit.shortcuts import leave_to_window

if TYPE_CHECKING:
    from collections.abc import Mapping

    from PySide6.QtGui import QKeyEvent

    from gui.browser.listing import Wanted
    from gui.browser.messages import Message
    from gui.kit.theme import Theme

SOURCES = {
    Source.CATALOGUE: "Catalogue",
    Source.HUB: "Hub",
    Source.LOCAL: "This computer",
    Source.OWN: "Favourites, and what was opened last",
}
_BESIDE_HINT = 90
"""Room that the magnifying glass and the shortcut take beside the hint."""
MAX_TYPED = 1_000_000
"""A config.json may be pasted; nothing else comes near."""


class SearchField(QLineEdit):
    """Takes words, a link, ``org/repo:quant``, a path, or a pasted config."""

    left_downwards = Signal()
    """The down arrow was pressed: on to the list."""

    def __init__(self, hint: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("search")
        self.setPlaceholderText(hint)
        self.setAccessibleName("Find a model")
        self.setMaxLength(MAX_TYPED)
        self.setStyleSheet("QLineEdit { padding-left: 1px; }")
        # Drops go to the window, which takes whole files; here they would become text.
        self.setAcceptDrops(False)
        self._theme: Theme | None = None
        self._glass = QAction(self)
        self.addAction(self._glass, QLineEdit.ActionPosition.LeadingPosition)
        self._cross = QAction("Clear", self)
        self._cross.triggered.connect(self.clear)
        self._cross.setVisible(False)
        self.addAction(self._cross, QLineEdit.ActionPosition.TrailingPosition)
        self.textChanged.connect(self._on_text)

    def set_theme(self, theme: Theme) -> None:
        """Take the colours of ``theme``."""
        self._theme = theme
        self._glass.setIcon(icon("search", theme.color("text.tertiary")))
        self._cross.setIcon(icon("x", theme.color("text.tertiary")))

    def _on_text(self, text: str) -> None:
        self._cross.setVisible(bool(text))

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if self.text() or self._theme is None:
            return
        room = self.width() - self.fontMetrics().horizontalAdvance(self.placeholderText())
        if room < _BESIDE_HINT:
            return
        painter = QPainter(self)
        painter.setFont(self._theme.font("caption"))
        painter.setPen(self._theme.color("text.tertiary"))
        place = QRect(self.rect()).adjusted(0, 0, -9, 0)
        painter.drawText(
            place, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, "Ctrl F"
        )

    @override
    def event(self, event: QEvent) -> bool:
        return leave_to_window(event, self) or super().event(event)

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Down:
            self.left_downwards.emit()
            event.accept()
            return
        if event.key() == Qt.Key.Key_Escape and self.text():
            self.clear()
            event.accept()
            return
        super().keyPressEvent(event)


class OrderButton(QToolButton):
    """Names the order of the rows and offers the others; the same again turns it round."""

    picked = Signal(object)
    """A ``Sort``."""

    def __init__(self, name: str, tip: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName(name)
        self.setAutoRaise(True)
        self.setToolTip(tip)
        self._orders = QMenu(self)
        group = QActionGroup(self._orders)
        for order in Sort:
            action = QAction(order.value, self._orders)
            action.setCheckable(True)
            action.setData(order.value)
            group.addAction(action)
            self._orders.addAction(action)
        group.triggered.connect(self._on_order)
        self.clicked.connect(self._on_clicked)

    def show_order(self, wanted: Wanted) -> None:
        """Name the order in force."""
        words = "descending" if wanted.descending else "ascending"
        self.setText(f"{wanted.sort.value} {wanted.arrow}")
        self.setAccessibleName(f"{self.toolTip()}: {wanted.sort.value}, {words}")
        for action in self._orders.actions():
            action.setChecked(action.text() == wanted.sort.value)

    def set_theme(self, theme: Theme) -> None:
        """Take the colours of ``theme``."""
        self.setFont(theme.font("caption"))
        color = theme.colors["text.secondary"]
        self.setStyleSheet(f"QToolButton {{ color: {color}; border: none; }}")

    def _on_clicked(self) -> None:
        corner = QPoint(self.width() - self._orders.sizeHint().width(), self.height() + 2)
        self._orders.popup(self.mapToGlobal(corner))

    def _on_order(self, action: QAction) -> None:
        self.picked.emit(Sort(str(action.data())))


class SourceChoice(Segments):
    """Catalogue, Hub, this computer, and what one keeps: the last as a star."""

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(name, tuple((words, source) for source, words in SOURCES.items()), parent)
        star = self.buttons[-1]
        star.setText("")
        star.setAccessibleName(SOURCES[Source.OWN])
        star.setToolTip(SOURCES[Source.OWN])

    def set_theme(self, theme: Theme) -> None:
        """Take the colours and sizes of ``theme``."""
        self.setFixedHeight(theme.size("control"))
        self.buttons[-1].setIcon(icon("star", theme.color("text.secondary"), 14))
        for button in self.buttons:
            button.setFont(theme.font("small"))

    def show_source(self, source: Source, counts: Mapping[Source, int]) -> None:
        """Mark ``source``; say how many models are on this computer, once that is known.

        The catalogue's number is in the line below, and four names with two numbers are too wide.
        """
        self.set_current(source)
        number = counts.get(Source.LOCAL)
        words = SOURCES[Source.LOCAL]
        here = self.buttons[list(SOURCES).index(Source.LOCAL)]
        here.setText(words if number is None else f"{words} {count(number)}")


class MessagePanel(QWidget):
    """Stands in place of the list when there is nothing to list, and says why."""

    acted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("message")
        self._theme: Theme | None = None
        self._picture = "info"
        self._mark = QLabel()
        self._mark.setFixedSize(24, 24)
        self.title = label("", "plain", "title")
        self.detail = label("", "secondary", "detail")
        for part in (self.title, self.detail):
            part.setWordWrap(True)
        self.button = QPushButton()
        self.button.clicked.connect(self.acted)
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 24, 12, 12)
        column.setSpacing(4)
        column.addWidget(self._mark)
        column.addSpacing(4)
        column.addWidget(self.title)
        column.addWidget(self.detail)
        column.addSpacing(8)
        column.addWidget(self.button, 0, Qt.AlignmentFlag.AlignLeft)
        column.addStretch(1)

    def show_message(self, message: Message) -> None:
        """Say ``message``."""
        self._picture = message.picture
        self.title.setText(message.title)
        self.detail.setText(message.detail)
        self.detail.setVisible(bool(message.detail))
        self.button.setText(message.action)
        self.button.setVisible(bool(message.action))
        self.setAccessibleName(f"{message.title}. {message.detail}".strip())
        self._paint()

    def set_theme(self, theme: Theme) -> None:
        """Take the colours of ``theme``."""
        self._theme = theme
        self.title.setFont(theme.font("body.strong"))
        self.detail.setFont(theme.font("small"))
        self._paint()

    def _paint(self) -> None:
        if self._theme is not None:
            color = self._theme.color("text.tertiary")
            self._mark.setPixmap(pixmap(self._picture, color, 24, self.devicePixelRatioF()))
