"""What each kind of layer keeps of a sequence, worked by hand: one model of each kind of state.

Two counts of the same layer: what transformers holds (all columns of a convolution, recurrent
parts in 32 bits) and what has to be held (one column less, dtypes as in vLLM's own state).
"""

from __future__ import annotations

from typing import Any

import pytest

from engine.architecture.read import specify
from engine.architecture.spec import ArchitectureSpec, Subject
from engine.budget.sequence_state import (
    constant_bytes,
    constant_state_bytes,
    rank_bytes,
    token_growth_bytes,
)
from engine.runtimes.transformers.cache import layer_bytes

SMALL: dict[str, Any] = {
    "vocab_size": 128, "hidden_size": 64, "intermediate_size": 128, "num_attention_heads": 4,
    "num_key_value_heads": 2,
}  # fmt: skip


def held(spec: ArchitectureSpec, tokens: int) -> list[int]:
    """Bytes of each layer in transformers after ``tokens``."""
    return [layer_bytes(layer, tokens, "bfloat16") for layer in spec.layers]


def needed(spec: ArchitectureSpec) -> int:
    return constant_bytes(spec)


def undoubted(config: dict[str, Any]) -> ArchitectureSpec:
    spec = specify(config)
    assert spec.direction(Subject.SEQUENCE_STATE) is None
    return spec


def test_a_gated_delta_net() -> None:
    # Qwen3-Next-80B: 36 of 48 layers, 8,192 channels × 4 columns and 32 heads of 128 × 128.
    spec = undoubted({"model_type": "qwen3_next"})
    recurrent = 32 * 128 * 128
    assert held(spec, 9)[0] == 8192 * 4 * 2 + recurrent * 4
    assert needed(spec) == 36 * (8192 * 3 * 2 + recurrent * 2)


def test_a_delta_net_whose_config_asks_for_32_bits() -> None:
    # Qwen3.5 states mamba_ssm_dtype: 48 + 2,097,152 elements in a layer, kept in 32 bits.
    spec = undoubted({"model_type": "qwen3_5_text", "mamba_ssm_dtype": "float32"})
    assert spec.layers[0].state is not None
    assert constant_state_bytes(spec.layers[0].state, "bfloat16") == 8192 * 3 * 2 + 2_097_152


def test_kimi_delta_attention() -> None:
    # Kimi-Linear-48B-A3B: queries, keys and values of 32 × 128 each, one square a head.
    spec = undoubted({
        "model_type": "kimi_linear", "num_hidden_layers": 2,
        "linear_attn_config": {
            "full_attn_layers": [2], "kda_layers": [1], "head_dim": 128, "num_heads": 32,
            "short_conv_kernel_size": 4,
        },
    })  # fmt: skip
    # The other layer caches the latent: 512 + 64 elements a token.
    assert held(spec, 10) == [12_288 * 4 * 2 + 32 * 128 * 128 * 4, 576 * 2 * 10]
    assert needed(spec) == 12_288 * 3 * 2 + 32 * 128 * 128 * 4


def test_mamba() -> None:
    # state-spaces/mamba-130m: 24 layers, inner width 1,536, 16 states a channel.
    spec = undoubted({"model_type": "mamba", "num_hidden_layers": 24})
    assert sum(held(spec, 1_000)) == 24 * (1536 * 4 * 2 + 1536 * 16 * 4)
    assert needed(spec) == 24 * (1536 * 3 * 2 + 1536 * 16 * 2)


def test_mamba_2() -> None:
    # Codestral Mamba: 64 layers, inner 8,192, 8 groups of 128 states, 128 heads of 64.
    spec = undoubted({"model_type": "mamba2"})
    channels, states = 8192 + 2 * 8 * 128, 128 * 64 * 128
    assert sum(held(spec, 5)) == 64 * (channels * 4 * 2 + states * 4)
    assert needed(spec) == 64 * (channels * 3 * 2 + states * 2)


