"""What Metal and macOS allow: the working set, the single buffer, and devices without Metal."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.architecture.spec import Direction, Doubt, Subject
from engine.devices.device import DeviceKind, Vendor
from engine.errors import DeploymentError
from engine.units import format_gib
from engine.words import tr, tr_later

if TYPE_CHECKING:
    from engine.devices.device import Device, Machine

_WARNED_SHARE = 0.9
"""Of the working set; beyond it mlx-lm prints a warning (``generate.py :: wired_limit``)."""
_BUFFER_SHARE = 0.75
"""Of the default working set: Metal's ``maxBufferLength``, seen at 48, 64, 128 and 256 GB. It
stays when iogpu.wired_limit_mb is raised."""
_FIRST_WITH_MATRIX_UNITS = 5
_ELSEWHERE = {
    Vendor.NVIDIA: tr_later(
        "MLX has a CUDA build, whose attention kernels and "
        "allocator are not known here: counted by the rules of "
        "Metal"
    ),
    Vendor.CPU: tr_later(
        "MLX has a CPU build, which computes attention without a "
        "kernel of its own: counted by the rules of Metal"
    ),
}


@dataclass(frozen=True, slots=True)
class Chip:
    """What of a chip changes MLX's work."""

    is_m5: bool
    """Whether it has matrix units, for which MLX has further kernels."""
    is_small: bool
    """Whether it is neither Pro nor Max nor Ultra: its command buffers are smaller."""


def chip(device: Device) -> Chip:
    """The chip that a device is, by its name in the catalogue."""
    found = re.match(r"(?:Apple )?M(\d+)(?: (Pro|Max|Ultra))?", device.name)
    if device.vendor is not Vendor.APPLE or found is None:
        return Chip(is_m5=False, is_small=False)
    return Chip(is_m5=int(found[1]) >= _FIRST_WITH_MATRIX_UNITS, is_small=found[2] is None)


def check(machine: Machine) -> None:
    """Refuse a device that no build of MLX computes on.

    Raises:
        DeploymentError: an AMD or Intel GPU.
    """
    for slot in machine.slots:
        device = slot.device
        if device.kind is not DeviceKind.HOST and device.vendor in (Vendor.AMD, Vendor.INTEL):
            message = tr("MLX has no build for {name}; llama.cpp has.").format(name=device.name)
            raise DeploymentError(message, field="runtime")


def doubts(device: Device) -> tuple[Doubt, ...]:
    """What is not known where there is no Metal."""
    if device.vendor is Vendor.APPLE and device.kind is not DeviceKind.HOST:
        return ()
    vendor = Vendor.CPU if device.kind is DeviceKind.HOST else device.vendor
    return (Doubt(Subject.ACTIVATIONS, tr(_ELSEWHERE[vendor]), Direction.EITHER),)


def warnings(device: Device, weights_bytes: int, largest_bytes: int) -> list[str]:
    """What mlx-lm says of weights that nearly fill the working set, and of a huge buffer."""
    if device.vendor is not Vendor.APPLE:
        return []
    found: list[str] = []
    allowed = device.allocatable
    if weights_bytes > _WARNED_SHARE * allowed.likely_bytes:
        found.append(
            tr(
                "mlx-lm warns that this is slow: {weights_bytes} of weights "
                "are more than 0.9 × the {likely_bytes} that macOS lets the "
                "GPU wire."
            ).format(
                weights_bytes=format_gib(weights_bytes),
                likely_bytes=format_gib(allowed.likely_bytes),
            )
        )
    least = _BUFFER_SHARE * allowed.low_bytes
    if largest_bytes > least and not refusals(device, largest_bytes):
        found.append(
            tr(
                "A single buffer of {largest_bytes} is asked for; under older "
                "macOS Metal takes none above {least}. A smaller "
                "prefill_step_size makes it smaller."
            ).format(largest_bytes=format_gib(largest_bytes), least=format_gib(round(least)))
        )
    return found


def refusals(device: Device, largest_bytes: int) -> list[str]:
    """Why Metal rejects a buffer though there is memory."""
    if device.vendor is not Vendor.APPLE:
        return []
    most = round(_BUFFER_SHARE * device.allocatable.high_bytes)
    if largest_bytes <= most:
        return []
    told = tr(
        "A single buffer of {largest_bytes} is asked for; Metal takes none "
        "above {most} here. A smaller prefill_step_size makes it smaller."
    ).format(largest_bytes=format_gib(largest_bytes), most=format_gib(most))
    return [told]
