"""MLX's budget as a whole: steps of growth, packing, the working set, and what it refuses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from engine.budget.model import Region
from engine.deployment.spec import Deployment
from engine.devices import catalogue
from engine.errors import DeploymentError
from engine.runtimes.mlx import Mlx
from tests.helpers.published import GIB, RTX_4090, machine, model

if TYPE_CHECKING:
    from engine.budget.model import Budget, RankBudget

LLAMA = "Llama-3.1-8B"
TOKEN = 32 * 2 * 8 * 128 * 2
"""Bytes of a token in all layers, in 16 bits."""


def plan(name: str = LLAMA, mac: str = "M3 Ultra 256GB", **settings: Any) -> Budget:
    chosen = {"runtime": "mlx", "max_model_len": 8192, "prompt_len": 8191} | settings
    where = catalogue.machine(catalogue.find(mac))
    return Mlx().plan(model(name), Deployment(**chosen), where)


def rank(**settings: Any) -> RankBudget:
    return plan(**settings).ranks[0]


def kv(**settings: Any) -> int:
    return rank(**settings).regions[Region.KV_CACHE].estimate.likely_bytes


def test_that_the_cache_grows_256_tokens_at_a_time() -> None:
    assert kv(max_model_len=300, prompt_len=299) == 512 * TOKEN
    assert kv(max_model_len=513, prompt_len=299) == 768 * TOKEN
    assert kv(max_model_len=512, prompt_len=299) == 512 * TOKEN


def test_that_a_grown_cache_lies_beside_the_old_one_for_a_moment() -> None:
    # 256 new rows beside 8,192 old ones, of keys and values of all layers at the most.
    decode = rank(max_model_len=8300, prompt_len=8000).moments.decode
    assert decode is not None
    assert 0 < decode.likely_bytes <= 8448 * TOKEN * 5 // 4


@pytest.mark.parametrize(("bits", "share"), [(8, 34), (4, 18), (2, 10)])
def test_that_a_quantised_cache_keeps_a_scale_and_a_bias_for_64_values(
    bits: int, share: int
) -> None:
    # Of 64 values of 16 bits: so many of ``bits``, and twice 16.
    assert kv(kv_bits=bits) == 8192 * TOKEN * share // 64


def test_that_a_cache_is_quantised_from_a_token_on() -> None:
    assert kv(kv_bits=8, max_model_len=4096, prompt_len=4095) == 4096 * TOKEN
    early = kv(kv_bits=8, max_model_len=4096, prompt_len=4095, quantized_kv_start=0)
    assert early == 4096 * TOKEN * 34 // 64


def test_that_a_smaller_chunk_of_the_prompt_makes_a_smaller_peak() -> None:
    sizes = [
        rank(prefill_step_size=step).regions[Region.ACTIVATIONS].estimate.likely_bytes
        for step in (512, 2048, 8192)
    ]
    assert sizes == sorted(sizes)
    assert sizes[0] * 2 < sizes[2]


def test_that_windows_are_never_packed() -> None:
    told = plan("gpt-oss-20b", kv_bits=8).refusals
    assert told == ("mlx-lm can't quantise the rotating caches of this model's windows.",)


@pytest.mark.parametrize("bits", [3, 6, 16])
def test_that_bits_that_mlx_lm_does_not_take_are_refused(bits: int) -> None:
    with pytest.raises(DeploymentError) as refused:
        plan(kv_bits=bits)
    assert refused.value.field == "kv_bits"


def test_that_nine_tenths_of_the_working_set_are_warned_of() -> None:
    # 16.06 GB of weights: of the 16.0 to 17.8 GiB that macOS lets a Mac of 24 GB wire, 0.84; of
    # the 10.7 of one of 16 GB, more than all.
    assert "0.9 ×" in " ".join(plan(mac="M1 Pro 16 GB").warnings)
    assert "0.9 ×" not in " ".join(plan(mac="M5 24 GB").warnings)


def test_that_a_buffer_above_metals_largest_is_refused() -> None:
    # Scores of 32 heads over 65,536 tokens at once in a build that writes its masks out.
    asked = {"max_model_len": 65_536, "prompt_len": 65_535, "prefill_step_size": 65_536}
    found = plan(mac="M1 Pro 16 GB", runtime_version="0.22.1", **asked)
    assert "Metal takes none above" in found.refusals[0]
    assert not plan(mac="M1 Pro 16 GB", runtime_version="0.22.1").refusals


def test_that_ranks_that_share_the_layers_each_hold_table_and_head() -> None:
    # 32 layers of 218,112,000 weights, 8,192 of them norms; two tables of 128,256 × 4,096.
    layers, norms, tables = 32 * (218_112_000 - 8192), 32 * 8192 + 4096, 2 * 128_256 * 4096
    where = catalogue.machine(catalogue.find("M3 Ultra 256GB"), 2)
    asked = Deployment(runtime="mlx", max_model_len=8192, tensor_parallel_size=2)
    for each in Mlx().plan(model(LLAMA), asked, where).ranks:
        held = each.regions[Region.WEIGHTS].estimate.likely_bytes
        assert held == 2 * (layers // 2 + norms + tables)


def test_that_no_build_of_mlx_computes_on_amd() -> None:
    where = catalogue.machine(catalogue.find("RX 7900 XTX"))
    with pytest.raises(DeploymentError, match="MLX has no build") as refused:
        Mlx().plan(model(LLAMA), Deployment(runtime="mlx"), where)
    assert refused.value.field == "runtime"


def test_that_what_is_not_metal_is_in_doubt() -> None:
    found = Mlx().plan(model(LLAMA), Deployment(runtime="mlx"), machine(RTX_4090))
    assert any("CUDA build" in doubt.reason for doubt in found.doubts)


def test_that_a_server_keeps_finished_prompts_after_its_first_requests() -> None:
    assert rank().moments.sustained == ()
    (kept,) = rank(concurrency=2).moments.sustained
    assert kept.label == "Caches of finished prompts"
    assert kept.high_bytes == 10 * 8192 * TOKEN
    assert kept.high_bytes == 10 * GIB


def test_that_experts_are_stacked_beside_their_parts_while_they_load() -> None:
    # 32 experts of three matrices of 2,880², in 4.25 bits, one layer.
    (part,) = rank(name="gpt-oss-20b").moments.load
    assert part.label == "Experts beside their stack"
    assert part.likely_bytes == pytest.approx(32 * 3 * 2880 * 2880 * 4.25 / 8, rel=0.01)
