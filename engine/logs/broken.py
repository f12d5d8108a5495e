"""What stands in several lines, put together again: a broken sentence, a list of settings.

PyTorch's account of a failure is one line of some five hundred characters. Copied from a terminal
it is several, broken at its edge or between words; its figures stand on either side of the breaks.
TGI prints its settings with one to a line, and some of them over three.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from engine.logs.patterns import patterns

if TYPE_CHECKING:
    from engine.logs.patterns import Pattern

_MOST_LINES = 12
_MOST_SETTINGS = 200
"""Lines of a list of settings."""
_LONGEST = 1_000
_BEFORE = re.compile(
    r"^(?:[\w.-]{1,60} {1,20}\| |\S{20,40} (?:stdout|stderr) [FP] "
    r"|\w{3} {1,2}\d{1,2} [\d:]{8} \S{1,80} [\w.@-]{1,60}(?:\[\d{1,10}\])?: )"
)
"""What Compose, Kubernetes or the journal put before each line."""


class Broken:
    """The sentence or the list that is being put together, if any."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._ends: tuple[str, ...] = ()
        self._is_list = False

    def begin(self, line: str, hits: list[Pattern]) -> None:
        """A line that begins a sentence or a list and lacks its end, perhaps."""
        first = next((pattern for pattern in hits if pattern.ends), None)
        if first is not None and not any(end in line for end in first.ends):
            self._parts, self._ends = [line[:_LONGEST]], first.ends
            self._is_list = first.arguments

    def add(self, line: str) -> str:
        """The next line; the whole once it has its end, else nothing."""
        if not self._parts:
            return ""
        self._parts.append(line[:_LONGEST])
        # A list ends on a line of its own; the end of a sentence may be broken itself.
        may_end = not self._is_list or any(end in line for end in self._ends)
        whole = self._joined() if may_end else ""
        is_whole = any(end in whole for end in self._ends)
        if is_whole or len(self._parts) >= (_MOST_SETTINGS if self._is_list else _MOST_LINES):
            self._parts = []
        return whole if is_whole else ""

    def _joined(self) -> str:
        # Broken at the edge a word is in two parts; between words the space is gone.
        at_the_edge = len({len(part) for part in self._parts[:-1]}) == 1 and len(self._parts) > 2
        parts = [self._parts[0], *(_BEFORE.sub("", part) for part in self._parts[1:])]
        return "".join(parts) if at_the_edge else " ".join(map(str.strip, parts))


def hits_in(line: str) -> list[Pattern]:
    """The patterns of one line by itself."""
    return [pattern for pattern in patterns() if pattern.may_be_in(line)]
