"""What the plan's controls offer."""

from __future__ import annotations

from typing import Any

import pytest

from engine.architecture.model import Model
from engine.architecture.read import specify
from engine.deployment.spec import Deployment
from engine.runtimes import registry
from gui.sizing.plan import Plan, first_plan, format_choices, machine_for, with_runtime

CONFIG: dict[str, Any] = {
    "model_type": "llama",
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "torch_dtype": "bfloat16",
}


@pytest.mark.parametrize(
    ("runtime", "quantisation", "words"),
    [
        ("vllm", None, "BF16, as stored"),
        ("llama.cpp", None, "BF16, as stored"),
        ("vllm", {"quant_method": "fp8", "weight_block_size": [128, 128]}, "FP8 block, as stored"),
        ("llama.cpp", {"quant_method": "fp8"}, "BF16 GGUF, converted"),
        ("llama.cpp", {"quant_method": "awq", "bits": 4}, "BF16 GGUF, converted"),
    ],
)
def test_that_the_first_weight_format_says_what_is_loaded(
    runtime: str, quantisation: dict[str, Any] | None, words: str
) -> None:
    config = CONFIG | ({"quantization_config": quantisation} if quantisation else {})
    model = Model("m", None, "config.json", specify(config))
    label, key = format_choices(registry.get(runtime), model)[0]
    assert key == "auto"
    assert label == words


def test_that_another_runtime_starts_without_settings_it_does_not_have() -> None:
    offloaded = Deployment(
        runtime="llama.cpp", max_model_len=4096, n_cpu_moe=12, cache_type_k="q8_0"
    )
    changed = with_runtime(Plan(offloaded), "vllm", None, None).deployment
    assert changed == Deployment(runtime="vllm", max_model_len=4096)


def test_that_a_list_of_devices_is_the_machine_whatever_the_ranks(here):
    plan = first_plan("llama.cpp").with_(device="RTX 4090 + 2 x RTX 3060 12GB")
    found = machine_for(plan, here)
    names = [slot.device.name for slot in found.slots]
    assert names == ["RTX 4090", "RTX 3060 12GB", "RTX 3060 12GB"]
    assert not found.is_here
