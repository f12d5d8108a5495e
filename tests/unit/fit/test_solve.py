"""Limits are exact: one token, or one request, more does not fit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.architecture.model import Model, StoredGroup, StoredWeights
from engine.architecture.spec import Direction, Doubt, ModuleClass, Sharding, Subject
from engine.deployment.spec import Deployment
from engine.fit.solve import Limits, largest, limits, margin_bytes, rungs
from engine.fit.verdict import Fit
from engine.sizing import size
from tests.helpers.published import GIB, RTX_4090, gpu, machine, model

HERE = machine(RTX_4090)


def deployment(**changed: Any) -> Deployment:
    return Deployment(**({"max_model_len": 8192, "concurrency": 4} | changed))


def test_that_the_limits_of_a_known_pool_follow_from_its_blocks() -> None:
    # 4 GiB are 2,048 blocks of 2 MiB, one of them the null block; four requests share 2,047.
    known = deployment(kv_pool_bytes=4 * GIB)
    found = limits(model("Llama-3.1-8B"), known, HERE)
    assert found.max_context == 2047 // 4 * 16
    assert found.max_concurrency == 2047 // 512


@pytest.mark.parametrize("n_ctx", [4096, 131_072])
def test_that_a_total_given_to_llama_cpp_does_not_pin_the_limits(n_ctx: int) -> None:
    plan = Deployment(runtime="llama.cpp", n_ctx=n_ctx)
    free = Deployment(runtime="llama.cpp", max_model_len=n_ctx)
    found, known = limits(model("Llama-3.1-8B"), plan, HERE), model("Llama-3.1-8B")
    assert found == limits(known, free, HERE)
    # 16 GiB of a 23.64 GiB card go to weights and compute: at 128 KiB a token about 8 GiB are
    # left, so neither 131,072 tokens nor none.
    assert 32_768 < (found.max_context or 0) < 65_536 + 16_384


def test_that_a_total_beyond_the_config_is_within_the_limit_where_it_fits() -> None:
    # The config ends at 8,192 tokens, which is llama.cpp's warning, not its end.
    plan = Deployment(runtime="llama.cpp", n_ctx=16_384)
    assert limits(model("Llama-3-8B"), plan, HERE).max_context == 16_384


def test_that_slots_bound_the_requests_that_run_at_once() -> None:
    plan = Deployment(runtime="llama.cpp", max_model_len=1024, n_parallel=3)
    assert limits(model("Llama-3.1-8B"), plan, HERE).max_concurrency == 3


def test_that_live_tokens_stay_as_they_are_told() -> None:
    # 8,192 tokens live in all: however long a request may be, one of them at full length has to
    # have room. 4 GiB are 2,048 blocks of 16 tokens, one never given out.
    plan = deployment(live_tokens=8192, kv_pool_bytes=4 * GIB)
    assert limits(model("Llama-3.1-8B"), plan, HERE).max_context == 2047 * 16


PLANS = st.fixed_dictionaries(
    {"runtime": st.just("vllm"), "live_tokens": st.integers(1, 100_000)}
) | st.fixed_dictionaries(
    {"runtime": st.just("llama.cpp"), "n_parallel": st.none() | st.integers(1, 8)},
    optional={"n_ctx": st.integers(256, 65_536), "kv_unified": st.booleans()},
)


@settings(max_examples=30, deadline=None)
@given(
    name=st.sampled_from(["Llama-3.1-8B", "gpt-oss-20b", "gemma-3-4b"]),
    concurrency=st.integers(1, 8),
    context=st.integers(256, 32_768),
    changed=PLANS,
    gib=st.sampled_from([12.0, 16.0, 23.64, 44.5]),
)
def test_that_a_limit_fits_and_one_more_does_not_whatever_else_is_set(
    name: str, concurrency: int, context: int, changed: dict[str, Any], gib: float
) -> None:
    here, known = machine(gpu(gib, sm_count=100)), model(name)
    plan = Deployment(max_model_len=context, concurrency=concurrency, **changed)
    found = limits(known, plan, here)
    most = max(known.spec.max_position_embeddings or 0, context)

    def margin(**settings: Any) -> int:
        return margin_bytes(known, plan.with_(n_ctx=None, **settings), here)

    longest = found.max_context or 0
    if longest:
        assert margin(max_model_len=longest) >= 0
    if longest < most:
        assert margin(max_model_len=longest + 1) < 0
    settled = size(known, plan, here).budget.deployment.max_model_len
    at_once = found.max_concurrency or 0
    slots = plan.n_parallel or 256
    if at_once:
        assert margin(max_model_len=settled, concurrency=at_once) >= 0
    if at_once < slots:
        assert margin(max_model_len=settled, concurrency=at_once + 1) < 0


@settings(max_examples=25)
@given(
    name=st.sampled_from(["Llama-3.1-8B", "gpt-oss-20b", "Qwen2.5-7B"]),
    concurrency=st.integers(1, 12),
    context=st.integers(256, 32_768),
    runtime=st.sampled_from(["vllm", "transformers"]),
    gib=st.sampled_from([16.0, 23.64, 44.5]),
)
def test_that_one_more_does_not_fit(
    name: str, concurrency: int, context: int, runtime: str, gib: float
) -> None:
    here = machine(gpu(gib, sm_count=100))
    known = model(name)
    plan = Deployment(runtime=runtime, max_model_len=context, concurrency=concurrency)
    found = limits(known, plan, here)
    most = max(known.spec.max_position_embeddings or 0, context)
    if found.max_context:
        assert margin_bytes(known, plan.with_(max_model_len=found.max_context), here) >= 0
    if found.max_context < most:
        longer = plan.with_(max_model_len=found.max_context + 1)
        assert margin_bytes(known, longer, here) < 0
    if found.max_concurrency:
        assert margin_bytes(known, plan.with_(concurrency=found.max_concurrency), here) >= 0
    if runtime != "vllm" or found.max_concurrency < 256:
        more = plan.with_(concurrency=found.max_concurrency + 1)
        assert margin_bytes(known, more, here) < 0


@given(context=st.integers(1, 131_072), concurrency=st.integers(1, 64))
@settings(max_examples=25)
def test_that_a_plan_fits_exactly_when_it_lies_within_its_limits(
    context: int, concurrency: int
) -> None:
    plan = Deployment(max_model_len=context, concurrency=concurrency)
    known = model("Llama-3.1-8B")
    found = limits(known, plan, HERE)
    fits = size(known, plan, HERE).verdict.fit in (Fit.FITS, Fit.TIGHT)
    assert fits == (context <= found.max_context)
    assert fits == (concurrency <= found.max_concurrency)


@pytest.mark.parametrize(
    ("name", "best"),
    [
        ("Llama-3.1-8B", "bf16"),
        # 14.8 billion parameters: 27.5 GiB in BF16 do not fit, 15 GiB in FP8 do.
        ("Qwen3-14B", "fp8"),
        # 32.8 billion: 31 GiB in FP8 do not fit, 18 GiB in 4 bits do.
        ("Qwen3-32B", "awq-int4"),
        ("Llama-3.1-70B", None),
        ("gpt-oss-20b", "mxfp4"),
    ],
)
def test_that_the_best_format_is_the_stored_one_or_the_first_rung_that_fits(
    name: str, best: str | None
) -> None:
    plan = Deployment(max_model_len=2048)
    assert limits(model(name), plan, HERE).best_weight_format == best


def test_that_limits_never_exceed_what_the_config_allows() -> None:
    found = limits(model("Llama-3.2-1B"), deployment(concurrency=1), machine(gpu(79.19)))
    assert found.max_context == 131_072


def test_that_nothing_fits_where_the_weights_do_not() -> None:
    found = limits(model("Llama-3.1-70B"), deployment(), HERE)
    assert (found.max_context, found.max_concurrency) == (0, 0)


def test_that_a_header_tells_the_bits_where_the_format_has_no_name() -> None:
    # 5.5 bits a weight stored: only the rungs below are tried.
    group = StoredGroup(0, ModuleClass.MLP, Sharding.COLUMN, "U8", 5500, 8000, 5500, 1)
    odd = StoredWeights((group,), "mixed", "header of a file", 5500)
    read = replace(model("Llama-3.1-8B"), stored=odd)
    assert rungs(read, "vllm") == ("auto", "awq-int4")
    empty = replace(read, stored=StoredWeights((), "mixed", "header of a file", 0))
    assert rungs(empty, "vllm") == ("auto", "fp8", "awq-int4")


def doubted(name: str, subject: Subject, direction: Direction) -> Model:
    known = model(name)
    doubt = Doubt(subject, "A part is not understood.", direction)
    return replace(known, spec=replace(known.spec, doubts=(doubt,)))


@pytest.mark.parametrize("runtime", ["vllm", "transformers", "llama.cpp"])
def test_that_a_limit_of_an_unknown_verdict_is_not_known_and_not_zero(runtime: str) -> None:
    lower = doubted("Llama-3.1-8B", Subject.WEIGHTS, Direction.LOWER)
    plan = Deployment(runtime=runtime, max_model_len=1024)
    assert limits(lower, plan, machine(RTX_4090)) == Limits(None, None, None)


@pytest.mark.parametrize("runtime", ["vllm", "transformers"])
def test_that_nothing_fits_where_what_is_certain_is_too_large(runtime: str) -> None:
    upper = doubted("Llama-3.1-70B", Subject.SEQUENCE_STATE, Direction.UPPER)
    plan = Deployment(runtime=runtime, max_model_len=1024)
    found = limits(upper, plan, machine(RTX_4090))
    assert (found.max_context, found.max_concurrency) == (0, 0)


def test_that_limits_of_a_bound_are_those_that_are_sure() -> None:
    # Counted at its most, the state takes no more; but likely is not sure, as the verdict says.
    plan = Deployment(runtime="vllm", max_model_len=1024)
    here = machine(RTX_4090)
    upper = doubted("Llama-3.1-8B", Subject.SEQUENCE_STATE, Direction.UPPER)
    found, known = limits(upper, plan, here), limits(model("Llama-3.1-8B"), plan, here)
    assert found.max_context is not None
    assert known.max_context is not None
    assert 0 < found.max_context < known.max_context
    for tokens, fit in ((found.max_context, Fit.FITS), (found.max_context + 1, Fit.UNKNOWN)):
        assert size(upper, plan.with_(max_model_len=tokens), here).verdict.fit is fit


def test_that_vllms_longest_context_ends_where_it_refuses_more() -> None:
    # Llama-3.1-8B's config ends at 131,072 tokens, however much memory there is.
    plan = Deployment(runtime="vllm", max_model_len=1_000_000)
    assert limits(model("Llama-3.1-8B"), plan, machine(gpu(500))).max_context == 131_072


@given(limit=st.integers(0, 5000), most=st.integers(1, 5000), guess=st.integers(-5, 10_000))
def test_that_any_guess_finds_the_same_largest(limit: int, most: int, guess: int) -> None:
    assert largest(lambda n: n <= limit, most, guess) == min(limit, most)


def test_that_a_good_guess_asks_seldom() -> None:
    asked: list[int] = []

    def fits(number: int) -> bool:
        asked.append(number)
        return number <= 137

    assert largest(fits, 65_536, 137) == 137
    assert len(asked) == 3
