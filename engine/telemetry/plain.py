"""Snapshots as plain dicts and back: the form of ``watch --jsonl`` and of recordings.

A missing value is ``{"missing": "why"}``, never 0 and never left out. The way back trusts
nothing: a recording may come from anywhere.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeVar, cast

from engine.errors import TelemetryError
from engine.telemetry.snapshot import (
    DeviceReading,
    Missing,
    Part,
    PoolKind,
    Pressure,
    ProcessReading,
    Quality,
    TelemetrySnapshot,
)
from engine.text import printable

if TYPE_CHECKING:
    from collections.abc import Mapping

_Kind = TypeVar("_Kind", bound=StrEnum)
MAX_DEVICES = 1024
MAX_PROCESSES = 4096
_LARGEST = 2**60
_LONGEST_TEXT = 1000
MAX_PARTS = 8
_NEWER_SIZES = ("ceiling_bytes", "available_bytes", "spill_bytes")
_SIZES = ("total_bytes", "used_bytes", "free_bytes", "reserved_bytes")


def to_dict(snapshot: TelemetrySnapshot) -> dict[str, Any]:
    """``snapshot`` as JSON can hold it: ``monotonic_s``, ``wall_time_s``, ``devices``, ``notes``.

    A device has ``uuid``, ``name``, ``vendor``, ``pool``, the sizes, ``parts``, ``processes``
    (a list, or missing), ``source``, ``age_s``, ``pci_address``, ``pressure``, ``note``,
    ``sm_count`` and ``compute_capability``; a process ``pid``, ``name``, ``command``, ``quality``
    and its sizes.
    """
    return {
        "monotonic_s": round(snapshot.monotonic_s, 6),
        "wall_time_s": round(snapshot.wall_time_s, 6),
        "devices": [_device_dict(device) for device in snapshot.devices],
        "notes": list(snapshot.notes),
    }


def value(size: int | Missing) -> int | dict[str, str]:
    """A size, or why there is none."""
    return {"missing": size.reason} if isinstance(size, Missing) else size


def from_dict(record: object) -> TelemetrySnapshot:
    """The snapshot that ``to_dict`` wrote.

    Raises:
        TelemetryError: a field is absent, of the wrong type or out of bounds; ``field`` names it.
    """
    fields = _mapping(record, "a sample")
    devices = _list(fields, "devices", MAX_DEVICES)
    return TelemetrySnapshot(
        monotonic_s=_seconds(fields, "monotonic_s"),
        wall_time_s=_seconds(fields, "wall_time_s"),
        devices=tuple(_device(_mapping(device, "a device")) for device in devices),
        notes=tuple(_clean(note) for note in _list(fields, "notes", 64)),
    )


def _device_dict(device: DeviceReading) -> dict[str, Any]:
    held = device.processes
    return {
        "uuid": device.uuid,
        "name": device.name,
        "vendor": device.vendor,
        "pool": device.pool.value,
        "total_bytes": value(device.total_bytes),
        "used_bytes": value(device.used_bytes),
        "free_bytes": value(device.free_bytes),
        "reserved_bytes": value(device.reserved_bytes),
        "ceiling_bytes": value(device.ceiling_bytes),
        "available_bytes": value(device.available_bytes),
        "spill_bytes": value(device.spill_bytes),
        "parts": [_part_dict(part) for part in device.parts],
        "processes": {"missing": held.reason}
        if isinstance(held, Missing)
        else [process_dict(process) for process in held],
        "source": device.source,
        "age_s": round(device.age_s, 3),
        "pci_address": device.pci_address,
        "pressure": device.pressure.value,
        "note": device.note,
        "sm_count": device.sm_count,
        "compute_capability": device.compute_capability,
    }


def _part_dict(part: Part) -> dict[str, Any]:
    return {
        "name": part.name,
        "total_bytes": value(part.total_bytes),
        "used_bytes": value(part.used_bytes),
    }


def process_dict(process: ProcessReading) -> dict[str, Any]:
    """One process of ``to_dict``."""
    return {
        "pid": process.pid,
        "name": process.name,
        "used_bytes": value(process.used_bytes),
        "file_bytes": value(process.file_bytes),
        "spill_bytes": value(process.spill_bytes),
        "system_bytes": value(process.system_bytes),
        "committed_bytes": value(process.committed_bytes),
        "quality": process.quality.value,
        "command": process.command,
    }


def _device(fields: Mapping[str, object]) -> DeviceReading:
    pool = _one_of(PoolKind, fields, "pool")
    total, used, free, reserved = (_size(fields, key) for key in _SIZES)
    held = fields.get("processes")
    if isinstance(held, list):
        rows = _list(fields, "processes", MAX_PROCESSES)
        processes = tuple(process(_mapping(row, "a process")) for row in rows)
    else:
        processes = _missing(held, "processes")
    return DeviceReading(
        uuid=_text(fields, "uuid"),
        name=_text(fields, "name"),
        pool=pool,
        total_bytes=total,
        used_bytes=used,
        free_bytes=free,
        reserved_bytes=reserved,
        processes=processes,
        source=_text(fields, "source"),
        note=_clean(fields.get("note", "")),
        sm_count=_count(fields, "sm_count"),
        compute_capability=_seconds(fields, "compute_capability", 0.0),
        vendor=_clean(fields.get("vendor", "")),
        age_s=_seconds(fields, "age_s", 0.0),
        machine="",  # what is kept is of one machine
        pci_address=_clean(fields.get("pci_address", "")),
        pressure=_one_of(Pressure, {"pressure": Pressure.UNKNOWN, **fields}, "pressure"),
        parts=tuple(
            Part(_text(part, "name"), _size(part, "total_bytes"), _size(part, "used_bytes"))
            for part in (_mapping(p, "a part") for p in _list(fields, "parts", MAX_PARTS, []))
        ),
        **_newer(fields, _NEWER_SIZES),
    )


def _newer(fields: Mapping[str, object], keys: tuple[str, ...]) -> dict[str, int | Missing]:
    """The sizes that recordings of before did not have yet, as far as they are there."""
    return {key: _size(fields, key) for key in keys if key in fields}


def _one_of(kind: type[_Kind], fields: Mapping[str, object], key: str) -> _Kind:
    try:
        return kind(fields.get(key))
    except ValueError:
        raise _wrong(key, f"one of {', '.join(kind)}") from None


def process(fields: Mapping[str, object]) -> ProcessReading:
    """The process that ``process_dict`` wrote.

    Raises:
        TelemetryError: a field is absent, of the wrong type or out of bounds.
    """
    return ProcessReading(
        pid=_count(fields, "pid"),
        name=_text(fields, "name"),
        used_bytes=_size(fields, "used_bytes"),
        command=_clean(fields.get("command", "")),
        file_bytes=_size(fields, "file_bytes"),
        quality=_one_of(Quality, {"quality": Quality.EXACT, **fields}, "quality"),
        **_newer(fields, ("spill_bytes", "system_bytes", "committed_bytes")),
    )


def _wrong(field: str, expected: str) -> TelemetryError:
    return TelemetryError(f"{field!r} is not {expected}", field=field)


def _mapping(record: object, what: str) -> Mapping[str, object]:
    if not isinstance(record, dict):
        raise _wrong(what, "an object")
    return cast("dict[str, object]", record)


def _list(
    fields: Mapping[str, object], key: str, most: int, otherwise: list[object] | None = None
) -> list[object]:
    items = fields.get(key, otherwise)
    if not isinstance(items, list) or len(cast("list[object]", items)) > most:
        raise _wrong(key, f"a list of at most {most}")
    return cast("list[object]", items)


def _text(fields: Mapping[str, object], key: str) -> str:
    text = fields.get(key)
    if not isinstance(text, str):
        raise _wrong(key, "a text")
    return printable(text, _LONGEST_TEXT)


def _clean(text: object) -> str:
    return printable(text, _LONGEST_TEXT) if isinstance(text, str) else ""


def _count(fields: Mapping[str, object], key: str) -> int:
    number = fields.get(key, 0)
    if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < 2**40:
        raise _wrong(key, "a count")
    return number


def _size(fields: Mapping[str, object], key: str) -> int | Missing:
    number = fields.get(key)
    if isinstance(number, dict):
        return _missing(cast("object", number), key)
    if not isinstance(number, int) or isinstance(number, bool) or abs(number) > _LARGEST:
        raise _wrong(key, "a number of bytes or a reason why it is missing")
    return number


def _missing(record: object, key: str) -> Missing:
    if isinstance(record, dict):
        reason = cast("dict[str, object]", record).get("missing")
        if isinstance(reason, str):
            return Missing(printable(reason, _LONGEST_TEXT))
    raise _wrong(key, "a value or a reason why it is missing")


def _seconds(fields: Mapping[str, object], key: str, otherwise: float | None = None) -> float:
    number = fields.get(key, otherwise)
    if not isinstance(number, (int, float)) or isinstance(number, bool) or not abs(number) < 1e12:
        raise _wrong(key, "a number")
    return float(number)
