"""Figures of MLX: its own peak, what is held after short prompts, and the cache."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.budget.model import Region
from engine.evidence import total
from tests.truth.scoring.scores import Score, law_of, span
from tests.truth.scoring.versions import range_of, release_of, version_of

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
            found = total(regions[kind].estimate for kind in kinds)
            low, likely, high = span(found)
            if figure == "active":
                # A server keeps the caches of finished prompts, whose lengths are not stated.
                high += regions[Region.KV_CACHE].estimate.likely_bytes
                high += regions[Region.RECURRENT_STATE].estimate.likely_bytes
            yield Score(
                record.id,
                record.runtime,
                range_of(record.runtime, version_of(record)),
                asked.plan.model.spec.model_type,
                figure,
                wanted,
                low,
                likely,
                high,
                within,
                is_region=True,
                release=release_of(version_of(record)),
                law=law_of([found]),
            )
