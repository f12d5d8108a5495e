"""What has misled readers of configs, one test a trap.

The figures are counted by hand from the stated dimensions, or are published totals.
"""

from __future__ import annotations

from math import prod
from typing import Any

import pytest

from engine.architecture.read import read, specify
from engine.architecture.spec import AttentionKind, AttentionSpec, Direction, Subject
from engine.budget.sequence_state import architecture_bytes
from engine.errors import ConfigError
from engine.source.raw import HeaderTensor, RawModel

# Llama-3.1-8B: 8,030,261,248 parameters; 32 layers x 2 x 8 heads x 128 x 2 B = 131,072 B a token.
LLAMA: dict[str, Any] = {
    "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336,
    "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
    "vocab_size": 128256, "max_position_embeddings": 131072, "torch_dtype": "bfloat16",
    "tie_word_embeddings": False,
}  # fmt: skip
PARAMETERS, TOKEN_BYTES = 8_030_261_248, 131_072


def without(*keys: str, **more: Any) -> dict[str, Any]:
    return {k: v for k, v in LLAMA.items() if k not in keys} | more


def token_bytes(config: dict[str, Any]) -> int:
    return architecture_bytes(specify(config), "bf16", 1)


def first(config: dict[str, Any]) -> AttentionSpec:
    return specify(config).attentions[0]


# -- where the text model lies


@pytest.mark.parametrize(
    "nested",
    [
        {"text_config": LLAMA},
        {"llm_config": LLAMA},
        {"language_config": LLAMA},
        {"language_model": LLAMA},
        {"thinker_config": {"text_config": LLAMA}},
        {"decoder": LLAMA},
        {"transf_decoder": {"config_dict": LLAMA}},
    ],
)
def test_that_the_text_model_is_found_where_it_is_nested(nested: dict[str, Any]) -> None:
    # The heads and the width at the root are those of the vision tower.
    config = {"model_type": "vlm_of_tomorrow", "num_attention_heads": 16, "num_key_value_heads": 16}
    spec = specify(config | nested)
    assert spec.parameters == PARAMETERS
    assert architecture_bytes(spec, "bf16", 1) == TOKEN_BYTES


@pytest.mark.parametrize(
    ("usual", "spelling"),
    [
        ("num_hidden_layers", "n_layer"),
        ("num_hidden_layers", "num_layers"),
        ("num_hidden_layers", "n_layers"),
        ("hidden_size", "n_embd"),
        ("hidden_size", "d_model"),
        ("hidden_size", "model_dim"),
        ("num_attention_heads", "n_head"),
        ("num_attention_heads", "n_heads"),
        ("num_attention_heads", "num_heads"),
        ("intermediate_size", "n_inner"),
        ("intermediate_size", "ffn_dim"),
        ("intermediate_size", "d_ff"),
        ("intermediate_size", "ffn_hidden_size"),
        ("intermediate_size", "feed_forward_hidden_size"),
        ("intermediate_size", "block_ff_dim"),
        ("num_key_value_heads", "n_head_kv"),
        ("num_key_value_heads", "num_kv_heads"),
        ("num_key_value_heads", "multi_query_group_num"),
        ("num_key_value_heads", "num_attention_groups"),
        ("vocab_size", "padded_vocab_size"),
    ],
)
def test_that_a_key_is_read_by_its_other_names(usual: str, spelling: str) -> None:
    spec = specify(without(usual, **{spelling: LLAMA[usual], "model_type": "of_tomorrow"}))
    assert spec.parameters == PARAMETERS
    assert architecture_bytes(spec, "bf16", 1) == TOKEN_BYTES


# -- heads


@pytest.mark.parametrize(
    ("config", "kv_heads"),
    [
        (LLAMA | {"num_key_value_heads": None}, 32),
        (without("num_key_value_heads"), 32),
        (
            {
                "model_type": "falcon", "hidden_size": 4544, "num_attention_heads": 71,
                "num_hidden_layers": 32, "multi_query": True, "vocab_size": 65024,
                "new_decoder_architecture": False,
            },
            1,
        ),
        (
            {
                "model_type": "falcon", "hidden_size": 8192, "num_attention_heads": 128,
                "num_kv_heads": 8, "num_hidden_layers": 60, "vocab_size": 65024,
                "new_decoder_architecture": True,
            },
            8,
        ),
        (
            {
                "model_type": "gpt_bigcode", "n_embd": 6144, "n_head": 48, "n_layer": 40,
                "n_inner": 24576, "vocab_size": 49152, "multi_query": True, "n_positions": 8192,
            },
            1,
        ),
        (
            {
                "model_type": "chatglm", "hidden_size": 4096, "ffn_hidden_size": 13696,
                "num_layers": 28, "num_attention_heads": 32, "kv_channels": 128,
                "multi_query_attention": True, "multi_query_group_num": 2, "add_qkv_bias": True,
                "padded_vocab_size": 65024, "seq_length": 8192,
            },
            2,
        ),
    ],
)  # fmt: skip
def test_that_the_key_and_value_heads_are_the_classs(config: dict[str, Any], kv_heads: int) -> None:
    assert first(config).num_key_value_heads == kv_heads


