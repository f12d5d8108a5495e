"""What is held beyond the plan, or short of it, and which region it most likely belongs to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from engine.budget.model import Region
from engine.evidence import Basis
from engine.overlay.seen import Seen
from engine.units import GIB
from engine.words import tr, tr_later

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from engine.budget.model import RankBudget
    from engine.evidence import Estimate
    from engine.overlay.group import Held
    from engine.overlay.seen import Run

LEAST_BYTES: Final = GIB // 20
"""Less would be written as 0.0."""
_TRUSTED: Final = {
    Basis.READ: 0.2,
    Basis.EXACT: 0.2,
    Basis.SETTING: 0.2,
    Basis.MEASURED: 0.2,
    Basis.LEARNED: 0.5,
}
"""How readily a figure is doubted, by its basis; 1 for those worked out or assumed."""
_MORE: Final = {
    Seen.LOAD: (
        (Region.RUNTIME, tr_later("libraries and kernels that came with the start")),
        (Region.CUDA_GRAPHS, tr_later("more or larger graphs than planned")),
        (Region.WEIGHTS, tr_later("weights that are kept unpacked, or twice")),
        (Region.KV_CACHE, tr_later("a larger pool than planned")),
    ),
    Seen.PREFILL: (
        (Region.RUNTIME, tr_later("kernels and workspaces that came with the first prefill")),
        (Region.ACTIVATIONS, tr_later("longer prompts, or more of them in one step")),
        (Region.ALLOCATOR, tr_later("blocks that the allocator keeps")),
    ),
    Seen.DECODE: (
        (Region.KV_CACHE, tr_later("more live tokens than planned")),
        (Region.ALLOCATOR, tr_later("blocks that the allocator keeps")),
        (Region.RUNTIME, tr_later("kernels compiled with the first tokens")),
    ),
    Seen.SUSTAINED: (
        (Region.ALLOCATOR, tr_later("fragments that grew with the traffic")),
        (Region.ACTIVATIONS, tr_later("longer prompts, or more of them in one step")),
        (Region.CUDA_GRAPHS, tr_later("graphs captured for new batch sizes")),
        (Region.KV_CACHE, tr_later("more live tokens than planned")),
    ),
}
"""Likely causes by the phase in which the excess came, most likely first."""
_LESS: Final = (
    (Region.KV_CACHE, tr_later("a smaller cache than planned, or one not touched yet")),
    (Region.ACTIVATIONS, tr_later("shorter prompts than planned")),
    (Region.WEIGHTS, tr_later("layers that lie elsewhere: on the host, or not loaded yet")),
    (Region.RUNTIME, tr_later("fewer libraries than other runs held")),
)
_TWICE: Final = tr_later(
    "the same weights twice: mapped from the file and repacked; "
    "the system may drop the mapped pages"
)
_NEIGHBOURS: Final = tr_later(
    "other programs: nobody says here whose memory it is, so all that came is counted"
)


@dataclass(frozen=True, slots=True)
class Suspect:
    """A region that may hold the difference, and by what."""

    region: Region
    why: str


@dataclass(frozen=True, slots=True)
class Residue:
    """Measured minus planned, on one rank."""

    size_bytes: int
    """Against the likely figure; positive where more is held than planned."""
    is_within: bool
    """Whether the measurement lies in the plan's range: then nothing is left to explain."""
    since: Seen
    """The phase in which it came."""
    suspects: tuple[Suspect, ...]
    """Most likely first; none where it is within the range."""

    @property
    def is_unexplained(self) -> bool:
        """Whether there is anything to name."""
        return not self.is_within and abs(self.size_bytes) >= LEAST_BYTES


def residue(
    rank: RankBudget, run: Run, held: Held | None, known: Mapping[Seen, Estimate], now: Estimate
) -> Residue:
    """What of ``run`` the plan of ``rank`` doesn't explain.

    Args:
        rank: the plan's.
        run: what was seen on its device.
        held: what its processes hold now, where that is told.
        known: what the plan says of each phase.
        now: what it says of the present.
    """
    own = run.own_bytes
    size = own - now.likely_bytes
    if now.low_bytes <= own <= now.high_bytes:
        return Residue(size, is_within=True, since=run.phase, suspects=())
    since = _came_with(run, known) if size > 0 else Seen.LOAD
    found = tuple(_suspects(rank, run, held, since, now))
    return Residue(size, is_within=False, since=since, suspects=found)


def _came_with(run: Run, known: Mapping[Seen, Estimate]) -> Seen:
    """The first phase whose peak went beyond what it may have."""
    for phase in (Seen.LOAD, Seen.PREFILL, Seen.DECODE, Seen.SUSTAINED):
        peak = run.peaks.get(phase)
        if peak is not None and peak.own_bytes > known[phase].high_bytes:
            return phase
    return Seen.LOAD


def _suspects(
    rank: RankBudget, run: Run, held: Held | None, since: Seen, now: Estimate
) -> Iterator[Suspect]:
    if run.own_bytes < now.low_bytes:
        yield from _ordered(rank, _LESS)
        return
    if run.is_derived:
        yield Suspect(Region.FOREIGN, tr(_NEIGHBOURS))
    if held is not None and held.file_bytes and held.must_stay_bytes <= now.high_bytes:
        yield Suspect(Region.WEIGHTS, tr(_TWICE))
    yield from _ordered(rank, _MORE[since])


def _ordered(rank: RankBudget, causes: tuple[tuple[Region, str], ...]) -> list[Suspect]:
    """Causes whose region the plan has, the doubtful figures before those that were read."""
    weighed: list[tuple[float, Suspect]] = []
    for place, (region, why) in enumerate(causes):
        estimate = rank.regions[region].estimate
        if not estimate.high_bytes and region is not Region.RUNTIME:
            continue
        doubt = _TRUSTED.get(estimate.basis, 1.0)
        weighed.append((doubt / (place + 1), Suspect(region, tr(why))))
    return [suspect for _, suspect in sorted(weighed, key=lambda one: -one[0])]
