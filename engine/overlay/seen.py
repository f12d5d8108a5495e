"""What was seen of a run: its phases, the peak of each, and what was there before it began."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from engine.overlay.state import NOTHING_STATED, Stated
from engine.telemetry.snapshot import Missing
from engine.words import tr, tr_later

if TYPE_CHECKING:
    from collections.abc import Mapping


class Seen(StrEnum):
    """What a run is doing, as curve and runtime tell. Order = order in time."""

    BEFORE = "before"
    LOAD = "load"
    PREFILL = "prefill"
    DECODE = "decode"
    SUSTAINED = "sustained"
    IDLE = "idle"
    AFTER = "after"

    @property
    def label(self) -> str:
        """The name a person reads."""
        return tr(_LABELS[self])


_LABELS = {
    Seen.BEFORE: tr_later("Before"),
    Seen.LOAD: tr_later("Load"),
    Seen.PREFILL: tr_later("Prefill"),
    Seen.DECODE: tr_later("Decode"),
    Seen.SUSTAINED: tr_later("Sustained"),
    Seen.IDLE: tr_later("Idle"),
    Seen.AFTER: tr_later("Unloaded"),
}
RUNNING = (Seen.LOAD, Seen.PREFILL, Seen.DECODE, Seen.SUSTAINED, Seen.IDLE)
"""Phases in which the plan's processes hold memory."""
NOT_BEGUN = Missing(tr_later("nothing of this plan has run yet"))
RAN_ALREADY = Missing(tr_later("it ran already when watching began"))
TOO_EARLY = Missing(tr_later("memory comes back late: it is judged 5 s after the end"))


@dataclass(frozen=True, slots=True)
class Moment:
    """One device at one moment."""

    time_s: float
    """Of a clock that never jumps."""
    used_bytes: int | None
    """All that is in use there, without this program's own; None where it isn't known."""
    own_bytes: int | None
    """What the plan's processes hold of it; None where nobody says who holds what."""
    state: Stated = NOTHING_STATED
    """What the runtime says; the same object for as long as it wasn't asked again."""


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of time in one phase, without a gap in sampling."""

    phase: Seen
    start_s: float
    end_s: float
    is_told: bool = True
    """False of an ``IDLE`` that may be a decode: nothing moves, and nobody says if it works."""

    @property
    def label(self) -> str:
        """The name a person reads."""
        return self.phase.label if self.is_told else tr("Decode or idle")

    @property
    def length_s(self) -> float:
        """How long it lasted."""
        return self.end_s - self.start_s


@dataclass(frozen=True, slots=True)
class Peak:
    """The most that was seen in one phase: what lies between two samples is not seen."""

    own_bytes: int
    """Of the plan's processes."""
    used_bytes: int
    """Of the whole device at that moment."""
    time_s: float


@dataclass(frozen=True, slots=True)
class Run:
    """One run on one device as far as it was seen; before one, only what is there."""

    phase: Seen = Seen.BEFORE
    spans: tuple[Span, ...] = ()
    prefills_s: tuple[float, ...] = ()
    """When prompts began to be read."""
    peaks: Mapping[Seen, Peak] = field(default_factory=dict[Seen, Peak])
    seconds: Mapping[Seen, float] = field(default_factory=dict[Seen, float])
    """How long each phase was watched."""
    foreign_bytes: int | Missing = NOT_BEGUN
    """What others held before it began."""
    shelves_bytes: tuple[int, ...] = ()
    """What it held where the load paused: after the weights, before the pool."""
    ready_bytes: int | Missing = NOT_BEGUN
    """What it held once it was loaded."""
    left_bytes: int | Missing = NOT_BEGUN
    """What did not come back after the end."""
    is_derived: bool = False
    """Whether what it holds is all in use less what was there before: nobody says whose it is."""
    every_s: float = 0.0
    """Between samples, usually."""
    most_running: int | None = None
    """Requests at once, at most."""
    most_live_tokens: int | None = None
    most_pool_share: float | None = None
    now: Moment | None = None
    """The last sample that said anything."""
    own_bytes: int = 0
    """What it holds now."""

    @property
    def is_running(self) -> bool:
        """Whether the plan's processes hold memory now."""
        return self.phase in RUNNING

    @property
    def is_loaded(self) -> bool:
        """Whether it got as far as being ready."""
        return isinstance(self.ready_bytes, int)
