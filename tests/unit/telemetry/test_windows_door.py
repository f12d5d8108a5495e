"""The door to Windows, on stand-ins for its libraries with the same structures and call tables."""

# ruff: noqa: N802 - the names are those of Windows

from __future__ import annotations

import ctypes
from ctypes import CFUNCTYPE, POINTER, c_int32, c_uint32, c_void_p, cast
from typing import Any

import pytest

from engine.telemetry.adapters import windows_door
from engine.telemetry.adapters.windows import WindowsAdapter
from engine.telemetry.adapters.windows_door import WindowsDoor
from engine.telemetry.snapshot import Missing

MIB, GIB = 2**20, 2**30
LUID = "luid_0x00000000_0x0000d1b2"
SIZES = {
    "\\GPU Adapter Memory(*)\\Dedicated Usage": {f"{LUID}_phys_0": 15 * GIB},
    "\\GPU Adapter Memory(*)\\Shared Usage": {f"{LUID}_phys_0": 300 * MIB},
    "\\GPU Process Memory(*)\\Local Usage": {f"pid_42_{LUID}_phys_0": 14 * GIB},
    "\\GPU Process Memory(*)\\Non Local Usage": {f"pid_42_{LUID}_phys_0": 100 * MIB},
    "\\GPU Process Memory(*)\\Dedicated Usage": {},
}


class Pdh:
    """Performance counters, which hand out items as PDH does: their size first."""

    def __init__(self) -> None:
        self._paths: list[str] = []
        self._texts: list[Any] = []
        self.refusal = 0
        self.is_closed = False
        self.statuses: dict[str, int] = {}
        self.late = 0
        """How many more times the list has grown since its size was told."""

    def PdhOpenQueryW(self, _source: None, _data: int, query: Any) -> int:
        query._obj.value = 1
        return self.refusal

    def PdhAddEnglishCounterW(self, _query: c_void_p, path: str, _data: int, counter: Any) -> int:
        self._paths.append(path)
        counter._obj.value = len(self._paths)
        return 0

    def PdhCollectQueryData(self, _query: c_void_p) -> int:
        return 0

    def PdhGetFormattedCounterArrayW(
        self, counter: c_void_p, _format: int, size: Any, count: Any, buffer: Any
    ) -> int:
        rows = SIZES[self._paths[(counter.value or 0) - 1]]
        item = windows_door._Item
        if buffer is None:
            size._obj.value = len(rows) * ctypes.sizeof(item)
            return ctypes.c_int32(0x800007D2).value if rows else 0
        if self.late:
            self.late -= 1
            return ctypes.c_int32(0x800007D2).value
        items = cast(buffer, POINTER(item))
        for index, (name, value) in enumerate(rows.items()):
            items[index].name = name
            items[index].counted.value.large = value
            items[index].counted.status = ctypes.c_uint32(self.statuses.get(name, 0)).value
        count._obj.value = len(rows)
        return 0

    def PdhCloseQuery(self, _query: c_void_p) -> int:
        self.is_closed = True
        return 0


class Object:
    """A COM object whose table has a few methods at their places."""

    def __init__(self, places: dict[int, Any]) -> None:
        self._kept = places
        self._table = (c_void_p * 16)()
        for place, method in places.items():
            self._table[place] = cast(method, c_void_p)
        self._pointer = c_void_p(ctypes.addressof(self._table))

    @property
    def address(self) -> int:
        return ctypes.addressof(self._pointer)


def adapter(name: str, dedicated: int, flags: int = 0) -> Object:
    @CFUNCTYPE(c_int32, c_void_p, POINTER(windows_door._Description))
    def describe(_this: int, into: Any) -> int:
        one = into.contents
        one.name, one.vendor, one.flags = name, 0x10DE, flags
        one.dedicated_video, one.shared_system = dedicated, 32 * GIB
        one.luid.low, one.luid.high = 0xD1B2, 0
        return 0

    release = CFUNCTYPE(c_int32, c_void_p)(lambda _this: 0)
    return Object({2: release, 10: describe})


