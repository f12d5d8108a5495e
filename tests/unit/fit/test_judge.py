"""Verdicts: the four answers, their margins and their sentences."""

from __future__ import annotations

from dataclasses import replace
from math import ceil
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.architecture.read import read
from engine.architecture.spec import Direction, Doubt, Subject
from engine.budget.model import Moments, Region
from engine.deployment.spec import Deployment
from engine.errors import DeploymentError
from engine.evidence import Basis, Estimate, exactly
from engine.fit.judge import judge
from engine.fit.solve import limits
from engine.fit.verdict import Fit
from engine.runtimes import overheads
from engine.sizing import Sizing, size
from engine.source import catalogue
from tests.helpers.published import GIB, RTX_4090, gpu, machine, model

HERE = machine(RTX_4090)
MIB = 2**20


def answer(name: str = "Llama-3.1-8B", where: object = HERE, **settings: Any) -> Sizing:
    return size(model(name), Deployment(**settings), where)  # type: ignore[arg-type]


# The drawn screens: 5.32 GiB of pool for Llama-3.1-8B on a 24 GB card, 2 MiB a block.
DRAWN_POOL = int(5.32 * GIB)


def test_that_a_plan_within_its_pool_reads_like_the_drawn_screen() -> None:
    verdict = answer(max_model_len=8192, concurrency=4, kv_pool_bytes=DRAWN_POOL).verdict
    assert verdict.fit is Fit.FITS
    assert verdict.headline == "Fits, with 1.3 GiB to spare"
    assert verdict.detail == "vLLM reserves 5.3 GiB of KV cache; 4 × 8,192 tokens need 4.0 GiB."
    assert verdict.binding_region is Region.KV_CACHE
    assert verdict.margin_bytes == DRAWN_POOL - 4 * GIB - 2 * MIB


def test_that_a_plan_over_its_pool_reads_like_the_drawn_screen() -> None:
    verdict = answer(max_model_len=32_768, concurrency=2, kv_pool_bytes=DRAWN_POOL).verdict
    assert verdict.fit is Fit.DOES_NOT_FIT
    assert verdict.headline == "Doesn’t fit: 2.7 GiB over, because of the KV cache"
    assert verdict.detail == (
        "2 × 32,768 tokens need 8.0 GiB of KV cache; vLLM has 5.3 GiB left. "
        "It starts, but the second request waits."
    )


def test_that_one_request_too_long_is_refused() -> None:
    verdict = answer(max_model_len=131_072).verdict
    assert verdict.fit is Fit.DOES_NOT_FIT
    assert "vLLM refuses to start: one request of 131,072 tokens" in verdict.detail


def test_that_weights_are_named_when_they_alone_are_too_large() -> None:
    verdict = answer("Llama-3.1-70B", max_model_len=4096).verdict
    assert verdict.fit is Fit.DOES_NOT_FIT
    assert verdict.binding_region is Region.WEIGHTS
    assert verdict.headline.endswith("because of the weights")
    assert "before any KV cache, and may take 21.7 GiB" in verdict.detail
    # 131.4 GiB of weights on a card of 23.64: over by 110 GiB and what start-up takes besides.
    assert 109 * GIB < -verdict.margin_bytes < 114 * GIB


def test_that_others_on_the_card_are_named_when_they_leave_too_little() -> None:
    crowded = machine(RTX_4090, foreign_bytes=4 * GIB)
    verdict = answer(where=crowded, max_model_len=4096).verdict
    assert verdict.fit is Fit.DOES_NOT_FIT
    assert verdict.binding_region is Region.FOREIGN
    assert "others hold 4.0 GiB" in verdict.detail


def test_that_only_the_likely_estimate_is_tight() -> None:
    pool = answer(max_model_len=1024).budget.ranks[0].regions[Region.KV_CACHE].estimate
    assert pool.likely_bytes - pool.low_bytes > 512 * MIB
    # 1,024 tokens are 128 MiB; the need lies between the pool's low and its likely size.
    requests = (pool.likely_bytes - 256 * MIB) // (128 * MIB)
    verdict = answer(max_model_len=1024, concurrency=requests).verdict
    assert verdict.fit is Fit.TIGHT
    assert verdict.headline.startswith("Tight, with 0.")
    assert verdict.worst_margin_bytes < 0 < verdict.margin_bytes


