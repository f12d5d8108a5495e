"""How each step of the checklist is answered on one rank: by log, measurement, or plan."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from engine.budget.model import Region
from engine.evidence import Basis, Estimate, exactly, total
from engine.overlay.seen import Seen
from engine.telemetry.snapshot import Missing
from engine.units import UnitSystem, format_gib
from engine.words import figures, grouped, tr, tr_later

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from engine.budget.model import Budget, RankBudget
    from engine.overlay.overlay import Overlay, RankOverlay

WATCHED_S: Final = 600.0
"""Steady traffic for so long shows what the headroom has to hold."""
_SURE: Final = frozenset({Basis.READ, Basis.EXACT, Basis.SETTING, Basis.MEASURED})
_NEAR: Final = 0.2
"""A pause of the load this near to the planned weights is taken for them."""
_NEARLY_ALL: Final = 0.99
"""Buffers that are fitted, on top of tensors that are counted, leave a figure known."""
_KEPT = (Region.CUDA_GRAPHS, Region.RUNTIME, Region.ALLOCATOR)


class Status(StrEnum):
    """How well a step is answered."""

    KNOWN = "known"
    MODELLED = "modelled"
    OPEN = "open"

    @property
    def label(self) -> str:
        """The word a person reads."""
        return tr(_STATUS[self])


_STATUS = {
    Status.KNOWN: tr_later("Known"),
    Status.MODELLED: tr_later("Modelled"),
    Status.OPEN: tr_later("Open"),
}


@dataclass(frozen=True, slots=True)
class Answer:
    """One step on one rank."""

    status: Status
    words: str
    estimate: Estimate | None
    """The figure with range and basis; None where there is none."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What beside the plan fills the steps."""

    overlay: Overlay | None = None
    stated: Mapping[int, Mapping[Region, int]] = field(
        default_factory=dict[int, "Mapping[Region, int]"]
    )
    """What the runtime's log states, by rank."""
    longest_prompt: int | None = None
    """Tokens of the longest prompt that is known to have been read."""
    release: str = ""
    """The runtime's, as its log or endpoint states it."""
    kernel: str = ""
    """The attention kernel that it chose, as its log states it."""


@dataclass(frozen=True, slots=True)
class Asked:
    """All that an answer is made of."""

    budget: Budget
    rank: RankBudget
    evidence: Evidence
    unit: UnitSystem

    @property
    def seen(self) -> RankOverlay | None:
        """What was seen of the rank."""
        overlay = self.evidence.overlay
        return overlay.of(self.rank.rank) if overlay else None

    def stated(self, region: Region) -> int | None:
        """What the log states of ``region``."""
        return self.evidence.stated.get(self.rank.rank, {}).get(region)

    def planned(self, region: Region) -> Estimate:
        """The plan's figure."""
        return self.rank.regions[region].estimate

    def size(self, size_bytes: int, *, unit: bool = True) -> str:
        """In the unit of the window."""
        return format_gib(size_bytes, self.unit, unit=unit)


def _weights(asked: Asked) -> Answer:
    planned = asked.planned(Region.WEIGHTS)
    stated = asked.stated(Region.WEIGHTS)
    if stated is not None:
        words = tr("Stated by the log: {size}").format(size=asked.size(stated))
        return Answer(Status.KNOWN, words, exactly(stated, Basis.MEASURED, tr("the runtime's log")))
    measured = _loaded_weights(asked, planned)
    if measured is not None:
        words = tr("Held after loading: {size}, planned {planned}").format(
            size=asked.size(measured.likely_bytes), planned=asked.size(planned.likely_bytes)
        )
        return Answer(Status.KNOWN, words, measured)
    if _sure_bytes(planned) >= _NEARLY_ALL * planned.likely_bytes > 0:
        is_read = planned.basis is Basis.READ
        words = (
            tr("Read from the model's files: {size}")
            if is_read
            else tr("Counted from the model's tensors: {size}")
        )
        return Answer(Status.KNOWN, words.format(size=asked.size(planned.likely_bytes)), planned)
    return _modelled(asked, planned)


def _sure_bytes(estimate: Estimate) -> int:
    """What of an estimate is read or exact, its parts counted one by one."""
    if estimate.basis in _SURE:
        return estimate.likely_bytes
    return sum(_sure_bytes(part) for part in estimate.parts)


def _loaded_weights(asked: Asked, planned: Estimate) -> Estimate | None:
    """The weights out of what a run held: mapped from the file, or where the load paused."""
    seen = asked.seen
    if seen is None or not seen.run.is_loaded:
        return None
    if not isinstance(seen.held, Missing) and seen.held.file_bytes >= planned.likely_bytes > 0:
        return exactly(planned.likely_bytes, Basis.MEASURED, tr("mapped pages of the model's file"))
    runtime = asked.planned(Region.RUNTIME)
    after = [size - runtime.likely_bytes for size in seen.run.shelves_bytes]
    near = [s for s in after if abs(s - planned.likely_bytes) <= _NEAR * planned.likely_bytes]
    if not near:
        return None
    likely = min(near, key=lambda size: abs(size - planned.likely_bytes))
    return Estimate(
        likely + runtime.likely_bytes - runtime.high_bytes,
        likely,
        likely + runtime.likely_bytes - runtime.low_bytes,
        Basis.MEASURED,
        tr("what was held where the load paused, less the runtime's own"),
    )


