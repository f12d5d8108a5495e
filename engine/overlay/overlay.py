"""The overlay: plan and measurement on one axis, per device and rank."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.budget.model import Region
from engine.overlay import group
from engine.overlay.expected import Expected, expected
from engine.overlay.residue import Residue, residue
from engine.overlay.seen import Moment, Run, Seen
from engine.overlay.state import NOTHING_STATED, Stated, told
from engine.overlay.tracker import Tracker
from engine.telemetry.snapshot import Missing, own_bytes
from engine.words import tr_later

if TYPE_CHECKING:
    from engine.budget.model import Budget, RankBudget
    from engine.evidence import Estimate
    from engine.overlay.group import Held, Planned
    from engine.overlay.state import RuntimeState
    from engine.telemetry.snapshot import DeviceReading, TelemetrySnapshot

_NOT_STATED = Missing(tr_later("the runtime doesn't say how much of its cache is in use"))
_NOT_READ = Missing(tr_later("this device was not read"))
_RATED = (Seen.LOAD, Seen.PREFILL, Seen.DECODE, Seen.SUSTAINED)


@dataclass(frozen=True, slots=True)
class PhaseError:
    """One phase's peak against its prediction."""

    phase: Seen
    peak_bytes: int
    """The highest that was seen of the plan's processes."""
    expected: Estimate

    @property
    def error_bytes(self) -> int:
        """Measured minus likely."""
        return self.peak_bytes - self.expected.likely_bytes

    @property
    def error_share(self) -> float:
        """Of the likely figure; 0 where that is nothing."""
        likely = self.expected.likely_bytes
        return self.error_bytes / likely if likely else 0.0

    @property
    def is_within(self) -> bool:
        """Whether the peak lies in the predicted range."""
        return self.expected.low_bytes <= self.peak_bytes <= self.expected.high_bytes


@dataclass(frozen=True, slots=True)
class RankOverlay:
    """One rank of the plan and what its device showed."""

    rank: int
    uuid: str
    """The device it really runs on."""
    run: Run
    held: Held | Missing
    """What the plan's processes hold now."""
    used_bytes: int | Missing
    """All that is in use on the device now."""
    foreign_bytes: int | Missing
    """What others hold now."""
    load_line_bytes: int
    errors: tuple[PhaseError, ...]
    """Phases seen so far."""
    expected: Estimate | None
    """What the plan's processes should hold now; None while nothing of it is loaded."""
    residue: Residue | None
    kv_reserved_bytes: int
    kv_live_bytes: int | Missing
    """What of the cache live tokens use, on this rank."""

    @property
    def foreign_change_bytes(self) -> int | None:
        """How much more others hold than before the load; None where either isn't known."""
        before, after = self.run.foreign_bytes, self.foreign_bytes
        if self.run.is_derived or isinstance(before, Missing) or isinstance(after, Missing):
            return None
        return after - before


@dataclass(frozen=True, slots=True)
class Overlay:
    """All ranks at one moment."""

    ranks: tuple[RankOverlay, ...]
    placed_by: str
    """How it is known which rank runs on which device."""
    state: Stated
    time_s: float
    """Of the last sample, by its own clock, as all moments of the runs are."""

    def of(self, rank: int) -> RankOverlay | None:
        """The overlay of one rank, if its device is here."""
        return next((found for found in self.ranks if found.rank == rank), None)

    @property
    def worst(self) -> RankOverlay | None:
        """The rank to speak of: the one that is farthest from its plan."""
        return max(self.ranks, key=_off, default=None)

    @property
    def is_running(self) -> bool:
        """Whether any rank's processes hold memory now."""
        return any(rank.run.is_running for rank in self.ranks)


def _off(rank: RankOverlay) -> tuple[bool, int]:
    found = rank.residue
    return (found.is_unexplained, abs(found.size_bytes)) if found else (False, 0)


