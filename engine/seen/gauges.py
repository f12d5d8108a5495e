"""The names that runtimes have given to the same figure, and how their series add up."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.seen.model import NOT_STATED
from engine.telemetry.snapshot import Missing
from engine.words import tr

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from engine.telemetry.prometheus_text import Page, Sample

_LARGEST = 2.0**53


@dataclass(frozen=True, slots=True)
class Name:
    """One name, and the releases that have it; empty where they are not known or do not end."""

    text: str
    since: str = ""
    until: str = ""
    """The first release without it."""


@dataclass(frozen=True, slots=True)
class Gauge:
    """One figure under all its names, the newest first."""

    names: tuple[Name, ...]
    absent: str = ""
    """Why newer releases have none, in a phrase (``tr_later``)."""

    def series(self, page: Page) -> tuple[Sample, ...]:
        """The series of the first name that the page has; without what is no number."""
        for name in self.names:
            found = [s for s in page.named(name.text) if _is_figure(s.value)]
            if found:
                return tuple(found)
        return ()

    def total(self, page: Page) -> float | Missing:
        """All series together: engines and ranks that share the work."""
        return self._of(page, sum)

    def most(self, page: Page) -> float | Missing:
        """The largest series: the one that is full first."""
        return self._of(page, max)

    def _of(self, page: Page, made: Callable[[Iterable[float]], float]) -> float | Missing:
        found = self.series(page)
        if found:
            return made(sample.value for sample in found)
        return Missing(tr(self.absent)) if self.absent else NOT_STATED


def names(*said: str, absent: str = "") -> Gauge:
    """A gauge of names whose releases are not told apart."""
    return Gauge(tuple(Name(text) for text in said), absent)


def whole(value: float | Missing) -> int | Missing:
    """A count as a count."""
    return value if isinstance(value, Missing) else round(value)


def share(value: float | Missing) -> float | Missing:
    """A fill of 0 to 1; what lies outside is no fill."""
    if isinstance(value, Missing) or 0 <= value <= 1:
        return value
    return Missing(tr("the runtime states a fill outside 0 to 1"))


def _is_figure(value: float) -> bool:
    return math.isfinite(value) and 0 <= value <= _LARGEST
