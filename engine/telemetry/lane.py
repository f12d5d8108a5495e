"""One thread per source, so that a driver that hangs stalls nobody but itself."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from enum import Enum, auto
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Final, Protocol

from engine.errors import TelemetryError
from engine.telemetry.snapshot import Missing
from engine.text import printable
from engine.words import figures, tr

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.telemetry.snapshot import DeviceReading


class Adapter(Protocol):
    """A source of readings: one vendor's driver, or the host.

    One that is slow or costly states ``every_s``, the least seconds between two questions, and one
    that is far away ``patience_s``: an answer may take as long, and until then the last one holds.
    """

    name: str

    def sample(self) -> tuple[DeviceReading, ...]:
        """One reading per device.

        Raises:
            TelemetryError: the source cannot be read.
        """
        ...

    def close(self) -> None:
        """Let go of the driver."""
        ...


ASKS_USER: Final = "user"
"""``field`` of an error that only the user can mend: the computer has to be started anew."""


class _Question(Enum):
    SAMPLE = auto()
    STOP = auto()


class Lane:
    """Asks one adapter on a thread of its own and waits for a bounded time."""

    def __init__(
        self,
        adapter: Adapter,
        deadline_s: float,
        opening_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Start the thread.

        Args:
            adapter: asked on the thread only.
            deadline_s: how long an answer may take.
            opening_s: how long the first one may take, which loads the driver.
            clock: tells seconds.
        """
        self._adapter = adapter
        self.every_s: float = getattr(adapter, "every_s", 0.0)
        """Least seconds between two questions."""
        self._patience_s: float = getattr(adapter, "patience_s", 0.0)
        self._deadline_s = deadline_s
        self._limit_s = opening_s
        self._clock = clock
        self._questions: SimpleQueue[_Question] = SimpleQueue()
        self._answers: SimpleQueue[tuple[tuple[DeviceReading, ...], str, bool]] = SimpleQueue()
        self._asked_at: float | None = None
        self._last_asked_at: float | None = None
        self._told_at: float | None = None
        """When the last answer was asked for."""
        self._last: tuple[DeviceReading, ...] = ()
        self._failure = ""
        self.asks_user = False
        """Whether what failed is for the user to mend."""
        # A daemon: a driver that never returns must not keep the program from ending.
        self._thread = threading.Thread(
            target=self._run, name=f"telemetry {adapter.name}", daemon=True
        )
        self._thread.start()

    def ask(self, factor: float = 1.0) -> None:
        """Start a reading, unless the last one is still running or none is due yet.

        Args:
            factor: how many times as long as usual this source is left alone.
        """
        now = self._clock()
        last = self._last_asked_at
        if self._asked_at is None and (last is None or now - last >= self.every_s * factor):
            self._asked_at = self._last_asked_at = now
            self._questions.put(_Question.SAMPLE)

    def answer(self) -> tuple[tuple[DeviceReading, ...], str]:
        """The reading asked for and "", or the devices without values and why.

        A source that was not asked this time answers as it did, with the age of its figures. A
        driver that is past its deadline counts as failed until it answers.
        """
        if self._asked_at is None:
            return self._as_before()
        left_s = self._limit_s - (self._clock() - self._asked_at)
        try:
            readings, self._failure, self.asks_user = self._answers.get(timeout=max(left_s, 0.0))
        except Empty:
            waited = self._clock() - self._asked_at
            if self._told_at is not None and waited < self._patience_s:
                return self._as_before()
            reason = tr("the {name} driver has not answered for {waited} s").format(
                name=self._adapter.name, waited=figures(format(waited, ".0f"))
            )
            return tuple(silent(r, reason) for r in self._last), tr(
                "The {name} driver has not answered for {waited} s."
            ).format(name=self._adapter.name, waited=figures(format(waited, ".0f")))
        self._told_at, self._asked_at = self._asked_at, None
        self._limit_s = self._deadline_s
        self._last = readings or self._last
        if self._failure:
            return tuple(silent(r, self._failure) for r in self._last), self._failure
        return readings, ""

    def close(self) -> None:
        """Stop the thread; one that hangs is left behind."""
        self._questions.put(_Question.STOP)
        self._thread.join(self._deadline_s)

    def _as_before(self) -> tuple[tuple[DeviceReading, ...], str]:
        if self._failure:
            return tuple(silent(r, self._failure) for r in self._last), self._failure
        age_s = 0.0 if self._told_at is None else self._clock() - self._told_at
        return tuple(replace(r, age_s=r.age_s + age_s) for r in self._last), ""

    def _run(self) -> None:
        while self._questions.get() is _Question.SAMPLE:
            try:
                self._answers.put((self._adapter.sample(), "", False))
            except TelemetryError as error:
                self._answers.put(((), error.message, error.field == ASKS_USER))
            except Exception as error:  # noqa: BLE001 - a binding raises what it likes
                said = printable(f"{type(error).__name__}: {error}", 120)
                words = tr("{name} cannot be read now: {error}.")
                self._answers.put(((), words.format(name=self._adapter.name, error=said), False))
        self._adapter.close()


def silent(reading: DeviceReading, reason: str) -> DeviceReading:
    """``reading`` without its values, which are missing because of ``reason``."""
    missing = Missing(reason.rstrip("."))
    return replace(
        reading,
        total_bytes=missing,
        used_bytes=missing,
        free_bytes=missing,
        reserved_bytes=missing,
        ceiling_bytes=missing,
        available_bytes=missing,
        spill_bytes=missing,
        parts=(),
        processes=missing,
        note=reason,
    )
