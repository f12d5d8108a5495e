"""The manual page, made of what the program says of itself: ``python packaging/man.py``."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from engine.cli.options import OVERVIEW, SIZE_NOTE  # noqa: E402
from engine.cli.version import program_version  # noqa: E402

_FILES = (
    ("$XDG_CONFIG_HOME/plimsoll/settings.json", "settings of the window"),
    ("$XDG_STATE_HOME/plimsoll/session.plimsoll", "what lay on the desk when it was closed"),
    ("$XDG_DATA_HOME/plimsoll/learned.jsonl", "measured runs that plans for this machine follow"),
)


def page() -> str:
    """The page in roff."""
    parts = [
        f'.TH PLIMSOLL 1 "" "Plimsoll {program_version()}" "User Commands"',
        ".SH NAME",
        "plimsoll \\- will this model fit on this machine, and where does every byte go?",
        ".SH SYNOPSIS",
        ".B plimsoll",
        "[COMMAND] [MODEL] [OPTIONS]",
        ".SH DESCRIPTION",
        ".nf",
        _plain(OVERVIEW),
        ".fi",
        ".SH NOTES",
        ".nf",
        _plain(SIZE_NOTE),
        ".fi",
        ".SH OPTIONS",
        "Every command lists its options with",
        ".BR \\-\\-help .",
        ".SH FILES",
    ]
    for path, what in _FILES:
        parts += [".TP", f".I {path}", what]
    parts += [".SH LICENCE", "Apache License 2.0"]
    return "\n".join(parts) + "\n"


def _plain(text: str) -> str:
    """Text whose dots, quotes, hyphens and backslashes roff leaves alone."""
    escaped = text.rstrip().replace("\\", "\\e").replace("-", "\\-")
    return "\n".join(
        f"\\&{line}" if line[:1] in {".", "'"} else line for line in escaped.split("\n")
    )


if __name__ == "__main__":
    sys.stdout.write(page())
