"""What is said in words: in place of the list, and below its last row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from engine.words import tr
from gui.kit.controls import Hairline, label
from gui.kit.icons import pixmap

if TYPE_CHECKING:
    from gui.browser.messages import Message
    from gui.kit.theme import Theme


class EndLine(QWidget):
    """Below the last row: what is still to come, or why it doesn't."""

    acted = Signal()

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName(name)
        self._theme: Theme | None = None
        self._picture = "cloud"
        self._mark = QLabel()
        self.words = label("", "secondary", f"{name} words")
        self.words.setWordWrap(True)
        self.button = QPushButton()
        self.button.setObjectName(f"{name} button")
        self.button.clicked.connect(self.acted)
        line = QHBoxLayout()
        line.setContentsMargins(12, 7, 12, 7)
        line.setSpacing(8)
        line.addWidget(self._mark)
        line.addWidget(self.words, 1)
        line.addWidget(self.button)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.setSpacing(0)
        whole.addWidget(Hairline())
        whole.addLayout(line)
        self.hide()

    def show_message(self, message: Message | None) -> None:
        """Say ``message``; None for nothing to say."""
        self.setVisible(message is not None)
        if message is None:
            return
        self._picture = message.picture
        title = tr(message.title)
        self.words.setText(title)
        self.setAccessibleName(title)
        self.button.setText(tr(message.action))
        self.button.setVisible(bool(message.action))
        self._paint()

    def set_theme(self, theme: Theme) -> None:
        """Take the colours of ``theme``."""
        self._theme = theme
        self.words.setFont(theme.font("small"))
        self.button.setFont(theme.font("small"))
        self._paint()

    def _paint(self) -> None:
        if self._theme is not None:
            color = self._theme.color("text.tertiary")
            size = self._theme.grown(16)
            self._mark.setPixmap(pixmap(self._picture, color, size, self.devicePixelRatioF()))


class MessagePanel(QWidget):
    """Stands in place of the list when there is nothing to list, and says why."""

    acted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("message")
        self._theme: Theme | None = None
        self._picture = "info"
        self._mark = QLabel()
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
        title, detail = tr(message.title), tr(message.detail)
        self.title.setText(title)
        self.detail.setText(detail)
        self.detail.setVisible(bool(detail))
        self.button.setText(tr(message.action))
        self.button.setVisible(bool(message.action))
        self.setAccessibleName(f"{title}. {detail}".strip())
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
            size = self._theme.grown(24)
            self._mark.setFixedSize(size, size)
            self._mark.setPixmap(pixmap(self._picture, color, size, self.devicePixelRatioF()))