def test_that_the_head_width_need_not_be_the_hidden_size_shared_out() -> None:
    # Mistral-Nemo: 5,120 over 32 heads would be 160; its heads are 128 wide: 12,247,782,400.
    nemo = LLAMA | {
        "model_type": "mistral", "hidden_size": 5120, "head_dim": 128, "num_hidden_layers": 40,
        "vocab_size": 131072, "sliding_window": None,
    }  # fmt: skip
    assert specify(nemo).parameters == 12_247_782_400
    assert first(LLAMA | {"head_dim": None}).head_dim == 128
    with pytest.raises(ConfigError):
        specify(LLAMA | {"head_dim": 0})


def test_that_latent_attention_has_widths_of_its_own() -> None:
    # Moonlight-16B-A3B: 512 + 64 a token and layer, whatever hidden_size / heads says.
    config = {
        "model_type": "deepseek_v3", "hidden_size": 2048, "num_attention_heads": 16,
        "num_hidden_layers": 27, "kv_lora_rank": 512, "q_lora_rank": None, "qk_rope_head_dim": 64,
        "qk_nope_head_dim": 128, "v_head_dim": 128, "intermediate_size": 11264,
        "moe_intermediate_size": 1408, "n_routed_experts": 64, "n_shared_experts": 2,
        "num_experts_per_tok": 6, "first_k_dense_replace": 1, "vocab_size": 163840, "n_group": 1,
        "topk_group": 1, "num_nextn_predict_layers": 0, "torch_dtype": "bfloat16",
    }  # fmt: skip
    assert token_bytes(config) == 27 * 576 * 2


def test_that_keys_and_values_may_differ_in_width() -> None:
    # MiMo-V2-Flash: keys of 192, values of 128; eight heads where it slides, four where not.
    config = {
        "model_type": "mimo_v2_flash", "hidden_size": 4096, "num_hidden_layers": 2,
        "num_attention_heads": 64, "num_key_value_heads": 4, "head_dim": 192, "v_head_dim": 128,
        "swa_num_attention_heads": 64, "swa_num_key_value_heads": 8, "swa_head_dim": 192,
        "swa_v_head_dim": 128, "sliding_window": 128, "layer_types": [
            "full_attention", "sliding_attention",
        ],
    }  # fmt: skip
    full, sliding = specify(config).attentions
    assert (full.head_dim, full.v_head_dim, full.num_key_value_heads) == (192, 128, 4)
    assert (sliding.head_dim, sliding.v_head_dim, sliding.num_key_value_heads) == (192, 128, 8)


# -- windows


@pytest.mark.parametrize(
    ("change", "windows"),
    [
        ({"model_type": "qwen2", "sliding_window": 4096, "use_sliding_window": False}, {0}),
        (
            {
                "model_type": "qwen2", "sliding_window": 4096, "use_sliding_window": True,
                "max_window_layers": 32,
            },
            {0},
        ),
        ({"model_type": "mistral", "sliding_window": None}, {0}),
        ({"model_type": "phi3", "sliding_window": 262144}, {262144}),
        (
            {
                "model_type": "gemma2", "sliding_window": 512,
                "layer_types": ["full_attention"] * 32, "sliding_window_pattern": 2,
            },
            {0},
        ),
    ],
)  # fmt: skip
def test_that_a_window_counts_only_where_it_is_used(
    change: dict[str, Any], windows: set[int]
) -> None:
    assert {a.window for a in specify(LLAMA | change).attentions} == windows


def test_that_layers_that_share_keys_and_values_keep_none() -> None:
    # Gemma 3n E2B: 30 layers, of which the last ten read an earlier layer's cache.
    spec = specify(
        {"model_type": "gemma3n_text", "num_hidden_layers": 30, "num_kv_shared_layers": 10}
    )
    assert len(spec.layers) == 30
    assert len(spec.attentions) == 20


