"""The narrow browser's list."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QModelIndex, Qt, Signal
from PySide6.QtWidgets import QHeaderView, QTableView
from typing_extensions import override

from engine.words import tr
from gui.kit.shortcuts import keep_letter

if TYPE_CHECKING:
    from PySide6.QtCore import QEvent
    from PySide6.QtGui import QKeyEvent

    from gui.browser.delegate import RowDelegate
    from gui.browser.rows import RowModel
    from gui.kit.theme import Theme


class RowList(QTableView):
    """One column whose rows are opened by click or Enter, not by walking past them.

    A table, since Qt's list places every row anew when some come in: at 20,000 of them it loses
    where a person was.
    """

    entered_row = Signal(QModelIndex)
    inside_wanted = Signal(QModelIndex)
    """The right arrow was pressed: what is in the row?"""
    left = Signal()
    """The left arrow was pressed."""

    def __init__(self, rows: RowModel, delegate: RowDelegate) -> None:
        super().__init__()
        self.setObjectName("models")
        self.setAccessibleName(tr("Models"))
        self.setFrameShape(QTableView.Shape.NoFrame)
        self.setMouseTracking(True)
        self.setShowGrid(False)
        self.setWordWrap(False)
        self.setTabKeyNavigation(False)
        self.setSelectionMode(QTableView.SelectionMode.SingleSelection)
        self.setVerticalScrollMode(QTableView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setEditTriggers(QTableView.EditTrigger.NoEditTriggers)
        self.verticalHeader().hide()
        self.verticalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        self.horizontalHeader().hide()
        self.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Stretch)
        self.setModel(rows)
        self.setItemDelegate(delegate)

    def set_theme(self, theme: Theme) -> None:
        """Take the colours and sizes of ``theme``."""
        self.verticalHeader().setMinimumSectionSize(1)
        self.verticalHeader().setDefaultSectionSize(theme.size("row.browser"))
        self.setStyleSheet(f"QTableView {{ background: {theme.colors['surface.window']}; }}")
        self.viewport().update()

    @override
    def event(self, event: QEvent) -> bool:
        return keep_letter(event) or super().event(event)

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter} and self.currentIndex().isValid():
            self.entered_row.emit(self.currentIndex())
            event.accept()
            return
        if event.key() == Qt.Key.Key_Right and self.currentIndex().isValid():
            self.inside_wanted.emit(self.currentIndex())
            return
        if event.key() == Qt.Key.Key_Left:
            self.left.emit()
            return
        super().keyPressEvent(event)
