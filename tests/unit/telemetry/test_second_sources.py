"""amdsmi and Level Zero where the kernel says nothing, on stand-ins by the published headers."""

from __future__ import annotations

import random
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from engine.telemetry.adapters.amd import AmdAdapter
from engine.telemetry.adapters.amdsmi import AmdSmi
from engine.telemetry.adapters.intel import IntelAdapter
from engine.telemetry.adapters.intel_regions import Region
from engine.telemetry.adapters.level_zero import LevelZero
from engine.telemetry.adapters.second import SecondSource, Told
from engine.telemetry.snapshot import DeviceReading, Missing, PoolKind
from tests.helpers import drm_tree as tree

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.helpers.smi import Smi

GIB = 2**30
PLACE = "0000:03:00.0"
OTHER = "0000:43:00.0"


class Clock:
    """A clock that a test moves by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass(frozen=True)
class Maker:
    """One maker's adapter on a made tree, and its library."""

    adapter: AmdAdapter | IntelAdapter
    library: SecondSource
    clock: Clock
    vendor: str

    def read(self) -> dict[str, DeviceReading]:
        return {card.pci_address: card for card in self.adapter.sample()}


def amd(root: Path, path: str) -> Maker:
    clock = Clock()
    library = SecondSource("amdsmi", "0x1002", ("0x03", "0x12"), lambda: AmdSmi(path), clock)
    return Maker(AmdAdapter(root, clock, library), library, clock, "0x1002")


def intel(root: Path, path: str, *regions: Region) -> Maker:
    clock = Clock()
    library = SecondSource("Level Zero", "0x8086", ("0x03",), lambda: LevelZero(path), clock)
    adapter = IntelAdapter(root, clock, lambda _card, _root: regions, library)
    return Maker(adapter, library, clock, "0x8086")


@pytest.fixture(params=[amd, intel])
def maker(request: pytest.FixtureRequest, makers: Smi, tmp_path: Path) -> Maker:
    """Either of the two."""
    return request.param(tmp_path, makers.path)


def has_right(root: Path) -> None:
    """The program may see what is used: CAP_PERFMON is bit 38."""
    tree.write(root / "proc/self/status", f"Name:\tplimsoll\nCapEff:\t{1 << 38:016x}")


def test_that_amds_library_is_not_opened_where_the_kernel_says_everything(
    makers: Smi, tmp_path: Path
):
    tree.card(
        tmp_path, mem_info_vram_total=24 * GIB, mem_info_vram_used=3 * GIB,
        mem_info_gtt_total=8 * GIB, mem_info_gtt_used=0,
    )  # fmt: skip
    makers.gpu(0, PLACE, vram=f"{24 * GIB}:{4 * GIB}")
    before = makers.calls
    card = amd(tmp_path, makers.path).read()[PLACE]
    assert (card.used_bytes, card.source) == (3 * GIB, "amdgpu sysfs")
    assert makers.calls == before


def test_that_level_zero_is_not_opened_where_the_kernel_says_what_is_used(
    makers: Smi, tmp_path: Path
):
    tree.card(tmp_path, vendor="0x8086", device="0xe20b", driver="xe")
    makers.gpu(0, PLACE, vram=f"{12 * GIB}:{4 * GIB}")
    before = makers.calls
    card = intel(tmp_path, makers.path, Region(True, 12 * GIB, 3 * GIB)).read()[PLACE]
    assert (card.used_bytes, card.source) == (3 * GIB, "xe kernel driver")
    assert makers.calls == before


def test_that_without_sysfs_the_cards_are_those_of_the_library(
    maker: Maker, makers: Smi, tmp_path: Path
):
    has_right(tmp_path)
    makers.gpu(0, PLACE, name="Big Card", vram=f"{24 * GIB}:{5 * GIB}", gtt=f"{8 * GIB}:{GIB}")
    makers.gpu(1, OTHER, name="Small Card", vram=f"{16 * GIB}:0", gtt=f"{8 * GIB}:0")
    cards = maker.read()
    assert list(cards) == [PLACE, OTHER]
    big, small = cards.values()
    assert (big.name, big.total_bytes, big.used_bytes) == ("Big Card", 24 * GIB, 5 * GIB)
    assert (big.free_bytes, big.source) == (19 * GIB, maker.library.name)
    assert (small.total_bytes, small.used_bytes) == (16 * GIB, 0)
    assert big.uuid == f"pci-{PLACE}"