# -- tying, dtype, quantisation


@pytest.mark.parametrize(
    ("model_type", "tied"),
    [("llama", False), ("qwen2", False), ("mixtral", False), ("gemma3_text", True)],
)
def test_that_what_is_not_said_about_tying_is_the_classs(model_type: str, tied: bool) -> None:
    assert (
        specify(without("tie_word_embeddings", model_type=model_type)).tie_word_embeddings is tied
    )


def test_that_a_header_decides_whether_the_head_is_stored() -> None:
    small = LLAMA | {"num_hidden_layers": 1, "vocab_size": 64, "tie_word_embeddings": True}
    shapes = {
        "model.embed_tokens": (64, 4096), "model.norm": (4096,), "lm_head": (64, 4096),
        "model.layers.0.self_attn.q_proj": (4096, 4096),
        "model.layers.0.self_attn.k_proj": (1024, 4096),
        "model.layers.0.self_attn.v_proj": (1024, 4096),
        "model.layers.0.self_attn.o_proj": (4096, 4096),
        "model.layers.0.mlp.gate_proj": (14336, 4096), "model.layers.0.mlp.up_proj": (14336, 4096),
        "model.layers.0.mlp.down_proj": (4096, 14336), "model.layers.0.input_layernorm": (4096,),
        "model.layers.0.post_attention_layernorm": (4096,),
    }  # fmt: skip
    tensors = tuple(
        HeaderTensor(f"{name}.weight", "BF16", shape, 2 * prod(shape))
        for name, shape in shapes.items()
    )
    model = read(RawModel("x", "test", config=small, tensors=tensors))
    assert model.stored is not None
    assert model.stored.size_bytes == sum(t.size_bytes for t in tensors)
    # The copy is on disk, and not in the model that is built.
    assert model.parameters == model.stored.parameters - 64 * 4096


@pytest.mark.parametrize("key", ["dtype", "torch_dtype"])
@pytest.mark.parametrize("place", ["root", "text"])
def test_that_the_dtype_is_found_under_both_names_and_in_both_places(key: str, place: str) -> None:
    text = without("torch_dtype")
    root: dict[str, Any] = {"model_type": "vlm_of_tomorrow", "text_config": text}
    (root if place == "root" else text)[key] = "float32"
    assert specify(root).dtype == "float32"


