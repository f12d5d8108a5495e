"""Whether a GPU sleeps, from sysfs alone: asking its driver would wake it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def sleeping(root: Path, vendor: str) -> str:
    """PCI address of a display device of ``vendor`` in runtime suspend; empty if none sleeps.

    Every NVML call, ``nvmlInit`` first, resumes a suspended card and keeps it awake: the largest
    single complaint about monitors of this kind (nvtop issues 230 and 267, btop 738 and 1838).

    Args:
        root: ``/``, or a made tree in tests.
        vendor: PCI vendor as sysfs writes it, ``0x10de``.
    """
    for address, maker, _, status in displays(root):
        if maker == vendor and status in {"suspended", "suspending"}:
            return address
    return ""


def displays(root: Path) -> Iterator[tuple[str, str, str, str]]:
    """Address, vendor, device and power status of each display device, as sysfs writes them."""
    for folder in sorted((root / "sys/bus/pci/devices").glob("*")):
        if _text(folder / "class").startswith("0x03"):
            status = _text(folder / "power/runtime_status")
            yield folder.name, _text(folder / "vendor"), _text(folder / "device"), status


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""
