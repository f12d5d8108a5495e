"""How another model comes beside the plan: by the command, or from the list."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QToolButton

from gui.browser.row_menu import row_menu


@pytest.fixture
def other(app):
    """A row of another model than the one in the window."""
    model = app.model.state.model.id
    return next(row for row in app.browser.model.state.rows if row.key != model)


def test_that_the_next_model_picked_runs_beside_the_plan(app, qtbot, other):
    planned = app.model.state.model
    app.window.commands["beside"].trigger()
    assert app.adjoining.notice.isVisible()
    assert planned.id.rsplit("/", 1)[-1] in app.adjoining.notice.line.text()
    app.browser.model.choose(other.key)
    qtbot.waitUntil(lambda: bool(app.model.state.beside), timeout=20_000)
    assert app.model.state.model is planned
    assert app.model.state.beside[0].tenant.model.id == other.key
    assert not app.adjoining.notice.isVisible()
    assert app.browser.model.state.wanted.chosen == planned.id
    assert app.view.beside.isVisible()
    # The one after that is planned again, as ever.
    app.browser.model.choose(other.key)
    qtbot.waitUntil(lambda: app.model.state.model.id == other.key, timeout=20_000)


def test_that_escape_leaves_the_machine_as_it_is(app, qtbot, other):
    app.window.commands["beside"].trigger()
    qtbot.keyClick(app.window, Qt.Key.Key_Escape)
    assert not app.adjoining.is_picking
    app.browser.model.choose(other.key)
    qtbot.waitUntil(lambda: app.model.state.model.id == other.key, timeout=20_000)
    assert app.model.state.plan.beside == ()


def test_that_a_row_offers_it_and_undo_takes_it_back(app, qtbot, other):
    menu = row_menu(other, app.browser.model, app.window)
    action = next(a for a in menu.actions() if "beside" in a.text())
    action.trigger()
    qtbot.waitUntil(lambda: bool(app.model.state.beside), timeout=20_000)
    app.model.undo_stack.undo()
    assert app.model.state.plan.beside == ()
    assert not app.view.beside.isVisible()


def test_that_no_more_are_added_than_the_row_holds(app, qtbot, other):
    model = app.model.state.model
    for _ in range(5):
        app.model.add_beside(model)
    assert not app.window.commands["beside"].isEnabled()
    assert not app.view.beside.findChild(QToolButton, "add beside").isEnabled()
    app.model.remove_beside(4)
    assert app.window.commands["beside"].isEnabled()


def test_that_a_report_tells_who_runs_beside(app, tmp_path):
    program = shutil.which("pdftotext")
    if program is None:
        pytest.skip("poppler's pdftotext is not installed")
    app.model.add_beside(app.model.state.model)
    app.filing.write_report(tmp_path / "report.pdf")
    told = subprocess.run(
        [program, "-layout", str(tmp_path / "report.pdf"), "-"],
        capture_output=True, check=True, encoding="utf-8",
    ).stdout  # fmt: skip
    assert f"Beside it: {app.model.state.model.id} with " in told
    assert "The command below is that of this model alone." in told
