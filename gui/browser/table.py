"""The expanded browser's table: one model a row, its figures in columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from PySide6.QtCore import (
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    QPoint,
    QRect,
    QSize,
    Qt,
    Signal,
)
from PySide6.QtGui import QFontMetrics, QPainter, QPen
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHeaderView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableView,
    QWidget,
)
from typing_extensions import override

from engine.words import tr
from gui.browser.rows import (
    BADGE_ROLE,
    CHOSEN_ROLE,
    FAVOURITE_ROLE,
    PLACE_MARKS,
    ROW_ROLE,
    Badge,
    Row,
)
from gui.browser.table_model import RIGHT, SORTS, TITLES, Column, TableModel
from gui.kit.badge import paint_badge
from gui.kit.format import DASH
from gui.kit.icons import pixmap
from gui.kit.shortcuts import keep_letter

if TYPE_CHECKING:
    from PySide6.QtCore import QEvent
    from PySide6.QtGui import QKeyEvent, QResizeEvent

    from gui.kit.theme import Theme

Index = QModelIndex | QPersistentModelIndex
_SIDE = 16
_GAP = 6
_LOCK = 12
_LEAST_COLUMN = 60
_NARROW = 760
"""Width below which the authors' column gives way; the name's tooltip has it."""
_LEAST_NAME = 110
_FIRST_TO_GO = (Column.FORMAT, Column.CONTEXT, Column.PARAMETERS)
"""Columns that give way while the name has less than that; the details have what they say."""
_ARROW = " \N{DOWNWARDS ARROW}"


def _samples() -> dict[Column, str]:
    """What has to find room in each column but the name's."""
    return {
        Column.AUTHOR: "deepseek-ai",
        Column.PARAMETERS: tr(TITLES[Column.PARAMETERS]) + _ARROW,
        Column.FORMAT: "FP8 static",
        Column.WEIGHTS: f"{tr(TITLES[Column.WEIGHTS])} GiB{_ARROW}",
        Column.CONTEXT: tr(TITLES[Column.CONTEXT]) + _ARROW,
        Column.SPARE: tr("Context {longest}").format(longest="128k"),
    }


class TableDelegate(QStyledItemDelegate):
    """Paints a cell. Numbers and badges are never cut; names are, in their middle."""

    def __init__(self, theme: Theme, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._theme = theme

    def set_theme(self, theme: Theme) -> None:
        """Take the colours and sizes of ``theme``."""
        self._theme = theme

    @override
    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        row = cast("Row | None", index.data(ROW_ROLE))
        if row is None:
            return
        theme = self._theme
        rect = option.rect  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]  # public in Qt, absent from the stubs
        state = option.state  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]  # public in Qt, absent from the stubs
        painter.save()
        painter.setClipRect(rect)
        if state & QStyle.StateFlag.State_Selected:
            painter.fillRect(rect, theme.color("surface.selected"))
        painter.fillRect(
            QRect(rect.left(), rect.bottom(), rect.width(), 1), theme.color("line.hair")
        )
        column = Column(index.column())
        if column is Column.NAME:
            self._chosen_bar(painter, rect, index)
        left = _SIDE if column is Column.NAME else 8
        right = _SIDE if column is Column.SPARE else 8
        inner = rect.adjusted(left, 0, -right, -1)
        if column is Column.SPARE:
            self._spare(painter, inner, index)
        else:
            self._text(painter, inner, index, row)
        if column is Column.NAME and state & QStyle.StateFlag.State_HasFocus:
            painter.setPen(QPen(theme.color("line.focus"), theme.size("line.focus")))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRect(rect.adjusted(1, 1, -1, -2))
        painter.restore()

    def _chosen_bar(self, painter: QPainter, rect: QRect, index: Index) -> None:
        if index.data(CHOSEN_ROLE):
            width = self._theme.size("line.selection.bar")
            bar = QRect(rect.left(), rect.top(), width, rect.height())
            painter.fillRect(bar, self._theme.color("accent"))

    def _text(self, painter: QPainter, inner: QRect, index: Index, row: Row) -> None:
        theme, column = self._theme, Column(index.column())
        is_name = column is Column.NAME
        font = theme.font("table.medium" if is_name else "table.num")
        metrics = QFontMetrics(font)
        text = cast("str", index.data(Qt.ItemDataRole.DisplayRole))
        is_quiet = column is Column.AUTHOR or text == DASH
        painter.setFont(font)
        painter.setPen(theme.color("text.secondary" if is_quiet else "text.primary"))
        marks = self._marks(index, row) if is_name else ()
        size = theme.grown(_LOCK)
        taken = len(marks) * (size + _GAP)
        shown = metrics.elidedText(text, Qt.TextElideMode.ElideMiddle, inner.width() - taken)
        if column in RIGHT:
            shown = text
        align = cast("Qt.AlignmentFlag", index.data(Qt.ItemDataRole.TextAlignmentRole))
        painter.drawText(inner, align, shown)
        left = inner.left() + metrics.horizontalAdvance(shown) + _GAP
        top = inner.center().y() - size // 2
        ratio = painter.device().devicePixelRatio()
        for picture in marks:
            ink = theme.color("text.tertiary")
            painter.drawPixmap(QPoint(left, top), pixmap(picture, ink, size, ratio))
            left += size + _GAP

    def _marks(self, index: Index, row: Row) -> tuple[str, ...]:
        """Icons behind the name."""
        lock = ("lock",) if row.gated else ()
        marks = (*lock, *(mark for place, mark in PLACE_MARKS.items() if place in row.places))
        return (*marks, "star") if index.data(FAVOURITE_ROLE) else marks

    def _spare(self, painter: QPainter, inner: QRect, index: Index) -> None:
        badge = cast("Badge | None", index.data(BADGE_ROLE))
        if badge is None:
            return
        theme = self._theme
        text = cast("str", index.data(Qt.ItemDataRole.DisplayRole))
        if badge.fit is None:
            painter.setFont(theme.font("small.strong.num"))
            painter.setPen(theme.color("text.tertiary"))
            painter.drawText(
                inner, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, text
            )
            return
        top = inner.center().y() + 1 - theme.size("badge") // 2
        paint_badge(painter, theme, QPoint(inner.right() + 1, top), badge.fit, text)


