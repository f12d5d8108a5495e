"""Hand arithmetic for the best-known shapes; figures as in the published papers and headers."""

from __future__ import annotations

from typing import Any

import pytest

from engine.architecture.read import read
from engine.architecture.spec import AttentionKind, Direction, ModuleClass, Sharding, Subject
from engine.errors import ConfigError, UnknownArchitectureError
from engine.source.raw import RawModel

LLAMA_8B: dict[str, Any] = {
    "model_type": "llama",
    "vocab_size": 128_256,
    "hidden_size": 4096,
    "intermediate_size": 14_336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "max_position_embeddings": 131_072,
    "torch_dtype": "bfloat16",
}
MIXTRAL: dict[str, Any] = {
    "model_type": "mixtral",
    "vocab_size": 32_000,
    "hidden_size": 4096,
    "intermediate_size": 14_336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "num_local_experts": 8,
    "num_experts_per_tok": 2,
    "sliding_window": None,
}
DEEPSEEK_V3: dict[str, Any] = {
    "model_type": "deepseek_v3",
    "vocab_size": 129_280,
    "hidden_size": 7168,
    "intermediate_size": 18_432,
    "moe_intermediate_size": 2048,
    "num_hidden_layers": 61,
    "num_attention_heads": 128,
    "num_key_value_heads": 128,
    "n_routed_experts": 256,
    "n_shared_experts": 1,
    "first_k_dense_replace": 3,
    "q_lora_rank": 1536,
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "num_nextn_predict_layers": 1,
}
GPT_OSS: dict[str, Any] = {
    "model_type": "gpt_oss",
    "vocab_size": 201_088,
    "hidden_size": 2880,
    "intermediate_size": 2880,
    "num_hidden_layers": 24,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "head_dim": 64,
    "num_local_experts": 32,
    "num_experts_per_tok": 4,
    "sliding_window": 128,
    "attention_bias": True,
}
GEMMA_2: dict[str, Any] = {
    "model_type": "gemma2",
    "vocab_size": 256_000,
    "hidden_size": 3584,
    "intermediate_size": 14_336,
    "num_hidden_layers": 42,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "head_dim": 256,
    "sliding_window": 4096,
}
QWEN_3_30B: dict[str, Any] = {
    "model_type": "qwen3_moe",
    "vocab_size": 151_936,
    "hidden_size": 2048,
    "num_hidden_layers": 48,
    "num_attention_heads": 32,
    "num_key_value_heads": 4,
    "head_dim": 128,
    "num_experts": 128,
    "num_experts_per_tok": 8,
    "moe_intermediate_size": 768,
}


def model_of(config: dict[str, Any], **rest: Any) -> Any:
    return read(RawModel("x", "test", config=config | rest))


def test_that_llama_comes_out_by_hand() -> None:
    spec = model_of(LLAMA_8B).spec
    attention = 4096 * 4096 * 2 + 2 * 4096 * 1024
    mlp = 3 * 4096 * 14_336
    layer = attention + mlp + 2 * 4096
    assert spec.layers[0].parameters == layer
    assert spec.parameters == 2 * 128_256 * 4096 + 32 * layer + 4096 == 8_030_261_248
    assert spec.parameters_by_class() == {
        ModuleClass.EMBEDDING: 128_256 * 4096,
        ModuleClass.LM_HEAD: 128_256 * 4096,
        ModuleClass.ATTENTION: 32 * attention,
        ModuleClass.MLP: 32 * mlp,
        ModuleClass.NORM: 65 * 4096,
    }
    assert spec.doubts == ()
    assert spec.max_position_embeddings == 131_072
    assert spec.weight_format == "bf16"


def test_that_identical_layers_are_one_object() -> None:
    assert len({id(layer) for layer in model_of(LLAMA_8B).spec.layers}) == 1
    assert len({id(layer) for layer in model_of(DEEPSEEK_V3).spec.layers}) == 2


def test_that_grouped_query_attention_is_sharded_by_its_heads() -> None:
    tensors = {t.name: t for t in model_of(LLAMA_8B).spec.layers[0].tensors}
    assert tensors["self_attn.q_proj.weight"].sharding is Sharding.COLUMN
    assert tensors["self_attn.k_proj.weight"].shape == (1024, 4096)
    assert tensors["self_attn.k_proj.weight"].sharding is Sharding.KV_HEADS
    assert tensors["self_attn.o_proj.weight"].sharding is Sharding.ROW
    assert tensors["mlp.down_proj.weight"].shape == (4096, 14_336)
    assert tensors["input_layernorm.weight"].sharding is Sharding.REPLICATED
    assert not tensors["input_layernorm.weight"].linear
    assert tensors["mlp.up_proj.weight"].linear


