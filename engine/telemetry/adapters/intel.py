"""Intel GPUs through the kernel: memory regions by ioctl (xe, i915), processes from fdinfo.

Without ``CAP_PERFMON`` the kernel says that all memory is free: a false zero, which is told from a
true one by what processes hold or by a display that is being driven (level-zero issue 133).
"""

from __future__ import annotations

import os
import struct
import time
from array import array
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from engine.telemetry.adapters import drm
from engine.telemetry.snapshot import (
    DeviceReading,
    Missing,
    PoolKind,
    ProcessReading,
    Quality,
)
from engine.words import tr_later

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_PCI_VENDOR = "0x8086"
_HELD_EVERY_S = 2.0
_NAMES: Final = {
    "0x56a0": "Intel Arc A770", "0x56a1": "Intel Arc A750", "0x56a2": "Intel Arc A580",
    "0x56a5": "Intel Arc A380", "0x56a6": "Intel Arc A310",
    "0x5690": "Intel Arc A770M", "0x5691": "Intel Arc A730M", "0x5692": "Intel Arc A550M",
    "0x5693": "Intel Arc A370M", "0x5694": "Intel Arc A350M",
    "0xe20b": "Intel Arc B580", "0xe20c": "Intel Arc B570",
    "0xe211": "Intel Arc Pro B60", "0xe212": "Intel Arc Pro B50",
    "0x56c0": "Intel Data Center GPU Flex 170", "0x56c1": "Intel Data Center GPU Flex 140",
    "0x0bd5": "Intel Data Center GPU Max 1550", "0x0bda": "Intel Data Center GPU Max 1100",
}  # fmt: skip
"""Device numbers of Intel's cards (PCI ID list)."""

_XE_QUERY = 0xC0286440
"""``DRM_IOWR(0x40 + DRM_XE_DEVICE_QUERY, struct of 40 bytes)``"""
_XE_MEM_REGIONS = 1
_I915_QUERY = 0xC0106479
"""``DRM_IOWR(0x40 + DRM_I915_QUERY, struct of 16 bytes)``"""
_I915_MEM_REGIONS = 4
_MOST_BYTES = 64 * 1024
_REGION_BYTES = 88

_ASLEEP = tr_later("asleep, and not woken to be measured")
_NO_DRIVER = tr_later("its driver (xe or i915) states no memory")
_FALSE_ZERO = tr_later("the kernel tells what is in use only with the right CAP_PERFMON")
_IN_SYSTEM = tr_later("This GPU uses the computer's memory; it has none of its own.")
_KEPT = tr_later("not told apart by this driver")


@dataclass(frozen=True, slots=True)
class Region:
    """One memory that the driver lists."""

    is_local: bool
    """The card's own, not the system's."""
    total_bytes: int
    used_bytes: int


class IntelAdapter:
    """All Intel GPUs, cards and processor graphics."""

    name = "Intel"

    def __init__(
        self,
        root: Path = Path("/"),
        clock: Callable[[], float] = time.monotonic,
        regions: Callable[[drm.Card, Path], tuple[Region, ...]] | None = None,
    ) -> None:
        """Nothing is read before the first sample.

        Args:
            root: ``/``, or a made tree in tests.
            clock: tells seconds.
            regions: asks a card's driver for its memories.
        """
        self._root = root
        self._clock = clock
        self._regions = regions or ask
        self._held: dict[str, dict[int, drm.Holding]] = {}
        self._held_at: float | None = None

    def sample(self) -> tuple[DeviceReading, ...]:
        """One reading per GPU, by place on the bus."""
        cards = tuple(drm.cards(self._root, _PCI_VENDOR))
        now = self._clock()
        is_due = self._held_at is None or now - self._held_at >= _HELD_EVERY_S
        if is_due and not all(card.is_asleep for card in cards):
            self._held, self._held_at = drm.holdings(self._root), now
        return tuple(self._read(card) for card in cards)

    def close(self) -> None:
        """Nothing is held."""

    def _read(self, card: drm.Card) -> DeviceReading:
        if card.is_asleep:
            return _silent(card, _ASLEEP)
        held = self._held.get(card.address, {})
        regions = self._regions(card, self._root)
        local = [region for region in regions if region.is_local]
        if local:
            return _card(card, local, held, _root_counter(self._root, card))
        if any(not region.is_local for region in regions):
            return _integrated(self._root, card, held)
        return _silent(card, _NO_DRIVER)


