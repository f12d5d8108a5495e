"""Logged starts of vLLM 0.2 to 0.27 on other people's machines: dense and MoE models.

Every record states what vLLM printed. Tolerances are the corpus's own: pool arithmetic exact
within the rounding of the printed pool, weights 1 % in 16 bits and 3 % quantised or with LoRA,
activations 0.05 GiB, the budget's identity 0.06 GiB.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from engine.budget.model import Budget, Region
from engine.deployment.spec import Deployment
from engine.sizing import size
from tests.helpers.published import GIB, gpu, machine, model

SHARED = Path(__file__).resolve().parents[2].parent / "shared" / "truth" / "runtime-logs"
RECORDS_FILE = SHARED / "records.jsonl"

pytestmark = pytest.mark.skipif(
    not RECORDS_FILE.exists(), reason="the measured records are not beside this checkout"
)

LORA_32 = {"max_loras": 1, "max_lora_rank": 32}
# Record -> model and what the record says in words rather than in a field. Records in the order
# of the file; those of hybrids, of other runtimes and of models that are not named are left out.
RECORDS: dict[str, tuple[str, dict[str, Any]]] = {
    "hf-cookbook-qwen2-0.5b-a100": ("Qwen2-0.5B", {}),
    # Mistral Small 4: latents of 256 + 64 in 36 layers; only its cache is compared.
    "kaito-2132-mistral-small-4-119b": ("Kimi-K2-like-256", {"tensor_parallel_size": 2}),
    "unsloth-nb-advanced-llama3-1-3b-grpo-lora": (
        "Llama-3.2-3B",
        {"max_loras": 1, "max_lora_rank": 64},
    ),
    "unsloth-nb-advanced-llama3-2-3b-grpo-lora": (
        "Llama-3.2-3B",
        {"max_loras": 1, "max_lora_rank": 64, "weight_format": "fp16"},
    ),
    "unsloth-nb-deepseek-r1-0528-qwen3-8b-grpo": ("Qwen3-8B", {"weight_format": "nf4"} | LORA_32),
    "unsloth-nb-llama3-1-8b-grpo": ("Llama-3.1-8B", {"weight_format": "nf4"} | LORA_32),
    "unsloth-nb-llama-fp8-grpo": ("Llama-3.2-1B", {"weight_format": "fp8-block"} | LORA_32),
    "unsloth-nb-mistral-v0-3-7b-grpo": ("Mistral-7B-v0.3", {"weight_format": "nf4"} | LORA_32),
    "unsloth-nb-phi-4-14b-grpo": (
        "phi-4",
        {"weight_format": "nf4", "max_loras": 1, "max_lora_rank": 16},
    ),
    "unsloth-nb-qwen3-4b-grpo": ("Qwen3-4B", {"weight_format": "fp16"} | LORA_32),
    "recipes-kimi-k2-thinking-tp8": ("Kimi-K2", {"max_model_len": 131072}),
    "recipes-kimi-k2-thinking-tp8-dcp8": ("Kimi-K2", {"max_model_len": 131072}),
    "vllm-10517-llama31-8b-3090-20000": ("Llama-3.1-8B", {}),
    "vllm-10517-llama31-8b-3090-29000": ("Llama-3.1-8B", {}),
    # 0.11 of October 2025; the printed need tells that a step held about 1,024 tokens.
    "vllm-27508-gptoss120b-h100": (
        "gpt-oss-120b",
        {"max_num_batched_tokens": 1024, "runtime_version": "0.11.0"},
    ),
    "vllm-34076-qwen3-coder-30b-pp2": ("Qwen3-30B-A3B", {"weight_format": "fp8-block"}),
    "vllm-10511-llama3-8b-tp1": ("Llama-3-8B", {}),
    "vllm-10511-llama3-8b-tp2": ("Llama-3-8B", {}),
    "vllm-12569-llama31-70b-w8a8": ("Llama-3.3-70B-W8A8", {}),
    "vllm-17122-llama31-8b-l40s": ("Llama-3.1-8B", {}),
    "vllm-2031-llama2-7b-a100-before": ("Llama-2-7b", {}),
    "vllm-2031-llama2-7b-a100-after": ("Llama-2-7b", {}),
    "myoceane-gptoss20b-a100": ("gpt-oss-20b", {}),
    "fi-glm47-nvfp4-tp4": (
        "GLM-4.7",
        {"weight_format": "nvfp4", "kv_cache_dtype": "fp8", "max_model_len": 32768},
    ),
    "fi-qwen3-8b-fp8-24gb": ("Qwen3-8B", {"weight_format": "fp8-block"}),
    "fi-gemma3-1b-24gb": ("gemma-3-1b", {}),
    "fi-kaitchup-llama31-8b-bf16": ("Llama-3.1-8B", {}),
    "fi-kaitchup-llama31-8b-gptq-asym": ("Llama-3.1-8B", {"weight_format": "gptq-int4-no-order"}),
    "fi-kaitchup-llama31-8b-gptq-sym": ("Llama-3.1-8B", {"weight_format": "gptq-int4-no-order"}),
    "fi-kaitchup-llama31-8b-gptq": ("Llama-3.1-8B", {"weight_format": "gptq-int4-no-order"}),
    "fi-kaitchup-llama31-8b-awq": ("Llama-3.1-8B", {"weight_format": "awq-int4"}),
    "fi-minimax-m27-offload": ("MiniMax-M2", {}),
    "fi-qwen3-8b-a100-40": ("Qwen3-8B", {}),
    "fi-phi4-gptq-util15": ("phi-4", {"weight_format": "gptq-int4-no-order"}),
    "fi-llama31-8b-a10g": ("Llama-3.1-8B", {}),
    "fi-qwen3-14b-fp8-4090": ("Qwen3-14B", {"weight_format": "fp8-block"}),
    "fi-llama31-8b-a5000": ("Llama-3.1-8B", {}),
    "fi-qwen3-30b-a3b-gb10": ("Qwen3-30B-A3B", {}),
    "fi-gemma3-27b-rocm": ("gemma-3-27b", {}),
}
_FIELDS = {
    "tp": "tensor_parallel_size",
    "pp": "pipeline_parallel_size",
    "dcp": "decode_context_parallel_size",
    "max_model_len": "max_model_len",
    "max_num_seqs": "max_num_seqs",
    "max_num_batched_tokens": "max_num_batched_tokens",
    "gpu_memory_utilization": "gpu_memory_utilization",
    "enforce_eager": "enforce_eager",
}


@cache
def records() -> dict[str, dict[str, Any]]:
    lines = RECORDS_FILE.read_text(encoding="utf-8").splitlines()
    return {record["id"]: record for record in map(json.loads, lines)}


def record(name: str) -> dict[str, Any]:
    if name not in records():
        pytest.skip(f"{name} is not among the records beside this checkout")
    return records()[name]


def deployment(name: str) -> Deployment:
    stated, extra = record(name), RECORDS[name][1]
    version = re.match(r"(\d+\.\d+(?:\.\d+)?)", stated.get("engine_version") or "")
    fields = {ours: stated[theirs] for theirs, ours in _FIELDS.items() if theirs in stated}
    if version:
        fields["runtime_version"] = version[1]
    return Deployment(**(fields | extra))


def plan(name: str, **more: Any) -> Budget:
    chosen = deployment(name).with_(**more)
    card = gpu(record(name).get("gpu_total_gib", 80.0))
    return size(model(RECORDS[name][0]), chosen, machine(card, chosen.ranks)).budget


def with_reported(*keys: str) -> list[str]:
    if not RECORDS_FILE.exists():
        return []
    return [
        name
        for name in RECORDS
        if name in records() and all(k in records()[name]["reported"] for k in keys)
    ]


def test_that_at_least_thirty_records_are_compared() -> None:
    assert sum(name in records() for name in RECORDS) >= 30


@pytest.mark.parametrize("name", with_reported("kv_available_gib"))
def test_that_the_pool_is_cut_as_the_log_says(name: str) -> None:
    reported = record(name)["reported"]
    known = reported["kv_available_gib"]
    state = plan(name, kv_pool_bytes=int(known * GIB)).sequence_state
    slack = 0.006 / known
    if "kv_blocks" in reported:
        wanted = reported["kv_blocks"]
        assert state.num_blocks == pytest.approx(wanted, abs=1 + slack * wanted)
    if "kv_tokens" in reported:
        wanted = reported["kv_tokens"]
        assert state.pool_tokens == pytest.approx(wanted, abs=16 + slack * wanted)
    if "max_concurrency" in reported:
        wanted = reported["max_concurrency"]
        assert state.max_concurrency == pytest.approx(wanted, abs=0.006 + slack * wanted)


@pytest.mark.parametrize("name", with_reported("kv_needed_gib_for_len"))
def test_that_a_refusal_names_the_bytes_we_compute(name: str) -> None:
    wanted = record(name)["reported"]["kv_needed_gib_for_len"]
    budget = plan(name, max_model_len=wanted["len"])
    # The one refusal of a pipeline, by 0.15, counts all stages together: a fault of its own.
    stages = budget.deployment.pipeline_parallel_size
    size_bytes = budget.sequence_state.reserved_bytes_per_sequence * stages
    assert size_bytes / GIB == pytest.approx(wanted["gib"], abs=0.0051)


@pytest.mark.parametrize("name", with_reported("weights_gib"))
def test_that_weights_agree_with_the_loader(name: str) -> None:
    wanted = record(name)["reported"]["weights_gib"]
    chosen = deployment(name)
    plain = chosen.weight_format in ("auto", "fp16") and not chosen.max_loras
    got = plan(name).ranks[0].regions[Region.WEIGHTS].estimate.likely_bytes / GIB
    assert got == pytest.approx(wanted, rel=0.01 if plain else 0.03)


@pytest.mark.parametrize("name", with_reported("activation_peak_gib"))
def test_that_the_activation_law_holds_before_0_17(name: str) -> None:
    wanted = record(name)["reported"]["activation_peak_gib"]
    got = plan(name).ranks[0].regions[Region.ACTIVATIONS].estimate.likely_bytes / GIB
    assert got == pytest.approx(wanted, abs=0.05)


@pytest.mark.parametrize("name", with_reported("graph_gib"))
def test_that_graphs_stay_inside_their_range(name: str) -> None:
    wanted = record(name)["reported"]["graph_gib"]
    graphs = plan(name).ranks[0].regions[Region.CUDA_GRAPHS].estimate
    if wanted < 0:
        pytest.skip("the log reads a negative size, which no graph has")
    assert graphs.low_bytes <= wanted * GIB <= graphs.high_bytes


@pytest.mark.parametrize(
    "name", with_reported("weights_gib", "activation_peak_gib", "non_torch_gib", "kv_available_gib")
)
def test_that_the_budget_identity_holds(name: str) -> None:
    stated = record(name)
    reported = stated["reported"]
    asked = stated["gpu_total_gib"] * stated["gpu_memory_utilization"]
    taken = sum(reported[k] for k in ("weights_gib", "activation_peak_gib", "non_torch_gib"))
    assert asked - taken == pytest.approx(reported["kv_available_gib"], abs=0.06)
    budget = plan(name)
    regions = budget.ranks[0].regions
    charged = ("workspaces", "collectives, workspaces", "sampler buffers")
    inside = regions[Region.RUNTIME].estimate.parts
    ours = sum(part.likely_bytes for part in inside if part.label in charged)
    for region in (Region.WEIGHTS, Region.ACTIVATIONS, Region.KV_CACHE):
        ours += regions[region].estimate.likely_bytes
    assert ours / GIB == pytest.approx(asked, abs=0.001)


def test_that_the_older_versions_table_holds() -> None:
    """Qwen3-14B on H100 from 0.15 to 0.18: activation 5.64 until 0.16, 2.23 since."""
    for version, activation in (("0.15.0", 5.64), ("0.16.0", 5.64), ("0.17.0", 2.23)):
        chosen = Deployment(
            runtime_version=version,
            max_model_len=8192,
            gpu_memory_utilization=0.95,
            max_num_batched_tokens=8192,
            max_num_seqs=1024,
        )
        budget = size(model("Qwen3-14B"), chosen, machine(gpu(79.19))).budget
        regions = budget.ranks[0].regions
        assert regions[Region.WEIGHTS].estimate.likely_bytes / GIB == pytest.approx(27.52, abs=0.01)
        got = regions[Region.ACTIVATIONS].estimate.likely_bytes / GIB
        assert got == pytest.approx(activation, abs=0.02)
    pools = {"0.16.0": 41.94, "0.17.0": 45.34}
    for version, pool in pools.items():
        budget = size(
            model("Qwen3-14B"), chosen.with_(runtime_version=version), machine(gpu(79.19))
        ).budget
        got = budget.ranks[0].regions[Region.KV_CACHE].estimate.likely_bytes / GIB
        assert got == pytest.approx(pool, rel=0.005)
