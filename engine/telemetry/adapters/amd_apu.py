"""AMD's processors with graphics: which they are, and their carve-out and GTT as one memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engine.telemetry.adapters import drm, kfd
from engine.telemetry.snapshot import DeviceReading, Missing, Part, PoolKind
from engine.units import GIB, MIB, format_gib
from engine.words import tr, tr_later

if TYPE_CHECKING:
    from pathlib import Path

    from engine.telemetry.adapters.second import Told

_APU_IDS: Final = frozenset(
    {
        "0x15dd", "0x15d8",  # Raven, Picasso
        "0x1636", "0x1638", "0x164c",  # Renoir, Cezanne, Lucienne
        "0x163f", "0x1435",  # Van Gogh, Sephiroth
        "0x1681", "0x164e", "0x1506",  # Rembrandt, Raphael, Mendocino
        "0x15bf", "0x15c8", "0x1900", "0x1901",  # Phoenix, Hawk Point
        "0x150e", "0x1586", "0x1114", "0x13c0",  # Strix, Strix Halo, Krackan, Granite Ridge
    }
)  # fmt: skip
"""Device numbers of processors with graphics (PCI ID list). Recent kernels list their CPU and GPU
as two nodes, so that the topology alone no longer tells."""
_APU_RATIO: Final = 8
"""GTT is half of the memory or more, a carve-out little: the last resort (LocalAI PR 12094)."""
_LARGEST_GUESS_BYTES: Final = 4 * GIB
"""Beside 512 GB of memory GTT is eight times what a card of 32 GB has, too."""

_CARVED = tr_later("set aside by the firmware")
_MAPPED = tr_later("system memory used by the GPU")
_OVER_FULL = tr_later("more is counted as used than there is")
_UNCOUNTED = tr_later("amdgpu's counter leaves out {size} that ROCm programs hold.")
_LEAST_UNCOUNTED_BYTES: Final = 256 * MIB


def is_apu(root: Path, card: drm.Card, size: Told) -> bool:
    """Whether the card is a part of a processor: by the topology, its number, or GTT's share."""
    if kfd.has_cores(root, card.address) or card.device_id in _APU_IDS:
        return True
    if drm.text(card.folder / "mem_info_vram_vendor") not in {"", "unknown"}:
        return False  # chips of its own have a maker
    own = size.total_bytes or 0
    return 0 < own <= _LARGEST_GUESS_BYTES and own * _APU_RATIO <= (size.gtt_total_bytes or 0)


def uncounted_bytes(size: Told, compute: dict[int, int]) -> int:
    """What ROCm programs hold and amdgpu's counters leave out.

    On some kernels ``mem_info_gtt_used`` does not move for what ``hipMalloc`` takes (51.75 GiB in
    ROCm issue 5444), while KFD counts it for its process.

    Args:
        size: the counters.
        compute: KFD's bytes by process.
    """
    if size.used_bytes is None or size.gtt_used_bytes is None:
        return 0
    left_out = sum(compute.values()) - size.used_bytes - size.gtt_used_bytes
    return left_out if left_out >= _LEAST_UNCOUNTED_BYTES else 0


def reading(
    card: drm.Card,
    name: str,
    size: Told,
    memory: tuple[int, int],
    uncounted: int,
) -> DeviceReading | None:
    """Carve-out and GTT as one memory: what is carved out, and of the rest what can be had.

    GTT's total is a limit on memory that the system uses too, so adding it would promise 132 GiB
    on a machine of 128 (ROCm issue 6004). What ROCm holds beside the counter is gone from what the
    system calls available, so it counts as mapped.

    Args:
        card: the APU.
        name: how to call it.
        size: amdgpu's counters; None comes of one that isn't there.
        memory: total and available bytes of the computer.
        uncounted: bytes that the counters leave out.
    """
    own, used = size.total_bytes, size.used_bytes
    limit, mapped = size.gtt_total_bytes, size.gtt_used_bytes
    if own is None or used is None or limit is None or mapped is None:
        return None
    parts = (Part(_CARVED, own, used), Part(_MAPPED, limit, mapped + uncounted))
    mapped += uncounted
    # What is mapped is there, even above a limit that was lowered since.
    total = own + max(min(limit, memory[1] + mapped), mapped)
    used += mapped
    free = total - used if used <= total else Missing(_OVER_FULL)
    note = tr(_UNCOUNTED).format(size=format_gib(uncounted)) if uncounted else ""
    return DeviceReading(
        uuid=f"pci-{card.address}",
        pci_address=card.address,
        name=name,
        vendor="AMD",
        pool=PoolKind.CARVE_OUT,
        total_bytes=total,
        used_bytes=used,
        free_bytes=free,
        reserved_bytes=0,
        ceiling_bytes=total,
        available_bytes=free,
        parts=parts,
        processes=(),
        source=size.source,
        note=note,
    )
