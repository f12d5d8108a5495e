"""The machine we run on, from a snapshot: what its drivers say wins over the catalogue."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from engine.devices import catalogue
from engine.devices.device import Device, DeviceKind, Machine, Slot, Vendor
from engine.errors import DeviceError, TelemetryError
from engine.evidence import Basis, Estimate, exactly
from engine.telemetry import mapped
from engine.telemetry.adapters import macos
from engine.telemetry.probe import open_sampler
from engine.telemetry.snapshot import DeviceReading, Missing, PoolKind, Quality, own_bytes
from engine.units import GIB, MIB, format_gib
from engine.words import grouped, tr, tr_later

if TYPE_CHECKING:
    from collections.abc import Iterable
    from collections.abc import Set as AbstractSet

    from engine.telemetry.snapshot import TelemetrySnapshot

_NO_PLACE = frozenset({PoolKind.HOST, PoolKind.WINDOW})
"""RAM has a slot of its own; processor graphics without memory of their own work in it too."""

NAME = tr_later("this computer")

_STATED_RESERVE_SLACK_BYTES = 64 * MIB
"""RTX PRO 6000: driver states 637 MiB reserved, its frameworks see 640 MiB less than the total."""
_FITTED_RESERVE_BYTES = (300 * MIB, 450 * MIB, 900 * MIB)
"""Driver total minus framework total over the cards of the catalogue, where nothing is stated."""
_UNKNOWN_USE_BYTES = (0, 512 * MIB, 1536 * MIB)
"""Idle desktops hold 225 to 1,054 MiB (nvidia-smi outputs), Windows up to 1.5 GiB."""
_NAMED_FROM_BYTES = 256 * MIB
_MOST_NAMED = 3
_SYSTEM_ON_UNIFIED_BYTES = 9 * GIB
"""GB10 after boot: 113.07 of 121.69 GiB available."""


def this_machine(
    snapshot: TelemetrySnapshot | None = None,
    *,
    instead_of: frozenset[int] = frozenset(),
    place: str = "",
) -> Machine:
    """This computer as a place to plan for: its GPUs in the driver's order, and its RAM.

    A device that cannot be read now (lost, asleep) is left out: nothing can be planned on it.

    Args:
        snapshot: readings to take it from; sampled here where there are none.
        instead_of: processes whose memory counts as free, since the plan takes their place.
        place: where ``snapshot`` is from, if not from this computer.

    Raises:
        DeviceError: such a process holds nothing here, or what it holds can't be read.
        TelemetryError: neither a GPU nor the computer's memory can be read.
    """
    if snapshot is None:
        sampler = open_sampler()
        try:
            snapshot = sampler.sample()
        finally:
            sampler.close()
    _check_processes(snapshot, instead_of)
    gpus = [
        (device, device.total_bytes)
        for device in sorted(snapshot.devices, key=lambda d: d.pool is PoolKind.CARVE_OUT)
        if device.pool not in _NO_PLACE and not isinstance(device.total_bytes, Missing)
    ]
    reading = next((d for d in snapshot.devices if d.pool is PoolKind.HOST), None)
    if reading is not None and not isinstance(reading.total_bytes, Missing):
        host = _host(reading, reading.total_bytes, instead_of)
    elif gpus:
        host = _host_unseen([_gpu(device, total, instead_of).device for device, total in gpus])
    else:
        words = tr("The memory of this computer cannot be read.")
        if place:
            words = tr("{place} states no size of a device or of its memory to plan on.")
        raise TelemetryError(words.format(place=place))
    slots = tuple(_place(device, total, host, instead_of) for device, total in gpus)
    # A recording is of its own machine, whatever this one is.
    is_ours = not place and not host.device.source.startswith("recording ")
    if not slots and is_ours and (chip := _apple_chip()):
        slots = (apple(chip, host),)
    return Machine(
        place or tr(NAME),
        slots or (host,),
        host,
        is_here=True,
        platform="" if place else _platform(),
        place=place,
        is_simulated=snapshot.is_simulated,
    )


def _host_unseen(devices: list[Device]) -> Slot:
    """The RAM of a machine of which its cards alone are told."""
    nothing = exactly(0, Basis.ASSUMED, tr("the use of its RAM is not told"))
    return Slot(catalogue.host_of(devices), nothing)


def _platform() -> str:
    """The system under us; Linux inside Windows says so in its release ("-microsoft-")."""
    named = {"win32": "windows", "darwin": "macos"}.get(sys.platform, "linux")
    if named == "linux" and "microsoft" in os.uname().release.lower():
        return "wsl"
    return named


def _place(reading: DeviceReading, total: int, host: Slot, instead_of: frozenset[int]) -> Slot:
    if reading.pool is PoolKind.WIRED:
        return apple(reading.name, host, reading)
    return _gpu(reading, total, instead_of)


def apple(chip: str, host: Slot, reading: DeviceReading | None = None) -> Slot:
    """The GPU of an Apple chip: what Metal states, else its default share of the memory.

    Other programs count only as far as they reach into that share.
    """
    total = host.device.total_bytes
    known = catalogue.match(f"{chip} {round(total / GIB)}GB", total)
    if known is None:
        share = (total * 2 // 3, total * 3 // 4, total * 85 // 100)
        rule = tr("Metal gives the GPU 2/3 to 0.85 of the memory by default, by size and macOS")
        known = replace(
            host.device,
            name=chip,
            vendor=Vendor.APPLE,
            kind=DeviceKind.UNIFIED,
            allocatable=Estimate(*share, Basis.ASSUMED, rule),
        )
    if reading is not None and not isinstance(reading.ceiling_bytes, Missing):
        rule = reading.note or tr("Metal's working set, as this computer states it")
        known = replace(known, allocatable=exactly(reading.ceiling_bytes, Basis.MEASURED, rule))
    outside = known.total_bytes - known.allocatable.likely_bytes
    low, likely, high = (
        max(0, size - outside)
        for size in (host.foreign.low_bytes, host.foreign.likely_bytes, host.foreign.high_bytes)
    )
    foreign = Estimate(low, likely, high, Basis.MEASURED, host.foreign.source)
    return Slot(known, foreign, host.uuid if reading is None else reading.uuid)


def _check_processes(snapshot: TelemetrySnapshot, instead_of: frozenset[int]) -> None:
    for pid in sorted(instead_of):
        found = [size for device in snapshot.devices if (size := _held_by(device, {pid}))]
        if not found:
            message = tr(
                "instead_of: no process {pid} is seen to hold memory here; see plimsoll machine."
            ).format(pid=pid)
            raise DeviceError(message, field="instead_of")


def _held_by(reading: DeviceReading, pids: AbstractSet[int]) -> int:
    if isinstance(reading.processes, Missing):
        return 0
    return _sum(p.used_bytes for p in reading.processes if p.pid in pids)


def _gpu(reading: DeviceReading, total: int, instead_of: frozenset[int]) -> Slot:
    # An exporter's card bears its computer's name, which no catalogue knows.
    name = reading.name.removesuffix(f" @ {reading.machine}")
    known = catalogue.match(name, total)
    is_unified = reading.pool.is_shared
    allocatable = _allocatable(reading, total, known)
    device = Device(
        name=known.name if known else name.removeprefix("NVIDIA "),
        vendor=Vendor(reading.vendor) if reading.vendor in set(Vendor) else Vendor.NVIDIA,
        kind=DeviceKind.UNIFIED if is_unified else DeviceKind.DISCRETE,
        label=known.label if known else "",
        total_bytes=total,
        allocatable=allocatable,
        sm_count=reading.sm_count or (known.sm_count if known else 0),
        compute_capability=reading.compute_capability or (known.compute_capability if known else 0),
        ecc=known.ecc if known else "",
        aliases=(reading.name,),
        source=reading.source,
    )
    foreign = _foreign(reading, total - allocatable.likely_bytes, instead_of)
    return Slot(device, foreign, reading.uuid)


def _allocatable(reading: DeviceReading, total: int, known: Device | None) -> Estimate:
    """What a runtime could get if nothing else ran."""
    if reading.pool is PoolKind.UNIFIED:
        low = max(total - _SYSTEM_ON_UNIFIED_BYTES, total * 3 // 4)
        source = tr(
            "{source}: the computer's memory, of which the system itself needs a part"
        ).format(source=reading.source)
        return Estimate(low, total, total, Basis.MEASURED, source)
    reserved = reading.reserved_bytes
    if not isinstance(reserved, Missing):
        size = max(total - reserved, 0)
        formula = tr("{total} total − {reserved} reserved by the driver").format(
            total=grouped(total), reserved=grouped(reserved)
        )
        source = tr("{source}, total minus the reserve it states").format(source=reading.source)
        low = max(size - _STATED_RESERVE_SLACK_BYTES, 0)
        return Estimate(low, size, size, Basis.MEASURED, source, formula)
    if known is not None:
        shift = total - known.total_bytes
        there = known.allocatable
        return replace(
            there,
            low_bytes=there.low_bytes + shift,
            likely_bytes=there.likely_bytes + shift,
            high_bytes=min(there.high_bytes + shift, total),
        )
    high, likely, low = (max(total - size, 0) for size in _FITTED_RESERVE_BYTES)
    source = tr("{source} states the total only; reserve as on other cards, 300 to 900 MiB").format(
        source=reading.source
    )
    return Estimate(low, likely, high, Basis.FITTED, source)


def _foreign(reading: DeviceReading, reserve_bytes: int, instead_of: frozenset[int]) -> Estimate:
    """What is held now by anyone but ourselves and those whose place the plan takes."""
    used = reading.used_bytes
    if isinstance(used, Missing):
        seen = _seen_of_others(reading, instead_of)
        low, likely, high = (seen + size for size in _UNKNOWN_USE_BYTES)
        rule = tr("not known: {reason}").format(reason=used.reason)
        return Estimate(low, likely, high, Basis.ASSUMED, rule)
    free, total = reading.free_bytes, reading.total_bytes
    is_apart = isinstance(free, int) and isinstance(total, int) and used + free < total
    if isinstance(reading.reserved_bytes, Missing) and not is_apart:
        used -= reserve_bytes  # this driver counts its reserve as used
    others = max(used - own_bytes(reading) - _held_by(reading, instead_of), 0)
    source = tr("{source}, in use now").format(source=reading.source)
    found = exactly(others, Basis.MEASURED, source)
    return replace(found, parts=_holders(reading, others, instead_of, source))


def _seen_of_others(reading: DeviceReading, instead_of: frozenset[int]) -> int:
    """What others are known to hold where nobody tells what is in use: the least that it is."""
    if isinstance(reading.processes, Missing) or isinstance(reading.total_bytes, Missing):
        return 0
    others = (p for p in reading.processes if p.pid not in {*instead_of, os.getpid()})
    known = _sum(p.used_bytes for p in others if p.quality is not Quality.OVER_COUNTS)
    return min(known, reading.total_bytes)


def _holders(
    reading: DeviceReading, others: int, instead_of: frozenset[int], source: str
) -> tuple[Estimate, ...]:
    """Who holds most of it, by name, and the rest; nobody where no single one weighs."""
    if isinstance(reading.processes, Missing):
        return ()
    left_out = {*instead_of, os.getpid(), 0}
    known = [
        (p.used_bytes, p.name)
        for p in reading.processes
        if p.pid not in left_out and isinstance(p.used_bytes, int)
    ]
    large = sorted(one for one in known if one[0] >= _NAMED_FROM_BYTES)[-_MOST_NAMED:][::-1]
    if not large or sum(size for size, _ in large) > others:
        return ()
    rest = others - sum(size for size, _ in large)
    return tuple(
        exactly(size, Basis.MEASURED, source, label=label)
        for size, label in (*large, (rest, tr("the rest")))
    )


def _host(reading: DeviceReading, total: int, instead_of: frozenset[int]) -> Slot:
    """RAM: what the kernel holds outside any process is not to be had, the rest is others'."""
    used = reading.used_bytes
    is_limited = reading.name == "Container"
    reserved = reading.reserved_bytes if isinstance(reading.reserved_bytes, int) else 0
    outside, system = (reserved, 0) if is_limited else (0, reserved)
    if isinstance(used, Missing) or isinstance(reading.processes, Missing):
        kernel = max(system, total // 50)
        others = kernel if isinstance(used, Missing) else max(used - kernel, 0)
        basis = Basis.ASSUMED
    else:
        in_processes = _private_bytes(reading) + mapped.model_bytes(reading.processes)
        kernel = system + max(used - in_processes, 0)
        gone = own_bytes(reading) + _held_by(reading, instead_of)
        others = max(min(in_processes, used) - gone, 0)
        basis = Basis.MEASURED
    size = total - kernel
    allocatable = Estimate(
        low_bytes=max(size - max(kernel, total // 100), 0),
        likely_bytes=size,
        high_bytes=total,
        basis=basis,
        source=tr("{source}: total minus what no process holds (kernel, shared)").format(
            source=reading.source
        ),
        formula=f"{grouped(total)} − {grouped(kernel)}",
    )
    device = Device(
        name=(tr("{total} container") if is_limited else tr("{total} RAM")).format(
            total=format_gib(total, digits=1)
        ),
        vendor=Vendor.CPU,
        kind=DeviceKind.HOST,
        label="",
        total_bytes=total,
        allocatable=allocatable,
        source=tr("{source}. {note}").format(source=reading.source, note=reading.note).strip()
        if is_limited
        else reading.source,
    )
    source = tr("{source}, in use now by other programs").format(source=reading.source)
    return Slot(device, exactly(others + outside, basis, source), reading.uuid)


def _private_bytes(reading: DeviceReading) -> int:
    if isinstance(reading.processes, Missing):
        return 0
    return _sum(p.used_bytes for p in reading.processes)


def _sum(sizes: Iterable[int | Missing]) -> int:
    return sum(size for size in sizes if not isinstance(size, Missing))


def _apple_chip() -> str:
    """``Apple M4 Pro`` on Apple silicon; empty elsewhere."""
    if sys.platform != "darwin" or os.uname().machine != "arm64":
        return ""
    return macos.run(("/usr/sbin/sysctl", "-n", "machdep.cpu.brand_string")).strip()
