"""Mixtures of experts and latent attention: one hand calculation for each kind of rule.

The sizes are small enough to multiply out: hidden 64, 4 heads, 100 words. What a class builds
and keeps is read off its modelling file in transformers 5.24.0.
"""

from __future__ import annotations

from typing import Any

import pytest

from engine.architecture.read import specify
from engine.architecture.spec import ArchitectureSpec, AttentionKind, ModuleClass, Subject
from engine.errors import ConfigError
from engine.runtimes.transformers.cache import layer_bytes

SMALL: dict[str, Any] = {
    "hidden_size": 64, "vocab_size": 100, "num_attention_heads": 4, "num_key_value_heads": 2,
    "head_dim": 16, "intermediate_size": 128, "moe_intermediate_size": 32, "num_hidden_layers": 2,
    "num_experts_per_tok": 2,
}  # fmt: skip
LATENT: dict[str, Any] = {
    **SMALL, "num_key_value_heads": 4, "q_lora_rank": 32, "kv_lora_rank": 16,
    "qk_nope_head_dim": 16, "qk_rope_head_dim": 8, "v_head_dim": 16, "n_routed_experts": 4,
    "n_shared_experts": 1, "index_n_heads": 2, "index_head_dim": 16,
}  # fmt: skip
LATENT_ATTENTION = 32 * 64 + 4 * 24 * 32 + 24 * 64 + 4 * 32 * 16 + 64 * 64
"""Query down and up, the vector that is kept, keys and values from it, output."""
INDEXER = 2 * 16 * 32 + 16 * 64 + 2 * 64
"""Its query from the query's own vector, its key, its weights; without the key's norm."""


def made(model_type: str, config: dict[str, Any]) -> ArchitectureSpec:
    spec = specify({"model_type": model_type, **config})
    assert not spec.doubts, spec.doubts
    return spec


def without(config: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in config.items() if key not in keys}


def attention_parameters(spec: ArchitectureSpec, layer: int) -> int:
    return sum(
        tensor.parameters
        for tensor in spec.layers[layer].tensors
        if tensor.module is ModuleClass.ATTENTION
    )


def kept(spec: ArchitectureSpec, tokens: int) -> list[int]:
    return [layer_bytes(layer, tokens, "bfloat16") for layer in spec.layers]


def is_sparse(spec: ArchitectureSpec) -> list[bool]:
    return [layer.moe is not None for layer in spec.layers]


def test_that_mimo_doubles_the_key_heads_of_sliding_layers() -> None:
    config = {**SMALL, "v_head_dim": 8, "n_routed_experts": 4, "sliding_window": 11}
    spec = made("mimo_v2_flash", config)
    # Full, then sliding: keys and values of 16 + 8 elements, of 2 heads and of 4; a sink a head.
    assert attention_parameters(spec, 0) == 64 * (4 * 16 + 2 * 24 + 4 * 8)
    assert attention_parameters(spec, 1) == 64 * (4 * 16 + 4 * 24 + 4 * 8) + 4
    assert kept(spec, 100) == [100 * 2 * 24 * 2, 10 * 4 * 24 * 2]
    with pytest.raises(ConfigError, match="sliding layers have 8"):
        made("mimo_v2_flash", {**config, "num_key_value_heads": 4})


def test_that_the_window_of_mimo_as_published_leaves_out_the_token_that_looks_back() -> None:
    config = {**SMALL, "v_head_dim": 8, "n_routed_experts": 4}
    spec = made("mimo_v2_flash", {**config, "sliding_window": 10, "sliding_window_size": 10})
    assert [a.window for a in spec.attentions] == [0, 11]


@pytest.mark.parametrize(
    ("model_type", "dense"),
    [("glm4_moe_lite", 1), ("axk1", 1), ("deepseek_v2", 0), ("glm5_next_text", 3)],
)
def test_that_as_many_layers_are_dense_as_the_class_says(model_type: str, dense: int) -> None:
    index = () if model_type == "glm5_next_text" else ("index_n_heads", "index_head_dim")
    spec = made(model_type, without({**LATENT, "num_hidden_layers": 4}, *index))
    assert is_sparse(spec) == [False] * dense + [True] * (4 - dense)


