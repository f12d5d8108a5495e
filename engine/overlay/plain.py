"""Overlay and checklist as plain values: for a report, a file, another program.

Sizes are bytes, a missing one is ``{"missing": "why"}``; times are seconds since the first span.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.telemetry.plain import value
from engine.telemetry.snapshot import Missing

if TYPE_CHECKING:
    from engine.evidence import Estimate
    from engine.overlay.checklist import Checklist
    from engine.overlay.overlay import Overlay, PhaseError, RankOverlay
    from engine.overlay.residue import Residue
    from engine.overlay.steps import Answer


def overlay_dict(overlay: Overlay) -> dict[str, Any]:
    """What was seen of a plan's run, rank by rank."""
    return {
        "placed_by": overlay.placed_by,
        "requests_running": overlay.state.requests_running,
        "ranks": [_rank(rank) for rank in overlay.ranks],
    }


def checklist_dict(found: Checklist) -> dict[str, Any]:
    """The steps with their answers by rank, and what they hold for."""
    return {
        "steps": [
            {
                "number": step.number,
                "key": step.key,
                "title": step.title,
                **_answer(step.answer),
                "per_rank": {str(rank): _answer(a) for rank, a in step.per_rank.items()},
            }
            for step in found.steps
        ],
        "recorded": dict(found.recorded),
    }


def _rank(rank: RankOverlay) -> dict[str, Any]:
    run, held = rank.run, rank.held
    start = run.spans[0].start_s if run.spans else 0.0
    return {
        "rank": rank.rank,
        "uuid": rank.uuid,
        "phase": run.phase.value,
        "spans": [
            [span.phase.value, round(span.start_s - start, 3), round(span.end_s - start, 3)]
            for span in run.spans
        ],
        "phase_told": run.spans[-1].is_told if run.spans else True,
        "sampled_every_s": round(run.every_s, 3),
        "is_derived": run.is_derived,
        "used_bytes": value(rank.used_bytes),
        "own_bytes": run.own_bytes,
        "must_stay_bytes": value(held if isinstance(held, Missing) else held.must_stay_bytes),
        "file_bytes": value(held if isinstance(held, Missing) else held.file_bytes),
        "foreign_before_bytes": value(run.foreign_bytes),
        "foreign_bytes": value(rank.foreign_bytes),
        "left_bytes": value(run.left_bytes),
        "load_line_bytes": rank.load_line_bytes,
        "kv_reserved_bytes": rank.kv_reserved_bytes,
        "kv_live_bytes": value(rank.kv_live_bytes),
        "most_running": run.most_running,
        "phases": [_phase(error) for error in rank.errors],
        "expected": _estimate(rank.expected) if rank.expected else None,
        "residue": _residue(rank.residue) if rank.residue else None,
    }


def _phase(error: PhaseError) -> dict[str, Any]:
    return {
        "phase": error.phase.value,
        "peak_bytes": error.peak_bytes,
        "expected": _estimate(error.expected),
        "error_bytes": error.error_bytes,
        "error_share": round(error.error_share, 6),
        "is_within": error.is_within,
    }


def _residue(found: Residue) -> dict[str, Any]:
    return {
        "size_bytes": found.size_bytes,
        "is_within": found.is_within,
        "since": found.since.value,
        "suspects": [{"region": s.region.value, "why": s.why} for s in found.suspects],
    }


def _answer(answer: Answer) -> dict[str, Any]:
    estimate = _estimate(answer.estimate) if answer.estimate else None
    return {"status": answer.status.value, "words": answer.words, "estimate": estimate}


def _estimate(estimate: Estimate) -> dict[str, Any]:
    return {
        "low_bytes": estimate.low_bytes,
        "likely_bytes": estimate.likely_bytes,
        "high_bytes": estimate.high_bytes,
        "basis": estimate.basis.value,
        "source": estimate.source,
    }
