"""AMD's management library (``libamd_smi.so``) through ctypes: memory by kind, by place on the bus.

Only calls and layouts that every release of its header has are used (amdsmi.h of ROCm 5.7 to 7):
structures that grew between releases are none of them.
"""

from __future__ import annotations

import os
from ctypes import byref, c_char, c_int, c_uint64
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from engine.telemetry.adapters import c_calls
from engine.telemetry.adapters.second import Told

if TYPE_CHECKING:
    from collections.abc import Iterator
    from ctypes import c_void_p

NAME: Final = "amdsmi"
_GPUS: Final = 2
"""``AMDSMI_INIT_AMD_GPUS``"""
_VRAM, _GTT = 0, 2
"""``AMDSMI_MEM_TYPE_…``; 1 is the part of VRAM that the processor sees."""
_ROOM: Final = 4096
"""For ``amdsmi_asic_info_t``, which has 200 to 900 bytes by release and begins with the name."""
_LONGEST_NAME: Final = 64


class AmdSmi:
    """The library, open."""

    def __init__(self, path: str = "") -> None:
        """Load and open it, which resumes every AMD GPU.

        Args:
            path: of the library; looked for where ROCm puts it if empty.

        Raises:
            OSError: there is none.
            TelemetryError: it can't be opened.
        """
        rocm = os.environ.get("ROCM_PATH", "/opt/rocm")
        tried = (path,) if path else ("libamd_smi.so", f"{rocm}/lib/libamd_smi.so")
        self._library = c_calls.loaded(*tried)
        c_calls.checked("amdsmi_init", self._library.amdsmi_init(c_uint64(_GPUS)))

    def read(self) -> dict[str, Told]:
        """VRAM and GTT of every GPU; a GPU that says nothing of its place is left out.

        Raises:
            TelemetryError: the library refuses to list them.
        """
        found: dict[str, Told] = {}
        for gpu in self._gpus():
            place = c_uint64()
            if not self._library.amdsmi_get_gpu_device_bdf(gpu, byref(place)):
                found.setdefault(_address(place.value), self._told(gpu))
        return found

    def close(self) -> None:
        """Let go of the driver."""
        self._library.amdsmi_shut_down()

    def _gpus(self) -> Iterator[c_void_p]:
        within = self._library.amdsmi_get_processor_handles
        sockets = self._library.amdsmi_get_socket_handles
        for socket in c_calls.handles("amdsmi_get_socket_handles", sockets):
            ask = partial(within, socket)
            yield from c_calls.handles("amdsmi_get_processor_handles", ask)

    def _told(self, gpu: c_void_p) -> Told:
        about = (c_char * _ROOM)()
        is_named = not self._library.amdsmi_get_gpu_asic_info(gpu, byref(about))
        name = about.value[:_LONGEST_NAME].decode("utf-8", "replace") if is_named else ""
        total = self._library.amdsmi_get_gpu_memory_total
        usage = self._library.amdsmi_get_gpu_memory_usage
        return Told(
            name,
            _bytes(total, gpu, _VRAM),
            _bytes(usage, gpu, _VRAM),
            _bytes(total, gpu, _GTT),
            _bytes(usage, gpu, _GTT),
        )


def _bytes(ask: Any, gpu: c_void_p, kind: int) -> int | None:
    size = c_uint64()
    return None if ask(gpu, c_int(kind), byref(size)) else size.value


def _address(place: int) -> str:
    """``0000:03:00.0``: function 3 bits, device 5, bus 8, domain the rest (``amdsmi_bdf_t``)."""
    return f"{place >> 16:04x}:{place >> 8 & 255:02x}:{place >> 3 & 31:02x}.{place & 7:x}"
