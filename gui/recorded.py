"""A recording read whole, for the picture: what every device held, and when memory ran short."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar, cast

from engine.overlay.group import plan_bytes
from engine.telemetry import player
from engine.telemetry.commands import recognise
from engine.telemetry.pressure import LEAST_SPILL_BYTES
from engine.telemetry.snapshot import (
    DeviceReading,
    Missing,
    PoolKind,
    Pressure,
    ProcessReading,
    TelemetrySnapshot,
)
from engine.text import printable
from gui.kit.charts.kept import Kept
from gui.kit.charts.series import Sample

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from enum import StrEnum
    from pathlib import Path

    from engine.cancel import CancelToken
    from engine.overlay.group import Planned
    from engine.telemetry.player import Index

    _Kind = TypeVar("_Kind", bound=StrEnum)

_UNTOLD = Missing("not looked at")
_LONGEST_NAME = 120


def read(path: Path, planned: Planned | None, token: CancelToken) -> tuple[Index, Kept]:
    """Read a recording whole: its index, and what every device held.

    Args:
        path: the recording.
        planned: whose processes are the plan's.
        token: asks the reading to stop.

    Raises:
        TelemetryError: it is no recording, or holds no sample.
        JobCancelledError: ``token`` was cancelled.
    """
    kept = Kept()

    def each(place: float, broke: bool, record: Mapping[str, object]) -> None:  # noqa: FBT001
        wall = record.get("wall_time_s")
        if isinstance(wall, (int, float)):
            kept.wall_offset_s = wall - place
        rows = tuple(_rows(record.get("devices")))
        for row in rows:
            _keep(kept, row, (place, broke), planned)
        kept.miss({row.get("uuid") for row in rows}, place)
        strained = tuple(_strained(row) for row in rows if _may_be_strained(row))
        kept.strains.take(TelemetrySnapshot(place, 0.0, strained), place, after_gap=broke)

    index = player.index(path, token, each=each)
    kept.markers = list(index.markers)
    return index, kept


def _rows(given: object) -> Iterator[dict[str, object]]:
    for row in cast("list[object]", given) if isinstance(given, list) else []:
        if isinstance(row, dict):
            yield cast("dict[str, object]", row)


def _keep(
    kept: Kept, row: dict[str, object], when: tuple[float, bool], planned: Planned | None
) -> None:
    uuid, name = row.get("uuid"), row.get("name")
    if not isinstance(uuid, str):
        return
    used = _size(row.get("used_bytes"))
    size = used if isinstance(used, int) else None
    share = plan_bytes(_runs(row, planned), planned) if planned else None
    kept.add((uuid, str(name)), Sample(when[0], size, share), after_gap=when[1])


def _runs(row: dict[str, object], planned: Planned) -> DeviceReading:
    """The device with the processes of the plan's runtime alone: all that its share needs."""
    held = row.get("processes")
    found: list[ProcessReading] = []
    for process in _rows(held):
        name, command = str(process.get("name")), str(process.get("command"))
        if recognise(name, command).runtime == planned.runtime:
            used, file = (_size(process.get(key)) for key in ("used_bytes", "file_bytes"))
            found.append(ProcessReading(1, name, used, command, file))
    processes = tuple(found) if isinstance(held, list) else _UNTOLD
    return DeviceReading("", "", PoolKind.VRAM, _UNTOLD, _UNTOLD, _UNTOLD, _UNTOLD, processes, "")


def _may_be_strained(row: dict[str, object]) -> bool:
    """Whether a row is worth a second look: most of a long recording's are not."""
    spill = _size(row.get("spill_bytes"))
    is_spilled = isinstance(spill, int) and spill >= LEAST_SPILL_BYTES
    return is_spilled or row.get("pool") == PoolKind.HOST or row.get("pressure") in _PRESSED


def _strained(row: dict[str, object]) -> DeviceReading:
    """The device with all that tells whether memory runs short there."""
    total, free, available, spill = (_size(row.get(key)) for key in _STRAINED_SIZES)
    there = [(one, _size(one.get("spill_bytes"))) for one in _rows(row.get("processes"))]
    return DeviceReading(
        uuid=str(row.get("uuid")),
        name=_text(row.get("name")),
        pool=_one_of(PoolKind, row.get("pool"), PoolKind.VRAM),
        total_bytes=total,
        used_bytes=_UNTOLD,
        free_bytes=free,
        reserved_bytes=_UNTOLD,
        processes=tuple(
            ProcessReading(1, _text(one.get("name")), _UNTOLD, spill_bytes=size)
            for one, size in there
            if isinstance(size, int)
        ),
        source=_text(row.get("source")),
        pressure=_one_of(Pressure, row.get("pressure"), Pressure.UNKNOWN),
        available_bytes=available,
        spill_bytes=spill,
    )


_PRESSED = (Pressure.SOME, Pressure.CRITICAL)
_STRAINED_SIZES = ("total_bytes", "free_bytes", "available_bytes", "spill_bytes")


def _size(given: object) -> int | Missing:
    return given if isinstance(given, int) and not isinstance(given, bool) else _UNTOLD


def _text(given: object) -> str:
    return printable(given, _LONGEST_NAME) if isinstance(given, str) else ""


def _one_of(kind: type[_Kind], given: object, otherwise: _Kind) -> _Kind:
    return next((one for one in kind if one == given), otherwise)
