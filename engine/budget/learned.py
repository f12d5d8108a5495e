"""Budgets after what this machine's own runs taught.

A run of the same devices, runtime, release, model and settings goes before the rule, and says so
with the rule's figure beside it. A run that is only near narrows the rule's range: never beyond it.
Weights, cache and others follow from the plan and are not learned from runs with other settings.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from statistics import median
from typing import TYPE_CHECKING

from engine.budget.model import Region
from engine.deployment.spec import Deployment
from engine.devices.device import DeviceKind
from engine.evidence import Basis, Estimate
from engine.lessons import TOTAL, Key
from engine.units import format_gib
from engine.words import tr, tr_count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from engine.architecture.model import Model
    from engine.budget.model import Budget, RankBudget, RegionBudget
    from engine.devices.device import Slot
    from engine.lessons import Lesson, Measured

_NOT_LEARNED = frozenset({Region.FOREIGN, Region.HEADROOM})
"""Others and what is left free on purpose belong to the moment and to the user."""
_OF_THE_DEVICE = frozenset({Region.RUNTIME, Region.ALLOCATOR})
"""What a runtime holds on a device whatever model it runs."""
_OF_THE_MODEL = frozenset({Region.ACTIVATIONS, Region.CUDA_GRAPHS})
"""What grows with settings as the rule says, so that its error is a factor."""
_SURE = frozenset({Basis.READ, Basis.EXACT, Basis.SETTING})
_OWN_FIELDS = frozenset({"runtime", "runtime_version", "draft_model", "platform"})
_DEFAULTS = Deployment()


def key_of(budget: Budget) -> Key:
    """What a run of ``budget`` is the same by."""
    deployment = budget.deployment
    idle = _without_effect(budget)
    settings = {
        field.name: str(value)
        for field in fields(Deployment)
        if field.name not in _OWN_FIELDS | idle
        and (value := getattr(deployment, field.name)) != getattr(_DEFAULTS, field.name)
    }
    if deployment.draft_model is not None:
        settings["draft_model"] = deployment.draft_model.id
    return Key(
        devices=tuple(_device(rank.slot) for rank in budget.ranks),
        runtime=deployment.runtime,
        runtime_version=deployment.runtime_version or "",
        model=_name(budget.model),
        parameters=budget.model.parameters,
        settings=tuple(sorted(settings.items())),
    )


def _without_effect(budget: Budget) -> frozenset[str]:
    """Settings that a log states and a plan leaves out, for they change nothing here."""
    found: set[str] = set()
    stored = budget.model.stored
    if stored is not None and budget.deployment.weight_format == stored.format_label:
        found.add("weight_format")
    if all(rank.slot.device.kind is DeviceKind.HOST for rank in budget.ranks):
        found |= {"n_gpu_layers", "n_cpu_moe"}
    return frozenset(found)


def applied(
    budget: Budget, lessons: Iterable[Lesson], plan_with: Callable[[Deployment], Budget]
) -> Budget:
    """``budget`` with what ``lessons`` taught.

    Args:
        budget: as the rules have it.
        lessons: runs of this machine, of whatever model and runtime.
        plan_with: the rules' budget of other settings: a pool is what the rest leaves, so it is
            planned again where the rest turns out larger or smaller.
    """
    key = key_of(budget)
    if not key.is_whole:
        return budget
    alike = [lesson for lesson in lessons if _is_near(lesson.key, key)]
    same = [lesson for lesson in alike if lesson.key == key]
    if same:
        return _taught(budget, same, plan_with)
    return _narrowed(budget, key, alike) if alike else budget


@dataclass(frozen=True, slots=True)
class _Change:
    """Regions of one rank that were learned, and by how much they grew."""

    regions: Mapping[Region, RegionBudget]
    grown_bytes: int
    surprises: tuple[str, ...]


def _taught(
    budget: Budget, same: list[Lesson], plan_with: Callable[[Deployment], Budget]
) -> Budget:
    changes = [_change(rank, same) for rank in budget.ranks]
    if not any(change.regions for change in changes):
        return budget
    base = budget
    pools = [
        max(_likely(rank, Region.KV_CACHE) - change.grown_bytes, 1)
        for rank, change in zip(budget.ranks, changes, strict=True)
        if rank.has_pool and change.grown_bytes
    ]
    if pools and budget.deployment.kv_pool_bytes is None:
        again = plan_with(budget.deployment.with_(kv_pool_bytes=min(pools)))
        base = replace(again, deployment=budget.deployment, assumptions=budget.assumptions)
    ranks = tuple(
        replace(rank, regions={**rank.regions, **change.regions})
        for rank, change in zip(base.ranks, changes, strict=True)
    )
    count = len(same)
    learned = tr_count(
        "Learned from {count} run of this plan on this machine.",
        "Learned from {count} runs of this plan on this machine.",
        count,
    ).format(count=count)
    surprises = dict.fromkeys(words for change in changes for words in change.surprises)
    return replace(
        base,
        ranks=ranks,
        assumptions=(*base.assumptions, learned),
        warnings=(*base.warnings, *surprises),
    )


def _change(rank: RankBudget, same: list[Lesson]) -> _Change:
    regions: dict[Region, RegionBudget] = {}
    grown, surprises = 0, list[str]()
    for region, entry in rank.regions.items():
        runs = _runs(same, rank.rank, region.value)
        if not runs or region in _NOT_LEARNED or (rank.has_pool and region is Region.KV_CACHE):
            continue
        learned = _learned(runs, entry.estimate)
        if learned is None:
            continue
        outside = not entry.estimate.low_bytes <= learned.likely_bytes <= entry.estimate.high_bytes
        if outside:
            surprises.append(_surprise(region, learned, entry.estimate))
        regions[region] = replace(entry, estimate=learned, note=learned.source)
        grown += learned.likely_bytes - entry.estimate.likely_bytes
    totals = _runs(same, rank.rank, TOTAL)
    if totals and not regions:
        widest = _widest(rank)
        if widest is not None:
            regions[widest.region] = _settled(rank, widest, totals)
            settled = regions[widest.region].estimate.likely_bytes
            grown = settled - widest.estimate.likely_bytes
    return _Change(regions, grown, tuple(surprises))


def _learned(runs: list[Measured], rule: Estimate) -> Estimate | None:
    """The runs' own figure; None where a rule that is exact says the same more exactly."""
    low = max(0, min(run.size_bytes - run.half_bytes for run in runs))
    high = max(run.size_bytes + run.half_bytes for run in runs)
    if rule.basis in _SURE and low <= rule.likely_bytes <= high:
        return None
    likely = round(median(run.size_bytes for run in runs))
    return Estimate(low, likely, high, Basis.LEARNED, _says(len(runs), rule), rule.formula)