def test_that_experts_no_layer_has_leave_no_doubt() -> None:
    spec = made("afmoe", {**SMALL, "num_experts": 4, "num_dense_layers": 2})
    assert ModuleClass.EXPERTS not in spec.parameters_by_class()


def test_that_cohere_gives_its_dense_layers_a_pattern_and_a_width_of_their_own() -> None:
    small = without(SMALL, "moe_intermediate_size")
    config = {**small, "num_hidden_layers": 6, "num_experts": 4, "first_k_dense_replace": 2}
    spec = made("cohere2_moe", {**config, "prefix_dense_intermediate_size": 16})
    kinds = [a.kind for a in spec.attentions]
    full, slides = AttentionKind.FULL, AttentionKind.SLIDING
    assert kinds == [full, full, slides, slides, slides, full]
    assert spec.parameters_by_class()[ModuleClass.MLP] == 2 * 3 * 16 * 64
    assert spec.parameters_by_class()[ModuleClass.EXPERTS] == 4 * 4 * 3 * 128 * 64


def test_that_the_qwen_mixtures_slide_each_in_its_own_way() -> None:
    config = {
        **SMALL, "num_hidden_layers": 4, "use_sliding_window": True, "sliding_window": 8,
        "max_window_layers": 3, "num_experts": 4,
    }  # fmt: skip
    shared = {"shared_expert_intermediate_size": 32}
    windows = [a.window for a in made("qwen3_moe", config).attentions]
    assert windows == [8, 8, 8, 8]
    assert [a.window for a in made("qwen2_moe", config | shared).attentions] == [8, 0, 8, 0]


def test_that_gates_are_of_the_width_that_the_config_says() -> None:
    config = {**SMALL, "num_experts": 4, "shared_expert_intermediate_size": 32}
    heads = {"num_attention_heads_per_layer": [4, 8]}
    plain = [64 * 16 * (2 * count + 2 * 2) for count in (4, 8)]
    by_head = made("laguna", config | heads)
    by_element = made("laguna", config | heads | {"gating": "per-element"})
    for layer, count in enumerate((4, 8)):
        assert attention_parameters(by_head, layer) == plain[layer] + 64 * count
        assert attention_parameters(by_element, layer) == plain[layer] + 64 * count * 16


def test_that_longcat_keeps_two_vectors_a_layer() -> None:
    config = {
        **LATENT, "num_layers": 2, "ffn_hidden_size": 128, "expert_ffn_hidden_size": 32,
        "moe_topk": 2, "zero_expert_num": 0,
    }  # fmt: skip
    config = without(config, "num_hidden_layers")
    spec = specify({"model_type": "longcat_flash", **config})
    assert kept(spec, 10) == [2 * 10 * (16 + 8) * 2] * 2
    assert attention_parameters(spec, 0) == 2 * LATENT_ATTENTION
    idle = specify({"model_type": "longcat_flash", **config, "zero_expert_num": 2})
    assert idle.parameters - spec.parameters == 2 * 2 * (2 * 32 * 64 + 64)
    assert idle.direction(Subject.WEIGHTS) is not None


def test_that_mistral_large_4_keeps_keys_an_index_or_nothing() -> None:
    config = {
        **LATENT, "num_hidden_layers": 4, "kv_source_layers": [0, 0, 0, 3],
        "indexer_types": ["full", "full", "shared", "full"], "no_rope_layers": [1, 1, 1, 0],
    }  # fmt: skip
    spec = made("mistral_large4_text", without(config, "q_lora_rank"))
    # Keys with the rotated part and an index; an index alone; nothing; keys and an index.
    assert kept(spec, 10) == [10 * (24 + 16) * 2, 10 * 16 * 2, 0, 10 * (16 + 16) * 2]


