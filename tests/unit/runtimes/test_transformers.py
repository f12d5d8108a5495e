"""Transformers' budget: cache of a whole batch, a prefill peak, layers over devices."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.architecture.read import specify
from engine.budget.model import Budget, Region
from engine.deployment.spec import Deployment
from engine.errors import DeploymentError
from engine.runtimes.registry import get
from engine.runtimes.transformers.cache import growth_bytes
from tests.helpers.published import GIB, H100, RTX_4090, machine, model

if TYPE_CHECKING:
    from engine.devices.device import Machine

HERE = machine(RTX_4090)


def plan(name: str = "Llama-3.1-8B", where: Machine = HERE, **settings: Any) -> Budget:
    chosen = {"runtime": "transformers", "max_model_len": 8192} | settings
    return get("transformers").plan(model(name), Deployment(**chosen), where)


def kv(budget: Budget, rank: int = 0) -> int:
    return budget.ranks[rank].regions[Region.KV_CACHE].estimate.likely_bytes


def test_that_the_cache_is_that_of_the_whole_batch() -> None:
    assert kv(plan()) == GIB
    assert kv(plan(concurrency=16)) == 16 * GIB
    assert kv(plan(batch_size=2, concurrency=16)) == 2 * GIB


def test_that_every_region_is_there_and_absent_ones_say_why() -> None:
    (rank,) = plan().ranks
    assert list(rank.regions) == list(Region)
    graphs = rank.regions[Region.CUDA_GRAPHS]
    assert graphs.estimate.high_bytes == 0
    assert "Not used" in graphs.note
    assert not rank.has_pool


def test_that_latent_attention_is_cached_as_the_latent_vector() -> None:
    # 61 layers x (512 + 64) x 2 B a token, as measured of deepseek_v3 in transformers 5.24.
    assert kv(plan("Kimi-K2", machine(H100), max_model_len=1)) == 61 * 576 * 2


def test_that_a_dynamic_cache_keeps_one_token_less_than_the_window() -> None:
    full, windowed, per_token = 12 * 8192, 12 * 127, 2048
    assert kv(plan("gpt-oss-20b")) == (full + windowed) * per_token
    static = plan("gpt-oss-20b", cache_implementation="static")
    assert kv(static) == (full + 12 * 128) * per_token


def test_that_eager_attention_pays_for_its_scores() -> None:
    # 8,192 x 8,192 scores of 32 heads at 8 bytes: 16 GiB for one layer.
    eager = plan(attn_implementation="eager").ranks[0].regions[Region.ACTIVATIONS].estimate
    sdpa = plan().ranks[0].regions[Region.ACTIVATIONS].estimate
    assert eager.likely_bytes - sdpa.likely_bytes > 15.5 * GIB
    assert sdpa.likely_bytes < 1.2 * GIB


def test_that_a_short_prompt_needs_less_than_a_long_one() -> None:
    short = plan(prompt_len=128).ranks[0].regions[Region.ACTIVATIONS].estimate
    long = plan().ranks[0].regions[Region.ACTIVATIONS].estimate
    assert short.likely_bytes < long.likely_bytes


def test_that_sizes_of_the_sequence_state_are_of_the_fullest_device() -> None:
    # 32 layers of 4,096 B a token: whole, shared out by heads, and dealt over two cards.
    whole = plan("Llama-3.1-8B", machine(H100), max_model_len=4096).sequence_state
    assert (whole.bytes_per_token, whole.reserved_bytes_per_sequence) == (131_072, 2**29)
    halved = plan(
        "Llama-3.1-8B", machine(H100, 2), max_model_len=4096, tensor_parallel_size=2
    ).sequence_state
    assert (halved.bytes_per_token, halved.reserved_bytes_per_sequence) == (65_536, 2**28)
    dealt = plan("Llama-3.1-8B", machine(H100, 2), max_model_len=4096)
    most = max(rank.needed.likely_bytes for rank in dealt.ranks)
    layers = most // (4096 * 4096)
    assert 16 <= layers < 32
    assert dealt.sequence_state.reserved_bytes_per_sequence == layers * 4096 * 4096
    assert dealt.sequence_state.bytes_per_token == layers * 4096
    for state in (whole, halved, dealt.sequence_state):
        assert state.architecture_bytes_per_sequence == 2**29


def test_that_ranks_that_share_the_layers_each_hold_a_table_that_no_plan_names() -> None:
    # Llama-3.1-8B: 32 layers of 218,112,000 weights, 8,192 of them norms; a table and a head of
    # 128,256 × 4,096, the head cut. Llama-3.2-1B ties them: cut since 5.15, whole before.
    layers, norms, table = 32 * (218_112_000 - 8192), 32 * 8192 + 4096, 128_256 * 4096
    where = machine(H100, 2)
    for rank in plan(where=where, tensor_parallel_size=2).ranks:
        held = rank.regions[Region.WEIGHTS].estimate.likely_bytes
        assert held == 2 * (layers // 2 + norms + table + table // 2)
    new, old = (
        plan("Llama-3.2-1B", where, tensor_parallel_size=2, runtime_version=version)
        for version in ("5.15.0", "5.14.0")
    )
    sizes = [b.ranks[0].regions[Region.WEIGHTS].estimate.likely_bytes for b in (new, old)]
    assert sizes[1] - sizes[0] == 128_256 * 2048


def test_that_layers_are_dealt_over_the_devices_and_none_is_lost() -> None:
    for name in ("Llama-3.1-8B", "Llama-3.2-1B", "gpt-oss-20b"):
        one = plan(name, HERE).ranks[0].regions[Region.WEIGHTS].estimate.likely_bytes
        spread = plan(name, machine(RTX_4090, 3))
        sizes = [r.regions[Region.WEIGHTS].estimate.likely_bytes for r in spread.ranks]
        assert sum(sizes) == one
        assert sum(kv(spread, i) for i in range(3)) == kv(plan(name, HERE))
        assert max(sizes) < one * 0.6


def test_that_the_cpu_has_no_context_and_no_workspace() -> None:
    host = machine(RTX_4090)
    budget = plan(where=replace(host, slots=(host.host,)))
    assert budget.ranks[0].regions[Region.RUNTIME].estimate.high_bytes == 0


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"attn_implementation": "paged"}, "attn_implementation"),
        ({"cache_implementation": "hybrid"}, "cache_implementation"),
        ({"device_map": "cuda:1"}, "device_map"),
        ({"runtime_version": "3.0"}, "runtime_version"),
        ({"kv_cache_dtype": "fp8"}, "kv_cache_dtype"),
        ({"weight_format": "Q4_K_M"}, "weight_format"),
        ({"tensor_parallel_size": 2}, "tensor_parallel_size"),
    ],
)
def test_that_an_impossible_deployment_names_the_field(
    settings: dict[str, Any], field: str
) -> None:
    with pytest.raises(DeploymentError) as refused:
        plan(**settings)
    assert refused.value.field == field


@pytest.mark.parametrize("cache", ["offloaded", "offloaded_static", "quantized"])
def test_that_every_cache_that_transformers_has_is_planned(cache: str) -> None:
    # transformers 5.24.0, generation/configuration_utils.py: it takes all of these.
    assert kv(plan(cache_implementation=cache)) < kv(plan())


def test_that_every_default_used_is_listed() -> None:
    told = " ".join(plan(max_model_len=None).assumptions)
    for words in ("4,096 tokens", "sdpa", "dynamic cache", "whole context"):
        assert words in told


@given(context=st.integers(1, 100_000), more=st.integers(0, 10_000), batch=st.integers(1, 8))
def test_that_more_tokens_never_cost_less(context: int, more: int, batch: int) -> None:
    few = plan("gpt-oss-20b", max_model_len=context, batch_size=batch).ranks[0].planned
    long = plan("gpt-oss-20b", max_model_len=context + more, batch_size=batch).ranks[0].planned
    assert long.likely_bytes >= few.likely_bytes
    assert long.high_bytes >= few.high_bytes


def test_that_one_more_token_never_costs_less_than_nothing() -> None:
    # DeepSeek-V4 folds four or 128 tokens into an entry: the share of one is what counts.
    spec = specify({"model_type": "deepseek_v4"})
    for tokens in (7, 127, 128, 2047, 2048):
        assert sum(growth_bytes(layer, tokens, "bfloat16") for layer in spec.layers) >= 0
    # Past the window: a 128th of 512 values, or a fourth of 512 and 128 of the index, 2 B each.
    kinds = {growth_bytes(layer, 4096, "bfloat16") for layer in spec.layers}
    assert kinds <= {0, 512 * 2 // 128, (512 + 128) * 2 // 4}


def test_that_a_map_beside_tensor_parallel_ranks_is_refused() -> None:
    two = machine(RTX_4090, 2)
    with pytest.raises(DeploymentError, match="takes one") as caught:
        plan(where=two, tensor_parallel_size=2, device_map="auto")
    assert caught.value.field == "device_map"
    plan(where=two, tensor_parallel_size=2, device_map="none")
