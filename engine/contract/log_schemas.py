"""The published JSON Schema of what ``plimsoll parse-log --json`` answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.budget.model import Region
from engine.contract import log
from engine.contract.shapes import (
    BASIS,
    BYTES,
    SIZE,
    TEXT,
    TEXTS,
    closed,
    one_of,
    or_null,
    published,
    said,
)
from engine.fit.verdict import Fit
from engine.logs.diagnosis import Kind
from engine.logs.reading import Phase

if TYPE_CHECKING:
    from engine.contract.shapes import Schema

_VALUE: Schema = {"type": ["integer", "number", "string", "boolean"]}
_LINES: Schema = {"type": "array", "items": SIZE}
_REGION: Schema = one_of(Region)


def schema() -> Schema:
    """The schema of one answer."""
    body = closed(
        schema={"const": log.SCHEMA},
        runtime=said(or_null(TEXT), "null where no line gives it away"),
        version=or_null(TEXT),
        since=said(or_null(TEXT), "the first release that prints such lines"),
        until=said(or_null(TEXT), "the last one"),
        lines=SIZE,
        understood=SIZE,
        runs=said(SIZE, "starts in the log; the last one is read"),
        phase=said(one_of(Phase), "how far the run came"),
        headline=TEXT,
        model=said(or_null(TEXT), "the model of the prediction"),
        settings=said(
            {"type": "object", "additionalProperties": _VALUE},
            "as the log states them, by the keys of a request",
        ),
        facts={
            "type": "array",
            "items": closed(name=TEXT, value=_VALUE, rank=or_null(TEXT), line=SIZE),
        },
        ranks={"type": "array", "items": _rank()},
        failure=or_null(_failure()),
        remedies=said(
            {"type": "array", "items": _remedy()}, "changes that would have helped, smallest first"
        ),
        not_predicted=said(or_null(TEXT), "why nothing is predicted"),
        assumptions=TEXTS,
    )
    about = "What a runtime’s log states, against the prediction: plimsoll parse-log --json."
    return published(log.SCHEMA, about, body)


def _rank() -> Schema:
    row = closed(
        stated_bytes=or_null(BYTES),
        rounded_by_bytes=said(or_null(SIZE), "half a unit of the last digit printed"),
        lines=_LINES,
        predicted=or_null(closed(low=BYTES, likely=BYTES, high=BYTES, basis=BASIS)),
        difference_bytes=said(or_null(BYTES), "stated less predicted"),
        agrees=said(or_null({"type": "boolean"}), "within the prediction’s range"),
    )
    return closed(rank=or_null(TEXT), regions=closed(**{region.value: row for region in Region}))


def _failure() -> Schema:
    return closed(
        kind=one_of(Kind),
        region=or_null(_REGION),
        rank=or_null(TEXT),
        line=SIZE,
        phase=one_of(Phase),
        goes_on=said({"type": "boolean"}, "whether the run lived on"),
        short_bytes=or_null(SIZE),
        others_bytes=or_null(SIZE),
        others_before_bytes=or_null(SIZE),
        why=TEXTS,
    )


def _remedy() -> Schema:
    return closed(
        label=TEXT,
        margin_bytes=or_null(BYTES),
        verdict=or_null(one_of(Fit)),
    )
