"""Why a figure is off, record by record; for the tables of the worst."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.truth.scoring.scores import Score

REASONS: dict[tuple[str, str], str] = {}
"""(start of a record's name, figure or ``""`` for all) -> why."""


def reason_for(score: Score) -> str:
    """What is known of the miss."""
    for (record, figure), reason in REASONS.items():
        if score.record.startswith(record) and figure in ("", score.figure):
            return reason
    return "inside the stated range" if score.is_inside and score.is_region else "not explained yet"
