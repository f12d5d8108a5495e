"""Whether a GPU sleeps, from sysfs alone: asking its driver would wake it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def sleeping(root: Path, vendor: str) -> str:
    """PCI address of a display device of ``vendor`` in runtime suspend; empty if none sleeps.

    Every NVML call, ``nvmlInit`` first, resumes a suspended card and keeps it awake: the largest
    single complaint about monitors of this kind (nvtop issues 230 and 267, btop 738 and 1838).

    Args:
        root: ``/``, or a made tree in tests.
        vendor: PCI vendor as sysfs writes it, ``0x10de``.
    """
    for folder in sorted((root / "sys/bus/pci/devices").glob("*")):
        try:
            is_vendors = (folder / "vendor").read_text(encoding="ascii").strip() == vendor
            is_display = (folder / "class").read_text(encoding="ascii").startswith("0x03")
            status = (folder / "power/runtime_status").read_text(encoding="ascii").strip()
        except OSError:
            continue
        if is_vendors and is_display and status in {"suspended", "suspending"}:
            return folder.name
    return ""
