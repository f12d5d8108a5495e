"""What no runtime can start, and the sizes that work instead."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.architecture.spec import (
    ArchitectureSpec,
    AttentionKind,
    AttentionSpec,
    LayerSpec,
    MoeSpec,
)
from engine.deployment.spec import Deployment
from engine.devices.device import DeviceKind, Vendor
from engine.errors import DeploymentError
from engine.runtimes import overheads
from engine.runtimes.checks import check_numbers, check_splits, splits_evenly, working_sizes
from tests.helpers.published import MIB, gpu, model


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


def test_that_a_pipeline_is_no_longer_than_the_model() -> None:
    short = spec_of(LayerSpec((), AttentionSpec(AttentionKind.FULL, 8, 8, 64, 64)))
    with pytest.raises(DeploymentError, match="1 to 1 work") as refused:
        check_splits(short, Deployment(pipeline_parallel_size=2))
    assert refused.value.field == "pipeline_parallel_size"


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
