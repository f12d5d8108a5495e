"""AMD's compute driver (KFD): which GPU is a processor's, and what ROCm programs hold."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from engine.telemetry.adapters import drm

if TYPE_CHECKING:
    from pathlib import Path

_NODES = "sys/class/kfd/kfd/topology/nodes"


def has_cores(root: Path, address: str) -> bool:
    """Whether the GPU at ``address`` and processor cores are one node, as on an APU.

    Args:
        root: ``/``, or a made tree in tests.
        address: place on the bus, ``0000:c5:00.0``.
    """
    location = _location(address)
    for node in (root / _NODES).glob("*"):
        facts = _properties(node)
        if location is not None and (facts.get("domain", 0), facts.get("location_id")) == location:
            return bool(facts.get("simd_count", 0) and facts.get("cpu_cores_count", 0))
    return False


def compute_bytes(root: Path) -> dict[str, dict[int, int]]:
    """What ROCm programs hold by card and process: the kernel keeps it apart from graphics."""
    addresses: dict[str, str] = {}
    for node in (root / _NODES).glob("*"):
        gpu, facts = drm.text(node / "gpu_id"), _properties(node)
        place = facts.get("location_id")
        if gpu not in {"", "0"} and place is not None:
            bus = f"{place >> 8:02x}:{place >> 3 & 31:02x}.{place & 7}"
            addresses[gpu] = f"{facts.get('domain', 0):04x}:{bus}"
    held: dict[str, dict[int, int]] = {}
    for process in (root / "sys/class/kfd/kfd/proc").glob("[0-9]*"):
        for gpu, address in addresses.items():
            size = drm.number(process / f"vram_{gpu}")
            if size:
                held.setdefault(address, {})[int(process.name)] = size
    return held


def _location(address: str) -> tuple[int, int] | None:
    found = re.fullmatch(r"([0-9a-f]{4,8}):([0-9a-f]{2}):([0-9a-f]{2})\.([0-7])", address)
    if not found:
        return None
    domain, bus, device, function = (int(part, 16) for part in found.groups())
    return domain, bus << 8 | device << 3 | function


def _properties(node: Path) -> dict[str, int]:
    facts: dict[str, int] = {}
    for line in drm.text(node / "properties").splitlines():
        key, _, value = line.partition(" ")
        if value.strip().isdecimal():
            facts[key] = int(value)
    return facts