def test_that_ranks_without_a_group_of_their_own_keep_a_copy() -> None:
    # Bamba-9B: one group of 128 states, inner 8,192 in 128 heads of 64; a rank of two keeps
    # 4,096 channels, and the group's 2 × 128.
    spec = specify({
        "model_type": "bamba", "num_hidden_layers": 1, "attn_layer_indices": [],
        "hidden_size": 4096, "mamba_n_heads": 128, "mamba_d_head": 64, "mamba_d_state": 128,
        "mamba_n_groups": 1, "mamba_expand": 2, "mamba_d_conv": 4,
    })  # fmt: skip
    state = spec.layers[0].state
    assert state is not None
    assert constant_state_bytes(state, "bfloat16", 2) == (4096 + 256) * 3 * 2 + 64 * 64 * 128 * 2


def test_nemotron_keeps_its_states_in_32_bits_and_nothing_in_its_mlps() -> None:
    # Nemotron-Nano-9B-v2's kind: 6,144 + 2 × 8 × 128 channels, 96 heads of 64 × 128.
    spec = undoubted({
        "model_type": "nemotron_h", "hybrid_override_pattern": "M-*", "hidden_size": 4096,
        "mamba_num_heads": 96, "mamba_head_dim": 64, "n_groups": 8, "ssm_state_size": 128,
        "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128,
    })  # fmt: skip
    recurrent = 96 * 64 * 128 * 4
    assert held(spec, 100) == [8192 * 4 * 2 + recurrent, 0, 100 * 2 * 8 * 128 * 2]
    assert needed(spec) == 8192 * 3 * 2 + recurrent


def test_a_short_convolution() -> None:
    # LFM2's kind: the last three columns of 64 channels, and no recurrent part.
    spec = undoubted(SMALL | {
        "model_type": "lfm2", "num_hidden_layers": 2, "full_attn_idxs": [1], "conv_L_cache": 3
    })  # fmt: skip
    assert held(spec, 50) == [64 * 3 * 2, 50 * 2 * 2 * 16 * 2]
    assert needed(spec) == 64 * 2 * 2


def test_lightning_attention_stays_in_the_models_dtype() -> None:
    # MiniMax: each second layer keeps one 16 × 16 square for each of its four heads.
    spec = undoubted(SMALL | {
        "model_type": "minimax", "num_hidden_layers": 2, "num_local_experts": 4
    })  # fmt: skip
    assert held(spec, 7) == [7 * 2 * 2 * 16 * 2, 4 * 16 * 16 * 2]
    assert needed(spec) == 4 * 16 * 16 * 2


def test_rwkv() -> None:
    # RWKV-4-169M: 12 layers of 768. Two inputs in the model's dtype, three sums in 32 bits.
    spec = undoubted({
        "model_type": "rwkv", "vocab_size": 50277, "hidden_size": 768, "num_hidden_layers": 12
    })  # fmt: skip
    assert spec.parameters == 169_342_464
    assert sum(held(spec, 1)) == sum(held(spec, 9_999)) == 12 * 768 * (2 * 2 + 3 * 4)
    assert needed(spec) == 12 * 768 * (2 * 2 + 3 * 4)


def test_xlstm_keeps_a_matrix_a_head_and_one_counter() -> None:
    # xLSTM-7B: 32 blocks, 8 heads, keys of 256 and values of 512 a head.
    spec = undoubted({"model_type": "xlstm"})
    memory = 8 * (256 * 512 + 256 + 1) * 2
    assert held(spec, 3) == [memory + 8] + [memory] * 31


def test_a_gated_linear_recurrence_and_its_window() -> None:
    # RecurrentGemma-2B: two recurrent layers, then one that sees 2,048 tokens with one head.
    spec = undoubted({
        "model_type": "recurrent_gemma", "num_hidden_layers": 3, "num_key_value_heads": 1
    })  # fmt: skip
    recurrent = 2560 * 3 * 2 + 2560 * 4
    assert held(spec, 5_000) == [recurrent, recurrent, 2047 * 2 * 256 * 2]


