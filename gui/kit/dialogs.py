"""What dialogs share: the row of buttons at their end, and one that stays open."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from PySide6.QtCore import QObject, Slot
from PySide6.QtWidgets import QDialog, QHBoxLayout, QPushButton

if TYPE_CHECKING:
    from collections.abc import Callable

D = TypeVar("D", bound=QDialog)


def primary_button(text: str) -> QPushButton:
    """The button that a dialog is for; Enter presses it."""
    made = QPushButton(text)
    made.setProperty("role", "primary")
    made.setDefault(True)
    return made


def leave_button(dialog: QDialog, text: str) -> QPushButton:
    """The button that leaves ``dialog`` as it is; Enter never presses it by itself."""
    made = QPushButton(text)
    made.setAutoDefault(False)
    made.clicked.connect(dialog.reject)
    return made


def closing_row(*last: QPushButton, first: tuple[QPushButton, ...] = ()) -> QHBoxLayout:
    """The row at a dialog's end: ``first`` at its left, ``last`` at its right."""
    row = QHBoxLayout()
    row.setSpacing(8)
    for button in first:
        row.addWidget(button)
    row.addStretch(1)
    for button in last:
        row.addWidget(button)
    return row


class Companion(QObject, Generic[D]):
    """A dialog that stays open beside the window: opened once, and brought forward after that."""

    def __init__(self, make: Callable[[], D], parent: QObject) -> None:
        super().__init__(parent)
        self._make = make
        self.dialog: D | None = None
        """None while it is closed."""

    @Slot()
    def open(self) -> None:
        """Show it in front of the window."""
        if self.dialog is None:
            self.dialog = self._make()
            self.dialog.finished.connect(self._on_finished)
        self.dialog.show()
        self.dialog.raise_()
        self.dialog.activateWindow()

    @Slot()
    def _on_finished(self) -> None:
        if self.dialog is not None:
            self.dialog.deleteLater()
            self.dialog = None
