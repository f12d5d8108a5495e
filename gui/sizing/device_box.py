"""Which machine the plan is for: this computer first, then the whole catalogue, by typing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QObject, QSignalBlocker, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QFocusEvent, QKeyEvent, QResizeEvent, QStandardItem, QStandardItemModel
from PySide6.QtWidgets import QComboBox, QCompleter, QLineEdit, QListView, QWidget
from typing_extensions import override

from engine.devices import catalogue
from engine.errors import DeviceError
from engine.words import tr, tr_later
from gui.kit.controls import SizedCombo
from gui.kit.icons import icon
from gui.kit.shortcuts import leave_to_window
from gui.sizing.device_search import SPELLINGS_ROLE, FoundDevices, spellings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.devices.device import Device
    from gui.kit.theme import Theme

_NAME_ROLE = Qt.ItemDataRole.UserRole + 1
_HERE = tr_later("{device}, this computer")
_CORRECTED = tr_later("{device} (corrected), this computer")
_ENTER = (Qt.Key.Key_Return, Qt.Key.Key_Enter)
_TABS = (Qt.Key.Key_Tab, Qt.Key.Key_Backtab)
_STEPS = (Qt.Key.Key_Down, Qt.Key.Key_Up, Qt.Key.Key_PageDown, Qt.Key.Key_PageUp)
_SELECTING = (
    Qt.FocusReason.TabFocusReason,
    Qt.FocusReason.BacktabFocusReason,
    Qt.FocusReason.ShortcutFocusReason,
    Qt.FocusReason.OtherFocusReason,
)
"""How the focus comes by keyboard; a click selects when it ends, a closed list never."""


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
        self._found = FoundDevices(self)
        self._found.setSourceModel(self._items)
        self._completer = completer = QCompleter(self._found, self)
        # The proxy finds and sorts; the completer only shows.
        completer.setCompletionMode(QCompleter.CompletionMode.UnfilteredPopupCompletion)
        completer.setCaseSensitivity(Qt.CaseSensitivity.CaseInsensitive)
        completer.setMaxVisibleItems(14)
        self._popup = QListView()
        self._popup.setProperty("role", "popup")
        self._popup.setUniformItemSizes(True)
        completer.setPopup(self._popup)
        self.setCompleter(completer)
        # After the completer's own filter, and therefore asked before it.
        self._popup.installEventFilter(self)
        self._edit.textEdited.connect(self._found.look_for)
        self.activated.connect(self._on_activated)
        self._edit.editingFinished.connect(self._on_editing_finished)
        self._edit.installEventFilter(self)

    def set_devices(
        self, here: str, devices: Sequence[Device], *, place: str = "", corrected: bool = False
    ) -> None:
        """Offer what is watched, and ``devices``.

        Args:
            here: the device that is watched.
            devices: of the catalogue.
            place: where it is, if not in this computer.
            corrected: whether it is as its user says.
        """
        self._items.clear()
        text = tr(_CORRECTED if corrected else _HERE).format(device=here)
        if place:
            text = f"{here}, {place}"
        first = QStandardItem(text)
        first.setData(None, _NAME_ROLE)
        first.setData((text, tr("this computer")), SPELLINGS_ROLE)
        self._items.appendRow(first)
        for device in devices:
            item = QStandardItem(device.name)
            item.setData(device.name, _NAME_ROLE)
            item.setData(spellings(device), SPELLINGS_ROLE)
            item.setToolTip(tr("{label}, not this computer").format(label=device.label))
            self._items.appendRow(item)
        self._paint_icons()

    def show_choice(self, name: str | None, text: str) -> None:
        """Show ``text`` for the device in force; tells nobody."""
        row = next(
            (r for r in range(self._items.rowCount()) if self._name_at(r) == name),
            -1,
        )
        if row == self.currentIndex() and text == self._shown:
            return
        is_typing = self._edit.hasFocus() and self._edit.isModified()
        typed = self._edit.text()
        self.setCurrentIndex(row)
        self._shown = text
        self._reset_text()
        if is_typing:
            self._edit.setText(typed)
            self._edit.setModified(True)

    def set_theme(self, theme: Theme) -> None:
        """Take the colours of ``theme``."""
        self._theme = theme
        self._paint_icons()

    @override
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self._popup:
            return self._is_popup_key(event) or super().eventFilter(watched, event)
        if watched is self._edit and self._is_edit_event(event):
            return True
        return super().eventFilter(watched, event)

    def _is_edit_event(self, event: QEvent) -> bool:
        is_fresh = not self._edit.isModified()
        if isinstance(event, QFocusEvent):
            if event.gotFocus() and is_fresh and event.reason() in _SELECTING:
                self._edit.selectAll()
        elif event.type() == QEvent.Type.MouseButtonRelease and is_fresh:
            QTimer.singleShot(0, self._edit, self._edit.selectAll)
        elif (
            isinstance(event, QKeyEvent)
            and event.type() == QEvent.Type.KeyPress
            and event.key() in _STEPS
            and not is_fresh
        ):
            # Else the box would step from the device in force, whatever was typed.
            self._open_list()
            return True
        return leave_to_window(event, self._edit)

    def _is_popup_key(self, event: QEvent) -> bool:
        """Enter while the list is open and nothing in it is chosen; Tab where something is."""
        if not isinstance(event, QKeyEvent) or event.type() != QEvent.Type.KeyPress:
            return False
        if event.key() in _TABS and self._is_highlighted():
            row = self._found.rows()[self._popup.currentIndex().row()]
            self._popup.hide()
            self._pick(self._found_at(row))
            self.focusNextPrevChild(event.key() == Qt.Key.Key_Tab)
            return True
        if event.key() not in _ENTER or self._is_highlighted():
            return False
        if self._take(self._edit.text().strip()):
            self._popup.hide()
        else:
            self._refuse()
        return True

    def _is_highlighted(self) -> bool:
        selection = self._popup.selectionModel()
        return self._popup.isVisible() and selection.isSelected(self._popup.currentIndex())

    def _open_list(self) -> None:
        if self._found.rows() and not self._popup.isVisible():
            self._completer.complete()

    def _name_at(self, row: int) -> str | None:
        return self._items.item(row).data(_NAME_ROLE)

    def _paint_icons(self) -> None:
        if self._theme is None:
            return
        size = self._theme.grown(16)
        self.setIconSize(QSize(size, size))
        plain = icon("monitor", self._theme.color("text.tertiary"), size)
        # One word for all of them: told one by one, they would hold up a change of theme.
        with QSignalBlocker(self._items):
            for row in range(self._items.rowCount()):
                self._items.item(row).setIcon(plain)
        if self._items.rowCount():
            here = icon("monitor-check", self._theme.color("accent"), size)
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
        if self._edit.hasFocus():
            self._edit.selectAll()
        self.setToolTip(self._shown)

    @override
    def showPopup(self) -> None:
        # The whole list is of single devices, whatever was typed before it was opened.
        self._found.before = ""
        super().showPopup()

    def _found_at(self, row: int) -> str | None:
        """What the text means with the name of ``row`` in it."""
        name = self._name_at(row)
        return None if name is None else self._found.before + name

    def _on_activated(self, row: int) -> None:
        self._pick(self._found_at(row))
        # The list's own words reach the field after this.
        QTimer.singleShot(0, self, self._reset_text)

    def _pick(self, name: str | None) -> None:
        self._found.before = ""
        self._reset_text()
        self.refused.emit("")
        self.picked.emit(name)

    def _on_editing_finished(self) -> None:
        text = self._edit.text().strip()
        if text in ("", self._shown, self._fitted()):
            self._reset_text()
            return
        if self._is_highlighted():
            # Enter on an entry of the list: the completer tells which.
            return
        # The list writes the entry that one goes over into the field.
        self._found.look_for(text)
        if self._take(text):
            return
        self._refuse()
        if self._found.rows() and self._edit.hasFocus():
            # Once the key is done with: the list must not open under the hands of the completer.
            QTimer.singleShot(0, self, self._open_list)
        else:
            self._found.before = ""
            self._reset_text()

    def _take(self, text: str) -> bool:
        """Pick the one device that is meant, a list of devices with counts, or memory alone."""
        meant = self._found.meant()
        name = text if meant is None else self._found_at(meant)
        if name is not None and _wrong_with(name):
            return False
        self._pick(name)
        return True

    def _refuse(self) -> None:
        text = self._edit.text().strip()
        meant = self._found.meant()
        if meant is not None:
            # The name is known: it is the count, or what stands beside it, that cannot be.
            self.refused.emit(_wrong_with(self._found_at(meant) or ""))
            return
        if self._found.rows():
            why = tr("Several devices match “{text}”: pick one from the list.")
        else:
            why = tr(
                "No device is called “{text}”: pick one from the list, or type its memory (24 GB) "
                "or several cards (RTX 4090 + 2 x RTX 3060 12GB)."
            )
        self.refused.emit(why.format(text=text[:40]))


def _wrong_with(text: str) -> str:
    """Why ``text`` names no machine; empty where it does."""
    try:
        catalogue.mixed(catalogue.named(text))
    except DeviceError as error:
        return error.message
    return ""
