"""Where answers and complaints go: without a console, in any encoding, when the reader leaves."""

from __future__ import annotations

import codecs
import io
import os
import sys
from typing import TYPE_CHECKING, cast

from engine.text import printable

if TYPE_CHECKING:
    from typing import TextIO

    from engine.errors import PlimsollError

_NOTICE_LIMIT = 600
_NARROWEST = 40
_USUAL = 110
_WIDEST = 140
_NEAREST = str.maketrans({
    "✓": "+", "≈": "~", "✗": "x", "–": "-", "−": "-", "×": "x", "·": "-", "■": "#", "…": "...",
    "─": "-", "│": "|", "█": "#", "░": ".", "•": "*", "“": '"', "”": '"', "’": "'", "→": "->",
    "≤": "<=", "≥": ">=", "\u00a0": " ", "\u202f": " ", "Σ": "sum",
})  # fmt: skip


class _Nowhere(io.TextIOBase):
    """Takes everything and keeps nothing."""

    encoding = "utf-8"

    def write(self, text: str, /) -> int:
        return len(text)


def nearest(text: str) -> str:
    """``text`` in ASCII: a near sign for each of ours, an escape for any other."""
    return text.translate(_NEAREST).encode("ascii", "backslashreplace").decode("ascii")


def _spelt(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return nearest(error.object[error.start : error.end]), error.end


codecs.register_error("plimsoll", _spelt)


def open_streams() -> None:
    """Make streams that take every text, whatever the encoding of the terminal.

    A windowed program gets such as swallow it: Python sets them to None there.
    """
    nowhere = cast("TextIO", _Nowhere())
    if sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison]  # None without a console
        sys.stdout = nowhere
    if sys.stderr is None:  # pyright: ignore[reportUnnecessaryComparison]  # as above
        sys.stderr = nowhere
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="plimsoll")


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


def progress(text: str) -> None:
    """What is being done, for somebody who watches; nothing in a script's file of errors."""
    if sys.stderr.isatty():
        notice(text)


def abandon_output() -> None:
    """The reader has gone: keep Python from complaining when it flushes at exit."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):
        return
