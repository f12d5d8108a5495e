"""The answer of ``plimsoll parse-log`` as a plain mapping, ready for JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.logs import words
from engine.logs.why import happened
from engine.units import UnitSystem

if TYPE_CHECKING:
    from engine.contract.run import Run
    from engine.logs.diagnosis import Cause
    from engine.logs.reading import Fact, LogReading
    from engine.logs.reconcile import RankRows, Row

SCHEMA = "plimsoll.log/1"


def log_answer(run: Run) -> dict[str, object]:
    """What the log states, beside what is predicted, and why the run failed."""
    reading = run.reading
    plan = run.plan
    return {
        "schema": SCHEMA,
        "runtime": reading.runtime or None,
        "version": reading.version or None,
        "since": reading.since or None,
        "until": reading.until or None,
        "lines": reading.line_count,
        "understood": reading.understood,
        "runs": reading.runs,
        "phase": reading.phase.value,
        "headline": words.headline(run.cause, reading, UnitSystem.BINARY),
        "model": plan.model.id if plan is not None else None,
        "settings": dict(reading.settings),
        "facts": [_fact(fact, "") for fact in reading.whole.values()]
        + [_fact(fact, rank.name) for rank in reading.ranks for fact in rank.facts.values()],
        "ranks": [_rank(rows) for rows in run.rows],
        "failure": _failure(run.cause, reading) if run.cause is not None else None,
        "remedies": [
            {
                "label": one.label,
                "margin_bytes": one.margin_bytes,
                "verdict": one.fit.value if one.fit else None,
            }
            for one in run.remedies
        ],
        "not_predicted": run.unplanned or None,
        "assumptions": list(run.notes),
    }


def _fact(fact: Fact, rank: str) -> dict[str, object]:
    return {"name": fact.name, "value": fact.value, "rank": rank or None, "line": fact.line}


def _rank(rows: RankRows) -> dict[str, object]:
    return {
        "rank": rows.name or None,
        "regions": {row.region.value: _row(row) for row in rows.rows},
    }


def _row(row: Row) -> dict[str, object]:
    stated, predicted = row.stated, row.predicted
    return {
        "stated_bytes": stated.size_bytes if stated else None,
        "rounded_by_bytes": stated.half_bytes if stated else None,
        "lines": list(stated.lines) if stated else [],
        "predicted": None
        if predicted is None
        else {
            "low": predicted.low_bytes,
            "likely": predicted.likely_bytes,
            "high": predicted.high_bytes,
            "basis": predicted.basis.value,
        },
        "difference_bytes": row.difference_bytes,
        "agrees": row.agrees,
    }


def _failure(cause: Cause, reading: LogReading) -> dict[str, object]:
    return {
        "kind": cause.kind.value,
        "region": cause.region.value if cause.region else None,
        "rank": cause.rank or None,
        "line": cause.line,
        "phase": cause.phase.value,
        "goes_on": cause.is_soft,
        "short_bytes": cause.short_bytes,
        "others_bytes": cause.others_bytes,
        "others_before_bytes": cause.others_before_bytes,
        "why": list(happened(cause, reading, UnitSystem.BINARY)),
    }
