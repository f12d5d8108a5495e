"""vLLM's budget: what lies in the share, what beside it, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.architecture.model import GgufTensor
from engine.architecture.spec import Direction, Doubt, Subject
from engine.budget.model import Budget, Region
from engine.deployment.spec import Deployment
from engine.devices.device import DeviceKind, Vendor
from engine.errors import DeploymentError
from engine.evidence import Basis
from engine.fit.judge import judge
from engine.fit.verdict import Fit
from engine.runtimes.registry import get
from engine.sizing import size
from tests.helpers.published import CONFIGS, GIB, H100, RTX_4090, gpu, machine, model

if TYPE_CHECKING:
    from engine.devices.device import Machine

HERE = machine(RTX_4090)


def plan(name: str = "Llama-3.1-8B", where: Machine = HERE, **settings: Any) -> Budget:
    chosen: dict[str, Any] = {"max_model_len": 8192, "concurrency": 4} | settings
    return get("vllm").plan(model(name), Deployment(**chosen), where)


def test_that_every_region_is_there_and_absent_ones_say_why() -> None:
    (rank,) = plan(enforce_eager=True).ranks
    assert list(rank.regions) == list(Region)
    for entry in rank.regions.values():
        assert entry.note
        if entry.estimate.high_bytes == 0 and entry.region is not Region.FOREIGN:
            assert entry.note in ("This model keeps none", "None: enforce_eager")


def test_that_a_plan_that_fits_reaches_the_load_line_exactly() -> None:
    for where in (HERE, machine(H100), machine(RTX_4090, foreign_bytes=GIB // 2)):
        (rank,) = plan(where=where).ranks
        assert rank.free_bytes == 0


def test_that_the_pool_is_the_share_less_what_start_up_takes() -> None:
    (rank,) = plan().ranks
    inside = [Region.WEIGHTS, Region.ACTIVATIONS, Region.CUDA_GRAPHS, Region.KV_CACHE]
    charged = sum(rank.regions[r].estimate.likely_bytes for r in inside)
    buffers = rank.regions[Region.RUNTIME].estimate.parts
    names = ("workspaces", "sampler buffers")
    charged += sum(part.likely_bytes for part in buffers if part.label in names)
    share = 0.92 * RTX_4090.allocatable.likely_bytes
    assert charged == pytest.approx(share, abs=2)


def test_that_graphs_lie_on_top_of_the_budget_before_0_21() -> None:
    old = plan(runtime_version="0.19.0", gpu_memory_utilization=0.9).ranks[0]
    eager = plan(runtime_version="0.19.0", gpu_memory_utilization=0.9, enforce_eager=True).ranks[0]
    pool = Region.KV_CACHE
    assert old.regions[pool].estimate == eager.regions[pool].estimate
    new = plan(gpu_memory_utilization=0.9).ranks[0]
    bare = plan(gpu_memory_utilization=0.9, enforce_eager=True).ranks[0]
    taken = bare.regions[pool].estimate.likely_bytes - new.regions[pool].estimate.likely_bytes
    assert taken == new.regions[Region.CUDA_GRAPHS].estimate.likely_bytes > 0


def test_that_utilisation_defaults_follow_the_version() -> None:
    assert plan(runtime_version="0.12.0").deployment.gpu_memory_utilization == 0.9
    assert plan().deployment.gpu_memory_utilization == 0.92


def test_that_step_defaults_follow_the_device() -> None:
    small = plan().deployment
    assert (small.max_num_batched_tokens, small.max_num_seqs) == (2048, 256)
    large = plan(where=machine(H100)).deployment
    assert (large.max_num_batched_tokens, large.max_num_seqs) == (8192, 1024)
    a100 = plan(where=machine(gpu(79.25, "A100 80GB"))).deployment
    assert a100.max_num_seqs == 256


def test_that_every_default_used_is_listed() -> None:
    told = " ".join(plan(max_model_len=None).assumptions)
    for name in ("vLLM 0.33.0", "max_model_len 131,072", "max_num_seqs", "0.92", "bfloat16"):
        assert name in told
    explicit = plan(
        runtime_version="0.33.0",
        max_num_seqs=16,
        max_num_batched_tokens=2048,
        gpu_memory_utilization=0.9,
        kv_cache_dtype="bf16",
    )
    assert explicit.assumptions == ()


def test_that_what_the_plan_needs_counts_blocks_and_the_null_block() -> None:
    budget = plan()
    assert budget.ranks[0].needed.likely_bytes == (4 * 512 + 1) * 2_097_152
    state = budget.sequence_state
    assert state.reserved_bytes_per_sequence == GIB
    assert state.architecture_bytes_per_sequence == GIB
    assert state.bytes_per_token == 131_072


def test_that_live_tokens_lower_the_need_but_not_the_pool() -> None:
    full, live = plan(), plan(live_tokens=8192)
    assert live.ranks[0].needed.likely_bytes < full.ranks[0].needed.likely_bytes
    assert live.sequence_state.pool_bytes == full.sequence_state.pool_bytes


def test_that_few_live_tokens_do_not_spare_the_room_for_one_longest_request() -> None:
    # 131,072 tokens are 8,192 blocks of 2 MiB, and one block is never given out.
    for concurrency in (1, 4):
        budget = plan(max_model_len=131_072, concurrency=concurrency, live_tokens=1)
        assert budget.ranks[0].needed.likely_bytes == 8193 * 2_097_152
        verdict = judge(budget)
        assert verdict.fit is Fit.DOES_NOT_FIT
        assert "vLLM refuses to start: one request of 131,072 tokens" in verdict.detail
        assert "1 live tokens (max_model_len 131,072) need 16.0 GiB" in verdict.detail
    gap = budget.ranks[0].regions[Region.KV_CACHE].gap
    assert "room for one request of max_model_len: 16.00 GiB" in gap


def llama_70b(**sizes: int) -> Budget:
    settings = {"max_model_len": 4096, "concurrency": 1} | sizes
    count = settings.get("tensor_parallel_size", 1) * settings.get("pipeline_parallel_size", 1)
    return plan("Llama-3.1-70B", machine(H100, count), **settings)


@pytest.mark.parametrize(("tp", "pp"), [(2, 1), (4, 1), (1, 2), (2, 2), (4, 2)])
def test_that_sizes_of_the_sequence_state_are_of_one_rank(tp: int, pp: int) -> None:
    state = llama_70b(tensor_parallel_size=tp, pipeline_parallel_size=pp).sequence_state
    # 2 x 80 layers x 8 heads x 128 x 2 B = 327,680 B a token, heads and layers shared out.
    assert state.bytes_per_token == 327_680 // (tp * pp)
    assert state.reserved_bytes_per_sequence == 4096 * 327_680 // (tp * pp)
    assert state.bytes_per_block == 16 * 327_680 // (tp * pp)
    assert state.architecture_bytes_per_sequence == 4096 * 327_680


def test_that_ranks_that_share_a_context_each_hold_a_part_of_it() -> None:
    whole = llama_70b(tensor_parallel_size=16)
    split = llama_70b(tensor_parallel_size=16, decode_context_parallel_size=2)
    # One of eight KV heads a rank, on two ranks each; with two shares each holds half the tokens.
    assert whole.sequence_state.bytes_per_token == 327_680 // 8
    assert split.sequence_state.bytes_per_token == 327_680 // 16
    assert split.sequence_state.reserved_bytes_per_sequence == 4096 * 327_680 // 16
    assert split.ranks[0].regions[Region.KV_CACHE].least_bytes == 4096 * 327_680 // 16


@pytest.mark.parametrize(
    ("name", "tp", "dcp", "works"),
    [
        # 8 KV heads and 32 query heads: copies exist only beyond 8 ranks.
        ("Llama-3.1-8B", 8, 2, False),
        ("Llama-3.1-8B", 16, 2, True),
        ("Llama-3.1-8B", 16, 4, False),
        ("Llama-3.1-8B", 32, 4, True),
        # vLLM's documentation: Qwen3-235B-A22B has 4 KV heads, so TP 8 goes with DCP 2.
        ("Qwen3-235B-A22B", 8, 2, True),
        ("Qwen3-235B-A22B", 8, 4, False),
        # And latents are one on every rank: DCP 8 and 16 go with TP 8 and 16.
        ("Kimi-K2", 8, 8, True),
        ("Kimi-K2", 16, 16, True),
        ("Kimi-K2", 16, 3, False),
    ],
)
def test_that_a_context_is_shared_only_where_heads_are_copied(
    name: str, tp: int, dcp: int, works: bool
) -> None:
    settings = {"tensor_parallel_size": tp, "decode_context_parallel_size": dcp}
    if works:
        assert plan(name, machine(H100, tp), **settings).ranks
        return
    with pytest.raises(DeploymentError) as refused:
        plan(name, machine(H100, tp), **settings)
    assert refused.value.field == "decode_context_parallel_size"


@pytest.mark.parametrize(("each", "works"), [(6, True), (5, False)])
def test_that_query_heads_of_a_kv_head_are_shared_evenly(each: int, works: bool) -> None:
    known = model("Llama-3.1-8B")
    attention = known.spec.layers[0].attention
    assert attention is not None
    heads = replace(attention, num_attention_heads=2 * each, num_key_value_heads=2)
    layer = replace(known.spec.layers[0], attention=heads, intermediate_size=0)
    odd = replace(known, spec=replace(known.spec, layers=(layer,)))
    tp = 2 * each
    split = Deployment(max_model_len=64, tensor_parallel_size=tp, decode_context_parallel_size=2)
    if works:
        assert get("vllm").plan(odd, split, machine(H100, tp)).ranks
        return
    with pytest.raises(DeploymentError, match="divide the 5 attention heads"):
        get("vllm").plan(odd, split, machine(H100, tp))


@pytest.mark.parametrize("dtype", ["q8_0", "q4_0", "iq4_nl", "f16", "f32", "fp32", "int1"])
def test_that_cache_dtypes_of_other_runtimes_are_refused(dtype: str) -> None:
    with pytest.raises(DeploymentError, match="no KV cache dtype of vLLM; it takes auto, bf16"):
        plan(kv_cache_dtype=dtype)


@pytest.mark.parametrize(("dtype", "size"), [("bfloat16", 131_072), ("fp8_e5m2", 65_536)])
def test_that_its_own_cache_dtypes_are_taken(dtype: str, size: int) -> None:
    assert plan(kv_cache_dtype=dtype).sequence_state.bytes_per_token == size


def test_that_draft_tokens_without_prediction_layers_are_told() -> None:
    assert any("draft model is not counted" in line for line in plan(speculative_tokens=5).warnings)


def test_that_the_checkpoint_chooses_the_cache_dtype() -> None:
    asked = replace(model("Llama-3.1-8B").spec, kv_cache_dtype="fp8")
    quantised = replace(model("Llama-3.1-8B"), spec=asked)
    budget = get("vllm").plan(quantised, Deployment(max_model_len=8192), HERE)
    assert budget.sequence_state.bytes_per_token == 65_536
    assert any("checkpoint" in line for line in budget.assumptions)


def test_that_a_known_pool_is_taken_as_it_is() -> None:
    budget = plan(kv_pool_bytes=3 * GIB)
    kv = budget.ranks[0].regions[Region.KV_CACHE].estimate
    assert (kv.low_bytes, kv.likely_bytes, kv.high_bytes) == (3 * GIB,) * 3
    assert kv.basis is Basis.SETTING
    assert budget.sequence_state.num_blocks == 3 * GIB // 2_097_152


def test_that_the_poorest_rank_sets_the_pool() -> None:
    crowded = machine(RTX_4090, 2)
    smaller = gpu(20.0, "smaller card", sm_count=128, capability=8.9)
    mixed = replace(crowded, slots=(crowded.slots[0], replace(crowded.slots[1], device=smaller)))
    even = plan(where=crowded, tensor_parallel_size=2).sequence_state
    uneven = plan(where=mixed, tensor_parallel_size=2).sequence_state
    assert even.num_blocks is not None
    assert uneven.num_blocks is not None
    assert uneven.num_blocks < even.num_blocks


def test_that_the_token_line_changed_its_meaning() -> None:
    pool = {"kv_pool_bytes": 20 * GIB, "max_model_len": 131_072, "max_num_batched_tokens": 8192}
    where = machine(H100)
    old = plan("gemma-3-27b", where, runtime_version="0.19.0", **pool).sequence_state
    assert old.pool_tokens == 16_384 // 7 * 16
    new = plan("gemma-3-27b", where, **pool).sequence_state
    assert new.pool_tokens == 145_829


@pytest.mark.parametrize(
    ("settings", "field", "words"),
    [
        ({"tensor_parallel_size": 3}, "tensor_parallel_size", "1, 2, 4, 8"),
        ({"tensor_parallel_size": 16}, "tensor_parallel_size", "8 devices"),
        ({"pipeline_parallel_size": 16}, "pipeline_parallel_size", "8 devices"),
        ({"max_model_len": 0}, "max_model_len", "1 or more"),
        ({"concurrency": -1}, "concurrency", "1 or more"),
        ({"gpu_memory_utilization": 1.2}, "gpu_memory_utilization", "at most at 1"),
        ({"gpu_memory_utilization": 0.0}, "gpu_memory_utilization", "above 0"),
        ({"kv_cache_dtype": "int3"}, "kv_cache_dtype", "fp8"),
        ({"weight_format": "Q4_K_M"}, "weight_format", "awq-int4"),
        ({"runtime_version": "newest"}, "runtime_version", "0.33.0"),
        ({"runtime_version": "0.1.0"}, "runtime_version", "oldest"),
        (
            {"decode_context_parallel_size": 3, "tensor_parallel_size": 2},
            "decode_context_parallel_size",
            "divide",
        ),
    ],
)
def test_that_an_impossible_deployment_names_the_field_and_what_works(
    settings: dict[str, Any], field: str, words: str
) -> None:
    with pytest.raises(DeploymentError) as refused:
        plan(where=machine(RTX_4090, 8), **settings)
    assert refused.value.field == field
    assert words in refused.value.message


def test_that_an_unknown_runtime_is_told_which_there_are() -> None:
    with pytest.raises(
        DeploymentError, match=r"vllm, sglang, llama\.cpp, ollama, transformers, mlx"
    ):
        get("onnx")


def test_that_without_a_gpu_the_answer_is_unknown_but_the_arithmetic_is_there() -> None:
    host = machine(RTX_4090)
    cpu = replace(host, slots=(host.host,))
    answer = size(model("Llama-3.1-8B"), Deployment(kv_pool_bytes=8 * GIB), cpu)
    assert answer.verdict.fit is Fit.UNKNOWN
    assert answer.budget.sequence_state.num_blocks == 4096
    assert any("no GPU" in line for line in answer.budget.warnings)


def test_that_a_model_in_doubt_is_answered_as_a_bound() -> None:
    reason = "Its layers of kind x are counted as full attention."
    doubt = Doubt(Subject.SEQUENCE_STATE, reason, Direction.UPPER)
    known = model("Llama-3.1-8B")
    doubted = replace(known, spec=replace(known.spec, doubts=(doubt,)))
    budget = get("vllm").plan(doubted, Deployment(max_model_len=8192), HERE)
    assert budget.bounds == (doubt.reason,)
    assert budget.is_complete
    # Of what the plan needs nothing is certain; the count is the most it can be.
    (rank,) = budget.ranks
    assert (rank.needed.low_bytes, rank.needed.basis) == (0, Basis.BOUND)
    assert rank.needed.likely_bytes == rank.needed.high_bytes > 0


def test_that_published_models_all_plan_in_every_version() -> None:
    where = machine(gpu(700.0), 8)
    for name in CONFIGS:
        for version in get("vllm").versions:
            for rank in plan(name, where, runtime_version=version, max_model_len=4096).ranks:
                for entry in rank.regions.values():
                    assert entry.estimate.low_bytes >= 0


@given(
    context=st.integers(1, 131_072),
    more=st.integers(0, 50_000),
    requests=st.integers(1, 64),
    name=st.sampled_from(["Llama-3.1-8B", "gpt-oss-20b", "gemma-3-27b"]),
)
def test_that_more_tokens_or_requests_never_need_less(
    context: int, more: int, requests: int, name: str
) -> None:
    where = machine(H100)
    few = plan(name, where, max_model_len=context, concurrency=requests).ranks[0]
    long = plan(name, where, max_model_len=context + more, concurrency=requests).ranks[0]
    many = plan(name, where, max_model_len=context, concurrency=requests + 1).ranks[0]
    assert long.needed.likely_bytes >= few.needed.likely_bytes
    assert many.needed.likely_bytes > few.needed.likely_bytes
    pool = Region.KV_CACHE
    assert long.regions[pool].estimate.likely_bytes <= few.regions[pool].estimate.likely_bytes


def test_that_gguf_files_are_left_to_llama_cpp() -> None:
    entry = GgufTensor("output.weight", "Q4_K", (256, 256), 36_864)
    file = replace(model("Llama-3.1-8B"), gguf_tensors=(entry,))
    for name in ("vllm", "transformers"):
        assert get(name).weight_formats(file) == ()
        with pytest.raises(DeploymentError) as refused:
            get(name).plan(file, Deployment(runtime=name), HERE)
        assert refused.value.field == "runtime"
        assert "llama.cpp" in refused.value.message


def test_that_a_newer_version_takes_the_newest_rules_and_says_so() -> None:
    assert any("newer" in line for line in plan(runtime_version="0.40.1").warnings)


def test_that_more_requests_than_rows_are_told_to_wait() -> None:
    told = plan(concurrency=20, max_num_seqs=8, max_model_len=512).warnings
    assert any("max_num_seqs is 8" in line for line in told)


def test_that_replicas_share_the_requests() -> None:
    one = plan(concurrency=8, max_model_len=2048)
    two = plan(where=machine(RTX_4090, 2), concurrency=8, max_model_len=2048, data_parallel_size=2)
    assert len(two.ranks) == 2
    per_block = 2_097_152
    needed = [budget.ranks[0].needed.likely_bytes for budget in (one, two)]
    assert needed == [(8 * 128 + 1) * per_block, (4 * 128 + 1) * per_block]


def test_that_a_model_without_layers_gives_its_weights_only() -> None:
    bare = replace(model("Llama-3.1-8B").spec, layers=(), max_position_embeddings=None)
    budget = get("vllm").plan(replace(model("Llama-3.1-8B"), spec=bare), Deployment(), HERE)
    assert budget.sequence_state.num_blocks is None
    assert budget.ranks[0].needed.likely_bytes == 0
    assert any("the config states none" in line for line in budget.assumptions)


def test_that_absorbed_projections_are_new_memory_when_quantised() -> None:
    # Latents of 512, 64 heads of (128 + 128), 61 layers, 2 B; split over eight ranks.
    where = machine(gpu(700.0), 8)
    plain = plan("Kimi-K2", where, tensor_parallel_size=8, max_model_len=4096)
    packed = plan(
        "Kimi-K2", where, tensor_parallel_size=8, max_model_len=4096, weight_format="fp8-block"
    )
    labels = [
        {
            part.label: part.likely_bytes
            for part in budget.ranks[0].regions[Region.WEIGHTS].estimate.parts
        }
        for budget in (plain, packed)
    ]
    assert "absorbed projections" not in labels[0]
    assert labels[1]["absorbed projections"] == 61 * 512 * 64 * 256 * 2 // 8


def test_that_devices_vllm_does_not_know_are_answered_with_care() -> None:
    mac = replace(RTX_4090, name="M4 Pro 48 GB", vendor=Vendor.APPLE, kind=DeviceKind.UNIFIED)
    answer = size(model("Llama-3.2-1B"), Deployment(max_model_len=4096), machine(mac))
    assert answer.verdict.fit is Fit.UNKNOWN
    assert "not known" in answer.verdict.detail
    assert any("Apple" in line for line in answer.budget.warnings)
    turing = replace(RTX_4090, name="T4", compute_capability=7.5)
    told = plan(where=machine(turing)).warnings
    assert any("--dtype half" in line for line in told)
    assert not plan(where=machine(turing), weight_format="fp16").warnings


def test_that_idle_devices_are_named_with_the_way_to_use_them() -> None:
    def idle(name: str, count: int, **settings: Any) -> list[str]:
        found = plan(name, machine(gpu(700.0), count), **settings).warnings
        return [line for line in found if "is used" in line]

    assert idle("Llama-3.1-8B", 1) == []
    assert idle("Llama-3.1-8B", 2) == ["1 of 2 devices is used; --tp 2 spreads the model."]
    # 32 heads and 8 KV heads divide by 1, 2, 4, 8 …, not by 3: two of the three, then.
    assert idle("Llama-3.1-8B", 3) == ["1 of 3 devices is used; --tp 2 spreads the model."]
    for split in ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size"):
        assert idle("Llama-3.1-8B", 2, **{split: 2}) == []
