"""Every command can be found by its name and run from the keyboard."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt

from gui.kit.actions import COMMANDS, MENUS
from gui.kit.command_palette import CommandPalette
from tests.helpers import logs

CONTROL = Qt.KeyboardModifier.ControlModifier


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


def _menu(app, title):
    bar = app.window.menuBar()
    return next(a.menu() for a in bar.actions() if a.text().replace("&", "") == title)


def _texts(menu):
    return [a.text().replace("&", "").removesuffix("…") for a in menu.actions() if a.text()]


def test_that_the_menus_are_the_platforms_and_no_command_stands_in_two(app):
    bar = app.window.menuBar()
    titles = [action.text().replace("&", "") for action in bar.actions()]
    assert titles == ["File", "Edit", "View", "Plan", "Live", "Window", "Help"]
    assert len(titles) == len(MENUS)
    listed = [action for a in bar.actions() for action in a.menu().actions() if action.text()]
    assert len(listed) == len(set(listed))
    assert {app.window.commands[command.key] for command in COMMANDS} <= set(listed)


def test_that_the_window_menu_holds_the_window_and_its_rooms(app):
    assert _texts(_menu(app, "Window")) == [
        "Minimise", "Maximise", "Full screen", "Models", "All models and filters", "Regions",
        "Fit map", "Compare", "What holds it", "Checklist", "Log", "Next area", "Open the menu",
    ]  # fmt: skip
    app.window.commands["minimise"].trigger()
    assert app.window.isMinimized()
    app.window.showNormal()
    for is_large in (True, False):
        app.window.commands["zoom"].trigger()
        assert app.window.isMaximized() is is_large


def test_that_ctrl_and_a_number_opens_each_tab(app, qtbot):
    pages = (
        app.view.regions, app.view.fit_map, app.compare_view, app.holds, app.checking.view,
        app.diagnosing.view,
    )  # fmt: skip
    for number, page in reversed(list(enumerate(pages, 1))):
        qtbot.keyClick(app.window, Qt.Key(Qt.Key.Key_0 + number), CONTROL)
        assert app.view.tabs.stack.currentWidget() is page
    assert len(pages) == app.view.tabs.stack.count()


def test_that_the_lens_closes_by_menu_and_by_its_key_in_the_picture(app, qtbot):
    picture, lens = app.view.picture, app.window.commands["lens"]
    assert lens.isChecked()
    with_lens = picture.grab().toImage()
    lens.trigger()
    assert not lens.isChecked()
    assert picture.grab().toImage() != with_lens
    picture.setFocus()
    qtbot.keyClick(picture, Qt.Key.Key_Z)
    assert lens.isChecked()
    assert picture.grab().toImage() == with_lens
    app.browser.focus_search()
    qtbot.keyClick(app.browser.search, Qt.Key.Key_Z)
    assert app.browser.search.text() == "z"
    assert lens.isChecked()


def test_that_a_log_is_planned_and_closed_by_commands(app, qtbot):
    plan, close = app.window.commands["plan log"], app.window.commands["close log"]
    assert not plan.isEnabled()
    assert not close.isEnabled()
    app.diagnosing.read(logs.TAKEN)
    qtbot.waitUntil(lambda: app.diagnosing.model.state is not None, timeout=20_000)
    assert close.isEnabled()
    run = app.diagnosing.model.state.run.plan
    assert plan.isEnabled() is (run is not None)
    plan.trigger()
    assert app.model.state.model is run.model
    close.trigger()
    assert app.diagnosing.model.state is None
    assert not plan.isEnabled()
    assert not close.isEnabled()
