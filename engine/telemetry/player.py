"""A recording played at any speed, from any place: an index, and a sampler that heeds it.

The index is built in one pass, on a thread that may be cancelled, and its size is bounded: it
holds the place of every n-th sample, n doubling as the file goes on.
"""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from engine.errors import TelemetryError
from engine.telemetry.lines import Lines, clocks
from engine.telemetry.moments import Moments
from engine.telemetry.record import (
    MOST_SAMPLES,
    RecordingEndedError,
    marker_of,
    no_samples,
    recorded,
)
from engine.words import tr

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from engine.cancel import CancelToken
    from engine.telemetry.markers import Marker
    from engine.telemetry.snapshot import TelemetrySnapshot

SPEEDS: Final = (1, 2, 5, 10, 30, 60)
MOST_MARKERS: Final = 10_000
_MOST_PLACES = 16_384
_PROGRESS_EVERY = 200
_LATEST = 1e12
_LONGEST_PAUSE_S = 5.0
"""A gap in a recording is played as this long."""


@dataclass(frozen=True, slots=True)
class Index:
    """Where the moments of a recording stand in its file.

    Shapes:
        ``times_s``, ``offsets``, ``numbers``: (n,), of every ``stride``-th sample.
    """

    times_s: NDArray[np.float64]
    offsets: NDArray[np.int64]
    numbers: NDArray[np.int64]
    stride: int
    end_s: float
    samples: int
    markers: tuple[tuple[float, Marker], ...]
    """Each with its place on the axis of ``times_s``, in order."""
    damage: str = ""
    """What is wrong where the recording breaks off; empty where nothing is."""

    @property
    def start_s(self) -> float:
        """Of the first sample."""
        return float(self.times_s[0])

    def place(self, time_s: float) -> int:
        """Row of the last indexed sample that is not after ``time_s``."""
        return max(0, int(np.searchsorted(self.times_s, time_s, side="right")) - 1)


class _Places:
    """Places collected under a bound: when full, every second one is dropped."""

    def __init__(self) -> None:
        self._data = np.zeros((3, _MOST_PLACES))
        self._kept = 0
        self.stride = 1

    def add(self, sample: int, time_s: float, offset: int, number: int) -> None:
        if sample % self.stride:
            return
        if self._kept == _MOST_PLACES:
            self._kept //= 2
            self._data[:, : self._kept] = self._data[:, ::2].copy()
            self.stride *= 2
            if sample % self.stride:
                return
        self._data[:, self._kept] = (time_s, offset, number)
        self._kept += 1

    @property
    def rows(self) -> NDArray[np.float64]:
        return self._data[:, : self._kept]


@dataclass(frozen=True, slots=True)
class _Line:
    """A line of a sample or a marker, read no further than was asked for."""

    raw: bytes
    number: int
    clocks: tuple[float, float]
    record: Mapping[str, object] | None
    """None where the clocks were enough."""

    @property
    def is_marker(self) -> bool:
        return self.record is not None and "marker" in self.record


def _read(lines: Lines, *, full: bool = False) -> _Line | None:
    """The next line; None at the end."""
    raw = lines.next_raw()
    if raw is None:
        return None
    quick = clocks(raw) if not full and raw.endswith(b"}\n") else None
    if quick is not None:
        return _Line(raw, lines.number, quick, None)
    record = lines.parsed(raw)
    if record is None:
        return None
    both = [record.get(key, 0.0) for key in ("monotonic_s", "wall_time_s")]
    if not all(isinstance(one, (int, float)) and abs(one) < _LATEST for one in both):
        raise lines.damaged(tr("it has no time"))
    monotonic, wall = (float(one) for one in both if isinstance(one, (int, float)))
    return _Line(raw, lines.number, (monotonic, wall), record)


def index(
    path: Path,
    token: CancelToken,
    progress: Callable[[float], object] | None = None,
    each: Callable[[float, bool, Mapping[str, object]], object] | None = None,
) -> Index:
    """Read a recording once from end to end.

    Args:
        path: the recording.
        token: asks the reading to stop.
        progress: told the share that was read, from 0 to 1, now and then.
        each: told every sample: its place on the axis, whether there is a gap before it, and the
            line as an object, unchecked. Without it a sample's clocks alone are read.

    Raises:
        TelemetryError: no such file, no recording, or without a sample.
        JobCancelledError: ``token`` was cancelled.
    """
    lines = Lines(path)
    places, moments = _Places(), Moments()
    found: list[tuple[float, Marker]] = []
    samples, end, damage = 0, 0.0, ""
    try:
        while samples < MOST_SAMPLES:
            if progress is not None and lines.number % _PROGRESS_EVERY == 0:
                progress(lines.share)
            token.raise_if_cancelled()
            offset = lines.offset
            line = _read(lines, full=each is not None)
            if line is None:
                break
            if line.is_marker:
                marker = marker_of(lines, line.record or {})
                if marker is not None and len(found) < MOST_MARKERS:
                    found.append((moments.place_of(marker.monotonic_s), marker))
                continue
            end, broke = moments.at(*line.clocks)
            places.add(samples, end, offset, line.number - 1)
            samples += 1
            if each is not None:
                each(end, broke, line.record or {})
    except TelemetryError as error:
        damage = error.message
    finally:
        lines.close()
    if not samples:
        raise TelemetryError(damage) if damage else no_samples(lines)
    times, offsets, numbers = (row.copy() for row in places.rows)
    whole = offsets.astype(np.int64), numbers.astype(np.int64)
    # One set between two samples, or after the last, belongs to what can be shown.
    inside = [(min(max(place, float(times[0])), end), marker) for place, marker in found]
    marked = tuple(sorted(inside, key=lambda pair: pair[0]))
    return Index(times, *whole, places.stride, end, samples, marked, damage)


