"""A maker's library as second source: asked where the kernel says nothing, and never missed.

Opening such a library resumes every card of its maker, and it has been seen to hang while it does
(ROCm's rocm-systems pull requests 2510, 6462). So it is asked only while none of them sleeps, on a
thread of its own, and what the kernel's files say stands whatever becomes of it.
"""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from engine.errors import TelemetryError
from engine.telemetry.adapters import drm
from engine.text import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

_EVERY_S: Final = 2.0
_RARELY_S: Final = 30.0
"""Where a card may fall asleep, which each question puts off by some seconds; and after a failure.
"""
_OPENING_S: Final = 2.0
"""While its lane too has the time that opening a driver takes."""
_WAIT_S: Final = 0.2
"""Well below what a lane waits for its adapter."""
_BUS: Final = "sys/bus/pci/devices"
_LARGEST_BYTES: Final = 2**50
_ASLEEP: Final = frozenset({"suspended", "suspending"})


@dataclass(frozen=True, slots=True)
class Told:
    """What a library says of one GPU; None where it says nothing."""

    name: str = ""
    total_bytes: int | None = None
    used_bytes: int | None = None
    gtt_total_bytes: int | None = None
    gtt_used_bytes: int | None = None
    source: str = ""
    """Who says so."""

    def filled(self, other: Told) -> Told:
        """With what ``other`` tells where this doesn't."""
        mine = (self.total_bytes, self.used_bytes, self.gtt_total_bytes, self.gtt_used_bytes)
        more = (other.total_bytes, other.used_bytes, other.gtt_total_bytes, other.gtt_used_bytes)
        sizes = [b if a is None else a for a, b in zip(mine, more, strict=True)]
        sources = [self.source, *([other.source] if sizes != list(mine) else [])]
        return Told(self.name or other.name, *sizes, source=", ".join(filter(None, sources)))


class Library(Protocol):
    """An open library."""

    def read(self) -> Mapping[str, Told]:
        """What it says, by place on the bus.

        Raises:
            TelemetryError: it refuses.
        """
        ...

    def close(self) -> None:
        """Let go of the driver."""
        ...


class Second(Protocol):
    """What an adapter asks where the kernel says nothing."""

    age_s: float
    """How old is what it said."""

    def ask(self, root: Path, /) -> Mapping[str, Told]:
        """What it says of each GPU of the computer at ``root``, by place on the bus."""
        ...

    def close(self) -> None:
        """Let go of the driver."""
        ...


class SecondSource:
    """One maker's library."""

    def __init__(
        self,
        name: str,
        vendor: str,
        classes: tuple[str, ...],
        opened: Callable[[], Library],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Nothing is loaded before the first question.

        Args:
            name: of the library.
            vendor: the maker as sysfs writes it, ``0x1002``.
            classes: how the PCI classes of its GPUs begin.
            opened: loads and opens the library; an ``OSError`` means that there is none.
            clock: tells seconds.
        """
        self.name = name
        self.why = ""
        """Why it says nothing now; empty where it does, or wasn't asked."""
        self.age_s = 0.0
        """How old is what it said."""
        self._vendor = vendor
        self._classes = classes
        self._opened = opened
        self._clock = clock
        self._made_at = clock()
        self._library: Library | None = None
        self._told: Mapping[str, Told] = {}
        self._asked_at: float | None = None
        self._thread: threading.Thread | None = None

    def ask(self, root: Path) -> Mapping[str, Told]:
        """What the library says of each GPU of the computer, by place on the bus.

        Nothing where a GPU sleeps, there is none, or no answer comes in time.

        Args:
            root: ``/``, or a made tree in tests.
        """
        places = _places(root, self._vendor, self._classes)
        if places is not None and (not places or _ASLEEP & {p.status for p in places.values()}):
            self._told = {}
            return self._told
        may_sleep = any(place.control == "auto" for place in (places or {}).values())
        now = self._clock()
        every_s = _RARELY_S if may_sleep or self.why else _EVERY_S
        asked_at = self._asked_at
        if self._thread is None and (asked_at is None or now - asked_at >= every_s):
            self._asked_at = now
            # A daemon: a library that never returns must not keep the program from ending.
            self._thread = threading.Thread(target=self._read, name=self.name, daemon=True)
            self._thread.start()
        if self._thread is not None:
            is_opening = asked_at is None and now - self._made_at < _OPENING_S
            self._thread.join(_OPENING_S if is_opening else _WAIT_S)
            if self._thread.is_alive():
                self.why = f"{self.name} has not answered"
                return {}
            self._thread = None
        self.age_s = self._clock() - (self._asked_at or 0.0)
        return {at: told for at, told in self._told.items() if places is None or at in places}

    def close(self) -> None:
        """Let go of the library, unless it hangs."""
        is_busy = self._thread is not None and self._thread.is_alive()
        if not is_busy:
            self._let_go()

    def _read(self) -> None:
        self._told = {}
        try:
            library = self._library = self._library or self._opened()
            self._told = {at: _sane(told, self.name) for at, told in library.read().items()}
            self.why = ""
        except OSError:
            self.why = f"{self.name} is not on this computer"
        except (AttributeError, TelemetryError) as error:  # a function that this release lacks
            self.why = printable(f"{self.name}: {error}", 160)
            self._let_go()

    def _let_go(self) -> None:
        """Open it anew the next time: what it knew of the driver may be stale."""
        library, self._library = self._library, None
        if library is not None:
            with suppress(AttributeError):  # it may lack this function as well
                library.close()


@dataclass(frozen=True, slots=True)
class _Place:
    status: str
    control: str


def cards(
    root: Path, listed: tuple[drm.Card, ...], told: Mapping[str, Told]
) -> tuple[drm.Card, ...]:
    """``listed`` and those that the library alone knows.

    Beside cards of sysfs, one that isn't on the bus would be a place that was read wrongly.
    """
    if listed and not (root / _BUS).is_dir():
        return listed
    known = {card.address for card in listed}
    more = (_unlisted(root, address, one) for address, one in told.items() if address not in known)
    return (*listed, *sorted(more, key=lambda card: card.address))


def _unlisted(root: Path, address: str, told: Told) -> drm.Card:
    folder = root / _BUS / address
    device = drm.text(folder / "device")
    return drm.Card(
        address, device, "", folder, drives_display=False, is_asleep=False, name=told.name
    )


def _places(root: Path, vendor: str, classes: tuple[str, ...]) -> dict[str, _Place] | None:
    """A maker's GPUs on the bus; None where the bus isn't shown."""
    bus = root / _BUS
    if not bus.is_dir():
        return None
    return {
        folder.name: _Place(
            drm.text(folder / "power/runtime_status"), drm.text(folder / "power/control")
        )
        for folder in sorted(bus.iterdir())
        if drm.text(folder / "vendor") == vendor and drm.text(folder / "class").startswith(classes)
    }


def _sane(told: Told, source: str) -> Told:
    """Without what is no size: a total of 0, and the large numbers that stand for "unknown"."""
    total, used = _size(told.total_bytes) or None, _size(told.used_bytes)
    if total is None or (used is not None and used > total):
        used = None  # no figure of such an answer is believed
    gtt_total, gtt_used = _size(told.gtt_total_bytes) or None, _size(told.gtt_used_bytes)
    return Told(printable(told.name, 64), total, used, gtt_total, gtt_used, source)


def _size(told: int | None) -> int | None:
    return told if told is not None and 0 <= told < _LARGEST_BYTES else None
