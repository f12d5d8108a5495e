"""Windows itself, through ctypes: counters by PDH, adapters by DXGI, the registry in its place.

Nothing here decides anything: what is read is judged in ``windows``. Counters are added by their
English names, since Windows translates them, with wildcards, since processes come and go.
"""

from __future__ import annotations

import ctypes
import sys
from ctypes import POINTER, Structure, Union, byref, c_int32, c_int64, c_size_t, c_uint32, c_void_p
from typing import Any, Final

from engine.telemetry.adapters.windows_facts import (
    ADAPTER_COUNTERS,
    PROCESS_COUNTERS,
    Counted,
    Graphics,
    dedicated_bytes,
)

_LARGE: Final = 0x400
_MORE_DATA: Final = 0x800007D2
_MOST_BUFFER = 16 * 2**20
_MOST_TRIES = 3
_VALID: Final = frozenset({0, 1})
"""``PDH_CSTATUS_VALID_DATA`` and ``…_NEW_DATA``; of others the value is what lay there."""
_SOFTWARE: Final = 2
_MOST_ADAPTERS = 64
_ADAPTER_ADDRESS: Final = 6
"""``KMTQAITYPE_ADAPTERADDRESS``: bus, device and function by LUID."""
_ENUM_ADAPTERS_1, _GET_DESC_1, _RELEASE = 12, 10, 2
"""Places in the tables of IDXGIFactory1, IDXGIAdapter1 and IUnknown."""
_VENDORS = {0x10DE: "NVIDIA", 0x1002: "AMD", 0x8086: "Intel", 0x5143: "Qualcomm"}
_DISPLAYS = r"SYSTEM\CurrentControlSet\Control\Class\{4d36e968-e325-11ce-bfc1-08002be10318}"


class _Value(Union):
    _fields_ = (("large", c_int64), ("text", c_void_p))


class _FormattedValue(Structure):
    _fields_ = (("status", c_uint32), ("value", _Value))


class _Item(Structure):
    _fields_ = (("name", ctypes.c_wchar_p), ("counted", _FormattedValue))


class _Guid(Structure):
    _fields_ = (
        ("a", c_uint32), ("b", ctypes.c_uint16), ("c", ctypes.c_uint16), ("d", ctypes.c_ubyte * 8),
    )  # fmt: skip


class _Luid(Structure):
    _fields_ = (("low", c_uint32), ("high", c_int32))


class _Description(Structure):
    _fields_ = (
        ("name", ctypes.c_wchar * 128),
        ("vendor", c_uint32),
        ("device", c_uint32),
        ("subsystem", c_uint32),
        ("revision", c_uint32),
        ("dedicated_video", c_size_t),
        ("dedicated_system", c_size_t),
        ("shared_system", c_size_t),
        ("luid", _Luid),
        ("flags", c_uint32),
    )


class _OpenFromLuid(Structure):
    _fields_ = (("luid", _Luid), ("adapter", c_uint32))


class _Query(Structure):
    _fields_ = (
        ("adapter", c_uint32), ("kind", c_uint32), ("data", c_void_p), ("size", c_uint32),
    )  # fmt: skip


_FACTORY_1 = _Guid(
    0x770AAE78, 0xF26F, 0x4DBA, (ctypes.c_ubyte * 8)(0xA8, 0x29, 0x25, 0x3C, 0x83, 0xD1, 0xB3, 0x87)
)


