"""Each window has a session file of its own, and a stranger's comes to one sentence."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from engine.contract.workspace import Asked, Workspace
from engine.deployment.spec import Deployment
from engine.errors import PlimsollError
from engine.source.origin import Named
from gui.session_file import FILE_NAME, Kept, read, take, written

ROOT = Path(__file__).resolve().parents[3]
KEPT = Kept(
    Workspace(Asked(Named("gpt2"), Deployment(concurrency=3))), Path("/w/mine.plimsoll"), "ab12"
)

HOLD = """
import pathlib, sys
sys.path.insert(0, {root!r})
from gui.session_file import take
place = take(pathlib.Path({folder!r}))
print(place.path.name, flush=True)
sys.stdin.readline()
"""


def test_that_contents_and_file_come_back_together(tmp_path):
    (tmp_path / FILE_NAME).write_text(written(KEPT))
    assert read(tmp_path / FILE_NAME) == KEPT


INNER = json.loads(written(KEPT))["workspace"]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"schema": "plimsoll.session/2"}, "another version"),
        ({}, "another version"),
        ({"schema": "plimsoll.session/1"}, "another version"),
        ({"schema": "plimsoll.session/1", "file_print": ""}, "no workspace"),
        ({"schema": "plimsoll.session/1", "file_print": "", "workspace": []}, "no workspace"),
        (
            {"schema": "plimsoll.session/1", "file_print": "", "workspace": INNER | {"x": 1}},
            "no key x",
        ),
    ],
)
def test_that_what_is_no_session_is_one_sentence(tmp_path, values, words):
    (tmp_path / FILE_NAME).write_text(json.dumps(values))
    with pytest.raises(PlimsollError, match=words) as caught:
        read(tmp_path / FILE_NAME)
    assert FILE_NAME in caught.value.message


@pytest.mark.parametrize("file", [None, 7, "", "a\0b"])
def test_that_a_file_that_is_none_is_no_file(tmp_path, file):
    values = json.loads(written(KEPT)) | {"file": file}
    (tmp_path / FILE_NAME).write_text(json.dumps(values))
    assert read(tmp_path / FILE_NAME).file is None


def test_that_a_window_takes_what_was_written_last_and_no_other_has(tmp_path):
    for number, name in enumerate((FILE_NAME, "session-2.json", "session-3.json")):
        (tmp_path / name).write_text("x")
        os.utime(tmp_path / name, (100 + number % 2, 100 + number % 2))
    (tmp_path / "session.unread.json").write_text("x")
    places = [take(tmp_path) for _ in range(4)]
    assert places[0].path.name == "session-2.json"
    assert {place.path.name for place in places[1:3]} == {FILE_NAME, "session-3.json"}
    assert places[3].path.name == "session-4.json"
    places[0].leave()
    assert take(tmp_path).path.name == "session-2.json"


def test_that_a_fresh_place_is_nobodys(tmp_path):
    (tmp_path / FILE_NAME).write_text("x")
    assert take(tmp_path, fresh=True).path.name == "session-2.json"


def test_that_another_process_keeps_its_place_until_it_is_killed(tmp_path):
    (tmp_path / FILE_NAME).write_text("x")
    code = HOLD.format(root=str(ROOT), folder=str(tmp_path))
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout.readline() == f"{FILE_NAME}\n"
        assert take(tmp_path).path.name == "session-2.json"
        other.kill()
        other.wait()
    (tmp_path / f"{FILE_NAME}.AbC123").write_text("half a ses")
    assert take(tmp_path).path.name == FILE_NAME
    # What it was writing when it was killed is nothing to keep.
    assert not (tmp_path / f"{FILE_NAME}.AbC123").exists()


def test_that_without_a_folder_there_is_still_a_name(tmp_path):
    (tmp_path / "file").write_text("x")
    assert take(tmp_path / "file").path == tmp_path / "file" / FILE_NAME
