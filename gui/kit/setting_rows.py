"""The rows of a settings page: what is set and what that means at the start, the control after."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QCheckBox, QGridLayout, QLabel, QSizePolicy, QVBoxLayout, QWidget

from gui.kit.controls import label


class SettingRows(QWidget):
    """One setting under the other, from the top; the words wrap, the controls keep their width."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        self._grid = QGridLayout()
        self._grid.setHorizontalSpacing(24)
        self._grid.setVerticalSpacing(16)
        self._grid.setColumnStretch(0, 1)
        column.addLayout(self._grid)
        column.addStretch(1)

    def add(self, title: str, words: str, control: QWidget) -> None:
        """Add a setting.

        Args:
            title: its name, for the eye and for a screen reader.
            words: one line that says what it changes; may be empty.
            control: what changes it.
        """
        name = label(title, "strong")
        name.setBuddy(control)
        name.setWordWrap(True)
        control.setAccessibleName(title)
        said = QVBoxLayout()
        said.setSpacing(1)
        said.addWidget(name)
        if words:
            said.addWidget(_words(words))
            control.setAccessibleDescription(words)
        row = self._grid.rowCount()
        self._grid.addLayout(said, row, 0)
        top = Qt.AlignmentFlag.AlignTop | Qt.AlignmentFlag.AlignTrailing
        self._grid.addWidget(control, row, 1, top)

    def add_switch(self, words: str, switch: QCheckBox) -> None:
        """Add a setting that is on or off: ``switch`` says which, ``words`` what it changes."""
        switch.setProperty("role", "strong")
        switch.setAccessibleDescription(words)
        said = QVBoxLayout()
        said.setSpacing(1)
        said.addWidget(switch, 0, Qt.AlignmentFlag.AlignLeading)
        said.addWidget(_words(words))
        self._grid.addLayout(said, self._grid.rowCount(), 0, 1, 2)

    def add_wide(self, widget: QWidget) -> None:
        """Add ``widget`` over the whole width."""
        self._grid.addWidget(widget, self._grid.rowCount(), 0, 1, 2)


def _words(text: str) -> QLabel:
    made = label(text, "small")
    made.setWordWrap(True)
    made.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
    return made
