"""Inverse questions: the answer fits, the next plan doesn't, and what binds is named."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from engine.architecture.spec import Direction, Doubt, Subject
from engine.budget.model import Region
from engine.deployment.spec import Deployment
from engine.devices import catalogue
from engine.errors import DeploymentError
from engine.fit.inverse import Answer, inverse
from engine.fit.solve import limits
from engine.fit.verdict import Fit
from engine.sizing import size
from tests.helpers.published import GIB, H100, RTX_4090, machine, model

HERE = machine(RTX_4090)


def asked(name: str, plan: Deployment, where: Any = HERE) -> dict[str, Answer]:
    return {found.question: found for found in inverse(model(name), plan, where)}


def runs(name: str, plan: Deployment, where: Any = HERE) -> bool:
    try:
        return size(model(name), plan, where).verdict.outcome in (Fit.FITS, Fit.TIGHT)
    except DeploymentError:
        return False


def test_that_a_known_pool_binds_context_and_requests() -> None:
    # 4 GiB are 2,048 blocks of 2 MiB, one of them the null block; four requests share 2,047.
    plan = Deployment(max_model_len=8192, concurrency=4, kv_pool_bytes=4 * GIB)
    found = asked("Llama-3.1-8B", plan)
    assert found["max_context"].value == 2047 // 4 * 16
    assert found["max_context"].settings == {"max_model_len": 2047 // 4 * 16}
    assert found["max_concurrency"].value == 2047 // 512
    assert {found[q].region for q in ("max_context", "max_concurrency")} == {Region.KV_CACHE}
    assert found["max_context"].rank == 0


@pytest.mark.parametrize(
    ("plan", "fields"),
    [
        (Deployment(max_model_len=8192, concurrency=4), ("max_num_batched_tokens",)),
        (Deployment(runtime="llama.cpp", max_model_len=45_056), ("n_ubatch", "n_batch")),
    ],
)
def test_that_one_token_more_a_step_does_not_fit(plan: Deployment, fields: tuple[str, ...]) -> None:
    found = asked("Llama-3.1-8B", plan)["max_num_batched_tokens"]
    most = found.value
    assert isinstance(most, int)
    assert found.settings == dict.fromkeys(fields, most)
    assert runs("Llama-3.1-8B", plan.with_(**dict.fromkeys(fields, most)))
    assert not runs("Llama-3.1-8B", plan.with_(**dict.fromkeys(fields, most + 1)))


def test_that_a_step_of_fewer_tokens_than_requests_is_refused() -> None:
    # vLLM's SchedulerConfig: max_num_batched_tokens must be at least max_num_seqs.
    plan = Deployment(max_model_len=4096, max_num_batched_tokens=100)
    assert runs("Llama-3.1-8B", plan)
    refused = plan.with_(max_num_seqs=256)
    assert not runs("Llama-3.1-8B", refused)
    assert runs("Llama-3.1-8B", refused.with_(max_num_batched_tokens=256))
    found = asked("Llama-3.1-8B", refused)
    most = found["max_num_batched_tokens"].value
    assert isinstance(most, int)
    assert most > 256
    assert not runs("Llama-3.1-8B", refused.with_(max_num_batched_tokens=most + 1))
    assert "less than max_num_seqs 256" in found["best_weight_format"].reason


def test_that_a_step_of_llama_cpp_ends_with_the_context() -> None:
    # At 1,024 tokens in all there is nothing to gain from a larger step, and room for it.
    found = asked("Llama-3.1-8B", Deployment(runtime="llama.cpp", max_model_len=1024))
    assert found["max_num_batched_tokens"].value == 1024
    assert found["max_num_batched_tokens"].region is None


def test_that_no_fewer_devices_do() -> None:
    # 141.1 GB of BF16 weights: one card of 85 GB holds them in no way, two do.
    plan = Deployment(max_model_len=4096)
    found = asked("Llama-3.1-70B", plan, machine(H100))["fewest_devices"]
    assert found.value == 2
    assert found.region is Region.WEIGHTS
    assert runs("Llama-3.1-70B", plan.with_(**dict(found.settings)), machine(H100, 2))


def test_that_no_smaller_device_of_the_catalogue_does() -> None:
    plan = Deployment(max_model_len=8192, concurrency=2)
    found = asked("Llama-3.1-8B", plan)["smallest_device"]
    chosen = catalogue.find(str(found.value))
    assert runs("Llama-3.1-8B", plan, catalogue.machine(chosen))
    for device in catalogue.devices():
        if device.allocatable.likely_bytes < chosen.allocatable.likely_bytes:
            assert not runs("Llama-3.1-8B", plan, catalogue.machine(device)), device.name


@pytest.mark.parametrize(
    ("name", "mix", "field", "step"),
    [("Llama-3.1-70B", "Q4_K_M", "n_gpu_layers", 1), ("gpt-oss-120b", "auto", "n_cpu_moe", -1)],
)
def test_that_no_more_fits_on_the_gpu(name: str, mix: str, field: str, step: int) -> None:
    plan = Deployment(runtime="llama.cpp", weight_format=mix, max_model_len=8192)
    found = asked(name, plan)["best_placement"]
    value = found.settings[field]
    assert isinstance(value, int)
    assert runs(name, plan.with_(**{field: value}))
    assert not runs(name, plan.with_(**{field: value + step}))
    assert found.region is not None


def test_that_what_fits_as_planned_names_no_memory_that_binds() -> None:
    found = asked("Llama-3.1-8B", Deployment(max_model_len=4096))
    for question in ("best_weight_format", "best_kv_cache_dtype", "fewest_devices"):
        assert found[question].rank is None
        assert found[question].region is None


def test_that_a_smaller_kv_type_is_found() -> None:
    # 16.06 GB of weights leave a 4090 with some 5 GiB of pool: 65,536 tokens at 128 KiB are 8.
    plan = Deployment(max_model_len=65_536, gpu_memory_utilization=0.95)
    found = asked("Llama-3.1-8B", plan)["best_kv_cache_dtype"]
    assert found.value == "fp8"
    assert found.settings == {"kv_cache_dtype": "fp8"}
    assert found.region is Region.KV_CACHE


def test_that_nothing_is_promised_of_a_model_in_doubt() -> None:
    known = model("Llama-3.1-8B")
    doubt = Doubt(Subject.SEQUENCE_STATE, "something is not counted", Direction.LOWER)
    doubted = replace(known, spec=replace(known.spec, doubts=(doubt,)))
    for found in inverse(doubted, Deployment(max_model_len=1024), HERE):
        assert found.value is None
        assert "not counted" in found.reason


def test_that_a_server_without_room_for_a_request_names_what_binds() -> None:
    # 141 GB of weights on a card of 24: SGLang's own cap on requests is 0 then, and no answer.
    found = asked("Llama-3.1-70B", Deployment(runtime="sglang", max_model_len=4096))
    most = found["max_concurrency"]
    assert most.value is None
    assert (most.rank, most.region) == (0, Region.WEIGHTS)


def test_that_the_answers_agree_with_the_limits() -> None:
    plan = Deployment(max_model_len=8192, concurrency=4)
    found, known = asked("Llama-3.1-8B", plan), limits(model("Llama-3.1-8B"), plan, HERE)
    assert found["max_context"].value == known.max_context
    assert found["max_concurrency"].value == known.max_concurrency


def test_that_a_quantised_cache_is_found_where_only_that_fits() -> None:
    # 100,000 tokens at 128 KiB are 12.2 GiB, beside 15.0 GiB of weights; a quarter of it fits.
    plan = Deployment(
        runtime="transformers",
        max_model_len=100_000,
        prefill_chunk_size=1024,
        attn_implementation="flash_attention_2",
    )
    found = asked("Llama-3.1-8B", plan)["best_kv_cache_dtype"]
    assert found.value == "4 bit"
    assert found.settings == {"cache_implementation": "quantized", "kv_bits": 4.0}


def test_that_no_cache_is_promised_that_the_runtime_refuses() -> None:
    # mlx-lm has no quantised cache for several requests at once.
    laptop = catalogue.machine(catalogue.find("M4 24 GB"))
    plan = Deployment(runtime="mlx", max_model_len=4096, concurrency=8)
    assert asked("Llama-3.1-8B", plan, laptop)["best_kv_cache_dtype"].value is None
