"""Favourites, recents and folders as a file."""

from __future__ import annotations

import json

import pytest

from engine.errors import PlimsollError
from gui.browser.shelf import Shelf
from gui.browser.shelf_file import merged, near, read, written

SHELF = Shelf(("a/b", "/models/x.gguf"), ("c/d", "llama3.2:3b"), ("/models",))


def test_that_a_shelf_comes_back_as_it_was(tmp_path):
    path = tmp_path / "favourites.json"
    path.write_text(written(SHELF))
    assert read(path) == SHELF
    assert json.loads(path.read_text()) == {
        "schema": "plimsoll.shelf/1",
        "favourites": ["a/b", "/models/x.gguf"],
        "recents": ["c/d", "llama3.2:3b"],
        "folders": ["/models"],
    }


def test_that_what_is_added_stands_behind_what_was_there():
    now = Shelf(("x/y", "a/b"), tuple(f"r/{n}" for n in range(20)), ())
    both = merged(now, SHELF)
    assert both.favourites == ("x/y", "a/b", "/models/x.gguf")
    assert both.recents == now.recents
    assert both.folders == ("/models",)


def test_that_folders_of_other_computers_are_told_apart():
    shelf = Shelf(folders=("/models", "//host/share", "\\\\host\\share"))
    assert near(shelf) == (Shelf(folders=("/models",)), ("//host/share", "\\\\host\\share"))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "empty"),
        ("[]", "list"),
        ("{}", "no schema"),
        ('{"schema": "plimsoll.workspace/1"}', "no schema"),
        ('{"schema": "plimsoll.shelf/1", "favourites": "a"}', "favourites"),
        ('{"schema": "plimsoll.shelf/1", "favourites": [1]}', "favourites"),
        ('{"schema": "plimsoll.shelf/1", "folders": ["a\\u202eb"]}', "folders"),
        ('{"schema": "plimsoll.shelf/1", "recents": ["{}"]}', "recents"),
        (json.dumps({"schema": "plimsoll.shelf/1", "recents": ["a"] * 21}), "at most 20"),
    ],
)
def test_that_a_wrong_file_is_a_sentence(tmp_path, content, words):
    path = tmp_path / "f.json"
    path.write_text(content)
    with pytest.raises(PlimsollError) as caught:
        read(path)
    assert words in caught.value.message
    assert "f.json" in caught.value.message
