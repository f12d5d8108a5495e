"""What exporters state of memory, as readings: DCGM, nvidia_gpu_exporter, node_exporter, macmon.

DCGM counts in MiB and leaves out the total; older lists of fields leave out the reserve as well, so
that used + free falls short by it (dcgm-exporter issues 83, 136 and 271).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

from engine.telemetry.adapters import pci
from engine.telemetry.snapshot import DeviceReading, Missing, PoolKind
from engine.units import MIB
from engine.words import tr, tr_later

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from engine.telemetry.prometheus_text import Page, Sample

    SizeOf = Callable[[str, int], int | None]
    """A card's total by its name and what is known to be on it; None where no table has it."""

_Key = TypeVar("_Key")
_DCGM: Final = "DCGM_FI_DEV_FB_"
_SMI: Final = "nvidia_smi_memory_"
METRICS: Final = (
    *(f"{_DCGM}{field}" for field in ("USED", "FREE", "RESERVED", "TOTAL")),
    *(f"{_SMI}{field}_bytes" for field in ("used", "free", "reserved", "total")),
    "nvidia_smi_gpu_info",
    "node_memory_MemTotal_bytes",
    "node_memory_MemAvailable_bytes",
    "node_memory_total_bytes",
    "node_memory_internal_bytes",
    "node_memory_purgeable_bytes",
    "node_memory_wired_bytes",
    "node_memory_compressed_bytes",
    "macmon_memory_ram_total_bytes",
    "macmon_memory_ram_used_bytes",
)
"""All that is read: what a Prometheus server is asked for."""

_TOO_LARGE_BYTES = 2.0**48
"""256 TiB, which no computer has. DCGM's blanks are more: 2^31, 2^47 and 2^63 MiB, less a few."""
_NOT_EXPORTED = tr_later("not exported")
_NO_RESERVE = tr_later("reserved not exported")
_NO_PROCESSES = tr_later("the exporter names no processes")
_CONTRADICTION = tr_later("the driver's figures contradict each other")
_NO_TOTAL = tr_later("the driver states a total of 0")
_SHORT = tr_later("Reserved memory is not exported, so the total falls short by it.")


def readings(page: Page, size_of: SizeOf, place: str) -> tuple[DeviceReading, ...]:
    """Every device that the samples tell of; machines apart, GPUs first.

    Args:
        page: the samples, of one exporter or of a whole Prometheus server.
        size_of: knows the totals of cards.
        place: where the samples come from, for the devices' source.
    """
    # A server may have several exporters of one card; its serial is one wherever it is told.
    cards: dict[str, DeviceReading] = {}
    for card in _dcgm(page, size_of, place):
        cards.setdefault(_serial(card), card)
    known = {serial.partition("/")[0] for serial in cards}
    for card in _smi(page, place):
        if _serial(card) not in known:
            cards.setdefault(_serial(card), card)
    return (*cards.values(), *_hosts(page, place))


def _serial(card: DeviceReading) -> str:
    """``gpu-…`` and a slice's number without the machine's name; the whole where there is none."""
    _, is_there, serial = card.uuid.lower().rpartition("gpu-")
    return f"gpu-{serial}" if is_there else card.uuid


def _dcgm(page: Page, size_of: SizeOf, place: str) -> Iterator[DeviceReading]:
    fields = ("USED", "FREE", "RESERVED", "TOTAL")
    found = _grouped(page, {f"{_DCGM}{field}": field for field in fields}, _dcgm_key)
    cut = {(machine, uuid) for machine, uuid, part in found if part}
    for (machine, uuid, part), (labels, sizes) in found.items():
        if not part and (machine, uuid) in cut:
            continue  # the card behind the slices
        name = labels.get("modelName") or "NVIDIA GPU"
        profile = labels.get("GPU_I_PROFILE", "")
        stated = _Stated(
            machine,
            uuid=f"{uuid}/{part}" if part else uuid,
            name=f"{name} MIG {profile or part}" if part else name,
            sizes={field: size * MIB for field, size in sizes.items()},
            source=f"DCGM {place}",
            pci_address=pci.as_in_sysfs(labels.get("pci_bus_id", "")),
            computer=_computer(labels),
        )
        yield _card(stated, None if part else size_of)


def _dcgm_key(labels: Mapping[str, str]) -> tuple[str, str, str]:
    machine = labels.get("Hostname") or labels.get("instance", "")
    return machine, labels.get("UUID") or labels.get("gpu", ""), labels.get("GPU_I_ID", "")


def _smi(page: Page, place: str) -> Iterator[DeviceReading]:
    fields = ("used", "free", "reserved", "total")
    wanted = {f"{_SMI}{field}_bytes": field.upper() for field in fields}
    names = {
        (sample.labels.get("instance", ""), sample.labels.get("uuid", "")): sample.labels
        for sample in page.named("nvidia_smi_gpu_info")
    }
    for (machine, uuid), (labels, sizes) in _grouped(
        page, wanted, lambda labels: (labels.get("instance", ""), labels.get("uuid", ""))
    ).items():
        info = names.get((machine, uuid), {})
        name = info.get("name") or "NVIDIA GPU"
        serial = uuid if uuid.upper().startswith("GPU") else f"GPU-{uuid}"
        source, computer = f"nvidia_gpu_exporter {place}", _computer(labels)
        yield _card(_Stated(machine, serial, name, sizes, source, computer=computer), None)


