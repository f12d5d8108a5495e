"""Decoders that list heads or widths layer by layer, against published totals."""

from __future__ import annotations

from typing import Any

import pytest

from engine.architecture.read import specify
from engine.architecture.spec import Direction, Subject
from engine.errors import ConfigError


def divisible(width: float, divisor: int) -> int:
    """As the published configs were worked out from their multipliers."""
    rounded = max(divisor, int(width + divisor / 2) // divisor * divisor)
    return rounded + divisor if rounded < 0.9 * width else rounded


def between(low: float, high: float, count: int) -> list[float]:
    return [round(low + (high - low) * i / (count - 1), 2) for i in range(count)]


def openelm(model_dim: int, layers: int, head_dim: int) -> dict[str, Any]:
    widths = [divisible(model_dim * m, head_dim * 4) for m in between(0.5, 1.0, layers)]
    heads = [divisible(width // head_dim, 4) for width in widths]
    return {
        "model_type": "openelm", "architectures": ["OpenELMForCausalLM"], "model_dim": model_dim,
        "num_transformer_layers": layers, "head_dim": head_dim, "num_query_heads": heads,
        "num_kv_heads": [h // 4 for h in heads], "ffn_multipliers": between(0.5, 4.0, layers),
        "vocab_size": 32000, "ffn_with_glu": True, "share_input_output_layers": True,
        "normalize_qk_projections": True, "normalization_layer_name": "rms_norm",
        "ffn_dim_divisor": 256, "qkv_multipliers": [0.5, 1.0], "num_gqa_groups": 4,
        "max_context_length": 2048, "rope_max_length": 4096, "torch_dtype": "float32",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("shape", "published"),
    [
        ((1280, 16, 64), 271_527_168),
        ((1536, 20, 64), 457_179_136),
        ((2048, 28, 64), 1_079_891_456),
        ((3072, 36, 128), 3_036_647_424),
    ],
)
def test_that_openelm_has_its_published_total(shape: tuple[int, int, int], published: int) -> None:
    spec = specify(openelm(*shape))
    assert spec.parameters == published
    assert not spec.doubts
    assert spec.max_position_embeddings == 2048
    heads = [a.num_key_value_heads for a in spec.attentions]
    assert heads == openelm(*shape)["num_kv_heads"]


def test_that_a_list_of_another_length_is_named() -> None:
    with pytest.raises(ConfigError) as caught:
        specify(openelm(1280, 16, 64) | {"num_kv_heads": [3]})
    assert caught.value.field == "num_kv_heads"


def test_that_decilm_has_the_heads_of_each_layer() -> None:
    # DeciLM-7B: 32 layers with 67 key/value heads in all; 7,043,551,232 parameters as published.
    heads = [4] * 11 + [2] * 2 + [1] * 19
    spec = specify({
        "model_type": "deci", "hidden_size": 4096, "intermediate_size": 14336,
        "num_hidden_layers": 32, "num_attention_heads": 32, "vocab_size": 32000,
        "num_key_value_heads_per_layer": heads, "torch_dtype": "bfloat16",
    })  # fmt: skip
    assert spec.parameters == 7_043_551_232
    assert [a.num_key_value_heads for a in spec.attentions] == heads
    assert not spec.doubts


def test_that_layers_of_their_own_in_another_class_are_a_doubt() -> None:
    spec = specify({
        "model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "vocab_size": 128,
        "num_hidden_layers": 2, "num_attention_heads": 4, "torch_dtype": "bfloat16",
        "per_layer_config": {"1": {"num_key_value_heads": 1}},
    })  # fmt: skip
    for subject in (Subject.WEIGHTS, Subject.SEQUENCE_STATE):
        assert spec.direction(subject) is Direction.EITHER
