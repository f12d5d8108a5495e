"""Systems, builds, and what they take of a device: held to readings of other people's cards."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.deployment.spec import Deployment
from engine.devices import catalogue
from engine.devices.device import DeviceKind, Slot
from engine.errors import DeploymentError
from engine.evidence import Basis, Estimate, exactly
from engine.runtimes import overheads, platforms
from engine.units import GIB, MIB

RTX_4090 = catalogue.find("RTX 4090")
HERE = replace(catalogue.machine(RTX_4090), is_here=True, platform="windows")


def holds(found: Estimate, mib: float) -> bool:
    return found.low_bytes <= mib * MIB <= found.high_bytes


def test_that_the_platform_is_asked_for_or_that_of_the_machine_or_device():
    linux = catalogue.machine(RTX_4090)
    assert platforms.platform_of(Deployment(), linux) == "linux"
    assert platforms.platform_of(Deployment(platform="wsl"), linux) == "wsl"
    assert platforms.platform_of(Deployment(), HERE) == "windows"
    mac = catalogue.machine(catalogue.find("M4 Pro 48 GB"))
    assert platforms.platform_of(Deployment(), mac) == "macos"


def test_that_a_platform_without_the_driver_is_refused():
    with pytest.raises(DeploymentError, match="macOS has no driver for RTX 4090") as caught:
        platforms.platform_of(Deployment(platform="macos"), catalogue.machine(RTX_4090))
    assert caught.value.field == "platform"
    mac = catalogue.machine(catalogue.find("M4 Pro 48 GB"))
    with pytest.raises(DeploymentError, match="under macOS only, not under linux"):
        platforms.platform_of(Deployment(platform="linux"), mac)


def test_that_the_build_follows_the_device_and_a_foreign_one_is_refused():
    assert platforms.backend_of(Deployment(), RTX_4090) == "cuda"
    assert platforms.backend_of(Deployment(backend="vulkan"), RTX_4090) == "vulkan"
    assert platforms.backend_of(Deployment(backend="cpu"), RTX_4090) == "cpu"
    host = catalogue.machine(RTX_4090).host.device
    assert platforms.backend_of(Deployment(backend="cuda"), host) == "cpu"
    with pytest.raises(DeploymentError, match="rocm doesn't run on RTX 4090; cuda or vulkan does"):
        platforms.backend_of(Deployment(backend="rocm"), RTX_4090)


# Total as the driver states it, and what was not to be had before anything loaded, in MiB.
@pytest.mark.parametrize(
    ("total", "gone"),
    [(6141, 1066), (8188, 1134), (8191, 1077), (8192, 993), (12282, 1276), (16311, 1151),
     (24576, 1243), (24576, 1384), (32607, 1615), (32607, 2276)],
)  # fmt: skip
def test_that_windows_keeps_what_was_read(total: int, gone: int):
    card = catalogue.custom(total * MIB, "")
    assert holds(platforms.unavailable(card, "windows"), gone)


@pytest.mark.parametrize("free_gib", [22.45, 22.75])
def test_that_wsl_keeps_what_was_read_of_a_24_gib_card(free_gib: float):
    card = catalogue.custom(round(23.99 * GIB), "")
    assert holds(platforms.unavailable(card, "wsl"), (23.99 - free_gib) * 1024)


def test_that_windows_counts_as_held_by_others_of_the_whole_card():
    linux = catalogue.machine(RTX_4090)
    assert platforms.on_platform(linux, "linux") == linux
    (slot,) = platforms.on_platform(linux, "windows").slots
    assert slot.device.allocatable.likely_bytes == RTX_4090.total_bytes
    assert slot.foreign == platforms.unavailable(RTX_4090, "windows")
    busy = Slot(RTX_4090, exactly(3 * GIB, Basis.MEASURED, "read"))
    here = replace(HERE, slots=(busy,))
    assert platforms.on_platform(here, "windows").slots == (busy,)
    apu = replace(RTX_4090, kind=DeviceKind.UNIFIED)
    shared = replace(linux, slots=(Slot(apu, busy.foreign),))
    assert platforms.on_platform(shared, "windows").slots == shared.slots


# Loaded processes beside their buffers, in MiB.
@pytest.mark.parametrize(
    ("name", "backend", "readings"),
    [
        ("RTX A6000", "cuda", (280,)),
        ("RTX PRO 6000", "cuda", (753,)),
        ("M4 Pro 48 GB", "metal", (0, 495)),
        ("Strix Halo 128 GB", "rocm", (146, 147, 150)),
        ("Strix Halo 128 GB", "vulkan", (70, 124, 300)),
        ("RTX 4060", "vulkan", (138, 147)),
        ("RX 9070 XT", "rocm", (164,)),
        ("RX 9070 XT", "vulkan", (728,)),
    ],
)
def test_that_a_loaded_llama_cpp_takes_what_was_read(
    name: str, backend: str, readings: tuple[int, ...]
):
    found = overheads.ggml(catalogue.find(name), backend)
    assert all(holds(found, reading) for reading in readings)


def test_that_nothing_is_taken_where_the_host_computes():
    assert overheads.ggml(RTX_4090, "cpu").high_bytes == 0
    assert overheads.ggml(catalogue.machine(RTX_4090).host.device, "cuda").high_bytes == 0


# Bytes of the file, and MiB of the driver's counters beside buffers, in decode.
@pytest.mark.parametrize(
    ("backend", "held_gb", "mib"),
    [("rocm", 4.91, 153), ("rocm", 14.5, 172), ("rocm", 42.5, 221), ("vulkan", 4.91, 144),
     ("vulkan", 14.5, 185), ("vulkan", 42.5, 296), ("rocm", 70.5, 302), ("vulkan", 104.1, 565)],
)  # fmt: skip
def test_that_strix_halo_has_page_tables_beside_the_context(
    backend: str, held_gb: float, mib: int
) -> None:
    strix = catalogue.find("Strix Halo 128 GB")
    held = round(held_gb * 10**9)
    parts = overheads.ggml(strix, backend), overheads.page_tables(strix, backend, held)
    assert sum(p.low_bytes for p in parts) <= mib * MIB <= sum(p.high_bytes for p in parts)
    likely = sum(p.likely_bytes for p in parts)
    assert likely == pytest.approx(mib * MIB, rel=0.1)


def test_that_memory_of_its_own_is_mapped_in_large_pages() -> None:
    assert overheads.page_tables(catalogue.find("RX 9070 XT"), "vulkan", 10 * GIB).high_bytes == 0
    assert overheads.page_tables(RTX_4090, "cuda", 10 * GIB).high_bytes == 0
    mac = catalogue.find("M4 Pro 48 GB")
    assert overheads.page_tables(mac, "metal", 10 * GIB).high_bytes == 0


# SM count and MiB outside the allocator of a PyTorch process.
@pytest.mark.parametrize(
    ("name", "mib"), [("T4", 96), ("T4", 133), ("L4", 263), ("RTX 5090", 502), ("A100 80GB", 522)]
)
def test_that_a_pytorch_process_takes_what_was_read(name: str, mib: int):
    assert holds(overheads.torch_process(catalogue.find(name)), mib)


@pytest.mark.parametrize(("name", "mib"), [("A100 80GB", 522), ("H100 SXM 80GB", 754)])
def test_that_a_card_for_servers_takes_more_than_its_context(name: str, mib: int) -> None:
    found = overheads.torch_process(catalogue.find(name))
    assert holds(found, mib)
    assert found.likely_bytes == pytest.approx(mib * MIB, rel=0.15)


def test_that_collectives_follow_the_links():
    h200, l40s = catalogue.find("H200"), catalogue.find("L40S")
    assert overheads.collectives(h200, 1).high_bytes == 0
    assert holds(overheads.collectives(h200, 8), 1812)
    assert holds(overheads.collectives(h200, 8), 2058)
    assert holds(overheads.collectives(l40s, 4), 850)
    assert overheads.collectives(l40s, 2).likely_bytes < overheads.collectives(h200, 2).likely_bytes
