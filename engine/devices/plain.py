"""A machine as a plain dict: the form of ``machine --json`` and of a recording's header."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engine.devices.device import Machine, Slot
    from engine.evidence import Estimate


def to_dict(machine: Machine) -> dict[str, Any]:
    """``machine`` as JSON can hold it: ``name``, ``is_here``, ``devices`` and ``host``.

    Devices are in rank order. A device has ``name``, ``uuid``, ``vendor``, ``kind``, ``label``,
    ``total_bytes``, ``allocatable`` and ``foreign`` (estimates), ``sm_count``,
    ``compute_capability``, ``ecc`` and ``source``; an estimate ``low``,
    ``likely``, ``high``, ``basis`` and ``source``.
    """
    return {
        "name": machine.name,
        "is_here": machine.is_here,
        "devices": [_slot(slot) for slot in machine.slots],
        "host": _slot(machine.host),
    }


def estimate_dict(estimate: Estimate) -> dict[str, Any]:
    """``estimate`` without its parts."""
    return {
        "low": estimate.low_bytes,
        "likely": estimate.likely_bytes,
        "high": estimate.high_bytes,
        "basis": estimate.basis.value,
        "source": estimate.source,
    }


def _slot(slot: Slot) -> dict[str, Any]:
    device = slot.device
    return {
        "name": device.name,
        "uuid": slot.uuid,
        "vendor": device.vendor.value,
        "kind": device.kind.value,
        "label": device.label,
        "total_bytes": device.total_bytes,
        "allocatable": estimate_dict(device.allocatable),
        "foreign": estimate_dict(slot.foreign),
        "sm_count": device.sm_count,
        "compute_capability": device.compute_capability,
        "ecc": device.ecc,
        "source": device.source,
    }