@dataclass(frozen=True, slots=True)
class _Stated:
    """What an exporter says of one card; sizes by field, those it doesn't know left out."""

    machine: str
    uuid: str
    name: str
    sizes: Mapping[str, int]
    source: str
    pci_address: str = ""
    computer: str = ""


def _card(stated: _Stated, size_of: SizeOf | None) -> DeviceReading:
    machine, sizes = stated.machine, stated.sizes
    none = Missing(tr(_NOT_EXPORTED))
    used, free = sizes.get("USED"), sizes.get("FREE")
    reserved, total = sizes.get("RESERVED"), sizes.get("TOTAL")
    note = ""
    if not total and not used and not free and "USED" in sizes:
        # A part that shares the computer's memory (GB10), or a card that is lost.
        none, note = Missing(tr(_NO_TOTAL)), tr(_NO_TOTAL)
        used = free = reserved = total = None
    if used is not None and free is not None:
        if total is None and reserved is not None:
            total = used + free + reserved
        elif total is None:
            total = size_of(stated.name, used + free) if size_of else None
            note = "" if total else tr(_SHORT)
            total = total or used + free
    if total is not None and sum(filter(None, (used, free, reserved))) > total + 3 * MIB:
        note = tr(_CONTRADICTION)
    ceiling = used + free if used is not None and free is not None else none
    return DeviceReading(
        uuid=f"{machine}/{stated.uuid}" if machine else stated.uuid,
        name=f"{stated.name} @ {machine}" if machine else stated.name,
        pool=PoolKind.VRAM,
        total_bytes=none if total is None else total,
        used_bytes=none if used is None else used,
        free_bytes=none if free is None else free,
        reserved_bytes=Missing(tr(_NO_RESERVE)) if reserved is None else reserved,
        processes=Missing(tr(_NO_PROCESSES)),
        source=stated.source,
        note=note,
        ceiling_bytes=ceiling,
        vendor="NVIDIA",
        machine=stated.computer,
        pci_address=stated.pci_address,
    )


def _hosts(page: Page, place: str) -> Iterator[DeviceReading]:
    fields = {
        "node_memory_MemTotal_bytes": "total",
        "node_memory_MemAvailable_bytes": "available",
        "node_memory_total_bytes": "total",
        "node_memory_internal_bytes": "internal",
        "node_memory_purgeable_bytes": "purgeable",
        "node_memory_wired_bytes": "wired",
        "node_memory_compressed_bytes": "compressed",
        "macmon_memory_ram_total_bytes": "total",
        "macmon_memory_ram_used_bytes": "used",
    }
    for machine, (labels, sizes) in _grouped(page, fields, lambda x: x.get("instance", "")).items():
        total, available = sizes.get("total"), sizes.get("available")
        if total is not None and "used" in sizes:
            available = total - sizes["used"]
        if total is not None and available is None and "internal" in sizes:
            # macOS, as Activity Monitor counts: apps, wired, compressed
            apps = sizes["internal"] - sizes.get("purgeable", 0)
            available = total - apps - sizes.get("wired", 0) - sizes.get("compressed", 0)
        none = Missing(tr(_NOT_EXPORTED))
        if total is not None and available is not None and not 0 <= available <= total:
            none, available = Missing(tr(_CONTRADICTION)), None
        used = None if total is None or available is None else total - available
        yield DeviceReading(
            uuid=f"{machine}/host" if machine else "host",
            name=machine or labels.get("chip") or "Computer",
            pool=PoolKind.HOST,
            total_bytes=none if total is None else total,
            used_bytes=none if used is None else used,
            free_bytes=none if available is None else available,
            reserved_bytes=0,
            processes=Missing(tr(_NO_PROCESSES)),
            source=f"{'macmon' if 'used' in sizes else 'node_exporter'} {place}",
            machine=_computer(labels),
        )


def _grouped(
    page: Page, fields: Mapping[str, str], key_of: Callable[[Mapping[str, str]], _Key]
) -> dict[_Key, tuple[Mapping[str, str], dict[str, int]]]:
    """The labels and sizes of each device, by field; blank values are left out."""
    found: dict[_Key, tuple[Mapping[str, str], dict[str, int]]] = {}
    for sample in page.named(*fields):
        size = _size(sample)
        _, sizes = found.setdefault(key_of(sample.labels), (sample.labels, {}))
        if size is not None:
            # A card that several pods share is listed once for each of them.
            sizes.setdefault(fields[sample.name], size)
    return found


def _size(sample: Sample) -> int | None:
    """A value as a size; None for what exporters write where they know none."""
    limit = _TOO_LARGE_BYTES / (MIB if sample.name.startswith(_DCGM) else 1)
    # Neither NaN nor infinite.
    return int(sample.value) if 0 <= sample.value < limit else None


def _computer(labels: Mapping[str, str]) -> str:
    """What the exporters of one computer have in common: the host that each is asked at."""
    instance = labels.get("instance", "")
    host, _, port = instance.rpartition(":")
    return (host if port.isdigit() else instance) or labels.get("Hostname", "")