class Player:
    """A recording as a sampler that keeps time. All but ``sample`` may be called anywhere."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        """Open ``path`` at its first sample.

        Args:
            path: the recording.
            clock: what real time is taken from, in seconds.

        Raises:
            TelemetryError: no such file, or not a recording.
        """
        self._lines = Lines(path)
        self._clock = clock
        self._moments = Moments()
        self._guard = threading.Lock()
        self._index: Index | None = None
        self._speed = 1.0
        self._is_paused = False
        self._wanted_s: float | None = None
        self._steps = 0
        self._due: tuple[float, _Line] | None = None
        """The next sample and its place, read but not yet due."""
        self._shown_s: float | None = None
        self._clock_s = 0.0
        """How far playing has come, between two samples too."""
        self._real_s = clock()
        self._samples = 0

    def set_index(self, found: Index) -> None:
        """Give the player its index: it can be sent anywhere from now on."""
        with self._guard:
            self._index = found

    def set_speed(self, speed: float) -> None:
        """Play ``speed`` times as fast as it was."""
        with self._guard:
            self._speed = speed

    def set_paused(self, *, paused: bool) -> None:
        """Stand still, or go on."""
        with self._guard:
            self._is_paused = paused

    def seek(self, time_s: float) -> None:
        """Go to the last sample that is not after ``time_s``; without an index nothing happens."""
        with self._guard:
            self._wanted_s = time_s if self._index is not None else None
            self._steps = 0

    def step(self, steps: int) -> None:
        """Go so many samples on, or back with an index."""
        with self._guard:
            self._steps += steps

    @property
    def shown_s(self) -> float | None:
        """The place of the sample delivered last."""
        return self._shown_s

    def sample(self) -> TelemetrySnapshot | None:
        """The newest sample that is due; None while none is.

        Raises:
            RecordingEndedError: nothing is left.
            TelemetryError: the recording is damaged here, or holds no samples.
        """
        with self._guard:
            wanted, self._wanted_s = self._wanted_s, None
            steps, self._steps = self._steps, 0
            speed, paused, found = self._speed, self._is_paused, self._index
        real = self._clock()
        passed, self._real_s = real - self._real_s, real
        if wanted is not None and found is not None:
            return self._go_to(found, wanted)
        if steps < 0 and found is not None:
            return self._go_to(found, self._before(found, -steps))
        if steps > 0 or self._shown_s is None:
            for _ in range(max(steps, 1) - 1):
                self._take()
            return self._shown(self._take())
        return None if paused else self._play(self._clock_s + passed * speed)

    def close(self) -> None:
        """Close the file."""
        self._lines.close()

    def _play(self, until_s: float) -> TelemetrySnapshot | None:
        """The last sample up to ``until_s``; what lies before it is passed by."""
        taken: _Line | None = None
        try:
            while (due_s := self._peek()[0]) <= until_s:
                taken = self._take()
            # A night's sleep is no reason to wait till morning.
            self._clock_s = max(until_s, due_s - _LONGEST_PAUSE_S)
        except RecordingEndedError:
            if taken is None:
                raise
        return self._shown(taken) if taken is not None else None

    def _peek(self) -> tuple[float, _Line]:
        """The next sample and its place."""
        while self._due is None:
            line = _read(self._lines) if self._samples < MOST_SAMPLES else None
            if line is None:
                if not self._samples:
                    raise no_samples(self._lines)
                message = tr("The recording {name!r} has ended.").format(name=self._lines.name)
                raise RecordingEndedError(message)
            if not line.is_marker:
                self._samples += 1
                self._due = self._moments.at(*line.clocks)[0], line
        return self._due

    def _take(self) -> _Line:
        place, line = self._peek()
        self._due = None
        self._shown_s = self._clock_s = place
        return line

    def _shown(self, line: _Line) -> TelemetrySnapshot:
        record = line.record if line.record is not None else self._lines.parsed(line.raw)
        return recorded(self._lines, record or {}, line.number)

    def _go_to(self, found: Index, time_s: float) -> TelemetrySnapshot:
        """The last sample not after ``time_s``, or the first."""
        self._begin_at(found, found.place(time_s))
        taken = self._take()
        with suppress(RecordingEndedError):
            while self._peek()[0] <= time_s:
                taken = self._take()
        return self._shown(taken)

    def _before(self, found: Index, steps: int) -> float:
        """The place of the sample ``steps`` before the one shown, or of the first."""
        shown = self._shown_s if self._shown_s is not None else found.start_s
        self._begin_at(found, max(0, found.place(shown) - 1 - steps // found.stride))
        passed: list[float] = []
        while (place := self._peek()[0]) < shown:
            passed.append(place)
            self._take()
        return passed[max(0, len(passed) - steps)] if passed else found.start_s

    def _begin_at(self, found: Index, row: int) -> None:
        """Let the indexed sample of ``row`` be the next one."""
        self._lines.go_to(int(found.offsets[row]), int(found.numbers[row]))
        self._moments = Moments(float(found.times_s[row]))
        self._due, self._samples = None, row * found.stride
