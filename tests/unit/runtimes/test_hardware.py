"""What a device can't compute in: weights unpacked, refused, or said to be unproven."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from engine.budget.model import Budget, Region, RegionBudget
from engine.deployment.spec import Deployment
from engine.devices.device import DeviceKind, Vendor
from engine.errors import DeploymentError
from engine.evidence import Basis
from engine.fit.solve import limits
from engine.report import words
from engine.runtimes.registry import get
from engine.sizing import size
from tests.helpers.published import GIB, H100, RTX_4090, gpu, machine, model

if TYPE_CHECKING:
    from engine.devices.device import Device

V100 = gpu(200, "V100", sm_count=80, capability=7.0)
A100 = gpu(79.25, "A100", sm_count=108, capability=8.0)
MAC = replace(gpu(200, "M4 Max"), vendor=Vendor.APPLE, kind=DeviceKind.UNIFIED)
MI300X = replace(gpu(191.9, "MI300X"), vendor=Vendor.AMD)
# memory model 1.6, "MXFP4 in TF": the stored file, and the same in BF16.
GPT_OSS_MXFP4, GPT_OSS_BF16 = 13_761_264_768, 41_829_514_368
LLAMA_8B_BF16 = 2 * 8_030_261_248


def plan(device: Device, runtime: str, name: str = "Llama-3.1-8B", **settings: Any) -> Budget:
    chosen = {"runtime": runtime, "max_model_len": 4096} | settings
    return get(runtime).plan(model(name), Deployment(**chosen), machine(device))


def weights(budget: Budget) -> RegionBudget:
    return budget.ranks[0].regions[Region.WEIGHTS]


@pytest.mark.parametrize("device", [V100, MAC, MI300X])
def test_that_mxfp4_is_unpacked_where_transformers_has_no_kernels_for_it(device: Device) -> None:
    budget = plan(device, "transformers", "gpt-oss-20b")
    region = weights(budget)
    assert region.estimate.likely_bytes == GPT_OSS_BF16
    assert region.gap == "Stored in MXFP4, unpacked on loading."
    assert any("unpacked to BF16" in said for said in budget.warnings)
    assert words.weights(budget) == "MXFP4, as stored, unpacked to BF16"
    asked = Deployment(runtime="transformers", max_model_len=4096)
    found = limits(model("gpt-oss-20b"), asked, machine(device))
    assert found.best_weight_format == "bf16"


def test_that_mxfp4_on_amd_may_stay_packed() -> None:
    estimate = weights(plan(MI300X, "transformers", "gpt-oss-20b")).estimate
    assert (estimate.low_bytes, estimate.high_bytes) == (GPT_OSS_MXFP4, GPT_OSS_BF16)
    assert estimate.basis is Basis.ASSUMED


def test_that_mxfp4_stays_packed_on_the_assumption_that_its_kernels_are_installed() -> None:
    budget = plan(H100, "transformers", "gpt-oss-20b")
    assert weights(budget).estimate.likely_bytes == GPT_OSS_MXFP4
    assert any("kernels and triton" in said for said in budget.assumptions)


def test_that_the_verdict_is_that_of_the_unpacked_weights() -> None:
    # 39.0 GiB in BF16 against 32 GiB; packed it would take 12.8.
    small = replace(gpu(32, "V100", sm_count=80, capability=7.0))
    asked = Deployment(runtime="transformers", max_model_len=4096)
    verdict = size(model("gpt-oss-20b"), asked, machine(small)).verdict
    assert verdict.fit.value == "does_not_fit"


def test_that_transformers_unpacks_fp8_below_capability_8_9() -> None:
    old = plan(A100, "transformers", weight_format="fp8-block")
    assert weights(old).estimate.likely_bytes == LLAMA_8B_BF16
    new = plan(RTX_4090, "transformers", weight_format="fp8-block")
    assert weights(new).estimate.likely_bytes < LLAMA_8B_BF16 * 6 // 10
    assert not new.warnings


@pytest.mark.parametrize("name", ["nf4", "int8", "awq-int4", "gptq-int4"])
def test_that_a_format_no_record_shows_on_apple_is_assumed_and_warned_of(name: str) -> None:
    budget = plan(MAC, "transformers", weight_format=name)
    assert weights(budget).estimate.basis is Basis.ASSUMED
    assert any("no record" in said for said in budget.warnings)
    assert weights(plan(H100, "transformers", weight_format=name)).estimate.basis is Basis.EXACT


@pytest.mark.parametrize("name", ["fp8", "mxfp4", "nvfp4"])
def test_that_transformers_makes_no_such_weights_on_apple(name: str) -> None:
    with pytest.raises(DeploymentError, match="M4 Max") as caught:
        plan(MAC, "transformers", weight_format=name)
    assert caught.value.field == "weight_format"


@pytest.mark.parametrize("name", ["fp8", "fp8-block", "awq-int4"])
def test_that_vllm_refuses_below_turing_what_its_table_refuses(name: str) -> None:
    with pytest.raises(DeploymentError, match=r"minimum capability 7\.5, its own 7\.0"):
        plan(V100, "vllm", weight_format=name)


def test_that_vllm_keeps_fp8_at_one_byte_on_ampere() -> None:
    budget = plan(A100, "vllm", weight_format="fp8")
    hopper = plan(H100, "vllm", weight_format="fp8")
    assert weights(budget).estimate.likely_bytes == weights(hopper).estimate.likely_bytes
    assert any("Marlin" in said for said in budget.warnings)
    assert not any("Marlin" in said for said in hopper.warnings)


def test_that_figures_fitted_on_nvidia_are_assumed_elsewhere() -> None:
    budget = plan(MI300X, "vllm")
    regions = budget.ranks[0].regions
    for region in (Region.ACTIVATIONS, Region.CUDA_GRAPHS, Region.RUNTIME, Region.KV_CACHE):
        assert regions[region].estimate.basis is Basis.ASSUMED
    assert len([said for said in budget.warnings if "NVIDIA" in said]) == 1
    there = plan(H100, "vllm").ranks[0].regions[Region.CUDA_GRAPHS]
    assert there.estimate.basis is Basis.FITTED


@pytest.mark.parametrize("runtime", ["vllm", "transformers", "llama.cpp"])
@pytest.mark.parametrize("name", ["Llama-3.1-8B", "gpt-oss-20b", "gemma-3-27b", "Kimi-K2"])
def test_that_nothing_exact_has_a_range(runtime: str, name: str) -> None:
    formats = ("auto", "Q4_K_M") if runtime == "llama.cpp" else ("auto", "nf4", "awq-int4")
    for chosen in formats:
        for device in (gpu(2000, "huge", sm_count=132, capability=9.0), MAC):
            budget = plan(device, runtime, name, weight_format=chosen)
            for rank in budget.ranks:
                for region in rank.regions.values():
                    certain = region.estimate.basis in (Basis.EXACT, Basis.READ)
                    assert region.estimate.is_point or not certain, (region.region, chosen)


def test_that_llama_cpp_says_when_even_the_host_cannot_hold_the_rest() -> None:
    # Llama 8B in BF16, 15 GiB: 4 GiB on the card and 3 GiB of RAM are too little.
    small, asked = gpu(4, "small"), Deployment(runtime="llama.cpp", max_model_len=4096)
    roomy = machine(small)
    ram = roomy.host.device
    size_bytes = 3 * GIB
    narrow = replace(
        ram,
        total_bytes=size_bytes,
        allocatable=replace(
            ram.allocatable, low_bytes=size_bytes, likely_bytes=size_bytes, high_bytes=size_bytes
        ),
    )
    poor = replace(roomy, host=replace(roomy.host, device=narrow))
    assert "--fit" in size(model("Llama-3.1-8B"), asked, roomy).verdict.detail
    detail = size(model("Llama-3.1-8B"), asked, poor).verdict.detail
    assert "--fit" not in detail
    assert "even with the computer’s own memory" in detail


def test_that_a_tied_embedding_on_apple_may_be_the_same_file_pages() -> None:
    # gemma-3-1b ties 262,144 x 1,152 in BF16.
    mapped = weights(plan(MAC, "llama.cpp", "gemma-3-1b", weight_format="BF16")).estimate
    assert mapped.likely_bytes - mapped.low_bytes == 262_144 * 1152 * 2
    assert mapped.basis is Basis.ASSUMED
    read = weights(plan(MAC, "llama.cpp", "gemma-3-1b", weight_format="BF16", mmap=False)).estimate
    assert read.is_point