def test_that_dots_3_has_other_sizes_where_it_slides_and_keeps_its_index_in_32_bits() -> None:
    own = {
        "swa_num_attention_heads": 2, "swa_q_lora_rank": 8, "swa_kv_lora_rank": 24,
        "swa_head_dim": 20, "swa_qk_nope_head_dim": 12, "swa_v_head_dim": 4,
    }  # fmt: skip
    kinds = {"layer_types": ["full_attention", "sliding_attention"], "sliding_window": 5}
    spec = made("dots3_note_text", LATENT | own | kinds)
    assert kept(spec, 10) == [10 * (24 * 2 + 16 * 4), 4 * (24 + 8) * 2]
    gate = 4 * 64
    assert attention_parameters(spec, 0) == LATENT_ATTENTION + gate + INDEXER
    slides = 8 * 64 + 2 * 20 * 8 + 32 * 64 + 2 * 16 * 24 + 64 * 8
    assert attention_parameters(spec, 1) == slides + 2 * 64


def test_that_the_index_of_pools_keeps_a_gate_and_a_mark_beside_its_key() -> None:
    types = {"layer_types": ["full_attention", "full_attention"], "qk_rope_head_dim": 0}
    shared = {"indexer_types": ["full", "shared"], "index_kpool": 4, "hc_mult": 2}
    spec = made("glm5_next_text", LATENT | types | shared)
    assert kept(spec, 10) == [10 * (16 + 33) * 2, 10 * 16 * 2]


def test_that_ax_k2_gates_its_norms_and_its_output() -> None:
    spec = made("axk2", {**LATENT, "gated_norm_rank": 4})
    # One matrix for query and gate, from a vector of twice the rank, in place of the query's.
    gated = LATENT_ATTENTION - 4 * 24 * 32 + 4 * (24 + 16) * 64
    assert attention_parameters(spec, 0) == gated + INDEXER
    norms = [sum(t.parameters for t in x.tensors if "layernorm.mlp" in t.name) for x in spec.layers]
    assert norms == [2 * 4 * 64, 2 * 2 * 4 * 64]


def test_that_jetmoe_has_a_head_for_each_expert_of_a_token() -> None:
    small = without(SMALL, "num_attention_heads", "moe_intermediate_size", "head_dim")
    config = {**small, "kv_channels": 16, "num_local_experts": 4}
    spec = made("jetmoe", config)
    assert [a.num_attention_heads for a in spec.attentions] == [4, 4]
    assert kept(spec, 10) == [10 * 2 * 2 * 16 * 2] * 2
    experts = 4 * 2 * 32 * 64 + 64 + 4 * 3 * 128 * 64 + 64
    assert spec.parameters_by_class()[ModuleClass.EXPERTS] == 2 * experts


def test_that_zaya_keeps_a_delayed_value_and_two_convolutions() -> None:
    config = {**SMALL, "num_experts": 4, "num_experts_per_tok": 1, "cca_time0": 3, "cca_time1": 2}
    spec = made("zaya", config)
    # 4 query and 2 key heads convolved over 3 tokens before; half of two values of 16.
    assert kept(spec, 10) == [10 * 2 * 2 * 16 * 2 + 96 * 3 * 2 + 16 * 2] * 2


def test_that_ernie_has_experts_for_text_and_for_images() -> None:
    config = {**SMALL, "moe_num_experts": 4, "moe_k": 2, "moe_intermediate_size": [32, 8]}
    spec = made("ernie4_5_vl_moe_text", config)
    assert spec.parameters_by_class()[ModuleClass.EXPERTS] == 4 * 3 * 64 * (32 + 8)
    assert spec.parameters_by_class()[ModuleClass.SHARED_EXPERTS] == 3 * 64 * 2 * 32


def test_that_dbrx_is_read_from_its_parts() -> None:
    config = {
        "d_model": 64, "n_heads": 4, "n_layers": 2, "vocab_size": 100,
        "attn_config": {"kv_n_heads": 2},
        "ffn_config": {"ffn_hidden_size": 128, "moe_num_experts": 4, "moe_top_k": 2},
    }  # fmt: skip
    spec = made("dbrx", config)
    layer = 64 * (64 + 2 * 32) + 64 * 64 + 2 * 64 + 4 * 64 + 4 * 3 * 128 * 64
    assert spec.parameters == 2 * layer + 2 * 100 * 64 + 64


