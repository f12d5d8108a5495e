"""Whether a GPU sleeps, from sysfs alone: asking its driver would wake it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.text import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_ASLEEP = frozenset({"suspended", "suspending"})
_LISTED_FOR_S = 30.0


@dataclass(frozen=True, slots=True)
class Display:
    """A display device as sysfs describes it."""

    address: str
    """``0000:01:00.0``."""
    vendor: str
    """``0x10de``."""
    device: str
    is_asleep: bool
    may_sleep: bool
    """Whether the system puts it to sleep when nobody uses it."""


def sleeping(root: Path, vendor: str) -> str:
    """PCI address of a display device of ``vendor`` in runtime suspend; empty if none sleeps.

    Every NVML call, ``nvmlInit`` first, resumes a suspended card and keeps it awake: the largest
    single complaint about monitors of this kind (nvtop issues 230 and 267, btop 738 and 1838).

    Args:
        root: ``/``, or a made tree in tests.
        vendor: PCI vendor as sysfs writes it, ``0x10de``.
    """
    return next((d.address for d in Displays(root, vendor).now() if d.is_asleep), "")


def displays(root: Path) -> Iterator[tuple[str, str, str, str]]:
    """Address, vendor, device and power status of each display device, as sysfs writes them."""
    for folder in sorted((root / "sys/bus/pci/devices").glob("*")):
        if _text(folder / "class").startswith("0x03"):
            status = _text(folder / "power/runtime_status")
            yield folder.name, _text(folder / "vendor"), _text(folder / "device"), status


def as_in_sysfs(bus_id: str) -> str:
    """``00000000:61:00.0`` of NVIDIA's driver as sysfs writes it; empty where it is no place.

    A domain has four digits there, and more only where it needs them (``10000:e1:00.0`` behind
    Intel's VMD).
    """
    domain, _, rest = bus_id.strip("\0").lower().partition(":")
    try:
        return printable(f"{int(domain, 16):04x}:{rest}", 32) if rest else ""
    except ValueError:
        return ""


class Displays:
    """One maker's display devices; which there are is looked up every half a minute."""

    def __init__(
        self, root: Path, vendor: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._root = root
        self._vendor = vendor
        self._clock = clock
        self._listed: tuple[tuple[str, str], ...] = ()
        self._listed_at: float | None = None

    def now(self) -> tuple[Display, ...]:
        """All of them with their power status; a few short reads, which wake nothing."""
        now = self._clock()
        if self._listed_at is None or now - self._listed_at >= _LISTED_FOR_S:
            self._listed_at = now
            found = displays(self._root)
            self._listed = tuple((a, d) for a, vendor, d, _ in found if vendor == self._vendor)
        return tuple(self._display(*known) for known in self._listed)

    def _display(self, address: str, device: str) -> Display:
        power = self._root / "sys/bus/pci/devices" / address / "power"
        return Display(
            address,
            self._vendor,
            device,
            is_asleep=_text(power / "runtime_status") in _ASLEEP,
            may_sleep=_text(power / "control") == "auto",
        )


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""
