"""A command's key can be changed to any that is free; the rest is refused with a reason."""

from __future__ import annotations

import pytest
from PySide6.QtGui import QAction, QKeySequence

from gui.kit.keys import Bound, Keys


def own(*texts):
    return tuple(QKeySequence(text) for text in texts)


@pytest.fixture
def keys(qapp):
    made = []
    for key, title, texts in (
        ("report", "Export report", ("Ctrl+E",)),
        ("keys", "Keyboard shortcuts", ("Ctrl+?", "?")),
        ("verify", "Verify", ()),
    ):
        action = QAction(title, qapp)
        action.setShortcuts(list(own(*texts)))
        made.append(Bound(key, title, "File", action, own(*texts)))
    return Keys(made, qapp)


def test_that_a_free_key_is_taken_and_kept(keys):
    assert keys.choose("report", QKeySequence("Ctrl+Shift+E")) == ""
    assert keys.of("report") == QKeySequence("Ctrl+Shift+E")
    assert keys.changes == {"report": "Ctrl+Shift+E"}


@pytest.mark.parametrize("taken", ["Ctrl+?", "?"])
def test_that_a_key_of_another_command_is_not_taken_and_its_owner_named(keys, taken):
    reason = keys.choose("report", QKeySequence(taken))
    assert "“Keyboard shortcuts”" in reason
    assert reason.count(".") == 1
    assert keys.changes == {}


@pytest.mark.parametrize("text", ["Esc", "Tab", "Return", "Shift+Tab", "Down", "Ctrl+C", "Ctrl+V"])
def test_that_keys_of_fields_and_lists_are_not_taken(keys, text):
    assert keys.choose("report", QKeySequence(text)).endswith(": choose another.")
    assert keys.changes == {}


def test_that_a_command_may_have_no_key(keys):
    keys.choose("report", QKeySequence())
    assert keys.text("report") == ""
    assert keys.changes == {"report": ""}


def test_that_what_was_delivered_comes_back_with_both_keys(keys):
    keys.choose("keys", QKeySequence("F7"))
    assert keys.text("keys") == "F7"
    assert keys.reset("keys") == ""
    assert keys.text("keys") == "Ctrl+?, ?"
    assert keys.changes == {}


def test_that_a_reset_takes_no_key_from_another(keys):
    keys.choose("report", QKeySequence("F7"))
    keys.choose("verify", QKeySequence("Ctrl+E"))
    assert "“Verify”" in keys.reset("report")
    assert keys.text("report") == "F7"
    keys.reset_all()
    assert (keys.text("report"), keys.text("verify")) == ("Ctrl+E", "")


def test_that_two_commands_may_have_swapped_their_keys(keys):
    swapped = {"report": "Ctrl+?", "keys": "Ctrl+E"}
    keys.restore(swapped)
    assert keys.changes == swapped


def test_that_what_makes_no_sense_stays_as_delivered(keys):
    keys.restore({"report": "Ctrl+Nonsense", "keys": "F7, F8", "gone": "F9", "verify": "Ctrl+C"})
    assert keys.changes == {}
