"""The weights of a whole model, counted once and whatever the plan does with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.budget.model import Region
from engine.budget.weights import WeightLayout, weights
from engine.evidence import Basis

if TYPE_CHECKING:
    from engine.budget.model import Budget


def whole_weights(budget: Budget) -> tuple[int, Basis]:
    """Bytes of all weights in the plan's format, unpadded and not split, and how we know."""
    model, chosen = budget.model, budget.deployment.weight_format
    if model.is_gguf:
        return sum(tensor.size_bytes for tensor in model.gguf_tensors), Basis.READ
    if budget.llama_cpp is not None:
        from engine.runtimes.llama_cpp import file_bytes  # noqa: PLC0415 - loaded by now, or not needed

        basis = budget.ranks[0].regions[Region.WEIGHTS].estimate.basis
        return file_bytes(model, chosen), basis
    found = weights(model, WeightLayout(chosen))
    return sum(stage.size_bytes for stage in found.stages), found.basis