def test_that_experts_are_copies_of_one_shape() -> None:
    spec = model_of(MIXTRAL).spec
    assert spec.parameters == 46_702_792_704
    experts = [t for t in spec.layers[0].tensors if t.module is ModuleClass.EXPERTS]
    assert [(t.shape, t.copies) for t in experts] == [
        ((14_336, 4096), 8),
        ((14_336, 4096), 8),
        ((4096, 14_336), 8),
    ]
    assert {t.sharding for t in experts} == {Sharding.EXPERT_COLUMN, Sharding.EXPERT_ROW}
    moe = spec.layers[0].moe
    assert moe is not None
    assert (moe.num_experts, moe.num_experts_per_tok, moe.moe_intermediate_size) == (8, 2, 14_336)


def test_that_latent_attention_comes_out_by_hand() -> None:
    spec = model_of(DEEPSEEK_V3).spec
    assert spec.parameters == 671_026_404_352
    attention = sum(t.parameters for t in spec.layers[0].tensors if t.name.startswith("self_attn."))
    assert attention == 187_107_328
    found = spec.attentions[0]
    assert found.kind is AttentionKind.LATENT
    assert (found.kv_lora_rank, found.qk_rope_head_dim, found.v_head_dim) == (512, 64, 128)
    assert len(spec.attentions) == 61


def test_that_prediction_blocks_are_kept_apart() -> None:
    spec = model_of(DEEPSEEK_V3).spec
    assert {t.module for t in spec.mtp} == {ModuleClass.MTP}
    assert ModuleClass.MTP not in spec.parameters_by_class()
    # One more sparse layer, three norms and the joining projection; embedding and head again.
    extra = spec.layers[-1].parameters + 3 * 7168 + 2 * 7168 * 7168 + 2 * 129_280 * 7168
    assert sum(t.parameters for t in spec.mtp) == extra


def test_that_gpt_oss_has_biases_and_sinks() -> None:
    spec = model_of(GPT_OSS).spec
    assert spec.parameters == 20_914_757_184
    kinds = [a.kind for a in spec.attentions]
    assert kinds[:4] == [AttentionKind.SLIDING, AttentionKind.FULL] * 2
    assert [a.window for a in spec.attentions[:2]] == [128, 0]


def test_that_gemma_ties_and_alternates() -> None:
    spec = model_of(GEMMA_2).spec
    assert spec.parameters == 9_241_705_984
    assert spec.tie_word_embeddings
    assert sum(a.window == 4096 for a in spec.attentions) == 21


def test_that_small_experts_come_out() -> None:
    assert model_of(QWEN_3_30B).parameters == 30_532_122_624


def test_that_a_tied_head_is_counted_once() -> None:
    shape = {
        "hidden_size": 2048,
        "intermediate_size": 8192,
        "num_hidden_layers": 16,
        "num_attention_heads": 32,
        "tie_word_embeddings": True,
    }
    assert model_of(LLAMA_8B, **shape).parameters == 1_235_814_400


@pytest.mark.parametrize(
    ("config", "full"),
    [
        ({"model_type": "mistral", "sliding_window": None}, 32),
        ({"model_type": "mistral", "sliding_window": 4096}, 0),
        ({"model_type": "qwen2", "sliding_window": 4096, "use_sliding_window": False}, 32),
        (
            {
                "model_type": "qwen2",
                "sliding_window": 4096,
                "use_sliding_window": True,
                "max_window_layers": 28,
            },
            28,
        ),
        ({"model_type": "gemma3_text", "sliding_window": 1024, "head_dim": 128}, 5),
        ({"model_type": "cohere2", "sliding_window": 4096}, 8),
        ({"model_type": "olmo3", "sliding_window": 4096}, 8),
        ({"model_type": "exaone4", "sliding_window": 4096, "sliding_window_pattern": 4}, 8),
        ({"model_type": "exaone4", "sliding_window": None}, 32),
        ({"model_type": "phi3", "sliding_window": 2047}, 0),
    ],
)
def test_that_windows_fall_where_the_class_puts_them(config: dict[str, Any], full: int) -> None:
    spec = model_of({**LLAMA_8B, **config}).spec
    assert sum(a.kind is AttentionKind.FULL for a in spec.attentions) == full
    assert not spec.doubts


def test_that_a_stated_list_of_layers_wins() -> None:
    kinds = ["full_attention"] * 30 + ["sliding_attention"] * 2
    spec = model_of(LLAMA_8B, model_type="gemma2", layer_types=kinds, sliding_window=512).spec
    assert [a.window for a in spec.attentions] == [0] * 30 + [512] * 2


