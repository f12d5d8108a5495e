"""Strips with one sentence: what was found, what went wrong. Never a dialog."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QGuiApplication, QPainter, QPaintEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QToolButton, QVBoxLayout, QWidget
from typing_extensions import override

from engine.words import tr
from gui.kit.controls import label
from gui.kit.icons import icon, pixmap
from gui.kit.messages import details, sentence
from gui.kit.wrap import WrapRow

if TYPE_CHECKING:
    from collections.abc import Callable

    from gui.kit.theme import Theme


_LEAST_LETTERS = 36


class _Words(QWidget):
    """What a notice says: room for so many letters, or its buttons go below it."""

    @override
    def minimumSizeHint(self) -> QSize:
        width = _LEAST_LETTERS * self.fontMetrics().averageCharWidth()
        return QSize(width, super().minimumSizeHint().height())


class Notice(QWidget):
    """An icon, a bold line, perhaps a second one, buttons, and a cross that closes it."""

    closed = Signal()

    def __init__(self, name: str, picture: str, color: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName(name)
        self._picture = picture
        self._color = color
        self._theme: Theme | None = None
        self._mark = QLabel()
        self.line = label("", "plain", "sentence")
        self.line.setWordWrap(True)
        self.second = label("", "small", "second line")
        self.second.setWordWrap(True)
        said = _Words()
        words = QVBoxLayout(said)
        words.setContentsMargins(0, 0, 0, 0)
        words.setSpacing(1)
        words.addWidget(self.line)
        words.addWidget(self.second)
        self._cross = QToolButton()
        self._cross.setAutoRaise(True)
        self._cross.setAccessibleName(tr("Close this notice"))
        self._cross.setToolTip(tr("Close"))
        self._cross.clicked.connect(self.dismiss)
        self._row = WrapRow(keeps_widths=True)
        self._row.set_gap(12)
        self._row.add(said, 1)
        self._buttons = WrapRow()
        line = QHBoxLayout(self)
        line.setContentsMargins(16, 9, 12, 9)
        line.setSpacing(12)
        line.addWidget(self._mark, 0, Qt.AlignmentFlag.AlignVCenter)
        line.addLayout(self._row, 1)
        line.addWidget(self._cross)
        self.hide()

    def add_button(self, text: str) -> QPushButton:
        """A push button before the cross; below the words where these would become a pillar."""
        button = QPushButton(text)
        if not self._buttons.count():
            held = QWidget()
            held.setLayout(self._buttons)
            self._row.add(held, 0, Qt.AlignmentFlag.AlignVCenter)
        self._buttons.add(button)
        return button

    def tell(self, line: str, second: str = "") -> None:
        """Show the strip with these words."""
        self.line.setText(line)
        self.second.setText(second)
        self.second.setVisible(bool(second))
        self.setAccessibleName(f"{line} {second}".strip())
        self.show()

    def dismiss(self) -> bool:
        """Close the strip. Returns whether it was open."""
        was_open = not self.isHidden()
        if was_open:
            self.hide()
            self.closed.emit()
        return was_open

    def set_theme(self, theme: Theme) -> None:
        """Take the colours of ``theme``."""
        self._theme = theme
        color = theme.color("accent" if self._color == "accent" else self._color)
        size, small = theme.grown(18), theme.grown(16)
        self._mark.setFixedSize(size + 2, size + 2)
        self._mark.setPixmap(pixmap(self._picture, color, size, self.devicePixelRatioF()))
        self._cross.setFixedSize(small + 12, small + 12)
        self._cross.setIcon(icon("x", theme.color("text.secondary"), small))
        self._cross.setIconSize(QSize(small, small))
        self.update()

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        if self._theme is None:
            return
        painter = QPainter(self)
        painter.fillRect(self.rect(), self._theme.color(f"{self._color}.soft"))
        painter.fillRect(0, self.height() - 1, self.width(), 1, self._theme.color("line.hair"))


class TroubleNotice(Notice):
    """The one strip for everything that went wrong; the details can be copied."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("trouble", "triangle-alert", "over", parent)
        self._details = ""
        self._way: Callable[[], object] | None = None
        self._help = self.add_button("")
        self._help.clicked.connect(self._on_help)
        self._copy = self.add_button(tr("Copy details"))
        self._copy.clicked.connect(self._on_copy)

    def report(
        self, error: BaseException, way_out: tuple[str, Callable[[], object]] | None = None
    ) -> None:
        """Say what went wrong; ``way_out`` is a button that helps, and what it does."""
        self._details = details(error)
        self._way = way_out[1] if way_out else None
        self._help.setText(way_out[0] if way_out else "")
        self._help.setVisible(way_out is not None)
        self.tell(sentence(error))

    def report_sentence(self, text: str) -> None:
        """Say ``text``, which is all that is known."""
        self._details = text
        self._help.hide()
        self.tell(text)

    def withdraw(self, error: BaseException) -> None:
        """Close the strip if it tells of ``error``, which holds no more."""
        if self.line.text() == sentence(error):
            self.dismiss()

    def _on_help(self) -> None:
        if self._way is not None:
            self._way()

    def _on_copy(self) -> None:
        QGuiApplication.clipboard().setText(self._details)
