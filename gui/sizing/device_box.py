"""Which machine the plan is for: this computer first, then the whole catalogue, by typing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QObject, QSignalBlocker, Qt, QTimer, Signal
from PySide6.QtGui import QResizeEvent, QStandardItem, QStandardItemModel
from PySide6.QtWidgets import QComboBox, QCompleter, QLineEdit, QListView, QWidget
from typing_extensions import override

from gui.kit.controls import SizedCombo
from gui.kit.icons import icon
from gui.kit.shortcuts import leave_to_window

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.devices.device import Device
    from gui.kit.theme import Theme

_NAME_ROLE = Qt.ItemDataRole.UserRole + 1
_SEARCH_ROLE = Qt.ItemDataRole.UserRole + 2


class DeviceBox(SizedCombo):
    """A combo box one can type into; what is typed only searches, it never becomes a value."""

    picked = Signal(object)
    """The catalogue name (``str``), or None for this computer."""
    refused = Signal(str)
    """The sentence for a text that names no device; empty when the trouble is over."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._edit = QLineEdit()
        self.setEditable(True)
        self.setLineEdit(self._edit)
        self.setInsertPolicy(QComboBox.InsertPolicy.NoInsert)
        self.setMaxVisibleItems(18)
        self._items = QStandardItemModel(self)
        self.setModel(self._items)
        self._shown = ""
        self._theme: Theme | None = None
        completer = QCompleter(self._items, self)
        completer.setCompletionRole(_SEARCH_ROLE)
        completer.setFilterMode(Qt.MatchFlag.MatchContains)
        completer.setCaseSensitivity(Qt.CaseSensitivity.CaseInsensitive)
        completer.setMaxVisibleItems(14)
        popup = QListView()
        popup.setProperty("role", "popup")
        popup.setUniformItemSizes(True)
        completer.setPopup(popup)
        self.setCompleter(completer)
        completer.activated.connect(self._on_completed)
        self.activated.connect(self._on_activated)
        self._edit.editingFinished.connect(self._on_editing_finished)
        self._edit.installEventFilter(self)

    def set_devices(self, here: str, devices: Sequence[Device]) -> None:
        """Offer this computer (called ``here``) and ``devices``."""
        self._items.clear()
        first = QStandardItem(f"{here}, this computer")
        first.setData(None, _NAME_ROLE)
        first.setData(f"{here} this computer", _SEARCH_ROLE)
        self._items.appendRow(first)
        for device in devices:
            item = QStandardItem(device.name)
            item.setData(device.name, _NAME_ROLE)
            words = (device.name, device.vendor.value, device.label, *device.aliases)
            item.setData(" ".join(words), _SEARCH_ROLE)
            item.setToolTip(f"{device.label}, not this computer")
            self._items.appendRow(item)
        self._paint_icons()

    def show_choice(self, name: str | None, text: str) -> None:
        """Show ``text`` for the device in force; tells nobody."""
        row = next(
            (r for r in range(self._items.rowCount()) if self._name_at(r) == name),
            -1,
        )
        self.setCurrentIndex(row)
        self._shown = text
        self._reset_text()

    def set_theme(self, theme: Theme) -> None:
        """Take the colours of ``theme``."""
        self._theme = theme
        self._paint_icons()

    @override
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self._edit and event.type() == QEvent.Type.FocusIn:
            # After the click that brought the focus has placed the cursor.
            QTimer.singleShot(0, self._edit, self._edit.selectAll)
        if watched is self._edit and leave_to_window(event, self._edit):
            return True
        return super().eventFilter(watched, event)

    def _name_at(self, row: int) -> str | None:
        return self._items.item(row).data(_NAME_ROLE)

    def _paint_icons(self) -> None:
        if self._theme is None:
            return
        plain = icon("monitor", self._theme.color("text.tertiary"))
        # One word for all of them: told one by one, they would hold up a change of theme.
        with QSignalBlocker(self._items):
            for row in range(self._items.rowCount()):
                self._items.item(row).setIcon(plain)
        if self._items.rowCount():
            here = icon("monitor-check", self._theme.color("accent"))
            self._items.item(0).setIcon(here)
            self.view().viewport().update()
        # A changed entry makes the box write the entry's own words into the field.
        self._reset_text()

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if not self._edit.isModified():
            self._reset_text()

    def _fitted(self) -> str:
        room = self._edit.width() - 6
        return self.fontMetrics().elidedText(self._shown, Qt.TextElideMode.ElideRight, room)

    def _reset_text(self) -> None:
        self._edit.setText(self._fitted())
        self._edit.setCursorPosition(0)
        self.setToolTip(self._shown)

    def _on_activated(self, row: int) -> None:
        self._pick(self._name_at(row))

    def _on_completed(self, words: str) -> None:
        for row in range(self._items.rowCount()):
            if self._items.item(row).data(_SEARCH_ROLE) == words:
                self._pick(self._name_at(row))
                return

    def _pick(self, name: str | None) -> None:
        self._reset_text()
        self.refused.emit("")
        self.picked.emit(name)

    def _on_editing_finished(self) -> None:
        text = self._edit.text().strip()
        if text in ("", self._shown, self._fitted()):
            self._reset_text()
            return
        wanted = text.casefold()
        rows = range(self._items.rowCount())
        known = [self._items.item(row).data(_SEARCH_ROLE).casefold() for row in rows]
        found = [row for row in rows if wanted in known[row]]
        exact = [r for r in found if (self._name_at(r) or "").casefold() == wanted]
        if exact or len(found) == 1:
            self._pick(self._name_at((exact or found)[0]))
            return
        self._reset_text()
        reason = "No device is called" if not found else "Several devices match"
        self.refused.emit(f"{reason} \u201c{text[:40]}\u201d: pick one from the list.")
