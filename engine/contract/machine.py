"""This machine and its samples as mappings for JSON; a missing value carries its reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.devices import plain as plain_devices
from engine.telemetry import plain as plain_telemetry

if TYPE_CHECKING:
    from engine.devices.device import Machine, Slot
    from engine.telemetry.snapshot import DeviceReading, TelemetrySnapshot

MACHINE_SCHEMA = "plimsoll.machine/1"
SAMPLE_SCHEMA = "plimsoll.sample/1"


def machine_answer(machine: Machine, snapshot: TelemetrySnapshot) -> dict[str, object]:
    """Devices, their three capacities and how each was learned; ``now`` is one sample."""
    return {
        "schema": MACHINE_SCHEMA,
        **plain_devices.to_dict(machine),
        "now": plain_telemetry.to_dict(snapshot),
    }


def sample_answer(snapshot: TelemetrySnapshot) -> dict[str, object]:
    """One sample: one line of ``plimsoll watch --jsonl``."""
    return {"schema": SAMPLE_SCHEMA, **plain_telemetry.to_dict(snapshot)}


def reading_of(slot: Slot, snapshot: TelemetrySnapshot) -> DeviceReading | None:
    """What ``snapshot`` says about the device in ``slot``."""
    return next((d for d in snapshot.devices if slot.uuid and d.uuid == slot.uuid), None)
