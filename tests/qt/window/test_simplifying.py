"""The simple view: fewer controls, the same plan, verdict, margin and figures."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QToolButton, QWidget

from gui.kit.format import count

PLANS = (
    {"max_model_len": 8192, "concurrency": 4},
    {"max_model_len": 32_768, "concurrency": 16, "kv_cache_dtype": "fp8"},
    {"max_model_len": 8192, "concurrency": 2, "tensor_parallel_size": 2},
    {"max_model_len": 131_072, "concurrency": 64},
)


def _said(app):
    """Everything the answer shows: words, facts, changes and the picture's own reading."""
    view = app.view
    return (
        view.verdict.headline.full_text,
        view.verdict.headline.toolTip(),
        view.verdict.detail.full_text,
        view.verdict.longest.accessibleName(),
        view.verdict.most.accessibleName(),
        tuple(button.accessibleName() for button in view.verdict.changes.buttons),
        view.picture.accessibleName(),
        view.picture.accessibleDescription(),
        view.strip.context.value,
        view.strip.at_once.value,
        view.strip.device.toolTip(),
    )


def _captions(strip):
    return [caption.text() for caption in strip.findChildren(QLabel) if caption.isVisible()]


def _settled(app, qtbot):
    qtbot.waitUntil(lambda: app.model.is_settled, timeout=20_000)


def _segment(app, text):
    buttons = app.window.status_line.view.findChildren(QToolButton)
    return next(button for button in buttons if button.text() == text)


@pytest.fixture
def planned(app, qtbot):
    """The worked example with vLLM on another machine."""
    app.model.choose_device("RTX 4090")
    app.model.choose_runtime("vllm", None)
    _settled(app, qtbot)
    return app


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: f"{plan['max_model_len']}")
def test_that_both_views_say_the_same(planned, qtbot, plan):
    app = planned
    app.model.edit("plan", **plan)
    _settled(app, qtbot)
    before, sizing, steps = _said(app), app.model.state.sizing, app.model.undo_stack.count()
    app.window.commands["view simple"].trigger()
    assert app.view.is_simple
    assert _said(app) == before
    assert app.model.state.sizing is sizing
    app.window.commands["view full"].trigger()
    assert _said(app) == before
    assert app.model.state.sizing is sizing
    assert app.model.undo_stack.count() == steps
    # From the settings themselves, so that two wrong views can't agree.
    assert app.view.strip.context.text() == count(plan["max_model_len"])
    assert app.model.state.plan.deployment.tensor_parallel_size == plan.get(
        "tensor_parallel_size", 1
    )


def test_that_the_simple_view_shows_four_controls_and_the_answer(planned, qtbot):
    app = planned
    qtbot.mouseClick(_segment(app, "Simple"), Qt.MouseButton.LeftButton)
    strip = app.view.strip
    wanted = ["Model", "Context, tokens per request", "Users at once", "Machine"]
    qtbot.waitUntil(lambda: _captions(strip) == wanted)
    for hidden in (strip.runtime, strip.weights, strip.kv, strip.tp, strip.pp, app.view.tabs):
        assert not hidden.isVisible()
    assert strip.model_button.text() in app.model.state.model.id
    assert app.view.verdict.isVisible()
    assert app.view.picture.isVisible()
    assert not app.view.header.isVisible()
    qtbot.mouseClick(_segment(app, "Full"), Qt.MouseButton.LeftButton)
    for shown in (strip.runtime, strip.weights, strip.kv, strip.tp, strip.pp, app.view.tabs):
        assert shown.isVisible()
    assert not strip.model_button.isVisible()


@pytest.mark.parametrize("size", [(1440, 900), (960, 600)])
def test_that_the_open_page_is_there_again_after_the_simple_view(planned, size):
    app = planned
    app.window.resize(*size)
    app.window.commands["tab compare"].trigger()
    assert app.compare_view.isVisible()
    app.window.commands["view simple"].trigger()
    assert not app.compare_view.isVisible()
    assert app.view.picture.isVisible()
    # A command for what the simple view leaves out leads to the full one.
    app.window.commands["tab compare"].trigger()
    assert not app.view.is_simple
    assert app.compare_view.isVisible()


def test_that_every_page_is_a_command_away(planned):
    app = planned
    for action in app.window.commands.all:
        if action.objectName().startswith("tab "):
            app.window.commands["view simple"].trigger()
            action.trigger()
            assert app.view.tabs.isVisible(), action.objectName()


def test_that_nothing_of_the_simple_strip_is_cut_in_a_small_window(planned, qtbot):
    app = planned
    app.window.resize(960, 600)
    app.window.commands["view simple"].trigger()
    strip = app.view.strip
    wanted = ["Model", "Context, tokens per request", "Users at once", "Machine"]
    qtbot.waitUntil(lambda: _captions(strip) == wanted)
    assert strip.at_once.width() >= strip.at_once.text_width("1,024")


def test_that_a_click_on_the_model_leads_to_the_search(planned, qtbot):
    app = planned
    app.window.resize(960, 600)
    app.window.commands["view simple"].trigger()
    assert not app.browser.isVisible()
    qtbot.mouseClick(app.view.strip.model_button, Qt.MouseButton.LeftButton)
    assert app.browser.isVisible()


def test_that_the_view_is_there_again_at_the_next_start(start):
    first = start()
    assert not first.view.is_simple
    first.window.commands["view simple"].trigger()
    first.window.close()
    second = start()
    assert second.view.is_simple
    assert second.window.commands["view simple"].isChecked()
    assert second.window.findChild(QWidget, "tabs") is not None
    assert not second.view.tabs.isVisible()