class WindowsDoor:
    """One open query over all counters; the first collection may lack processes."""

    def __init__(self) -> None:
        """Open the query.

        Raises:
            OSError: Windows has no such counters (before 10 version 1709, or switched off).
        """
        self._pdh = _library("pdh")
        self._query = c_void_p()
        _check(self._pdh.PdhOpenQueryW(None, 0, byref(self._query)))
        self._adapters = {c: self._counter(f"GPU Adapter Memory(*)\\{c}") for c in ADAPTER_COUNTERS}
        self._processes = {
            c: self._counter(f"GPU Process Memory(*)\\{c}") for c in PROCESS_COUNTERS
        }

    def graphics(self) -> tuple[Graphics, ...]:
        """The display adapters that are no software."""
        narrow, wide = _registry()
        found: list[Graphics] = []
        for one in _descriptions():
            if one.flags & _SOFTWARE:
                continue
            luid = f"luid_0x{one.luid.high & 0xFFFFFFFF:08x}_0x{one.luid.low:08x}"
            own = dedicated_bytes(one.dedicated_video, wide.get(one.name), narrow.get(one.name))
            vendor = _VENDORS.get(one.vendor, "")
            address = _address(one.luid)
            found.append(Graphics(luid, one.name, own, one.shared_system, address, vendor))
        return tuple(found)

    def counted(self) -> Counted:
        """The counters now."""
        self._pdh.PdhCollectQueryData(self._query)
        return Counted(
            {name: self._values(counter) for name, counter in self._adapters.items()},
            {name: self._values(counter) for name, counter in self._processes.items()},
        )

    def close(self) -> None:
        """Let go of the query."""
        self._pdh.PdhCloseQuery(self._query)

    def _counter(self, path: str) -> c_void_p:
        counter = c_void_p()
        _check(self._pdh.PdhAddEnglishCounterW(self._query, f"\\{path}", 0, byref(counter)))
        return counter

    def _values(self, counter: c_void_p) -> dict[str, int]:
        """The counter's instances; processes that come between the two questions need a third."""
        size, count = c_uint32(0), c_uint32(0)
        ask = self._pdh.PdhGetFormattedCounterArrayW
        status = ask(counter, _LARGE, byref(size), byref(count), None)
        for _ in range(_MOST_TRIES):
            if status & 0xFFFFFFFF != _MORE_DATA or size.value > _MOST_BUFFER:
                return {}
            buffer = (ctypes.c_ubyte * size.value)()
            status = ask(counter, _LARGE, byref(size), byref(count), buffer)
            if not status:
                items = ctypes.cast(buffer, POINTER(_Item))
                rows = (items[index] for index in range(count.value))
                return {
                    str(row.name): int(row.counted.value.large)
                    for row in rows
                    if row.counted.status in _VALID
                }
        return {}


def _library(name: str) -> Any:
    return ctypes.WinDLL(name) if sys.platform == "win32" else ctypes.CDLL(name)


def _check(status: int) -> None:
    if status:
        message = f"PDH 0x{status & 0xFFFFFFFF:08x}"
        raise OSError(message)


def _descriptions() -> list[_Description]:
    """What DXGI says of each adapter; nothing where DXGI doesn't answer."""
    factory = c_void_p()
    create = _library("dxgi").CreateDXGIFactory1
    if create(byref(_FACTORY_1), byref(factory)):
        return []
    found: list[_Description] = []
    for index in range(_MOST_ADAPTERS):
        adapter = c_void_p()
        if _call(factory, _ENUM_ADAPTERS_1, c_uint32(index), byref(adapter)):
            break
        description = _Description()
        if not _call(adapter, _GET_DESC_1, byref(description)):
            found.append(description)
        _call(adapter, _RELEASE)
    _call(factory, _RELEASE)
    return found


def _call(item: c_void_p, place: int, *arguments: Any) -> int:
    """Call a method of a COM object by its place in the table."""
    table = ctypes.cast(item, POINTER(POINTER(c_void_p))).contents
    method = ctypes.CFUNCTYPE(
        c_int32, c_void_p, *(type(a) if isinstance(a, c_uint32) else c_void_p for a in arguments)
    )
    return int(method(table[place])(item, *arguments))


def _address(luid: _Luid) -> str:
    """PCI address of an adapter; empty where Windows doesn't tell."""
    gdi = _library("gdi32")
    opened = _OpenFromLuid(luid)
    if gdi.D3DKMTOpenAdapterFromLuid(byref(opened)):
        return ""
    place = (c_uint32 * 3)()
    query = _Query(
        opened.adapter, _ADAPTER_ADDRESS, ctypes.cast(place, c_void_p), ctypes.sizeof(place)
    )
    failed = gdi.D3DKMTQueryAdapterInfo(byref(query))
    gdi.D3DKMTCloseAdapter(byref(c_uint32(opened.adapter)))
    return "" if failed else f"0000:{place[0]:02x}:{place[1]:02x}.{place[2]:x}"


def _registry() -> tuple[dict[str, int], dict[str, int]]:
    """Memory by adapter name from the fields of 32 and of 64 bits."""
    narrow: dict[str, int] = {}
    wide: dict[str, int] = {}
    if sys.platform == "win32":
        for index in range(_MOST_ADAPTERS):
            place = f"{_DISPLAYS}\\{index:04d}"
            name = _value(place, "DriverDesc")
            for into, field in ((narrow, "MemorySize"), (wide, "qwMemorySize")):
                told = _value(place, f"HardwareInformation.{field}")
                size = int.from_bytes(told, "little") if isinstance(told, bytes) else told
                if isinstance(name, str) and isinstance(size, int):
                    into[name] = size
    return narrow, wide


def _value(place: str, field: str) -> object:
    """A value of the registry; None where there is none or it isn't ours to read."""
    if sys.platform == "win32":
        import winreg  # noqa: PLC0415 - there is none elsewhere

        try:
            with winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, place) as key:
                return winreg.QueryValueEx(key, field)[0]
        except OSError:
            return None
    return None
