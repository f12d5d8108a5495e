"""What fits and does not start, and settings that a runtime does not take."""

from __future__ import annotations

import pytest

from engine.budget.model import Region
from engine.deployment.spec import Deployment
from engine.devices import catalogue
from engine.errors import DeploymentError
from engine.fit.changes import changes
from engine.fit.verdict import Fit
from engine.runtimes import registry
from engine.sizing import size
from tests.helpers.published import H100, machine, model

HERE = machine(H100)


@pytest.mark.parametrize(
    ("runtime", "switch"),
    [
        ("vllm", "VLLM_ALLOW_LONG_MAX_MODEL_LEN"),
        ("sglang", "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN"),
    ],
)
def test_that_a_context_beyond_the_config_fits_and_is_refused(runtime: str, switch: str) -> None:
    known = model("Llama-3.1-8B")
    plan = Deployment(runtime=runtime, max_model_len=140_000)
    verdict = size(known, plan, HERE).verdict
    assert verdict.fit in (Fit.FITS, Fit.TIGHT)
    assert verdict.outcome is Fit.DOES_NOT_FIT
    assert "131,072" in verdict.refusals[0]
    assert switch in verdict.refusals[0]
    assert not size(known, plan.with_(max_model_len=131_072), HERE).verdict.refusals
    offered = {change.label: change.deployment for change in changes(known, plan, HERE)}
    assert offered["Context 128k"].max_model_len == 131_072


def test_that_vllm_takes_the_ranks_of_its_list_alone() -> None:
    known, runtime = model("Llama-3.1-8B"), registry.get("vllm")
    plan = Deployment(max_model_len=4096, max_loras=2, max_lora_rank=17)
    with pytest.raises(DeploymentError, match="max_lora_rank is one of 1, 8, 16, 32") as caught:
        runtime.plan(known, plan, HERE)
    assert caught.value.field == "max_lora_rank"
    alone = runtime.plan(known, plan.with_(max_loras=0, max_lora_rank=64), HERE)
    assert any("give max_loras too" in words for words in alone.warnings)


def test_that_a_prompt_is_no_longer_than_its_sequence() -> None:
    plan = Deployment(runtime="transformers", max_model_len=4096, prompt_len=9000)
    budget = registry.get("transformers").plan(model("Llama-3.1-8B"), plan, HERE)
    assert "prompt_len 9,000 is cut to the 4,096 tokens of a sequence." in budget.warnings


def test_that_experts_are_not_moved_where_there_are_none() -> None:
    plan = Deployment(runtime="llama.cpp", max_model_len=4096, n_cpu_moe=4)
    budget = registry.get("llama.cpp").plan(model("Llama-3.1-8B"), plan, HERE)
    assert any("this model has none" in words for words in budget.warnings)


def test_that_every_stage_of_mlx_holds_table_and_head() -> None:
    # Llama 3.1 8B: table and head of 128,256 x 4,096 each; 32 layers of 218,112,000 parameters.
    mac = catalogue.machine(catalogue.find("M4 Max 128 GB"), 2)
    plan = Deployment(runtime="mlx", max_model_len=4096, pipeline_parallel_size=2)
    budget = registry.get("mlx").plan(model("Llama-3.1-8B"), plan, mac)
    outside = 2 * 128_256 * 4096
    for rank in budget.ranks:
        held = rank.regions[Region.WEIGHTS].estimate.low_bytes
        assert 0 <= held - 2 * (outside + 16 * 218_112_000) <= 2 * 4096
