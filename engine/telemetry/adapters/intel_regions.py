"""Memories of an Intel GPU as its driver lists them, by the kernel's ioctls (xe, i915)."""

from __future__ import annotations

import os
import struct
from array import array
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from engine.telemetry.adapters import drm

_XE_QUERY = 0xC0286440
"""``DRM_IOWR(0x40 + DRM_XE_DEVICE_QUERY, struct of 40 bytes)``"""
_XE_MEM_REGIONS = 1
_I915_QUERY = 0xC0106479
"""``DRM_IOWR(0x40 + DRM_I915_QUERY, struct of 16 bytes)``"""
_I915_MEM_REGIONS = 4
_MOST_BYTES = 64 * 1024
_REGION_BYTES = 88
_LARGEST_BYTES = 2**50


@dataclass(frozen=True, slots=True)
class Region:
    """One memory that the driver lists."""

    is_local: bool
    """The card's own, not the system's."""
    total_bytes: int
    """0 where the driver doesn't know."""
    used_bytes: int


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
        total = total if total < _LARGEST_BYTES else 0  # −1 means "unknown"
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
