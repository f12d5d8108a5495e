"""The map says what single plans say, and its limit is that of the inverse."""

from __future__ import annotations

import random
from dataclasses import replace
from math import ceil, floor, isnan
from typing import TYPE_CHECKING, Any

import pytest

from engine.architecture.spec import Direction, Doubt, Subject
from engine.deployment.spec import Deployment
from engine.devices import catalogue
from engine.fit import solve
from engine.fit.curve import curve
from engine.fit.fit_map import CELLS, FitMap, fit_map, limit, margin_table, octaves
from engine.fit.inverse import smaller_cache
from engine.fit.limit_line import roundest
from engine.fit.plane import axes
from engine.fit.verdict import Fit
from engine.sizing import size
from tests.helpers.published import GIB, RTX_4090, gpu, machine, model

if TYPE_CHECKING:
    from engine.architecture.model import Model

HERE = machine(RTX_4090)
LLAMA = model("Llama-3.1-8B")


def mapped(known: Model, plan: Deployment, here: Any = HERE) -> FitMap:
    return fit_map(known, plan, here, axes(known, plan, here))


def test_that_the_limit_of_a_known_pool_follows_from_its_blocks() -> None:
    # 4 GiB are 2,048 blocks of 2 MiB, one of them the null block: k requests share 2,047.
    plan = Deployment(max_model_len=8192, concurrency=4, kv_pool_bytes=4 * GIB)
    found = mapped(LLAMA, plan)
    assert found.limit[0] == (2047 * 16, 1)
    inside = [(tokens, k) for tokens, k in found.limit if tokens > found.axes.least_context]
    assert len(inside) > 6
    assert all(tokens == 2047 // int(k) * 16 for tokens, k in inside)


@pytest.mark.parametrize("name", ["Llama-3.1-8B", "gpt-oss-20b", "gemma-3-4b"])
@pytest.mark.parametrize("runtime", ["vllm", "sglang", "llama.cpp", "transformers"])
def test_that_the_limit_is_exact_on_every_row(name: str, runtime: str) -> None:
    known = model(name)
    plan = Deployment(runtime=runtime, max_model_len=8192, concurrency=4)
    found = mapped(known, plan)
    assert found.limit
    shown = found.axes
    for tokens, requests in found.limit:
        if requests == int(requests) and shown.least_context < tokens < shown.most_context:
            row = plan.with_(concurrency=int(requests))
            assert solve.max_context(known, row, HERE) == tokens
    # Where it leaves the map it passes between the most requests that fit there and one more.
    for tokens, requests in (found.limit[0], found.limit[-1]):
        if tokens in (shown.least_context, shown.most_context):
            column = plan.with_(max_model_len=int(tokens))
            most = min(solve.max_concurrency(known, column, HERE), shown.most_requests)
            assert most - 0.01 <= requests <= most * 1.5 + 1
    assert limit(known, plan, HERE, shown) == found.limit


@pytest.mark.parametrize("name", ["Llama-3.1-8B", "gpt-oss-20b", "Qwen2.5-7B"])
@pytest.mark.parametrize("runtime", ["vllm", "sglang", "transformers"])
def test_that_cells_are_what_single_plans_say(name: str, runtime: str) -> None:
    known = model(name)
    plan = Deployment(runtime=runtime, max_model_len=8192, concurrency=4)
    found = mapped(known, plan)
    chosen = random.Random(name + runtime)
    near = RTX_4090.total_bytes / 100
    for _ in range(150):
        i, j = chosen.randrange(CELLS), chosen.randrange(CELLS)
        row, tokens = found.requests[j], found.contexts[i]
        low, high = (
            solve.margin_bytes(known, plan.with_(max_model_len=tokens, concurrency=requests), HERE)
            for requests in (floor(row), ceil(row))
        )
        real = low + (high - low) * (row - floor(row))
        assert found.margins[j][i] == pytest.approx(real, rel=1 / 32, abs=near)


def test_that_cells_of_a_cache_in_large_blocks_lie_between_the_plans_beside_them() -> None:
    # llama.cpp pads each request to 256 tokens: 2 GiB more or less at 64 of them.
    plan = Deployment(runtime="llama.cpp", max_model_len=8192, concurrency=4)
    found = mapped(LLAMA, plan)
    chosen = random.Random(7)
    near = RTX_4090.total_bytes / 100
    for _ in range(150):
        i, j = chosen.randrange(CELLS), chosen.randrange(CELLS)
        tokens, row = found.contexts[i], found.requests[j]

        def margin(tokens: int, requests: int) -> int:
            there = plan.with_(max_model_len=tokens, concurrency=requests)
            return solve.margin_bytes(LLAMA, there, HERE)

        most = margin(max(1, tokens - 256), floor(row))
        least = margin(tokens + 256, ceil(row))
        assert least - near <= found.margins[j][i] <= most + near


def test_that_the_map_is_the_same_wherever_the_plan_stands_on_it() -> None:
    plan = Deployment(max_model_len=8192, concurrency=4)
    elsewhere = plan.with_(max_model_len=32_768, concurrency=17)
    shown = axes(LLAMA, plan, HERE)
    assert axes(LLAMA, elsewhere, HERE) == shown
    here, there = fit_map(LLAMA, plan, HERE, shown), fit_map(LLAMA, elsewhere, HERE, shown)
    assert (here.margins, here.limit) == (there.margins, there.limit)


def test_that_axes_hold_the_plan_and_the_limit() -> None:
    large = machine(gpu(139.0))
    small = model("Llama-3.2-1B")
    plan = Deployment(max_model_len=100, concurrency=4)
    shown = axes(small, plan, large)
    assert shown.least_context <= 100
    assert shown.most_context == 131_072
    found = fit_map(small, plan, large, shown)
    assert found.limit
    assert axes(small, plan.with_(concurrency=5000), large).most_requests >= 5000


def test_that_requests_that_only_wait_take_nothing() -> None:
    # One slot: however many ask, one is served.
    plan = Deployment(runtime="llama.cpp", max_model_len=8192, concurrency=4, n_parallel=1)
    found = mapped(LLAMA, plan)
    assert found.axes.most_requests == 4
    assert found.margins[0] == found.margins[-1]
    longest = solve.max_context(LLAMA, plan, HERE)
    assert found.limit
    assert {tokens for tokens, _ in found.limit} == {longest}


def test_that_what_is_refused_does_not_fit_however_much_room_there_is() -> None:
    # MLX has no quantised cache for attention with sinks.
    known, mac = model("gpt-oss-20b"), catalogue.machine(catalogue.find("M4 Pro 48 GB"))
    plan = Deployment(runtime="mlx", max_model_len=8192, kv_bits=8)
    found = mapped(known, plan, mac)
    assert (found.refused,) == size(known, plan, mac).verdict.refusals
    assert not found.limit
    assert not any(margin >= 0 for row in found.margins for margin in row)


def doubted(name: str, subject: Subject, direction: Direction) -> Model:
    known = model(name)
    doubt = Doubt(subject, "A part is not understood.", direction)
    return replace(known, spec=replace(known.spec, doubts=(doubt,)))


@pytest.mark.parametrize("runtime", ["vllm", "transformers", "llama.cpp"])
def test_that_what_is_not_known_never_fits(runtime: str) -> None:
    known = doubted("Llama-3.1-8B", Subject.WEIGHTS, Direction.LOWER)
    plan = Deployment(runtime=runtime, max_model_len=8192)
    found = mapped(known, plan)
    assert found.unknown == "A part is not understood."
    assert not found.limit
    cells = [margin for row in found.margins for margin in row]
    assert any(isnan(margin) for margin in cells)
    assert not any(margin >= 0 for margin in cells)


def test_that_of_a_bound_only_what_is_sure_is_shown() -> None:
    known = doubted("Llama-3.1-8B", Subject.SEQUENCE_STATE, Direction.UPPER)
    plan = Deployment(runtime="transformers", max_model_len=8192)
    found = mapped(known, plan)
    chosen = random.Random(3)
    kinds: set[Fit] = set()
    for _ in range(200):
        i, j = chosen.randrange(CELLS), chosen.randrange(CELLS)
        margin, row = found.margins[j][i], found.requests[j]
        fewer, more = (
            size(
                known,
                plan.with_(max_model_len=found.contexts[i], concurrency=requests),
                HERE,
            ).verdict.fit
            for requests in (floor(row), ceil(row))
        )
        if margin >= 0:
            assert fewer is Fit.FITS
            kinds.add(fewer)
        elif margin < 0:
            assert more is Fit.DOES_NOT_FIT
            kinds.add(more)
        else:
            assert Fit.UNKNOWN in (fewer, more)
            kinds.add(Fit.UNKNOWN)
    assert kinds == {Fit.FITS, Fit.DOES_NOT_FIT, Fit.UNKNOWN}


def test_that_one_who_asks_to_stop_is_heard_at_the_next_plan() -> None:
    class StopError(Exception):
        pass

    calls = 0

    def check() -> None:
        nonlocal calls
        calls += 1
        if calls == 10:
            raise StopError

    plan = Deployment(max_model_len=8192)
    shown = axes(LLAMA, plan, HERE)
    with pytest.raises(StopError):
        fit_map(LLAMA, plan, HERE, shown, check)
    assert calls == 10


@pytest.mark.parametrize(
    ("runtime", "plan", "name"),
    [
        ("vllm", {}, "fp8"),
        ("vllm", {"kv_cache_dtype": "fp8"}, None),
        ("llama.cpp", {}, "q8_0"),
        ("llama.cpp", {"cache_type_k": "q8_0", "cache_type_v": "q8_0"}, "q5_1"),
        ("llama.cpp", {"cache_type_k": "q4_0", "cache_type_v": "q4_0"}, None),
    ],
)
def test_that_the_alternative_is_the_next_rung(
    runtime: str, plan: dict[str, Any], name: str | None
) -> None:
    deployment = Deployment(runtime=runtime, max_model_len=8192, concurrency=4, **plan)
    found = smaller_cache(LLAMA, deployment, HERE)
    assert (found and found[0]) == name
    if found:
        shown = axes(LLAMA, deployment, HERE)
        own, further = (limit(LLAMA, d, HERE, shown) for d in (deployment, found[1]))
        most = {k: tokens for tokens, k in own}
        both = [(tokens, most[k]) for tokens, k in further if k in most]
        assert both
        assert all(longer > shorter for longer, shorter in both)


def test_that_the_curve_is_a_budget_for_each_context() -> None:
    plan = Deployment(max_model_len=8192, concurrency=3)
    shown = axes(LLAMA, plan, HERE)
    found = curve(LLAMA, plan, HERE, shown)
    assert found.contexts[0] == shown.least_context
    assert found.contexts[-1] == shown.most_context
    for context, budget in zip(found.contexts[::9], found.budgets[::9], strict=True):
        assert budget is not None
        alone = size(LLAMA, plan.with_(max_model_len=context), HERE).budget
        assert budget.ranks[0].needed == alone.ranks[0].needed


def test_that_the_roundest_number_is_found() -> None:
    assert roundest(1000, 1100) == 1024
    assert roundest(1025, 1100) == 1088
    assert roundest(7, 7) == 7
    assert roundest(64, 100) == 64


def test_that_the_table_holds_a_plan_in_every_field() -> None:
    plan = Deployment(max_model_len=8192, concurrency=4)
    found = margin_table(LLAMA, plan, HERE, axes(LLAMA, plan, HERE))
    assert found.contexts == tuple(2**n for n in range(10, 18))
    assert found.requests == (1, 2, 4, 8, 16, 32, 64)
    for row, requests in zip(found.margins, found.requests, strict=True):
        for margin, tokens in zip(row, found.contexts, strict=True):
            alone = plan.with_(max_model_len=tokens, concurrency=requests)
            assert margin == solve.margin_bytes(LLAMA, alone, HERE)


def test_that_octaves_end_where_the_axis_ends() -> None:
    assert octaves(1, 6) == (1, 2, 4, 6)
    assert octaves(1024, 40_960) == (1024, 2048, 4096, 8192, 16_384, 32_768, 40_960)


@pytest.mark.parametrize("direction", [Direction.LOWER, Direction.EITHER])
def test_that_a_table_of_what_is_not_known_promises_nothing(direction: Direction) -> None:
    known = doubted("Llama-3.1-8B", Subject.WEIGHTS, direction)
    plan = Deployment(max_model_len=8192)
    found = margin_table(known, plan, HERE, axes(known, plan, HERE))
    assert not any(margin >= 0 for row in found.margins for margin in row)