def test_that_an_unknown_type_is_a_bound_with_its_reason() -> None:
    spec = model_of(LLAMA_8B, model_type="llama_of_tomorrow").spec
    assert {d.subject for d in spec.doubts} == {Subject.WEIGHTS, Subject.SEQUENCE_STATE}
    # No key speaks of anything but attention: it keeps no more than all keys and values.
    assert spec.direction(Subject.WEIGHTS) is Direction.EITHER
    assert spec.direction(Subject.SEQUENCE_STATE) is Direction.UPPER
    assert "llama_of_tomorrow" in spec.doubts[0].reason
    assert all(a.kind is AttentionKind.FULL for a in spec.attentions)


def test_that_an_unknown_kind_of_layer_is_a_bound() -> None:
    spec = model_of(LLAMA_8B, layer_types=["quantum_attention"] * 32).spec
    assert "quantum_attention" in spec.doubts[0].reason
    assert all(a.kind is AttentionKind.FULL for a in spec.attentions)


@pytest.mark.parametrize(
    "stated",
    [
        {"kv_lora_rank": 512},
        {"moe_num_experts": 64},
        {"n_local_experts": 8},
        {"num_codebooks": 32, "codebook_size": 1_000_000},
        {"hidden_size_per_layer_input": 256},
        {"ffn_config": {"moe_num_experts": 16}},
    ],
)
def test_that_a_field_of_another_class_makes_the_weights_a_lower_bound(
    stated: dict[str, Any],
) -> None:
    spec = model_of(LLAMA_8B, **stated).spec
    assert spec.direction(Subject.WEIGHTS) is Direction.LOWER
    assert spec.direction(Subject.SEQUENCE_STATE) is None
    assert next(iter(stated)) in spec.doubts[0].reason


@pytest.mark.parametrize(
    "stated",
    [
        {"num_moe_experts": 64},
        {"mystery_layers": 400},
        {"layer_widths": [4096, 8192]},
        {"use_shared_kv": True},
        {"num_kv_headz": 4},
        {"tie_word_embedding": True},
    ],
)
def test_that_a_field_that_no_class_has_may_change_anything(stated: dict[str, Any]) -> None:
    key = next(iter(stated))
    spec = model_of(
        {k: v for k, v in LLAMA_8B.items() if k != "tie_word_embeddings"}, **stated
    ).spec
    for subject in (Subject.WEIGHTS, Subject.SEQUENCE_STATE):
        assert spec.direction(subject) is Direction.EITHER
    assert all(key in doubt.reason for doubt in spec.doubts)


@pytest.mark.parametrize("stated", [{"ssm_cfg": {"a": 2}}, {"cross_attention_layers": [2, 5]}])
def test_that_layers_of_another_kind_have_weights_and_state_that_are_not_counted(
    stated: dict[str, Any],
) -> None:
    spec = model_of(LLAMA_8B, **stated).spec
    assert spec.direction(Subject.WEIGHTS) is Direction.LOWER
    assert spec.direction(Subject.SEQUENCE_STATE) is Direction.LOWER


def test_that_a_field_that_saves_state_makes_full_attention_an_upper_bound() -> None:
    spec = model_of(LLAMA_8B, num_kv_shared_layers=10).spec
    assert spec.direction(Subject.WEIGHTS) is None
    assert spec.direction(Subject.SEQUENCE_STATE) is Direction.UPPER


@pytest.mark.parametrize(
    "stated",
    [
        {"eos_token_id": [128001, 128008], "pad_token_id": 128004, "bos_token_id": 128000},
        {"rope_scaling": {"rope_type": "llama3", "factor": 8.0}, "pretraining_tp": 2},
        {"max_length": 4096, "num_beams": 4, "id2label": {"0": "A", "1": "B"}},
        {"auto_map": {"AutoModel": "x.Y"}, "architectures": ["LlamaForCausalLM"], "seed": 42},
        {"mlp_bias": False, "attention_dropout": 0.0, "use_cache": True, "n_ctx": 4096},
        {"num_experts": 1, "sliding_window": None, "layer_widths": []},
    ],
)
def test_that_fields_that_change_no_memory_put_nothing_in_doubt(stated: dict[str, Any]) -> None:
    assert not model_of(LLAMA_8B, **stated).spec.doubts


@pytest.mark.parametrize(
    "config",
    [
        LLAMA_8B | {"add_cross_attention": True},
        LLAMA_8B | {"model_type": "later", "encoder_layers": 12},
    ],
)  # fmt: skip
def test_that_an_encoder_is_not_counted_and_nothing_is_promised(config: dict[str, Any]) -> None:
    spec = model_of(config).spec
    for subject in (Subject.WEIGHTS, Subject.SEQUENCE_STATE):
        assert spec.direction(subject) in (Direction.LOWER, Direction.EITHER)
    assert any("encoder or cross-attention" in d.reason for d in spec.doubts)


def test_that_a_format_of_unknown_layout_is_counted_at_its_most() -> None:
    spec = model_of(LLAMA_8B, quantization_config={"quant_method": "quip_of_tomorrow"}).spec
    assert spec.direction(Subject.WEIGHTS) is Direction.UPPER


