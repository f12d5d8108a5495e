"""Where answers and complaints go; works without a console, and when the reader leaves."""

from __future__ import annotations

import io
import os
import sys
from typing import TYPE_CHECKING, cast

from engine.text import printable

if TYPE_CHECKING:
    from typing import TextIO

    from engine.errors import PlimsollError

_NOTICE_LIMIT = 600
_NARROWEST = 60
_USUAL = 110
_WIDEST = 140


class _Nowhere(io.TextIOBase):
    """Takes everything and keeps nothing."""

    encoding = "utf-8"

    def write(self, text: str, /) -> int:
        return len(text)


def open_streams() -> None:
    """Give a windowed program streams that swallow: Python sets them to None there."""
    nowhere = cast("TextIO", _Nowhere())
    if sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison]  # None without a console
        sys.stdout = nowhere
    if sys.stderr is None:  # pyright: ignore[reportUnnecessaryComparison]  # as above
        sys.stderr = nowhere


def output() -> TextIO:
    """Where answers go."""
    return sys.stdout


def columns(stream: TextIO) -> int:
    """Width of the terminal behind ``stream``, within what reads well; as usual in a file."""
    if not stream.isatty():
        return _USUAL
    try:
        wide = int(os.environ.get("COLUMNS") or os.get_terminal_size(stream.fileno()).columns)
    except (ValueError, OSError):
        return _USUAL
    return min(max(wide, _NARROWEST), _WIDEST)


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
