"""Intel's Level Zero Sysman (``libze_loader.so``) through ctypes: a card's memories by its place.

Layouts are those of zes_api.h 1.0 to 1.28, which only ever added structures. It asks the kernel in
its turn, so that without ``CAP_PERFMON`` it calls all memory free as the kernel does
(level-zero issue 133); ``intel`` judges that.
"""

from __future__ import annotations

from ctypes import (
    Structure,
    byref,
    c_char,
    c_int32,
    c_int64,
    c_uint8,
    c_uint32,
    c_uint64,
    c_void_p,
)
from functools import partial
from typing import Any, Final

from engine.errors import TelemetryError
from engine.telemetry.adapters import c_calls
from engine.telemetry.adapters.second import Told

NAME: Final = "Level Zero"
_FILES: Final = ("libze_loader.so.1", "libze_loader.so")
_DEVICE_PROPERTIES, _PCI_PROPERTIES, _MEM_PROPERTIES, _MEM_STATE = 0x1, 0x2, 0xB, 0x1E
"""``ZES_STRUCTURE_TYPE_…``: which structure the driver is to fill."""
_ON_CARD: Final = 1
"""``ZES_MEM_LOC_DEVICE``"""
_REASONS: Final = {
    0x70000001: "the device is lost",
    0x70000007: "the device sleeps",
    0x70010000: "no permission",
    0x78000001: "not opened",
    0x78000002: "unsupported version",
    0x78000003: "unsupported",
}


class _Pci(Structure):
    _fields_ = (
        ("stype", c_uint32), ("next", c_void_p),
        ("domain", c_uint32), ("bus", c_uint32), ("device", c_uint32), ("function", c_uint32),
        ("generation", c_int32), ("width", c_int32), ("bandwidth", c_int64),
        ("counters", c_uint8 * 3), ("room", c_uint8 * 64),
    )  # fmt: skip


class _Memory(Structure):
    _fields_ = (
        ("stype", c_uint32), ("next", c_void_p), ("kind", c_uint32), ("on_subdevice", c_uint8),
        ("subdevice", c_uint32), ("location", c_uint32), ("physical", c_uint64),
        ("bus_width", c_int32), ("channels", c_int32), ("room", c_uint8 * 64),
    )  # fmt: skip


class _State(Structure):
    _fields_ = (
        ("stype", c_uint32), ("next", c_void_p), ("health", c_uint32),
        ("free", c_uint64), ("size", c_uint64), ("room", c_uint8 * 64),
    )  # fmt: skip


class _Device(Structure):
    """``zes_device_properties_t`` as far as the name; what follows are serial numbers."""

    _fields_ = (
        ("stype", c_uint32), ("next", c_void_p),
        ("core_stype", c_uint32), ("core_next", c_void_p),
        ("kind", c_uint32), ("vendor", c_uint32), ("device", c_uint32), ("flags", c_uint32),
        ("subdevice", c_uint32), ("clock", c_uint32), ("largest", c_uint64),
        ("counts", c_uint32 * 7), ("resolution", c_uint64), ("bits", c_uint32 * 2),
        ("uuid", c_uint8 * 16), ("name", c_char * 256), ("room", c_uint8 * 1024),
    )  # fmt: skip


class LevelZero:
    """The loader, with Sysman open."""

    def __init__(self, path: str = "") -> None:
        """Load and open it, which resumes every Intel GPU.

        Args:
            path: of the library; looked for by the system's loader if empty.

        Raises:
            OSError: there is none.
            TelemetryError: no driver answers.
        """
        self._library = c_calls.loaded(*((path,) if path else _FILES))
        c_calls.checked("zesInit", self._library.zesInit(c_uint32(0)), _REASONS)

    def read(self) -> dict[str, Told]:
        """The cards' own memory; processor graphics, which have none, are left out.

        Raises:
            TelemetryError: the drivers can't be listed, or no card tells anything.
        """
        found: dict[str, Told] = {}
        refused = ""
        for driver in self._list("zesDriverGet"):
            for device in self._list("zesDeviceGet", driver):
                try:
                    address, told = self._device(device)
                except TelemetryError as error:
                    refused = error.message
                    continue
                if told.total_bytes:
                    found[address] = told
        if refused and not found:
            raise TelemetryError(refused)
        return found

    def close(self) -> None:
        """Nothing to let go of: Sysman stays as long as the program."""

    def _device(self, device: c_void_p) -> tuple[str, Told]:
        place = self._filled("zesDevicePciGetProperties", device, _Pci(_PCI_PROPERTIES))
        about = self._filled("zesDeviceGetProperties", device, _Device(_DEVICE_PROPERTIES))
        total = free = 0
        for memory in self._list("zesDeviceEnumMemoryModules", device):
            # A card of several tiles lists each tile's own.
            kind = self._filled("zesMemoryGetProperties", memory, _Memory(_MEM_PROPERTIES))
            if kind.location == _ON_CARD:
                state = self._filled("zesMemoryGetState", memory, _State(_MEM_STATE))
                total, free = total + (state.size or kind.physical), free + state.free
        address = f"{place.domain:04x}:{place.bus:02x}:{place.device:02x}.{place.function:x}"
        name = about.name.decode("utf-8", "replace")
        return address, Told(name, total, total - free if free <= total else None)

    def _list(self, call: str, *of: c_void_p) -> list[c_void_p]:
        return c_calls.handles(call, partial(getattr(self._library, call), *of), _REASONS)

    def _filled(self, call: str, of: c_void_p, into: Any) -> Any:
        c_calls.checked(call, getattr(self._library, call)(of, byref(into)), _REASONS)
        return into
