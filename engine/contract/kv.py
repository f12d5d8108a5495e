"""The transparent KV baseline: what the architecture keeps for one sequence, worked out openly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.architecture.spec import Subject
from engine.budget.sequence_state import (
    architecture_bytes,
    cache_terms,
    constant_bytes,
    resolve_kv_dtype,
    sequence_equation,
    token_growth_bytes,
)
from engine.errors import DeploymentError
from engine.formats.kv import is_known

if TYPE_CHECKING:
    from engine.architecture.model import Model
    from engine.budget.sequence_state import CacheTerm

SCHEMA = "plimsoll.kv/1"


@dataclass(frozen=True, slots=True)
class KvBaseline:
    """The KV cache of one sequence by the architecture alone: no blocks, no padding."""

    model: str
    kv_dtype: str
    context: int
    formula: str
    terms: tuple[CacheTerm, ...]
    bytes_per_token: int
    """What one more token costs at this context."""
    cache_bytes: int
    state_bytes: int
    """Recurrent state, which does not grow with the context."""
    total_bytes: int
    bounds: tuple[str, ...]
    """Which way the figures are bounds, and why, where the architecture is not understood."""


def kv_baseline(model: Model, context: int, kv_dtype: str = "auto") -> KvBaseline:
    """The baseline of ``model`` for one sequence of ``context`` tokens.

    Raises:
        DeploymentError: the KV dtype is not known.
    """
    spec = model.spec
    dtype = resolve_kv_dtype(spec, kv_dtype, spec.dtype)
    if not is_known(dtype):
        message = f"{dtype[:80]!r} is no KV dtype: say auto, bf16, fp16, fp8, q8_0 or q4_0."
        raise DeploymentError(message, field="kv_cache_dtype")
    total = architecture_bytes(spec, dtype, context)
    state = constant_bytes(spec)
    return KvBaseline(
        model=model.id,
        kv_dtype=dtype,
        context=context,
        formula=sequence_equation(spec, dtype, context),
        terms=cache_terms(spec, dtype),
        bytes_per_token=token_growth_bytes(spec, dtype, context, range(len(spec.layers)), 1),
        cache_bytes=total - state,
        state_bytes=state,
        total_bytes=total,
        bounds=tuple(
            f"{d.direction.words.capitalize()} this much: {d.reason}"
            for d in spec.doubts
            if d.subject is Subject.SEQUENCE_STATE
        ),
    )


def kv_answer(baseline: KvBaseline) -> dict[str, object]:
    """The same as a mapping for JSON."""
    return {
        "schema": SCHEMA,
        "model": baseline.model,
        "kv_cache_dtype": baseline.kv_dtype,
        "max_model_len": baseline.context,
        "formula": baseline.formula,
        "inputs": [
            {
                "kind": term.kind.value,
                "layers": term.layers,
                "window": term.window or None,
                "tokens": term.tokens(baseline.context),
                "bytes_per_token_and_layer": term.token_bytes,
                "bytes": term.size_bytes(baseline.context),
            }
            for term in baseline.terms
        ],
        "bytes_per_token": baseline.bytes_per_token,
        "cache_bytes": baseline.cache_bytes,
        "state_bytes": baseline.state_bytes,
        "total_bytes": baseline.total_bytes,
        "basis": "bound" if baseline.bounds else "exact",
        "warnings": list(baseline.bounds),
    }