def test_a_block_whose_weights_are_shared_and_whose_caches_are_not() -> None:
    # Zamba2's kind: both sites read one block, each keeps 2 KV heads of 32, and adapters.
    config = SMALL | {
        "model_type": "zamba2", "num_hidden_layers": 3, "mamba_d_state": 8, "n_mamba_heads": 2,
        "layers_block_type": ["mamba", "hybrid", "hybrid"], "adapter_rank": 8,
    }  # fmt: skip
    spec = undoubted(config)
    mamba = (128 + 2 * 8) * 4 * 2 + 2 * 64 * 8 * 4
    assert held(spec, 10) == [mamba, mamba + 10 * 2 * 2 * 32 * 2, mamba + 10 * 2 * 2 * 32 * 2]
    # The block: four projections of the doubled width, a gated MLP, two norms. The first site
    # also lists the adapters of both.
    block = (128 * 128 + 2 * 64 * 128 + 64 * 128) + 3 * 64 * 128 + (128 + 64)
    adapter = 64 * 8 + 8 * 2 * 128
    first, second = spec.layers[1].parameters, spec.layers[2].parameters
    assert first - second == block + 2 * adapter
    untied = specify(config | {"tie_word_embeddings": False})
    assert untied.layers[2].parameters == first


def test_four_convolutions_in_32_bits() -> None:
    # Inkling: keys and values of 2 × 24, and what attention and MLP put out, 64 wide each.
    spec = undoubted({
        "model_type": "inkling_text", "vocab_size": 128, "hidden_size": 64,
        "num_hidden_layers": 2, "layer_types": ["hybrid_sliding", "hybrid"],
        "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 24,
        "swa_num_attention_heads": 4, "swa_num_key_value_heads": 2, "swa_head_dim": 24,
        "sliding_window_size": 16, "n_routed_experts": 4, "num_experts_per_tok": 2,
        "moe_intermediate_size": 32, "n_shared_experts": 1,
    })  # fmt: skip
    convolutions = (2 * 2 * 24 + 2 * 64) * 4 * 4
    token = 2 * 2 * 24 * 2
    assert held(spec, 41) == [convolutions + 15 * token, convolutions + 41 * token]


def test_looped_layers_keep_a_cache_for_each_pass() -> None:
    # Three passes over the middle two of four layers.
    spec = undoubted({
        "model_type": "inkling2_loop_text", "vocab_size": 128, "hidden_size": 64,
        "num_hidden_layers": 4, "layer_types": ["hybrid"] * 4, "num_attention_heads": 4,
        "num_key_value_heads": 2, "head_dim": 24, "n_routed_experts": 4,
        "num_experts_per_tok": 2, "moe_intermediate_size": 32, "n_layers_per_attn_res_block": 1,
        "loop_layer_index_start": 1, "loop_layer_index_end": 3, "loop_num_passes": 3,
    })  # fmt: skip
    once = (2 * 2 * 24 + 2 * 64) * 4 * 4 + 10 * 2 * 2 * 24 * 2
    assert held(spec, 10) == [once, 3 * once, 3 * once, once]


def test_n_grams_keep_their_convolution_and_the_last_tokens() -> None:
    # Qwen4-Exp: four streams of 64 channels, 3 × 3 columns of a dilated convolution, two token
    # ids; the first indexed layer keeps three positions a token for all of them.
    spec = undoubted({
        "model_type": "qwen4_exp_text", "vocab_size": 128, "hidden_size": 64,
        "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2,
        "head_dim": 16, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32,
        "shared_expert_intermediate_size": 32, "linear_num_value_heads": 4,
        "linear_num_key_heads": 2, "linear_key_head_dim": 16, "linear_value_head_dim": 16,
        "layer_types": ["linear_attention", "indexed_attention", "indexed_attention"],
        "ple_layer_ids": [1], "ngram_vocab_size_base": 10, "heads_per_ngram": 2,
        "make_ngram_vocab_size_divisible_by": 8, "indexer_n_heads": 2, "indexer_kv_heads": 1,
        "indexer_head_dim": 16,
    })  # fmt: skip
    delta = 128 * 4 * 2 + 4 * 16 * 16 * 4
    token = (2 * 2 * 16 + 16) * 2
    assert held(spec, 10) == [delta + 4 * 64 * 9 * 2 + 2 * 8, 10 * (token + 3 * 8), 10 * token]
    # Four hashing heads: the primes 11, 13, 17 and 19, 60 rows, padded to 64 of 64 / 4.
    (table,) = [t for t in spec.layers[0].tensors if "ngram_embedding" in t.name]
    assert table.shape == (64, 16)


