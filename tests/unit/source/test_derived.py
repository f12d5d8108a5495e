"""Quantised copies that are known by their names alone."""

from __future__ import annotations

import pytest

from engine.architecture.read import read
from engine.cancel import CancelToken
from engine.source import catalogue
from engine.source.derived import derived
from engine.source.hub import HubClient
from engine.source.resolve import resolve


@pytest.mark.parametrize(
    ("name", "base", "stored"),
    [
        ("Qwen/Qwen3-14B-AWQ", "Qwen/Qwen3-14B", "awq-int4"),
        ("Qwen/Qwen3-14B-FP8", "Qwen/Qwen3-14B", "fp8-block"),
        ("Qwen/Qwen3-1.7B-GPTQ-Int8", "Qwen/Qwen3-1.7B", "gptq-int8"),
        (
            "RedHatAI/Qwen2.5-7B-Instruct-fp8-dynamic",
            "Qwen/Qwen2.5-7B-Instruct",
            "fp8-channel-ct",
        ),
        ("redhatai/Qwen2.5-7B-Instruct-quantized.w8a8", "Qwen/Qwen2.5-7B-Instruct", "int8-ct"),
        ("unsloth/phi-4-unsloth-bnb-4bit", "microsoft/phi-4", "nf4"),
        ("mlx-community/Qwen3-4B-6bit", "Qwen/Qwen3-4B", "mlx-6bit"),
        ("GLM-4.7-NVFP4", "zai-org/GLM-4.7", "nvfp4"),
        (
            "kaitchup/Meta-Llama-3.1-8B-Instruct-autoround-gptq-4bit-sym",
            "meta-llama/Llama-3.1-8B-Instruct",
            "gptq-int4",
        ),
    ],
)
def test_that_a_name_says_the_model_and_its_storage(name: str, base: str, stored: str) -> None:
    found = derived(name)
    entry = catalogue.find(base)
    assert found is not None
    assert entry is not None
    assert found.id == name
    assert found.source == f"catalogue entry of {base}; stored as its name says, not checked"
    model = read(found)
    assert model.spec.weight_format == stored
    assert model.parameters == entry.parameters


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("google/gemma-4-12B", "google/gemma-4-12B-it"),
        ("Qwen/Qwen3-30B-A3B-Instruct", "Qwen/Qwen3-30B-A3B"),
        ("LiquidAI/LFM2.5-1.2B-Base", "LiquidAI/LFM2.5-1.2B-Instruct"),
        ("llama-3-8b", "meta-llama/Meta-Llama-3-8B-Instruct"),
    ],
)
def test_that_a_model_is_known_by_its_sibling(name: str, base: str) -> None:
    found = derived(name)
    entry = catalogue.find(base)
    assert found is not None
    assert entry is not None
    assert found.source == (
        f"catalogue entry of {base}; the same but for its training, by its name, not checked"
    )
    assert found.config == catalogue.raw(entry).config


@pytest.mark.parametrize(
    "name",
    [
        "someone/Qwen3-14B",  # others give their own models old names
        "someone/gemma-4-12B",
        "someone/Qwen3-14B-tuned-AWQ",  # another model
        "deepseek-ai/DeepSeek-R1-AWQ",  # its base is bundled in FP8: how it was unpacked is open
        "Qwen/Qwen3-14B-g128",  # says no method
        "AWQ",
        "",
        "/",
    ],
)
def test_that_other_names_are_left_alone(name: str) -> None:
    assert derived(name) is None


def test_that_it_stands_in_only_where_the_hub_is_out_of_reach() -> None:
    client = HubClient("http://127.0.0.1:1", timeout_s=2)
    found = resolve("Qwen/Qwen3-14B-AWQ", CancelToken(), client)
    assert found.source.startswith("catalogue entry of Qwen/Qwen3-14B")
    assert found.notes[-1].startswith("Sized by the bundled catalogue")
