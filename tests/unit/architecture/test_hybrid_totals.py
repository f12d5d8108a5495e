"""Hybrids and recurrent models against the totals that the Hub publishes of them.

The dimensions are those of the published configs; where a total counts more than the model has,
the case says what.
"""

from __future__ import annotations

from typing import Any

import pytest

from engine.architecture.read import specify
from engine.architecture.spec import Subject

KIMI_FULL = [4, 8, 12, 16, 20, 24, 27]
K3_FULL = [*range(4, 93, 4), 93]
BIASES = 26 * 256
"""Values by which Kimi Linear's checkpoint corrects its router: buffers, not parameters."""


def delta(heads: int, full: list[int], layers: int) -> dict[str, Any]:
    return {
        "full_attn_layers": full, "head_dim": 128, "num_heads": heads,
        "kda_layers": [i for i in range(1, layers + 1) if i not in full],
        "short_conv_kernel_size": 4,
    }  # fmt: skip


GRANITE: dict[str, Any] = {
    "model_type": "granitemoehybrid", "num_hidden_layers": 40, "mamba_d_head": 64,
    "mamba_d_state": 128, "mamba_n_groups": 1, "vocab_size": 100352, "tie_word_embeddings": True,
    "layer_types": ["attention" if i % 10 == 5 else "mamba" for i in range(40)],
}  # fmt: skip
PUBLISHED: dict[str, tuple[dict[str, Any], int]] = {
    "moonshotai/Kimi-Linear-48B-A3B-Instruct": (
        {"model_type": "kimi_linear", "linear_attn_config": delta(32, KIMI_FULL, 27)},
        49_122_681_728 - BIASES,
    ),
    "moonshotai/Kimi-K3": (
        {
            "model_type": "kimi_k3",
            "text_config": {
                "model_type": "kimi_linear", "num_hidden_layers": 93, "hidden_size": 7168,
                "intermediate_size": 33792, "moe_intermediate_size": 3072,
                "num_attention_heads": 96, "num_key_value_heads": 96, "q_lora_rank": 1536,
                "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
                "v_head_dim": 128, "num_experts": 896, "num_experts_per_token": 16,
                "num_shared_experts": 2, "routed_expert_hidden_size": 3584,
                "latent_moe_use_norm": True, "attn_res_block_size": 12,
                "mla_use_output_gate": True, "first_k_dense_replace": 1, "vocab_size": 163840,
                "linear_attn_config": delta(96, K3_FULL, 93) | {"use_full_rank_gate": True},
            },
            "vision_config": {
                "patch_size": 14, "vt_hidden_size": 1024, "vt_intermediate_size": 4096,
                "vt_num_hidden_layers": 27, "vt_num_attention_heads": 12,
                "qkv_hidden_size": 1536, "init_pos_emb_height": 64, "init_pos_emb_width": 64,
                "merge_kernel_size": [2, 2],
            },
        },
        2_779_931_837_184,
    ),
    "MiniMaxAI/MiniMax-Text-01-hf": (
        {
            "model_type": "minimax", "hidden_size": 6144, "num_hidden_layers": 80,
            "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 128,
            "intermediate_size": 9216, "num_local_experts": 32, "vocab_size": 200064,
            "layer_types": [
                "linear_attention" if (i + 1) % 8 else "full_attention" for i in range(80)
            ],
        },
        456_089_655_296,
    ),
    "MiniMaxAI/MiniMax-Text-01": (
        {
            "model_type": "minimax_text_01", "hidden_size": 6144, "num_hidden_layers": 80,
            "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 128,
            "intermediate_size": 9216, "num_local_experts": 32, "vocab_size": 200064,
            "attn_type_list": [int((i + 1) % 8 == 0) for i in range(80)], "postnorm": True,
        },
        456_089_655_296,
    ),
    "tiiuae/falcon-mamba-7b": (
        {
            "model_type": "falcon_mamba", "hidden_size": 4096, "num_hidden_layers": 64,
            "vocab_size": 65024, "tie_word_embeddings": False,
        },
        7_272_665_088,
    ),
    "google/recurrentgemma-2b": (
        {
            "model_type": "recurrent_gemma", "num_key_value_heads": 1,
            "intermediate_size": 15360, "lru_width": 2560,
        },
        2_682_862_080,
    ),
    "Zyphra/Zamba-7B-v1": ({"model_type": "zamba"}, 7_232_490_496),
    "Zyphra/Zamba2-2.7B": (
        {"model_type": "zamba2", "num_mem_blocks": 2, "n_mamba_heads": 80}, 2_662_214_560
    ),
    "allenai/Olmo-Hybrid-7B": ({"model_type": "olmo_hybrid"}, 7_430_870_688),
    "mistralai/Mamba-Codestral-7B": ({"model_type": "mamba2"}, 7_285_403_648),
    "tiiuae/Falcon-H1-0.5B-Base": (
        {
            "model_type": "falcon_h1", "hidden_size": 1024, "num_hidden_layers": 36,
            "intermediate_size": 2048, "vocab_size": 32784, "num_attention_heads": 8,
            "num_key_value_heads": 2, "head_dim": 64, "mamba_d_ssm": 1536, "mamba_n_heads": 24,
            "mamba_d_head": 64, "mamba_d_state": 128, "mamba_n_groups": 1,
            "tie_word_embeddings": False, "mamba_rms_norm": False,
        },
        521_411_104,
    ),
    "ibm-granite/granite-4.0-h-tiny": (
        GRANITE | {
            "hidden_size": 1536, "num_local_experts": 64, "num_experts_per_tok": 6,
            "intermediate_size": 512, "shared_intermediate_size": 1024,
            "num_attention_heads": 12, "num_key_value_heads": 4, "mamba_n_heads": 48,
        },
        6_939_037_248,
    ),
    "ibm-granite/granite-4.0-h-small": (
        GRANITE | {
            "hidden_size": 4096, "num_local_experts": 72, "num_experts_per_tok": 10,
            "intermediate_size": 768, "shared_intermediate_size": 1536,
            "num_attention_heads": 32, "num_key_value_heads": 8, "mamba_n_heads": 128,
        },
        32_207_337_984,
    ),
    "ibm-ai-platform/Bamba-9B-v1": (
        {
            "model_type": "bamba", "hidden_size": 4096, "num_hidden_layers": 32,
            "intermediate_size": 14336, "vocab_size": 128256, "num_attention_heads": 32,
            "num_key_value_heads": 8, "mamba_n_heads": 128, "mamba_d_head": 64,
            "mamba_d_state": 128, "mamba_n_groups": 1, "attn_layer_indices": [9, 18, 27],
        },
        9_780_235_392,
    ),
    "LiquidAI/LFM2-1.2B": (
        {
            "model_type": "lfm2", "hidden_size": 2048, "num_hidden_layers": 16,
            "block_ff_dim": 12288, "block_auto_adjust_ff_dim": True,
            "block_ffn_dim_multiplier": 1.0, "block_multiple_of": 256,
            "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 65536,
            "full_attn_idxs": [2, 5, 8, 10, 12, 14], "conv_L_cache": 3,
        },
        1_170_340_608,
    ),
    "ai21labs/AI21-Jamba2-3B": (
        {
            "model_type": "jamba", "hidden_size": 2560, "num_hidden_layers": 28,
            "intermediate_size": 8192, "num_attention_heads": 20, "num_key_value_heads": 1,
            "attn_layer_period": 14, "attn_layer_offset": 7, "num_experts": 1,
            "num_experts_per_tok": 1, "vocab_size": 65536, "tie_word_embeddings": True,
        },
        3_029_337_472,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(PUBLISHED))
def test_that_a_hybrid_has_its_published_total(name: str) -> None:
    config, total = PUBLISHED[name]
    spec = specify(config)
    assert spec.parameters == total
    assert spec.doubts == ()


def test_that_moshi_has_its_published_total_but_for_the_codebooks() -> None:
    # kmhf/hf-moshiko: 32 codebooks are buffers, each of 2,048 codes × 256 with their use and a
    # mark.
    spec = specify({"model_type": "moshi", "architectures": ["MoshiForConditionalGeneration"]})
    assert spec.parameters == 7_783_880_545 - 32 * (2048 * 256 + 2048 + 1)
    assert spec.direction(Subject.WEIGHTS) is None