@pytest.mark.parametrize(
    "place",
    [
        {"quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 128}},
        {"compression_config": {"quant_method": "awq", "bits": 4, "group_size": 128}},
        {"text_config": LLAMA | {"quantization_config": {"quant_method": "awq", "bits": 4}}},
        {"quantization_config": {"quant_method": "AWQ", "w_bit": 4, "q_group_size": 128}},
    ],
)
def test_that_a_quantisation_is_found_wherever_it_is_stated(place: dict[str, Any]) -> None:
    assert specify(LLAMA | place).weight_format == "awq-int4"


def test_that_modelopt_nests_what_it_says() -> None:
    stated = {"quant_method": "modelopt", "quantization": {"quant_algo": "NVFP4", "group_size": 16}}
    assert specify(LLAMA | {"quantization_config": stated}).weight_format.startswith("nvfp4")


def test_that_a_checkpoint_may_flip_the_dtype_of_the_cache() -> None:
    scheme = {"num_bits": 8, "type": "float"}
    stated = {
        "quant_method": "compressed-tensors", "kv_cache_scheme": scheme, "config_groups": {
            "group_0": {
                "targets": ["Linear"],
                "weights": {"num_bits": 8, "type": "float", "strategy": "channel"},
            },
        },
    }  # fmt: skip
    assert specify(LLAMA | {"quantization_config": stated}).kv_cache_dtype == "fp8"


# -- context


@pytest.mark.parametrize(
    ("change", "length"),
    [
        ({"rope_scaling": {"type": "linear", "factor": 4.0}}, 4 * 8192),
        ({"rope_scaling": {"rope_type": "dynamic", "factor": 2.0}}, 2 * 8192),
        ({"rope_scaling": {"type": "yarn", "factor": 4.0}}, 8192),
        ({"rope_scaling": {"rope_type": "llama3", "factor": 8.0}}, 8192),
        (
            {"model_type": "gemma3_text", "rope_scaling": {"rope_type": "linear", "factor": 8.0}},
            8192,
        ),
        ({"model_max_length": 4096}, 4096),
    ],
)
def test_that_a_scaling_lengthens_only_what_is_not_scaled_yet(
    change: dict[str, Any], length: int
) -> None:
    assert (
        specify(LLAMA | {"max_position_embeddings": 8192} | change).max_position_embeddings
        == length
    )


@pytest.mark.parametrize(
    "key", ["n_positions", "seq_length", "max_seq_len", "max_target_positions"]
)
def test_that_the_context_has_many_names(key: str) -> None:
    config = without("max_position_embeddings", model_type="of_tomorrow", **{key: 2048})
    assert specify(config).max_position_embeddings == 2048


# -- experts


def test_that_experts_in_use_are_not_experts_in_memory() -> None:
    # Mixtral-8x7B: all 46,702,792,704 are resident, though a token uses two experts of eight.
    mixtral = LLAMA | {
        "model_type": "mixtral", "num_local_experts": 8, "num_experts_per_tok": 2,
        "vocab_size": 32000,
    }  # fmt: skip
    assert specify(mixtral).parameters == 46_702_792_704


def test_that_prediction_blocks_are_stored_and_not_built() -> None:
    config = {"model_type": "deepseek_v3", "num_nextn_predict_layers": 1, "torch_dtype": "bfloat16"}
    spec = specify(config)
    assert spec.parameters == 671_026_404_352
    # One block: a sparse layer, a projection of two hidden widths to one, three norms, and the
    # embedding and the head once more.
    own = spec.layers[-1].parameters + 2 * 7168**2 + 3 * 7168
    assert sum(t.parameters for t in spec.mtp if not t.repeats) == own
    assert sum(t.parameters for t in spec.mtp if t.repeats) == 2 * 129_280 * 7168


@pytest.mark.parametrize(
    ("config", "wanted"),
    [
        # MiMo-7B stores 210,790,400 more than is built, EXAONE-4.5-33B 536,110,336.
        (
            {
                "model_type": "mimo", "hidden_size": 4096, "intermediate_size": 11008,
                "num_attention_heads": 32, "num_key_value_heads": 8, "num_hidden_layers": 36,
            },
            210_790_400,
        ),
        (
            {
                "model_type": "exaone4_5_text", "hidden_size": 5120, "intermediate_size": 27392,
                "num_attention_heads": 40, "num_key_value_heads": 8, "num_hidden_layers": 64,
            },
            536_110_336,
        ),
        # GLM-5.2 stores 9,952,939,776 more, 19,456 of them what corrects its routers (76 x 256):
        # the block has an index of its own, though the last layer reads another's.
        (
            {
                "model_type": "glm_moe_dsa", "num_hidden_layers": 78, "hidden_size": 6144,
                "intermediate_size": 12288, "moe_intermediate_size": 2048,
                "n_routed_experts": 256, "num_attention_heads": 64, "num_key_value_heads": 64,
                "q_lora_rank": 2048, "kv_lora_rank": 512, "qk_nope_head_dim": 192,
                "qk_rope_head_dim": 64, "v_head_dim": 256, "index_head_dim": 128,
                "index_n_heads": 32,
                "indexer_types": ["full"] * 3 + ["shared", "shared", "shared", "full"] * 18
                + ["shared"] * 3,
                "mlp_layer_types": ["dense"] * 3 + ["sparse"] * 75,
            },
            9_952_920_320,
        ),
        # 0.81 B with the head of 128,896 words, as the card of Step-3.5-Flash says; 128 here.
        (
            {
                "model_type": "step3p5", "sliding_window": 512,
                "attention_other_setting": {"num_attention_heads": 96},
            },
            809_390_336 - (128_896 - 128) * 4096,
        ),
        # MiniMax publishes none for the key.
        ({"model_type": "minimax_m2", "num_mtp_modules": 3, "use_mtp": True}, 0),
    ],
)  # fmt: skip
def test_what_prediction_blocks_hold(config: dict[str, object], wanted: int) -> None:
    spec = specify({"vocab_size": 128, "num_nextn_predict_layers": 1, **config})
    assert sum(tensor.parameters for tensor in spec.mtp) == wanted
    assert bool(spec.uncounted_mtp) is (not wanted)


def test_that_an_unknown_layer_kind_is_a_bound() -> None:
    # What it keeps may be less than keys and values, or an index or a recurrent state beside.
    spec = specify(LLAMA | {"layer_types": ["full_attention"] * 31 + ["hyper_attention"]})
    assert spec.direction(Subject.SEQUENCE_STATE) is Direction.EITHER
    assert all(a.kind is AttentionKind.FULL for a in spec.attentions)
