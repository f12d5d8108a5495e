"""What published checkpoints leave unquantised, by the totals that the Hub states for them.

The Hub counts elements: a scale is one more than the model has, two packed values are one less.
So the difference from the model's own parameters says how much is quantised, and how.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from engine.architecture.read import specify
from engine.architecture.spec import Direction, Subject
from engine.formats.weights import is_quantised, tensor_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.architecture.spec import ArchitectureSpec, Tensor

_CONFIGS = Path(__file__).resolve().parents[2].parent / "shared" / "configs"

pytestmark = pytest.mark.skipif(
    not _CONFIGS.exists(), reason="needs the published configs beside the checkout"
)

_SCALE_BYTES = {"fp8-block": 4, "fp8-channel": 4, "fp8-channel-ct": 2, "fp8-static": 4}


def _entry(model_id: str) -> dict[str, Any]:
    with (_CONFIGS / "index.jsonl").open(encoding="utf-8") as lines:
        found = (json.loads(line) for line in lines)
        return next(entry for entry in found if entry["id"] == model_id)


def _spec(entry: dict[str, Any]) -> ArchitectureSpec:
    path = _CONFIGS / "configs" / Path(entry["file"]).name
    return specify(json.loads(path.read_text(encoding="utf-8")))


def _packed(spec: ArchitectureSpec) -> Iterator[tuple[Tensor, str, int]]:
    """Quantised tensors, their format and how often they occur."""
    tensors = [(tensor, 1) for tensor in spec.outer]
    tensors += [(tensor, n) for layer, n in spec.layer_groups() for tensor in layer.tensors]
    for tensor, count in tensors:
        name = tensor.stored_as or spec.weight_format
        if is_quantised(tensor, name, spec.unquantised, is_named=bool(tensor.stored_as)):
            yield tensor, name, count


def _scales(spec: ArchitectureSpec) -> int:
    found = 0
    for tensor, name, count in _packed(spec):
        size = tensor_bytes(tensor, name, spec.dtype, is_named=True)
        found += (size - tensor.parameters) // _SCALE_BYTES[name] * count
    return found


@pytest.mark.parametrize(
    ("model_id", "buffers"),
    [
        ("Qwen/Qwen3-8B-FP8", 0),
        ("Qwen/Qwen3-32B-FP8", 0),
        ("Qwen/Qwen3-30B-A3B-FP8", 0),
        ("Qwen/Qwen3-235B-A22B-FP8", 0),
        # 62 layers x 256 biases of the router.
        ("MiniMaxAI/MiniMax-M2.5", 15_872),
        ("ibm-granite/granite-3.3-8b-instruct-FP8", 0),
        ("RedHatAI/Llama-4-Scout-17B-16E-Instruct-FP8-dynamic", 0),
        ("mistralai/Devstral-Small-2-24B-Instruct-2512", 0),
    ],
)
def test_that_fp8_checkpoints_have_the_scales_that_are_published(
    model_id: str, buffers: int
) -> None:
    entry = _entry(model_id)
    spec = _spec(entry)
    assert not any(doubt.subject is Subject.WEIGHTS for doubt in spec.doubts)
    assert entry["safetensors_total"] == spec.parameters + _scales(spec) + buffers


@pytest.mark.parametrize(
    ("model_id", "buffers"),
    [
        ("nvidia/GLM-5.1-NVFP4", 0),
        ("nvidia/Gemma-4-26B-A4B-NVFP4", 0),
        ("nvidia/Gemma-4-31B-IT-NVFP4", 0),
        ("nvidia/MiniMax-M2.5-NVFP4", 0),
        ("nvidia/MiniMax-M2.7-NVFP4", 0),
        # 57 layers x 128 biases of the router.
        ("nvidia/MiniMax-M3-NVFP4", 7_296),
        ("nvidia/Qwen3.5-122B-A10B-NVFP4", 0),
        # Their output heads are packed too.
        ("nvidia/Qwen3.6-27B-NVFP4", 0),
        ("nvidia/Qwen3.6-35B-A3B-NVFP4", 0),
    ],
)
def test_that_nvfp4_checkpoints_pack_as_much_as_is_published(model_id: str, buffers: int) -> None:
    entry = _entry(model_id)
    spec = _spec(entry)
    packed = sum(t.parameters * n for t, name, n in _packed(spec) if name.startswith("nvfp4"))
    assert entry["safetensors_total"] == spec.parameters - packed // 2 + buffers


@pytest.mark.parametrize(
    ("model_id", "direction"),
    [
        # Attention and shared experts are left alone, which the config does not say.
        ("meta-llama/Llama-4-Maverick-17B-128E-Instruct-FP8", Direction.EITHER),
        # Attention is left alone in every layer; the config lists the first.
        ("meta-llama/Llama-3.1-405B-Instruct-FP8", Direction.LOWER),
    ],
)
def test_that_a_config_that_does_not_say_what_is_left_alone_is_doubted(
    model_id: str, direction: Direction
) -> None:
    entry = _entry(model_id)
    spec = _spec(entry)
    assert entry["safetensors_total"] < spec.parameters + _scales(spec)
    assert spec.direction(Subject.WEIGHTS) is direction