def _settled(rank: RankBudget, widest: RegionBudget, totals: list[Measured]) -> RegionBudget:
    """The least known region as large as makes the rank's total what was measured."""
    beside = sum(
        entry.estimate.likely_bytes
        for region, entry in rank.regions.items()
        if region not in _NOT_LEARNED and region is not widest.region
    )
    rests = [replace(run, size_bytes=max(run.size_bytes - beside, 0)) for run in totals]
    learned = _learned(rests, widest.estimate)
    if learned is None:
        return widest
    return replace(widest, estimate=learned, note=learned.source)


def _widest(rank: RankBudget) -> RegionBudget | None:
    open_ones = [
        entry
        for region, entry in rank.regions.items()
        if region not in _NOT_LEARNED
        and entry.estimate.basis not in _SURE
        and not (rank.has_pool and region is Region.KV_CACHE)
    ]
    if not open_ones:
        return None
    return max(open_ones, key=lambda e: e.estimate.high_bytes - e.estimate.low_bytes)


def _narrowed(budget: Budget, key: Key, near: list[Lesson]) -> Budget:
    """The rule's ranges as far as runs near this one bear them out."""
    of_the_model = [lesson for lesson in near if lesson.key.model == key.model]
    ranks: list[RankBudget] = []
    for rank in budget.ranks:
        regions = dict(rank.regions)
        for region, entry in rank.regions.items():
            taught_by = near if region in _OF_THE_DEVICE else of_the_model
            if region not in _OF_THE_DEVICE | _OF_THE_MODEL:
                continue
            runs = _runs(taught_by, rank.rank, region.value)
            estimate = _within(entry.estimate, runs, is_factor=region in _OF_THE_MODEL)
            if estimate is not None:
                regions[region] = replace(entry, estimate=estimate)
        ranks.append(replace(rank, regions=regions))
    return replace(budget, ranks=tuple(ranks))


