"""A file is the old one or the new one, whatever happens while it is written."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gui.kit.messages import sentence
from gui.kit.whole_file import set_aside, write_whole

ROOT = Path(__file__).resolve().parents[3]
TEXTS = tuple(letter * 300_000 for letter in "ab")

WRITE = """
import pathlib, sys
sys.path.insert(0, {root!r})
from gui.kit.whole_file import write_whole
for _ in range(100_000):
    for letter in "ab":
        write_whole(pathlib.Path({path!r}), letter * 300_000)
        print(letter, flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("written", [1, 2, 7, 40])
def test_that_a_kill_amid_writing_leaves_one_text_whole(tmp_path, written):
    path = tmp_path / "a.plimsoll"
    code = WRITE.format(root=str(ROOT), path=str(path))
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as writer:
        for _ in range(written):
            assert writer.stdout.readline()
        writer.kill()
    assert path.read_text() in TEXTS


@pytest.mark.parametrize(
    ("place", "words"),
    [
        (
            "no/such/a.plimsoll",
            "{folder}/no/such/a.plimsoll lies below something that is not a folder.",
        ),
        ("folder", "{folder}/folder is a folder where a file was expected."),
    ],
)
def test_that_what_cannot_be_written_is_said_in_our_words(tmp_path, place, words):
    (tmp_path / "folder").mkdir()
    with pytest.raises((NotADirectoryError, IsADirectoryError)) as caught:
        write_whole(tmp_path / place, "x")
    assert sentence(caught.value) == words.format(folder=tmp_path)


def test_that_a_file_makes_way_over_no_other(tmp_path):
    names = []
    for text in ("one", "two", "three"):
        (tmp_path / "a.json").write_text(text)
        names.append(set_aside(tmp_path / "a.json").name)
    assert names == ["a.unread.json", "a.unread-2.json", "a.unread-3.json"]
    assert [(tmp_path / name).read_text() for name in names] == ["one", "two", "three"]
    assert set_aside(tmp_path / "a.json") is None
