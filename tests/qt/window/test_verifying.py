"""Verifying from the window: a job that can be cancelled, and a Python that is remembered."""

from __future__ import annotations

import json
import os
from dataclasses import replace

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QFileDialog, QPushButton

from engine.architecture.read import read
from engine.source import catalogue
from tests.helpers.other_python import TENSORS, answering, built, stand_in

PARAMETERS = "8,030,261,248"
"""Of Llama-3.1-8B, as its card says and the tensors of the stand-in add up to."""


@pytest.fixture
def opened(app, qtbot, monkeypatch, tmp_path):
    """Opens the panel for Llama-3.1-8B with a Python of that path, or with none to be found."""
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    monkeypatch.setattr("engine.verify.interpreter.find_spec", lambda _name: None)
    app.model.load(read(catalogue.raw(catalogue.find("meta-llama/Llama-3.1-8B-Instruct"))))

    def begin(python="", until=lambda panel: panel.end.text() == "Close"):
        app.settings = app.settings.with_(python=str(python))
        app.window.commands["verify"].trigger()
        panel = app.verifying.dialog
        qtbot.waitUntil(lambda: until(panel), timeout=20_000)
        return panel

    return begin


def cells(panel):
    table = panel.table
    columns = range(table.columnCount())
    return [[table.item(r, c).text() for c in columns] for r in range(table.rowCount())]


def ends(panel, qtbot):
    qtbot.waitUntil(lambda: panel.end.text() == "Close", timeout=20_000)


def test_that_both_counts_stand_side_by_side(opened, tmp_path):
    panel = opened(answering(tmp_path, built(TENSORS)))
    assert panel.headline.text() == "Equal to the parameter."
    assert "LlamaForCausalLM by transformers 5 and torch 2" in panel.detail.text()
    rows = cells(panel)
    # V x H: 128,256 x 4,096.
    assert rows[0] == ["Embedding", "525,336,576", "525,336,576", "0"]
    assert rows[-1] == ["All", PARAMETERS, PARAMETERS, "0"]
    panel.copy.click()
    copied = QApplication.clipboard().text()
    assert "**Equal to the parameter.**" in copied
    assert f"| All | {PARAMETERS} | {PARAMETERS} | 0 |" in copied


def test_that_a_difference_is_said_with_its_sign(opened, tmp_path):
    extra = ["model.layers.0.mlp.extra.weight", [7]]
    panel = opened(answering(tmp_path, built([*TENSORS, extra])))
    assert panel.headline.text() == "They differ by 7 parameters."
    rows = {row[0]: row[3] for row in cells(panel)}
    assert rows["MLP"] == rows["All"] == "\N{MINUS SIGN}7"
    assert rows["Norm"] == "0"


def test_that_without_torch_one_sentence_says_how_to_get_it(opened):
    panel = opened()
    assert "pip install torch transformers" in panel.detail.text()
    assert panel.choose.isEnabled()
    panel.copy.click()
    assert QApplication.clipboard().text() == "pip install torch transformers"
    assert cells(panel)[-1] == ["All", PARAMETERS, "\N{EN DASH}", "\N{EN DASH}"]


def test_that_the_python_that_was_chosen_is_kept_as_it_was_named(opened, app, qtbot, tmp_path):
    panel = opened()
    link = tmp_path / "environment"
    link.symlink_to(answering(tmp_path, built(TENSORS)))
    panel.choose.click()
    files = panel.findChild(QFileDialog)
    files.selectFile(str(link))
    files.accept()
    ends(panel, qtbot)
    assert panel.headline.text() == "Equal to the parameter."
    assert panel.python.full_text == f"With {link}"
    app.window.close()
    assert app.store.load().python == str(link)


def test_that_a_python_that_cannot_build_is_not_remembered(opened, app, qtbot, tmp_path):
    panel = opened()
    bare = tmp_path / "python"
    bare.write_text("#!/bin/sh\nexit 1\n")
    bare.chmod(0o755)
    panel.python_chosen.emit(str(bare))
    ends(panel, qtbot)
    assert "pip install torch transformers in it" in panel.detail.text()
    assert app.settings.python == ""


