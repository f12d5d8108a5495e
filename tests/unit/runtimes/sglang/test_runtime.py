"""SGLang's budgets as a whole: regions, ranks, refusals, words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from engine.budget.model import Budget, Region
from engine.deployment.spec import Deployment
from engine.errors import DeploymentError
from engine.evidence import Basis
from engine.fit.verdict import Fit
from engine.runtimes.sglang import Sglang
from engine.runtimes.sglang.parallel import stage_sizes
from engine.sizing import size
from tests.helpers.published import GIB, H100, RTX_4090, gpu, machine, model
from tests.helpers.sglang import sized

MIB = 2**20
LLAMA = "Llama-3.1-8B"


def plan(name: str = LLAMA, count: int = 1, card: Any = H100, **settings: Any) -> Budget:
    deployment = Deployment(runtime="sglang", **settings)
    return Sglang().plan(model(name), deployment, machine(card, count))


def likely(budget: Budget, region: Region, rank: int = 0) -> int:
    return budget.ranks[rank].regions[region].estimate.likely_bytes


def test_that_the_regions_reach_the_load_line() -> None:
    for budget in (
        plan(),
        plan(card=RTX_4090, max_model_len=8192),
        plan("Llama-3.1-70B", 4, tensor_parallel_size=4),
        plan(kv_pool_bytes=8 * GIB),
        plan(max_total_tokens=4096),
    ):
        for rank in budget.ranks:
            held = sum(r.estimate.likely_bytes for r in rank.regions.values())
            # What is less than a page of the pool stays in the headroom.
            assert held == rank.slot.device.allocatable.likely_bytes
            assert set(rank.regions) == set(Region)
            assert rank.has_pool


def test_that_the_pool_is_the_rest_of_the_share() -> None:
    budget = plan(mem_fraction_static=0.88)
    room = budget.ranks[0]
    runtime = room.regions[Region.RUNTIME].estimate
    before = sum(part.likely_bytes for part in runtime.parts if part.label != "request tables")
    before -= sum(p.likely_bytes for p in runtime.parts if p.label == "attention workspace")
    free = H100.allocatable.likely_bytes - before
    rest = free * 0.88 - likely(budget, Region.WEIGHTS)
    tokens = budget.sequence_state.pool_tokens or 0
    assert tokens == int(rest) // 131_072
    # A page, here a token, lies before the first.
    assert likely(budget, Region.KV_CACHE) == (tokens + 1) * 131_072


def test_that_a_given_pool_says_its_tokens() -> None:
    # A start of Llama-3.1-8B of July 2025 prints 4.66 GiB and 38,141 tokens.
    budget = plan(kv_pool_bytes=38_141 * 131_072 + 7, card=RTX_4090)
    assert budget.sequence_state.pool_tokens == 38_141
    assert likely(budget, Region.KV_CACHE) == 38_141 * 131_072 + 7


def test_that_tables_have_a_row_for_every_request() -> None:
    # 512 × 38,141 / 131,072 = 148 requests, at the least 2,048: 2,049 × 131,076 × 4 B = 1.0 GiB.
    budget = plan(kv_pool_bytes=38_141 * 131_072, card=RTX_4090, runtime_version="0.4.9")
    (tables,) = (
        p for p in budget.ranks[0].regions[Region.RUNTIME].estimate.parts
        if p.label == "request tables"
    )  # fmt: skip
    assert tables.low_bytes == 2049 * 131_076 * 4
    # Kimi-K2.5: 4,096 requests of 262,144 tokens, 4.0 of the 4.1 GiB beyond its cache.
    kimi = sized(
        "moonshotai/Kimi-K2.5", gpu="MI355X", gpu_count=8, tensor_parallel_size=8,
        kv_pool_bytes=172_472_000_000,
    ).budget  # fmt: skip
    parts = kimi.ranks[0].regions[Region.RUNTIME].estimate.parts
    (tables,) = (p for p in parts if p.label == "request tables")
    assert tables.low_bytes == 4097 * 262_148 * 4


def test_that_aiter_keeps_partial_results_of_every_request() -> None:
    # Pull request 18263: 1,669,816 tokens, 3,261 requests, a workspace of 51.75 GiB.
    budget = sized(
        "Qwen/Qwen3-30B-A3B-Instruct-2507", gpu="MI355X", runtime_version="0.5.16",
        kv_pool_bytes=1_669_816 * 98_304,
    ).budget  # fmt: skip
    parts = budget.ranks[0].regions[Region.RUNTIME].estimate.parts
    (workspace,) = (p for p in parts if p.label == "attention workspace")
    assert workspace.likely_bytes == 3261 * 1024 * 32 * 520
    assert workspace.likely_bytes / GIB == pytest.approx(51.75, abs=0.01)


def test_that_others_shrink_the_pool_and_nothing_else() -> None:
    alone = plan(mem_fraction_static=0.85)
    crowded = Sglang().plan(
        model(LLAMA),
        Deployment(runtime="sglang", mem_fraction_static=0.85),
        machine(H100, foreign_bytes=10 * GIB),
    )
    lost = likely(alone, Region.KV_CACHE) - likely(crowded, Region.KV_CACHE)
    assert lost == pytest.approx(8.5 * GIB, abs=200_000)
    assert likely(crowded, Region.FOREIGN) == 10 * GIB


def test_that_the_poorest_device_sets_the_pool_of_all() -> None:
    two = machine(H100, 2)
    small = replace(two.slots[1], device=gpu(47.0, "smaller", sm_count=132, capability=9.0))
    mixed = replace(two, slots=(two.slots[0], small))
    deployment = Deployment(runtime="sglang", tensor_parallel_size=2, mem_fraction_static=0.8)
    budget = Sglang().plan(model(LLAMA), deployment, mixed)
    assert likely(budget, Region.KV_CACHE, 0) == likely(budget, Region.KV_CACHE, 1)
    headrooms = [likely(budget, Region.HEADROOM, i) for i in (0, 1)]
    assert headrooms[0] - headrooms[1] == pytest.approx((79.19 - 47.0) * GIB, abs=MIB)


def test_that_the_last_stages_take_what_is_left_over() -> None:
    assert stage_sizes(62, 4) == (15, 15, 16, 16)
    assert stage_sizes(32, 4) == (8, 8, 8, 8)
    budget = plan("gemma-3-27b", 4, pipeline_parallel_size=4)
    pools = [likely(budget, Region.KV_CACHE, i) for i in range(4)]
    tokens = budget.sequence_state.pool_tokens or 0
    # 16 heads × 256 × 2 B in every layer; the stages of 16 layers set the tokens.
    assert pools == [(tokens + 1) * n * 8192 for n in (15, 15, 16, 16)]


def test_that_attention_split_by_data_replicates_attention() -> None:
    name = "deepseek-ai/DeepSeek-V3.2-Exp"
    sizes = {"gpu": "B200", "gpu_count": 8, "tensor_parallel_size": 8, "weight_format": "fp8"}
    shared = sized(name, **sizes).budget
    own = sized(name, **sizes, data_parallel_size=8).budget
    assert own.deployment.enable_dp_attention
    assert any("enable_dp_attention" in line for line in own.assumptions)
    assert len(own.ranks) == len(shared.ranks) == 8
    # 61 layers × (187.1 M of attention and 13.9 M of its index) in 8 bits: seven eighths more of
    # what is split, and seven eighths of an embedding of 129,280 × 7,168 in 16 bits; and of the
    # up-projections' copies in 16 bits: 61 × 128 heads × 512 × (128 + 128) × 2 B.
    more = likely(own, Region.WEIGHTS) - likely(shared, Region.WEIGHTS)
    copies = 61 * 128 * 512 * 256 * 2 * 7 // 8
    assert 8.7 * GIB < more - copies < 10.7 * GIB


def test_that_three_releases_split_attention_beside_an_index_whatever_is_asked() -> None:
    name = "deepseek-ai/DeepSeek-V3.2-Exp"
    sizes = {"gpu": "B200", "gpu_count": 8, "tensor_parallel_size": 8}
    for version, split in (("0.5.3", True), ("0.5.5", True), ("0.5.6", False)):
        budget = sized(name, **sizes, runtime_version=version).budget
        assert budget.deployment.enable_dp_attention is split
    # The first of them took 0.8 of the free memory, too.
    first = sized(name, **sizes, runtime_version="0.5.3", mem_fraction_static=0.9).budget
    assert first.deployment.mem_fraction_static == 0.8


def test_that_copies_take_devices_of_their_own() -> None:
    budget = plan(count=4, tensor_parallel_size=2, data_parallel_size=2)
    assert len(budget.ranks) == 4
    assert not budget.deployment.enable_dp_attention
    pools = {likely(budget, Region.KV_CACHE, i) for i in range(4)}
    assert len(pools) == 1


def test_that_states_share_the_room_with_the_pool() -> None:
    budget = sized(
        "ibm-granite/granite-4.0-h-micro", gpu="V100 16GB", runtime_version="0.5.8",
        max_model_len=131_072,
    ).budget  # fmt: skip
    (rank,) = budget.ranks
    each = 36 * (64 * 64 * 128 * 4 + 4352 * 3 * 2)
    slots = rank.regions[Region.RECURRENT_STATE].estimate.likely_bytes // each - 1
    cache = likely(budget, Region.KV_CACHE)
    # What is less than a whole state goes to the pool, and leaves the states' own part.
    assert 0 <= 0.9 * cache - slots * each < 1.9 * each
    # Three states a request.
    assert budget.deployment.max_running_requests == slots // 3
    told = sized(
        "ibm-granite/granite-4.0-h-micro", gpu="V100 16GB", max_mamba_cache_size=20,
        concurrency=9,
    ).budget  # fmt: skip
    assert likely(told, Region.RECURRENT_STATE) == 21 * each
    # Five a request since 0.5.14, with what it takes to track them.
    assert told.deployment.max_running_requests == 4
    assert any("No more than 4 at once" in line for line in told.warnings)


def test_that_without_a_prefix_cache_a_request_has_one_state() -> None:
    budget = sized(
        "Qwen/Qwen3.5-27B", gpu="GB10 (DGX Spark)", enable_prefix_caching=False,
        max_running_requests=32, max_model_len=2048, mem_fraction_static=0.8,
    ).budget  # fmt: skip
    # 48 layers × (48 heads × 128 × 128 × 4 B + 10,240 channels × 3 × 2 B), and one of padding.
    each = 48 * (48 * 128 * 128 * 4 + 10_240 * 3 * 2)
    assert likely(budget, Region.RECURRENT_STATE) == 33 * each
    assert budget.deployment.max_running_requests == 32


def test_that_graphs_go_by_the_release() -> None:
    assert likely(plan(enforce_eager=True), Region.CUDA_GRAPHS) == 0
    late = likely(plan(runtime_version="0.5.19"), Region.CUDA_GRAPHS)
    early = likely(plan(runtime_version="0.5.9"), Region.CUDA_GRAPHS)
    assert late - early == 58 * 32 * MIB * 3 // 4


def test_that_a_release_not_stated_may_have_no_prefill_graphs() -> None:
    open_, stated = plan(), plan(runtime_version="0.5.23")
    graphs = [b.ranks[0].regions[Region.CUDA_GRAPHS].estimate for b in (open_, stated)]
    assert graphs[0].likely_bytes == graphs[1].likely_bytes
    # 58 sizes of 32 layers at 0.75 MiB, of which 0.45 at the least.
    surely = 32 * 58 * 3 * MIB // 4 * 9 // 20
    assert graphs[0].low_bytes + surely == graphs[1].low_bytes


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"runtime_version": "0.3.0"}, "runtime_version"),
        ({"weight_format": "mlx-4bit"}, "weight_format"),
        ({"kv_cache_dtype": "int4_per_token_head"}, "kv_cache_dtype"),
        ({"max_model_len": -1}, "max_model_len"),
        ({"tensor_parallel_size": 2}, "tensor_parallel_size"),
        ({"data_parallel_size": 2}, "data_parallel_size"),
        ({"enable_dp_attention": True, "data_parallel_size": 3}, "data_parallel_size"),
        ({"chunked_prefill_size": 2**30}, "chunked_prefill_size"),
        ({"max_running_requests": 0}, "max_running_requests"),
        ({"page_size": 0}, "page_size"),
        ({"mem_fraction_static": 1.5}, "mem_fraction_static"),
        ({"mem_fraction_static": 0.0}, "mem_fraction_static"),
        ({"swa_full_tokens_ratio": -1.0}, "swa_full_tokens_ratio"),
        ({"max_mamba_cache_size": 0}, "max_mamba_cache_size"),
        ({"mamba_full_memory_ratio": 0.0}, "mamba_full_memory_ratio"),
        ({"cuda_graph_max_bs": -3}, "cuda_graph_max_bs"),
        ({"max_total_tokens": 0}, "max_total_tokens"),
    ],
)
def test_that_the_impossible_is_refused_by_name(settings: dict[str, Any], field: str) -> None:
    with pytest.raises(DeploymentError) as refused:
        plan(**settings)
    assert refused.value.field == field
    assert refused.value.message.endswith(".")


def test_that_settings_of_others_are_told() -> None:
    (line,) = plan(max_num_seqs=16).warnings
    assert line == "max_num_seqs is a setting of vLLM; SGLang ignores it."


def verdict(card: Any = H100, **settings: Any) -> Any:
    answer = size(model(LLAMA), Deployment(runtime="sglang", **settings), machine(card))
    return answer.verdict


def test_that_it_fits_where_the_pool_holds_the_plan() -> None:
    found = verdict(max_model_len=8192, concurrency=16)
    assert found.fit is Fit.FITS
    assert "SGLang reserves" in found.detail


def test_that_a_long_request_is_refused_and_the_start_is_not() -> None:
    found = verdict(RTX_4090)
    assert found.fit is Fit.DOES_NOT_FIT
    assert "It starts, but refuses requests of more than" in found.detail


def test_that_weights_over_the_share_refuse_the_start() -> None:
    found = verdict(RTX_4090, mem_fraction_static=0.5, max_model_len=1024)
    assert found.fit is Fit.DOES_NOT_FIT
    assert "refuses to start" in found.detail
    assert "mem_fraction_static 0.5" in found.detail


def test_that_too_large_a_share_leaves_no_room_for_work() -> None:
    found = verdict(mem_fraction_static=0.99, max_model_len=8192)
    assert found.fit is Fit.DOES_NOT_FIT
    assert "because of mem_fraction_static" in found.headline
    assert "runs out of memory" in found.detail


def test_that_more_requests_than_fit_wait() -> None:
    found = verdict(RTX_4090, max_model_len=8192, concurrency=4)
    assert "It starts, but runs 1 at once; the rest waits." in found.detail


def test_that_on_a_host_nothing_is_promised() -> None:
    there = machine(RTX_4090)
    host = replace(there, slots=(there.host,))
    answer = size(model(LLAMA), Deployment(runtime="sglang", max_model_len=1024), host)
    assert answer.verdict.fit is Fit.UNKNOWN


def test_that_figures_name_their_basis() -> None:
    regions = plan(max_model_len=8192).ranks[0].regions
    assert regions[Region.KV_CACHE].estimate.basis is Basis.FITTED
    assert regions[Region.HEADROOM].estimate.basis is Basis.SETTING
    for region in regions.values():
        assert region.estimate.source
