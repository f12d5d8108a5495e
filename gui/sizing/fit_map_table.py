"""The table twins of fit map and curve."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, Qt
from PySide6.QtWidgets import QHeaderView, QTableView, QWidget
from typing_extensions import override

from gui.kit.figures_table import set_heights
from gui.sizing.fit_map_words import Grid

if TYPE_CHECKING:
    from PySide6.QtCore import QPersistentModelIndex

    from gui.kit.theme import Theme

    Index = QModelIndex | QPersistentModelIndex

_NO_PARENT = QModelIndex()
_EMPTY = Grid("", (), (), (), ())
_LEAST_COLUMN = 72


class GridModel(QAbstractTableModel):
    """A ``Grid`` as an item model; row headings are the first column, as the eye reads it."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._grid = _EMPTY

    def set_grid(self, grid: Grid) -> None:
        """Show ``grid``."""
        if grid == self._grid:
            return
        self.beginResetModel()
        self._grid = grid
        self.endResetModel()

    @override
    def rowCount(self, parent: Index = _NO_PARENT) -> int:
        return 0 if parent.isValid() else len(self._grid.rows)

    @override
    def columnCount(self, parent: Index = _NO_PARENT) -> int:
        return 0 if parent.isValid() else len(self._grid.columns) + bool(self._grid.rows)

    @override
    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        grid, row, column = self._grid, index.row(), index.column() - 1
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        if column < 0:
            return grid.rows[row] if role == Qt.ItemDataRole.DisplayRole else None
        texts = {
            Qt.ItemDataRole.DisplayRole: grid.texts,
            Qt.ItemDataRole.ToolTipRole: grid.tooltips,
            Qt.ItemDataRole.AccessibleTextRole: grid.tooltips,
        }.get(Qt.ItemDataRole(role))
        return texts[row][column] if texts else None

    @override
    def headerData(
        self,
        section: int,
        orientation: Qt.Orientation,
        role: int = Qt.ItemDataRole.DisplayRole,
    ) -> object:
        if orientation is not Qt.Orientation.Horizontal:
            return None
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        if role != Qt.ItemDataRole.DisplayRole:
            return None
        return self._grid.corner if section == 0 else self._grid.columns[section - 1]


class FitTable(QTableView):
    """What the picture shows, in figures."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("fit table")
        self.grid = GridModel(self)
        self.setModel(self.grid)
        self.setShowGrid(False)
        self.setFrameShape(QTableView.Shape.NoFrame)
        self.setTabKeyNavigation(False)
        self.setWordWrap(False)
        self.verticalHeader().hide()
        head = self.horizontalHeader()
        head.setHighlightSections(False)
        head.setSectionsClickable(False)
        head.setMinimumSectionSize(_LEAST_COLUMN)
        head.setSectionResizeMode(QHeaderView.ResizeMode.Stretch)

    def set_theme(self, theme: Theme) -> None:
        """Take the fonts and heights of ``theme``."""
        set_heights(self, theme)
        self.setFont(theme.font("table.num"))

    def show_grid(self, grid: Grid | None, name: str) -> None:
        """Show ``grid`` under ``name``; None shows nothing."""
        self.setAccessibleName(name)
        self.grid.set_grid(grid or _EMPTY)
