"""A sheet to look something up in: shortcuts, terms. Typing leaves the rows that have the word."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QTextBrowser,
    QVBoxLayout,
)

from engine.words import tr
from gui.kit.controls import LineField, label
from gui.kit.dialogs import GrowingDialog, closing_row, leave_button

if TYPE_CHECKING:
    from collections.abc import Sequence

    from PySide6.QtWidgets import QWidget

    from gui.kit.theme import Theme

_WIDTH, _HEIGHT = 640, 620


@dataclass(frozen=True, slots=True)
class Chapter:
    """Rows under one heading: what is looked up, and what is said of it."""

    title: str
    rows: tuple[tuple[str, str], ...]


class LookUp(GrowingDialog):
    """Opened with ``open()``; read with the eye, the keyboard or a screen reader."""

    def __init__(
        self, title: str, chapters: Sequence[Chapter], theme: Theme, parent: QWidget
    ) -> None:
        super().__init__(parent, _WIDTH, _HEIGHT)
        self.setObjectName("look up")
        self.setWindowTitle(title)
        self._chapters = tuple(chapters)
        self._theme = theme
        self.field = LineField()
        self.field.setObjectName("look for")
        self.field.setPlaceholderText(tr("Find"))
        self.field.setAccessibleName(tr("Find"))
        self.field.setClearButtonEnabled(True)
        self.text = QTextBrowser()
        self.text.setAccessibleName(title)
        self.text.setFrameShape(QTextBrowser.Shape.NoFrame)
        self.text.setOpenLinks(False)
        self.text.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse
            | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        column = QVBoxLayout()
        column.addWidget(label(title, "title"))
        column.addWidget(self.field)
        column.addWidget(self.text, 1)
        self.lay_out(column, closing_row(leave_button(self, tr("Close"))))
        self.field.textChanged.connect(self._show)
        self._show("")

    def _show(self, typed: str) -> None:
        words = typed.casefold().split()
        parts: list[str] = []
        for chapter in self._chapters:
            rows = [row for row in chapter.rows if _has(row, words)]
            if rows:
                parts.append(self._head(chapter.title, is_first=not parts))
                parts += (self._row(*row) for row in rows)
        nothing = f"<p>{escape(tr('Nothing here has these words.'))}</p>"
        table = f'<table width="100%" cellspacing="0" cellpadding="4">{"".join(parts)}</table>'
        self.text.setHtml(table if parts else nothing)

    def _head(self, title: str, *, is_first: bool) -> str:
        color = self._theme.color("text.secondary").name()
        gap = "" if is_first else "<br>"
        return f'<tr><td colspan="2" style="color: {color}">{gap}{escape(title)}</td></tr>'

    def _row(self, term: str, words: str) -> str:
        return f'<tr><td width="38%"><b>{escape(term)}</b></td><td>{escape(words)}</td></tr>'


def _has(row: tuple[str, str], words: Sequence[str]) -> bool:
    text = " ".join(row).casefold()
    return all(word in text for word in words)
