"""A model without a config, entered in the window."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel

from gui.sizing.by_hand_dialog import ByHandDialog


@pytest.fixture
def dialog(app, qtbot):
    app.window.commands["by hand"].trigger()
    found = app.window.findChild(ByHandDialog)
    qtbot.waitUntil(found.isVisible)
    return found


def _enter(qtbot, dialog, **texts):
    for key, text in texts.items():
        dialog.fields[key].clear()
        qtbot.keyClicks(dialog.fields[key], text)


def test_that_four_numbers_make_a_model_that_is_sized(app, dialog, qtbot):
    assert not dialog.confirm.isEnabled()
    _enter(
        qtbot, dialog, parameters="8.03B", num_hidden_layers="32", num_key_value_heads="8",
        head_dim="128",
    )  # fmt: skip
    assert "131,072 bytes a token" in dialog.words.text()
    qtbot.keyClicks(dialog.name, "My model")
    qtbot.mouseClick(dialog.confirm, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: app.model.state.model.id == "My model", timeout=20_000)
    assert app.model.state.model.parameters == pytest.approx(8.03e9, rel=0.002)
    remark = app.view.findChild(QLabel, "remark")
    assert "hidden size 4,096" in remark.accessibleName()


def test_that_what_is_no_number_is_told_in_a_sentence(dialog, qtbot):
    _enter(qtbot, dialog, parameters="eight")
    assert dialog.words.text() == "Parameters: “eight” is not a number such as 8B."
    assert not dialog.confirm.isEnabled()


def test_that_contradicting_numbers_are_told(dialog, qtbot):
    _enter(
        qtbot, dialog, parameters="100M", num_hidden_layers="80", num_key_value_heads="8",
        head_dim="128",
    )  # fmt: skip
    assert "too few for 80 layers" in dialog.words.text()
    assert not dialog.confirm.isEnabled()