def test_that_what_sysfs_lacks_of_a_card_is_filled_in(makers: Smi, tmp_path: Path):
    tree.card(tmp_path, mem_info_vram_total=24 * GIB)
    makers.gpu(0, PLACE, vram=f"{23 * GIB}:{5 * GIB}", gtt=f"{8 * GIB}:{GIB}")
    card = amd(tmp_path, makers.path).read()[PLACE]
    assert (card.total_bytes, card.used_bytes) == (24 * GIB, 5 * GIB)
    assert (card.spill_bytes, card.source) == (GIB, "amdgpu sysfs, amdsmi")


def test_that_a_card_whose_node_cannot_be_opened_is_read_through_level_zero(
    makers: Smi, tmp_path: Path
):
    has_right(tmp_path)
    tree.card(tmp_path, vendor="0x8086", device="0xe20b", driver="xe")
    makers.gpu(0, PLACE, name="from the library", vram=f"{12 * GIB}:{2 * GIB}")
    card = intel(tmp_path, makers.path).read()[PLACE]
    assert (card.name, card.used_bytes) == ("Intel Arc B580", 2 * GIB)


def test_that_carve_out_and_gtt_from_the_library_make_an_apu(makers: Smi, tmp_path: Path):
    tree.meminfo(tmp_path, total_kib=125 * 2**20, available_kib=120 * 2**20)
    makers.gpu(0, PLACE, vram=f"{GIB // 2}:{GIB // 4}", gtt=f"{124 * GIB}:{2 * GIB}")
    card = amd(tmp_path, makers.path).read()[PLACE]
    assert card.pool is PoolKind.CARVE_OUT
    assert card.total_bytes == GIB // 2 + 122 * GIB
    assert card.used_bytes == GIB // 4 + 2 * GIB


@pytest.mark.parametrize("code", [10, 0x70010000])
def test_that_a_refused_figure_is_missing_and_not_zero(
    maker: Maker, makers: Smi, tmp_path: Path, code: int
):
    tree.card(tmp_path, vendor=maker.vendor, driver="")
    makers.gpu(0, PLACE, vram=f"err:{code}")
    card = maker.read()[PLACE]
    assert isinstance(card.total_bytes, Missing)
    assert isinstance(card.used_bytes, Missing)


def test_that_a_library_that_does_not_open_is_one_line_and_no_failure(
    maker: Maker, makers: Smi, tmp_path: Path
):
    tree.card(tmp_path, vendor=maker.vendor, driver="")
    makers.set(init=0x70020000)
    assert isinstance(maker.read()[PLACE].used_bytes, Missing)
    assert maker.library.why.endswith("Init answered 0x70020000") or (
        "amdsmi_init answered 0x70020000" in maker.library.why
    )


@pytest.mark.parametrize("make", [amd, intel])
def test_that_a_library_that_is_not_there_is_not_missed(
    tmp_path: Path, make: Callable[[Path, str], Maker]
):
    tree.card(tmp_path, vendor="0x1002" if make is amd else "0x8086", driver="")
    maker = make(tmp_path, str(tmp_path / "none.so"))
    assert isinstance(maker.read()[PLACE].used_bytes, Missing)
    assert maker.library.why == f"{maker.library.name} is not on this computer"


def test_that_a_library_of_another_kind_is_not_missed_either(
    maker: Maker, nvml_library: Path, tmp_path: Path
):
    make = amd if isinstance(maker.adapter, AmdAdapter) else intel
    other = make(tmp_path, str(nvml_library))
    assert other.read() == {}
    assert "Init" in other.library.why or "amdsmi_init" in other.library.why


@pytest.mark.parametrize(
    ("vram", "total", "used"),
    [
        ("0:0", None, None),
        (f"{2**64 - 1}:{2**64 - 1}", None, None),
        (f"{GIB}:{2 * GIB}", GIB, None),
    ],
)
def test_that_what_is_no_size_is_no_figure(
    makers: Smi, tmp_path: Path, vram: str, total: int | None, used: int | None
):
    makers.gpu(0, PLACE, vram=vram)
    source = amd(tmp_path, makers.path).library
    told = source.ask(tmp_path)[PLACE]
    assert (told.total_bytes, told.used_bytes) == (total, used)


def test_that_structures_of_a_later_release_are_read_as_far_as_they_are_known(
    maker: Maker, makers: Smi, tmp_path: Path
):
    has_right(tmp_path)
    makers.gpu(0, PLACE, name="Grown", vram=f"{24 * GIB}:{5 * GIB}", grown=1)
    card = maker.read()[PLACE]
    assert (card.name, card.total_bytes, card.used_bytes) == ("Grown", 24 * GIB, 5 * GIB)