def _prefill(asked: Asked) -> Answer:
    seen = asked.seen
    error = next((e for e in seen.errors if e.phase is Seen.PREFILL), None) if seen else None
    work = asked.planned(Region.ACTIVATIONS)
    if seen is None or error is None:
        note = asked.rank.regions[Region.ACTIVATIONS].note
        words = tr("Modelled: {size}. {note}").format(size=asked.size(work.likely_bytes), note=note)
        return Answer(Status.MODELLED, words, work)
    every = figures(f"{seen.run.every_s:.2g}")
    words = tr("Highest seen {size}, {off} against the plan, sampled every {seconds} s").format(
        size=asked.size(error.peak_bytes),
        off=format_gib(error.error_bytes, asked.unit, signed=True),
        seconds=every,
    )
    found = exactly(error.peak_bytes, Basis.MEASURED, tr("the device's driver"))
    target = _target_prompt(asked.budget)
    longest = asked.evidence.longest_prompt
    if longest is None:
        return Answer(
            Status.MODELLED,
            tr("{words}; how long its prompt was isn't known").format(words=words),
            found,
        )
    if target and longest < target:
        short = tr("{words}; with {seen} of {target} tokens").format(
            words=words, seen=grouped(longest), target=grouped(target)
        )
        return Answer(Status.MODELLED, short, found)
    return Answer(Status.KNOWN, words, found)


def _target_prompt(budget: Budget) -> int:
    """The longest prompt that the plan has to bear: its own, else the whole context."""
    plan = budget.deployment
    return plan.prompt_len or plan.max_model_len or plan.n_ctx or 0


def _cache(asked: Asked) -> Answer:
    needed = asked.rank.needed
    plan = asked.budget.deployment
    size = asked.size(needed.likely_bytes)
    context = plan.max_model_len or plan.n_ctx
    words = size
    if context and plan.live_tokens is None:
        words = tr("{requests} × {tokens} tokens: {size}").format(
            requests=grouped(plan.concurrency), tokens=grouped(context), size=size
        )
    elif plan.live_tokens is not None:
        words = tr("{tokens} live tokens: {size}").format(
            tokens=grouped(plan.live_tokens), size=size
        )
    share = asked.seen.run.most_pool_share if asked.seen else None
    if share is not None and asked.seen is not None:
        most = round(share * asked.seen.kv_reserved_bytes)
        words = tr("{words}; {most} in use at most so far").format(
            words=words, most=asked.size(most)
        )
    if needed.basis is Basis.BOUND or (needed.likely_bytes == 0 and asked.budget.doubts):
        return Answer(Status.OPEN, words, needed)
    is_sure = needed.basis in _SURE
    return Answer(Status.KNOWN if is_sure else Status.MODELLED, words, needed)


def _kept(asked: Asked) -> Answer:
    planned = total([asked.planned(region).named(region.label) for region in _KEPT])
    stated = [asked.stated(region) for region in _KEPT]
    if any(size is not None for size in stated):
        kept = sum(
            asked.planned(region).likely_bytes if size is None else size
            for region, size in zip(_KEPT, stated, strict=True)
        )
        words = tr("With the log: {size}, planned {planned}").format(
            size=asked.size(kept), planned=asked.size(planned.likely_bytes)
        )
        return Answer(Status.KNOWN, words, exactly(kept, Basis.MEASURED, tr("the runtime's log")))
    seen = asked.seen
    if seen is not None and seen.run.is_running and seen.run.is_loaded and not seen.run.is_derived:
        others = sum(
            asked.planned(region).likely_bytes
            for region in (Region.WEIGHTS, Region.KV_CACHE, Region.RECURRENT_STATE)
        )
        left = seen.run.own_bytes - others - asked.planned(Region.ACTIVATIONS).likely_bytes
        if left >= 0:
            words = tr("What remains beside weights, cache and work: {size}, planned {planned}")
            text = words.format(size=asked.size(left), planned=asked.size(planned.likely_bytes))
            return Answer(Status.KNOWN, text, exactly(left, Basis.MEASURED, tr("what remains")))
    parts = ", ".join(
        f"{region.label} {asked.size(asked.planned(region).likely_bytes, unit=False)}"
        for region in _KEPT
        if asked.planned(region).high_bytes
    )
    words = f"{parts} {asked.unit.value}" if parts else tr("Nothing is set aside")
    return Answer(Status.MODELLED, words, planned)


def _headroom(asked: Asked) -> Answer:
    line = asked.rank.slot.device.allocatable.likely_bytes
    seen = asked.seen
    watched = seen.run.seconds.get(Seen.SUSTAINED, 0.0) if seen else 0.0
    if seen is None or not watched:
        left = asked.rank.free_bytes + asked.planned(Region.HEADROOM).likely_bytes
        words = tr("{size} left; not yet checked") if left > 0 else tr("Nothing is left")
        return Answer(Status.OPEN, words.format(size=asked.size(left)), None)
    most = max(peak.used_bytes for peak in seen.run.peaks.values())
    left = exactly(line - most, Basis.MEASURED, tr("the device's driver"))
    size, minutes = asked.size(line - most), figures(f"{watched / 60:.0f}")
    if watched < WATCHED_S:
        words = tr("{size} left at the least, over {minutes} of 10 min of steady load")
        return Answer(Status.OPEN, words.format(size=size, minutes=minutes), left)
    words = tr("{size} left at the least, over {minutes} min of steady load")
    return Answer(Status.KNOWN, words.format(size=size, minutes=minutes), left)


def _modelled(asked: Asked, estimate: Estimate) -> Answer:
    is_bound = estimate.basis is Basis.BOUND
    words = tr("At least {size}") if is_bound else tr("Modelled: {size}")
    status = Status.OPEN if is_bound else Status.MODELLED
    return Answer(status, words.format(size=asked.size(estimate.likely_bytes)), estimate)


ANSWERS: Mapping[str, Callable[[Asked], Answer]] = {
    "weights": _weights,
    "prefill": _prefill,
    "cache": _cache,
    "kept": _kept,
    "headroom": _headroom,
}
"""By the step's key, in order."""
