"""Which other devices a plan is shown on: few, in use today, and each for a reason.

The rule: one size below the plan's own and two above, of the same maker; and of every maker the
smallest that the plan fits on. Below is left out where the plan does not fit as it is.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from engine.devices import catalogue
from engine.devices.device import DeviceKind, Vendor
from engine.errors import DeploymentError
from engine.fit.verdict import Fit
from engine.sizing import size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.deployment.spec import Deployment
    from engine.devices.device import Device
    from engine.sizing import Sizing

USUAL = (
    "RTX 5060", "RTX 5070", "RTX 5080", "RTX 4090", "RTX 5090", "L40S", "H100 SXM 80GB",
    "RTX PRO 6000 Blackwell", "H200", "B200", "B300",
    "RX 7600", "RX 7700 XT", "RX 9070 XT", "RX 7900 XTX", "Radeon AI PRO R9700",
    "Radeon PRO W7900", "Ryzen AI Max+ 395 128 GB", "MI300X", "MI325X", "MI355X",
    "Arc B570", "Arc B580", "Arc Pro B50", "Arc Pro B60", "Arc Pro B70",
    "M5 16 GB", "M5 24 GB", "M5 32 GB", "M5 Pro 48 GB", "M5 Max 64 GB", "M3 Ultra 96 GB",
    "M5 Max 128 GB", "M3 Ultra 256 GB", "M3 Ultra 512 GB",
)  # fmt: skip
"""One for each size that a maker sells or that is most met with: a choice of ours, not a count."""
_ABOVE = 2


def others(sizing: Sizing, plan: Deployment) -> list[tuple[Device, Sizing]]:
    """The devices beside the plan's own, the smallest first, each with what the plan is there."""
    machine = sizing.budget.machine
    own, count = machine.slots[0].device, len(machine.slots)
    if own.kind is DeviceKind.HOST:
        return []
    chosen: dict[str, tuple[Device, Sizing]] = {}
    for vendor in Vendor:
        there = list(_usual(vendor, own, count))
        if vendor is own.vendor:
            near = _next_sizes(own, there, with_below=_fits(sizing))
            chosen |= {d.name: (d, s) for d in near for s in _sized(sizing, plan, d, count)}
        for device in there:
            found = next(_sized(sizing, plan, device, count), None)
            if found is not None and _fits(found):
                chosen[device.name] = device, found
                break
    return sorted(chosen.values(), key=lambda pair: _room(pair[0]))


def _usual(vendor: Vendor, own: Device, count: int) -> Iterator[Device]:
    """The maker's devices, the smallest first; a computer has one of those that share its RAM."""
    found = [device for device in map(catalogue.find, USUAL) if device.vendor is vendor]
    for device in sorted(found, key=_room):
        is_single = device.kind is DeviceKind.UNIFIED
        if device.name != own.name and (count == 1 or not is_single):
            yield device


def _next_sizes(own: Device, there: list[Device], *, with_below: bool) -> list[Device]:
    below = [d for d in there if d.label != own.label and _room(d) < _room(own)]
    above = [d for d in there if d.label != own.label and _room(d) > _room(own)]
    return [*(below[-1:] if with_below else []), *above[:_ABOVE]]


def _room(device: Device) -> int:
    return device.allocatable.likely_bytes


def _fits(sizing: Sizing) -> bool:
    return sizing.verdict.outcome in {Fit.FITS, Fit.TIGHT}


def _sized(sizing: Sizing, plan: Deployment, device: Device, count: int) -> Iterator[Sizing]:
    """The plan on ``device``, where its runtime takes one of these and says what it needs."""
    with suppress(DeploymentError):
        found = size(sizing.budget.model, plan, catalogue.machine(device, count))
        if found.verdict.fit is not Fit.UNKNOWN or sizing.verdict.fit is Fit.UNKNOWN:
            yield found
