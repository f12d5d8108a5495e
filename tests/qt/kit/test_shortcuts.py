"""A text field leaves to the window what it has no use for itself."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QAction, QKeyEvent
from PySide6.QtWidgets import QMainWindow

from gui.browser.parts import SearchField
from gui.kit.fields import TOKENS, NumberField

CTRL = Qt.KeyboardModifier.ControlModifier


@pytest.fixture(params=["number", "search"])
def field(request, qtbot):
    made = NumberField(TOKENS) if request.param == "number" else SearchField("Name")
    window = QMainWindow()
    qtbot.addWidget(window)
    window.setCentralWidget(made)
    report = QAction("Report", window)
    report.setObjectName("report")
    report.setShortcut("Ctrl+E")
    window.show()
    # For as long as its window.
    yield made
    window.close()


def _takes(qapp, field, key):
    """Whether the field keeps ``Ctrl+key`` for itself."""
    event = QKeyEvent(QEvent.Type.ShortcutOverride, key.value, CTRL)
    event.ignore()
    qapp.sendEvent(field, event)
    return event.isAccepted()


def test_that_the_report_can_be_asked_for_from_a_text_field(qapp, field):
    assert not _takes(qapp, field, Qt.Key.Key_E)


def test_that_a_key_is_the_fields_until_a_command_has_it(qapp, field):
    assert _takes(qapp, field, Qt.Key.Key_Left)
    field.window().findChild(QAction, "report").setShortcut("Ctrl+Left")
    assert not _takes(qapp, field, Qt.Key.Key_Left)


def test_that_undo_is_the_fields_while_it_has_something_to_undo(qapp, qtbot, field):
    assert not _takes(qapp, field, Qt.Key.Key_Z)
    qtbot.keyClicks(field, "4")
    assert _takes(qapp, field, Qt.Key.Key_Z)


def test_that_copying_stays_the_fields(qapp, field):
    assert _takes(qapp, field, Qt.Key.Key_C)
