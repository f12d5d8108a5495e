"""A way to run a command in this process and keep what it wrote."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

import resources
from engine.cli import main

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

# The published shape of Llama-3.1-8B, written by hand: 8,030,261,248 parameters.
LLAMA_8B = {
    "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336,
    "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
    "vocab_size": 128256, "max_position_embeddings": 131072, "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}  # fmt: skip
# Llama-3.1-70B: 70,553,706,496 parameters, 141.1 GB in BF16.
LLAMA_70B = LLAMA_8B | {
    "hidden_size": 8192, "intermediate_size": 28672, "num_hidden_layers": 80,
    "num_attention_heads": 64,
}  # fmt: skip


@dataclass(frozen=True)
class Ran:
    status: int
    output: str
    complaint: str

    @property
    def answer(self) -> dict[str, Any]:
        return json.loads(self.output)

    @property
    def answers(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.output.splitlines()]


@pytest.fixture
def plimsoll(capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    def run(*argv: object) -> Ran:
        status = main([str(argument) for argument in argv])
        output, complaint = capsys.readouterr()
        return Ran(status, output, complaint)

    return run


@pytest.fixture
def llama_8b(tmp_path: Path) -> Path:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(LLAMA_8B))
    return path


@pytest.fixture
def llama_70b(tmp_path: Path) -> Path:
    path = tmp_path / "70b" / "config.json"
    path.parent.mkdir()
    path.write_text(json.dumps(LLAMA_70B))
    return path


def published(name: str) -> dict[str, object]:
    return json.loads(resources.path("schema", f"{name}.schema.json").read_text("utf-8"))
