"""What a process takes on a device before it holds anything of a model."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from engine.devices.device import DeviceKind, Vendor
from engine.evidence import Basis, Estimate, exactly
from engine.units import MIB

if TYPE_CHECKING:
    from engine.devices.device import Device

_CONTEXT_SOURCE = (
    "fitted to eight readings of bare CUDA contexts on six Linux cards (28 to 188 SM): "
    "36 MiB + 2.8 MiB × SM, within 7 %"
)


def context(device: Device) -> Estimate:
    """The device context of one process."""
    return _context(device.vendor, device.kind, device.sm_count)


@lru_cache(maxsize=256)
def _context(vendor: Vendor, kind: DeviceKind, sm_count: int) -> Estimate:
    if kind is DeviceKind.HOST or vendor is Vendor.APPLE:
        return exactly(0, Basis.EXACT, "no device context", label="context")
    if vendor is Vendor.NVIDIA and sm_count:
        likely = round((36 + 2.8 * sm_count) * MIB)
        formula = f"36 + 2.8 × {sm_count} SM = {likely / MIB:,.0f} MiB"
        return Estimate(
            likely * 4 // 5, likely, likely * 11 // 10, Basis.FITTED, _CONTEXT_SOURCE, formula,
            "CUDA context",
        )  # fmt: skip
    if vendor is Vendor.AMD:
        return _assumed(160, 255, 350, "read on three Radeon cards under ROCm", "HIP context")
    if vendor is Vendor.INTEL:
        return _assumed(100, 300, 1370, "one reading on Intel graphics", "context")
    return _assumed(110, 300, 610, "SM count not known; small and large cards", "CUDA context")


def _assumed(low: int, likely: int, high: int, source: str, label: str) -> Estimate:
    return Estimate(
        low * MIB, likely * MIB, high * MIB, Basis.ASSUMED, source, f"{likely} MiB", label
    )
