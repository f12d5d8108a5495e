"""The tab Compare: plans as bars on one scale, and below them their figures as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHBoxLayout,
    QHeaderView,
    QPushButton,
    QScrollArea,
    QStackedWidget,
    QTableWidget,
    QTableWidgetItem,
    QVBoxLayout,
    QWidget,
)

from engine.units import UnitSystem
from engine.words import tr, tr_later
from gui.kit.controls import ElidedLabel, Ground, Hairline, label, running_text
from gui.kit.icons import icon
from gui.sizing import comparison
from gui.sizing.compare_list import PlansAxis, PlansList, PlansModel, row_height

if TYPE_CHECKING:
    from PySide6.QtGui import QFont

    from gui.kit.theme import Theme
    from gui.sizing.compare_view_model import CompareViewModel
    from gui.sizing.comparison import Entry, Word

_SIDE = 16
_CELL = 3
"""Qt's own margin in a cell of a table."""
_HINT = tr_later(
    "Put plans side by side: another format, runtime, model or machine. The first is the one that "
    "the others differ from."
)


class CompareView(Ground):
    """The page of the tab."""

    add_wanted = Signal()
    open_wanted = Signal(object)
    """The ``Pinned`` plan to put in force."""
    copy_wanted = Signal(str)
    """The table as Markdown."""

    def __init__(self, model: CompareViewModel, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._model = model
        self._theme: Theme | None = None
        self._unit = UnitSystem.BINARY
        self._plans = PlansModel(self)
        self.list = PlansList(self._plans)
        self.axis = PlansAxis(self._plans, self.list)
        self.table = QTableWidget()
        self._note = ElidedLabel("small", name="compare note")
        self._add = _button("add plan", tr("Add this plan"), "plus")
        self._remove = _button("remove plan", tr("Remove"), "x")
        self._first = _button("add first plan", tr("Add this plan"), "plus")
        self._copy = _button("copy comparison", tr("Copy as Markdown"), "copy")
        self._build()
        self._connect()
        self.show_entries(())

    def _build(self) -> None:
        self.pages = QStackedWidget()
        self.pages.addWidget(self._empty_page())
        self.pages.addWidget(self._filled_page())
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.addWidget(self.pages)

    def _filled_page(self) -> QWidget:
        _dress_table(self.table)
        beside = QHBoxLayout()
        beside.setContentsMargins(_SIDE - _CELL, 0, _SIDE - _CELL, 0)
        beside.addWidget(self.table)
        rolled = Ground()
        column = QVBoxLayout(rolled)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.list)
        column.addSpacing(8)
        column.addLayout(beside)
        column.addStretch(1)
        roll = QScrollArea()
        roll.setFrameShape(QScrollArea.Shape.NoFrame)
        roll.setWidgetResizable(True)
        roll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        roll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        roll.setWidget(rolled)
        foot = QHBoxLayout()
        foot.setContentsMargins(_SIDE, 8, _SIDE, 8)
        foot.setSpacing(8)
        foot.addWidget(self._note, 1)
        for button in (self._remove, self._add, self._copy):
            foot.addWidget(button)
        page = QWidget()
        outer = QVBoxLayout(page)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.setSpacing(0)
        outer.addWidget(self.axis)
        outer.addWidget(Hairline())
        outer.addWidget(roll, 1)
        outer.addWidget(Hairline())
        outer.addLayout(foot)
        return page

    def _empty_page(self) -> QWidget:
        page = QWidget()
        words = QVBoxLayout(page)
        words.setContentsMargins(_SIDE, 24, _SIDE, 24)
        words.setSpacing(8)
        words.addWidget(label(tr("Nothing to compare yet"), "strong"))
        hint = running_text("small")
        hint.setText(tr(_HINT))
        words.addWidget(hint)
        words.addWidget(self._first, 0, Qt.AlignmentFlag.AlignLeft)
        words.addStretch(1)
        return page

    def _connect(self) -> None:
        model = self._model
        model.changed.connect(self.show_entries)
        self._add.clicked.connect(self.add_wanted)
        self._first.clicked.connect(self.add_wanted)
        self._remove.clicked.connect(self._on_remove)
        self._copy.clicked.connect(self._on_copy)
        self.list.row_dropped.connect(model.remove)
        self.list.row_moved.connect(model.move)
        self.list.row_opened.connect(self._on_opened)
        self.list.selectionModel().currentRowChanged.connect(self._on_row_changed)
        self.table.currentCellChanged.connect(self._on_cell_changed)

    def set_theme(self, theme: Theme) -> None:
        """Take the colours of ``theme``."""
        self._theme = theme
        self.axis.set_theme(theme)
        self.list.set_theme(theme)
        ink = theme.color("text.primary")
        for button in (self._add, self._first, self._remove, self._copy):
            button.setIcon(icon(str(button.property("picture")), ink, 15, 3))
        self.table.verticalHeader().setMinimumSectionSize(theme.size("row.table"))
        self.table.verticalHeader().setDefaultSectionSize(theme.size("row.table"))
        self.table.horizontalHeader().setFixedHeight(theme.size("header.table"))
        self._fill(self._model.entries)

    def set_unit(self, unit: UnitSystem) -> None:
        """Write sizes in ``unit``."""
        if unit is not self._unit:
            self._unit = unit
            self.show_entries(self._model.entries)

    def show_entries(self, entries: tuple[Entry, ...]) -> None:
        """Show the plans."""
        self.pages.setCurrentIndex(1 if entries else 0)
        self._plans.set_entries(entries, self._unit)
        self._note.set_text(comparison.load_words(entries) if entries else "")
        self._add.setEnabled(not self._model.is_full)
        self._fill(entries)
        self._on_row_changed()

    def _fill(self, entries: tuple[Entry, ...]) -> None:
        if self._theme is None:
            return
        theme, table = self._theme, self.table
        lines = comparison.lines(entries, self._unit)
        heads = comparison.headings(entries, self._unit) if entries else ()
        table.blockSignals(True)  # noqa: FBT003 - Qt's signature
        table.setColumnCount(len(heads))
        table.setRowCount(len(lines))
        for place, head in enumerate(heads):
            item = QTableWidgetItem(head)
            side = Qt.AlignmentFlag.AlignRight if place else Qt.AlignmentFlag.AlignLeft
            item.setTextAlignment(side | Qt.AlignmentFlag.AlignVCenter)
            item.setToolTip(head)
            table.setHorizontalHeaderItem(place, item)
        strong, plain = theme.font("table.strong.num"), theme.font("table.num")
        for row, line in enumerate(lines):
            mark = self._cell(line.letter, theme.font("table.strong"), "accent")
            mark.setTextAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
            table.setItem(row, 0, mark)
            for place, word in enumerate(line.cells, 1):
                table.setItem(row, place, self._figure(word, strong, plain))
        table.blockSignals(False)  # noqa: FBT003 - Qt's signature
        table.setFixedHeight(theme.size("header.table") + len(lines) * theme.size("row.table") + 4)
        self.list.setFixedHeight(len(entries) * row_height(theme))

    def _figure(self, word: Word, strong: QFont, plain: QFont) -> QTableWidgetItem:
        item = self._cell(
            word.text,
            strong if word.differs else plain,
            "text.primary" if word.differs else "text.secondary",
        )
        item.setTextAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        return item

    def _cell(self, text: str, font: QFont, color: str) -> QTableWidgetItem:
        item = QTableWidgetItem(text)
        item.setFont(font)
        if self._theme is not None:
            item.setForeground(self._theme.color(color))
        return item

    def _on_row_changed(self) -> None:
        row = self.list.currentIndex().row()
        self._remove.setEnabled(row >= 0)
        if row >= 0 and row < self.table.rowCount():
            self.table.blockSignals(True)  # noqa: FBT003 - Qt's signature
            self.table.selectRow(row)
            self.table.blockSignals(False)  # noqa: FBT003 - Qt's signature

    def _on_cell_changed(self, row: int) -> None:
        self.list.setCurrentIndex(self._plans.index(row))

    def _on_remove(self) -> None:
        self._model.remove(self.list.currentIndex().row())

    def _on_opened(self, row: int) -> None:
        self.open_wanted.emit(self._model.entries[row].pinned)

    def _on_copy(self) -> None:
        self.copy_wanted.emit(comparison.markdown(self._model.entries, self._unit))


def _dress_table(table: QTableWidget) -> None:
    table.setObjectName("compared figures")
    table.setAccessibleName(tr("Figures of the compared plans"))
    table.setFrameShape(QTableWidget.Shape.NoFrame)
    table.setShowGrid(False)
    table.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
    table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
    table.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
    table.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    table.setTabKeyNavigation(False)
    table.setWordWrap(False)
    table.verticalHeader().hide()
    head = table.horizontalHeader()
    head.setStyleSheet("QHeaderView::section:first { padding-left: 3px; }")
    head.setHighlightSections(False)
    head.setTextElideMode(Qt.TextElideMode.ElideRight)
    head.setSectionsClickable(False)
    head.setSectionResizeMode(QHeaderView.ResizeMode.Stretch)


def _button(name: str, text: str, picture: str) -> QPushButton:
    button = QPushButton(text)
    button.setObjectName(name)
    button.setProperty("picture", picture)
    button.setIconSize(QSize(18, 15))
    return button