V4: dict[str, Any] = {
    "model_type": "deepseek_v4", "vocab_size": 128, "hidden_size": 64, "num_hidden_layers": 3,
    "num_attention_heads": 4, "head_dim": 24, "q_lora_rank": 32, "o_groups": 2,
    "o_lora_rank": 16, "index_n_heads": 2, "index_head_dim": 16, "sliding_window": 16,
    "n_routed_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32,
    "layer_types": [
        "sliding_attention", "compressed_sparse_attention", "heavily_compressed_attention",
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("tokens", "sparse", "heavy"),
    [
        # No entry yet; three tokens wait, value and gate, twice as wide where entries overlap.
        (3, 3 * 24 + 2 * 3 * 2 * (24 + 16), 3 * 24 + 2 * 3 * 24),
        # One entry; the tokens of the last full one stay beside it.
        (7, 7 * 24 + (1 + 2 * 3 * 2 + 2 * 4) * (24 + 16), 7 * 24 + 2 * 7 * 24),
        # 128 tokens: 32 entries and none waiting; one entry of the heavy kind.
        (128, 15 * 24 + (32 + 2 * 4) * (24 + 16), 15 * 24 + 24),
        (130, 15 * 24 + (32 + 2 * 2 * 2 + 2 * 4) * (24 + 16), 15 * 24 + 24 + 2 * 2 * 24),
    ],
)
def test_compressed_entries(tokens: int, sparse: int, heavy: int) -> None:
    # A plain window keeps keys and values; the compressed kinds keep the shared key once.
    plain = 2 * 24 * min(tokens, 15)
    assert held(undoubted(V4), tokens) == [plain * 2, sparse * 2, heavy * 2]


def test_the_least_of_compressed_layers() -> None:
    # 1,024 tokens: 16 keys a layer, 256 entries with an 8-bit index key and its scale, 8 entries.
    spec = specify(V4)
    window = 16 * 24 * 2
    least = 3 * window + 256 * (24 * 2 + 16 + 4) + 8 * 24 * 2
    assert rank_bytes(spec, "bfloat16", 1024, range(3), 1) == least
    # One more token's share: a fourth of an entry with its index key, one of 128 of another.
    grown = (24 * 2 + 16 + 4) // 4 + 1
    assert token_growth_bytes(spec, "bfloat16", 1024, range(3), 1) == grown


def test_layers_that_read_another_layers_cache_keep_none() -> None:
    # Gemma 4's assistant has no keys and values at all; its target's last two layers neither.
    text = SMALL | {
        "model_type": "gemma4_unified_text", "num_hidden_layers": 4, "head_dim": 24,
        "sliding_window": 16, "num_kv_shared_layers": 2, "global_head_dim": 48,
        "layer_types": ["sliding_attention", "full_attention"] * 2,
    }  # fmt: skip
    assert held(undoubted(text), 20) == [15 * 2 * 2 * 24 * 2, 20 * 2 * 2 * 48 * 2, 0, 0]
    drafts = {"model_type": "gemma4_unified_assistant", "backbone_hidden_size": 96}
    assistant = specify(drafts | {"text_config": text | {"num_kv_shared_layers": 0}})
    assert held(assistant, 20) == [0, 0, 0, 0]
