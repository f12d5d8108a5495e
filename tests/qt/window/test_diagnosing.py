"""Logs in the window: dropped, pasted, opened, planned and closed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, QPointF, Qt, QUrl
from PySide6.QtGui import QDropEvent, QGuiApplication
from PySide6.QtWidgets import QFileDialog

from engine.source.origin import Named
from gui.diagnosing import is_log
from tests.helpers import logs
from tests.helpers.hub_models import SIZEABLE


@pytest.fixture
def log(tmp_path) -> Path:
    path = tmp_path / "vllm-serve.log"
    path.write_text(logs.TAKEN)
    return path


def drop(app, mime: QMimeData) -> None:
    event = QDropEvent(
        QPointF(10, 10),
        Qt.DropAction.CopyAction,
        mime,
        Qt.MouseButton.LeftButton,
        Qt.KeyboardModifier.NoModifier,
    )
    app.window.dropEvent(event)


def wait_for_log(qtbot, app) -> None:
    qtbot.waitUntil(lambda: app.diagnosing.model.state is not None, timeout=20_000)


def test_that_a_dropped_log_is_explained_in_the_verdicts_place(app, qtbot, log):
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile(str(log))])
    drop(app, mime)
    wait_for_log(qtbot, app)
    assert app.view.tabs.stack.currentWidget() is app.diagnosing.view
    assert app.diagnosing.verdict.isVisible()
    assert not app.view.verdict.isVisible()
    assert app.diagnosing.verdict.headline.full_text.startswith("This run ran out")
    assert not app.trouble.isVisible()


def test_that_a_dropped_command_over_several_lines_opens_its_plan(app, qtbot):
    mime = QMimeData()
    mime.setText("# kept from the shell\nvllm serve Qwen/Qwen3-8B \\\n  --max-model-len 4321")
    drop(app, mime)
    qtbot.waitUntil(lambda: app.model.state.plan.deployment.max_model_len == 4321, timeout=20_000)
    assert app.model.state.model.id == "Qwen/Qwen3-8B"
    assert app.diagnosing.model.state is None


def test_that_the_dialog_for_any_file_offers_logs_and_recordings_and_reads_them(app, qtbot, log):
    app.window.commands["open"].trigger()
    dialog = next(d for d in app.window.findChildren(QFileDialog) if d.isVisible())
    for kind in ("*.plimsoll", "*.gguf", "*.log", "*.jsonl.gz"):
        assert kind in dialog.nameFilters()[0]
    dialog.fileSelected.emit(str(log))
    dialog.reject()
    wait_for_log(qtbot, app)


def test_that_lines_of_text_are_a_log_and_a_config_is_none(app, qtbot):
    mime = QMimeData()
    mime.setText(logs.REFUSED)
    drop(app, mime)
    wait_for_log(qtbot, app)
    assert app.diagnosing.model.state.name == "Pasted log"
    assert not is_log('{"model_type": "llama",\n"hidden_size": 1}')
    assert not is_log('[\n {"model": "x"}\n]')
    assert not is_log('[{"model": "x"},\n {"model": "y"}]')
    assert not is_log("meta-llama/Llama-3.1-8B")
    # SGLang's lines, a page of metrics, and TGI's where each is an object.
    assert is_log("[2026-09-12 00:22:48 TP0] KV Cache is allocated.\n[2026-09-12 00:22:49 TP0] x")
    assert is_log("# HELP vllm:num_requests_running x\nvllm:num_requests_running 1.0")
    assert is_log('{"level":"INFO","message":"a"}\n{"level":"ERROR","message":"b"}')
    assert not is_log(Path("config.json"))
    assert is_log(Path("RUN.LOG"))


def test_that_the_clipboard_can_be_read(app, qtbot):
    QGuiApplication.clipboard().setText(logs.TAKEN)
    app.window.commands["paste log"].trigger()
    wait_for_log(qtbot, app)
    assert app.diagnosing.model.state.run.reading.runtime == "vllm"


def test_that_an_empty_clipboard_costs_one_sentence(app):
    QGuiApplication.clipboard().setText("")
    app.window.commands["paste log"].trigger()
    assert app.trouble.line.text().startswith("The clipboard holds no text")


def test_that_a_file_can_be_chosen(app, qtbot, log):
    app.window.commands["open log"].trigger()
    dialog = app.window.findChild(QFileDialog)
    dialog.fileSelected.emit(str(log))
    dialog.reject()
    wait_for_log(qtbot, app)
    assert app.settings.last_folder == str(log.parent)


def test_that_other_tabs_speak_of_the_plan_and_closing_returns_to_it(app, qtbot, log):
    app.diagnosing.read(log)
    wait_for_log(qtbot, app)
    app.window.commands["tab regions"].trigger()
    assert app.view.verdict.isVisible()
    assert not app.diagnosing.verdict.isVisible()
    app.window.commands["tab log"].trigger()
    assert app.diagnosing.verdict.isVisible()
    qtbot.mouseClick(app.diagnosing.verdict.close_button, Qt.MouseButton.LeftButton)
    assert app.diagnosing.model.state is None
    assert app.view.verdict.isVisible()
    assert app.view.tabs.stack.currentWidget() is app.view.regions


def test_that_a_remedy_becomes_the_plan_on_the_runs_device(app, qtbot, log):
    app.diagnosing.read(log)
    wait_for_log(qtbot, app)
    button = app.diagnosing.verdict.buttons[1]
    qtbot.waitUntil(lambda: button.isVisible() and button.height() > 0)
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    state = app.model.state
    assert state.model.id == "meta-llama/Llama-3.1-8B-Instruct"
    assert state.plan.deployment == button.remedy.deployment
    # The session finds it again.
    assert app.workspaces.now().plan.model == Named("meta-llama/Llama-3.1-8B-Instruct")
    assert state.machine.slots[0].device.total_bytes == round(23.64 * 2**30)
    assert app.view.verdict.isVisible()


def test_that_a_log_that_cannot_be_read_leaves_the_plan_alone(app, qtbot, tmp_path):
    app.diagnosing.read(tmp_path / "no.log")
    qtbot.waitUntil(app.trouble.isVisible, timeout=20_000)
    assert "no.log" in app.trouble.line.text()
    assert app.view.verdict.isVisible()


def test_that_copying_gives_a_table_for_an_issue(app, qtbot, log):
    app.diagnosing.read(log)
    wait_for_log(qtbot, app)
    app.diagnosing.view.copy_wanted.emit()
    text = QGuiApplication.clipboard().text()
    assert text.startswith("**This run ran out: 18 MiB short while capturing graphs**")
    assert "| Weights | 14.99 | 14.99 | 0.00 | 4 |" in text


def test_that_a_config_in_a_text_file_is_opened_as_one(app, qtbot, tmp_path):
    path = tmp_path / "llama.txt"
    path.write_text(json.dumps(SIZEABLE))
    app.filing.take(path)
    qtbot.waitUntil(lambda: app.model.state.model.spec.hidden_size == 256, timeout=20_000)
    assert app.diagnosing.model.state is None
    assert not app.trouble.isVisible()


def test_that_a_text_file_that_is_neither_costs_one_sentence(app, qtbot, tmp_path):
    before = app.model.state.model
    path = tmp_path / "notes.txt"
    path.write_text("milk and bread")
    app.filing.take(path)
    qtbot.waitUntil(app.trouble.isVisible, timeout=20_000)
    assert app.trouble.line.text().startswith("No line of notes.txt is known.")
    assert app.model.state.model is before
