"""The lines that are kept to be shown: all of a short log, what matters of a long one."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from engine.logs.reading import Line
from engine.redaction import redacted
from engine.text import printable

if TYPE_CHECKING:
    from engine.budget.model import Region

WHOLE = 4000
"""A log of no more lines is kept as it is."""
_MOST_UNDERSTOOD = 4000
_AROUND = 12
"""Lines before a failure that are kept of a long log: the end of its traceback."""
_LONGEST = 1000


class Kept(NamedTuple):
    """A line as it was read."""

    number: int
    text: str
    region: Region | None = None
    is_understood: bool = False
    fails: bool = False

    def cut(self) -> Kept:
        """The same without what nobody will see of it."""
        return self._replace(text=self.text[: 2 * _LONGEST])

    def line(self, before: str) -> Line:
        """The line as it is shown; ``before`` is the one above, where a secret's name may stand."""
        safe = redacted(f"{before}\n{self.text.expandtabs(4)}").rpartition("\n")[2]
        safe = printable(safe, _LONGEST)
        return Line(self.number, safe, self.region, self.is_understood, self.fails)


class Excerpt:
    """Takes every line, keeps a bounded number."""

    def __init__(self) -> None:
        self._first: list[Kept] = []
        self._later: deque[Kept] = deque(maxlen=_MOST_UNDERSTOOD)
        self._recent: deque[Kept] = deque(maxlen=_AROUND)
        self._has_failed = False

    @property
    def is_full(self) -> bool:
        """Whether from now on only what is understood is kept."""
        return len(self._first) >= WHOLE

    def add(self, line: Kept) -> None:
        """The next line."""
        if not self.is_full:
            self._first.append(line.cut())
        elif not line.is_understood:
            self._recent.append(line.cut())
        else:
            if line.fails and not self._has_failed:
                self._has_failed = True
                self._later.extend(self._recent)
            self._recent.clear()
            self._later.append(line.cut())

    def pass_over(self, last_number: int, block: str) -> None:
        """Lines that tell nothing, the last of them number ``last_number``."""
        tail = block[-_AROUND * _LONGEST :].split("\n")[-_AROUND:]
        first = last_number - len(tail) + 1
        self._recent.extend(Kept(first + n, text).cut() for n, text in enumerate(tail))

    def lines(self) -> tuple[Line, ...]:
        """What was kept, in order."""
        kept = (*self._first, *self._later)
        above = ("", *(line.text for line in kept))
        return tuple(line.line(before) for before, line in zip(above, kept, strict=False))
