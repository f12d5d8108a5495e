"""Settings, Shortcuts: every command with its key, found by typing, changed by pressing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QSortFilterProxyModel, Qt
from PySide6.QtGui import QAccessible, QKeySequence, QStandardItem, QStandardItemModel
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHeaderView,
    QKeySequenceEdit,
    QPushButton,
    QTableView,
    QVBoxLayout,
    QWidget,
)

from engine.words import tr
from gui.kit.controls import LineField, label, running_text, set_role
from gui.kit.spoken import speak_as
from gui.kit.wrap import WrapRow

if TYPE_CHECKING:
    from PySide6.QtCore import QModelIndex

    from gui.kit.keys import Keys
    from gui.kit.theme import Theme

_KEY_ROLE = Qt.ItemDataRole.UserRole + 1
_ROWS = 4
"""Shown at the least, whatever the size of text."""


class ShortcutsPage(QWidget):
    """The table, and below it the key of the command that is chosen in it."""

    def __init__(self, keys: Keys, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._keys = keys
        self.search = LineField()
        self.search.setObjectName("find a command")
        self.search.setPlaceholderText(tr("Find a command or a key"))
        self.search.setAccessibleName(tr("Find a command or a key"))
        self.search.setClearButtonEnabled(True)
        self._rows = QStandardItemModel(0, 2, self)
        self._rows.setHorizontalHeaderLabels([tr("Command"), tr("Shortcut")])
        self._found = QSortFilterProxyModel(self)
        self._found.setSourceModel(self._rows)
        self._found.setFilterKeyColumn(-1)
        self._found.setFilterCaseSensitivity(Qt.CaseSensitivity.CaseInsensitive)
        self.table = self._made_table()
        self.field = QKeySequenceEdit()
        self.field.setObjectName("new shortcut")
        self.field.setMaximumSequenceLength(1)
        speak_as(self.field, QAccessible.Role.HotkeyField)
        self.none = QPushButton(tr("None"))
        self.none.setAutoDefault(False)
        self._name = label("", "strong")
        self._name.setBuddy(self.field)
        self.words = running_text("small")
        self.words.setObjectName("shortcut words")
        self.words.setMinimumHeight(2 * self.words.fontMetrics().lineSpacing())
        self.reset = QPushButton(tr("As delivered"))
        self.reset.setAutoDefault(False)
        self.reset_all = QPushButton(tr("All as delivered"))
        self.reset_all.setAutoDefault(False)
        self._build()
        self._connect()
        self._fill()
        self.table.selectRow(0)

    def _made_table(self) -> QTableView:
        made = QTableView()
        made.setObjectName("shortcuts")
        made.setAccessibleName(tr("Commands and their shortcuts"))
        made.setModel(self._found)
        made.setProperty("role", "plain")
        made.setShowGrid(False)
        made.setTabKeyNavigation(False)
        made.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        made.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        made.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        made.verticalHeader().hide()
        head = made.horizontalHeader()
        head.setHighlightSections(False)
        head.setDefaultAlignment(Qt.AlignmentFlag.AlignLeading | Qt.AlignmentFlag.AlignVCenter)
        head.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        head.setSectionResizeMode(1, QHeaderView.ResizeMode.ResizeToContents)
        return made

    def _build(self) -> None:
        edit = WrapRow(keeps_widths=True)
        edit.add(self._name, 1)
        for part in (self.field, self.none, self.reset):
            edit.add(part)
        below = WrapRow(keeps_widths=True)
        below.add(self.words, 1)
        below.add(self.reset_all, 0, Qt.AlignmentFlag.AlignTop)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(12)
        column.addWidget(self.search)
        column.addWidget(self.table, 1)
        column.addLayout(edit)
        column.addLayout(below)

    def _connect(self) -> None:
        self.search.textChanged.connect(self._on_typed)
        self.table.selectionModel().currentRowChanged.connect(self._on_row_changed)
        self.field.editingFinished.connect(self._on_pressed)
        self.none.clicked.connect(self._on_none)
        self.reset.clicked.connect(self._on_reset)
        self.reset_all.clicked.connect(self._on_reset_all)
        self._keys.changed.connect(self._show_keys)

    def set_theme(self, theme: Theme) -> None:
        """Take the text size of ``theme``."""
        height = theme.size("row.table")
        self.table.verticalHeader().setDefaultSectionSize(height)
        self.table.setMinimumHeight((_ROWS + 1) * height)

    def _fill(self) -> None:
        for bound in self._keys.commands.values():
            title = QStandardItem(f"{bound.menu}: {bound.title}")
            title.setData(bound.key, _KEY_ROLE)
            self._rows.appendRow([title, QStandardItem()])
        self._show_keys()

    def _show_keys(self) -> None:
        changes = self._keys.changes
        for row in range(self._rows.rowCount()):
            item = self._rows.item(row, 1)
            key = str(self._rows.item(row, 0).data(_KEY_ROLE))
            item.setText(self._keys.text(key))
            font = item.font()
            font.setBold(key in changes)
            item.setFont(font)
            item.setToolTip(tr("Changed") if key in changes else "")
        self.reset_all.setEnabled(bool(changes))
        self._show_chosen()

    @property
    def chosen(self) -> str:
        """The key of the chosen command; empty for none."""
        index = self.table.currentIndex()
        return str(index.siblingAtColumn(0).data(_KEY_ROLE)) if index.isValid() else ""

    def _show_chosen(self) -> None:
        key = self.chosen
        is_one = key in self._keys.commands
        self.field.setEnabled(is_one)
        self.none.setEnabled(is_one and not self._keys.of(key).isEmpty())
        self.reset.setEnabled(is_one and key in self._keys.changes)
        title = self._keys.commands[key].title if is_one else tr("No command of that name")
        self._name.setText(title)
        self.field.setAccessibleName(tr("Shortcut of {command}").format(command=title))
        self.field.blockSignals(True)  # noqa: FBT003 - Qt's
        self.field.setKeySequence(self._keys.of(key) if is_one else QKeySequence())
        self.field.blockSignals(False)  # noqa: FBT003 - Qt's

    def _say(self, text: str, *, wrong: bool = False) -> None:
        set_role(self.words, "trouble" if wrong else "small")
        self.words.setText(text)

    def _on_typed(self, text: str) -> None:
        self._found.setFilterFixedString(text.strip())
        if self._found.rowCount() and not self.table.currentIndex().isValid():
            self.table.selectRow(0)
        self._show_chosen()

    def _on_row_changed(self, _current: QModelIndex) -> None:
        self._say("")
        self._show_chosen()

    def _on_none(self) -> None:
        self._keys.choose(self.chosen, QKeySequence())
        self._say("")

    def _on_pressed(self) -> None:
        key = self.chosen
        wanted = self.field.keySequence()
        if wanted.isEmpty() or wanted == self._keys.of(key):
            return
        reason = self._keys.choose(key, wanted)
        self._say(reason, wrong=bool(reason))
        self._show_chosen()

    def _on_reset(self) -> None:
        reason = self._keys.reset(self.chosen)
        self._say(reason, wrong=bool(reason))

    def _on_reset_all(self) -> None:
        self._keys.reset_all()
        self._say("")
