"""Shortcuts are changed on their page and hold everywhere at once; sheets say what there is."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QTableView, QWidget

from gui.kit.actions import COMMANDS
from gui.kit.look_up import LookUp

CTRL, SHIFT = Qt.KeyboardModifier.ControlModifier, Qt.KeyboardModifier.ShiftModifier


@pytest.fixture
def page(app, qtbot):
    app.preferring.dialog.open_page("Shortcuts")
    qtbot.waitUntil(app.preferring.dialog.isVisible)
    return app.keying.page


def find(page, qtbot, text):
    page.search.clear()
    qtbot.keyClicks(page.search, text)


def listed(page):
    model = page.table.model()
    return {model.index(r, 0).data(): model.index(r, 1).data() for r in range(model.rowCount())}


def test_that_every_command_is_listed_with_its_key(page):
    rows = listed(page)
    assert len(rows) == len(COMMANDS) + 2
    assert rows["File: Export report"] == "Ctrl+E"
    assert rows["Edit: Undo"] == "Ctrl+Z"
    assert rows["Help: Keyboard shortcuts"] == "Ctrl+?, ?"


@pytest.mark.parametrize("typed", ["export", "ctrl+e"])
def test_that_a_command_is_found_by_name_and_by_key(page, qtbot, typed):
    find(page, qtbot, typed)
    assert "File: Export report" in listed(page)
    assert "Edit: Undo" not in listed(page)


def test_that_a_new_key_holds_in_menu_tooltip_and_window_at_once(app, page, qtbot):
    find(page, qtbot, "halve")
    qtbot.keyClick(page.field, Qt.Key.Key_H, CTRL | SHIFT)
    action = app.window.commands["halve"]
    assert action.shortcut().toString() == "Ctrl+Shift+H"
    assert action.toolTip().endswith("(Ctrl+Shift+H)")
    app.preferring.dialog.close()
    context = app.model.state.context
    app.window.activateWindow()
    qtbot.waitUntil(app.window.isActiveWindow)
    qtbot.keyClick(app.window, Qt.Key.Key_BracketLeft)
    assert app.model.state.context == context
    qtbot.keyClick(app.window, Qt.Key.Key_H, CTRL | SHIFT)
    assert app.model.state.context == context // 2
    app.window.close()
    assert app.store.load().shortcuts == {"halve": "Ctrl+Shift+H"}


def test_that_a_key_in_use_is_refused_in_one_sentence(app, page, qtbot):
    find(page, qtbot, "halve")
    qtbot.keyClick(page.field, Qt.Key.Key_E, CTRL)
    words = page.findChild(QWidget, "shortcut words").text()
    assert words == "Ctrl+E is taken by “Export report”: give that another shortcut first."
    assert page.field.keySequence().toString() == "["
    assert app.window.commands["halve"].shortcut().toString() == "["


def test_that_one_and_all_are_put_back(app, page, qtbot):
    for name, key in (("halve", Qt.Key.Key_F7), ("double", Qt.Key.Key_F8)):
        find(page, qtbot, name)
        qtbot.keyClick(page.field, key)
    one, both = page.reset, page.reset_all
    qtbot.mouseClick(one, Qt.MouseButton.LeftButton)
    assert app.keying.keys.changes == {"halve": "F7"}
    qtbot.mouseClick(both, Qt.MouseButton.LeftButton)
    assert app.keying.keys.changes == {}
    assert not both.isEnabled()


def test_that_a_command_can_be_left_without_a_key(app, page, qtbot):
    find(page, qtbot, "halve")
    qtbot.mouseClick(page.none, Qt.MouseButton.LeftButton)
    assert app.window.commands["halve"].shortcut().isEmpty()
    assert app.window.commands["halve"].toolTip() == "Halve the context"


def test_that_tab_leaves_the_field_that_takes_keys(page, qtbot):
    page.field.setFocus()
    qtbot.keyClick(page.field, Qt.Key.Key_Tab)
    assert not page.field.hasFocus()


def test_that_the_search_field_names_its_key_of_now(app, page, qtbot):
    find(page, qtbot, "find a model")
    qtbot.keyClick(page.field, Qt.Key.Key_F7)
    assert app.browser.search._keys == "F7"


@pytest.mark.parametrize("modifiers", [Qt.KeyboardModifier.NoModifier, CTRL])
def test_that_a_question_mark_opens_the_sheet_of_all_shortcuts(app, qtbot, modifiers):
    app.view.setFocus()
    qtbot.keyClick(app.window, Qt.Key.Key_Question, modifiers)
    sheet = app.window.findChild(LookUp)
    assert sheet.isVisible()
    text = sheet.text.toPlainText()
    assert "Export report" in text
    assert "Ctrl+E" in text
    qtbot.keyClicks(sheet.field, "context")
    assert "Halve the context" in sheet.text.toPlainText()
    assert "Export report" not in sheet.text.toPlainText()


def test_that_f1_explains_each_term_in_one_line(app, qtbot):
    app.view.setFocus()
    qtbot.keyClick(app.window, Qt.Key.Key_F1)
    sheet = app.window.findChild(LookUp)
    qtbot.keyClicks(sheet.field, "load line")
    assert "What a runtime can really allocate on the device." in sheet.text.toPlainText()
    qtbot.keyClick(sheet, Qt.Key.Key_Escape)
    assert not sheet.isVisible()


def test_that_f10_opens_the_menu_and_f11_fills_the_screen(app, qtbot):
    qtbot.keyClick(app.window, Qt.Key.Key_F10)
    first = app.window.menuBar().actions()[0].menu()
    qtbot.waitUntil(first.isVisible)
    qtbot.keyClick(first, Qt.Key.Key_Escape)
    first.close()
    qtbot.keyClick(app.window, Qt.Key.Key_F11)
    qtbot.waitUntil(app.window.isFullScreen)
    assert app.window.commands["full screen"].isChecked()
    qtbot.keyClick(app.window, Qt.Key.Key_F11)
    qtbot.waitUntil(lambda: not app.window.isFullScreen())


@pytest.mark.parametrize("place", ["models", "models table"])
def test_that_a_letter_typed_in_a_list_of_models_goes_to_a_name_and_sets_no_marker(
    app, qtbot, place
):
    if place == "models table":
        app.window.commands["all models"].trigger()
    table = app.window.findChild(QTableView, place)
    table.setCurrentIndex(table.model().index(0, 0))
    table.setFocus()
    qtbot.waitUntil(table.hasFocus)
    set_marks = []
    app.window.commands["mark"].triggered.connect(lambda *_: set_marks.append(True))
    qtbot.keyClick(table, Qt.Key.Key_M)
    assert str(table.currentIndex().data()).lower().startswith("m")
    assert not set_marks
