"""The verdict and its facts while the plan runs: what is, instead of what would be."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from engine.overlay.words import residue_sentence, summary
from engine.telemetry.snapshot import Missing
from engine.words import figures, tr
from gui.kit import format as fmt
from gui.sizing.explain import Detail, Passage
from gui.sizing.present import Fact, Words

if TYPE_CHECKING:
    from engine.overlay.overlay import Overlay, RankOverlay
    from engine.units import UnitSystem


def verdict(plan: Words, overlay: Overlay | None, unit: UnitSystem) -> Words:
    """The plan's words, with what runs of it as the second line.

    Where more or less is held than the plan explains, the run speaks in the first line too.
    """
    worst = overlay.worst if overlay and overlay.is_running else None
    if overlay is None or worst is None:
        return plan
    words = replace(plan, detail=summary(overlay, unit))
    used = worst.used_bytes
    if worst.residue is None or not worst.residue.is_unexplained or isinstance(used, Missing):
        return words
    left = worst.load_line_bytes - used
    size = fmt.size(abs(left), unit, digits=1)
    text = tr("Running, with {size} left to the load line")
    if left < 0:
        text = tr("Running, {size} over the load line")
    color = "tight" if left >= 0 else "over"
    return replace(words, color=color, icon="activity", headline=text.format(size=size))


def explained(plan: Detail, seen: RankOverlay | None, unit: UnitSystem) -> Detail:
    """The detail of a region, and before it what is held of it beyond the plan."""
    found = seen.residue if seen else None
    suspects = found.suspects if found and found.is_unexplained else ()
    if found is None or not suspects or suspects[0].region is not plan.region:
        return plan
    heading = tr("Held beyond the plan") if found.size_bytes > 0 else tr("Short of the plan")
    passage = Passage(heading, residue_sentence(found, unit))
    return replace(plan, passages=(passage, *plan.passages))


def facts(plan: tuple[Fact, Fact], overlay: Overlay | None, unit: UnitSystem) -> tuple[Fact, Fact]:
    """The cache in use and the most so far, where the runtime states them; else the plan's."""
    worst = overlay.worst if overlay and overlay.is_running else None
    if worst is None or isinstance(worst.kv_live_bytes, Missing) or not worst.kv_reserved_bytes:
        return plan
    share = worst.kv_live_bytes / worst.kv_reserved_bytes
    tip = tr("{live} of {reserved}").format(
        live=fmt.size(worst.kv_live_bytes, unit), reserved=fmt.size(worst.kv_reserved_bytes, unit)
    )
    percent = figures(f"{share * 100:.0f}")
    now = Fact(tr("KV cache in use"), tr("KV in use"), percent, "%", tip)
    return now, _most(worst, unit)


def _most(rank: RankOverlay, unit: UnitSystem) -> Fact:
    share = rank.run.most_pool_share
    value = fmt.DASH
    if share is not None:
        value = fmt.size_number(round(share * rank.kv_reserved_bytes), unit)
    tip = tr("The most of the cache that was in use at any sample of this run")
    return Fact(tr("Most in use so far"), tr("Most so far"), value, unit.value, tip)
