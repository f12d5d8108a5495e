"""Limits are exact: one token, or one request, more does not fit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.architecture.model import StoredGroup, StoredWeights
from engine.architecture.spec import ModuleClass, Sharding
from engine.deployment.spec import Deployment
from engine.fit.solve import limits, margin_bytes, rungs
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
