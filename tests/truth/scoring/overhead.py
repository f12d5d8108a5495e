"""What a device or a process takes with no model in it: readings without a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.devices import catalogue
from engine.evidence import total
from engine.runtimes import overheads, platforms
from tests.truth.scoring.scores import Score, law_of, span
from tests.truth.scoring.versions import release_of, version_of

if TYPE_CHECKING:
    from engine.evidence import Estimate
    from tests.truth.scoring.records import Record


def score(record: Record) -> Score:
    """The reading beside the estimate of its kind (``facts.overhead``)."""
    figure = next(iter(record.printed.keys() & {"unavailable", "unaccounted", "outside"}))
    ours = _estimate(record)
    wanted, within = record.printed[figure]
    label = {
        "unavailable": "gone before loading",
        "unaccounted": "beside llama.cpp's buffers",
        "outside": "beside PyTorch's allocator",
    }[figure]
    return Score(
        record.id,
        "devices",
        "all",
        record.facts["gpu"],
        label,
        wanted,
        *span(ours),
        within,
        is_region=True,
        release=release_of(version_of(record)),
        law=law_of([ours]),
    )


def _estimate(record: Record) -> Estimate:
    facts = record.facts
    device = catalogue.find(facts["gpu"])
    parts = [platforms.unavailable(device, facts.get("platform", "linux"))]
    if facts["overhead"] == "context":
        parts.append(overheads.context(device))
    elif facts["overhead"] == "torch":
        parts.append(overheads.torch_process(device))
        parts.append(overheads.collectives(device, facts.get("ranks", 1)))
    elif facts["overhead"] != "platform":
        parts.append(overheads.ggml(device, facts["overhead"]))
    return total(parts)
