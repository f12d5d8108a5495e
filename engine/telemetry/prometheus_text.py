"""The text that exporters and runtimes answer under ``/metrics``, as samples.

Prometheus' text format 0.0.4 and OpenMetrics 1.0. A page may come from anywhere: a line that is
neither comment nor sample is passed over and counted, and sizes are bounded.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from engine.errors import TelemetryError
from engine.text import printable
from engine.words import tr

if TYPE_CHECKING:
    from collections.abc import Mapping

MOST_CHARACTERS: Final = 16 * 2**20
MOST_SAMPLES: Final = 200_000
_LONGEST_LINE = 16 * 1024
_LONGEST_VALUE = 400

LINE: Final = re.compile(
    r"(?P<name>[a-zA-Z_:][a-zA-Z0-9_:]{0,200})"
    r"(?:\s{0,8}\{(?P<labels>(?:[^\"}]{0,200}\"(?:[^\"\\]|\\.){0,8000}\"){0,200}[^\"}]{0,8})\}\s{0,8}"
    r"|\s{1,8})(?P<value>[-+.0-9eEINafn]{1,60})(?:\s{1,8}(?P<at>[-+0-9.eE]{1,40}))?\s{0,8}(?:#.{0,16384})?$"
)
"""One sample, from its name on; what its labels and its value are worth is told apart. Every repeat
has a bound: a log may hold anything."""
_LABEL = re.compile(r"\s*([a-zA-Z_][a-zA-Z0-9_]*)\s*=\s*\"((?:[^\"\\]|\\.)*)\"\s*(?:,|$)")
_NUMBER = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|[-+]?Inf|NaN")
_ESCAPE = re.compile(r"\\(.)")
_ESCAPED = {"n": "\n", "\\": "\\", '"': '"'}


@dataclass(frozen=True, slots=True)
class Sample:
    """One value of one series."""

    name: str
    labels: Mapping[str, str]
    value: float
    """As written: NaN and the infinities are among the values that a page may hold."""
    at_s: float | None = None
    """Unix time of the source, where it states one."""


@dataclass(frozen=True, slots=True)
class Page:
    """What one scrape answered."""

    samples: tuple[Sample, ...]
    passed_over: int = 0
    """Lines that were neither comment nor sample."""
    _by_name: dict[str, list[Sample]] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        for sample in self.samples:
            self._by_name.setdefault(sample.name, []).append(sample)

    def __contains__(self, name: str) -> bool:
        return name in self._by_name

    def named(self, *names: str) -> tuple[Sample, ...]:
        """All series of these metrics, in the order of ``names``."""
        return tuple(sample for name in names for sample in self._by_name.get(name, ()))

    def value(self, *names: str) -> float | None:
        """Value of the first series of the first of ``names`` that the page has; else None."""
        found = self.named(*names)
        return found[0].value if found else None


def parsed(text: str) -> Page:
    """The samples of a metrics page.

    Raises:
        TelemetryError: it is too long, or not one of its lines is a sample.
    """
    if len(text) > MOST_CHARACTERS:
        raise TelemetryError(tr("The metrics page is longer than 16 MiB."))
    lines = text.splitlines()
    # OpenMetrics writes seconds where the older format writes milliseconds.
    scale = 1.0 if any(line.strip() == "# EOF" for line in lines[-3:]) else 1000.0
    samples: list[Sample] = []
    passed_over = 0
    for line in lines:
        written = line.strip()
        if not written or written.startswith("#"):
            continue
        sample = _sample(written, scale) if len(written) <= _LONGEST_LINE else None
        if sample is None:
            passed_over += 1
        else:
            samples.append(sample)
        if len(samples) > MOST_SAMPLES:
            raise TelemetryError(tr("The metrics page holds more than 200,000 values."))
    if passed_over and not samples:
        raise TelemetryError(tr("What was answered is no metrics page."))
    return Page(tuple(samples), passed_over)


def number(text: str) -> float | None:
    """A value as Prometheus writes it; None where it is none."""
    return float(text) if _NUMBER.fullmatch(text) else None


def labels_of(text: str) -> dict[str, str] | None:
    """Name and value of each label; None where the text isn't made of labels alone."""
    labels: dict[str, str] = {}
    at = 0
    while at < len(text) and not text[at:].isspace():
        found = _LABEL.match(text, at)
        if found is None:
            return None
        value = _ESCAPE.sub(lambda m: _ESCAPED.get(m[1], m[0]), found[2])
        labels[found[1]] = printable(value, _LONGEST_VALUE)
        at = found.end()
    return labels


def _sample(line: str, scale: float) -> Sample | None:
    found = LINE.match(line)
    if found is None:
        return None
    value = number(found["value"])
    labels = labels_of(found["labels"] or "")
    if value is None or labels is None:
        return None
    at = number(found["at"]) if found["at"] else None
    return Sample(found["name"], labels, value, None if at is None else at / scale)
