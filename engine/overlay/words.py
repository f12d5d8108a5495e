"""The overlay in sentences: what happens now, and what is held beyond the plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.overlay.residue import LEAST_BYTES
from engine.overlay.seen import TOO_EARLY, Seen
from engine.telemetry.snapshot import Missing
from engine.units import UnitSystem, format_gib
from engine.words import begun_small, figures, tr, tr_count, tr_later

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.overlay.overlay import Overlay, PhaseError, RankOverlay
    from engine.overlay.residue import Residue

_TELLING = 50
"""Of what can be allocated: others who move by less are a computer at work."""
_SILENT_S = 2.0
"""One answer may come late on a busy computer: what two samples miss is not known any more."""
_CAME = {
    Seen.LOAD: tr_later("It came with the load."),
    Seen.PREFILL: tr_later("It came with a prefill."),
    Seen.DECODE: tr_later("It came while tokens were written."),
    Seen.SUSTAINED: tr_later("It came under steady traffic."),
    Seen.IDLE: tr_later("It came while nothing ran."),
}


def residue_name(found: Residue, unit: UnitSystem = UnitSystem.BINARY) -> str:
    """``0.4 GiB more than planned: runtime``; empty where there is nothing to name."""
    if not found.is_unexplained:
        return ""
    size = format_gib(abs(found.size_bytes), unit, digits=1)
    words = (
        tr("{size} more than planned") if found.size_bytes > 0 else tr("{size} less than planned")
    )
    head = words.format(size=size)
    if not found.suspects:
        return tr("{residue}: not explained").format(residue=head)
    name = begun_small(found.suspects[0].region.label)
    return tr("{residue}: {region}").format(residue=head, region=name)


def residue_why(found: Residue) -> tuple[str, ...]:
    """What it probably is, and when it came; wordings, longest first."""
    if not found.is_unexplained:
        return ()
    came = tr(_CAME.get(found.since, "")) if found.size_bytes > 0 else ""
    if not found.suspects:
        return (came,) if came else ()
    probably = tr("Probably {why}.").format(why=found.suspects[0].why)
    return (probably, came) if came else (probably,)


def residue_sentence(
    found: Residue, unit: UnitSystem = UnitSystem.BINARY, *, others: bool = True
) -> str:
    """``0.4 GiB more than planned: runtime, probably kernels …``, and what else it may be.

    Args:
        found: what the plan doesn't explain.
        unit: of its size.
        others: whether the less likely regions are named too.
    """
    name = residue_name(found, unit)
    if not name:
        return ""
    if not found.suspects:
        return tr("{name}.").format(name=name)
    first = tr("{name}, probably {why}.").format(name=name, why=found.suspects[0].why)
    labels = [s.region.label for s in found.suspects[1:]]
    if not labels or not others:
        return first
    rest = ", ".join(begun_small(label) for label in dict.fromkeys(labels))
    return tr("{first} Else: {others}.").format(first=first, others=rest)


def summary(overlay: Overlay, unit: UnitSystem = UnitSystem.BINARY) -> str:
    """What happens now, in a sentence or two; of several ranks the one that is farthest off."""
    worst = overlay.worst
    if worst is None:
        return ""
    if _is_silent(overlay, worst):
        size = format_gib(worst.run.own_bytes, unit, digits=1)
        return tr("Last seen with {size} held; its device tells nothing now.").format(size=size)
    sentences = [_rank_sentence(worst, unit)]
    if len(overlay.ranks) > 1 and worst.run.is_running:
        rank = tr("Rank {rank}").format(rank=worst.rank)
        sentences[0] = tr("{rank}: {sentence}").format(rank=rank, sentence=sentences[0])
    sentences += _further(overlay, worst, unit)
    return " ".join(filter(None, sentences))


def _is_silent(overlay: Overlay, rank: RankOverlay) -> bool:
    """Whether a run was last seen so long ago that nobody knows if it goes on."""
    run = rank.run
    if not isinstance(rank.used_bytes, Missing) or not run.is_running or not run.spans:
        return False
    return overlay.time_s - run.spans[-1].end_s >= _SILENT_S


def _rank_sentence(rank: RankOverlay, unit: UnitSystem) -> str:
    run = rank.run
    if run.phase is Seen.BEFORE:
        return tr("Nothing of this plan is running.")
    if run.phase is Seen.AFTER:
        return _after(rank, unit)
    if not run.is_loaded or rank.expected is None or rank.residue is None:
        return tr("Loading: {size} so far.").format(size=format_gib(run.own_bytes, unit, digits=1))
    if rank.residue.is_unexplained:
        return residue_sentence(rank.residue, unit, others=False)
    size = format_gib(run.own_bytes, unit, digits=1)
    off = abs(rank.residue.size_bytes)
    if off < 2 * LEAST_BYTES:
        near = format_gib(max(off, unit.factor // 10), unit, digits=1)
        return tr("Running as planned: {size} held, within {off} of the plan.").format(
            size=size, off=near
        )
    return tr("Running as planned: {size} held, within the plan's range.").format(size=size)


def _after(rank: RankOverlay, unit: UnitSystem) -> str:
    left = rank.run.left_bytes
    if isinstance(left, Missing):
        if left is TOO_EARLY:
            return tr("Unloaded just now.")
        return tr("Unloaded.")
    if left < _telling_bytes(rank):
        return tr("Unloaded: all that it held came back.")
    size = format_gib(left, unit, digits=1)
    return tr("Unloaded: {size} did not come back.").format(size=size)


def _telling_bytes(rank: RankOverlay) -> int:
    """What others have to move by to be worth a word."""
    return max(2 * LEAST_BYTES, rank.load_line_bytes // _TELLING)


def _further(overlay: Overlay, rank: RankOverlay, unit: UnitSystem) -> Iterator[str]:
    """Requests and cache in use, and others that grew meanwhile."""
    if not rank.run.is_running:
        return
    live, running = rank.kv_live_bytes, overlay.state.requests_running
    if isinstance(live, int) and running:
        words = tr_count(
            "{n} request uses {live} of the {reserved} KV cache.",
            "{n} requests use {live} of the {reserved} KV cache.",
            running,
        )
        yield words.format(
            n=running,
            live=format_gib(live, unit, digits=1, unit=False),
            reserved=format_gib(rank.kv_reserved_bytes, unit, digits=1),
        )
    change = rank.foreign_change_bytes
    if change is not None and abs(change) >= _telling_bytes(rank):
        words = (
            tr("Others hold {size} more than before it was loaded.")
            if change > 0
            else tr("Others hold {size} less than before it was loaded.")
        )
        yield words.format(size=format_gib(abs(change), unit, digits=1))


def peak_sentence(error: PhaseError, every_s: float, unit: UnitSystem = UnitSystem.BINARY) -> str:
    """One phase's highest against its prediction, with what may have been missed between."""
    words = tr(
        "{phase}: highest seen {peak}, predicted {likely} ({error}, {share}), "
        "sampled every {seconds} s"
    )
    return words.format(
        phase=error.phase.label,
        peak=format_gib(error.peak_bytes, unit),
        likely=format_gib(error.expected.likely_bytes, unit),
        error=format_gib(error.error_bytes, unit, signed=True),
        share=signed_percent(error.error_share),
        seconds=figures(f"{every_s:.3g}"),
    )


def signed_percent(share: float) -> str:
    """``+1.8%``, with a typographic minus."""
    sign = "\N{MINUS SIGN}" if share < 0 else "+"
    return tr("{percent}%").format(percent=sign + figures(f"{abs(share) * 100:.1f}"))
