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

    def line(self, safe: str) -> Line:
        """The line as it is shown, without secrets."""
        shown = printable(safe.expandtabs(4), _LONGEST)
        return Line(self.number, shown, self.region, self.is_understood, self.fails)


class Excerpt:
    """Takes every line, keeps a bounded number."""

    def __init__(self) -> None:
        self._first: list[Kept] = []
        self._later: deque[Kept] = deque(maxlen=_MOST_UNDERSTOOD)
        self._recent: deque[tuple[int, str]] = deque(maxlen=_AROUND)
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
            self.pass_over(line.number, line.text)
        else:
            if line.fails and not self._has_failed:
                self._has_failed = True
                self._later.extend(Kept(*each) for each in self._recent)
            self._recent.clear()
            self._later.append(line.cut())

    def pass_over(self, number: int, text: str) -> None:
        """A line that tells nothing, of a log that is too long to be kept whole."""
        self._recent.append((number, text[: 2 * _LONGEST]))

    def lines(self) -> tuple[Line, ...]:
        """What was kept, in order."""
        kept = (*self._first, *self._later)
        if not kept:
            return ()
        # All at once: the name of a secret may stand on the line above it.
        safe = redacted("\n".join(line.text for line in kept)).split("\n")
        return tuple(line.line(text) for line, text in zip(kept, safe, strict=True))
