"""What is kept or passed on names neither secrets nor people nor their computers."""

from __future__ import annotations

import getpass
import platform
from pathlib import Path

import pytest

from engine import redaction


@pytest.fixture(autouse=True)
def _names(monkeypatch):
    redaction._names.cache_clear()
    monkeypatch.setattr(getpass, "getuser", lambda: "annika")
    monkeypatch.setattr(platform, "node", lambda: "tower7.example.org")
    monkeypatch.setattr(Path, "home", lambda: Path("/data/people/annika"))
    yield
    redaction._names.cache_clear()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('File "/data/people/annika/a.py", line 3', 'File "~/a.py", line 3'),
        ('File "/home/someone else/a.py"', 'File "~ else/a.py"'),
        (r"C:\Users\Annika\a.py", r"~\a.py"),
        ("annika@tower7: no", "<user>@<host>: no"),
        ("tower7.example.org", "<host>"),
        ("annikas towers", "annikas towers"),
        ("Authorization: Bearer abc.def and on", "Authorization: *** *** and on"),
        ("https_proxy=http://me:pw@proxy:80/ x", "https_proxy=http://***@proxy:80/ x"),
        ("{'password': 'a b', 'x': 1}", "{'password': ***, 'x': 1}"),
        ("HF_TOKEN=abc; max_tokens=4096", "HF_TOKEN=***; max_tokens=4096"),
        ("told hf_AbCdEfGhIjKl twice", "told *** twice"),
    ],
)
def test_that_secrets_and_names_are_masked_and_the_rest_stays(text, expected):
    assert redaction.redacted(text) == expected


@pytest.mark.parametrize("name", ["root", "me", ""])
def test_that_a_name_that_stands_in_every_other_line_is_no_name(monkeypatch, name):
    monkeypatch.setattr(getpass, "getuser", lambda: name)
    assert redaction.redacted("the root of me") == "the root of me"
