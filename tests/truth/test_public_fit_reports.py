"""Verdicts that other tools got wrong in public, each with its report; the right answer by hand."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from engine.cancel import CancelToken
from engine.contract.desk import Desk
from engine.contract.respond import respond
from tests.helpers import synthetic_gguf

if TYPE_CHECKING:
    from pathlib import Path

GIB = 2**30


def answered(**request: object) -> dict[str, Any]:
    answer, _ = respond(Desk(CancelToken()), request)
    return json.loads(json.dumps(answer, allow_nan=False))


def test_that_an_architecture_nobody_modelled_is_unknown_and_at_least_its_weights(tmp_path: Path):
    # lmstudio issue 1038: "approximately NaN undefined of memory" for rwkv7, without head counts
    pytest.importorskip("gguf")

    class Recurrent(synthetic_gguf.Dense):
        def metadata(self) -> dict[str, int | float]:
            stated = super().metadata()
            return {k: v for k, v in stated.items() if not k.startswith(("attention.", "rope."))}

        def tensors(self) -> list[tuple[str, tuple[int, ...]]]:
            return [
                (name.replace("attn_q", "time_mix_receptance"), shape)
                for name, shape in super().tensors()
                if not any(part in name for part in ("attn_k", "attn_v", "attn_output"))
            ]

    model = Recurrent("rwkv7", 4, 256, 512, 4, 4, 64, 1000, 4096)
    file = synthetic_gguf.write(model, {n: "F16" for n, _ in model.tensors()}, tmp_path / "r.gguf")
    answer = answered(model=str(file), runtime="llama.cpp", gpu="RTX 3070", max_model_len=4096)
    assert answer["verdict"] == "unknown"
    parameters = sum(_product(shape) for _, shape in model.tensors())
    assert answer["model"]["weights_bytes"] == 2 * parameters
    regions = answer["ranks"][0]["regions"]
    assert regions["recurrent_state"]["basis"] == "bound"
    assert regions["recurrent_state"]["direction"] == "at_least"
    assert any("not modelled" in words and "rwkv7" in words for words in answer["warnings"])
    assert not {"NaN", "None", "undefined", "inf"} & set(json.dumps(answer["warnings"]).split())


def _product(shape: tuple[int, ...]) -> int:
    made = 1
    for size in shape:
        made *= size
    return made


def test_that_a_context_of_a_million_is_not_the_default_and_is_said_where_it_is_asked_for():
    # lmstudio issue 1202: 273.25 GB for a 12 B model, at the full 1,024,000 tokens
    nemo = {
        "config": {
            "model_type": "mistral", "hidden_size": 5120, "intermediate_size": 14336,
            "num_hidden_layers": 40, "num_attention_heads": 32, "num_key_value_heads": 8,
            "head_dim": 128, "vocab_size": 131072, "max_position_embeddings": 1024000,
            "sliding_window": None,
        },
        "runtime": "llama.cpp", "weight_format": "Q4_K_M", "gpu": "RTX 3090",
    }  # fmt: skip
    short = answered(**nemo, max_model_len=8192)
    # 40 layers × 8 heads × 128 × 2 × 2 bytes × 8,192 tokens
    assert short["ranks"][0]["regions"]["kv_cache"]["likely"] == round(1.25 * GIB)
    assert short["verdict"] == "fits"
    whole = answered(**nemo, max_model_len=1024000, n_gpu_layers=99)
    assert whole["ranks"][0]["regions"]["kv_cache"]["likely"] == round(156.25 * GIB)
    assert whole["verdict"] == "does_not_fit"
    assert whole["binding"]["region"] == "kv_cache"


def test_that_ollamas_own_default_context_decides_and_stands_beside_the_number():
    # llmfit issue 302: 26.3 GB for a 9 B model in 4 bits on a card of 8 GB
    answer = answered(
        model="Qwen/Qwen3.5-9B", runtime="ollama", weight_format="Q4_K_M",
        gpu_total_bytes=8 * GIB, gpu="RTX 3070",
    )  # fmt: skip
    assert answer["verdict"] in ("fits", "tight")
    assert any("4,096" in words for words in answer["assumptions"])


def test_that_a_full_offload_that_cannot_be_says_by_how_much_and_what_could():
    # lmstudio issue 1753: 30 GB on a card of 8 GB passed without a warning
    answer = answered(
        model="google/gemma-4-26B-A4B-it", runtime="llama.cpp", weight_format="Q4_K_M",
        gpu="RTX 3070", n_gpu_layers=99, max_model_len=262144,
    )  # fmt: skip
    assert answer["verdict"] == "does_not_fit"
    over = answer["ranks"][0]["planned_bytes"] - answer["ranks"][0]["allocatable_bytes"]
    assert over > 10 * GIB


def test_that_a_small_gpu_is_a_place_to_plan_for():
    # jan issue 6337: GPUs under 6 GiB were hidden
    answer = answered(
        model="Qwen/Qwen3-0.6B", runtime="llama.cpp", weight_format="Q4_K_M",
        gpu_total_bytes=4096 * 2**20, max_model_len=4096,
    )  # fmt: skip
    assert answer["ranks"][0]["total_bytes"] == 4 * GIB
    assert answer["verdict"] == "fits"
