"""Figures of Transformers: what is allocated at the end of a generation, and after loading."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.budget.model import Region
from engine.evidence import total
from tests.truth.scoring.scores import Score, span
from tests.truth.scoring.served import traits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.truth.scoring.ask import Asked


def scores(asked: Asked) -> Iterator[Score]:
    """Every figure of the record that is scored: what PyTorch's allocator holds."""
    rank = asked.sizing.budget.ranks[0]
    regions = {kind: region.estimate for kind, region in rank.regions.items()}
    workspace = regions[Region.RUNTIME].parts[-1]
    held = [regions[Region.WEIGHTS], regions[Region.KV_CACHE], regions[Region.RECURRENT_STATE]]
    ours = {
        "end": [*held, workspace],
        "peak": [*held, workspace, regions[Region.ACTIVATIONS]],
        "load": [regions[Region.WEIGHTS], *rank.moments.load],
    }
    for figure, parts in ours.items():
        if figure in asked.record.printed:
            yield _score(asked, figure, span(total(parts)))


def _score(asked: Asked, figure: str, ours: tuple[float, float, float]) -> Score:
    record = asked.record
    wanted, within = record.printed[figure]
    return Score(
        record.id,
        record.runtime,
        "all",
        asked.plan.model.spec.model_type,
        figure,
        wanted,
        *ours,
        within,
        is_region=True,
        traits=traits(asked) | {str(record.request.get("weight_format"))},
    )