class ModelTable(QTableView):
    """Rows are walked with the keyboard and opened by Enter or a double click."""

    opened = Signal(str)
    """Key of the row."""
    looked_at = Signal(str)
    """Key of the row that is current now."""
    menu_wanted = Signal(object, QPoint)
    """The ``Row`` and where on the screen its menu is asked for."""
    sort_wanted = Signal(object)
    """The ``Sort`` of the column whose heading was clicked."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("models table")
        self.setAccessibleName(tr("Models"))
        self.rows = TableModel(self)
        self._delegate = TableDelegate(theme, self)
        self._widths: dict[Column, int] = {}
        """Of the columns that are always there or give way last."""
        self.setModel(self.rows)
        self.setItemDelegate(self._delegate)
        self.setSelectionBehavior(QTableView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QTableView.SelectionMode.SingleSelection)
        self.setShowGrid(False)
        self.setWordWrap(False)
        self.setTabKeyNavigation(False)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.verticalHeader().hide()
        head = self.horizontalHeader()
        head.setSectionsClickable(True)
        head.setHighlightSections(False)
        head.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        head.setSectionResizeMode(Column.NAME, QHeaderView.ResizeMode.Stretch)
        head.sectionClicked.connect(self._on_heading)
        self.doubleClicked.connect(self._on_opened)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.customContextMenuRequested.connect(self._on_menu)
        self.set_theme(theme)

    def set_theme(self, theme: Theme) -> None:
        """Take the colours and sizes of ``theme``."""
        self._delegate.set_theme(theme)
        self.verticalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        self.verticalHeader().setDefaultSectionSize(theme.size("row.table.roomy"))
        head = self.horizontalHeader()
        head.setFixedHeight(theme.size("control.small") + 10)
        head.setFont(theme.font("small"))
        # With large text the columns scroll, before the name has no room at all.
        head.setMinimumSectionSize(theme.grown(_LEAST_COLUMN))
        self._narrow = theme.grown(_NARROW)
        # The first and the last heading stand over what the cells show.
        head.setStyleSheet(
            f"QHeaderView::section:first {{ padding-left: {_SIDE}px; }}"
            f"QHeaderView::section:last {{ padding-right: {_SIDE}px; }}"
        )
        metrics = QFontMetrics(theme.font("table.num"))
        for column, sample in _samples().items():
            extra = 2 * _SIDE + 18 if column is Column.SPARE else 20
            width = metrics.horizontalAdvance(sample) + extra
            self.setColumnWidth(column, width)
            if column is not Column.AUTHOR:
                self._widths[column] = max(width, head.minimumSectionSize())
        self._least_name = theme.grown(_LEAST_NAME)
        self._make_room()
        self.viewport().update()

    def current_key(self) -> str:
        """Key of the current row; empty where there is none."""
        row = cast("Row | None", self.currentIndex().data(ROW_ROLE))
        return row.key if row is not None else ""

    def look_at(self, key: str) -> None:
        """Make ``key`` the current row, where it is shown."""
        place = self.rows.place(key)
        if place is not None:
            self.setCurrentIndex(self.rows.index(place, Column.NAME))

    @override
    def currentChanged(self, current: Index, previous: Index) -> None:
        super().currentChanged(current, previous)  # pyright: ignore[reportArgumentType]  # handed on as it came
        if current.isValid() and (not previous.isValid() or current.row() != previous.row()):
            self.looked_at.emit(self.current_key())

    @override
    def event(self, event: QEvent) -> bool:
        return keep_letter(event) or super().event(event)

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter} and self.currentIndex().isValid():
            self.opened.emit(self.current_key())
            event.accept()
            return
        super().keyPressEvent(event)

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        self._make_room()
        super().resizeEvent(event)

    def _make_room(self) -> None:
        """Columns that say less go before the name is cut to nothing."""
        room = self.viewport().width()
        self.setColumnHidden(Column.AUTHOR, room < self._narrow)
        room -= self._least_name
        taken = sum(self._widths.values())
        for column in _FIRST_TO_GO:
            is_too_much = taken > room
            self.setColumnHidden(column, is_too_much)
            taken -= self._widths[column] * is_too_much

    @override
    def sizeHint(self) -> QSize:
        return QSize(800, 600)

    def _on_menu(self, place: QPoint) -> None:
        under = self.indexAt(place)
        row = cast("Row | None", (under if under.isValid() else self.currentIndex()).data(ROW_ROLE))
        if row is not None:
            self.menu_wanted.emit(row, self.viewport().mapToGlobal(place))

    def _on_opened(self, index: QModelIndex) -> None:
        row = cast("Row | None", index.data(ROW_ROLE))
        if row is not None:
            self.opened.emit(row.key)

    def _on_heading(self, section: int) -> None:
        sort = SORTS.get(Column(section))
        if sort is not None:
            self.sort_wanted.emit(sort)