def ask(card: drm.Card, root: Path) -> tuple[Region, ...]:
    """The memories that the driver of ``card`` lists; none where it can't be asked."""
    nodes = sorted((card.folder / "drm").glob("renderD*"))
    if not nodes:
        return ()
    try:
        node = os.open(root / "dev/dri" / nodes[0].name, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return ()
    try:
        if card.driver == "xe":
            return xe_regions(_xe_answer(node))
        return i915_regions(_i915_answer(node))
    except OSError:
        return ()
    finally:
        os.close(node)


def xe_regions(answer: bytes) -> tuple[Region, ...]:
    """What ``DRM_XE_DEVICE_QUERY_MEM_REGIONS`` answers (kernel header xe_drm.h).

    Shapes:
        ``answer``: a count and padding (2 × u32), then 88 bytes a region: class and instance
        (u16), smallest page (u32), total and used (u64), the rest not read. Class 1 is VRAM.
    """
    return _regions(answer, header=8, layout="<HHIQQ", is_used=True)


def i915_regions(answer: bytes) -> tuple[Region, ...]:
    """What ``DRM_I915_QUERY_MEMORY_REGIONS`` answers (kernel header i915_drm.h).

    Shapes:
        ``answer``: a count and three reserved (4 × u32), then 88 bytes a region: class and
        instance (u16), reserved (u32), probed and unallocated size (u64), the rest not read.
        Class 1 is the device's own.
    """
    return _regions(answer, header=16, layout="<HHIQQ", is_used=False)


def _regions(answer: bytes, header: int, layout: str, *, is_used: bool) -> tuple[Region, ...]:
    if len(answer) < header:
        return ()
    (count,) = struct.unpack_from("<I", answer)
    found: list[Region] = []
    for at in range(min(count, (len(answer) - header) // _REGION_BYTES)):
        kind, _, _, total, rest = struct.unpack_from(layout, answer, header + at * _REGION_BYTES)
        found.append(Region(kind == 1, total, rest if is_used else total - min(rest, total)))
    return tuple(found)


def _xe_answer(node: int) -> bytes:
    """Asked twice: for the size, then with room for it."""
    import fcntl

    query = bytearray(struct.pack("<QIIQQQ", 0, _XE_MEM_REGIONS, 0, 0, 0, 0))
    fcntl.ioctl(node, _XE_QUERY, query)
    (size,) = struct.unpack_from("<I", query, 12)
    room, place = _room(size)
    struct.pack_into("<QIIQ", query, 0, 0, _XE_MEM_REGIONS, len(room), place)
    fcntl.ioctl(node, _XE_QUERY, query)
    return room.tobytes()


def _i915_answer(node: int) -> bytes:
    import fcntl

    item = array("B", struct.pack("<QiIQ", _I915_MEM_REGIONS, 0, 0, 0))
    query = bytearray(struct.pack("<IIQ", 1, 0, item.buffer_info()[0]))
    fcntl.ioctl(node, _I915_QUERY, query)
    (size,) = struct.unpack_from("<i", item, 8)
    room, place = _room(size)
    struct.pack_into("<QiIQ", item, 0, _I915_MEM_REGIONS, len(room), 0, place)
    fcntl.ioctl(node, _I915_QUERY, query)
    return room.tobytes()


def _room(size: int) -> tuple[array[int], int]:
    """Memory for an answer of ``size`` bytes, and where it lies."""
    room = array("B", bytes(max(0, min(size, _MOST_BYTES))))
    return room, room.buffer_info()[0]


def _root_counter(root: Path, card: drm.Card) -> int | None:
    """What xe counts as used, in debugfs; for the superuser alone."""
    used = 0
    files = list((root / "sys/kernel/debug/dri" / card.address).glob("tile*/vram_mm"))
    for file in files:
        stated = [line.split() for line in drm.text(file).splitlines()]
        usage = [words[1] for words in stated if words[:1] == ["usage:"] and len(words) == 2]
        if not usage or not usage[0].isdigit():
            return None
        used += int(usage[0])
    return used if files else None


def _card(
    card: drm.Card,
    local: list[Region],
    held: dict[int, drm.Holding],
    counted: int | None,
) -> DeviceReading:
    total = sum(region.total_bytes for region in local)
    stated = counted if counted is not None else sum(region.used_bytes for region in local)
    rows = tuple(_processes(held, own=("vram", "local", "stolen-local"), beside=("system", "gtt")))
    is_false = stated == 0 and counted is None and (card.drives_display or bool(rows))
    used = Missing(_FALSE_ZERO) if is_false else stated
    return DeviceReading(
        uuid=f"pci-{card.address}",
        pci_address=card.address,
        name=_name(card),
        vendor="Intel",
        pool=PoolKind.VRAM,
        total_bytes=total,
        used_bytes=used,
        free_bytes=used if isinstance(used, Missing) else total - used,
        reserved_bytes=Missing(_KEPT),
        ceiling_bytes=total,
        processes=rows,
        source=f"{card.driver} kernel driver",
        note=_FALSE_ZERO if is_false else "",
    )


def _integrated(root: Path, card: drm.Card, held: dict[int, drm.Holding]) -> DeviceReading:
    """Graphics without memory of their own: the system's figures, the driver's process list."""
    memory = drm.system_memory(root)
    if memory is None:
        return _silent(card, _NO_DRIVER, PoolKind.WINDOW)
    total, available = memory
    return DeviceReading(
        uuid=f"pci-{card.address}",
        pci_address=card.address,
        name=_name(card),
        vendor="Intel",
        pool=PoolKind.WINDOW,
        total_bytes=total,
        used_bytes=total - available,
        free_bytes=available,
        reserved_bytes=0,
        available_bytes=available,
        processes=tuple(_processes(held, own=("system", "gtt", "stolen-system"), beside=())),
        source=f"{card.driver} kernel driver",
        note=_IN_SYSTEM,
    )


def _processes(
    held: dict[int, drm.Holding], own: tuple[str, ...], beside: tuple[str, ...]
) -> Iterator[ProcessReading]:
    rows = [
        ProcessReading(
            pid=holding.pid,
            name=holding.name,
            used_bytes=sum(holding.regions.get(region, 0) for region in own),
            command=holding.command,
            quality=Quality.OVER_COUNTS if holding.is_shared else Quality.RESIDENT,
            spill_bytes=sum(holding.regions.get(region, 0) for region in beside)
            if beside
            else Missing(_IN_SYSTEM),
        )
        for holding in held.values()
    ]
    yield from sorted(rows, key=drm.largest)


def _silent(card: drm.Card, reason: str, pool: PoolKind = PoolKind.VRAM) -> DeviceReading:
    source = f"{card.driver or 'PCI'} kernel driver"
    return drm.silent(card, _name(card), "Intel", source, reason, pool)


def _name(card: drm.Card) -> str:
    return _NAMES.get(card.device_id, f"Intel GPU {card.device_id.removeprefix('0x')}")
