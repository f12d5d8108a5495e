"""Every command can be found by its name and run from the keyboard."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt

from gui.kit.command_palette import CommandPalette


@pytest.fixture
def palette(app, qtbot):
    app.window.commands["commands"].trigger()
    found = app.window.findChild(CommandPalette)
    qtbot.waitUntil(found.isVisible)
    return found


def _shown(palette):
    model = palette.list.model()
    return [model.index(row, 0).data() for row in range(model.rowCount())]


def test_that_every_command_of_the_menus_is_listed(app, palette):
    in_menus = {
        action.text().replace("&", "").removesuffix("…")
        for menu in app.window.menuBar().actions()
        for action in menu.menu().actions()
        if action.text()
    }
    # The list itself, and Undo and Redo while there is nothing to undo.
    assert in_menus - set(_shown(palette)) == {"Commands", "Undo", "Redo"}


def test_that_typing_finds_and_enter_runs(app, palette, qtbot):
    context = app.model.state.context
    qtbot.keyClicks(palette.field, "double")
    assert _shown(palette) == ["Double the context"]
    qtbot.keyClick(palette.field, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: app.model.state.context == 2 * context)
    assert app.window.findChild(CommandPalette) is None


def test_that_arrows_choose_and_escape_runs_nothing(app, palette, qtbot):
    context = app.model.state.context
    qtbot.keyClicks(palette.field, "the context")
    first = palette.list.currentIndex().row()
    qtbot.keyClick(palette.field, Qt.Key.Key_Down)
    assert palette.list.currentIndex().row() == first + 1
    qtbot.keyClick(palette.field, Qt.Key.Key_Escape)
    assert not palette.isVisible()
    assert app.model.state.context == context


def test_that_a_command_that_cannot_run_now_stays(app, palette, qtbot):
    app.window.commands["report"].setEnabled(False)
    qtbot.keyClicks(palette.field, "report")
    assert _shown(palette)[0] == "Export report"
    qtbot.keyClick(palette.field, Qt.Key.Key_Return)
    assert palette.isVisible()


def test_that_nothing_found_runs_nothing(palette, qtbot):
    qtbot.keyClicks(palette.field, "no such command")
    assert _shown(palette) == []
    qtbot.keyClick(palette.field, Qt.Key.Key_Return)
    assert palette.isVisible()