def test_that_a_margin_that_rounds_to_nothing_is_tight_and_keeps_its_sign() -> None:
    exact = answer(max_model_len=8192, kv_pool_bytes=GIB + 2 * MIB + 1)
    assert exact.verdict.fit is Fit.TIGHT
    assert "0.0 GiB to spare" in exact.verdict.headline
    short = answer(max_model_len=8192, kv_pool_bytes=GIB)
    assert short.verdict.fit is Fit.DOES_NOT_FIT
    assert short.verdict.headline.startswith("Doesn’t fit: 0.0 GiB over")


def test_that_several_ranks_are_answered_by_the_fullest() -> None:
    four = machine(gpu(44.5, "L40S", sm_count=142, capability=8.9), 4)
    crowded = replace(
        four,
        slots=(
            replace(four.slots[0], foreign=replace(four.slots[0].foreign, high_bytes=GIB)),
            *four.slots[1:],
        ),
    )
    verdict = answer(
        "Llama-3.3-70B-FP8", crowded, max_model_len=8192, concurrency=4, tensor_parallel_size=4
    ).verdict
    assert verdict.fit is Fit.FITS
    assert verdict.headline.endswith("to spare on every rank")


BESIDE_TABLE_BYTES = 2 * (70_553_706_496 - 128_256 * 8_192)
"""Llama-3.1-70B in BF16 without its table of input embeddings."""


def doubted(name: str, reason: str, *directions: Direction, subject: Any = None) -> Any:
    known = model(name)
    about = subject or Subject.SEQUENCE_STATE
    doubts = tuple(Doubt(about, reason, direction) for direction in directions)
    return replace(known, spec=replace(known.spec, doubts=doubts))


def test_that_an_upper_bound_decides_only_when_it_fits() -> None:
    reason = "Some layers are of an unknown kind and counted as full attention."
    bound = doubted("Llama-3.1-8B", reason, Direction.UPPER)
    small = size(bound, Deployment(max_model_len=1024), HERE).verdict
    assert small.fit is Fit.FITS
    assert "at least" in small.headline
    large = size(bound, Deployment(max_model_len=131_072), HERE).verdict
    assert large.fit is Fit.UNKNOWN
    assert large.detail == reason
    assert large.headline.startswith("Unknown: at most")


def test_that_a_lower_bound_decides_only_when_it_does_not_fit() -> None:
    reason = "Only the weights are known."
    known = model("Llama-3.1-70B")
    doubt = Doubt(Subject.SEQUENCE_STATE, reason, Direction.LOWER)
    bare = replace(known.spec, layers=(), doubts=(doubt,))
    budget = size(replace(known, spec=bare), Deployment(max_model_len=1024), HERE).budget
    assert not budget.is_complete
    assert judge(budget).fit is Fit.UNKNOWN
    assert judge(budget).headline.startswith("Unknown: at least")


@pytest.mark.parametrize("subject", list(Subject))
@pytest.mark.parametrize("runtime", ["vllm", "transformers", "llama.cpp"])
@pytest.mark.parametrize("direction", [Direction.LOWER, Direction.EITHER])
def test_that_what_is_not_counted_never_fits(
    subject: Subject, runtime: str, direction: Direction
) -> None:
    # A 1 B model on a card for 24 GB: with all counted there is no question.
    bound = doubted("Llama-3.2-1B", "A tower is not counted.", direction, subject=subject)
    sizing = size(bound, Deployment(runtime=runtime, max_model_len=1024), HERE)
    assert sizing.verdict.fit is Fit.UNKNOWN
    assert sizing.verdict.detail == "A tower is not counted."


def test_that_one_thing_not_counted_outweighs_another_counted_at_its_most() -> None:
    both = doubted("Llama-3.2-1B", "r", Direction.UPPER, Direction.LOWER)
    assert size(both, Deployment(max_model_len=1024), HERE).verdict.fit is Fit.UNKNOWN


