"""Figures of Transformers: what is allocated at the end of a generation, and after loading."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.budget.model import Region
from engine.evidence import Basis, Estimate, exactly, total
from engine.runtimes.transformers.adapters import KEPT_BYTES
from tests.truth.scoring.scores import Score, law_of, span
from tests.truth.scoring.served import traits
from tests.truth.scoring.versions import range_of, release_of, version_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.truth.scoring.ask import Asked


def scores(asked: Asked) -> Iterator[Score]:
    """Every figure of the record that is scored: what PyTorch's allocator holds."""
    rank = asked.sizing.budget.ranks[0]
    regions = {kind: region.estimate for kind, region in rank.regions.items()}
    workspace = regions[Region.RUNTIME].parts[-1]
    held = [regions[Region.WEIGHTS], regions[Region.KV_CACHE], regions[Region.RECURRENT_STATE]]
    loading = [regions[Region.WEIGHTS], *rank.moments.load, *_adapters(asked)]
    end = [*held, workspace]
    running = [*end, regions[Region.ACTIVATIONS]]
    ours = {
        "end": (span(total(end)), law_of(end)),
        "load": (span(total(loading)), law_of(loading)),
        # The most since the process began, which may have been while it loaded.
        "peak": (_larger(total(running), total(loading)), law_of(running)),
    }
    for figure, (found, law) in ours.items():
        if figure in asked.record.printed:
            yield _score(asked, figure, found, law)


def _adapters(asked: Asked) -> list[Estimate]:
    """Adapters of a stated size: in 32 bits, and the 16-bit copies that they are made from."""
    count = asked.record.facts.get("adapter_parameters", 0)
    copies = Estimate(0, count, 2 * count, Basis.ASSUMED, "PEFT 0.21")
    return [exactly(KEPT_BYTES * count, Basis.EXACT, "PEFT 0.21"), copies]


def _larger(one: Estimate, other: Estimate) -> tuple[float, float, float]:
    pairs = zip(span(one), span(other), strict=True)
    low, likely, high = (max(pair) for pair in pairs)
    return low, likely, high


def _score(asked: Asked, figure: str, ours: tuple[float, float, float], law: str) -> Score:
    record = asked.record
    wanted, within = record.printed[figure]
    return Score(
        record.id,
        record.runtime,
        range_of(record.runtime, version_of(record)),
        asked.plan.model.spec.model_type,
        figure,
        wanted,
        *ours,
        within,
        is_region=True,
        traits=traits(asked) | {str(record.request.get("weight_format"))},
        release=release_of(version_of(record)),
        law=law,
    )
