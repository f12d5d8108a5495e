"""What no runtime can start, and the sizes that work instead."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from engine.architecture.spec import (
    ArchitectureSpec,
    AttentionKind,
    AttentionSpec,
    LayerSpec,
    ModuleClass,
    MoeSpec,
    StateSpec,
    Tensor,
)
from engine.deployment.spec import Deployment
from engine.devices.device import DeviceKind, Vendor
from engine.errors import DeploymentError
from engine.runtimes import foreign, overheads
from engine.runtimes.checks import (
    check_devices,
    check_numbers,
    check_positions,
    check_splits,
    splits_evenly,
    working_sizes,
)
from engine.runtimes.registry import get
from tests.helpers.published import MIB, RTX_4090, gpu, machine, model


def spec_of(layer: LayerSpec) -> ArchitectureSpec:
    return ArchitectureSpec(
        model_type="test",
        layers=(layer,),
        outer=(),
        mtp=(),
        hidden_size=64,
        vocab_size=64,
        max_position_embeddings=64,
        dtype="bfloat16",
        tie_word_embeddings=False,
        weight_format="bf16",
    )


def test_that_the_sizes_that_work_divide_heads_and_widths() -> None:
    # 28 heads, 4 KV heads, width 18,944 = 2^9 x 37.
    assert working_sizes(model("Qwen2.5-7B").spec) == [1, 2, 4]
    # 32 heads and 8 KV heads, replicated beyond eight ranks.
    assert working_sizes(model("Llama-3.1-8B").spec) == [1, 2, 4, 8, 16, 32]


def test_that_dense_and_expert_widths_must_divide() -> None:
    attention = AttentionSpec(AttentionKind.FULL, 8, 8, 64, 64)
    assert not splits_evenly(spec_of(LayerSpec((), attention, intermediate_size=100)), 8)
    experts = spec_of(LayerSpec((), attention, moe=MoeSpec(16, 2, 100)))
    assert not splits_evenly(experts, 8)
    assert splits_evenly(experts, 8, expert_parallel=True)


def test_that_each_rank_has_a_channel_of_a_convolution() -> None:
    spec = spec_of(LayerSpec((), state=StateSpec("conv", 2, 3, 0, 0)))
    assert working_sizes(spec, 4) == [1, 2]


def test_that_a_pipeline_is_no_longer_than_the_model() -> None:
    short = spec_of(LayerSpec((), AttentionSpec(AttentionKind.FULL, 8, 8, 64, 64)))
    with pytest.raises(DeploymentError, match="1 to 1 work") as refused:
        check_splits(short, Deployment(pipeline_parallel_size=2))
    assert refused.value.field == "pipeline_parallel_size"


def test_that_learned_positions_cannot_be_stretched() -> None:
    table = Tensor("embeddings.position_embeddings.weight", ModuleClass.EMBEDDING, (512, 64))
    rotary = replace(model("Llama-3-8B").spec, max_position_embeddings=512)
    learned = replace(rotary, outer=(*rotary.outer, table))
    check_positions(learned, Deployment(max_model_len=512))
    check_positions(rotary, Deployment(max_model_len=513))
    with pytest.raises(DeploymentError, match="513 is more than the 512 positions") as refused:
        check_positions(learned, Deployment(max_model_len=513))
    assert refused.value.field == "max_model_len"


def test_that_positions_of_a_vision_tower_say_nothing_of_the_context() -> None:
    table = Tensor("vision.position_embedding.weight", ModuleClass.VISION, (577, 64))
    spec = replace(model("Llama-3-8B").spec, max_position_embeddings=512, outer=(table,))
    check_positions(spec, Deployment(max_model_len=513))


STATED: dict[str, dict[str, Any]] = {
    "vLLM": {"max_num_seqs": 8, "gpu_memory_utilization": 0.5},
    "SGLang": {"mem_fraction_static": 0.5, "page_size": 64},
    "llama.cpp": {"n_ctx": 4096, "mmap": False, "tensor_split": (3.0, 1.0), "n_gpu_layers": 0},
    "Transformers": {"batch_size": 9, "attn_implementation": "eager"},
}


@pytest.mark.parametrize(
    ("runtime", "label"),
    [
        ("vllm", "vLLM"),
        ("sglang", "SGLang"),
        ("llama.cpp", "llama.cpp"),
        ("transformers", "Transformers"),
    ],
)
def test_that_settings_of_other_runtimes_are_told_and_left_out(runtime: str, label: str) -> None:
    every = {name: value for found in STATED.values() for name, value in found.items()}
    plan = Deployment(runtime=runtime, max_model_len=2048, **every)
    told = foreign.warnings(plan, runtime)
    expected = {
        f"{name} is a setting of {owner}; {label} ignores it."
        for owner, found in STATED.items()
        for name in found
        if owner != label
    }
    assert set(told) == expected
    assert len(told) == len(expected)
    kept = foreign.without(plan, runtime)
    assert kept == Deployment(runtime=runtime, max_model_len=2048, **STATED[label])
    assert foreign.warnings(kept, runtime) == []


@pytest.mark.parametrize("runtime", ["vllm", "llama.cpp", "transformers"])
def test_that_every_runtime_says_what_it_ignores(runtime: str) -> None:
    plan = Deployment(runtime=runtime, max_model_len=2048, mem_fraction_static=0.5)
    budget = get(runtime).plan(model("Llama-3-8B"), plan, machine(RTX_4090))
    assert any("mem_fraction_static is a setting of SGLang" in line for line in budget.warnings)


def test_that_a_setting_that_yields_to_another_is_told() -> None:
    def told(**settings: Any) -> str:
        plan = Deployment(**settings)
        made = get(plan.runtime).plan(model("Llama-3-8B"), plan, machine(RTX_4090))
        again = get(plan.runtime).plan(model("Llama-3-8B"), made.deployment, machine(RTX_4090))
        assert "counts, not" not in " ".join(again.warnings) or plan.runtime == "transformers"
        return " ".join(made.warnings)

    longer = {"runtime": "llama.cpp", "n_ctx": 4096, "max_model_len": 65_536}
    assert "n_ctx 4,096 counts, not max_model_len 65,536" in told(**longer)
    caches = {"cache_type_k": "q8_0", "cache_type_v": "q8_0", "kv_cache_dtype": "f16"}
    assert "not kv_cache_dtype" in told(runtime="llama.cpp", n_ctx=4096, **caches)
    batch = told(runtime="transformers", batch_size=8, concurrency=2)
    assert "batch_size 8 counts, not concurrency 2" in batch
    assert "counts, not" not in told(runtime="transformers", batch_size=8)


def test_that_a_plan_for_more_devices_than_there_are_is_told_as_a_product_of_its_sizes() -> None:
    with pytest.raises(DeploymentError, match="takes 4 devices; 1 × RTX 4090 has 1 device") as one:
        check_devices(Deployment(tensor_parallel_size=4), machine(RTX_4090))
    assert one.value.field == "tensor_parallel_size"
    both = Deployment(tensor_parallel_size=2, pipeline_parallel_size=4)
    with pytest.raises(DeploymentError, match="takes 2 × 4 = 8 devices") as two:
        check_devices(both, machine(RTX_4090, 4))
    assert two.value.field == "pipeline_parallel_size"


def test_that_absurd_numbers_are_named() -> None:
    with pytest.raises(DeploymentError, match="more than any machine holds"):
        check_numbers(Deployment(max_model_len=10**18))
    with pytest.raises(DeploymentError, match="0 or more"):
        check_numbers(Deployment(speculative_tokens=-1))


def test_that_the_context_follows_the_measured_cards() -> None:
    # Bare contexts read on Linux: RTX 3060 119 and 113 MiB (28 SM), 3090 264 (82), PRO 6000
    # 561 and 605 (188). T4 lies below the fit.
    for sm_count, readings in ((28, (119, 113)), (82, (264,)), (188, (561, 605))):
        found = overheads.context(gpu(24.0, sm_count=sm_count))
        for reading in readings:
            assert found.low_bytes <= reading * MIB <= found.high_bytes


def test_that_other_vendors_have_ranges_of_their_own() -> None:
    card = gpu(24.0)
    radeon = overheads.context(replace(card, vendor=Vendor.AMD))
    assert radeon.low_bytes <= 253 * MIB <= radeon.high_bytes
    arc = overheads.context(replace(card, vendor=Vendor.INTEL))
    assert arc.high_bytes >= 1370 * MIB
    unknown = overheads.context(card)
    assert unknown.low_bytes < unknown.likely_bytes < unknown.high_bytes
    mac = overheads.context(replace(card, vendor=Vendor.APPLE, kind=DeviceKind.UNIFIED))
    assert mac.high_bytes == 0
