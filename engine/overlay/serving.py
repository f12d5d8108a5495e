"""A loaded run, moment by moment: does it read prompts, write tokens, or rest?

The runtime's own counters decide where it states them. Else the curve does, as far as it can: what
is held grows in steps while a prompt is read, slowly while tokens are written, and not at all
while nothing runs. A pool that was taken up front hides all of that: then the processor time of its
processes tells work from rest, and where nobody counts that, nothing does.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from engine.overlay.seen import Seen
from engine.units import MIB

if TYPE_CHECKING:
    from engine.overlay.seen import Moment
    from engine.overlay.state import Stated

STEP_BYTES: Final = 32 * MIB
"""More at once than a step of decoding needs, less than the workspace of any prefill."""
_CREEP_BYTES: Final = 16 * MIB
_CREEP_S: Final = 10.0
"""Growth that no single sample shows."""
_SLOWER: Final = 0.25
"""Of a burst's fastest growth: below it the prompt is read."""
_SUSTAINED_AFTER_S: Final = 60.0
_BREAK_S: Final = 5.0
"""A rest shorter than this doesn't end steady traffic."""
_LEAST_STEADY_S: Final = 3.0
_SELDOM_S: Final = 2.0
_AT_WORK_CORES: Final = 0.25
"""A process that feeds a GPU waits for it at a core's full speed or launches kernels; one that
only listens takes a hundredth."""
_LEAST_COUNTED_S: Final = 1.0
"""Processor time is judged over no less: it is counted in hundredths of a second."""


class Serving:
    """Says of each moment which phase it is in; remembers a few seconds."""

    def __init__(self, ready: Moment, own_bytes: int) -> None:
        self._last = ready
        self._own_bytes = own_bytes
        self._top_bytes = own_bytes
        self._phase = Seen.DECODE if ready.state.requests_running else Seen.IDLE
        self._recent: deque[tuple[float, int]] = deque([(ready.time_s, own_bytes)])
        self._fastest = 0.0
        self._moved_s = ready.time_s - _CREEP_S
        self._asked_s = ready.time_s
        """When the runtime was last heard anew."""
        self._is_reading = False
        self._counted_s, self._cpu_s = ready.time_s, ready.state.cpu_s
        self._is_at_work: bool | None = None
        """As processor time tells; None where nobody counts it."""
        self._busy_since_s: float | None = None
        self._is_sustained = False
        self._busy_s = 0.0
        """The last moment at which it worked."""

    def phase(self, moment: Moment, own_bytes: int, every_s: float) -> Seen:
        """The phase at ``moment``."""
        working = self._working(moment, own_bytes, max(_LEAST_STEADY_S, 3 * every_s))
        if working is Seen.IDLE:
            if self._busy_since_s is not None and moment.time_s - self._busy_s > _BREAK_S:
                self._busy_since_s = None
        else:
            if self._busy_since_s is None:
                self._busy_since_s = self._last.time_s
            self._busy_s = moment.time_s
        self._last, self._own_bytes, self._phase = moment, own_bytes, working
        since = self._busy_since_s
        self._is_sustained = since is not None and (
            self._is_sustained
            or (working is not Seen.IDLE and moment.time_s - since >= _SUSTAINED_AFTER_S)
        )
        return Seen.SUSTAINED if self._is_sustained else working

    @property
    def reads(self) -> bool:
        """Whether a prompt was read up to the last moment."""
        return self._is_reading or self._phase is Seen.PREFILL

    @property
    def knows_rest(self) -> bool:
        """Whether a run that holds still is known to rest, and not to write tokens."""
        return self._last.state.counts_requests or self._is_at_work is not None

    def _count(self, moment: Moment) -> None:
        """Whether its processes worked since they were last counted."""
        now, before = moment.state.cpu_s, self._cpu_s
        passed = moment.time_s - self._counted_s
        if now is not None and before is not None:
            if passed < _LEAST_COUNTED_S or moment.state is self._last.state:
                return
            # Less than before: another set of processes.
            self._is_at_work = now - before >= _AT_WORK_CORES * passed if now >= before else None
        elif now is None:
            self._is_at_work = None
        self._counted_s, self._cpu_s = moment.time_s, now

    def _working(self, moment: Moment, own_bytes: int, steady_s: float) -> Seen:
        before, now = self._last.state, moment.state
        if not now.counts_requests:
            self._count(moment)
            found = self._by_curve(moment, own_bytes, steady_s)
            return Seen.DECODE if found is Seen.IDLE and self._is_at_work else found
        if now is before:
            return self._phase
        waited, self._asked_s = moment.time_s - self._asked_s, moment.time_s
        self._is_reading = _grew(before.prompt_tokens, now.prompt_tokens)
        if self._is_reading:
            # Of a runtime that is asked seldom, one answer covers the prompt and what followed.
            wrote = waited > _SELDOM_S and _grew(before.generated_tokens, now.generated_tokens)
            return Seen.DECODE if wrote else Seen.PREFILL
        if now.prompt_tokens is None and (now.requests_running or 0) > (
            before.requests_running or 0
        ):
            return Seen.PREFILL
        if now.requests_running or _grew(before.generated_tokens, now.generated_tokens):
            return Seen.DECODE
        return Seen.IDLE

    def _by_curve(self, moment: Moment, own_bytes: int, steady_s: float) -> Seen:
        recent = self._recent
        recent.append((moment.time_s, own_bytes))
        while len(recent) > 2 and moment.time_s - recent[1][0] >= _CREEP_S:
            recent.popleft()
        grown = own_bytes - self._top_bytes
        span = max(moment.time_s - self._last.time_s, 1e-3)
        rate = max(own_bytes - self._own_bytes, 0) / span
        if grown > STEP_BYTES:
            self._top_bytes, self._moved_s = own_bytes, moment.time_s
            self._fastest = max(self._fastest, rate)
            # A step that was seen is no creep too.
            recent.clear()
            recent.append((moment.time_s, own_bytes))
            return Seen.PREFILL if rate >= _SLOWER * self._fastest else Seen.DECODE
        if own_bytes - recent[0][1] > _CREEP_BYTES and grown > 0:
            self._top_bytes, self._moved_s = own_bytes, moment.time_s
            return Seen.DECODE
        if abs(own_bytes - self._own_bytes) > STEP_BYTES:
            self._moved_s = moment.time_s
        if moment.time_s - self._moved_s < steady_s:
            return Seen.DECODE if self._phase is not Seen.IDLE else Seen.IDLE
        self._fastest = 0.0
        return Seen.IDLE


def _grew(before: int | None, now: int | None) -> bool:
    return before is not None and now is not None and now > before


def is_ready(state: Stated) -> bool:
    """Whether the runtime says that it can take requests."""
    return state.is_loaded is True or bool(state.requests_running)
