"""One command of the window: its words, its shortcut, and where it stands in the menus."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtGui import QAction, QKeySequence

from engine.words import tr


@dataclass(frozen=True, slots=True)
class Command:
    """One command. ``group`` makes it one of several exclusive choices."""

    key: str
    menu: str
    """One of ``MENUS``: it and the words below are translated where they are shown."""
    text: str
    shortcut: str = ""
    tip: str = ""
    also: str = ""
    """A second shortcut."""
    group: str = ""
    checkable: bool = False
    section: bool = False
    """Whether a line separates it from the command before."""
    role: QAction.MenuRole = QAction.MenuRole.NoRole

    @property
    def title(self) -> str:
        """Its words in the language in force, without what a menu adds."""
        return tr(self.text).replace("&", "").removesuffix("…")

    @property
    def keys(self) -> tuple[QKeySequence, ...]:
        """The shortcuts it is delivered with."""
        return tuple(QKeySequence(text) for text in (self.shortcut, self.also) if text)
