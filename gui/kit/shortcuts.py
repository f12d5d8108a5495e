"""Which keys are the window's commands, and which a field's or a list's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QAction, QKeyEvent, QKeySequence

if TYPE_CHECKING:
    from PySide6.QtWidgets import QLineEdit

_FAR = Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.AltModifier


def leave_to_window(event: QEvent, edit: QLineEdit) -> bool:
    """Let a command pass that ``edit`` would take; returns whether it did.

    Under X11 a text field takes Ctrl+E to go to the end of the line, and more of that kind: a key
    with Ctrl or Alt that is one of the window's commands is meant for that. Everywhere a field
    takes undo and redo even when it has nothing to undo: then the plan is meant.
    """
    if event.type() != QEvent.Type.ShortcutOverride or not isinstance(event, QKeyEvent):
        return False
    if event.matches(QKeySequence.StandardKey.Undo):
        is_the_windows = not edit.isUndoAvailable()
    elif event.matches(QKeySequence.StandardKey.Redo):
        is_the_windows = not edit.isRedoAvailable()
    else:
        is_the_windows = bool(event.modifiers() & _FAR) and _is_command(event, edit)
    if not is_the_windows:
        return False
    event.ignore()
    return True


def keep_letter(event: QEvent) -> bool:
    """Keep a letter or digit for a list that is searched by typing; returns whether it was one.

    ``M`` sets a marker everywhere else; here it goes to the next name that begins with it.
    """
    if event.type() != QEvent.Type.ShortcutOverride or not isinstance(event, QKeyEvent):
        return False
    if not event.text().isalnum() or event.modifiers() & _FAR:
        return False
    event.accept()
    return True


def _is_command(event: QKeyEvent, edit: QLineEdit) -> bool:
    pressed = QKeySequence(event.keyCombination())
    actions = edit.window().findChildren(QAction, options=Qt.FindChildOption.FindDirectChildrenOnly)
    return any(pressed in action.shortcuts() for action in actions)
