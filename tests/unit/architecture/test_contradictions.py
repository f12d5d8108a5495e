"""Configs that contradict themselves: read as transformers 5.24.0 does (its counts on the meta
device), or refused where no model could run.
"""

from __future__ import annotations

from typing import Any

import pytest

from engine.architecture.read import specify
from engine.architecture.spec import Direction, Subject
from engine.errors import ConfigError

ZAMBA2: dict[str, Any] = {
    "model_type": "zamba2", "architectures": ["Zamba2ForCausalLM"], "vocab_size": 128,
    "hidden_size": 64, "intermediate_size": 128, "num_attention_heads": 4,
    "num_key_value_heads": 2, "mamba_d_state": 8, "mamba_expand": 2, "mamba_ngroups": 2,
    "n_mamba_heads": 4, "layers_block_type": ["linear_attention", "hybrid"],
    "num_hidden_layers": 2,
}  # fmt: skip
DOTS1: dict[str, Any] = {
    "model_type": "dots1", "vocab_size": 64, "hidden_size": 64, "intermediate_size": 384,
    "moe_intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "n_shared_experts": 3, "num_experts_per_tok": 2,
    "first_k_dense_replace": 1,
}  # fmt: skip
GEMMA4: dict[str, Any] = {
    "model_type": "gemma4_text", "vocab_size": 128, "hidden_size": 64, "intermediate_size": 128,
    "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
    "layer_types": ["sliding_attention", "full_attention", "full_attention"],
}  # fmt: skip
SMALL: dict[str, Any] = {
    "vocab_size": 128, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2,
}  # fmt: skip


@pytest.mark.parametrize(
    ("sites", "tied", "wanted"),
    [([], False, 142_040), ([1, 1, 1], False, 264_920), ([1, 1, 1], True, 256_728)],
)
def test_that_a_block_has_adapters_for_the_sites_that_the_config_lists(
    sites: list[int],
    tied: bool,
    wanted: int,
) -> None:
    spec = specify(ZAMBA2 | {"hybrid_layer_ids": sites, "tie_word_embeddings": tied})
    assert spec.parameters == wanted
    assert spec.direction(Subject.WEIGHTS) is None


def test_that_a_sparse_layer_without_experts_is_refused() -> None:
    with pytest.raises(ConfigError, match="n_routed_experts is 0"):
        specify(DOTS1 | {"n_routed_experts": 0})
    # Where all layers are dense, no layer chooses.
    dense = specify(DOTS1 | {"n_routed_experts": 0, "first_k_dense_replace": 2})
    assert all(layer.moe is None for layer in dense.layers)


@pytest.mark.parametrize("shared", [2, 4])
def test_that_layers_can_only_read_what_an_earlier_one_of_their_kind_keeps(shared: int) -> None:
    with pytest.raises(ConfigError, match="num_kv_shared_layers"):
        specify(GEMMA4 | {"num_kv_shared_layers": shared})
    assert specify(GEMMA4 | {"num_kv_shared_layers": 1}).parameters > 0


@pytest.mark.parametrize(
    ("model_type", "stated"),
    [
        ("qwen2_vl_text", {"head_dim": 24}),
        ("glm4v_text", {"head_dim": 24}),
        ("olmoe", {"num_experts": 4, "num_experts_per_tok": 2, "kv_channels": 24}),
        ("llama", {"kv_channels": 24}),
        ("llama", {"d_head": 24, "n_layer": 7, "ffn_dim": 5}),
        ("minicpm3", {"n_routed_experts": 8}),
        ("youtu", {"n_routed_experts": 8}),
    ],
)
def test_that_a_class_ignores_what_it_has_no_field_for(
    model_type: str, stated: dict[str, Any]
) -> None:
    foreign = {"head_dim", "kv_channels", "d_head", "n_layer", "ffn_dim", "n_routed_experts"}
    base = SMALL | {"model_type": model_type}
    kept = {key: value for key, value in stated.items() if key not in foreign}
    assert specify(base | stated).parameters == specify(base | kept).parameters


def test_that_norms_of_one_width_take_no_heads_of_another() -> None:
    config = SMALL | {"model_type": "olmoe", "num_experts": 4, "num_experts_per_tok": 2}
    assert specify(config | {"head_dim": 16}).parameters == specify(config).parameters
    with pytest.raises(ConfigError, match="head_dim is 24"):
        specify(config | {"head_dim": 24})


def test_that_dbrx_has_one_width() -> None:
    with pytest.raises(ConfigError, match="hidden_size is 128; d_model"):
        specify({"model_type": "dbrx", "hidden_size": 128})


def test_that_bloom_is_read_by_its_old_width() -> None:
    # By hand, with 14,336 wide: 70 layers of 12 h^2 + 13 h, 250,880 words, two norms of 2 h.
    wide = 14_336
    by_hand = 70 * (12 * wide**2 + 13 * wide) + 250_880 * wide + 4 * wide
    config = {"model_type": "bloom", "n_layer": 70, "n_embed": wide, "num_attention_heads": 112}
    spec = specify(config | {"vocab_size": 250_880})
    assert spec.parameters == by_hand == 176_247_271_424
    assert spec.direction(Subject.WEIGHTS) is None


@pytest.mark.parametrize(
    "config",
    [
        {"model_type": "granitemoehybrid", "layer_types": ["mamba3", "attention"]},
        {"model_type": "deepseek_v32", "layer_types": ["mamba3", "indexed_attention"]},
        {"model_type": "llama", "layer_types": ["mamba3", "full_attention"]},
        {"model_type": "blt", "encoder_config": {"layer_types": ["mamba3"]}},
    ],
)
def test_that_layers_of_a_kind_that_nobody_has_are_in_doubt(config: dict[str, Any]) -> None:
    spec = specify({"num_hidden_layers": 2, **config})
    assert spec.direction(Subject.WEIGHTS) is not None
    assert spec.direction(Subject.SEQUENCE_STATE) in (Direction.EITHER, Direction.LOWER)


def test_that_kosmos_2_5_has_no_cross_attention() -> None:
    plain = specify({"model_type": "kosmos-2.5"})
    asked = specify({"model_type": "kosmos-2.5", "text_config": {"add_cross_attention": True}})
    assert asked.parameters == plain.parameters
    assert asked.direction(Subject.WEIGHTS) is None


def test_that_an_unknown_root_may_fill_in_what_its_text_part_leaves_out() -> None:
    # VoxtralConfig of transformers 5.24.0 gives its Llama heads of 128: eight times these.
    text = SMALL | {"model_type": "llama"}
    root = {"model_type": "of_tomorrow", "text_config": text, "audio_config": {"hidden_size": 8}}
    assert specify(root).direction(Subject.SEQUENCE_STATE) is Direction.EITHER
    stated = specify(root | {"text_config": text | {"head_dim": 16}})
    assert stated.direction(Subject.SEQUENCE_STATE) is None
    known = specify({"model_type": "voxtral", "text_config": text})
    assert {spec.head_dim for spec in known.attentions} == {128}
