"""The plan's regions with measured figures: what was stated, what was seen, and what remains."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from engine.budget.model import Region
from engine.telemetry.snapshot import Missing
from engine.units import UnitSystem, format_gib
from engine.words import tr, tr_later

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from engine.budget.model import RankBudget
    from engine.overlay.overlay import RankOverlay


class KnownFrom(StrEnum):
    """Where a measured figure comes from."""

    LOG = "log"
    MAPPED = "mapped"
    DRIVER = "driver"
    REMAINS = "remains"
    PLAN = "plan"

    @property
    def label(self) -> str:
        """The words a person reads."""
        return tr(_KNOWN_FROM[self])


_KNOWN_FROM = {
    KnownFrom.LOG: tr_later("Log line"),
    KnownFrom.MAPPED: tr_later("Mapped file"),
    KnownFrom.DRIVER: tr_later("Driver"),
    KnownFrom.REMAINS: tr_later("What remains"),
    KnownFrom.PLAN: tr_later("Not visible"),
}
_OUTSIDE = (Region.HEADROOM, Region.FOREIGN)


@dataclass(frozen=True, slots=True)
class MeasuredRegion:
    """One region of one rank: planned beside measured."""

    region: Region
    planned_bytes: int
    measured_bytes: int | Missing
    known_from: KnownFrom
    note: str = ""

    @property
    def difference_bytes(self) -> int | None:
        """Measured minus planned; None where it isn't known."""
        measured = self.measured_bytes
        return None if isinstance(measured, Missing) else measured - self.planned_bytes


def measured_regions(
    budget: RankBudget,
    rank: RankOverlay,
    stated: Mapping[Region, int] | None = None,
    unit: UnitSystem = UnitSystem.BINARY,
) -> tuple[MeasuredRegion, ...]:
    """Every region of a running rank, in table order; what is held adds up to the measurement.

    A region that nobody states stands at its planned figure; what is left over goes to the first
    suspect, or to the runtime, and is named as such.

    Args:
        budget: the plan's rank.
        rank: what was seen of it.
        stated: sizes that the runtime's log states for this rank.
        unit: of the sizes in notes.
    """
    known = {region: (size, KnownFrom.LOG) for region, size in (stated or {}).items()}
    if not isinstance(rank.held, Missing) and rank.held.file_bytes:
        weights = budget.regions[Region.WEIGHTS].estimate.likely_bytes
        if rank.held.file_bytes >= weights:
            known.setdefault(Region.WEIGHTS, (weights, KnownFrom.MAPPED))
    sizes = _shared_out(budget, rank, known)
    return tuple(_row(budget, rank, region, sizes, unit) for region in Region)


def _shared_out(
    budget: RankBudget, rank: RankOverlay, known: dict[Region, tuple[int, KnownFrom]]
) -> dict[Region, tuple[int, KnownFrom]]:
    """Sizes of all that the plan's processes hold; they add up to what is measured."""
    inside = [region for region in Region if region not in _OUTSIDE]
    sizes = {
        region: known.get(region, (budget.regions[region].estimate.likely_bytes, KnownFrom.PLAN))
        for region in inside
    }
    left = rank.run.own_bytes - sum(size for size, _ in sizes.values())
    for region in _takers(rank, known):
        size, _ = sizes[region]
        taken = max(left, -size)
        if taken:
            sizes[region] = size + taken, KnownFrom.REMAINS
            left -= taken
    return sizes


def _takers(rank: RankOverlay, known: Mapping[Region, object]) -> Iterator[Region]:
    """Who takes what is left over: the suspects first, then the softest figures."""
    suspects = rank.residue.suspects if rank.residue else ()
    named = [s.region for s in suspects if s.region not in _OUTSIDE]
    short = rank.residue is not None and rank.residue.size_bytes < 0
    softest = (Region.ACTIVATIONS, Region.KV_CACHE) if short else ()
    order = [*named, *softest, Region.RUNTIME, *(r for r in Region if r not in _OUTSIDE)]
    return (region for region in dict.fromkeys(order) if region not in known)


def _row(
    budget: RankBudget,
    rank: RankOverlay,
    region: Region,
    sizes: Mapping[Region, tuple[int, KnownFrom]],
    unit: UnitSystem,
) -> MeasuredRegion:
    planned = budget.regions[region].estimate.likely_bytes
    if region is Region.FOREIGN:
        foreign = rank.run.foreign_bytes if rank.run.is_derived else rank.foreign_bytes
        return MeasuredRegion(region, planned, foreign, KnownFrom.DRIVER)
    if region is Region.HEADROOM:
        used = rank.used_bytes
        left = used if isinstance(used, Missing) else rank.load_line_bytes - used
        return MeasuredRegion(region, planned, left, KnownFrom.REMAINS)
    size, known_from = sizes[region]
    return MeasuredRegion(region, planned, size, known_from, _note(rank, region, unit))


def _note(rank: RankOverlay, region: Region, unit: UnitSystem) -> str:
    live = rank.kv_live_bytes
    if region is Region.KV_CACHE and isinstance(live, int):
        return tr("{size} in use").format(size=format_gib(live, unit))
    suspects = rank.residue.suspects if rank.residue else ()
    why = next((s.why for s in suspects[:1] if s.region is region), "")
    return why[:1].upper() + why[1:]
