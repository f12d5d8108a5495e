"""The system a plan runs on: what it keeps of a device, and which builds there are for it."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from engine.devices.device import DeviceKind, Vendor
from engine.errors import DeploymentError
from engine.evidence import Basis, Estimate, exactly
from engine.units import GIB, MIB
from engine.words import figures, grouped, tr, tr_later

if TYPE_CHECKING:
    from engine.deployment.spec import Deployment
    from engine.devices.device import Device, Machine, Slot

_INSIDE_WINDOWS = ("windows", "wsl")
_OF_VENDOR = {
    Vendor.NVIDIA: ("cuda", "vulkan"),
    Vendor.AMD: ("rocm", "vulkan"),
    Vendor.INTEL: ("sycl", "vulkan"),
    Vendor.APPLE: ("metal", "vulkan"),
    Vendor.CPU: ("cpu",),
}
"""Builds of llama.cpp by maker of the device, the usual one first."""
_WINDOWS_SOURCE = tr_later(
    "ten cards under Windows, 3050 to 5090: 990 to 2,276 MiB not to be had "
    "before anything loads, 950 MiB + 2 % of the card"
)
_WSL_SOURCE = tr_later("two 24 GiB cards under WSL: 22.45 and 22.75 GiB free at start")


def platform_of(deployment: Deployment, machine: Machine) -> str:
    """``linux``, ``windows``, ``wsl`` or ``macos``: as asked, as this machine is, by device.

    Raises:
        DeploymentError: Apple's GPU under another system, or another's under macOS.
    """
    asked = deployment.platform
    vendors = {slot.device.vendor for slot in machine.slots}
    on_apple = Vendor.APPLE in vendors
    if asked is None:
        return machine.platform or ("macos" if on_apple else "linux")
    if on_apple and asked != "macos":
        message = tr("Apple's GPU computes under macOS only, not under {asked}.").format(
            asked=asked
        )
        raise DeploymentError(message, field="platform")
    if asked == "macos" and not vendors <= {Vendor.APPLE, Vendor.CPU}:
        message = tr("macOS has no driver for {name}; linux or windows has.").format(
            name=machine.slots[0].device.name
        )
        raise DeploymentError(message, field="platform")
    return asked


def backend_of(deployment: Deployment, device: Device) -> str:
    """Which build of llama.cpp (or of a relative) computes on ``device``.

    Any build computes on the host, and without a GPU every build does.

    Raises:
        DeploymentError: the build asked for has no code for this device.
    """
    works = _OF_VENDOR[Vendor.CPU if device.kind is DeviceKind.HOST else device.vendor]
    asked = deployment.backend
    if asked is None:
        return works[0]
    if asked not in works and not (asked == "cpu" or works == ("cpu",)):
        message = tr("backend {asked} doesn't run on {name}; {names} does.").format(
            asked=asked, name=device.name, names=" or ".join(works)
        )
        raise DeploymentError(message, field="backend")
    return asked if asked in works else "cpu"


def on_platform(machine: Machine, platform: str) -> Machine:
    """``machine`` with what ``platform`` keeps of its GPUs counted as held by others.

    Under Windows a process sees the whole card as its total, and has less; Linux and macOS keep
    what the device's own load line says.
    """
    return _inside_windows(machine, platform) if platform in _INSIDE_WINDOWS else machine


@lru_cache(maxsize=64)
def _inside_windows(machine: Machine, platform: str) -> Machine:
    return replace(
        machine, slots=tuple(_under_windows(s, machine, platform) for s in machine.slots)
    )


def _under_windows(slot: Slot, machine: Machine, platform: str) -> Slot:
    device = slot.device
    if device.kind is not DeviceKind.DISCRETE:
        return slot
    kept = unavailable(device, platform)
    if machine.is_here and slot.foreign.likely_bytes >= kept.likely_bytes:
        return slot
    whole = exactly(device.total_bytes, Basis.ASSUMED, tr("Windows states the whole card as total"))
    return replace(slot, device=replace(device, allocatable=whole), foreign=kept)


def unavailable(device: Device, platform: str) -> Estimate:
    """What cannot be had of a card under ``platform`` before anything loads, desktop included."""
    return _unavailable(device.total_bytes, platform)


@lru_cache(maxsize=64)
def _unavailable(total_bytes: int, platform: str) -> Estimate:
    if platform not in _INSIDE_WINDOWS:
        return exactly(0, Basis.EXACT, tr("counted in the device's load line"))
    likely = 950 * MIB + total_bytes // 50
    formula = tr("950 MiB + 2 % of {total_bytes} GiB = {likely} MiB").format(
        total_bytes=figures(format(total_bytes / GIB, ".2f")), likely=grouped(likely // MIB)
    )
    if platform == "wsl":
        return Estimate(
            likely * 6 // 7,
            likely,
            likely * 11 // 10,
            Basis.FITTED,
            tr(_WSL_SOURCE),
            formula,
            "WSL",
        )
    return Estimate(
        likely * 5 // 6,
        likely,
        likely * 29 // 20,
        Basis.FITTED,
        tr(_WINDOWS_SOURCE),
        formula,
        "Windows",
    )