def test_that_a_tower_that_is_not_known_is_said() -> None:
    text = LLAMA_8B | {"head_dim": 128}
    spec = model_of(
        {"model_type": "omni_of_tomorrow", "text_config": text, "vision_config": {"a": 1}}
    ).spec
    assert [(d.subject, d.direction) for d in spec.doubts] == [(Subject.WEIGHTS, Direction.LOWER)]
    assert spec.parameters == 8_030_261_248


def test_that_sums_from_elsewhere_replace_what_is_in_doubt() -> None:
    config = {**LLAMA_8B, "model_type": "llama_of_tomorrow"}
    raw = RawModel("x", "test", config=config, parameters_by_class={"mlp": 7, "other": 3})
    assert read(raw).parameters == 10
    raw = RawModel("x", "test", config=LLAMA_8B, parameters_by_class={"mlp": 7})
    assert read(raw).parameters == 8_030_261_248


def test_that_a_reward_model_has_a_score_and_an_embedding_model_no_head() -> None:
    reward = model_of(
        LLAMA_8B, architectures=["LlamaForSequenceClassification"], id2label={"0": "LABEL_0"}
    )
    assert reward.parameters == 8_030_261_248 - 128_256 * 4096 + 4096
    bare = model_of(LLAMA_8B, architectures=["LlamaModel"])
    assert bare.parameters == 8_030_261_248 - 128_256 * 4096


def test_that_a_model_without_dimensions_is_refused() -> None:
    with pytest.raises(UnknownArchitectureError, match="no vocab_size"):
        model_of({"model_type": "diffuser", "hidden_size": 64, "num_hidden_layers": 2,
                  "num_attention_heads": 2})  # fmt: skip
    with pytest.raises(UnknownArchitectureError):
        read(RawModel("x", "test"))


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"num_attention_heads": 0}, "num_attention_heads"),
        ({"num_hidden_layers": 10**12}, "num_hidden_layers"),
        ({"hidden_size": -4096}, "hidden_size"),
        ({"hidden_size": "4096"}, "hidden_size"),
        ({"intermediate_size": [1, 2]}, "intermediate_size"),
        ({"num_key_value_heads": 7}, "num_key_value_heads"),
        ({"vocab_size": 1e30}, "vocab_size"),
        ({"head_dim": float("nan")}, "head_dim"),
        ({"layer_types": ["full_attention"]}, "layer_types"),
        ({"layer_types": 32}, "layer_types"),
        ({"max_position_embeddings": "long"}, "max_position_embeddings"),
        ({"tie_word_embeddings": "yes"}, "tie_word_embeddings"),
        ({"attention_bias": []}, "attention_bias"),
        ({"torch_dtype": 16}, "torch_dtype"),
        ({"num_hidden_layers": None}, "num_hidden_layers"),
    ],
)
def test_that_an_absurd_field_is_named(change: dict[str, Any], field: str) -> None:
    with pytest.raises(ConfigError) as caught:
        model_of(LLAMA_8B, **change)
    assert caught.value.field == field
    assert field in caught.value.message
    assert caught.value.message.endswith(".")


def test_that_more_parameters_than_any_model_has_are_refused() -> None:
    shape = {"hidden_size": 2**20, "intermediate_size": 2**24, "num_hidden_layers": 1024}
    with pytest.raises(ConfigError, match="no model is that large"):
        model_of(LLAMA_8B, **shape)


def test_that_more_active_experts_than_there_are_is_an_error() -> None:
    with pytest.raises(ConfigError, match="only 8 experts"):
        model_of(MIXTRAL, num_experts_per_tok=9)


def test_that_searched_layers_may_lack_a_block() -> None:
    blocks = [
        {"attention": {"n_heads_in_group": 8}, "ffn": {"ffn_mult": 5.25}},
        {"attention": {"no_op": True}, "ffn": {"ffn_mult": 1.0}},
        {"attention": {"replace_with_linear": True}, "ffn": {"no_op": True}},
    ]
    spec = model_of(
        LLAMA_8B, model_type="nemotron-nas", num_hidden_layers=3, num_key_value_heads=None,
        intermediate_size=None, block_configs=blocks,
    ).spec  # fmt: skip
    hidden = 4096
    attention = 2 * hidden * hidden + 2 * hidden * 4 * 128
    first, second, third = (layer.parameters for layer in spec.layers)
    assert first == attention + 3 * hidden * 14_336 + 2 * hidden
    # 2 x 4096 / 3 = 2730, rounded up to 2816.
    assert second == 3 * hidden * 2816 + hidden
    assert third == hidden * hidden + hidden
    assert [a.num_key_value_heads for a in spec.attentions] == [4]
    assert not spec.doubts
