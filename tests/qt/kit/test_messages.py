"""Errors become one sentence that is safe to show."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.cancel import JobCancelledError
from engine.errors import HubGatedError
from gui.kit.messages import details, sentence


def test_that_our_own_error_speaks_for_itself_on_one_line():
    error = HubGatedError("Accept the terms of x/y first,\n then add a token.")
    assert sentence(error) == "Accept the terms of x/y first, then add a token."


def test_that_hostile_text_cannot_reorder_the_line_or_flood_it():
    text = sentence(HubGatedError("a\u202eb" + "c" * 5000))
    assert "\u202e" not in text
    assert len(text) < 500


def test_that_trouble_with_a_file_names_the_file(tmp_path):
    missing = tmp_path / "config.json"
    with pytest.raises(FileNotFoundError) as caught:
        missing.read_text()
    assert sentence(caught.value) == f"There is no file {missing}."


def test_that_a_fault_of_ours_says_so_and_a_stop_is_no_fault():
    assert "inside Plimsoll (KeyError)" in sentence(KeyError("secret"))
    assert "secret" not in sentence(KeyError("secret"))
    assert sentence(JobCancelledError()) == "Stopped."


def test_that_details_carry_the_trace_without_the_home_folder():
    try:
        raise ValueError(f"{Path.home()}/models is odd")
    except ValueError as error:
        text = details(error)
    assert "test_messages.py" in text
    assert "~/models is odd" in text
    assert str(Path.home()) not in text
