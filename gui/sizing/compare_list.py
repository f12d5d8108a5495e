"""The compared plans as rows: name, bar on one scale with its load line, verdict and limits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from PySide6.QtCore import (
    QAbstractListModel,
    QMimeData,
    QModelIndex,
    QPersistentModelIndex,
    QPoint,
    QRect,
    QRectF,
    QSize,
    Qt,
    Signal,
)
from PySide6.QtGui import QFont, QFontMetrics, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import (
    QAbstractItemView,
    QListView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QWidget,
)
from typing_extensions import override

from engine.budget.model import Region
from engine.units import UnitSystem, format_gib
from engine.words import tr
from gui.kit.badge import paint_badge
from gui.kit.charts import inks
from gui.kit.charts.axis import tick_values
from gui.kit.charts.layout import Scale
from gui.kit.charts.scene import Panel, scene_for
from gui.sizing import comparison

if TYPE_CHECKING:
    from collections.abc import Sequence

    from PySide6.QtGui import QKeyEvent

    from gui.kit.theme import Theme
    from gui.sizing.comparison import Entry, Word

Index = QModelIndex | QPersistentModelIndex
NO_PARENT = QModelIndex()
ITEM_ROLE = Qt.ItemDataRole.UserRole + 1

_SIDE = 16
_LETTER = 20
_TICK_PX = 40
_MARK_RADIUS = 6
_LINES = 3
_OVER_LONGEST = 1.06
"""Axis beyond the longest bar or load line, so that the figure at the line has room."""


@dataclass(frozen=True, slots=True, eq=False)
class Item:
    """All that is painted of one plan."""

    entry: Entry
    letter: str
    words: tuple[tuple[Word, ...], ...]
    panel: Panel | None
    unit: UnitSystem
    sentence: str


@dataclass(frozen=True, slots=True)
class Columns:
    """Where the parts of a row lie."""

    name: tuple[int, int]
    bar: tuple[int, int]
    spare: int
    """Right edges of the three figures."""
    longest: int
    most: int

    @classmethod
    def of(cls, width: int, theme: Theme) -> Columns:
        """The columns of a row that is ``width`` wide."""
        roomy = width >= 900
        scale = theme.text_scale
        most = width - _SIDE
        longest = most - round((104 if roomy else 72) * scale)
        spare = longest - round((120 if roomy else 84) * scale)
        left = _SIDE + round(_LETTER * scale)
        bar = left + round((200 if roomy else 150) * scale)
        end = spare - round((112 if roomy else 96) * scale)
        return cls((left, bar - 12), (bar, max(bar + 40, end)), spare, longest, most)


class PlansModel(QAbstractListModel):
    """The plans in their order; dragging one asks for it to be moved."""

    row_move_wanted = Signal(int, int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._items: tuple[Item, ...] = ()
        self.axis_bytes = 1.0
        self.unit = UnitSystem.BINARY

    def set_entries(self, entries: Sequence[Entry], unit: UnitSystem) -> None:
        """Show ``entries``."""
        panels = [_panel(entry, unit) for entry in entries]
        words = comparison.names(entries)
        items = tuple(
            Item(
                entry,
                comparison.letter(i),
                words[i],
                panel,
                unit,
                comparison.sentence(entry, words[i], i, unit),
            )
            for i, (entry, panel) in enumerate(zip(entries, panels, strict=True))
        )
        longest = max((max(p.stack_bytes, p.load_line_bytes) for p in panels if p), default=1)
        self.axis_bytes, self.unit = longest * _OVER_LONGEST, unit
        if len(items) == len(self._items):
            self._items = items
            self.dataChanged.emit(self.index(0), self.index(len(items) - 1))
            return
        self.beginResetModel()
        self._items = items
        self.endResetModel()

    def item(self, index: int) -> Item:
        """Row ``index``."""
        return self._items[index]

    @override
    def rowCount(self, parent: Index = NO_PARENT) -> int:
        return 0 if parent.isValid() else len(self._items)

    @override
    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        if not index.isValid():
            return None
        item = self._items[index.row()]
        if role == ITEM_ROLE:
            return item
        if role in (Qt.ItemDataRole.AccessibleTextRole, Qt.ItemDataRole.ToolTipRole):
            return item.sentence
        return item.words[0][0].text if role == Qt.ItemDataRole.DisplayRole else None

    @override
    def flags(self, index: Index) -> Qt.ItemFlag:
        if not index.isValid():
            return Qt.ItemFlag.ItemIsDropEnabled
        return super().flags(index) | Qt.ItemFlag.ItemIsDragEnabled

    @override
    def supportedDropActions(self) -> Qt.DropAction:
        return Qt.DropAction.MoveAction

    @override
    def dropMimeData(
        self, data: QMimeData, action: Qt.DropAction, row: int, column: int, parent: Index
    ) -> bool:
        source = _dragged_row(data)
        if source is None or row < 0:
            return False
        self.row_move_wanted.emit(source, row - 1 if row > source else row)
        # The view would remove the row that it dragged; the plans are moved already.
        return False


def _dragged_row(data: QMimeData) -> int | None:
    """The row that a drag within a list carries (Qt's own format: row, column, roles)."""
    raw = bytes(data.data("application/x-qabstractitemmodeldatalist").data())
    return int.from_bytes(raw[:4], "big") if len(raw) >= 4 else None


def _panel(entry: Entry, unit: UnitSystem) -> Panel | None:
    if entry.sizing is None or entry.rank is None:
        return None
    return scene_for(entry.sizing, unit, entry.rank.rank).panels[0]


class _Delegate(QStyledItemDelegate):
    """Paints one plan."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.theme: Theme | None = None

    @override
    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        return QSize(0, row_height(self.theme) if self.theme else 64)

    @override
    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        theme = self.theme
        if theme is None:
            return
        item = cast("Item", index.data(ITEM_ROLE))
        model = cast("PlansModel", index.model())
        place: QRect = option.rect  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType]  # public in Qt, absent from the stubs
        state = option.state  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType]  # public in Qt, absent from the stubs
        columns = Columns.of(place.width(), theme)
        painter.save()
        if state & QStyle.StateFlag.State_Selected:
            painter.fillRect(place, theme.color("surface.selected"))
        _grid(painter, place, columns, model, theme)
        painter.fillRect(
            QRect(place.left(), place.bottom(), place.width(), 1), theme.color("line.hair")
        )
        _name(painter, place, columns, item, theme)
        if item.panel is not None:
            _bar(painter, place, columns, item.panel, model, theme)
        _figures(painter, place, columns, item, theme)
        focused = QStyle.StateFlag.State_HasFocus
        if state & focused:
            painter.setPen(QPen(theme.color("line.focus"), theme.size("line.focus")))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRect(place.adjusted(1, 1, -1, -2))
        painter.restore()


def row_height(theme: Theme) -> int:
    """Three lines of small text with air."""
    return round(16 * theme.text_scale) * _LINES + 16


def _scale(columns: Columns, axis_bytes: float) -> Scale:
    """From left to right: ``Scale`` counts from its bottom up."""
    left, right = columns.bar
    return Scale(0, axis_bytes, right, left)


def _grid(
    painter: QPainter, place: QRect, columns: Columns, model: PlansModel, theme: Theme
) -> None:
    scale = _scale(columns, model.axis_bytes)
    for size, _ in _ticks(columns, model.axis_bytes, model.unit, theme):
        x = place.left() + round(scale.y(size))
        painter.fillRect(QRect(x, place.top(), 1, place.height()), theme.color("line.hair"))


def _ticks(
    columns: Columns, axis_bytes: float, unit: UnitSystem, theme: Theme
) -> list[tuple[float, str]]:
    left, right = columns.bar
    return tick_values(Scale(0, axis_bytes, left, right), unit, _TICK_PX * theme.text_scale)


def _name(painter: QPainter, place: QRect, columns: Columns, item: Item, theme: Theme) -> None:
    left, right = columns.name
    line = round(16 * theme.text_scale)
    top = place.top() + (place.height() - 1 - _LINES * line) // 2
    painter.setFont(theme.font("body.strong"))
    painter.setPen(theme.color("accent"))
    painter.drawText(
        QRect(_SIDE, top, left - _SIDE, line), Qt.AlignmentFlag.AlignVCenter, item.letter
    )
    for number, words in enumerate(item.words):
        row = QRect(left, top + number * line, right - left, line)
        if number == 0:
            plain, strong, color = "small", "small.strong", "text.primary"
        else:
            plain, strong, color = "small", "small.strong", "text.secondary"
        painter.setPen(theme.color(color))
        _words(painter, row, words, theme.font(plain), theme.font(strong))


def _words(
    painter: QPainter, row: QRect, words: tuple[Word, ...], plain: QFont, strong: QFont
) -> None:
    """The words with commas; those that differ in bold. The last that has no room is cut."""
    x = row.left()
    for number, word in enumerate(words):
        font = strong if word.differs else plain
        text = word.text + (", " if number + 1 < len(words) else "")
        metrics = QFontMetrics(font)
        room = row.right() + 1 - x
        if room <= 0:
            return
        painter.setFont(font)
        shown = metrics.elidedText(text, Qt.TextElideMode.ElideRight, room)
        painter.drawText(
            QRect(x, row.top(), room, row.height()), Qt.AlignmentFlag.AlignVCenter, shown
        )
        x += metrics.horizontalAdvance(text)


def _bar(
    painter: QPainter,
    place: QRect,
    columns: Columns,
    panel: Panel,
    model: PlansModel,
    theme: Theme,
) -> None:
    scale = _scale(columns, model.axis_bytes)
    height = round(place.height() * 0.46)
    top = place.top() + (place.height() - 1 - height) // 2
    for segment in panel.segments:
        for low, high, is_spare in segment.parts:
            left, right = round(scale.y(low)), round(scale.y(high))
            gap = 1 if right - left > 2 and segment.region is not Region.HEADROOM else 0
            rect = QRectF(place.left() + left, top, right - left - gap, height)
            ink = inks.ink(theme, segment.region, is_spare=is_spare)
            inks.fill(painter, rect, ink)
            if theme.is_contrast and ink.hatch != "solid":
                painter.setPen(theme.color(inks.color_name(segment.region)))
                painter.drawRect(rect.adjusted(0, 0, -1, -1))
    if panel.over_bytes:
        start = place.left() + scale.y(panel.load_line_bytes)
        end = place.left() + scale.y(panel.stack_bytes)
        over = QRectF(start, top, end - start, height)
        inks.fill(painter, over, inks.over_ink(theme))
        painter.setPen(QPen(theme.color("over"), 2))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawRect(over.adjusted(1, 1, -1, -1))
    _load_line(painter, place, scale, panel, model.unit, theme)


def _load_line(
    painter: QPainter, place: QRect, scale: Scale, panel: Panel, unit: UnitSystem, theme: Theme
) -> None:
    x = place.left() + round(scale.y(panel.load_line_bytes))
    color = theme.color("chart.loadline")
    painter.fillRect(QRect(x - 1, place.top() + 8, 2, place.height() - 17), color)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(QPen(color, 2))
    painter.setBrush(Qt.BrushStyle.NoBrush)
    middle = place.top() + (place.height() - 1) // 2
    painter.drawEllipse(QPoint(x, middle), _MARK_RADIUS, _MARK_RADIUS)
    font = theme.font("caption.num")
    painter.setFont(font)
    text = format_gib(panel.load_line_bytes, unit, digits=1, unit=False)
    metrics = QFontMetrics(font)
    row = QRect(0, 0, metrics.horizontalAdvance(text) + 6, metrics.height())
    row.moveCenter(QPoint(0, middle))
    row.moveLeft(x + _MARK_RADIUS + 2)
    if panel.over_bytes:
        painter.fillRect(row, theme.color("surface.base"))
    painter.drawText(row, Qt.AlignmentFlag.AlignCenter, text)


def _figures(painter: QPainter, place: QRect, columns: Columns, item: Item, theme: Theme) -> None:
    entry = item.entry
    height = theme.size("badge")
    middle = place.top() + (place.height() - 1) // 2
    outcome = entry.outcome
    if outcome is None:
        painter.setFont(theme.font("small"))
        painter.setPen(theme.color("over"))
        left = columns.bar[0]
        row = QRect(left, place.top(), columns.most - left, place.height())
        text = QFontMetrics(painter.font()).elidedText(
            entry.problem, Qt.TextElideMode.ElideRight, row.width()
        )
        painter.drawText(row, Qt.AlignmentFlag.AlignVCenter, text)
        return
    text = comparison.margin_words(entry, item.unit)
    corner = QPoint(place.left() + columns.spare, middle - height // 2)
    paint_badge(painter, theme, corner, outcome, text)
    painter.setFont(theme.font("table.num"))
    painter.setPen(theme.color("text.primary"))
    for right, words in zip(
        (columns.longest, columns.most), comparison.limits_words(entry), strict=True
    ):
        row = QRect(place.left(), place.top(), right, place.height())
        align = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight
        painter.drawText(row, align, words)


class PlansList(QListView):
    """The rows. Return opens a plan, Delete drops it, Alt with an arrow moves it."""

    row_opened = Signal(int)
    row_dropped = Signal(int)
    row_moved = Signal(int, int)

    def __init__(self, model: PlansModel, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("compared plans")
        self.setAccessibleName(tr("Compared plans"))
        self.setAccessibleDescription(
            tr("Return opens a plan, Delete removes it, Alt with an arrow moves it")
        )
        self._delegate = _Delegate(self)
        self.setModel(model)
        self.setItemDelegate(self._delegate)
        self.setFrameShape(QListView.Shape.NoFrame)
        self.setUniformItemSizes(True)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setDragDropMode(QAbstractItemView.DragDropMode.InternalMove)
        self.setDragDropOverwriteMode(False)
        self.doubleClicked.connect(self._on_double_clicked)
        model.row_move_wanted.connect(self.row_moved)

    def set_theme(self, theme: Theme) -> None:
        """Take the colours of ``theme``."""
        self._delegate.theme = theme
        self.viewport().update()

    def _on_double_clicked(self, index: QModelIndex) -> None:
        self.row_opened.emit(index.row())

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        row = self.currentIndex().row()
        moves = {Qt.Key.Key_Up: -1, Qt.Key.Key_Down: 1}
        alt = event.modifiers() & Qt.KeyboardModifier.AltModifier
        key = Qt.Key(event.key())
        if row < 0:
            super().keyPressEvent(event)
        elif alt and key in moves:
            to = row + moves[key]
            self.row_moved.emit(row, to)
            if 0 <= to < self.model().rowCount():
                self.setCurrentIndex(self.model().index(to, 0))
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.row_opened.emit(row)
        elif key in (Qt.Key.Key_Delete, Qt.Key.Key_Backspace):
            self.row_dropped.emit(row)
        else:
            super().keyPressEvent(event)


class PlansAxis(QWidget):
    """The heading of the rows: ticks over the bars, words over the figures."""

    def __init__(self, model: PlansModel, rows: PlansList) -> None:
        super().__init__()
        self._model = model
        self._rows = rows
        self._theme: Theme | None = None
        model.dataChanged.connect(self.update)
        model.modelReset.connect(self.update)

    def set_theme(self, theme: Theme) -> None:
        """Take the colours of ``theme``."""
        self._theme = theme
        self.setFixedHeight(theme.size("header.table") + 4)
        self.update()

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        theme, model = self._theme, self._model
        if theme is None:
            return
        painter = QPainter(self)
        # The rows may be narrower, by their scroll bar.
        columns = Columns.of(self._rows.viewport().width(), theme)
        painter.setPen(theme.color("text.secondary"))
        painter.setFont(theme.font("caption.num"))
        metrics = QFontMetrics(painter.font())
        scale = _scale(columns, model.axis_bytes)
        ticks = _ticks(columns, model.axis_bytes, model.unit, theme)
        for number, (size, text) in enumerate(ticks):
            words = f"{text} {model.unit.value}" if number + 1 == len(ticks) else text
            width = metrics.horizontalAdvance(words)
            place = QRect(round(scale.y(size)) - width // 2, 0, width + 1, self.height())
            painter.drawText(place, Qt.AlignmentFlag.AlignVCenter, words)
        painter.setFont(theme.font("small"))
        align = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight
        roomy = self.width() >= 900
        heads = (tr("To spare"), tr("Longest context") if roomy else tr("Longest"), tr("At once"))
        metrics, left = QFontMetrics(painter.font()), columns.bar[1]
        for right, words in zip((columns.spare, columns.longest, columns.most), heads, strict=True):
            place = QRect(left + 8, 0, right - left - 8, self.height())
            shown = metrics.elidedText(words, Qt.TextElideMode.ElideRight, place.width())
            painter.drawText(place, align, shown)
            left = right
