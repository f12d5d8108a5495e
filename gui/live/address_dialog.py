"""Where else a runtime answers: addresses to ask, and the key of one that wants one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QDialog, QLineEdit, QListWidget, QPushButton, QVBoxLayout, QWidget

from engine.errors import EndpointError
from engine.telemetry.address import parsed
from engine.words import tr
from gui.kit.controls import label, running_text, set_role
from gui.kit.dialogs import closing_row, leave_button, primary_button
from gui.kit.messages import sentence

if TYPE_CHECKING:
    from engine.telemetry.address import Address

_EXAMPLE = "localhost:8080"
_MOST = 50


class AddressDialog(QDialog):
    """Opened with ``open()``; each change is told at once."""

    added = Signal(object, str)
    """An ``Address``, and its key; empty for none."""
    removed = Signal(object)
    """An ``Address`` that is asked no more."""

    def __init__(self, known: tuple[Address, ...], parent: QWidget, wanting: str = "") -> None:
        """Show the addresses that are asked.

        Args:
            known: those that were added before.
            parent: the window.
            wanting: an address that wants a key, to begin with.
        """
        super().__init__(parent)
        self.setObjectName("addresses")
        self.setWindowTitle(tr("Addresses of runtimes"))
        self.setMinimumWidth(520)
        self._known = list(known)
        self.address = QLineEdit(wanting)
        self.address.setObjectName("address")
        self.address.setPlaceholderText(_EXAMPLE)
        self.address.setAccessibleName(tr("Address of a runtime"))
        self.key = QLineEdit()
        self.key.setObjectName("key")
        self.key.setEchoMode(QLineEdit.EchoMode.Password)
        self.key.setAccessibleName(tr("API key, where it wants one"))
        self.key.setPlaceholderText(tr("only where the runtime wants one"))
        self.told = running_text("small")
        self.told.setObjectName("address told")
        self.known = QListWidget()
        self.known.setObjectName("known addresses")
        self.known.setAccessibleName(tr("Addresses that are asked"))
        self.add = primary_button(tr("Add"))
        self.remove = QPushButton(tr("Remove"))
        self.remove.setAutoDefault(False)
        self._build()
        self.address.textChanged.connect(self._on_typed)
        self.add.clicked.connect(self._on_add)
        self.remove.clicked.connect(self._on_remove)
        self.known.itemSelectionChanged.connect(self._offer_remove)
        self._show_known()
        self._on_typed()
        (self.key if wanting else self.address).setFocus()

    def _build(self) -> None:
        purpose = running_text("small")
        purpose.setText(
            tr(
                "Runtimes of this computer are found by themselves. What is added here is asked "
                "too, for reading alone and only while What holds it is open."
            )
        )
        column = QVBoxLayout(self)
        column.setContentsMargins(24, 20, 24, 16)
        column.setSpacing(10)
        column.addWidget(label(tr("Addresses of runtimes"), "title"))
        column.addWidget(purpose)
        for text, field in ((tr("Address"), self.address), (tr("API key"), self.key)):
            name = label(text, "caption")
            name.setBuddy(field)
            column.addWidget(name)
            column.addWidget(field)
        self.told.setMinimumHeight(2 * self.told.fontMetrics().lineSpacing())
        column.addWidget(self.told)
        self.known.setMaximumHeight(8 * self.known.fontMetrics().lineSpacing())
        column.addWidget(self.known)
        column.addStretch(1)
        leave = leave_button(self, tr("Close"))
        column.addLayout(closing_row(leave, self.add, first=(self.remove,)))

    @Slot()
    def _on_typed(self) -> None:
        """Say what the address means: whether asking it leaves this computer."""
        text = self.address.text()
        found = None
        words = ""
        if text.strip():
            try:
                found = parsed(text)
            except EndpointError as error:
                words = sentence(error)
            else:
                words = _meaning(found)
        set_role(self.told, "trouble" if words and found is None else "small")
        self.told.setText(words)
        self.add.setEnabled(found is not None and len(self._known) < _MOST)

    @Slot()
    def _on_add(self) -> None:
        found = parsed(self.address.text())
        if found not in self._known:
            self._known.append(found)
        self.added.emit(found, self.key.text())
        self.address.clear()
        self.key.clear()
        self._show_known()

    @Slot()
    def _on_remove(self) -> None:
        at = self.known.currentRow()
        if 0 <= at < len(self._known):
            self.removed.emit(self._known.pop(at))
            self._show_known()

    def _show_known(self) -> None:
        self.known.clear()
        self.known.addItems([str(address) for address in self._known])
        for part in (self.known, self.remove):
            part.setVisible(bool(self._known))
        self._offer_remove()

    @Slot()
    def _offer_remove(self) -> None:
        self.remove.setEnabled(bool(self.known.selectedItems()))


def _meaning(found: Address) -> str:
    if found.is_loopback:
        return tr("{address} is on this computer.").format(address=found)
    words = tr("{address} is another computer: asking it sends requests over the network.")
    if found.scheme == "http":
        words = tr(
            "{address} is another computer: asking it sends requests over the network, and a key "
            "could be read on the way. https:// hides it."
        )
    return words.format(address=found)