@pytest.mark.parametrize("runtime", ["vllm", "transformers", "llama.cpp"])
@pytest.mark.parametrize("direction", list(Direction))
def test_that_exact_weights_alone_decide_against_whatever_the_state_is(
    runtime: str, direction: Direction
) -> None:
    # 70.55 B parameters × 2 bytes are 131.4 GiB; the card has 24.
    bound = doubted("Llama-3.1-70B", "Its state is not known.", direction)
    verdict = size(bound, Deployment(runtime=runtime, max_model_len=1024), HERE).verdict
    assert verdict.fit is Fit.DOES_NOT_FIT
    assert verdict.binding_region is Region.WEIGHTS
    assert verdict.headline.startswith("Doesn’t fit: at least")
    # llama.cpp keeps the input table on the host; the rest less the whole card is over.
    assert -verdict.margin_bytes >= BESIDE_TABLE_BYTES - 24 * GIB


@pytest.mark.parametrize("runtime", ["vllm", "transformers", "llama.cpp"])
def test_that_weights_counted_at_their_most_do_not_decide_against(runtime: str) -> None:
    # "AWQ of an unknown layout" is counted as BF16 and may be a quarter of it.
    bound = doubted("Llama-3.1-70B", "r", Direction.UPPER, subject=Subject.WEIGHTS)
    sizing = size(bound, Deployment(runtime=runtime, max_model_len=1024), HERE)
    assert sizing.verdict.fit is Fit.UNKNOWN
    weights = sizing.budget.ranks[0].regions[Region.WEIGHTS].estimate
    assert weights.basis is Basis.BOUND
    assert weights.low_bytes < GIB
    assert weights.high_bytes >= BESIDE_TABLE_BYTES


def test_that_weights_not_counted_in_full_decide_against() -> None:
    bound = doubted("Llama-3.1-70B", "r", Direction.LOWER, subject=Subject.WEIGHTS)
    verdict = size(bound, Deployment(max_model_len=1024), HERE).verdict
    assert verdict.fit is Fit.DOES_NOT_FIT


def test_that_transformers_has_the_white_space_under_the_line_to_spare() -> None:
    sizing = answer(runtime="transformers", max_model_len=8192)
    (rank,) = sizing.budget.ranks
    assert sizing.verdict.fit is Fit.FITS
    assert sizing.verdict.margin_bytes == rank.free_bytes
    assert sizing.verdict.detail.startswith("Transformers takes")
    over = answer(runtime="transformers", max_model_len=8192, batch_size=64).verdict
    assert over.fit is Fit.DOES_NOT_FIT
    assert over.binding_region is Region.KV_CACHE
    assert "out-of-memory" in over.detail


@pytest.mark.parametrize("name", ["Llama-3.1-8B", "Llama-3.1-70B", "gpt-oss-20b"])
def test_that_the_worst_margin_is_never_better_than_the_likely_one(name: str) -> None:
    for runtime in ("vllm", "transformers"):
        verdict = answer(name, runtime=runtime, max_model_len=4096).verdict
        assert verdict.worst_margin_bytes <= verdict.margin_bytes


def test_that_live_tokens_are_called_so() -> None:
    verdict = answer(max_model_len=8192, concurrency=4, live_tokens=9000, kv_pool_bytes=GIB).verdict
    assert "9,000 live tokens need" in verdict.detail


def test_that_a_lower_bound_that_does_not_fit_decides() -> None:
    known = model("Llama-3.1-70B")
    doubt = Doubt(Subject.SEQUENCE_STATE, "Only the weights are known.", Direction.LOWER)
    outer = known.spec.outer * 40
    bare = replace(known.spec, layers=(), outer=outer, doubts=(doubt,))
    verdict = size(replace(known, spec=bare), Deployment(max_model_len=1024), HERE).verdict
    assert verdict.fit is Fit.DOES_NOT_FIT
    assert verdict.binding_region is Region.WEIGHTS


def test_that_an_uneven_machine_names_its_fullest_rank() -> None:
    pair = machine(RTX_4090, 2)
    small = gpu(20.0, "smaller", sm_count=100, capability=8.9)
    uneven = replace(pair, slots=(pair.slots[0], replace(pair.slots[1], device=small)))
    verdict = answer(where=uneven, max_model_len=4096, tensor_parallel_size=2).verdict
    assert verdict.binding_rank == 1
    assert "Rank 1 is the fullest and sets the pool for both." in verdict.detail