def test_that_a_list_by_the_layer_is_read_where_it_says_one_number() -> None:
    config = {**SMALL, "num_experts": 4, "moe_topk": [2, 2], "moe_intermediate_size": [32, 32]}
    config = without(config, "num_experts_per_tok")
    spec = made("hunyuan_v1_moe", config)
    assert spec.parameters_by_class()[ModuleClass.EXPERTS] == 2 * 4 * 3 * 32 * 64
    uneven = specify({"model_type": "hunyuan_v1_moe", **config, "moe_intermediate_size": [32, 8]})
    assert uneven.direction(Subject.WEIGHTS) is not None


PUBLISHED: list[tuple[int, dict[str, Any]]] = [
    (
        131_596_523_520,
        {
            "model_type": "dbrx",
            "d_model": 6144,
            "n_heads": 48,
            "n_layers": 40,
            "vocab_size": 100_352,
            "attn_config": {"kv_n_heads": 8, "clip_qkv": 8},
            "ffn_config": {"ffn_hidden_size": 10_752, "moe_num_experts": 16, "moe_top_k": 4},
        },
    ),
    (
        16_255_643_392,
        {
            "model_type": "bailing_moe",
            "num_hidden_layers": 20,
            "hidden_size": 2048,
            "intermediate_size": 5120,
            "moe_intermediate_size": 512,
            "num_experts": 256,
            "num_experts_per_tok": 8,
            "num_shared_experts": 1,
            "first_k_dense_replace": 1,
            "head_dim": 128,
            "num_attention_heads": 16,
            "num_key_value_heads": 4,
            "vocab_size": 157_184,
            "use_qk_norm": True,
            "moe_router_enable_expert_bias": True,
            "tie_word_embeddings": False,
        },
    ),
    (
        16_375_728_128,
        {
            "model_type": "deepseek",
            "num_hidden_layers": 28,
            "hidden_size": 2048,
            "intermediate_size": 10_944,
            "moe_intermediate_size": 1408,
            "n_routed_experts": 64,
            "num_experts_per_tok": 6,
            "n_shared_experts": 2,
            "first_k_dense_replace": 1,
            "moe_layer_freq": 1,
            "num_attention_heads": 16,
            "num_key_value_heads": 16,
            "vocab_size": 102_400,
            "tie_word_embeddings": False,
        },
    ),
    (
        478_584_608_768,
        {
            "model_type": "arctic",
            "num_hidden_layers": 35,
            "hidden_size": 7168,
            "intermediate_size": 4864,
            "num_local_experts": 128,
            "num_experts_per_tok": 2,
            "moe_layer_frequency": 1,
            "parallel_attn_mlp_res": True,
            "num_attention_heads": 56,
            "num_key_value_heads": 8,
            "vocab_size": 32_000,
            "tie_word_embeddings": False,
        },
    ),
    (
        80_393_183_232,
        {
            "model_type": "hunyuan_v1_moe",
            "num_hidden_layers": 32,
            "hidden_size": 4096,
            "intermediate_size": 3072,
            "moe_intermediate_size": [3072] * 32,
            "num_experts": 64,
            "moe_topk": [8] * 32,
            "num_shared_expert": [1] * 32,
            "head_dim": 128,
            "num_attention_heads": 32,
            "num_key_value_heads": 8,
            "vocab_size": 128_167,
            "tie_word_embeddings": True,
        },
    ),
]
"""Totals that the Hub publishes, with the sizes of the same repository's config: DBRX,
Ling-mini-2.0, DeepSeek-MoE-16B, Arctic and Hunyuan-A13B."""


@pytest.mark.parametrize(("total", "config"), PUBLISHED, ids=lambda x: str(x)[:20])
def test_that_a_published_mixture_has_its_published_total(
    total: int, config: dict[str, Any]
) -> None:
    spec = specify(config)
    assert spec.parameters == total
    assert not spec.doubts
