"""One device that two sources read is one device: each figure from the one that knows it.

On Windows NVIDIA's driver tells a card's totals and not what a process holds; Windows' counters
tell what each process holds and where.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from engine.telemetry.adapters import windows
from engine.telemetry.snapshot import DeviceReading, Missing, PoolKind, ProcessReading

if TYPE_CHECKING:
    from collections.abc import Sequence


def merged(devices: Sequence[DeviceReading]) -> tuple[DeviceReading, ...]:
    """``devices``, those of Windows' counters united with the same devices of other sources."""
    counted = [d for d in devices if d.uuid.startswith(windows.UUID_PREFIX)]
    others = [d for d in devices if not d.uuid.startswith(windows.UUID_PREFIX)]
    if not counted or not others:
        return tuple(devices)
    taken: set[str] = set()
    whole: list[DeviceReading] = []
    for device in others:
        twin = _twin(device, counted, others)
        if twin is not None:
            taken.add(twin.uuid)
        whole.append(device if twin is None else _united(device, twin))
    # Twins that can't be told apart stay what the driver says: a card never counts twice.
    known = {device.name for device in others}
    rest = [d for d in counted if d.uuid not in taken and d.name not in known]
    return (*_gpus(whole), *rest, *_host(whole))


def _gpus(devices: list[DeviceReading]) -> list[DeviceReading]:
    return [device for device in devices if device.pool is not PoolKind.HOST]


def _host(devices: list[DeviceReading]) -> list[DeviceReading]:
    return [device for device in devices if device.pool is PoolKind.HOST]


def _twin(
    device: DeviceReading, counted: list[DeviceReading], others: list[DeviceReading]
) -> DeviceReading | None:
    if device.pci_address:
        placed = [d for d in counted if d.pci_address == device.pci_address]
        if placed:
            return placed[0]
    namesakes = [d for d in counted if d.name == device.name and not d.pci_address]
    is_only = [d.name for d in others].count(device.name) == 1
    return namesakes[0] if len(namesakes) == 1 and is_only else None


def _united(device: DeviceReading, twin: DeviceReading) -> DeviceReading:
    """Totals of the driver, processes of Windows where the driver keeps them to itself."""
    return replace(
        device,
        processes=_processes(device.processes, twin.processes),
        spill_bytes=twin.spill_bytes,
        source=f"{device.source}, {twin.source}",
    )


def _processes(
    told: tuple[ProcessReading, ...] | Missing, counted: tuple[ProcessReading, ...] | Missing
) -> tuple[ProcessReading, ...] | Missing:
    if isinstance(told, Missing) or isinstance(counted, Missing):
        return told if isinstance(counted, Missing) else counted
    rows = {process.pid: process for process in counted}
    for process in told:
        known = rows.get(process.pid)
        if known is None:
            rows[process.pid] = process
        elif not isinstance(process.used_bytes, Missing):
            exact = replace(known, used_bytes=process.used_bytes, quality=process.quality)
            rows[process.pid] = exact
    return tuple(rows.values())
