"""A long sentence that a terminal broke into lines, put together again.

PyTorch's account of a failure is one line of some five hundred characters. Copied from a terminal
it is several, broken at its edge or between words; its figures stand on either side of the breaks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.logs.patterns import patterns

if TYPE_CHECKING:
    from engine.logs.patterns import Pattern

_MOST_LINES = 12
_LONGEST = 1_000


class Broken:
    """The sentence that is being put together, if any."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._ends: tuple[str, ...] = ()

    def begin(self, line: str, hits: list[Pattern]) -> None:
        """A line that begins a sentence and lacks its end, perhaps."""
        ends = next((pattern.ends for pattern in hits if pattern.ends), ())
        if ends and not any(end in line for end in ends):
            self._parts, self._ends = [line[:_LONGEST]], ends

    def add(self, line: str) -> str:
        """The next line; the whole sentence once it has its end, else nothing."""
        if not self._parts:
            return ""
        self._parts.append(line[:_LONGEST])
        # Broken at the edge a word is in two parts; between words the space is gone.
        at_the_edge = len({len(part) for part in self._parts[:-1]}) == 1 and len(self._parts) > 2
        whole = "".join(self._parts) if at_the_edge else " ".join(map(str.strip, self._parts))
        if any(end in whole for end in self._ends):
            self._parts = []
            return whole
        if len(self._parts) >= _MOST_LINES:
            self._parts = []
        return ""


def hits_in(line: str) -> list[Pattern]:
    """The patterns of one line by itself."""
    return [pattern for pattern in patterns() if pattern.may_be_in(line)]