def test_that_a_model_without_a_cache_is_judged_by_its_share() -> None:
    bare = replace(model("Qwen2-0.5B").spec, layers=())
    known = replace(model("Qwen2-0.5B"), spec=bare)
    sizing = size(known, Deployment(max_model_len=512, enforce_eager=True), HERE)
    (rank,) = sizing.budget.ranks
    assert sizing.verdict.fit is Fit.FITS
    share = 0.92 * RTX_4090.allocatable.likely_bytes
    assert sizing.verdict.margin_bytes == rank.free_bytes
    assert 0.9 * share < rank.free_bytes < share


def test_that_an_encoder_too_needs_its_share_to_be_free() -> None:
    entry = catalogue.find("BAAI/bge-large-en-v1.5")
    assert entry is not None
    encoder = read(catalogue.raw(entry))
    # 0.92 of 23.64 GiB are asked for at start: with 4 GiB held by others 19.64 are free.
    crowded = size(encoder, Deployment(), machine(RTX_4090, foreign_bytes=4 * GIB))
    assert crowded.verdict.fit is Fit.DOES_NOT_FIT
    assert crowded.verdict.binding_region is Region.FOREIGN
    assert crowded.verdict.detail == (
        "vLLM refuses to start: others hold 4.0 GiB, and it asks for 21.7 GiB (0.92 of the device)."
    )
    # Over by what is asked for, held by others and the context, less what is there.
    context = overheads.context(RTX_4090).likely_bytes
    over = ceil(0.92 * RTX_4090.total_bytes) + 4 * GIB + context - RTX_4090.total_bytes
    assert crowded.verdict.margin_bytes == -over
    greedy = size(encoder, Deployment(gpu_memory_utilization=1.0), HERE).verdict
    assert greedy.fit is Fit.DOES_NOT_FIT
    assert greedy.headline.endswith("because of gpu_memory_utilization")
    modest = Deployment(gpu_memory_utilization=0.5)
    beside = size(encoder, modest, machine(RTX_4090, foreign_bytes=4 * GIB)).verdict
    assert beside.fit is Fit.FITS


def test_that_an_encoder_is_not_promised_where_vllm_has_no_rules() -> None:
    entry = catalogue.find("BAAI/bge-large-en-v1.5")
    assert entry is not None
    cpu = replace(HERE, slots=(HERE.host,))
    verdict = size(read(catalogue.raw(entry)), Deployment(), cpu).verdict
    assert verdict.fit is Fit.UNKNOWN
    assert "vLLM’s rules for this device are not known" in verdict.detail


@pytest.mark.parametrize("name", ["BAAI/bge-large-en-v1.5", "google-bert/bert-base-uncased"])
def test_that_an_encoder_fits_a_card_many_times_its_size(name: str) -> None:
    entry = catalogue.find(name)
    assert entry is not None
    encoder = read(catalogue.raw(entry))
    sizing = size(encoder, Deployment(), HERE)
    (rank,) = sizing.budget.ranks
    assert sizing.verdict.fit is Fit.FITS
    # vLLM loads float32 weights in 16 bits: 0.62 or 0.20 GiB of the 21.7 it may take.
    assert sizing.verdict.margin_bytes == rank.free_bytes > 18 * GIB
    assert sizing.verdict.binding_region is Region.WEIGHTS
    # Nobody has measured the graphs of an encoder: there may be none.
    assert rank.regions[Region.CUDA_GRAPHS].estimate.low_bytes == 0
    found = limits(encoder, Deployment(), HERE)
    assert found.max_context == 512
    with pytest.raises(DeploymentError, match="512 positions"):
        size(encoder, Deployment(max_model_len=4096), HERE)


def test_that_the_null_block_is_never_given_out() -> None:
    # 4 GiB are 2,048 blocks of 2 MiB: four requests of 512 blocks lack the one that is unusable.
    four = answer(max_model_len=8192, concurrency=4, kv_pool_bytes=4 * GIB).verdict
    assert four.fit is Fit.DOES_NOT_FIT
    assert "the fourth request waits" in four.detail
    one = answer(max_model_len=8192, kv_pool_bytes=GIB).verdict
    assert "refuses to start" in one.detail