def _within(rule: Estimate, runs: list[Measured], *, is_factor: bool) -> Estimate | None:
    """The part of the rule's range in which the runs lay; None where they say nothing of it."""
    if not runs or rule.is_point or rule.basis in _SURE:
        return None
    if is_factor:
        runs = [run for run in runs if run.likely_bytes]
        lows = [rule.likely_bytes * (r.size_bytes - r.half_bytes) // r.likely_bytes for r in runs]
        highs = [rule.likely_bytes * (r.size_bytes + r.half_bytes) // r.likely_bytes for r in runs]
    else:
        lows = [run.size_bytes - run.half_bytes for run in runs]
        highs = [run.size_bytes + run.half_bytes for run in runs]
    if not lows:
        return None
    # Half as wide again on both sides: another model or setting is not this one.
    spare = max((max(highs) - min(lows)) // 2, (rule.high_bytes - rule.low_bytes) // 10)
    low, high = max(rule.low_bytes, min(lows) - spare), min(rule.high_bytes, max(highs) + spare)
    if low >= high or (low, high) == (rule.low_bytes, rule.high_bytes):
        return None
    likely = min(max(rule.likely_bytes, low), high)
    words = tr_count(
        "{rule}; narrowed by {count} run near this one",
        "{rule}; narrowed by {count} runs near this one",
        len(runs),
    ).format(rule=rule.source, count=len(runs))
    return replace(
        rule, low_bytes=low, likely_bytes=likely, high_bytes=high, source=words, parts=()
    )


def _runs(lessons: Iterable[Lesson], rank: int, region: str) -> list[Measured]:
    """What was measured of a region on a rank; a run that tells its ranks not apart counts."""
    found = (
        lesson.ranks[rank if rank < len(lesson.ranks) else 0].get(region)
        for lesson in lessons
        if lesson.ranks
    )
    return [one for one in found if one is not None]


def _is_near(one: Key, other: Key) -> bool:
    mine = (one.devices, one.runtime, one.runtime_version)
    return mine == (other.devices, other.runtime, other.runtime_version)


def _likely(rank: RankBudget, region: Region) -> int:
    return rank.regions[region].estimate.likely_bytes


def _says(count: int, rule: Estimate) -> str:
    if rule.is_point:
        range_ = format_gib(rule.likely_bytes)
    else:
        range_ = tr("{low} to {high}").format(
            low=format_gib(rule.low_bytes), high=format_gib(rule.high_bytes)
        )
    return tr_count(
        "{count} run of this plan on this machine; the rule says {range}",
        "{count} runs of this plan on this machine; the rule says {range}",
        count,
    ).format(count=count, range=range_)


def _surprise(region: Region, learned: Estimate, rule: Estimate) -> str:
    message = tr(
        "{region}: this machine’s runs measured {measured}, outside the {low} to {high} that the "
        "rule gives; the plan follows the runs."
    )
    return message.format(
        region=region.label,
        measured=format_gib(learned.likely_bytes),
        low=format_gib(rule.low_bytes),
        high=format_gib(rule.high_bytes),
    )


def _device(slot: Slot) -> str:
    """Name and total; a memory shared with the computer has a total that moves with its use."""
    is_shared = slot.device.kind is DeviceKind.UNIFIED and bool(slot.uuid)
    return f"{slot.device.name} · {slot.uuid if is_shared else slot.device.total_bytes}"


def _name(model: Model) -> str:
    return model.id.lower()
