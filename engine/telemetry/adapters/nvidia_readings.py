"""One NVIDIA device, sample after sample: its memory and who holds it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

from engine.telemetry.adapters import meminfo
from engine.telemetry.adapters import nvml_codes as codes
from engine.telemetry.adapters.names import Names, is_wsl
from engine.telemetry.adapters.nvidia_processes import ProcessLists
from engine.telemetry.snapshot import DeviceReading, Missing, PoolKind
from engine.units import GIB, MIB, format_gib
from engine.words import tr, tr_later

if TYPE_CHECKING:
    from pathlib import Path

    from engine.telemetry.adapters.nvidia_cards import Card
    from engine.telemetry.snapshot import ProcessReading

_IDLE_BYTES = 64 * MIB
"""A card in use by nobody shows 0 to 50 MiB outside any process (nvidia-smi outputs)."""
_IDLE_WITH_RESERVE_BYTES = GIB
"""The same from drivers that count their reserve as used, which is 100 to 900 MiB."""
_LARGEST_BYTES: Final = 2**50
_ROUNDED_BYTES: Final = 3 * MIB
"""Of total, free and reserve together, a MiB each."""

_OUTSIDE = tr_later("held by processes outside this container")
_IN_WINDOWS = tr_later("held by Windows programs or other Linux systems, which WSL doesn't show")
_WSL = tr_later("Inside WSL: the whole card's figures, Windows programs included.")
_RESERVE_IN_USED = tr_later("this driver counts its reserve as used")
_CONTRADICTION = tr_later("the driver's figures contradict each other")
_SHARED = tr_later("This GPU shares the computer's memory; its driver has no figure of its own.")
_CACHE = tr_later("CUDA calls only {size} of it free, since it counts file cache as used.")


class CardReader:
    """Reads one card; remembers which questions its driver answers."""

    def __init__(self, card: Card, driver: str, root: Path, names: Names) -> None:
        self.card = card
        self.fault_code = 0
        """NVML's code where the last reading failed as a whole."""
        self._driver = driver
        self._root = root
        self._lists = ProcessLists(card, names)
        self._has_v2 = True
        self._is_unified = card.is_unified
        self._is_wsl = is_wsl(root)

    def read(self, nvml: Any) -> DeviceReading:
        """The device now; without values and with the reason where it can't be read."""
        self.fault_code = 0
        if self.card.handle is None:
            return self.missing(self.card.fault)
        try:
            return self._shared(nvml) if self._is_unified else self._own(nvml)
        except nvml.NVMLError as error:
            self.fault_code = error.value
            return self.missing(codes.reason(error))

    def missing(self, reason: str) -> DeviceReading:
        """The device without values."""
        gone = Missing(reason)
        return self._reading(
            pool=PoolKind.UNIFIED if self._is_unified else PoolKind.VRAM,
            total_bytes=gone,
            used_bytes=gone,
            free_bytes=gone,
            reserved_bytes=gone,
            processes=gone,
            note=reason,
        )

    def _own(self, nvml: Any) -> DeviceReading:
        try:
            total, free, reserved = self._memory(nvml)
        except nvml.NVMLError as error:
            # "Not supported" alone proves nothing: a lost GPU or a cut one can look the same.
            self._is_unified = error.value == codes.NOT_SUPPORTED and self.card.is_coherent
            if not self._is_unified:
                raise
            return self._shared(nvml)
        if total == 0:
            self._is_unified = self.card.is_coherent
            stated = tr("the driver states a total of 0")
            return self._shared(nvml) if self._is_unified else self.missing(stated)
        kept = 0 if isinstance(reserved, Missing) else reserved
        if total >= _LARGEST_BYTES or max(free, kept) > total:
            return self.missing(tr(_CONTRADICTION))
        used = total - free - kept
        note = tr(_WSL) if self._is_wsl else self.card.note
        # Each figure is rounded on its own; beyond that they are shown and not mended.
        is_odd = used < -_ROUNDED_BYTES
        return self._reading(
            pool=PoolKind.VRAM,
            total_bytes=total,
            used_bytes=Missing(tr(_CONTRADICTION)) if is_odd else max(used, 0),
            free_bytes=free,
            reserved_bytes=reserved,
            ceiling_bytes=total - kept,
            processes=self._held(nvml, used, is_told_apart=not isinstance(reserved, Missing)),
            note=tr(_CONTRADICTION) if is_odd else note,
        )

    def _memory(self, nvml: Any) -> tuple[int, int, int | Missing]:
        """Total, free and reserved.

        Version 2 tells the reserve apart; whether its ``used`` contains the reserve differs between
        manuals and real output, so what is used is the rest. Version 1 counts it as used.
        """
        if self._has_v2:
            try:
                info = nvml.nvmlDeviceGetMemoryInfo(self.card.handle, version=nvml.nvmlMemory_v2)
            except nvml.NVMLError as error:
                if error.value not in codes.NOT_UNDERSTOOD:
                    raise
                self._has_v2 = False
            else:
                return info.total, info.free, info.reserved
        info = nvml.nvmlDeviceGetMemoryInfo(self.card.handle)
        return info.total, info.free, Missing(tr(_RESERVE_IN_USED))

    def _shared(self, nvml: Any) -> DeviceReading:
        """A part without memory of its own: the system's figures, the driver's process list.

        Such parts answer "not supported", success with 0 or success with something else, by driver
        and configuration; whichever it is, only a GPU that is gone counts.
        """
        try:
            self._memory(nvml)
        except nvml.NVMLError as error:
            if error.value in codes.DRIVER_GONE | codes.DEVICE_LOST:
                raise
        memory = _system(self._root)
        if memory is None:
            return self.missing(tr("the system's memory cannot be read"))
        total, available = memory.total_bytes, memory.available_bytes
        note = tr(_SHARED)
        if memory.free_bytes < available - GIB:
            note += " " + tr(_CACHE).format(size=format_gib(memory.free_bytes))
        return self._reading(
            pool=PoolKind.UNIFIED,
            total_bytes=total,
            used_bytes=total - available,
            free_bytes=available,
            reserved_bytes=0,
            available_bytes=available,
            processes=self._lists.read(nvml),
            note=note,
            source=f"NVML {self._driver}, /proc/meminfo",
        )

    def _held(
        self, nvml: Any, used: int, *, is_told_apart: bool
    ) -> tuple[ProcessReading, ...] | Missing:
        """Who holds it; nobody listed while much is in use means that they can't be seen here."""
        held = self._lists.read(nvml)
        idle = _IDLE_BYTES if is_told_apart else _IDLE_WITH_RESERVE_BYTES
        if held or used <= idle:
            return held
        return Missing(tr(_IN_WINDOWS if self._is_wsl else _OUTSIDE))

    def _reading(self, *, note: str, source: str = "", **fields: Any) -> DeviceReading:
        card = self.card
        return DeviceReading(
            uuid=card.uuid,
            name=card.name,
            source=source or f"NVML {self._driver}",
            sm_count=card.sm_count,
            compute_capability=card.compute_capability,
            pci_address=card.pci_address,
            vendor="NVIDIA",
            note=note,
            **fields,
        )


def _system(root: Path) -> meminfo.Meminfo | None:
    """The system's memory; Windows has such parts too, and no file that tells."""
    if sys.platform == "linux":
        return meminfo.read(root)
    import psutil

    memory = psutil.virtual_memory()
    return meminfo.Meminfo(memory.total, memory.available, memory.free)
