"""Mixes against the files that the measured runs loaded: bytes of every ggml type."""

from __future__ import annotations

import json
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from engine.architecture.read import read
from engine.runtimes.llama_cpp import from_spec
from engine.source.raw import RawModel

_SHARED = Path(__file__).resolve().parents[2].parent / "shared"
_RECORDS = _SHARED / "truth" / "llama.cpp" / "records.jsonl"
_CONFIGS = _SHARED / "configs"

pytestmark = pytest.mark.skipif(
    not (_RECORDS.exists() and _CONFIGS.exists()),
    reason="needs the measured records and the configs beside the checkout",
)

_SAME_SHAPE = {
    "meta-llama/Llama-3.1-8B": "meta-llama/Meta-Llama-3.1-8B",
    "meta-llama/Llama-3.1-70B": "meta-llama/Meta-Llama-3.1-70B",
    "meta-llama/Llama-3.2-1B": "meta-llama/Llama-3.2-1B-Instruct",
    "google/gemma-3-27b-pt": "google/gemma-3-27b-it",
    "Qwen/Qwen3-Next-80B-A3B-Instruct": "Qwen/Qwen3-Next-80B-A3B-Instruct",
}
_NOT_IN_FILE = {
    # The corpus's shape has a vocabulary of 32,768, the published config one of 32,000.
    "mistralai/Mixtral-8x22B-v0.1",
}
_SMALL_VECTORS_BYTES = 64 * 1024
"""Rotary factors (256 B) and expert correction biases (58 layers × 256 × 4 B)."""


@cache
def _configs() -> dict[str, Path]:
    found: dict[str, Path] = {}
    with (_CONFIGS / "index.jsonl").open(encoding="utf-8") as lines:
        for line in lines:
            entry: dict[str, Any] = json.loads(line)
            found[entry["id"]] = _CONFIGS / "configs" / Path(entry["file"]).name
    return found


@cache
def _files() -> dict[tuple[str, str], dict[str, int]]:
    """(Hub id, mix) -> bytes per ggml type, from every measured run."""
    found: dict[tuple[str, str], dict[str, int]] = {}
    with _RECORDS.open(encoding="utf-8") as lines:
        for line in lines:
            record: dict[str, Any] = json.loads(line)
            found[record["hf_id"], record["file_type"]] = record["type_bytes"]
    return found


def test_that_published_configs_give_the_bytes_of_every_type_in_every_mix() -> None:
    checked = 0
    for (hub_id, mix), wanted in _files().items():
        path = _configs().get(_SAME_SHAPE.get(hub_id, hub_id))
        if path is None or hub_id in _NOT_IN_FILE:
            continue
        model = read(RawModel(hub_id, "", config=json.loads(path.read_text(encoding="utf-8"))))
        got = Counter(from_spec.shape_of(model, mix).weights.type_bytes)
        off = {t: got[t] - wanted.get(t, 0) for t in {*got, *wanted}}
        assert abs(off.pop("F32")) <= _SMALL_VECTORS_BYTES, (hub_id, mix)
        assert not any(off.values()), (hub_id, mix, off)
        checked += 1
    assert checked > 100
