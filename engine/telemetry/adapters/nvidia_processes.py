"""Who holds a card's memory, from the driver's three lists.

The lists are asked in turn, one a sample: compute programs every second time, graphics and MPS
clients every fourth. With the card's memory that makes at most two questions a sample.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from engine.telemetry.adapters import nvml_codes as codes
from engine.telemetry.snapshot import Missing, ProcessReading, Quality
from engine.words import tr, tr_later

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.telemetry.adapters.names import Names
    from engine.telemetry.adapters.nvidia_cards import Card

_KINDS: Final = ("Compute", "Graphics", "MPSCompute")
_TURNS: Final = ("Compute", "Graphics", "Compute", "MPSCompute")
_NO_INSTANCE: Final = frozenset({None, 0xFFFFFFFF})
_UNREPORTED = tr_later("the driver doesn't say how much this process holds")
_WINDOWS_KEEPS_IT = tr_later("not reported by Windows (display driver model WDDM)")


class ProcessLists:
    """One card's lists, as far as they have been heard."""

    def __init__(self, card: Card, names: Names) -> None:
        self._card = card
        self._names = names
        self._rows: dict[str, dict[int, int | None]] = {}
        self._refusals: dict[str, str] = {}
        self._never: set[str] = set()
        self._asked = 0

    def read(self, nvml: Any) -> tuple[ProcessReading, ...] | Missing:
        """One row per process, the largest first. A process in several lists counts once.

        Raises:
            nvml.NVMLError: the driver or the card is gone.
        """
        for kind in self._next():
            self._ask(nvml, kind)
        if not self._rows:
            return Missing(next(self._refusals[kind] for kind in _KINDS if kind in self._refusals))
        held: dict[int, int | None] = {}
        for rows in self._rows.values():
            for pid, used in rows.items():
                # The same bytes may stand in two lists: the larger counts, never the sum.
                held[pid] = _more(held.get(pid), used)
        unreported = Missing(tr(_WINDOWS_KEEPS_IT if self._card.is_wddm else _UNREPORTED))
        rows = (self._reading(pid, used, unreported) for pid, used in held.items())
        return tuple(sorted(rows, key=_order))

    def _next(self) -> tuple[str, ...]:
        """All lists the first time, then one."""
        turn, self._asked = self._asked, self._asked + 1
        return (_TURNS[turn % len(_TURNS)],) if turn else _KINDS

    def _ask(self, nvml: Any, kind: str) -> None:
        if kind in self._never:
            return
        ask = getattr(nvml, f"nvmlDeviceGet{kind}RunningProcesses_v3")
        try:
            rows = self._answer(nvml, ask)
        except nvml.NVMLError as error:
            if error.value in codes.DRIVER_GONE | codes.DEVICE_LOST:
                raise
            self._rows.pop(kind, None)
            self._refusals[kind] = codes.reason(error)
            if error.value in codes.NEVER:
                self._never.add(kind)
            return
        self._rows[kind] = rows

    def _answer(self, nvml: Any, ask: Callable[[Any], Any]) -> dict[int, int | None]:
        card = self._card
        try:
            rows = [row for handle in (card.handle, *card.others) for row in ask(handle)]
        except nvml.NVMLError as error:
            if card.parent is None or error.value not in codes.NEVER:
                raise
            rows = ask(card.parent)
        ours = {card.gpu_instance, *_NO_INSTANCE}
        by_place: dict[tuple[int, Any], int | None] = {}
        for row in rows:
            if card.gpu_instance is None or getattr(row, "gpuInstanceId", None) in ours:
                place = row.pid, getattr(row, "computeInstanceId", None)
                by_place[place] = _more(by_place.get(place), row.usedGpuMemory)
        found: dict[int, int | None] = {}
        for (pid, _), used in by_place.items():
            before = found.get(pid)
            found[pid] = used if before is None else before + (used or 0)
        return found

    def _reading(self, pid: int, used: int | None, unreported: Missing) -> ProcessReading:
        name, command = self._names.of(pid)
        reading = ProcessReading(
            pid, name, unreported, command=command, quality=Quality.NOT_REPORTED
        )
        return reading if used is None else replace(reading, used_bytes=used, quality=Quality.EXACT)


def _more(one: int | None, other: int | None) -> int | None:
    return other if one is None else max(one, other or 0)


def _order(process: ProcessReading) -> tuple[int, int]:
    used = process.used_bytes
    return (0 if isinstance(used, Missing) else -used, process.pid)
