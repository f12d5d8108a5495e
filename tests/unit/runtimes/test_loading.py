"""What a runtime loads where no weight format is chosen."""

from __future__ import annotations

from typing import Any

import pytest

from engine.architecture.model import Model
from engine.architecture.read import read, specify
from engine.deployment.spec import Deployment
from engine.devices import catalogue as devices
from engine.fit.solve import best_weight_format, rungs
from engine.formats.mixes import MIXES
from engine.runtimes import registry
from engine.runtimes.llama_cpp import file_bytes
from engine.runtimes.loading import in_words, loaded
from engine.source import catalogue

LLAMA: dict[str, Any] = {
    "model_type": "llama",
    "vocab_size": 1024,
    "hidden_size": 512,
    "intermediate_size": 1024,
    "num_hidden_layers": 2,
    "num_attention_heads": 8,
    "torch_dtype": "bfloat16",
}
QUANTISED = {
    "awq-int4": {"quant_method": "awq", "bits": 4, "group_size": 128},
    "fp8-block": {"quant_method": "fp8", "weight_block_size": [128, 128]},
    "nvfp4": {"quant_method": "modelopt", "quant_algo": "NVFP4"},
    "mxfp4": {"quant_method": "mxfp4"},
}


def small(**config: Any) -> Model:
    return Model("small", None, "config.json", specify(LLAMA | config))


def gpt_oss() -> Model:
    entry = catalogue.find("openai/gpt-oss-20b")
    assert entry is not None
    return read(catalogue.raw(entry))


def test_that_llama_cpp_keeps_the_experts_of_gpt_oss_in_mxfp4() -> None:
    model = gpt_oss()
    assert loaded(model, "llama.cpp").name == "MXFP4_MOE"
    # The tensors of the file that llama.cpp's measured runs loaded: experts 10,152,345,600 B in
    # MXFP4, 1,907,481,600 B in Q8_0, 36,731,136 B in F32.
    assert file_bytes(model, "auto") == 12_096_558_336
    assert file_bytes(model, "auto") == file_bytes(model, "MXFP4_MOE")
    assert loaded(model, "vllm").name == "mxfp4"


@pytest.mark.parametrize("stored", list(QUANTISED))
def test_that_llama_cpp_converts_what_it_cannot_load(stored: str) -> None:
    model = small(quantization_config=QUANTISED[stored])
    found = loaded(model, "llama.cpp")
    assert in_words(found, "label") == "BF16 GGUF, converted"
    assert file_bytes(model, "auto") == file_bytes(small(), "BF16")
    other = loaded(model, "vllm")
    assert in_words(other, stored) == f"{stored}, as stored"


@pytest.mark.parametrize(
    ("dtype", "words"),
    [
        ("bfloat16", "label, as stored"),
        ("float16", "label, as stored"),
        ("float32", "BF16 GGUF, converted"),
    ],
)
def test_that_sixteen_bits_are_copied_into_the_file(dtype: str, words: str) -> None:
    assert in_words(loaded(small(torch_dtype=dtype), "llama.cpp"), "label") == words


@pytest.mark.parametrize("stored", [*QUANTISED, ""])
def test_that_the_best_format_and_its_rungs_are_files_that_llama_cpp_loads(stored: str) -> None:
    model = small(**({"quantization_config": QUANTISED[stored]} if stored else {}))
    machine = devices.machine(devices.find("RTX 4090"), 1)
    plan = Deployment(runtime="llama.cpp", max_model_len=512)
    assert best_weight_format(model, plan, machine) == "BF16"
    assert rungs(model, "llama.cpp")[:3] == ("auto", "Q8_0", "Q6_K")
    offered = registry.get("llama.cpp").weight_formats(model)
    assert all(name == "auto" or name in MIXES for name in offered)


def test_that_the_plan_says_what_it_assumes_of_the_file() -> None:
    machine = devices.machine(devices.find("RTX 4090"), 1)
    plan = Deployment(runtime="llama.cpp", max_model_len=512)
    budget = registry.get("llama.cpp").plan(gpt_oss(), plan, machine)
    assert any("MXFP4_MOE" in note and "Q8_0" in note for note in budget.assumptions)
    fp8 = small(quantization_config=QUANTISED["fp8-block"])
    budget = registry.get("llama.cpp").plan(fp8, plan, machine)
    assert any("fp8-block" in note and "BF16 GGUF" in note for note in budget.assumptions)
