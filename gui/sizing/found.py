"""What was found on this computer, device by device: its sizes, their source and their doubt."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.devices.device import DeviceKind
from engine.evidence import Basis
from engine.words import tr
from gui.kit import format as fmt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.devices.device import Device, Machine, Slot
    from engine.units import UnitSystem


def found(machine: Machine, unit: UnitSystem) -> str:
    """One line for each kind of device, the computer's own memory last."""
    groups = _groups(machine)
    if not groups:
        text = tr(
            "No GPU found: the plan is for this computer’s memory, {total}, {line} for programs, "
            "{held} in use."
        )
        return text.format(**_sizes((machine.host,), unit))
    texts = [_found_text(slots, unit) for slots in groups]
    if not machine.is_corrected:
        texts[0] = tr("Found: {device}").format(device=texts[0])
    if machine.host.device.kind is DeviceKind.HOST and groups[0][0].device.kind is not (
        DeviceKind.UNIFIED
    ):
        total = fmt.size(machine.host.device.total_bytes, unit)
        texts[-1] += " " + tr("Host memory {total}.").format(total=total)
    return "\n".join(texts)


def brief(machine: Machine, unit: UnitSystem) -> str:
    """``2 × RTX 4090 24.00 GiB, host memory 62.70 GiB``."""
    words: list[str] = []
    for slots in _groups(machine):
        device = slots[0].device
        name = device.name if len(slots) == 1 else f"{len(slots)} {fmt.TIMES} {device.name}"
        words.append(f"{name} {fmt.size(device.total_bytes, unit)}")
    host = fmt.size(machine.host.device.total_bytes, unit)
    return ", ".join([*words, tr("host memory {total}").format(total=host)])


def sources(machine: Machine, unit: UnitSystem) -> str:
    """Where each kind of device's figures come from, and how far they may be off."""
    devices = [slots[0].device for slots in _groups(machine)]
    if not devices:
        return tr("From {source}.").format(source=_source(machine.host.device, unit))
    if len(devices) == 1:
        return tr("From {source}.").format(source=_source(devices[0], unit))
    each = (f"{device.name} {_source(device, unit)}" for device in devices)
    return tr("From: {source}.").format(source="; ".join(each))


def doubt(device: Device, unit: UnitSystem) -> str:
    """``23.1 – 23.6 GiB for programs, fitted``; empty where what programs get is certain."""
    line = device.allocatable
    span = fmt.size_range(line.low_bytes, line.high_bytes, unit)
    if not span:
        return ""
    text = tr("{span} {unit} for programs, {basis}")
    return text.format(span=span, unit=unit.value, basis=line.basis.word.lower())


def _groups(machine: Machine) -> list[list[Slot]]:
    """The GPUs, those that are alike together, in the order of the first of each."""
    alike: dict[Device, list[Slot]] = {}
    for slot in machine.slots:
        if slot.device.kind is not DeviceKind.HOST:
            alike.setdefault(slot.device, []).append(slot)
    return list(alike.values())


def _found_text(slots: Sequence[Slot], unit: UnitSystem) -> str:
    device, count = slots[0].device, len(slots)
    if slots[0].foreign.basis is Basis.ASSUMED:
        # Nothing unknown is shown as 0.
        text = tr("{count} × {name}, each {total} by {whom}, {line} for programs, use not known.")
        if count == 1:
            text = tr("{name}, {total} by {whom}, {line} for programs, use not known.")
    elif count > 1:
        text = tr(
            "{count} × {name}, each {total} by {whom}, {line} for programs, {held} in use on all."
        )
    else:
        text = tr("{name}, {total} by {whom}, {line} for programs, {held} in use.")
    whom = tr("your word") if slots[0].is_said else tr("the driver")
    return text.format(count=count, name=device.name, whom=whom, **_sizes(slots, unit))


def _sizes(slots: Sequence[Slot], unit: UnitSystem) -> dict[str, str]:
    device = slots[0].device
    return {
        "total": fmt.size(device.total_bytes, unit),
        "line": fmt.size(device.allocatable.likely_bytes, unit),
        "held": fmt.size(sum(slot.foreign.likely_bytes for slot in slots), unit),
    }


def _source(device: Device, unit: UnitSystem) -> str:
    return ", ".join(filter(None, (tr(device.source), doubt(device, unit))))
