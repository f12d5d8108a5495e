"""The fit map in the whole window: its command, and what it leaves room for at every size."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt


def _open(app, qtbot):
    app.window.commands["tab map"].trigger()
    model = app.view.fit_map._model
    qtbot.waitUntil(lambda: model.is_settled and model.answer is not None, timeout=20_000)


def test_that_its_command_opens_it_with_the_worked_example(app, qtbot):
    _open(app, qtbot)
    page = app.view.fit_map
    assert page.isVisible()
    assert page.map.isVisible()
    assert page.map.scene.point.context == app.model.state.context
    assert app.window.commands["tab map"].shortcut().toString() == "Ctrl+2"


@pytest.mark.parametrize("size", [(1440, 900), (1280, 800), (960, 600)])
def test_that_plan_and_verdict_stay_to_be_seen_beside_it(app, qtbot, size):
    app.welcome.dismiss()
    app.window.resize(*size)
    qtbot.waitUntil(lambda: app.window.size().toTuple() == size)
    _open(app, qtbot)
    page, verdict = app.view.fit_map, app.view.verdict
    qtbot.waitUntil(lambda: page.map.height() >= 160)
    assert page.mapTo(app.window, page.rect().bottomRight()).x() < size[0]
    top = page.mapTo(app.window, page.rect().topLeft()).y()
    assert top >= verdict.mapTo(app.window, verdict.rect().bottomLeft()).y()
    assert page.map.width() >= 360


def test_that_the_arrow_keys_reach_the_plan_and_undo_takes_it_back(app, qtbot):
    _open(app, qtbot)
    before = app.model.state.plan
    app.view.fit_map.map.setFocus()
    qtbot.keyClick(app.view.fit_map.map, Qt.Key.Key_Left)
    assert app.model.state.plan.deployment.max_model_len < before.deployment.max_model_len
    qtbot.keyClick(app.window, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    assert app.model.state.plan == before


def test_that_it_wears_the_theme_of_the_window(app, qtbot):
    _open(app, qtbot)
    for scheme in ("dark", "contrast-light"):
        app.themes.pin(scheme)
        assert app.view.fit_map.map.theme.scheme == scheme