def test_that_a_driver_that_does_not_know_the_structure_says_so(makers: Smi, tmp_path: Path):
    makers.gpu(0, PLACE, vram=f"{24 * GIB}:0", properties=0x78000002)
    maker = intel(tmp_path, makers.path)
    assert maker.read() == {}
    assert maker.library.why.endswith(
        "zesMemoryGetProperties answered 0x78000002 (unsupported version)"
    )


def test_that_all_free_without_the_right_to_see_is_a_false_zero(makers: Smi, tmp_path: Path):
    # level-zero issue 133: 16225243136 of 16225243136 bytes free while 6 GB were held
    tree.card(tmp_path, vendor="0x8086", device="0xe20b", driver="xe")
    makers.gpu(0, PLACE, vram="16225243136:0")
    card = intel(tmp_path, makers.path).read()[PLACE]
    assert card.total_bytes == 16225243136
    assert isinstance(card.used_bytes, Missing)
    assert "CAP_PERFMON" in card.used_bytes.reason
    has_right(tmp_path)
    assert intel(tmp_path, makers.path).read()[PLACE].used_bytes == 0


def test_that_level_zero_mends_a_false_zero_where_it_knows_more(makers: Smi, tmp_path: Path):
    tree.card(tmp_path, vendor="0x8086", device="0xe20b", driver="xe")
    tree.fdinfo(tmp_path, 100, 5, drm_client_id=1, drm_resident_vram0="3 GiB")
    makers.gpu(0, PLACE, vram=f"{12 * GIB}:{4 * GIB}")
    card = intel(tmp_path, makers.path, Region(True, 12 * GIB, 0)).read()[PLACE]
    assert (card.used_bytes, card.note) == (4 * GIB, "")


def test_that_a_desktops_card_needs_no_library_to_show_the_same_false_zero(
    makers: Smi, tmp_path: Path
):
    tree.card(tmp_path, vendor="0x8086", device="0xe20b", driver="xe", display="DP-1")
    makers.gpu(0, PLACE, vram=f"{12 * GIB}:0")
    before = makers.calls
    card = intel(tmp_path, makers.path, Region(True, 12 * GIB, 0)).read()[PLACE]
    assert isinstance(card.used_bytes, Missing)
    assert makers.calls == before


def test_that_tiles_add_up_and_memory_of_the_system_does_not_count(makers: Smi, tmp_path: Path):
    has_right(tmp_path)
    makers.gpu(0, PLACE, vram=f"{128 * GIB}:{6 * GIB}", tiles=2)
    makers.gpu(1, "0000:00:02.0", vram=f"{32 * GIB}:{6 * GIB}", system=1)
    cards = intel(tmp_path, makers.path).read()
    assert list(cards) == [PLACE]
    assert (cards[PLACE].total_bytes, cards[PLACE].used_bytes) == (128 * GIB, 6 * GIB)


def test_that_no_library_is_opened_while_a_card_sleeps(maker: Maker, makers: Smi, tmp_path: Path):
    tree.card(tmp_path, vendor=maker.vendor, driver="")
    tree.on_bus(tmp_path, PLACE, vendor=maker.vendor)
    tree.on_bus(tmp_path, OTHER, vendor=maker.vendor, status="suspended")
    makers.gpu(0, PLACE, vram=f"{24 * GIB}:{5 * GIB}")
    before = makers.calls
    assert isinstance(maker.read()[PLACE].used_bytes, Missing)
    assert makers.calls == before


def test_that_no_library_is_opened_for_a_sleeping_card_where_the_bus_is_not_shown(
    maker: Maker, makers: Smi, tmp_path: Path
):
    tree.card(tmp_path, vendor=maker.vendor, driver="")
    tree.card(tmp_path, 1, vendor=maker.vendor, address=OTHER, status="suspended")
    makers.gpu(0, PLACE, vram=f"{24 * GIB}:{5 * GIB}")
    before = makers.calls
    assert isinstance(maker.read()[PLACE].used_bytes, Missing)
    assert makers.calls == before


def test_that_a_card_that_may_fall_asleep_is_asked_about_twice_a_minute(
    maker: Maker, makers: Smi, tmp_path: Path
):
    has_right(tmp_path)
    tree.on_bus(tmp_path, PLACE, vendor=maker.vendor, control="auto")
    makers.gpu(0, PLACE, vram=f"{24 * GIB}:{5 * GIB}")
    assert maker.read()[PLACE].used_bytes == 5 * GIB
    makers.gpu(0, PLACE, vram=f"{24 * GIB}:{6 * GIB}")
    maker.clock.now = 29.0
    card = maker.read()[PLACE]
    assert (card.used_bytes, card.age_s) == (5 * GIB, 29.0)
    maker.clock.now = 30.0
    card = maker.read()[PLACE]
    assert (card.used_bytes, card.age_s) == (6 * GIB, 0.0)


