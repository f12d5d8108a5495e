"""Architectures that nobody has seen: real ones under a name that no rule knows.

Source:
    ``configs/tiny_cache.jsonl`` beside the checkout: the written-out config of every type, and
    the bytes of the cache that transformers returned.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from engine.architecture.read import read, specify
from engine.architecture.spec import Direction, Subject
from engine.budget.sequence_state import architecture_bytes
from engine.errors import UnknownArchitectureError
from engine.source.raw import HeaderTensor, RawModel

ROWS = Path(__file__).resolve().parents[2].parent / "shared" / "configs" / "tiny_cache.jsonl"
pytestmark = pytest.mark.skipif(
    not ROWS.is_file(), reason="the measured caches are not beside this checkout"
)
# Their wide layers take a head width that the written config leaves out.
NOT_WRITTEN_OUT = ("gemma4", "diffusion_gemma")


@cache
def unheard_of() -> list[tuple[dict[str, Any], dict[str, Any]]]:
    lines = ROWS.read_text(encoding="utf-8").splitlines()
    found = [row for line in lines if (row := json.loads(line))["status"] == "ok"]
    return [
        (row, row["config"] | {"model_type": "unheard_of"})
        for row in found
        if not row["model_type"].startswith(NOT_WRITTEN_OUT)
    ]


def test_that_an_upper_bound_of_the_state_is_one() -> None:
    bounded = 0
    for row, config in unheard_of():
        try:
            spec = specify(config)
        except UnknownArchitectureError as error:
            assert "is not a known architecture" in error.message  # noqa: PT017
            continue
        assert spec.direction(Subject.WEIGHTS) is not None, row["model_type"]
        side = spec.direction(Subject.SEQUENCE_STATE)
        assert side is not None or spec.model_type != "unheard_of", row["model_type"]
        if side is Direction.UPPER:
            bounded += 1
            width = 2 if row["dtype"] == "bfloat16" else 4
            for tokens in (40, 41):
                measured = row["runs"][str(tokens)]["total_bytes"] * 2 // width
                # A window holds what is in flight beside it, where the architecture needs less.
                assert architecture_bytes(spec, "bf16", tokens) >= measured, row["model_type"]
    assert bounded > 150


def test_that_a_header_makes_the_weights_exact() -> None:
    # By hand: two layers of four 64 x 64 matrices, a table of 128 words and its norm.
    config = {
        "model_type": "unheard_of", "hidden_size": 64, "num_hidden_layers": 2, "vocab_size": 128,
        "num_attention_heads": 4, "intermediate_size": 64, "mystery_width": 17,
        "torch_dtype": "bfloat16",
    }  # fmt: skip
    names = [f"model.layers.{i}.odd.{n}.weight" for i in range(2) for n in "abcd"]
    tensors = [HeaderTensor(name, "BF16", (64, 64), 8192) for name in names]
    tensors.append(HeaderTensor("model.embed_tokens.weight", "BF16", (128, 64), 16384))
    tensors.append(HeaderTensor("model.norm.weight", "BF16", (64,), 128))
    model = read(RawModel("x", "test", config=config, tensors=tuple(tensors)))
    assert model.stored is not None
    assert model.stored.size_bytes == 8 * 8192 + 16384 + 128
    assert model.spec.direction(Subject.WEIGHTS) is None
    assert model.parameters == 8 * 4096 + 8192 + 64
    assert model.spec.direction(Subject.SEQUENCE_STATE) is not None
