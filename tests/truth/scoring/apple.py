"""Figures of MLX: its own peak, what is held after short prompts, and the cache."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.budget.model import Region
from engine.evidence import total
from tests.truth.scoring.scores import Score, span

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.truth.scoring.ask import Asked

_OF_MLX = (Region.WEIGHTS, Region.KV_CACHE, Region.RECURRENT_STATE, Region.ACTIVATIONS)
"""What ``mx.get_peak_memory`` counts: MLX's buffers, not the process."""


def scores(asked: Asked) -> Iterator[Score]:
    """Every figure of the record that is scored."""
    regions = asked.sizing.budget.ranks[0].regions
    ours = {
        "peak": _OF_MLX,
        # After an evaluation of short prompts: the weights and next to nothing.
        "active": (Region.WEIGHTS,),
        "kv": (Region.KV_CACHE, Region.RECURRENT_STATE),
    }
    record = asked.record
    for figure, kinds in ours.items():
        if figure in record.printed:
            wanted, within = record.printed[figure]
            estimate = total(regions[kind].estimate for kind in kinds)
            yield Score(
                record.id,
                record.runtime,
                "all",
                asked.plan.model.spec.model_type,
                figure,
                wanted,
                *span(estimate),
                within,
                is_region=True,
            )
