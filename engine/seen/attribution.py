"""What drivers attribute to a runtime's processes, and why that differs from what it states."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from engine.budget.model import Region
from engine.seen.model import HeldBytes, RuntimeSeen
from engine.telemetry import mapped
from engine.telemetry.commands import recognise
from engine.telemetry.snapshot import Missing, PoolKind, Quality
from engine.units import GIB, MIB
from engine.words import tr, tr_later

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from engine.telemetry.snapshot import DeviceReading, ProcessReading, TelemetrySnapshot

LEAST_DIFFERENCE_BYTES: Final = GIB
LEAST_SHARE: Final = 0.15
_LEAST_PLAIN_BYTES = 256 * MIB
"""Of an accelerator, from which a plain Python process is taken for a run."""
_ORDER = tuple(Quality)
_UNKNOWN = Missing(tr_later("no driver lists these processes"))


@dataclass(frozen=True, slots=True)
class Difference:
    """A runtime's own figure and the drivers', where they are too far apart to be one."""

    stated_bytes: int
    held_bytes: int
    reason: str
    """Why, in one sentence; translated."""


def held(pids: Collection[int], snapshot: TelemetrySnapshot) -> tuple[HeldBytes, ...]:
    """What the processes ``pids`` hold, per device where they hold any."""
    wanted = frozenset(pids)
    rows = (_held(wanted, device) for device in snapshot.devices)
    return tuple(row for row in rows if row is not None)


def _held(pids: frozenset[int], device: DeviceReading) -> HeldBytes | None:
    is_accelerator = device.pool is not PoolKind.HOST
    listed = device.processes
    if isinstance(listed, Missing):
        return HeldBytes(device.uuid, device.name, listed, Quality.NOT_REPORTED, is_accelerator)
    ours = [process for process in listed if process.pid in pids]
    if not ours:
        return None
    known = [p.used_bytes for p in ours if not isinstance(p.used_bytes, Missing)]
    worst = max((process.quality for process in ours), key=_ORDER.index)
    if len(known) < len(ours):
        worst = Quality.NOT_REPORTED
    absent = next((p.used_bytes for p in ours if isinstance(p.used_bytes, Missing)), _UNKNOWN)
    size = sum(known) + (0 if is_accelerator else mapped.model_bytes(ours))
    return HeldBytes(device.uuid, device.name, size if known else absent, worst, is_accelerator)


def plain(snapshot: TelemetrySnapshot, taken: Collection[int]) -> Iterator[ProcessReading]:
    """Python processes outside ``taken`` that hold much of an accelerator: a run of one's own."""
    seen: set[int] = set(taken)
    for device in snapshot.devices:
        if device.pool is PoolKind.HOST or isinstance(device.processes, Missing):
            continue
        for process in device.processes:
            size = process.used_bytes
            is_large = not isinstance(size, Missing) and size >= _LEAST_PLAIN_BYTES
            is_python = recognise(process.name, process.command).label == "Python"
            if is_large and is_python and process.pid not in seen:
                seen.add(process.pid)
                yield process


def difference(seen: RuntimeSeen) -> Difference | None:
    """How far statement and attribution are apart, where it is more than either's vagueness.

    A runtime that states only its cache states no whole to be compared.
    """
    stated, attributed = seen.stated_bytes, seen.held_bytes
    is_whole = any(one.region in {None, Region.WEIGHTS} for one in seen.stated)
    if isinstance(stated, Missing) or isinstance(attributed, Missing) or not is_whole:
        return None
    apart = abs(stated - attributed)
    if apart <= max(LEAST_DIFFERENCE_BYTES, LEAST_SHARE * max(stated, attributed)):
        return None
    return Difference(stated, attributed, _reason(seen, is_short=stated < attributed))


def _reason(seen: RuntimeSeen, *, is_short: bool) -> str:
    if seen.quality is Quality.OVER_COUNTS and is_short:
        return tr("The driver counts memory that programs share for each of them.")
    for runtime, short, since, until, words in _REASONS:
        if runtime in {seen.runtime, ""} and short is is_short and _in(seen.version, since, until):
            return tr(words)
    return ""


_REASONS: Final = (
    ("ollama", True, (0, 30), (), tr_later(
        "The engine’s figure is incomplete: with a draft model or several caches Ollama counts the "
        "last one alone, and projectors and the cache of prompts never (ollama issue 17251).")),
    ("ollama", False, (), (0, 30), tr_later(
        "Ollama’s figure is an estimate made before the load, and is often too large (ollama issue "
        "6160).")),
    ("sglang", True, (), (), tr_later(
        "SGLang states weights, cache and graphs; activations, its libraries and the driver’s "
        "context come on top.")),
    ("", True, (), (), tr_later(
        "The engine’s figure is incomplete: its libraries, buffers for a moment and the driver’s "
        "context are not in it.")),
    ("", False, (), (), tr_later(
        "Not all that the engine states is in the devices’ memory: it is not touched yet, was "
        "given up, or lies in the computer’s memory.")),
)  # fmt: skip
"""Runtime (empty for any), whether it states too little, first release, first release without."""


def _in(version: str | Missing, since: tuple[int, ...], until: tuple[int, ...]) -> bool:
    """Whether ``version`` lies in a window; one that is not known lies in all of them."""
    found = () if isinstance(version, Missing) else tuple(map(int, re.findall(r"\d+", version)[:3]))
    return not found or (since <= found and (not until or found < until))
