"""What the plan says of each phase that is seen: its own processes alone, others left out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from engine.budget.model import Region
from engine.budget.phases import Phase, peaks
from engine.devices.device import DeviceKind
from engine.evidence import Estimate, total
from engine.overlay.seen import Seen
from engine.words import tr

if TYPE_CHECKING:
    from collections.abc import Mapping
    from collections.abc import Set as AbstractSet

    from engine.budget.model import RankBudget

_GROWING: Final = frozenset({"transformers", "mlx"})
"""Runtimes that take memory for the cache token by token; others reserve it when they start."""
_AT_START = (
    Region.WEIGHTS,
    Region.KV_CACHE,
    Region.RECURRENT_STATE,
    Region.CUDA_GRAPHS,
    Region.RUNTIME,
    Region.ALLOCATOR,
)
_BARE = (Region.WEIGHTS, Region.RUNTIME)


@dataclass(frozen=True, slots=True)
class Expected:
    """What a run of the plan should hold on one rank; worked out once per plan."""

    rest: Estimate
    """Once loaded, before its first request."""
    by_phase: Mapping[Seen, Estimate]
    """The peak of each phase."""

    def now(self, seen: AbstractSet[Seen]) -> Estimate:
        """What a loaded run holds after the phases ``seen``: at least what it holds at rest."""
        after = (Seen.PREFILL, Seen.DECODE, Seen.SUSTAINED)
        came = [self.by_phase[phase] for phase in after if phase in seen]
        top = max([self.rest, *came], key=lambda e: e.likely_bytes)
        return replace(
            top,
            low_bytes=min(self.rest.low_bytes, top.low_bytes),
            high_bytes=max(e.high_bytes for e in (self.rest, *came)),
        )


def expected(rank: RankBudget, runtime: str) -> Expected:
    """The peak of each phase of a run of the plan on this rank, without what others hold."""
    found = {peak.phase: _own(peak.estimate, rank) for peak in peaks(rank)}
    rest = at_rest(rank, runtime)
    prefill = found[Phase.PREFILL]
    by_phase = {
        Seen.LOAD: max(found[Phase.LOAD], rest, key=lambda e: (e.likely_bytes, e.high_bytes)),
        Seen.PREFILL: prefill,
        # What a prompt took stays with the allocator.
        Seen.DECODE: _up_to(found[Phase.DECODE], prefill),
        Seen.SUSTAINED: _up_to(found[Phase.SUSTAINED], prefill),
        Seen.IDLE: _up_to(rest, max(found.values(), key=lambda e: e.high_bytes)),
    }
    return Expected(rest, by_phase)


def at_rest(rank: RankBudget, runtime: str) -> Estimate:
    """What a loaded run holds before its first request.

    Work buffers are reserved by then, but in host memory nothing is held before it is touched.
    """
    if rank.has_pool:
        # Ranges within a pool's share cancel out, as the peaks have it.
        prefill = next(p.estimate for p in peaks(rank) if p.phase is Phase.PREFILL)
        own, work = _own(prefill, rank), rank.regions[Region.ACTIVATIONS].estimate
        return replace(own, low_bytes=own.low_bytes - work.likely_bytes)
    regions = _BARE if runtime in _GROWING else _AT_START
    parts = [rank.regions[region].estimate.named(region.label) for region in regions]
    if runtime not in _GROWING:
        work = rank.regions[Region.ACTIVATIONS].estimate.named(Region.ACTIVATIONS.label)
        is_touched = rank.slot.device.kind is not DeviceKind.HOST
        likely = work.likely_bytes if is_touched else 0
        parts.append(replace(work, low_bytes=0, likely_bytes=likely))
    return total(parts, tr("what is held once loaded, before the first request"))


def _own(peak: Estimate, rank: RankBudget) -> Estimate:
    foreign = rank.regions[Region.FOREIGN].estimate
    return replace(
        peak,
        low_bytes=peak.low_bytes - foreign.low_bytes,
        likely_bytes=peak.likely_bytes - foreign.likely_bytes,
        high_bytes=peak.high_bytes - foreign.high_bytes,
    )


def _up_to(estimate: Estimate, other: Estimate) -> Estimate:
    return replace(estimate, high_bytes=max(estimate.high_bytes, other.high_bytes))