def test_that_what_transformers_says_against_it_is_one_sentence(opened, tmp_path):
    answer = {"error": "failed", "named": "ValueError: heads\nand more\x1b[31m"}
    panel = opened(answering(tmp_path, answer))
    assert panel.detail.text().startswith("transformers could not build it: ValueError: heads")
    assert "\x1b" not in panel.detail.text()
    panel.copy.click()
    assert "VerifyError" in QApplication.clipboard().text()


def _waiting(tmp_path):
    """A Python that never answers, and the file with its number."""
    number = tmp_path / "number"
    answer = f"import os, time\nopen({str(number)!r}, 'w').write(str(os.getpid()))\ntime.sleep(600)"
    return stand_in(tmp_path, answer), number


def _is_running(number):
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("way", ["button", "escape", "window"])
def test_that_leaving_ends_the_process(opened, app, qtbot, tmp_path, way):
    python, file = _waiting(tmp_path)
    panel = opened(python, until=lambda panel: panel.headline.text().startswith("Building"))
    assert panel.end.text() == "Cancel"
    assert not panel.copy.isEnabled()
    qtbot.waitUntil(lambda: file.exists() and bool(file.read_text()), timeout=20_000)
    number = file.read_text()
    assert _is_running(number)
    if way == "button":
        panel.end.click()
    elif way == "escape":
        qtbot.keyClick(panel, Qt.Key.Key_Escape)
    else:
        app.window.close()
    qtbot.waitUntil(lambda: not _is_running(number), timeout=20_000)
    assert app.verifying.dialog is None or way == "window"


def test_that_the_window_answers_while_a_model_is_built(opened, app, tmp_path):
    python, _file = _waiting(tmp_path)
    panel = opened(python, until=lambda panel: panel.headline.text().startswith("Building"))
    app.model.edit("context", max_model_len=4096)
    assert app.model.state.context == 4096
    assert panel.headline.text().startswith("Building")
    panel.end.click()


def test_that_it_can_be_asked_again(opened, app, tmp_path):
    first = opened(answering(tmp_path, built(TENSORS)))
    first.end.click()
    assert app.verifying.dialog is None
    second = opened(answering(tmp_path, built(TENSORS)))
    assert second is not first
    assert second.headline.text() == "Equal to the parameter."


def test_that_a_model_without_a_config_is_refused_with_the_reason(app):
    button = app.view.header.findChild(QPushButton, "verify button")
    action = app.window.commands["verify"]
    assert button.isEnabled()
    assert action.isEnabled()
    app.model.load(replace(app.model.state.model, config=None))
    assert not button.isEnabled()
    assert "no config.json" in button.toolTip()
    assert "no config.json" in action.text()
    app.verifying.open()
    assert app.verifying.dialog is None


def test_that_everything_is_reached_by_keys_and_has_a_name(opened, tmp_path, qtbot):
    panel = opened(answering(tmp_path, built(TENSORS)))
    seen = []
    for _ in range(8):
        focus = QApplication.focusWidget()
        seen.append(focus)
        qtbot.keyClick(focus, Qt.Key.Key_Tab)
    assert {panel.table, panel.choose, panel.copy, panel.end} <= set(seen)
    assert panel.table.accessibleName()
    assert "Equal to the parameter." in panel.accessibleDescription()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_that_nothing_is_cut_and_the_colours_follow(opened, app, tmp_path, scheme):
    panel = opened(answering(tmp_path, built([*TENSORS, ["visual.patch.weight", [3, 5]]])))
    app.themes.pin(scheme)
    table, theme = panel.table, app.themes.current
    assert theme.scheme == scheme
    last = table.item(table.rowCount() - 1, 3)
    assert last.foreground().color() == theme.color("over")
    for row in range(table.rowCount()):
        for column in range(1, 4):
            item = table.item(row, column)
            wide = table.fontMetrics().horizontalAdvance(item.text())
            assert wide + 16 <= table.columnWidth(column)
    assert not table.verticalScrollBar().isVisible()
    assert panel.height() >= panel.layout().totalHeightForWidth(panel.width())


def test_that_the_config_is_all_that_is_handed_over(opened, app, tmp_path):
    seen = tmp_path / "seen.json"
    answer = f"open({str(seen)!r}, 'w').write(given)\nprint('[]')"
    python = stand_in(tmp_path, answer)
    python.write_text(python.read_text().replace("sys.stdin.read()", "given = sys.stdin.read()"))
    opened(python)
    assert json.loads(seen.read_text()) == dict(app.model.state.model.config)
