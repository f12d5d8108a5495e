"""How answers look in a terminal: colour and marks where they can be shown, words always."""

from __future__ import annotations

import os
import sys
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.budget.model import Region
from engine.cli.streams import columns, nearest
from engine.fit.verdict import Fit
from engine.text import printable

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import TextIO

# Nearest of the 256 terminal colours to the window's region colours, legible on both grounds.
_REGION_COLOURS = {
    Region.WEIGHTS: 67,
    Region.KV_CACHE: 37,
    Region.RECURRENT_STATE: 97,
    Region.ACTIVATIONS: 172,
    Region.CUDA_GRAPHS: 132,
    Region.RUNTIME: 74,
    Region.ALLOCATOR: 138,
    Region.HEADROOM: 246,
    Region.FOREIGN: 244,
}
_FIT_COLOURS = {Fit.FITS: 34, Fit.TIGHT: 172, Fit.DOES_NOT_FIT: 160, Fit.UNKNOWN: 103}
_FIT_MARKS = {Fit.FITS: "✓", Fit.TIGHT: "≈", Fit.DOES_NOT_FIT: "✗", Fit.UNKNOWN: "?"}


@dataclass(frozen=True, slots=True)
class Look:
    """What the terminal at hand can show."""

    colour: bool
    unicode: bool
    width: int
    cuts: bool = True
    """Whether a line is cut to the width; a file or a pipe gets it whole."""

    @classmethod
    def of(cls, stream: TextIO) -> Look:
        """The look for ``stream``: no colour in a file, none where the user doesn't want it."""
        is_terminal = stream.isatty()
        plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
        encoding = (stream.encoding or "ascii").lower().replace("-", "")
        return cls(
            colour=is_terminal and not plain and sys.platform != "win32",
            unicode=encoding.startswith("utf"),
            width=columns(stream),
            cuts=is_terminal,
        )

    def line(self, text: str, width: int | None = None) -> str:
        """``text`` made safe; in a terminal cut to ``width`` (the whole line) with an ellipsis."""
        return fitted(text, width or self.width).rstrip() if self.cuts else printable(text)

    def region(self, text: str, region: Region) -> str:
        """``text`` in the colour that ``region`` has everywhere."""
        return self._paint(text, f"38;5;{_REGION_COLOURS[region]}")

    def verdict(self, text: str, fit: Fit) -> str:
        """``text`` bold, in the verdict's colour and after its mark."""
        return self._paint(f"{_FIT_MARKS[fit]} {text}", f"1;38;5;{_FIT_COLOURS[fit]}")

    def strong(self, text: str) -> str:
        """``text`` bold."""
        return self._paint(text, "1")

    def faint(self, text: str) -> str:
        """``text`` in the background."""
        return self._paint(text, "2")

    def write(self, lines: Iterable[str], stream: TextIO) -> None:
        """Write ``lines``, in ASCII where the stream can't carry more."""
        for line in lines:
            text = line.rstrip()
            if not self.unicode:
                text = nearest(text)
            stream.write(text + "\n")
        stream.flush()

    def _paint(self, text: str, code: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.colour and text else text


def cells(text: str) -> int:
    """Terminal cells that ``text`` (without colour) takes; East Asian wide letters take two."""
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )


def fitted(text: str, width: int, *, right: bool = False) -> str:
    """``text`` made safe and exactly ``width`` cells wide: cut with an ellipsis or filled."""
    shown = printable(text)
    if cells(shown) > width:
        while shown and cells(shown) > width - 1:
            shown = shown[:-1]
        shown += "…"
    space = " " * (width - cells(shown))
    return space + shown if right else shown + space


def wrapped(text: str, width: int, *, first: str, rest: str) -> list[str]:
    """``text`` made safe and broken into lines of at most ``width`` cells after a margin."""
    lines: list[str] = []
    current = first
    empty = True
    for word in printable(text).split(" "):
        if not empty and cells(current) + 1 + cells(word) > width:
            lines.append(current)
            current, empty = rest, True
        current += word if empty else " " + word
        empty = False
    return [*lines, current]