def test_that_a_computer_without_such_a_gpu_opens_no_library(
    maker: Maker, makers: Smi, tmp_path: Path
):
    tree.on_bus(tmp_path, PLACE, vendor="0x10de")
    tree.on_bus(tmp_path, OTHER, vendor=maker.vendor, kind="0x020000")
    makers.gpu(0, PLACE, vram=f"{24 * GIB}:{5 * GIB}")
    before = makers.calls
    assert maker.read() == {}
    assert makers.calls == before


def test_that_a_place_that_is_not_on_the_bus_is_no_card(maker: Maker, makers: Smi, tmp_path: Path):
    # An early amdsmi packed the place otherwise: bus 3 reads as domain 3.
    tree.card(tmp_path, vendor=maker.vendor, driver="")
    tree.on_bus(tmp_path, PLACE, vendor=maker.vendor)
    makers.gpu(0, "0003:00:00.0", vram=f"{24 * GIB}:{5 * GIB}")
    assert list(maker.read()) == [PLACE]


def test_that_a_hanging_library_costs_only_what_it_would_have_added(makers: Smi, tmp_path: Path):
    tree.card(
        tmp_path, mem_info_vram_total=24 * GIB, mem_info_vram_used=3 * GIB,
        mem_info_gtt_total=8 * GIB, mem_info_gtt_used=0,
    )  # fmt: skip
    tree.card(tmp_path, 1, address=OTHER, driver="")
    makers.gpu(0, OTHER, vram=f"{24 * GIB}:{5 * GIB}")
    makers.set(hang=1)
    maker = amd(tmp_path, makers.path)
    cards = maker.read()
    assert cards[PLACE].used_bytes == 3 * GIB
    assert isinstance(cards[OTHER].used_bytes, Missing)
    assert maker.library.why == "amdsmi has not answered"
    maker.adapter.close()  # does not wait for it
    makers.set(hang=0)
    for thread in threading.enumerate():
        if thread.name == "amdsmi":
            thread.join(10)
    assert maker.read()[OTHER].used_bytes == 5 * GIB


def test_that_a_library_that_failed_is_opened_anew_half_a_minute_later(
    maker: Maker, makers: Smi, tmp_path: Path
):
    has_right(tmp_path)
    makers.gpu(0, PLACE, vram=f"{24 * GIB}:{5 * GIB}")
    makers.set(init=7)
    assert maker.read() == {}
    makers.set(init=0)
    maker.clock.now = 29.0
    assert maker.read() == {}
    maker.clock.now = 30.0
    assert maker.read()[PLACE].used_bytes == 5 * GIB


def test_that_a_library_recovers_from_whatever_it_did(maker: Maker, makers: Smi, tmp_path: Path):
    has_right(tmp_path)
    chance = random.Random(7)
    sizes = ["err:10", "err:1879048193", "0:0", f"{2**64 - 1}:1", f"{GIB}:{9 * GIB}", "x", ""]
    for step in range(1000):
        maker.clock.now = 40.0 * step
        good = step % 2 == 0
        makers.set(init=0 if good else chance.choice([0, 7, 0x70020000]))
        vram = f"{24 * GIB}:{step * 2**20}" if good else chance.choice(sizes)
        makers.gpu(0, PLACE, vram=vram, gtt=f"{GIB}:0", properties=0)
        cards = maker.read()
        if good:
            assert cards[PLACE].used_bytes == step * 2**20
        for card in cards.values():
            assert not isinstance(card.used_bytes, int) or card.used_bytes <= 24 * GIB


class Lacking:
    """A library in which a release has left out what it is asked for, and what closes it."""

    def read(self) -> dict[str, Told]:
        raise AttributeError("undefined symbol: amdsmi_get_socket_handles")

    def close(self) -> None:
        raise AttributeError("undefined symbol: amdsmi_shut_down")


def test_that_a_library_that_cannot_even_be_closed_is_one_line_and_no_failure(tmp_path: Path):
    tree.card(tmp_path, vendor="0x1002", driver="")
    library = SecondSource("amdsmi", "0x1002", ("0x03",), Lacking, Clock())
    assert library.ask(tmp_path) == {}
    assert library.why == "amdsmi: undefined symbol: amdsmi_get_socket_handles"
    library.close()
