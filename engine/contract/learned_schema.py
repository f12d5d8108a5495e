"""The shape of a run that was learned from, as ``plimsoll learned --json`` writes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine import lessons
from engine.contract.shapes import SIZE, TEXT, TEXTS, closed, published, said

if TYPE_CHECKING:
    from engine.contract.shapes import Schema


def schema() -> Schema:
    """One line of ``plimsoll learned --json``."""
    rule: Schema = {"type": "array", "items": SIZE, "minItems": 3, "maxItems": 3}
    measured = closed(
        measured_bytes=SIZE,
        half_bytes=said(SIZE, "how far the measurement may be off to either side"),
        rule_bytes=said(rule, "what the rule had said: low, likely, high"),
    )
    rank = said({"type": "object", "additionalProperties": measured}, "by region, or total")
    body = closed(
        schema={"const": lessons.SCHEMA},
        id=TEXT,
        learned_at_s=said({"type": "number"}, "Unix time"),
        devices=TEXTS,
        runtime=TEXT,
        runtime_version=TEXT,
        model=TEXT,
        parameters=SIZE,
        settings={"type": "object", "additionalProperties": TEXT},
        ranks={"type": "array", "items": rank},
        source=said(TEXT, "what it was read from"),
    )
    return published(lessons.SCHEMA, "A measured run: a line of plimsoll learned --json.", body)
