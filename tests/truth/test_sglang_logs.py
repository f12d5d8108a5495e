"""Starts of SGLang 0.4.2 to 0.5.16 on other people's machines: what became of the free memory.

Every start states what was free before and after loading; from these and the share, given or
worked out, follow the tokens of the pool and the recurrent states that its log prints. The sizes
of the devices are those that the drivers of such cards report.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from engine.budget.model import Region, RegionBudget
from engine.deployment.spec import Deployment
from engine.devices.device import Device, DeviceKind, Machine, Slot, Vendor
from engine.evidence import Basis, exactly
from engine.runtimes.sglang.pool import Pool, Room, pool_of, stages
from engine.runtimes.sglang.settings import settle
from engine.units import GIB, MIB
from tests.helpers.sglang import catalogued

_PUBLIC = "public GitHub file, reference "


@dataclass(frozen=True)
class Start:
    """One logged start, sizes in GiB as printed."""

    source: str
    model: str
    version: str
    device_mib: int
    capability: float
    free_before: float
    loaded: float
    """Free before loading less free after it."""
    tokens: int
    settings: dict[str, Any] = field(default_factory=dict[str, Any])
    slots: int | None = None
    vendor: Vendor = Vendor.NVIDIA
    window: float = 0.01
    """How far the tokens may be off: free memory is printed to 0.01 GiB."""


STARTS = (
    Start(
        "https://github.com/sgl-project/sglang/pull/4760",
        "meta-llama/Llama-3.1-8B-Instruct", "0.4.4", 81559, 9.0, 78.59, 15.11, 442_750,
    ),
    Start(
        _PUBLIC + "49361099215",
        "meta-llama/Llama-3.1-8B-Instruct", "0.4.9", 24564, 8.9, 22.39, 15.02, 38_141,
        {"chunked_prefill_size": 2048},
    ),
    Start(
        _PUBLIC + "9542409931",
        "Qwen/Qwen3-0.6B", "0.4.6", 4096, 8.6, 3.23, 1.20, 15_387,
    ),
    Start(
        _PUBLIC + "8893364747",
        "Qwen/Qwen2.5-7B-Instruct", "0.4.2", 24564, 8.9, 22.76, 14.39, 105_531,
    ),
    Start(
        _PUBLIC + "47376055009",
        "Qwen/Qwen2.5-32B-Instruct", "0.4.3", 23028, 8.6, 21.63, 15.54, 46_611,
        {"tensor_parallel_size": 4},
    ),
    Start(
        _PUBLIC + "55529353766",
        "Qwen/Qwen3-14B", "0.5.5", 24564, 8.9, 23.08, 7.08, 298_447,
        {"tensor_parallel_size": 4, "mem_fraction_static": 0.8},
    ),
    Start(
        # 284,208 MiB as a B300 of 275.75 GiB free must have at the least; pages of 64.
        _PUBLIC + "54815375998",
        "Qwen/Qwen3-8B", "0.5.12", 284_208, 10.3, 275.75, 15.28, 1_707_904,
    ),
    Start(
        # A vision tower of 27 layers × 1,152; Triton's kernels, since 8 heads of a rank are none
        # that AITER reads.
        _PUBLIC + "1272019175",
        "moonshotai/Kimi-K2.5", "0.5.8", 294_896, 0.0, 283.56, 73.58, 2_454_421,
        {"tensor_parallel_size": 8}, vendor=Vendor.AMD, window=0.02,
    ),
    Start(
        _PUBLIC + "46415979912",
        "LiquidAI/LFM2-700M", "0.5.6", 16_376, 8.9, 15.33, 1.52, 473_854,
        slots=85_292,
    ),
    Start(
        _PUBLIC + "46857556603",
        "ibm-granite/granite-4.0-h-micro", "0.5.8", 16_160, 7.0, 15.24, 5.98, 399_740,
        slots=38,
    ),
    Start(
        # Radix cache off: one state for each of 32 requests, and one of padding.
        _PUBLIC + "57759592298",
        "Qwen/Qwen3.5-27B", "0.5.15", 122_570, 12.1, 111.73, 51.86, 535_124,
        {
            "mem_fraction_static": 0.8, "max_running_requests": 32, "max_model_len": 2048,
            "enable_prefix_caching": False, "chunked_prefill_size": 8192,
        },
        slots=32,
    ),
)  # fmt: skip


def name(start: Start) -> str:
    return f"{start.model.partition('/')[2]} {start.version}"


def pool(start: Start) -> Pool:
    """The pool that the rules give for what was free."""
    total = start.device_mib * MIB
    device = Device(
        "logged card", start.vendor, DeviceKind.DISCRETE, "", total,
        exactly(total, Basis.READ, "the driver's total"), compute_capability=start.capability,
    )  # fmt: skip
    slot = Slot(device, exactly(0, Basis.READ, "free memory is given"))
    ranks = start.settings.get("tensor_parallel_size", 1)
    there = Machine("logged machine", (slot,) * ranks, slot, is_here=False)
    deployment = Deployment(runtime="sglang", runtime_version=start.version, **start.settings)
    model = catalogued(start.model)
    settings = settle(model, deployment, there)
    free = round(start.free_before * GIB)
    loaded = exactly(round(start.loaded * GIB), Basis.READ, "free memory before and after")
    found = tuple(
        replace(
            stage,
            weights=RegionBudget(Region.WEIGHTS, loaded, None, "as logged"),
            sized_with=loaded,
        )
        for stage in stages(model, settings, settings.context)
    )
    rooms = [(found[0], Room([loaded], free, free, free)) for _ in range(ranks)]
    return pool_of(model, settings, found, rooms)


@pytest.mark.parametrize("start", STARTS, ids=name)
def test_that_tokens_follow_from_what_was_free(start: Start) -> None:
    assert pool(start).tokens == pytest.approx(start.tokens, rel=start.window)


@pytest.mark.parametrize("start", [s for s in STARTS if s.slots], ids=name)
def test_that_states_follow_too(start: Start) -> None:
    states = pool(start).states
    assert states is not None
    assert states.slots == pytest.approx(start.slots, rel=0.01)


def test_that_most_are_much_nearer() -> None:
    errors = sorted(abs(pool(start).tokens / start.tokens - 1) for start in STARTS)
    assert errors[len(errors) // 2] < 0.003
