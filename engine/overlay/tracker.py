"""Follows one device sample by sample and recognises the phases of the plan's run on it.

Noise, missing samples, gaps and rates from ten a second to one in five seconds change when a
phase is recognised, not which. What was seen is a ``Run``, a frozen value of bounded size.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from statistics import median
from typing import TYPE_CHECKING, Final, TypeVar

from engine.overlay.group import THERE_BYTES
from engine.overlay.seen import (
    NOT_BEGUN,
    RAN_ALREADY,
    RUNNING,
    TOO_EARLY,
    Moment,
    Peak,
    Run,
    Seen,
    Span,
)
from engine.overlay.serving import STEP_BYTES, Serving, is_ready
from engine.units import MIB

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engine.telemetry.snapshot import Missing

_Number = TypeVar("_Number", int, float)

_DERIVED_BYTES: Final = 256 * MIB
"""Where nobody says whose memory it is, so much more than before is a model that loads."""
_DERIVED_SAMPLES: Final = 2
_STEADY_S: Final = 3.0
_SHELF_S: Final = 1.5
_STEADY_SHORT_S: Final = 60.0
"""What holds this still is loaded, even if far less than was planned."""
_ENOUGH: Final = 0.85
"""Of what the plan holds when loaded; a pause below it is a pause in loading."""
_GONE: Final = 0.25
"""Of what it held: below it the model is unloaded."""
_SAME_AGAIN: Final = 0.75
_FREED_AFTER_S: Final = 5.0
"""Memory comes back up to 5 s late (Ollama waits as long before it believes its driver)."""
_LOADS_ON: Final = 0.25
"""Growth of this share of what is held, with no request running, is still the load."""
_LEAST_GAP_S: Final = 2.5
_GAP_FACTOR: Final = 3.5
_MOST_SPANS: Final = 512
_BEFORE_SAMPLES: Final = 8


@dataclass(slots=True)
class _Loading:
    """How far the load got: the level, since when it is steady, and where it paused."""

    level_bytes: int
    rose_s: float
    steady_s: float = 0.0
    on_shelf: bool = False


class Tracker:
    """Takes moments of one device in order of time; ``run`` says what they show."""

    def __init__(self, loaded_bytes: int = 0) -> None:
        """Begin with nothing seen.

        Args:
            loaded_bytes: what the plan's processes hold at least once loaded; 0 if not known.
        """
        self.loaded_bytes = loaded_bytes
        """As given; another plan of the same run may change it."""
        self._run = Run()
        self._spans: deque[Span] = deque(maxlen=_MOST_SPANS)
        self._prefills: deque[float] = deque(maxlen=_MOST_SPANS)
        self._peaks: dict[Seen, Peak] = {}
        self._seconds: dict[Seen, float] = {}
        self._before: deque[int] = deque(maxlen=_BEFORE_SAMPLES)
        self._intervals: deque[float] = deque(maxlen=9)
        self._last: Moment | None = None
        self._rising = 0
        self._loading: _Loading | None = None
        self._serving: Serving | None = None
        self._low_since_s: float | None = None
        self._rest_bytes = 0
        """What the processes kept after the model was unloaded."""
        self._joined = False
        """Whether watching began while it ran, and the load is over."""
        self._read = False

    @property
    def run(self) -> Run:
        """What was seen so far."""
        return replace(
            self._run,
            spans=tuple(self._spans),
            prefills_s=tuple(self._prefills),
            peaks=dict(self._peaks),
            seconds=dict(self._seconds),
        )

    def add(self, moment: Moment) -> None:
        """Take the next moment; one that says nothing, or lies in the past, changes nothing."""
        last = self._last
        own = self._own(moment)
        if moment.used_bytes is None or own is None:
            return
        if last is not None and moment.time_s <= last.time_s:
            return
        every = self._interval(moment)
        is_gap = last is not None and moment.time_s - last.time_s > max(
            _LEAST_GAP_S, _GAP_FACTOR * every
        )
        phase = self._next_phase(moment, own, every, is_gap=is_gap)
        since = moment.time_s if is_gap or last is None else last.time_s
        self._note(phase, since, moment, own)
        self._run = replace(
            self._run,
            phase=phase,
            every_s=every,
            now=moment,
            own_bytes=own,
            is_derived=moment.own_bytes is None,
        )
        self._last = moment

    def _own(self, moment: Moment) -> int | None:
        if moment.own_bytes is not None or moment.used_bytes is None:
            return moment.own_bytes
        foreign = self._run.foreign_bytes
        if self._run.is_running and isinstance(foreign, int):
            return max(moment.used_bytes - foreign, 0)
        return max(moment.used_bytes - round(median(self._before)), 0) if self._before else 0

    def _interval(self, moment: Moment) -> float:
        if self._last is not None:
            self._intervals.append(moment.time_s - self._last.time_s)
        return float(median(self._intervals)) if self._intervals else 0.0

    def _next_phase(self, moment: Moment, own: int, every: float, *, is_gap: bool) -> Seen:
        if self._run.phase in (Seen.BEFORE, Seen.AFTER):
            return self._outside(moment, own)
        held = self._peak_bytes()
        if own < max(_GONE * held, THERE_BYTES) or moment.state.is_loaded is False:
            gone = self._ending(moment, own)
            if gone is not None:
                return gone
        elif self._low_since_s is not None:
            since, self._low_since_s = self._low_since_s, None
            if own < _SAME_AGAIN * held:
                # Another one began before the first was judged gone.
                self._rewrite(Seen.AFTER, since)
                return self._begin(moment, own)
        if self._serving is None:
            return self._load(moment, own, every, is_gap=is_gap)
        phase = self._serving.phase(moment, own, every)
        if self._serving.reads and self._run.most_running is None and self._loads_on(own):
            return self._begin_again(moment, own)
        return phase

    def _peak_bytes(self) -> int:
        return max((peak.own_bytes for peak in self._peaks.values()), default=0)

    def _outside(self, moment: Moment, own: int) -> Seen:
        is_told = moment.own_bytes is not None
        self._rest_bytes = min(self._rest_bytes, own)
        least = self._rest_bytes + (THERE_BYTES if is_told else _DERIVED_BYTES)
        self._rising = self._rising + 1 if own >= least else 0
        if self._rising >= (1 if is_told else _DERIVED_SAMPLES):
            return self._begin(moment, own)
        used = moment.used_bytes or 0
        if not self._rising:
            self._before.append(max(used - (own if is_told else 0), 0))
        if self._run.phase is Seen.AFTER:
            self._judge_left(used)
        return self._run.phase

    def _judge_left(self, used: int) -> None:
        foreign = self._run.foreign_bytes
        if isinstance(foreign, int):
            left, before = max(used - foreign, 0), self._run.left_bytes
            # It only comes back: what rises later is another program's.
            least = min(left, before) if isinstance(before, int) else left
            self._run = replace(self._run, left_bytes=least)

    def _begin(self, moment: Moment, own: int) -> Seen:
        foreign: int | Missing = RAN_ALREADY
        self._joined = not self._before
        if self._before:
            foreign = round(median(self._before))
        self._peaks, self._seconds, self._rising = {}, {}, 0
        self._prefills.clear()
        self._run = Run(phase=Seen.LOAD, foreign_bytes=foreign)
        self._serving = None
        self._loading = _Loading(own, moment.time_s)
        return Seen.LOAD

    def _load(self, moment: Moment, own: int, every: float, *, is_gap: bool) -> Seen:
        loading = self._loading
        if loading is None or is_ready(moment.state):
            return self._ready(moment, own)
        if own > loading.level_bytes + STEP_BYTES:
            self._loading = _Loading(own, moment.time_s)
            self._joined = False
            return Seen.LOAD
        if not is_gap and self._last is not None:
            loading.steady_s += moment.time_s - self._last.time_s
        if loading.steady_s >= _SHELF_S and not loading.on_shelf:
            loading.on_shelf = True
            shelves = (*self._run.shelves_bytes, own)[-_BEFORE_SAMPLES:]
            self._run = replace(self._run, shelves_bytes=shelves)
        is_whole = own >= _ENOUGH * self.loaded_bytes
        enough = max(_STEADY_S, 3 * every) if is_whole else _STEADY_SHORT_S
        says_loading = moment.state.is_loaded is False
        if loading.steady_s >= enough and not says_loading:
            self._rewrite(Seen.IDLE, loading.rose_s)
            return self._ready(moment, own)
        return Seen.LOAD

    def _ready(self, moment: Moment, own: int) -> Seen:
        self._loading = None
        if self._joined:
            self._peaks.pop(Seen.LOAD, None)
            self._seconds.pop(Seen.LOAD, None)
        self._run = replace(self._run, ready_bytes=own)
        self._serving = Serving(moment, own)
        return Seen.IDLE

    def _loads_on(self, own: int) -> bool:
        ready = self._run.ready_bytes
        is_short = own < self.loaded_bytes
        return isinstance(ready, int) and is_short and own > (1 + _LOADS_ON) * ready

    def _begin_again(self, moment: Moment, own: int) -> Seen:
        self._serving = None
        self._loading = _Loading(own, moment.time_s)
        self._run = replace(self._run, ready_bytes=NOT_BEGUN)
        self._prefills.clear()
        return Seen.LOAD

    def _ending(self, moment: Moment, own: int) -> Seen | None:
        """AFTER once it is sure; the phase as it was, meanwhile; None where it isn't ending."""
        if moment.state.is_loaded is False and self._serving is None and own >= THERE_BYTES:
            return None
        if self._low_since_s is None:
            self._low_since_s = moment.time_s
        if moment.time_s - self._low_since_s < _FREED_AFTER_S:
            self._run = replace(self._run, left_bytes=TOO_EARLY)
            return self._run.phase
        since, self._low_since_s = self._low_since_s, None
        self._rewrite(Seen.AFTER, since)
        self._run = replace(self._run, phase=Seen.AFTER)
        self._before.clear()
        self._rest_bytes = own
        self._judge_left(moment.used_bytes or 0)
        return Seen.AFTER

    def _note(self, phase: Seen, since_s: float, moment: Moment, own: int) -> None:
        """Lengthen or begin the span, and keep the peak."""
        self._open(phase, since_s)
        self._spans[-1] = replace(self._spans[-1], end_s=moment.time_s)
        self._seconds[phase] = self._seconds.get(phase, 0.0) + moment.time_s - since_s
        if phase not in RUNNING or self._low_since_s is not None:
            return
        reads = self._serving is not None and self._serving.reads
        for which in {phase, Seen.PREFILL} if reads else {phase}:
            peak = self._peaks.get(which)
            if peak is None or own > peak.own_bytes:
                self._peaks[which] = Peak(own, moment.used_bytes or own, moment.time_s)
        if reads and not self._read:
            self._prefills.append(since_s)
        self._read = reads
        self._keep_most(moment)

    def _keep_most(self, moment: Moment) -> None:
        run, state = self._run, moment.state
        self._run = replace(
            run,
            most_running=_most(run.most_running, state.requests_running),
            most_live_tokens=_most(run.most_live_tokens, state.live_tokens),
            most_pool_share=_most(run.most_pool_share, state.pool_share),
        )

    def _open(self, phase: Seen, at_s: float) -> None:
        last = self._spans[-1] if self._spans else None
        is_told = self._is_told(phase)
        is_same = last is not None and (last.phase, last.is_told) == (phase, is_told)
        if last is None or not is_same or last.end_s < at_s:
            self._spans.append(Span(phase, at_s, at_s, is_told))

    def _is_told(self, phase: Seen) -> bool:
        return phase is not Seen.IDLE or (self._serving is not None and self._serving.knows_rest)

    def _rewrite(self, phase: Seen, from_s: float) -> None:
        """All since ``from_s`` was ``phase``: it takes a while to know."""
        while self._spans and self._spans[-1].start_s >= from_s:
            self._spans.pop()
        end = self._last.time_s if self._last else from_s
        if self._spans and self._spans[-1].end_s > from_s:
            self._spans[-1] = replace(self._spans[-1], end_s=from_s)
        self._spans.append(Span(phase, from_s, max(end, from_s), self._is_told(phase)))


def recognise(moments: Iterable[Moment], loaded_bytes: int = 0) -> Run:
    """What ``moments`` of one device, in order of time, show."""
    tracker = Tracker(loaded_bytes)
    for moment in moments:
        tracker.add(moment)
    return tracker.run


def _most(one: _Number | None, other: _Number | None) -> _Number | None:
    return max((v for v in (one, other) if v is not None), default=None)
