"""The steps of a trial, one under the other: how each stands, as icon and words."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QGridLayout, QLabel, QSizePolicy, QWidget

from engine.words import tr
from gui.kit.controls import label, set_role
from gui.kit.icons import pixmap

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gui.kit.theme import Theme

_PICTURE = 16


class Stand(Enum):
    """How a step stands: its icon, and the colour of that."""

    OPEN = ("circle-dot", "text.disabled")
    RUNNING = ("activity", "accent")
    PASSED = ("check", "fits")
    NOT_NEEDED = ("check", "text.tertiary")
    FAILED = ("triangle-alert", "over")


class StepList(QWidget):
    """One row a step, all of them there from the start, so that nothing jumps."""

    def __init__(self, titles: Sequence[str], theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._titles = tuple(titles)
        self._stands = [Stand.OPEN for _ in titles]
        grid = QGridLayout(self)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(12)
        grid.setVerticalSpacing(6)
        grid.setColumnStretch(2, 1)
        self._marks = [QLabel() for _ in titles]
        self.words = [label("", "small") for _ in titles]
        top = Qt.AlignmentFlag.AlignTop
        for row, title in enumerate(titles):
            name = label(title, "plain")
            name.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Preferred)
            said = self.words[row]
            said.setObjectName(f"step {row + 1}")
            said.setWordWrap(True)
            said.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
            # So that a person can send on what is said; the keyboard has Copy for all of it.
            said.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
            grid.addWidget(self._marks[row], row, 0, top)
            grid.addWidget(name, row, 1, top)
            grid.addWidget(said, row, 2)
        self.set_theme(theme)

    def show_step(self, row: int, stand: Stand, words: str = "") -> None:
        """Say how a step stands."""
        self._stands[row] = stand
        said = self.words[row]
        set_role(said, "trouble" if stand is Stand.FAILED else "small")
        said.setText(words)
        said.setAccessibleName(f"{self._titles[row]}: {words or tr('not reached')}")
        self._draw(row)

    @property
    def text(self) -> str:
        """All of it, to be pasted."""
        marks = {Stand.PASSED: "+", Stand.NOT_NEEDED: "+", Stand.FAILED: "!"}
        lines = (
            f"{marks.get(stand, '-')} {title}: {said.text()}".rstrip(": ")
            for stand, title, said in zip(self._stands, self._titles, self.words, strict=True)
        )
        return "\n".join(lines) + "\n"

    def set_theme(self, theme: Theme) -> None:
        """Take the colours of ``theme``."""
        self._theme = theme
        for row in range(len(self._marks)):
            self._draw(row)

    def _draw(self, row: int) -> None:
        picture, color = self._stands[row].value
        size = round(_PICTURE * self._theme.text_scale)
        drawn = pixmap(picture, self._theme.color(color), size, self.devicePixelRatioF())
        self._marks[row].setPixmap(drawn)
