"""Which keys in a text field are the window's commands and not the field's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QKeyEvent, QKeySequence

if TYPE_CHECKING:
    from PySide6.QtWidgets import QLineEdit


def leave_to_window(event: QEvent, edit: QLineEdit) -> bool:
    """Let a command pass that ``edit`` would take; returns whether it did.

    Under X11 a text field takes Ctrl+E to go to the end of the line, everywhere it takes undo
    and redo even when it has nothing to undo: then the plan is meant.
    """
    if event.type() != QEvent.Type.ShortcutOverride or not isinstance(event, QKeyEvent):
        return False
    is_report = (
        event.modifiers() == Qt.KeyboardModifier.ControlModifier and event.key() == Qt.Key.Key_E
    )
    is_undo = event.matches(QKeySequence.StandardKey.Undo) and not edit.isUndoAvailable()
    is_redo = event.matches(QKeySequence.StandardKey.Redo) and not edit.isRedoAvailable()
    if not (is_report or is_undo or is_redo):
        return False
    event.ignore()
    return True
