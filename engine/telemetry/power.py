"""Whether this computer runs on its battery, where every needless question costs its user."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any, cast

from engine.telemetry.adapters.cgroup import text_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_KNOWN_FOR_S = 30.0
_MAINS = frozenset({"Mains", "USB"})


class Power:
    """The computer's power supply, looked at twice a minute."""

    def __init__(self, root: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._root = root
        self._clock = clock
        self._is_battery = False
        self._known_at: float | None = None

    def is_battery(self) -> bool:
        """Whether the battery is all there is now; False where nothing tells."""
        now = self._clock()
        if self._known_at is None or now - self._known_at >= _KNOWN_FOR_S:
            self._known_at = now
            self._is_battery = (
                on_battery(self._root) if sys.platform == "linux" else _portable_on_battery()
            )
        return self._is_battery


def on_battery(root: Path) -> bool:
    """Whether a battery of the computer discharges and no mains is there.

    Args:
        root: ``/``, or a made tree in tests.
    """
    discharges = False
    for supply in sorted((root / "sys/class/power_supply").glob("*")):
        kind = text_of(supply / "type").strip()
        if kind in _MAINS and text_of(supply / "online").strip() == "1":
            return False
        # A mouse has a battery too; its scope says so.
        is_ours = text_of(supply / "scope").strip() != "Device"
        if kind == "Battery" and is_ours:
            discharges |= text_of(supply / "status").strip() == "Discharging"
    return discharges


def _portable_on_battery() -> bool:
    import psutil

    battery: Any = cast("Any", psutil).sensors_battery()
    return battery is not None and battery.power_plugged is False