class Follower:
    """Follows every device of this computer for one plan, from sample to sample."""

    def __init__(self) -> None:
        self._plan: Planned | None = None
        self._expected: dict[int, Expected] = {}
        """By rank, of the plan that is followed."""
        self._loaded_bytes = 0
        self._trackers: dict[str, Tracker] = {}
        self._snapshot: TelemetrySnapshot | None = None
        self._state: RuntimeState | None = None
        self._stated = NOTHING_STATED

    def follow(self, budget: Budget) -> None:
        """Look for the processes of ``budget``; what was seen stays while they are the same."""
        plan = group.planned(budget)
        runtime = budget.deployment.runtime
        self._expected = {rank.rank: expected(rank, runtime) for rank in budget.ranks}
        least = [found.rest.low_bytes for found in self._expected.values()]
        if plan != self._plan or min(least, default=0) != self._loaded_bytes:
            is_other = plan != self._plan
            self._plan, self._loaded_bytes = plan, min(least, default=0)
            for tracker in self._trackers.values():
                tracker.loaded_bytes = self._loaded_bytes
            if is_other:
                self.forget()

    def forget(self) -> None:
        """Begin anew: another plan, or another source of samples."""
        self._trackers.clear()
        self._snapshot = None

    def add(self, snapshot: TelemetrySnapshot, state: RuntimeState | None = None) -> None:
        """Take a sample of all devices, and what the runtime said last."""
        if self._plan is None:
            return
        if self._snapshot and snapshot.monotonic_s < self._snapshot.monotonic_s:
            # Another source, or a recording that was wound back.
            self.forget()
        if state is not self._state:
            # The same answer must stay the same object: trackers see by that if it is new.
            self._state, self._stated = state, told(state)
        self._snapshot = snapshot
        for reading in snapshot.devices:
            tracker = self._trackers.setdefault(reading.uuid, Tracker(self._loaded_bytes))
            tracker.add(moment(reading, self._plan, snapshot.monotonic_s, self._stated))

    def overlay(self, budget: Budget) -> Overlay | None:
        """Plan and measurement side by side; None while nothing was sampled.

        Args:
            budget: the plan that is followed.
        """
        snapshot = self._snapshot
        if snapshot is None or self._plan is None:
            return None
        where = group.places(budget, snapshot)
        readings = {reading.uuid: reading for reading in snapshot.devices}
        ranks = tuple(
            self._rank(budget, rank, uuid, readings.get(uuid))
            for rank in budget.ranks
            if (uuid := where.by_rank.get(rank.rank, ""))
        )
        return Overlay(ranks, where.basis, self._stated, snapshot.monotonic_s)

    def _rank(
        self, budget: Budget, rank: RankBudget, uuid: str, reading: DeviceReading | None
    ) -> RankOverlay:
        tracker = self._trackers.get(uuid)
        run = tracker.run if tracker else Run()
        plan = group.planned(budget)
        held = group.held_by(reading, plan) if reading else _NOT_READ
        found = self._expected[rank.rank]
        known = found.by_phase
        now = found.now(run.peaks.keys()) if run.is_loaded else None
        off = None
        if now is not None and run.is_running:
            off = residue(rank, run, None if isinstance(held, Missing) else held, known, now)
        reserved = rank.regions[Region.KV_CACHE].estimate.likely_bytes
        return RankOverlay(
            rank=rank.rank,
            uuid=uuid,
            run=run,
            held=held,
            used_bytes=reading.used_bytes if reading else _NOT_READ,
            foreign_bytes=group.foreign_bytes(reading, plan) if reading else _NOT_READ,
            load_line_bytes=rank.slot.device.allocatable.likely_bytes,
            errors=tuple(
                PhaseError(phase, run.peaks[phase].own_bytes, known[phase])
                for phase in _RATED
                if phase in run.peaks
            ),
            expected=now,
            residue=off,
            kv_reserved_bytes=reserved,
            kv_live_bytes=live_bytes(budget, reserved, self._stated),
        )


def live_bytes(budget: Budget, reserved_bytes: int, state: Stated) -> int | Missing:
    """What live tokens take of the cache: the stated share of the pool, else tokens by width."""
    if state.pool_share is not None:
        return round(state.pool_share * reserved_bytes)
    if state.live_tokens is not None:
        return min(state.live_tokens * budget.sequence_state.bytes_per_token, reserved_bytes)
    if state.requests_running == 0:
        return 0
    return _NOT_STATED


def moment(reading: DeviceReading, plan: Planned, time_s: float, state: Stated) -> Moment:
    """What a tracker needs of one reading."""
    used = reading.used_bytes
    if isinstance(used, Missing):
        return Moment(time_s, None, None, state)
    held = group.held_by(reading, plan)
    own = None if isinstance(held, Missing) else held.total_bytes
    return Moment(time_s, max(used - own_bytes(reading), 0), own, state)
