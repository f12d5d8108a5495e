"""Devices and the machine a plan is made for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from engine.evidence import Basis, Estimate, exactly
from engine.words import tr

if TYPE_CHECKING:
    from engine.lessons import Lesson


class DeviceKind(StrEnum):
    """Where the memory is."""

    DISCRETE = "discrete"
    """A GPU with its own memory."""
    UNIFIED = "unified"
    """GPU and CPU share one memory (Apple silicon, GB10, Strix Halo)."""
    HOST = "host"
    """The CPU and the machine's RAM."""


class Vendor(StrEnum):
    """Who makes it; decides context and library overheads."""

    NVIDIA = "NVIDIA"
    AMD = "AMD"
    INTEL = "Intel"
    APPLE = "Apple"
    CPU = "CPU"


@dataclass(frozen=True, slots=True)
class Device:
    """One device of the catalogue or of this machine."""

    name: str
    """Short name people use: ``RTX 4090``, ``H100 SXM 80GB``, ``M4 Pro 48 GB``."""
    vendor: Vendor
    kind: DeviceKind
    label: str
    """The vendor's advertised capacity, quoted: ``24 GB``."""
    total_bytes: int
    """What the driver reports as total (NVML), or physical RAM."""
    allocatable: Estimate
    """What a runtime can really get when nothing else runs: the load line."""
    sm_count: int = 0
    compute_capability: float = 0.0
    ecc: str = ""
    """``on``, ``off``, ``always`` or empty; for GDDR cards ECC takes 1/16 of the label."""
    aliases: tuple[str, ...] = ()
    source: str = ""
    """Where the totals come from."""


@dataclass(frozen=True, slots=True)
class Slot:
    """A device in a machine, with what others hold on it now."""

    device: Device
    foreign: Estimate
    """Other processes and the display; 0 with basis ``assumed`` for a device that isn't here."""
    uuid: str = ""
    """Key into telemetry; empty for a device that isn't here."""
    is_said: bool = False
    """Whether its user says what it is, and no driver does."""


@dataclass(frozen=True, slots=True)
class Machine:
    """Where the plan is to run."""

    name: str
    slots: tuple[Slot, ...]
    """GPUs in rank order, or the one host slot where there is no GPU."""
    host: Slot
    """The machine's own RAM, for offload and CPU runs."""
    is_here: bool
    """Whether this is the computer we run on (live data may be shown)."""
    platform: str = ""
    """``linux``, ``windows``, ``wsl`` or ``macos`` where it is known."""
    is_corrected: bool = False
    """Whether its user says otherwise than its drivers."""
    lessons: tuple[Lesson, ...] = ()
    """What runs on it taught."""
    place: str = ""
    """Where it is watched, ``gpu-box:9400``, if it isn't the computer we run on."""
    is_simulated: bool = False
    """Whether it isn't there at all: what is sampled of it is made up."""

    def emptied(self) -> Machine:
        """The same machine with nothing else running."""
        nothing = exactly(0, Basis.SETTING, tr("asked for: everything else closed"))
        return replace(
            self,
            slots=tuple(replace(s, foreign=nothing) for s in self.slots),
            host=replace(self.host, foreign=nothing),
        )
