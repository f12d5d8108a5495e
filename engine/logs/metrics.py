"""Lines of a metrics page: Prometheus' text, several series to a name, as facts of the run.

A series is told by its labels, so that a page that was scraped twice counts once. Requests of
several engines add up; of their pools the fullest is the one that counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from engine.logs.figures import value_of
from engine.logs.reading import Fact
from engine.telemetry.prometheus_text import labels_of
from resources import data

if TYPE_CHECKING:
    import re
    from collections.abc import Iterator, Mapping

_MODEL = ("model_name", "name", "model")
_RANKS = (("dp_rank", "DP"), ("pp_rank", "PP"), ("tp_rank", "TP"))
_MOST_SERIES = 4096


@dataclass(frozen=True, slots=True)
class Metric:
    """What one name of a page means."""

    fact: str
    unit: str
    how: str = ""
    """``sum`` or ``most`` of its series; else the last."""
    of_rank: bool = False
    """Whether every rank has its own."""
    labels: tuple[tuple[str, str, str], ...] = ()
    """Labels that say something themselves, as fact and unit."""
    since: str = ""
    until: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """All facts that it may state."""
        return (self.fact, *(name for _, name, _ in self.labels))


@dataclass(frozen=True, slots=True)
class Said:
    """A fact of a page."""

    rank: str
    fact: Fact
    is_whole: bool


@cache
def known(name: str) -> Metric | None:
    """The metric of ``name``, whichever way a gateway writes it; None for one that says nothing."""
    prefix, _, rest = name.replace(":", "_", 1).partition("_")
    row = data("log_patterns")["metrics"].get(prefix, {}).get(rest)
    return None if row is None else _metric(dict(row))


class Pages:
    """The series seen so far."""

    def __init__(self) -> None:
        self._series: dict[tuple[str, str], dict[str, Fact]] = {}
        self._count = 0

    def take(self, found: re.Match[str], line: int) -> Iterator[Said]:
        """What one line says.

        Args:
            found: a match of ``prometheus_text.LINE``.
            line: its number.
        """
        metric = known(found["name"])
        if metric is None or self._count > _MOST_SERIES:
            return
        labels = labels_of(found["labels"] or "")
        if labels is None:
            return
        model = next((labels[name] for name in _MODEL if labels.get(name)), "")
        if model:
            yield Said("", Fact("model", model, line), is_whole=True)
        for label, name, unit in metric.labels:
            read = value_of(labels.get(label, ""), unit)
            if read is not None and read[0] != "":
                yield Said("", Fact(name, read[0], line, read[1]), is_whole=True)
        read = value_of(found["value"], metric.unit) if metric.fact else None
        if read is not None:
            rank = _rank(labels) if metric.of_rank else ""
            fact = self._joined(metric, rank, labels, Fact(metric.fact, read[0], line, read[1]))
            yield Said(rank, fact, is_whole=not metric.of_rank)

    def _joined(self, metric: Metric, rank: str, labels: Mapping[str, str], fact: Fact) -> Fact:
        """``fact`` with the other series of its name."""
        key = ",".join(f"{k}={v}" for k, v in sorted(labels.items()) if k not in _OF_A_RANK)
        series = self._series.setdefault((metric.fact, rank), {})
        self._count += key not in series
        series[key] = fact
        if metric.how == "most":
            return max(series.values(), key=lambda each: float(each.value))
        if metric.how != "sum":
            return fact
        whole = sum(float(each.value) for each in series.values())
        value = int(whole) if isinstance(fact.value, int) else whole
        return Fact(fact.name, value, fact.line, sum(each.half_bytes for each in series.values()))


_OF_A_RANK = frozenset({"tp_rank", "pp_rank", "moe_ep_rank"})
"""Of one request every rank of a replica tells: it counts once."""


def _rank(labels: Mapping[str, str]) -> str:
    """``TP1`` as the logs have it; ``DP0`` and ``PP0`` go without saying."""
    parts = [
        f"{short}{labels[label]}"
        for label, short in _RANKS
        if labels.get(label, "").isdigit() and (short == "TP" or labels[label] != "0")
    ]
    return " ".join(parts)


def _metric(row: dict[str, Any]) -> Metric:
    fact, _, unit = row.pop("fact", "").rpartition(" ")
    labels = tuple((label, *words.rsplit(" ", 1)) for label, words in row.pop("labels", {}).items())
    return Metric(fact, unit, labels=labels, **row)
