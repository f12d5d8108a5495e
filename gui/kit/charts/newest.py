"""What a device is known to hold at the end of the window, and how old that knowledge is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.units import format_gib
from engine.words import tr

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gui.kit.charts.measured import Live
    from gui.kit.charts.scene import Panel
    from gui.kit.charts.series import Sample

_OLD_S = 2.0
"""On a busy computer one answer comes late; what two samples miss is not known any more."""
_COARSE_S = 10
"""The step in which an age grows once it is longer than that."""


def known(panel: Panel, live: Live) -> Sample | None:
    """The last sample up to the end of the window that has a value."""
    series = live.of(panel)
    if series is None or live.window is None:
        return None
    return series.known_until(live.window.end_s)


def used_bytes(panel: Panel, live: Live) -> int | None:
    """Bytes in use at the end of the window, as far as they are known."""
    found = known(panel, live)
    return found.used_bytes if found else None


def age(panel: Panel, live: Live) -> str:
    """How old the last value is, where that is too old to be called the present; else empty.

    Of one device whose source is silent while others go on, or of all where sampling has stopped.
    """
    last, now = known(panel, live), _at_end(panel, live)
    if live.age or live.window is None or last is None or now is None:
        return live.age
    passed = live.window.end_s - last.time_s
    return age_words(passed) if now.used_bytes is None and passed >= _OLD_S else ""


def age_words(seconds: float) -> str:
    """``4 s``, ``20 s``, ``3 min``."""
    whole = int(seconds)
    if whole >= 60:
        return tr("{time} min").format(time=whole // 60)
    return tr("{time} s").format(time=whole if whole < _COARSE_S else whole - whole % _COARSE_S)


def is_running(panel: Panel, live: Live) -> bool:
    """Whether a process of this plan holds memory on the device at the end of the window."""
    last = _at_end(panel, live)
    return bool(last and last.plan_bytes)


def is_idle(panel: Panel, live: Live) -> bool:
    """Whether it is known that no process of this plan holds memory on the device then."""
    last = _at_end(panel, live)
    return last is not None and last.plan_bytes == 0


def sentence(panels: Iterable[Panel], live: Live) -> str:
    """Which devices tell nothing at the end of the window, and what they held last."""
    said: list[str] = []
    for panel in panels:
        used, old = used_bytes(panel, live), age(panel, live)
        if used is not None and old:
            words = tr("{device}: last known {size}, {age} ago.")
            size = format_gib(used, live.unit)
            said.append(words.format(device=panel.title, size=size, age=old))
    return " ".join(said)


def _at_end(panel: Panel, live: Live) -> Sample | None:
    """The sample that the window ends with; in a recording others may come after it."""
    series = live.of(panel)
    return series.nearest(live.window.end_s) if series and live.window else None
