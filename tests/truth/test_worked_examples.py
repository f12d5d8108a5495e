"""The worked examples that textbooks and model cards use, as the whole engine answers them."""

from __future__ import annotations

from typing import Any

import pytest

from engine.budget.model import Region
from engine.deployment.spec import Deployment
from engine.fit.verdict import Fit
from engine.sizing import Sizing, size
from tests.helpers.published import GIB, RTX_4090, gpu, machine, model

# 80 GB cards: 79.2 GiB can be allocated of an H100's 81,559 MiB.
H100_PCIE = gpu(79.18, "H100", sm_count=114, capability=9.0)


def answer(name: str, cards: int = 1, **settings: Any) -> Sizing:
    device = RTX_4090 if settings.pop("small", True) else H100_PCIE
    return size(model(name), Deployment(**settings), machine(device, cards))


def weights(sizing: Sizing) -> int:
    return sum(r.regions[Region.WEIGHTS].least_bytes or 0 for r in sizing.budget.ranks)


def test_that_llama_31_8b_is_14_96_gib_and_131072_bytes_a_token() -> None:
    sizing = answer("Llama-3.1-8B", max_model_len=8192)
    assert sizing.budget.model.parameters == 8_030_261_248
    assert weights(sizing) / GIB == pytest.approx(14.96, abs=0.005)
    state = sizing.budget.sequence_state
    assert state.bytes_per_token == 131_072
    assert state.architecture_bytes_per_sequence == GIB


def test_that_sixteen_requests_of_8192_tokens_need_what_no_24_gb_card_holds() -> None:
    sizing = answer("Llama-3.1-8B", max_model_len=8192, concurrency=16)
    (rank,) = sizing.budget.ranks
    assert rank.regions[Region.KV_CACHE].least_bytes == 16 * GIB
    together = weights(sizing) + 16 * GIB
    assert together / 1e9 == pytest.approx(33.2, abs=0.05)
    assert sizing.verdict.fit is Fit.DOES_NOT_FIT


def test_that_70b_in_bf16_takes_two_80_gb_cards() -> None:
    one = answer("Llama-3.1-70B", small=False, max_model_len=4096)
    assert weights(one) == 141_107_412_992
    assert one.verdict.fit is Fit.DOES_NOT_FIT
    two = answer("Llama-3.1-70B", 2, small=False, max_model_len=4096, tensor_parallel_size=2)
    assert two.verdict.fit in (Fit.FITS, Fit.TIGHT)


def test_that_a_mixture_of_experts_keeps_every_expert_resident() -> None:
    sizing = answer("Mixtral-8x7B", small=False, max_model_len=4096)
    assert sizing.budget.model.parameters == 46_702_792_704
    assert weights(sizing) / 1e9 == pytest.approx(93.4, abs=0.05)


def test_that_four_bits_are_more_than_half_a_byte_a_parameter() -> None:
    sizing = answer("Llama-3.1-8B", max_model_len=8192, weight_format="awq-int4")
    lower_bound = 8_030_261_248 // 2
    assert weights(sizing) == pytest.approx(5_727_854_592, rel=1e-6)
    assert weights(sizing) > 1.4 * lower_bound
    gguf = answer("Llama-3.1-8B", runtime="llama.cpp", max_model_len=8192, weight_format="Q4_K_M")
    # The published Q4_K_M file is 4.9 GB.
    held = sum(r.regions[Region.WEIGHTS].estimate.likely_bytes for r in gguf.budget.ranks)
    assert held / 1e9 == pytest.approx(4.9, abs=0.05)


def test_that_gemma_3_27b_reserves_what_its_log_says() -> None:
    # vLLM 0.19, H100 at 0.95: 4.46 sequences of 8,192 tokens from 19.52 GiB (15,997 blocks).
    sizing = answer(
        "gemma-3-27b",
        small=False,
        runtime_version="0.19.0",
        max_model_len=8192,
        max_num_batched_tokens=8192,
        kv_pool_bytes=15_997 * 1_310_720,
    )
    state = sizing.budget.sequence_state
    assert state.num_blocks == 15_997
    assert f"{state.max_concurrency:.2f}" == "4.46"
