"""Which key runs which command: as delivered, as changed, and why a key can't be had."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QKeyCombination, QObject, Qt, Signal
from PySide6.QtGui import QKeySequence

from engine.words import tr

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from PySide6.QtGui import QAction

_TEXT_KEYS: Final = (
    QKeySequence.StandardKey.Copy,
    QKeySequence.StandardKey.Cut,
    QKeySequence.StandardKey.Paste,
    QKeySequence.StandardKey.SelectAll,
)
_WAYS: Final = frozenset(
    QKeySequence(QKeyCombination(shift, key))
    for shift in (Qt.KeyboardModifier.NoModifier, Qt.KeyboardModifier.ShiftModifier)
    for key in (
        Qt.Key.Key_Escape,
        Qt.Key.Key_Tab,
        Qt.Key.Key_Backtab,
        Qt.Key.Key_Return,
        Qt.Key.Key_Enter,
        Qt.Key.Key_Backspace,
        Qt.Key.Key_Delete,
        Qt.Key.Key_Up,
        Qt.Key.Key_Down,
        Qt.Key.Key_Left,
        Qt.Key.Key_Right,
        Qt.Key.Key_PageUp,
        Qt.Key.Key_PageDown,
        Qt.Key.Key_Home,
        Qt.Key.Key_End,
    )
)
"""These go through fields, lists and dialogs."""


@dataclass(frozen=True, slots=True)
class Bound:
    """One command and the keys it is delivered with."""

    key: str
    title: str
    menu: str
    action: QAction
    own: tuple[QKeySequence, ...]


class Keys(QObject):
    """Holds the commands' shortcuts; what is changed is changed in menus and tooltips at once."""

    changed = Signal()

    def __init__(self, commands: Iterable[Bound], parent: QObject) -> None:
        super().__init__(parent)
        self.commands = {bound.key: bound for bound in commands}

    @property
    def changes(self) -> dict[str, str]:
        """What differs from what was delivered, by the command's key; empty for no shortcut."""
        return {
            bound.key: self.of(bound.key).toString(QKeySequence.SequenceFormat.PortableText)
            for bound in self.commands.values()
            if tuple(bound.action.shortcuts()) != bound.own
        }

    def of(self, key: str) -> QKeySequence:
        """The first shortcut of a command; empty for none."""
        return self.commands[key].action.shortcut()

    def text(self, key: str) -> str:
        """All shortcuts of a command as this system writes them."""
        native = QKeySequence.SequenceFormat.NativeText
        return ", ".join(one.toString(native) for one in self.commands[key].action.shortcuts())

    def restore(self, changes: Mapping[str, str]) -> None:
        """Take over what was remembered; what makes no sense, or is taken, stays as delivered."""
        known = [(key, text) for key, text in changes.items() if key in self.commands]
        # First away with the old keys, so that two commands may have swapped theirs.
        for key, _ in known:
            self._put(key, ())
        for key, text in known:
            wanted = QKeySequence(text)
            is_sane = wanted.count() <= 1 and bool(wanted.toString()) is bool(text)
            if not is_sane or self.choose(key, wanted):
                self.reset(key)
        self.changed.emit()

    def choose(self, key: str, wanted: QKeySequence) -> str:
        """Give a command ``wanted`` in place of its shortcuts, or none where it is empty.

        Returns:
            The sentence that says why it can't have it; empty where it was done.
        """
        if wanted.isEmpty():
            self._put(key, ())
        elif reason := self._reason_against(key, wanted):
            return reason
        else:
            self._put(key, (wanted,))
        self.changed.emit()
        return ""

    def reset(self, key: str) -> str:
        """Give a command the keys it was delivered with, but none that another has now.

        Returns:
            The sentence that says why it can't have them; empty where it was done.
        """
        own = self.commands[key].own
        reason = next(filter(None, (self._reason_against(key, one) for one in own)), "")
        if not reason:
            self._put(key, own)
            self.changed.emit()
        return reason

    def reset_all(self) -> None:
        """Give every command the keys it was delivered with."""
        for bound in self.commands.values():
            self._put(bound.key, bound.own)
        self.changed.emit()

    def _put(self, key: str, sequences: tuple[QKeySequence, ...]) -> None:
        self.commands[key].action.setShortcuts(list(sequences))

    def _reason_against(self, key: str, wanted: QKeySequence) -> str:
        words = wanted.toString(QKeySequence.SequenceFormat.NativeText)
        for bound in self.commands.values():
            if bound.key != key and wanted in bound.action.shortcuts():
                taken = tr("{keys} is taken by “{command}”: give that another shortcut first.")
                return taken.format(keys=words, command=bound.title)
        if any(wanted in QKeySequence.keyBindings(one) for one in _TEXT_KEYS):
            return tr("{keys} is for marked text: choose another.").format(keys=words)
        if wanted in _WAYS:
            return tr("{keys} moves through the window: choose another.").format(keys=words)
        return ""
