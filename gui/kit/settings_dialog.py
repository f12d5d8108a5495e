"""The one place for what holds everywhere: a list of pages, and the page that is open.

Every change on a page takes effect at once, so there is nothing to apply and nothing to cancel.
Who has something to set adds a page; the dialog knows none of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QFontMetrics
from PySide6.QtWidgets import (
    QHBoxLayout,
    QListWidget,
    QListWidgetItem,
    QScrollArea,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)
from typing_extensions import override

from engine.words import tr
from gui.kit.controls import Ground, Hairline, label
from gui.kit.dialogs import GrowingDialog, closing_row, leave_button
from gui.kit.icons import icon

if TYPE_CHECKING:
    from PySide6.QtGui import QResizeEvent

    from gui.kit.theme import Theme

_PICTURE = 18
_ROW_PADDING = 8
_LIST_PADDING, _GAP = 40, 18
"""What a row needs beside its icon and its title."""
_WIDTH, _HEIGHT = 760, 560


class SettingsDialog(GrowingDialog):
    """Opened with ``open_page`` or ``open()``; keeps its pages between two openings."""

    opening = Signal()
    """It is about to be shown: time for a page to show what holds now."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent, _WIDTH, _HEIGHT)
        self.setObjectName("settings dialog")
        self.setWindowTitle(tr("Settings"))
        self._theme = theme
        self._pictures: list[str] = []
        self._list_width = 0
        self.list = QListWidget()
        self.list.setObjectName("pages")
        self.list.setAccessibleName(tr("Pages"))
        self.list.setProperty("role", "pages")
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.stack = QStackedWidget()
        self.list.currentRowChanged.connect(self.stack.setCurrentIndex)
        buttons = closing_row(leave_button(self, tr("Close")))
        buttons.setContentsMargins(24, 12, 24, 16)
        right = QVBoxLayout()
        right.setSpacing(0)
        right.addWidget(self.stack, 1)
        right.addLayout(buttons)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        row.addWidget(self.list)
        row.addWidget(Hairline(upright=True))
        row.addLayout(right, 1)

    def add_page(self, title: str, picture: str, widget: QWidget) -> None:
        """Add a page below those that are there.

        Args:
            title: what the list and the page's head say, in the language in force.
            picture: the name of an icon.
            widget: the page; it scrolls where it is higher than the dialog.
        """
        self._pictures.append(picture)
        item = QListWidgetItem(title)
        item.setToolTip(title)
        self.list.addItem(item)
        self.stack.addWidget(_rolled(title, widget))
        if self.list.count() == 1:
            self.list.setCurrentRow(0)
        self.set_theme(self._theme)

    def open_page(self, title: str) -> None:
        """Open the dialog at the page ``title``."""
        for item in self.list.findItems(title, Qt.MatchFlag.MatchExactly):
            self.list.setCurrentItem(item)
        self.open()

    def set_theme(self, theme: Theme) -> None:
        """Take colours and text size of ``theme``."""
        self._theme = theme
        picture_size = theme.grown(_PICTURE)
        self.list.setIconSize(QSize(picture_size, picture_size))
        for row, picture in enumerate(self._pictures):
            item = self.list.item(row)
            item.setIcon(icon(picture, theme.color("text.secondary"), picture_size))
            item.setSizeHint(QSize(0, theme.size("control") + _ROW_PADDING))
        metrics = QFontMetrics(theme.font("body"))
        titles = (self.list.item(row).text() for row in range(self.list.count()))
        widest = max((metrics.horizontalAdvance(title) for title in titles), default=0)
        self._list_width = widest + picture_size + _LIST_PADDING + theme.grown(_GAP)
        self._share_width()

    def _share_width(self) -> None:
        """Titles are whole, but most of the dialog is the page's."""
        self.list.setFixedWidth(min(self._list_width, self.width() * 3 // 8))

    @override
    def resizeEvent(self, arg__1: QResizeEvent) -> None:
        super().resizeEvent(arg__1)
        self._share_width()

    @override
    def open(self) -> None:
        if not self.isVisible():
            self.opening.emit()
        super().open()
        self.list.setFocus()


def _rolled(title: str, page: QWidget) -> QScrollArea:
    """``page`` under its title, in what scrolls."""
    body = Ground(window=True)
    column = QVBoxLayout(body)
    column.setContentsMargins(24, 20, 24, 8)
    column.setSpacing(16)
    column.addWidget(label(title, "title"))
    column.addWidget(page, 1)
    made = QScrollArea()
    made.setFrameShape(QScrollArea.Shape.NoFrame)
    made.setWidgetResizable(True)
    made.setAccessibleName(title)
    made.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAsNeeded)
    made.setWidget(body)
    return made
