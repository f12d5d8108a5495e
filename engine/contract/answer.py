"""Answers of the machine contract as plain mappings, ready for JSON (design, section 4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from engine.architecture.spec import Direction
from engine.budget.model import Region
from engine.budget.phases import peaks
from engine.contract.whole import whole_weights
from engine.evidence import Basis
from engine.fit.verdict import Fit
from engine.text import printable

if TYPE_CHECKING:
    from engine.budget.model import Budget, LlamaCppBuffers, RankBudget, SequenceState
    from engine.budget.phases import PhasePeak
    from engine.contract.request import RequestId
    from engine.errors import PlimsollError
    from engine.evidence import Estimate
    from engine.fit.solve import Limits
    from engine.sizing import Sizing

SCHEMA = "plimsoll.budget/1"
DIRECTIONS = {
    Direction.LOWER: "at_least",
    Direction.UPPER: "at_most",
    Direction.EITHER: "either",
}
"""How an answer says on which side of a bound the truth lies."""

_MESSAGE_LIMIT = 500


class Notes(NamedTuple):
    """What the request left open, beside what the budget itself assumed."""

    assumptions: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    capacity_known: bool = True
    """False where no device was named and none is here: then its bytes are not stated."""


def answer(
    request_id: RequestId, sizing: Sizing, limits: Limits, notes: Notes
) -> dict[str, object]:
    """The answer to one request."""
    budget, verdict = sizing.budget, sizing.verdict
    model = budget.model
    weights_bytes, basis = whole_weights(budget)
    return {
        "schema": SCHEMA,
        "id": request_id,
        "error": None,
        "model": {
            "id": model.id,
            "model_type": model.spec.root_type or model.spec.model_type,
            "parameters": model.parameters,
            "weights_bytes": weights_bytes,
            "basis": basis.value,
        },
        "ranks": [_rank(budget, rank, notes) for rank in budget.ranks],
        "sequence_state": _state(budget.sequence_state),
        "llama_cpp": _buffers(budget.llama_cpp) if budget.llama_cpp else None,
        "verdict": verdict.fit.value if notes.capacity_known else Fit.UNKNOWN.value,
        "binding": {"rank": verdict.binding_rank, "region": verdict.binding_region.value},
        "starts": verdict.starts if notes.capacity_known else None,
        "limits": _limits(limits, notes),
        "inverse": None,
        "together": None,
        "traffic": None,
        "assumptions": [*notes.assumptions, *budget.assumptions],
        "warnings": [
            *budget.refusals,
            *budget.bounds,
            *model.notes,
            *notes.warnings,
            *budget.warnings,
        ],
    }


def _limits(limits: Limits, notes: Notes) -> dict[str, object]:
    """How far the plan can go; null where that is not known."""
    known = notes.capacity_known
    return {
        "max_context": limits.max_context if known else None,
        "max_concurrency": limits.max_concurrency if known else None,
        "best_weight_format": limits.best_weight_format if known else None,
    }


def error_answer(request_id: RequestId, error: PlimsollError) -> dict[str, object]:
    """What stands in place of an answer: code, one sentence, the field to correct."""
    return {
        "schema": SCHEMA,
        "id": request_id,
        "error": {
            "code": error.code,
            "message": printable(error.message, _MESSAGE_LIMIT),
            "field": printable(error.field, _MESSAGE_LIMIT) or None,
        },
    }


def _rank(budget: Budget, rank: RankBudget, notes: Notes) -> dict[str, object]:
    device = rank.slot.device
    known = notes.capacity_known
    return {
        "rank": rank.rank,
        "device": device.name,
        "total_bytes": device.total_bytes if known else None,
        "allocatable_bytes": device.allocatable.likely_bytes if known else None,
        "regions": {
            region.value: _region(rank.regions[region].estimate, budget.direction(region))
            for region in Region
        },
        "phases": {peak.phase.value: _peak(peak) for peak in peaks(rank)},
        "planned_bytes": rank.planned.likely_bytes,
        "free_bytes": rank.free_bytes if known else None,
    }


def _peak(peak: PhasePeak) -> dict[str, object]:
    found = peak.estimate
    return {
        "low": found.low_bytes,
        "likely": found.likely_bytes,
        "high": found.high_bytes,
        "driver": printable(peak.driver, _MESSAGE_LIMIT),
    }


def _region(estimate: Estimate, doubted: Direction | None) -> dict[str, object]:
    bound = doubted if estimate.basis is Basis.BOUND else None
    return {
        "low": estimate.low_bytes,
        "likely": estimate.likely_bytes,
        "high": estimate.high_bytes,
        "basis": estimate.basis.value,
        "source": estimate.source,
        "direction": DIRECTIONS[bound] if bound else None,
    }


def _state(state: SequenceState) -> dict[str, object]:
    return {
        "architecture_bytes_per_sequence": state.architecture_bytes_per_sequence,
        "reserved_bytes_per_sequence": state.reserved_bytes_per_sequence,
        "bytes_per_token": state.bytes_per_token,
        "pool_bytes": state.pool_bytes,
        "num_blocks": state.num_blocks,
        "block_size": state.block_size,
        "bytes_per_block": state.bytes_per_block,
        "pool_tokens": state.pool_tokens,
        "max_concurrency": state.max_concurrency,
    }


def _buffers(buffers: LlamaCppBuffers) -> dict[str, object]:
    return {
        "model_buffers": dict(buffers.model_buffers),
        "kv_buffers": dict(buffers.kv_buffers),
        "rs_buffers": dict(buffers.rs_buffers),
        "compute_buffers": dict(buffers.compute_buffers),
        "output_buffer": buffers.output_buffer,
    }
