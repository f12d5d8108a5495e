"""The measured records, as ``packaging/data/build_records.py`` wrote them down."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

RECORDS = Path(__file__).resolve().parents[1] / "records"
NAMES = (
    "vllm",
    "vllm_h100",
    "sglang",
    "llama_cpp_devices",
    "ollama",
    "ik_llama_cpp",
    "transformers",
    "mlx",
    "others",
)


@dataclass(frozen=True, slots=True)
class Record:
    """What was asked of a runtime, and what it reported."""

    id: str
    source: str
    """Page or file that states the figures."""
    runtime: str
    version: str
    """As the source has it; empty where it says nothing."""
    model: str
    """As the source has it."""
    request: dict[str, Any]
    """In the keys of the machine contract."""
    printed: dict[str, Any]
    """Figure -> [bytes or count, half a unit of its last printed digit, …]."""
    left_out: dict[str, str]
    """Figure, or ``*`` for all -> why it is not scored."""
    facts: dict[str, Any] = field(default_factory=dict)
    """What else the source says and a figure needs."""


@cache
def records() -> tuple[Record, ...]:
    """Every record of a log or a table."""
    return tuple(Record(**one) for name in NAMES for one in _lines(name))


@cache
def runs() -> tuple[dict[str, Any], ...]:
    """llama.cpp's own measured allocations."""
    return tuple(_lines("llama_cpp_runs"))


@cache
def shapes() -> dict[tuple[str, str], dict[str, Any]]:
    """(model, file type) -> metadata and tensors of the file that the runs were made with."""
    return {(one["model"], one["file_type"]): one for one in _lines("llama_cpp_shapes")}


def _lines(name: str) -> list[dict[str, Any]]:
    text = (RECORDS / f"{name}.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]
