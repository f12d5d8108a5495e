"""What a process takes on a device before it holds anything of a model.

The figures are readings of other people's cards: bare contexts of ten CUDA cards, 80 runs on a
Strix Halo, 26 memory tables of llama.cpp, whole-card readings of vLLM, SGLang and TGI. Each
estimate names its own.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from engine.devices.device import DeviceKind, Vendor
from engine.evidence import Basis, Estimate, exactly, total
from engine.units import GIB, MIB
from engine.words import figures, grouped, tr, tr_later

if TYPE_CHECKING:
    from engine.devices.device import Device

_CONTEXT_SOURCE = tr_later(
    "fitted to eight readings of bare CUDA contexts on six Linux cards (28 "
    "to 188 SM): 36 MiB + 2.8 MiB × SM, within 7 %"
)
_DECODE_ON_STRIX = tr_later(
    "eight models on a Strix Halo under ROCm, driver counters: 146 to 150 "
    "MiB beside the buffers and their page tables"
)
_OF_SERVERS = (8.0, 9.0, 10.0, 10.3)
"""Compute capabilities of A100, H100, B200 and B300: libraries bring more kernels for them."""
_PAGE_BYTES, _ENTRY_BYTES = 4096, 8
_RADEON = tr_later("read on three Radeon cards under ROCm: 164 to 254 MiB")


def context(device: Device) -> Estimate:
    """The device context of one process."""
    return _context(device.vendor, device.kind, device.sm_count)


@lru_cache(maxsize=256)
def _context(vendor: Vendor, kind: DeviceKind, sm_count: int) -> Estimate:
    if kind is DeviceKind.HOST or vendor is Vendor.APPLE:
        return exactly(0, Basis.EXACT, tr("no device context"), label=tr("context"))
    if vendor is Vendor.NVIDIA and sm_count:
        likely = round((36 + 2.8 * sm_count) * MIB)
        each, whole = figures("2.8"), grouped(round(likely / MIB))
        formula = f"36 MiB + {each} MiB × {sm_count} SM = {whole} MiB"
        return Estimate(
            likely * 4 // 5,
            likely,
            likely * 11 // 10,
            Basis.FITTED,
            tr(_CONTEXT_SOURCE),
            formula,
            tr("CUDA context"),
        )
    if vendor is Vendor.AMD and kind is DeviceKind.UNIFIED:
        return _read(125, 147, 185, tr(_DECODE_ON_STRIX), tr("HIP context"))
    if vendor is Vendor.AMD:
        return _read(160, 255, 350, tr(_RADEON), tr("HIP context"), Basis.ASSUMED)
    if vendor is Vendor.INTEL:
        source = tr("one reading on Intel graphics, vLLM included: 1,370 MiB")
        return _read(100, 300, 1370, source, tr("context"), Basis.ASSUMED)
    source = tr("SM count not known; small and large cards")
    return _read(110, 300, 610, source, tr("CUDA context"), Basis.ASSUMED)


def ggml(device: Device, backend: str) -> Estimate:
    """What a loaded process of llama.cpp or of its relatives takes beside its buffers.

    Args:
        device: a GPU, or the host.
        backend: ``cuda``, ``rocm``, ``vulkan``, ``metal``, ``sycl`` or ``cpu``.
    """
    return _ggml(device.vendor, device.kind, device.sm_count, backend)


@lru_cache(maxsize=256)
def _ggml(vendor: Vendor, kind: DeviceKind, sm_count: int, backend: str) -> Estimate:
    if kind is DeviceKind.HOST or backend == "cpu":
        return exactly(0, Basis.EXACT, tr("no device context"), label=tr("context"))
    if backend == "metal":
        source = tr(
            "five memory tables of llama.cpp on Metal at 0, one on a full device at 495 MiB"
        )
        return _read(0, 0, 500, source, "Metal")
    if backend == "vulkan":
        return _vulkan(vendor, kind)
    base = _context(vendor, kind, sm_count)
    if backend != "cuda":
        return base
    source = tr("llama.cpp loaded on RTX A6000, RTX 4090 D and RTX PRO 6000: context + 15 MiB")
    return total((base, _read(0, 15, 200, source, tr("kernels and pools"))))


def _vulkan(vendor: Vendor, kind: DeviceKind) -> Estimate:
    if vendor is Vendor.AMD and kind is DeviceKind.UNIFIED:
        source = tr(
            "six models on a Strix Halo under Vulkan: 124 MiB beside the "
            "buffers and 0.43 % of them; a 780M at 450 MiB with its desktop"
        )
        return _read(70, 124, 300, source, "Vulkan")
    if vendor is Vendor.NVIDIA:
        source = tr("llama.cpp under Vulkan on a laptop's RTX 4050: 138 to 147 MiB")
        return _read(70, 145, 300, source, "Vulkan")
    source = tr("Strix Halo 70 to 300 MiB; one RX 6800 at 728 MiB with its desktop")
    return _read(70, 140, 750, source, "Vulkan", Basis.ASSUMED)


def page_tables(device: Device, backend: str, held_bytes: int) -> Estimate:
    """What the driver takes beside ``held_bytes`` of a device that shares the RAM.

    The RAM is mapped in pages of 4 KiB, each with an entry of 8 bytes (amdgpu, GPUVM): 0.2 %,
    as read to a MiB under ROCm (two of eight runs showed none). What Vulkan's driver adds to it
    was read too; its reason is not known.

    Args:
        device: the GPU.
        backend: as for ``ggml``.
        held_bytes: all that is mapped for it.
    """
    if device.kind is not DeviceKind.UNIFIED or device.vendor is not Vendor.AMD:
        return exactly(0, Basis.EXACT, tr("the device's own memory is mapped in large pages"))
    entries = held_bytes * _ENTRY_BYTES // _PAGE_BYTES
    if backend != "vulkan":
        source = tr(
            "amdgpu: 8 B for each page of 4 KiB; six models on a Strix Halo to a MiB, two at 0"
        )
        return Estimate(
            0,
            entries,
            entries * 6 // 5,
            Basis.FITTED,
            source,
            f"{grouped(held_bytes)} B ÷ 4 KiB × 8 B",
            tr("page tables"),
        )
    likely = held_bytes * 43 // 10_000
    source = tr("Strix Halo under Vulkan: 0.43 % of what seven models of 5 to 104 GB held")
    return Estimate(
        entries,
        likely,
        likely * 4 // 3,
        Basis.FITTED,
        source,
        tr("0.43 % of {held_bytes} GiB").format(
            held_bytes=figures(format(held_bytes / GIB, ".2f"))
        ),
        tr("page tables"),
    )


def torch_process(device: Device) -> Estimate:
    """Context and library workspaces of one PyTorch process on one GPU."""
    for_servers = device.compute_capability in _OF_SERVERS
    return _torch(device.vendor, device.kind, device.sm_count, for_servers)


@lru_cache(maxsize=256)
def _torch(vendor: Vendor, kind: DeviceKind, sm_count: int, for_servers: bool) -> Estimate:  # noqa: FBT001 - cache key
    base = _context(vendor, kind, sm_count)
    if vendor is not Vendor.NVIDIA or kind is DeviceKind.HOST:
        return base
    source = tr(
        "PyTorch processes on T4 (96 to 133 MiB), L4 (263) and RTX 5090 (502): context × 1.1"
    )
    low, tenths = base.likely_bytes * 5 // 8, 11
    if for_servers:
        source = tr("PyTorch processes on A100 80GB (522 MiB) and H100 (754): context × 1.7")
        low, tenths = base.likely_bytes, 17
    return Estimate(
        low,
        base.likely_bytes * tenths // 10,
        base.likely_bytes + 350 * MIB,
        Basis.FITTED,
        tr("{source}, at most 350 MiB more than it").format(source=source),
        tr("{tenths} × {likely_bytes} MiB").format(
            tenths=tenths / 10, likely_bytes=base.likely_bytes // MIB
        ),
        tr("context and libraries"),
    )


def collectives(device: Device, ranks: int) -> Estimate:
    """NCCL (RCCL) and its buffers on one of ``ranks`` devices that share layers."""
    return _collectives(ranks, has_fast_links(device))


def has_fast_links(device: Device) -> bool:
    """Hopper and data-centre Blackwell, whose NCCL keeps more; without a name, size tells."""
    capability = device.compute_capability
    return 9 <= capability < 12 or (not capability and device.total_bytes >= 70 * GIB)


@lru_cache(maxsize=64)
def _collectives(ranks: int, fast: bool) -> Estimate:  # noqa: FBT001 - cache key
    if ranks == 1:
        return exactly(0, Basis.EXACT, tr("one rank talks to nobody"), label="NCCL")
    if not fast:
        source = tr(
            "outside the allocator, context included: four L40S 850, two V100 456, TGI 861 MiB"
        )
        return _read(50, 250, 1000, source, "NCCL")
    if ranks >= 8:
        source = tr("SGLang on eight H200: 1,812 to 2,058 MiB a rank")
        return _read(1000, 1900, 2100, source, "NCCL")
    source = tr("0.9 to 1.5 GiB less free at the start of two and four ranks on H100 than of one")
    return _read(250, 1040, 2100, source, "NCCL")


def _read(
    low: int, likely: int, high: int, source: str, label: str, basis: Basis = Basis.FITTED
) -> Estimate:
    return Estimate(low * MIB, likely * MIB, high * MIB, basis, source, f"{likely} MiB", label)