def test_that_a_desktop_on_a_small_card_makes_a_plan_tight_not_impossible() -> None:
    # 8 % of 7.6 GiB are 0.61: a context of 0.15 and a desktop of 0.3 leave 0.16 for the rest.
    laptop = machine(gpu(7.6, "8 GB card", sm_count=36, capability=12.0), foreign_bytes=300 * MIB)
    verdict = answer("Qwen2-0.5B", laptop, max_model_len=4096).verdict
    assert verdict.fit is Fit.TIGHT
    assert verdict.detail.startswith("Nothing is left beside its share")


def test_that_too_large_a_share_is_named() -> None:
    verdict = answer(max_model_len=4096, gpu_memory_utilization=0.99).verdict
    assert verdict.fit is Fit.DOES_NOT_FIT
    assert verdict.binding_region is Region.HEADROOM
    assert verdict.headline.endswith("because of gpu_memory_utilization")
    assert "takes 0.99 of the device and leaves 0.2 GiB" in verdict.detail


def test_that_llama_cpp_says_what_it_does_instead() -> None:
    plan = {"runtime": "llama.cpp", "max_model_len": 8192}
    assert "fewer layers on the GPU" in answer("Llama-3.1-70B", **plan).verdict.detail
    forced = answer("Llama-3.1-70B", n_gpu_layers=99, **plan).verdict
    assert "stops at load" in forced.detail
    cpu = replace(HERE, slots=(HERE.host,))
    assert answer("Llama-3.1-8B", cpu, **plan).verdict.fit is Fit.FITS


@settings(max_examples=60)
@given(
    name=st.sampled_from(["Llama-3.1-8B", "gpt-oss-20b", "Qwen3-32B"]),
    runtime=st.sampled_from(["vllm", "transformers", "llama.cpp"]),
    context=st.integers(256, 131_072),
    concurrency=st.integers(1, 16),
    gib=st.sampled_from([8.0, 16.0, 23.64, 44.5, 79.19]),
    foreign=st.integers(0, 6 * GIB),
)
def test_that_verdict_and_stack_agree(
    name: str, runtime: str, context: int, concurrency: int, gib: float, foreign: int
) -> None:
    where = machine(gpu(gib, sm_count=100, capability=8.9), foreign_bytes=foreign)
    plan = Deployment(runtime=runtime, max_model_len=context, concurrency=concurrency)
    sizing = size(model(name), plan, where)
    (rank,) = [r for r in sizing.budget.ranks if r.rank == sizing.verdict.binding_rank]
    pool = rank.regions[Region.KV_CACHE].estimate.likely_bytes
    drawn = sum(entry.estimate.likely_bytes for entry in rank.regions.values())
    if rank.has_pool:
        drawn += max(rank.needed.likely_bytes - pool, 0)
    over = drawn - rank.slot.device.allocatable.likely_bytes
    if rank.moments.load:
        # Loading comes before caches and passes, and may ask for more than all that stays.
        early = (Region.FOREIGN, Region.WEIGHTS, Region.RUNTIME)
        held = [rank.regions[region].estimate for region in early]
        loading = sum(e.likely_bytes for e in (*held, *rank.moments.load))
        over = max(over, loading - rank.slot.device.allocatable.likely_bytes)
    margin = sizing.verdict.margin_bytes
    if over > 0:
        assert margin == -over
    elif rank.has_pool:
        assert over == 0
        assert margin == pool - rank.needed.likely_bytes
    else:
        assert margin == -over


@pytest.mark.parametrize("runtime", ["vllm", "transformers", "llama.cpp"])
@pytest.mark.parametrize("subject", [Subject.WEIGHTS, Subject.SEQUENCE_STATE])
def test_that_what_may_be_less_has_no_least(subject: Subject, runtime: str) -> None:
    region = Region.WEIGHTS if subject is Subject.WEIGHTS else Region.KV_CACHE
    plan = Deployment(runtime=runtime, max_model_len=1024)
    for direction in Direction:
        bound = doubted("Llama-3.1-8B", "r", direction, subject=subject)
        found = size(bound, plan, HERE).budget.ranks[0].regions[region].least_bytes
        assert (found is None) == (direction is not Direction.LOWER)


