"""Which region each fact of a log is of, and what a rank states of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.budget.model import Region

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.logs.reading import Fact, Failure, LogReading, RankReading

REGION_OF: Mapping[str, Region] = {
    "weights": Region.WEIGHTS,
    "consumed": Region.WEIGHTS,
    "kv_pool": Region.KV_CACHE,
    "kv_tokens": Region.KV_CACHE,
    "kv_blocks": Region.KV_CACHE,
    "kv_needed": Region.KV_CACHE,
    "kv_fill": Region.KV_CACHE,
    "kv_used_tokens": Region.KV_CACHE,
    "kv_block_size": Region.KV_CACHE,
    "preemptions": Region.KV_CACHE,
    "state": Region.RECURRENT_STATE,
    "activations": Region.ACTIVATIONS,
    "compute": Region.ACTIVATIONS,
    "output": Region.ACTIVATIONS,
    "graphs": Region.CUDA_GRAPHS,
    "graphs_estimated": Region.CUDA_GRAPHS,
    "non_torch": Region.RUNTIME,
    "process": Region.RUNTIME,
    "unallocated": Region.ALLOCATOR,
    "process_of_others": Region.FOREIGN,
}
_OF_BUFFERS = {
    "model": Region.WEIGHTS,
    "KV": Region.KV_CACHE,
    "RS": Region.RECURRENT_STATE,
    "compute": Region.ACTIVATIONS,
    "output": Region.ACTIVATIONS,
}
_PARTS: Mapping[Region, tuple[str, ...]] = {
    Region.WEIGHTS: ("weights",),
    Region.KV_CACHE: ("kv_pool",),
    Region.RECURRENT_STATE: ("state",),
    Region.ACTIVATIONS: ("activations", "compute", "output"),
    Region.CUDA_GRAPHS: ("graphs",),
    Region.RUNTIME: ("non_torch",),
}


@dataclass(frozen=True, slots=True)
class Stated:
    """What the log says of one region."""

    size_bytes: int
    half_bytes: int
    """How far the printed figures are rounded."""
    lines: tuple[int, ...]


def region_of_buffer(kind: str | None) -> Region:
    """The region of llama.cpp's buffer of ``kind``; early builds named only that of the weights."""
    return _OF_BUFFERS.get(kind or "model", Region.WEIGHTS)


def stated_regions(rank: RankReading, failure: Failure | None = None) -> dict[Region, Stated]:
    """What ``rank`` states, with what the line of its ``failure`` adds."""
    facts = rank.facts
    found = {
        region: _sum([facts[name] for name in names if name in facts])
        for region, names in _PARTS.items()
        if any(name in facts for name in names)
    }
    consumed = facts.get("consumed")
    if consumed is not None and "weights" in facts:
        # Recent releases charge weights and what lies beside PyTorch in one figure.
        beside = _difference((consumed,), (facts["weights"],))
        if beside.size_bytes >= 0:
            found[Region.RUNTIME] = beside
    if "total" in facts and "free_at_start" in facts:
        found[Region.FOREIGN] = _difference((facts["total"],), (facts["free_at_start"],))
    if "total" in facts and "budget" in facts:
        found[Region.HEADROOM] = _difference((facts["total"],), (facts["budget"],))
    return found | (_at_failure(failure.facts) if failure is not None else {})


def _at_failure(facts: Mapping[str, Fact]) -> dict[Region, Stated]:
    """The parts that PyTorch's own account of a failure gives."""
    found: dict[Region, Stated] = {}
    unused, allocated = facts.get("unallocated"), facts.get("torch_allocated")
    mine, total, free = facts.get("process"), facts.get("total"), facts.get("free_now")
    if unused is not None:
        found[Region.ALLOCATOR] = _sum([unused])
    if mine is not None and allocated is not None and unused is not None:
        beside = _difference((mine,), (allocated, unused))
        if beside.size_bytes >= 0:
            found[Region.RUNTIME] = beside
    if mine is not None and total is not None and free is not None:
        others = _difference((total,), (mine, free))
        if others.size_bytes >= 0:
            found[Region.FOREIGN] = others
    return found


def _sum(facts: list[Fact]) -> Stated:
    return Stated(
        sum(fact.size_bytes for fact in facts),
        sum(fact.half_bytes for fact in facts),
        tuple(sorted({fact.line for fact in facts})),
    )


def _difference(whole: tuple[Fact, ...], parts: tuple[Fact, ...]) -> Stated:
    both = _sum([*whole, *parts])
    size = sum(f.size_bytes for f in whole) - sum(f.size_bytes for f in parts)
    return Stated(size, both.half_bytes, both.lines)


def sizes_by_rank(reading: LogReading) -> Mapping[int, Mapping[Region, int]]:
    """Bytes of every region that each rank states, by the rank's number."""
    return {
        rank.index: {region: found.size_bytes for region, found in stated_regions(rank).items()}
        for rank in reading.ranks
    }
