"""Where answers and complaints go; works without a console, and when the reader leaves."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from engine.text import printable

if TYPE_CHECKING:
    from typing import TextIO

    from engine.errors import PlimsollError

_NOTICE_LIMIT = 600


def open_streams() -> None:
    """Give a windowed program streams that swallow: Python sets them to None there."""
    if sys.stdout is None or sys.stderr is None:  # pyright: ignore[reportUnnecessaryComparison]  # None without a console
        sink = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123 - lives as long as we
        sys.stdout = sys.stdout or sink
        sys.stderr = sys.stderr or sink


def output() -> TextIO:
    """Where answers go."""
    return sys.stdout


def complain(error: PlimsollError) -> None:
    """Say what is wrong, in its one sentence."""
    notice(error.message)


def notice(text: str) -> None:
    """A sentence beside the answer."""
    try:
        sys.stderr.write(f"plimsoll: {printable(text, _NOTICE_LIMIT)}\n")
        sys.stderr.flush()
    except (OSError, ValueError):
        return


def abandon_output() -> None:
    """The reader has gone: keep Python from complaining when it flushes at exit."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):
        return
