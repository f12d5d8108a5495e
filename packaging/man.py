"""The manual page, made of what the program says of itself: ``python packaging/man.py``."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from engine.cli.options import COMMANDS, help_of  # noqa: E402
from engine.cli.pages import OVERVIEW  # noqa: E402
from engine.cli.version import program_version  # noqa: E402

_FILES = (
    ("$XDG_CONFIG_HOME/plimsoll/settings.json", "settings of the window"),
    ("$XDG_STATE_HOME/plimsoll/session.plimsoll", "what lay on the desk when it was closed"),
    ("$XDG_DATA_HOME/plimsoll/learned.jsonl", "measured runs that plans for this machine follow"),
)

_COLUMNS = 78
"""An example is never broken, though a manual's margins leave less."""


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
        ".SH COMMANDS",
        "What each command's",
        ".B \\-\\-help",
        "says.",
    ]
    for command in COMMANDS:
        parts += [
            f".SS plimsoll {_plain(command)}",
            ".nf",
            _plain(help_of(command, _COLUMNS)),
            ".fi",
        ]
    parts += [".SH FILES"]
    for path, what in _FILES:
        parts += [".TP", f".I {path}", what]
    parts += [".SH LICENCE", "Apache License 2.0"]
    return "\n".join(parts) + "\n"


_SIGNS = str.maketrans({
    "\\": "\\e", "-": "\\-", "'": "\\(aq", "^": "\\(ha", "`": "\\(ga", "~": "\\(ti",
})  # fmt: skip
"""Roff would set typographic signs for these, which a shell does not take."""


def _plain(text: str) -> str:
    """Text that roff sets as it is."""
    lines = text.rstrip().translate(_SIGNS).split("\n")
    return "\n".join(f"\\&{line}" if line[:1] == "." else line for line in lines)


if __name__ == "__main__":
    sys.stdout.write(page())
