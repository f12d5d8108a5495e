"""How tests use a control as a person does."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest


def pick(combo, text):
    """Choose ``text`` from a closed list, with the keyboard."""
    row = combo.findText(text)
    assert row >= 0, [combo.itemText(i) for i in range(combo.count())]
    combo.setFocus()
    while combo.currentIndex() != row:
        before = combo.currentIndex()
        QTest.keyClick(combo, Qt.Key.Key_Down if row > before else Qt.Key.Key_Up)
        assert combo.currentIndex() != before
