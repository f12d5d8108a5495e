"""This machine and its samples as mappings for JSON; a missing value carries its reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.contract import runtimes
from engine.devices import plain as plain_devices
from engine.telemetry import plain as plain_telemetry

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engine.devices.device import Machine, Slot
    from engine.seen.model import RuntimeSeen
    from engine.telemetry.snapshot import DeviceReading, TelemetrySnapshot

MACHINE_SCHEMA = "plimsoll.machine/1"
SAMPLE_SCHEMA = "plimsoll.sample/1"


def machine_answer(
    machine: Machine,
    snapshot: TelemetrySnapshot,
    seen: Iterable[RuntimeSeen] | None = None,
) -> dict[str, object]:
    """Devices, their three capacities and how each was learned; ``now`` is one sample.

    Args:
        machine: this one.
        snapshot: the sample.
        seen: its runtimes, where they were asked for.
    """
    return {
        "schema": MACHINE_SCHEMA,
        **plain_devices.to_dict(machine),
        "now": plain_telemetry.to_dict(snapshot),
        **({} if seen is None else runtimes.answer(seen)),
    }


def sample_answer(
    snapshot: TelemetrySnapshot, seen: Iterable[RuntimeSeen] | None = None
) -> dict[str, object]:
    """One sample: one line of ``plimsoll watch --jsonl``; with runtimes where asked for."""
    return {
        "schema": SAMPLE_SCHEMA,
        **plain_telemetry.to_dict(snapshot),
        **({} if seen is None else runtimes.answer(seen)),
    }


def reading_of(slot: Slot, snapshot: TelemetrySnapshot) -> DeviceReading | None:
    """What ``snapshot`` says about the device in ``slot``."""
    return next((d for d in snapshot.devices if slot.uuid and d.uuid == slot.uuid), None)
