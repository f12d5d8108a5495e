"""The rows of a settings page: what is set and what that means at the start, the control after."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QCheckBox, QLabel, QSizePolicy, QVBoxLayout, QWidget
from typing_extensions import override

from gui.kit.controls import label
from gui.kit.wrap import WrapRow

_LEAST_LETTERS = 20


class SettingRows(QWidget):
    """One setting under the other, from the top; the words wrap, the controls keep their width."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        self._rows = QVBoxLayout()
        self._rows.setSpacing(16)
        column.addLayout(self._rows)
        column.addStretch(1)

    def add(self, title: str, words: str, control: QWidget) -> None:
        """Add a setting.

        Args:
            title: its name, for the eye and for a screen reader.
            words: one line that says what it changes; may be empty.
            control: what changes it.
        """
        control.setAccessibleName(title)
        control.setAccessibleDescription(words)
        row = WrapRow(keeps_widths=True)
        row.set_gap(24)
        row.add(Said(title, words, control), 1)
        row.add(control, 0, Qt.AlignmentFlag.AlignTop)
        self._rows.addLayout(row)

    def add_switch(self, words: str, switch: QCheckBox) -> None:
        """Add a setting that is on or off: ``switch`` says which, ``words`` what it changes."""
        switch.setProperty("role", "strong")
        switch.setAccessibleDescription(words)
        said = QVBoxLayout()
        said.setSpacing(1)
        said.addWidget(switch, 0, Qt.AlignmentFlag.AlignLeading)
        said.addWidget(_words(words))
        self._rows.addLayout(said)

    def add_wide(self, widget: QWidget) -> None:
        """Add ``widget`` over the whole width."""
        self._rows.addWidget(widget)


class Said(QWidget):
    """What a setting is; where it would become a pillar, the control goes below it."""

    def __init__(self, title: str, words: str, control: QWidget) -> None:
        super().__init__()
        name = label(title, "strong")
        name.setBuddy(control)
        name.setWordWrap(True)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(1)
        column.addWidget(name)
        if words:
            column.addWidget(_words(words))
            column.addStretch(1)

    @override
    def minimumSizeHint(self) -> QSize:
        width = _LEAST_LETTERS * self.fontMetrics().averageCharWidth()
        return QSize(width, super().minimumSizeHint().height())


def _words(text: str) -> QLabel:
    made = label(text, "small")
    made.setWordWrap(True)
    made.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
    return made
