"""The phases of a deployment's life, and the peak of each: four figures, never their sum."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from engine.budget.model import Region
from engine.evidence import total
from engine.units import UnitSystem, format_gib
from engine.words import begun_small, tr, tr_later

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from engine.budget.model import RankBudget
    from engine.evidence import Estimate


class Phase(StrEnum):
    """When a device holds most (design, section 2). Order = order in time."""

    LOAD = "load"
    """Until the weights lie as they are computed with: loader transients, unpacked copies."""
    PREFILL = "prefill"
    """The largest forward pass over a prompt."""
    DECODE = "decode"
    """A token for every request, steadily."""
    SUSTAINED = "sustained"
    """After the first requests, at the live tokens of the traffic: what no start-up shows."""

    @property
    def label(self) -> str:
        """The name a person reads."""
        return tr(_LABELS[self])


_LABELS = {
    Phase.LOAD: tr_later("Load"),
    Phase.PREFILL: tr_later("Prefill"),
    Phase.DECODE: tr_later("Decode"),
    Phase.SUSTAINED: tr_later("Sustained"),
}


class PhasePeak(NamedTuple):
    """The most that one rank holds in one phase."""

    phase: Phase
    estimate: Estimate
    """Everything on the device at that moment, others included, headroom not; its parts are
    named by region or by what comes on top."""
    driver: str
    """What drives the peak, in one sentence."""


_WHILE_LOADING = (Region.FOREIGN, Region.WEIGHTS, Region.RUNTIME)
"""Caches, graphs and activations come after the weights."""
_NEVER_HELD = (Region.HEADROOM,)
_OF_THE_SHARE = (
    Region.WEIGHTS,
    Region.KV_CACHE,
    Region.RECURRENT_STATE,
    Region.ACTIVATIONS,
    Region.CUDA_GRAPHS,
)
"""Regions that a runtime with a pool takes out of one share of the device."""


def peaks(rank: RankBudget, unit: UnitSystem = UnitSystem.BINARY) -> tuple[PhasePeak, ...]:
    """The peak of every phase of ``rank``, in order of time, in words with sizes in ``unit``."""
    moments, regions = rank.moments, rank.regions
    held = [region for region in Region if region not in _NEVER_HELD]
    steady = [region for region in held if region is not Region.ACTIVATIONS]
    activations = regions[Region.ACTIVATIONS].estimate
    decode = activations if moments.decode is None else moments.decode
    after = [*_named(rank, held), *moments.sustained]
    return (
        PhasePeak(
            Phase.LOAD,
            total([*_named(rank, _WHILE_LOADING, shared=False), *moments.load]),
            _load_driver(rank, moments.load, unit),
        ),
        PhasePeak(
            Phase.PREFILL,
            total(_named(rank, held)),
            tr("the largest pass: {note}").format(
                note=begun_small(regions[Region.ACTIVATIONS].note)
            ),
        ),
        PhasePeak(
            Phase.DECODE,
            total([*_named(rank, steady), decode.named(tr("Activations of one step"))]),
            _decode_driver(rank),
        ),
        PhasePeak(Phase.SUSTAINED, total(after), _sustained_driver(moments.sustained, unit)),
    )


def loading_bytes(rank: RankBudget) -> int:
    """The likely peak of ``Phase.LOAD``, without its words: this runs in every search."""
    held = sum(rank.regions[region].estimate.likely_bytes for region in _WHILE_LOADING)
    return held + sum(transient.likely_bytes for transient in rank.moments.load)


def outgrows(rank: RankBudget) -> bool:
    """Whether what comes with the first requests may find no room beside the plan."""
    if not rank.moments.sustained:
        return False
    coming = sum(transient.high_bytes for transient in rank.moments.sustained)
    spare = rank.regions[Region.HEADROOM].estimate.likely_bytes + max(rank.free_bytes, 0)
    return coming > spare


def largest(transients: tuple[Estimate, ...]) -> Estimate | None:
    """The transient that weighs most; None where there is none."""
    found = [t for t in transients if t.high_bytes]
    return max(found, key=lambda t: (t.likely_bytes, t.high_bytes)) if found else None


def _named(
    rank: RankBudget, regions: Iterable[Region], *, shared: bool = True
) -> Iterator[Estimate]:
    """Estimates by region.

    What a pool leaves the others is the pool's: ranges within a share cancel out, so there only
    the likely sizes count.
    """
    for region in regions:
        found = rank.regions[region].estimate.named(region.label)
        if shared and rank.has_pool and region in _OF_THE_SHARE:
            likely = found.likely_bytes
            found = replace(found, low_bytes=likely, high_bytes=likely)
        yield found


def _load_driver(rank: RankBudget, transients: tuple[Estimate, ...], unit: UnitSystem) -> str:
    weights = format_gib(rank.regions[Region.WEIGHTS].estimate.likely_bytes, unit)
    worst = _worst(transients, unit)
    return tr("{weights} of weights").format(weights=weights) + (
        tr(", and for a moment {worst}").format(worst=worst) if worst else ""
    )


def _decode_driver(rank: RankBudget) -> str:
    cache = rank.regions[Region.KV_CACHE]
    if not cache.estimate.high_bytes:
        if rank.needed.likely_bytes and rank.has_pool:
            return tr("the weights: they leave the cache nothing")
        return begun_small(rank.regions[Region.RECURRENT_STATE].note)
    return tr("the cache: {note}").format(note=begun_small(cache.note))


def _sustained_driver(transients: tuple[Estimate, ...], unit: UnitSystem) -> str:
    worst = _worst(transients, unit)
    if not worst:
        return tr("as the prefill: nothing is known to come on top")
    return tr("after the first requests {worst}").format(worst=worst)


def _worst(transients: tuple[Estimate, ...], unit: UnitSystem) -> str:
    """The largest of what comes on top, by name and size."""
    found = largest(transients)
    if found is None:
        return ""
    size = format_gib(found.likely_bytes or found.high_bytes, unit)
    taken = size if found.likely_bytes else tr("up to {size}").format(size=size)
    return f"{begun_small(found.label)} ({taken})"