def test_that_a_load_that_needs_more_than_the_plan_has_to_fit() -> None:
    # 16.06 GB of weights fit 23.64 GiB; a second copy of them for a moment does not.
    plan = Deployment(runtime="transformers", max_model_len=2048)
    budget = size(model("Llama-3.1-8B"), plan, machine(RTX_4090)).budget
    copy = exactly(16 * GIB, Basis.FITTED, "given by the test", label="unpacked copy")
    rank = replace(budget.ranks[0], moments=Moments(load=(copy,)))
    verdict = judge(replace(budget, ranks=(rank,)))
    assert verdict.fit is Fit.DOES_NOT_FIT
    held = sum(
        rank.regions[r].estimate.likely_bytes
        for r in (Region.WEIGHTS, Region.RUNTIME, Region.FOREIGN)
    )
    line = rank.slot.device.allocatable.likely_bytes
    assert verdict.margin_bytes == line - held - 16 * GIB
    assert "While it loads" in verdict.detail
    assert "unpacked copy" in verdict.detail


def test_that_a_plan_which_loads_with_more_than_it_keeps_says_so() -> None:
    # A copy of 2 GiB beside 14.96 GiB of weights and 0.41 GiB of the process, for a moment.
    plan = Deployment(runtime="transformers", max_model_len=16)
    budget = size(model("Llama-3.1-8B"), plan, machine(RTX_4090)).budget
    copy = exactly(2 * GIB, Basis.FITTED, "given by the test", label="unpacked copy")
    rank = replace(budget.ranks[0], moments=Moments(load=(copy,)))
    verdict = judge(replace(budget, ranks=(rank,)))
    assert verdict.fit is Fit.FITS
    assert "17.4 GiB for a moment while it loads" in verdict.detail
    assert "while it loads" not in judge(budget).detail
    # On 12 GiB neither fits: what is over is what the load takes.
    small = size(model("Llama-3.1-8B"), plan, machine(gpu(12.0))).budget
    verdict = judge(replace(small, ranks=(replace(small.ranks[0], moments=Moments((copy,))),)))
    assert verdict.headline == "Doesn’t fit: 5.3 GiB over, because of the weights"
    assert verdict.detail.startswith("Transformers needs 17.3 GiB while it loads, and the device")


def test_that_what_comes_with_the_first_requests_makes_a_plan_tight() -> None:
    budget = size(model("Llama-3.1-8B"), Deployment(max_model_len=4096), machine(RTX_4090)).budget
    assert judge(budget).fit is Fit.FITS
    late = Estimate(0, GIB, 4 * GIB, Basis.FITTED, "given by the test", label="indexer logits")
    rank = replace(budget.ranks[0], moments=Moments(sustained=(late,)))
    verdict = judge(replace(budget, ranks=(rank,)))
    assert verdict.fit is Fit.TIGHT
    assert "indexer logits" in verdict.detail


def test_that_a_refusal_is_said_though_the_memory_would_do() -> None:
    budget = size(model("Llama-3.1-8B"), Deployment(max_model_len=4096), machine(RTX_4090)).budget
    verdict = judge(replace(budget, refusals=("This build compares the wrong sums.",)))
    assert verdict.fit is Fit.FITS
    assert verdict.outcome is Fit.DOES_NOT_FIT
    assert verdict.starts is False
    assert verdict.headline == "Fits, but vLLM 0.33.0 refuses to start"
    assert verdict.detail == "This build compares the wrong sums."


@pytest.mark.parametrize("setting", ["kv_pool_bytes", "kv_cache_memory_bytes"])
def test_that_a_pool_that_was_stated_is_blamed_by_its_setting(setting: str) -> None:
    plan = Deployment(runtime="vllm", max_model_len=4096, **{setting: 100 * GIB})
    found = size(model("Llama-3.1-8B"), plan, machine(RTX_4090)).verdict
    assert found.headline.endswith(f"because of {setting}")
    assert f"{setting} makes a pool of 100.0 GiB" in found.detail
