"""Where the keyboard is can be seen, and Tab goes as one reads."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QPalette
from PySide6.QtWidgets import (
    QApplication,
    QGridLayout,
    QHBoxLayout,
    QPushButton,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from gui.kit.controls import Segments
from gui.kit.focus import Dialog, FocusRings, reading_order


@pytest.fixture
def dialog(qtbot):
    """Four buttons in two columns of two, made from the last to the first."""
    made = Dialog()
    qtbot.addWidget(made)
    buttons = [QPushButton(name) for name in ("d", "c", "b", "a")]
    row = QHBoxLayout(made)
    left, right = QVBoxLayout(), QVBoxLayout()
    for column, names in ((left, "ac"), (right, "bd")):
        side = QWidget()
        side.setLayout(column)
        row.addWidget(side)
        for button in sorted(buttons, key=QPushButton.text):
            if button.text() in names:
                column.addWidget(button)
    made.show()
    made.activateWindow()
    qtbot.waitUntil(made.isActiveWindow)
    return made


def _words(widgets) -> str:
    return "".join(widget.text() for widget in widgets)


def test_that_each_column_is_read_as_a_whole(dialog):
    assert _words(reading_order(dialog)) == "acbd"


def test_that_what_is_read_from_the_right_begins_there(dialog, qtbot):
    dialog.setLayoutDirection(Qt.LayoutDirection.RightToLeft)
    qtbot.waitUntil(lambda: _words(reading_order(dialog)) == "bdac")


def test_that_tab_goes_round_both_ways(dialog, qtbot):
    reading_order(dialog)[0].setFocus()
    forth, back = [], []
    for _ in range(4):
        forth.append(QApplication.focusWidget())
        qtbot.keyClick(forth[-1], Qt.Key.Key_Tab)
    for _ in range(4):
        back.append(QApplication.focusWidget())
        qtbot.keyClick(back[-1], Qt.Key.Key_Backtab)
    assert _words(forth) == "acbd"
    assert _words(back) == "adbc"


def test_that_lines_of_a_grid_are_read_one_after_the_other(qtbot):
    made = QWidget()
    qtbot.addWidget(made)
    grid = QGridLayout(made)
    for place, name in ((3, "d"), (1, "b"), (2, "c"), (0, "a")):
        grid.addWidget(QPushButton(name), place // 2, place % 2)
    made.show()
    assert _words(reading_order(made)) == "abcd"


def test_that_of_exclusive_choices_tab_stops_at_the_one_in_force(qtbot):
    made = Segments("which", (("A", 1), ("B", 2), ("C", 3)))
    qtbot.addWidget(made)
    made.set_current(2)
    made.show()
    assert _words(reading_order(made)) == "B"


def test_that_what_tab_reaches_is_scrolled_into_sight(qtbot):
    made = Dialog()
    qtbot.addWidget(made)
    column, body = QVBoxLayout(), QWidget()
    for number in range(40):
        column.addWidget(QPushButton(f"{number}"))
    body.setLayout(column)
    roll = QScrollArea()
    roll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
    roll.setWidget(body)
    QVBoxLayout(made).addWidget(roll)
    made.resize(200, 200)
    made.show()
    made.activateWindow()
    qtbot.waitUntil(made.isActiveWindow)
    reading_order(made)[0].setFocus()
    qtbot.keyClick(QApplication.focusWidget(), Qt.Key.Key_Backtab)
    last = QApplication.focusWidget()
    assert last.text() == "39"
    assert last.visibleRegion().boundingRect().size() == last.size()


def test_that_the_ring_is_there_for_keys_and_not_for_a_click(dialog, qapp, qtbot):
    rings = FocusRings(qapp, dialog)
    accent = dialog.palette().color(QPalette.ColorRole.Accent)
    button = reading_order(dialog)[0]

    def is_ringed() -> bool:
        qapp.processEvents()
        middle = button.height() // 2
        return button.grab().toImage().pixelColor(0, middle) == accent

    button.clearFocus()
    button.setFocus(Qt.FocusReason.MouseFocusReason)
    assert not is_ringed()
    qtbot.keyClick(button, Qt.Key.Key_Shift)
    assert is_ringed()
    button.clearFocus()
    assert not is_ringed()
    button.setFocus(Qt.FocusReason.ShortcutFocusReason)
    assert is_ringed()
    del rings


def test_that_a_widget_may_go_with_its_ring(dialog, qapp, qtbot):
    rings = FocusRings(qapp, dialog)
    button, other, *_ = reading_order(dialog)
    button.clearFocus()
    button.setFocus(Qt.FocusReason.ShortcutFocusReason)
    qapp.processEvents()
    assert button.findChild(QWidget, "focus ring")
    button.deleteLater()
    qtbot.waitUntil(lambda: len(reading_order(dialog)) == 3)
    other.setFocus(Qt.FocusReason.ShortcutFocusReason)
    qapp.processEvents()
    assert other.findChild(QWidget, "focus ring")
    del rings
