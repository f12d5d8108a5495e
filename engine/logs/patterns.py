"""The table of what runtimes print, compiled: ``resources/data/log_patterns.json``.

A pattern is looked for by its ``needle``, plain text, first; its expression then runs once a line,
at the needle, over a bounded window. So a log is read in a time that grows with its length only,
whatever it holds.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from engine.budget.model import Region
from engine.logs.reading import Phase
from engine.telemetry.prometheus_text import LINE as METRIC
from resources import data

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_SPAN = 1200
"""Characters after the needle that an expression may see."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """One kind of line."""

    id: str
    runtime: str
    """Who prints it; empty for what lies beneath several (PyTorch, Linux)."""
    needle: str
    regex: re.Pattern[str] | None = None
    facts: Mapping[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    """Group -> name of the fact and its unit."""
    key: str = ""
    """Where the expression begins, if not at the needle."""
    also: tuple[str, ...] = ()
    """One of these stands on the line too."""
    back: int = 0
    """Characters before the needle that the expression may begin in."""
    region: Region | None = None
    since: str = ""
    until: str = ""
    """Releases of the runtime that print it; empty where it is not known or has no end."""
    phase: Phase | None = None
    """What the run is at after this line; for a frame of a traceback, what it was doing."""
    frame: bool = False
    fails: str = ""
    """Which failure this tells of."""
    soft: bool = False
    """Whether the run goes on."""
    refines: bool = False
    """Whether its phase is that of a failure that an earlier line told of."""
    whole: bool = False
    """Whether its facts are of the whole run, whichever process prints them."""
    adds: tuple[str, ...] = ()
    """Facts that a further line adds to: a draft model has its own."""
    sums: bool = False
    """Whether one line states it several times, to be added up."""
    by: str = ""
    """Group that names the device."""
    ends: tuple[str, ...] = ()
    """The last words, one or another, of a sentence so long that terminals break it."""
    bare: bool = False
    """Whether the needle alone tells of it, where the figures are cut off."""
    arguments: bool = False
    """Whether the settings of the run follow."""
    starts: bool = False
    """Whether a run begins here: what was read before is of an earlier one."""
    up: bool = False
    """Whether the run works from here on: what failed before was tried again, with success."""
    stem: str = ""
    """What stands before the number of the device in its name."""
    buffers: bool = False
    breakdown: bool = False
    metrics: bool = False
    """Whether it is a line of a metrics page."""

    def matches(self, line: str) -> Iterator[re.Match[str]]:
        """Where this pattern finds its facts in ``line``, which holds the needle."""
        at = line.find(self.key or self.needle)
        if self.regex is None or at < 0:
            return
        begin, end = max(0, at - self.back), at + _SPAN
        if self.sums:
            yield from self.regex.finditer(line, begin, end)
            return
        find = self.regex.search if self.back else self.regex.match
        found = find(line, begin, end)
        if found is not None:
            yield found

    def may_be_in(self, line: str) -> bool:
        """Whether ``line`` has the needle, and what must stand beside it."""
        return self.needle in line and (not self.also or any(word in line for word in self.also))


@cache
def patterns() -> tuple[Pattern, ...]:
    """Every pattern."""
    return tuple(pattern for row in data("log_patterns")["patterns"] for pattern in _of(dict(row)))


@cache
def settings_of(runtime: str) -> Mapping[str, str]:
    """What ``runtime`` calls a setting -> key of the machine contract."""
    return data("log_patterns")["settings"].get(runtime, {})


def _of(row: dict[str, Any]) -> Iterator[Pattern]:
    """The patterns of one row: one for each text that it is looked for by."""
    for number, needle in enumerate(row.pop("needles", [row.get("needle", "")])):
        name = f"{row['id']}.{number}" if number else row["id"]
        yield _pattern(row | {"id": name, "needle": needle})


def _pattern(row: dict[str, Any]) -> Pattern:
    if row.get("metrics"):
        row["regex"] = METRIC
    elif "regex" in row:
        row["regex"] = re.compile(row["regex"], re.ASCII)
    row["facts"] = {
        group: tuple(words.rsplit(" ", 1)) for group, words in row.get("facts", {}).items()
    }
    for name in ("also", "adds", "ends"):
        row[name] = tuple(row.get(name, ()))
    if "region" in row:
        row["region"] = Region(row["region"])
    if "phase" in row:
        row["phase"] = Phase(row["phase"])
    return Pattern(**row)
