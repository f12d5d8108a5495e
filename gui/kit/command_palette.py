"""Every command by name: type a few letters, press Enter."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from PySide6.QtCore import (
    QEvent,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    QRect,
    QSize,
    QSortFilterProxyModel,
    Qt,
    QTimer,
)
from PySide6.QtGui import (
    QFontMetrics,
    QKeyEvent,
    QKeySequence,
    QPainter,
    QPaintEvent,
    QStandardItem,
    QStandardItemModel,
)
from PySide6.QtWidgets import (
    QDialog,
    QListView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QVBoxLayout,
    QWidget,
)
from typing_extensions import override

from engine.words import tr
from gui.kit.controls import LineField

if TYPE_CHECKING:
    from collections.abc import Iterable

    from PySide6.QtGui import QAction

    from gui.kit.theme import Theme

Index = QModelIndex | QPersistentModelIndex

_ACTION_ROLE = Qt.ItemDataRole.UserRole + 1
_KEYS_ROLE = Qt.ItemDataRole.UserRole + 2
_WIDTH, _ROWS, _PAD = 520, 12, 12
_BELOW_TOP = 72
_STEPS = (Qt.Key.Key_Up, Qt.Key.Key_Down, Qt.Key.Key_PageUp, Qt.Key.Key_PageDown)


class _Found(QSortFilterProxyModel):
    """Commands that have every typed word; those that begin with it first."""

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._typed = ""

    def look_for(self, text: str) -> None:
        """Keep what ``text`` may mean."""
        self._typed = text.casefold().strip()
        self.invalidate()
        self.sort(0)

    def _words(self, index: Index) -> str:
        return str(index.data()).casefold()

    @override
    def filterAcceptsRow(self, source_row: int, source_parent: Index) -> bool:
        words = self._words(self.sourceModel().index(source_row, 0))
        return all(word in words for word in self._typed.split())

    @override
    def lessThan(self, source_left: Index, source_right: Index) -> bool:
        def rank(index: Index) -> tuple[bool, bool, int]:
            words = self._words(index)
            at_word = f" {self._typed}" in words
            return not words.startswith(self._typed), not at_word, index.row()

        return rank(source_left) < rank(source_right)


class _Rows(QStyledItemDelegate):
    """The command at the left, its shortcut at the right."""

    def __init__(self, theme: Theme, parent: QObject) -> None:
        super().__init__(parent)
        self._theme = theme

    @override
    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        return QSize(0, self._theme.size("row.table") + 6)

    @override
    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        theme = self._theme
        place: QRect = option.rect  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType]  # public in Qt, absent from the stubs
        state = option.state  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType]  # public in Qt, absent from the stubs
        action = cast("QAction", index.data(_ACTION_ROLE))
        if state & QStyle.StateFlag.State_Selected:
            painter.fillRect(place, theme.color("surface.selected"))
        inside = place.adjusted(_PAD, 0, -_PAD, 0)
        keys = str(index.data(_KEYS_ROLE))
        painter.setFont(theme.font("small"))
        painter.setPen(theme.color("text.tertiary"))
        right = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight
        painter.drawText(inside, right, keys)
        inside.adjust(0, 0, -QFontMetrics(painter.font()).horizontalAdvance(keys) - _PAD, 0)
        painter.setFont(theme.font("body"))
        enabled = "text.primary" if action.isEnabled() else "text.disabled"
        painter.setPen(theme.color(enabled))
        metrics = QFontMetrics(painter.font())
        text = metrics.elidedText(str(index.data()), Qt.TextElideMode.ElideRight, inside.width())
        painter.drawText(inside, Qt.AlignmentFlag.AlignVCenter, text)


class CommandPalette(QDialog):
    """Opened with ``open()``; runs the chosen command once it is closed."""

    def __init__(self, commands: Iterable[QAction], theme: Theme, parent: QWidget) -> None:
        super().__init__(parent, Qt.WindowType.Popup)
        self._window = parent
        self.setObjectName("command palette")
        self.setWindowTitle(tr("Commands"))
        self.field = LineField()
        self.field.setObjectName("command")
        self.field.setPlaceholderText(tr("Type a command"))
        self.field.setAccessibleName(tr("Command"))
        self.field.setClearButtonEnabled(True)
        self._found = _Found(self)
        self._found.setSourceModel(_items(commands, self))
        self.list = self._made_list(theme)
        column = QVBoxLayout(self)
        column.setContentsMargins(1, 8, 1, 8)
        column.setSpacing(8)
        field_row = QVBoxLayout()
        field_row.setContentsMargins(_PAD - 4, 0, _PAD - 4, 0)
        field_row.addWidget(self.field)
        column.addLayout(field_row)
        column.addWidget(self.list)
        self.setFixedWidth(min(theme.grown(_WIDTH), parent.width() - 2 * _PAD))
        self._row_height = theme.size("row.table") + 6
        self._edge = theme.color("line.control")
        self.field.textChanged.connect(self._on_typed)
        self.list.clicked.connect(self._run)
        self.field.installEventFilter(self)
        self._on_typed("")

    def _made_list(self, theme: Theme) -> QListView:
        made = QListView()
        made.setObjectName("commands")
        made.setAccessibleName(tr("Commands"))
        made.setModel(self._found)
        made.setItemDelegate(_Rows(theme, self))
        made.setFrameShape(QListView.Shape.NoFrame)
        made.setUniformItemSizes(True)
        made.setEditTriggers(QListView.EditTrigger.NoEditTriggers)
        made.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        return made

    @override
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            if event.key() in _STEPS:
                self.list.keyPressEvent(event)
                return True
            if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
                self._run(self.list.currentIndex())
                return True
        return super().eventFilter(watched, event)

    @override
    def open(self) -> None:
        window = self._window
        corner = window.mapToGlobal(window.rect().topLeft())
        self.adjustSize()
        self.move(corner.x() + (window.width() - self.width()) // 2, corner.y() + _BELOW_TOP)
        super().open()
        self.field.setFocus()

    def _on_typed(self, text: str) -> None:
        self._found.look_for(text)
        self.list.setCurrentIndex(self._found.index(0, 0))
        room = (self._window.height() - _BELOW_TOP) // self._row_height - 2
        rows = min(max(self._found.rowCount(), 1), _ROWS, max(room, 1))
        self.list.setFixedHeight(rows * self._row_height)
        self.adjustSize()

    @override
    def paintEvent(self, arg__1: QPaintEvent) -> None:
        super().paintEvent(arg__1)
        painter = QPainter(self)
        painter.setPen(self._edge)
        painter.drawRect(self.rect().adjusted(0, 0, -1, -1))

    def _run(self, index: QModelIndex) -> None:
        action = cast("QAction | None", index.data(_ACTION_ROLE))
        if action is None or not action.isEnabled():
            return
        self.accept()
        # Once the focus is back where it was.
        QTimer.singleShot(0, action, action.trigger)


def _items(commands: Iterable[QAction], parent: QObject) -> QStandardItemModel:
    made = QStandardItemModel(parent)
    for action in commands:
        item = QStandardItem(action.text().replace("&", "").removesuffix("…"))
        item.setData(action, _ACTION_ROLE)
        native = QKeySequence.SequenceFormat.NativeText
        item.setData(action.shortcut().toString(native), _KEYS_ROLE)
        item.setToolTip(action.toolTip())
        made.appendRow(item)
    return made