class Dxgi:
    """A factory of adapters."""

    def __init__(self, *adapters: Object) -> None:
        @CFUNCTYPE(c_int32, c_void_p, c_uint32, POINTER(c_void_p))
        def enumerate_adapters(_this: int, index: int, into: Any) -> int:
            if index >= len(adapters):
                return ctypes.c_int32(0x887A0002).value  # DXGI_ERROR_NOT_FOUND
            into[0] = adapters[index].address
            return 0

        release = CFUNCTYPE(c_int32, c_void_p)(lambda _this: 0)
        self._factory = Object({2: release, 12: enumerate_adapters})

    def CreateDXGIFactory1(self, _kind: Any, into: Any) -> int:
        into._obj.value = self._factory.address
        return 0


class Gdi:
    """Where an adapter is plugged in."""

    def D3DKMTOpenAdapterFromLuid(self, opened: Any) -> int:
        opened._obj.adapter = 7
        return 0 if opened._obj.luid.low == 0xD1B2 else 1

    def D3DKMTQueryAdapterInfo(self, query: Any) -> int:
        place = cast(query._obj.data, POINTER(c_uint32))
        place[0], place[1], place[2] = 0x21, 0, 0
        return 0 if (query._obj.adapter, query._obj.kind, query._obj.size) == (7, 6, 12) else 1

    def D3DKMTCloseAdapter(self, _adapter: Any) -> int:
        return 0


@pytest.fixture
def pdh(monkeypatch: pytest.MonkeyPatch) -> Pdh:
    made = Pdh()
    card = adapter("NVIDIA GeForce RTX 4090", 24156 * MIB)
    drawn = adapter("Microsoft Basic Render Driver", 0, flags=2)
    libraries = {"pdh": made, "dxgi": Dxgi(card, drawn), "gdi32": Gdi()}
    monkeypatch.setattr(windows_door, "_library", libraries.__getitem__)
    return made


def test_that_counters_and_adapters_become_one_reading(pdh: Pdh):
    source = WindowsAdapter(WindowsDoor, lambda pid: (f"p{pid}", ""))
    (reading,) = source.sample()
    source.close()
    assert reading.name == "NVIDIA GeForce RTX 4090"  # and no software that draws
    assert (reading.total_bytes, reading.used_bytes) == (24156 * MIB, 15 * GIB)
    assert (reading.spill_bytes, reading.pci_address) == (300 * MIB, "0000:21:00.0")
    assert not isinstance(reading.processes, Missing)
    ((pid, used, spill),) = [(p.pid, p.used_bytes, p.spill_bytes) for p in reading.processes]
    assert (pid, used, spill) == (42, 14 * GIB, 100 * MIB)
    assert pdh.is_closed


def test_that_counters_that_are_switched_off_are_an_error_of_the_system(pdh: Pdh):
    pdh.refusal = ctypes.c_int32(0xC0000BB8).value  # PDH_CSTATUS_NO_OBJECT
    with pytest.raises(OSError, match="PDH 0xc0000bb8"):
        WindowsDoor()


def test_that_a_value_that_the_counter_itself_calls_invalid_is_none(pdh: Pdh):
    pdh.statuses = {f"pid_42_{LUID}_phys_0": ctypes.c_int32(0xC0000BBA).value}
    source = WindowsAdapter(WindowsDoor, lambda pid: (f"p{pid}", ""))
    (reading,) = source.sample()
    assert reading.used_bytes == 15 * GIB
    assert reading.processes == ()


def test_that_processes_that_come_between_two_questions_are_asked_for_again(pdh: Pdh):
    pdh.late = 1
    source = WindowsAdapter(WindowsDoor, lambda pid: (f"p{pid}", ""))
    (reading,) = source.sample()
    assert reading.used_bytes == 15 * GIB
