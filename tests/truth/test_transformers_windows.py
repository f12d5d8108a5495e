"""What lies behind windows after a prompt: storages of caches, as transformers 5.24 left them.

Measured with transformers 5.24.0 and torch 2.13.0 on the CPU: tiny models in 32 bits
(``evidence/architectures.jsonl``) read 40 tokens; what their caches' storages held beyond their
tensors.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from engine.architecture.read import read
from engine.budget.model import Region
from engine.deployment.spec import Deployment
from engine.runtimes.registry import get
from engine.runtimes.transformers import peaks
from engine.runtimes.transformers.settings import settle
from engine.source.raw import RawModel
from tests.helpers.published import gpu, machine

EVIDENCE = Path(__file__).resolve().parents[1] / "evidence" / "architectures.jsonl"
TOKENS = 40
BEYOND = {
    "afmoe": 9600, "cohere2": 6400, "deepseek_v4": 32_800, "exaone4": 6400, "gemma2": 9600,
    "gemma3_text": 9600, "gemma3n_text": 28_800, "gemma4_text": 9600, "gpt_oss": 9600,
    "llama4_text": 9600, "mimo_v2_flash": 16_000, "ministral": 12_800, "mistral": 12_800,
    "olmo3": 6400,
    **dict.fromkeys(
        ("bamba", "deepseek_v3", "deepseek_v32", "falcon_h1", "glm4_moe", "kimi_linear", "lfm2",
         "minimax", "nemotron_h", "phi3", "qwen3_5", "qwen3_next", "smollm3", "zamba2"),
        0,
    ),
}  # fmt: skip
"""Type -> bytes."""


def _bases() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for line in EVIDENCE.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        found.setdefault(row["type"], row["base"])
    return found


BASES = _bases()


@pytest.mark.parametrize("name", BEYOND)
def test_that_what_windows_let_go_of_is_what_storages_held(name: str) -> None:
    config = BASES[name] | {"model_type": name, "dtype": "float32"}
    model = read(RawModel(id=name, source="tiny", config=config))
    plan = Deployment(runtime="transformers", max_model_len=TOKENS, prompt_len=TOKENS)
    settings = settle(model, plan, machine(gpu(24.0)))
    assert peaks.let_go_bytes(model.spec.layers, settings, 1) == BEYOND[name]


def test_that_a_long_prompt_of_gemma_lies_whole_behind_its_windows() -> None:
    # 5 of 6 layers look back on 16 tokens; 4,096 lie there, of 2 heads of 24 in 32 bits each.
    config = BASES["gemma3_text"] | {"model_type": "gemma3_text", "dtype": "float32"}
    many = config | {"num_hidden_layers": 6, "max_position_embeddings": 8192}
    layers = ["sliding_attention"] * 5 + ["full_attention"]
    model = read(RawModel(id="gemma", source="tiny", config=many | {"layer_types": layers}))

    def peak(cache: str) -> int:
        plan = Deployment(
            runtime="transformers", max_model_len=4096, cache_implementation=cache,
            attn_implementation="flash_attention_2",
        )  # fmt: skip
        rank = get("transformers").plan(model, plan, machine(gpu(24.0))).ranks[0]
        return rank.regions[Region.ACTIVATIONS].estimate.likely_bytes

    assert peak("dynamic") - peak("static") == 5 * (4096 - 15) * 2 * 2 * 24 * 4
