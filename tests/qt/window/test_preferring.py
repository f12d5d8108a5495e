"""What is set in the settings holds at once, and at the next start."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QWidget

from engine.units import UnitSystem
from tests.helpers.controls import pick


@pytest.fixture
def dialog(app, qtbot):
    app.window.commands["preferences"].trigger()
    made = app.preferring.dialog
    qtbot.waitUntil(made.isVisible)
    return made


def test_that_a_page_is_opened_by_its_title(app, dialog):
    dialog.close()
    dialog.open_page("General")
    assert dialog.isVisible()
    assert dialog.list.currentItem().text() == "General"
    assert dialog.stack.currentWidget().isAncestorOf(app.preferring.general)


def test_that_the_list_of_pages_is_gone_through_by_keyboard(app, dialog, qtbot):
    assert dialog.list.hasFocus()
    last = dialog.list.count() - 1
    qtbot.keyClick(dialog.list, Qt.Key.Key_End)
    assert dialog.stack.currentIndex() == last


def test_that_the_unit_is_one_everywhere(app, dialog, qtbot):
    qtbot.mouseClick(
        dialog.findChild(QWidget, "unit of sizes").buttons[1], Qt.MouseButton.LeftButton
    )
    assert app.model.state.unit is UnitSystem.DECIMAL
    assert app.window.commands["unit GB"].isChecked()
    assert app.view.verdict.headline.full_text.count(" GB") == 1


def test_that_plans_begin_on_the_chosen_baseline_now_and_next_time(app, dialog, start, qtbot):
    assert not app.model.state.plan.emptied
    pick(dialog.findChild(QWidget, "first baseline"), "As if nothing else ran")
    assert app.model.state.plan.emptied
    assert app.window.commands["emptied"].isChecked()
    app.window.close()
    again = start()
    qtbot.waitUntil(lambda: again.model.state.fit is not None, timeout=20_000)
    assert again.model.state.plan.emptied


def test_that_the_chosen_paper_is_the_reports(app, dialog, qtbot):
    for paper in dialog.findChild(QWidget, "paper of reports").buttons:
        qtbot.mouseClick(paper, Qt.MouseButton.LeftButton)
        assert app.filing.paper == paper.text()


def test_that_the_language_is_kept_for_the_next_start(app, dialog):
    pick(dialog.findChild(QWidget, "language"), "Deutsch")
    app.window.close()
    assert app.store.load().language == "de"
