"""This machine and its samples as mappings for JSON; a missing value carries its reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.telemetry.snapshot import Missing

if TYPE_CHECKING:
    from engine.devices.device import Machine, Slot
    from engine.telemetry.snapshot import DeviceReading, ProcessReading, TelemetrySnapshot

MACHINE_SCHEMA = "plimsoll.machine/1"
SAMPLE_SCHEMA = "plimsoll.sample/1"


def machine_answer(machine: Machine, snapshot: TelemetrySnapshot | None) -> dict[str, object]:
    """Devices, their three capacities, what is free now, and how each was learned."""
    slots = list(machine.slots)
    if machine.host not in slots:
        slots.append(machine.host)
    return {
        "schema": MACHINE_SCHEMA,
        "name": machine.name,
        "devices": [_slot(slot, snapshot) for slot in slots],
        "notes": list(snapshot.notes) if snapshot else [],
    }


def sample_answer(snapshot: TelemetrySnapshot) -> dict[str, object]:
    """One sample: one line of ``plimsoll watch --jsonl``."""
    return {
        "schema": SAMPLE_SCHEMA,
        "time": snapshot.wall_time_s,
        "monotonic": snapshot.monotonic_s,
        "devices": [_reading(reading) for reading in snapshot.devices],
        "notes": list(snapshot.notes),
    }


def reading_of(slot: Slot, snapshot: TelemetrySnapshot | None) -> DeviceReading | None:
    """What ``snapshot`` says about the device in ``slot``."""
    devices = snapshot.devices if snapshot else ()
    return next((d for d in devices if slot.uuid and d.uuid == slot.uuid), None)


def _slot(slot: Slot, snapshot: TelemetrySnapshot | None) -> dict[str, object]:
    device, reading = slot.device, reading_of(slot, snapshot)
    return {
        "name": device.name,
        "kind": device.kind.value,
        "label": device.label,
        "total_bytes": device.total_bytes,
        "allocatable_bytes": device.allocatable.likely_bytes,
        "allocatable_basis": device.allocatable.basis.value,
        "allocatable_source": device.allocatable.source,
        "foreign_bytes": slot.foreign.likely_bytes,
        "source": device.source,
        "now": _reading(reading) if reading else None,
    }


def _reading(reading: DeviceReading) -> dict[str, object]:
    figures = {
        "total_bytes": reading.total_bytes,
        "used_bytes": reading.used_bytes,
        "free_bytes": reading.free_bytes,
        "reserved_bytes": reading.reserved_bytes,
    }
    processes = reading.processes
    missing = {name: v.reason for name, v in figures.items() if isinstance(v, Missing)}
    if isinstance(processes, Missing):
        missing["processes"] = processes.reason
    return {
        "uuid": reading.uuid,
        "name": reading.name,
        "pool": reading.pool.value,
        **{name: None if isinstance(v, Missing) else v for name, v in figures.items()},
        "processes": (None if isinstance(processes, Missing) else [_process(p) for p in processes]),
        "missing": missing,
        "source": reading.source,
    }


def _process(process: ProcessReading) -> dict[str, object]:
    used = process.used_bytes
    return {
        "pid": process.pid,
        "name": process.name,
        "used_bytes": None if isinstance(used, Missing) else used,
    }
