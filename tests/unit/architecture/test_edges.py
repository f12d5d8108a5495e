"""Configs at the edges: what a class would refuse, what can only be bounded, what is too long."""

from __future__ import annotations

from typing import Any

import pytest

from engine.architecture.read import read, specify
from engine.architecture.spec import Direction, Subject
from engine.errors import ConfigError
from engine.source import catalogue
from engine.source.raw import HeaderTensor, RawModel
from tests.helpers.evidence import changed, rows

LLAMA: dict[str, Any] = {
    "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336,
    "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
    "vocab_size": 128256, "max_position_embeddings": 131072,
}  # fmt: skip
# RWKV/rwkv-4-169m-pile, which transformers counts as 169,342,464 parameters.
RWKV = {
    "model_type": "rwkv", "hidden_size": 768, "num_hidden_layers": 12, "vocab_size": 50277,
    "attention_hidden_size": 768, "context_length": 1024,
}  # fmt: skip

_SHARING_OUT = (
    "deepseek_ocr2", "deepseek_ocr2_text", "recurrent_gemma", "unlimited_ocr",
    "unlimited_ocr_text", "zamba2",
)  # fmt: skip
"""Types with rules of their own for the width of a head."""


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        # The class itself refuses it: "not a multiple of the number of attention heads".
        ({"hidden_size": 4097}, "hidden_size"),
        ({"head_dim": 0}, "head_dim"),
        ({"max_position_embeddings": 0}, "max_position_embeddings"),
        ({"rope_scaling": "yes"}, "rope_scaling"),
        ({"rope_parameters": [1]}, "rope_parameters"),
        ({"model_type": "m" * 100_000}, "model_type"),
        ({"model_type": None, "architectures": ["M" * 9_000 + "ForCausalLM"]}, "model_type"),
    ],
)
def test_that_what_the_class_would_refuse_is_refused(wrong: dict[str, Any], field: str) -> None:
    with pytest.raises(ConfigError) as caught:
        specify(LLAMA | wrong)
    assert caught.value.field == field
    assert caught.value.message.startswith(f"{field} is ")
    assert len(caught.value.message) < 200


@pytest.mark.parametrize(
    "row",
    [row for row in rows() if row["type"] in _SHARING_OUT],
    ids=lambda row: row["type"],
)
def test_that_a_head_of_no_width_is_refused(row: dict[str, Any]) -> None:
    named = {"model_type": row["type"], "architectures": [row["class"]]} | row["base"]
    inside = named.get("text_config", named)
    # 64 elements of a hidden state are too few for 4,000 heads.
    inside = inside | {"num_attention_heads": 4000}
    config = named | ({"text_config": inside} if "text_config" in named else inside)
    with pytest.raises(ConfigError, match=r"64; .*4000 heads.* no width") as refused:
        specify(config)
    assert refused.value.field.endswith("hidden_size")


def evidence(kind: str, changes: dict[str, Any]) -> dict[str, Any]:
    """The measured config of the last class of ``kind``, with ``changes``."""
    row = next(row for row in reversed(rows()) if row["type"] == kind)
    return changed({"model_type": kind, "architectures": [row["class"]]} | row["base"], changes)


@pytest.mark.parametrize(
    ("kind", "changes", "field"),
    [
        # transformers 5.24.0 builds them, and none of them runs.
        ("olmoe", {"num_attention_heads": 12, "num_key_value_heads": 4}, "hidden_size"),
        ("dbrx", {"n_heads": 12, "attn_config.kv_n_heads": 4}, "hidden_size"),
        ("xlstm", {"num_heads": 12}, "num_heads"),
    ],
)
def test_that_heads_which_do_not_divide_are_refused(
    kind: str, changes: dict[str, Any], field: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        specify(evidence(kind, changes))
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("kind", "changes", "parameters"),
    [
        # Counted by transformers 5.24.0 on the meta device.
        ("mllama", {"vision_config.attention_heads": 48}, 264_571_027),
        ("blt", {"tie_word_embeddings": True, "encoder_config.vocab_size": 780}, 3_322_272_000),
        (
            "blt",
            {
                "tie_word_embeddings": True,
                "encoder_config.vocab_size": 520,
                "decoder_config.hidden_size": 4096,
            },
            3_791_037_696,
        ),
    ],
)
def test_that_uneven_heads_and_tables_that_differ_are_counted_as_built(
    kind: str, changes: dict[str, Any], parameters: int
) -> None:
    spec = specify(evidence(kind, changes))
    assert spec.parameters == parameters
    assert spec.direction(Subject.WEIGHTS) is None


def test_that_a_class_which_rounds_the_head_width_down_is_followed() -> None:
    # GLM-4.5's class takes 4096 // 96; only the published config states 128.
    config = LLAMA | {"model_type": "glm4_moe", "num_attention_heads": 96}
    assert specify(config).attentions[0].head_dim == 42


@pytest.mark.parametrize("scaling", [None, {}, {"rope_type": "llama3", "factor": 8.0}])
def test_that_scalings_that_change_no_length_change_none(scaling: object) -> None:
    assert specify(LLAMA | {"rope_scaling": scaling}).max_position_embeddings == 131_072


def test_that_a_model_without_heads_is_a_bound_and_no_error() -> None:
    spec = specify(RWKV | {"model_type": "rwkv9"})
    assert {d.subject for d in spec.doubts} == {Subject.WEIGHTS, Subject.SEQUENCE_STATE}
    assert {d.direction for d in spec.doubts} == {Direction.EITHER}


def test_that_a_long_name_of_a_layer_kind_is_not_repeated_in_full() -> None:
    spec = specify(LLAMA | {"model_type": "qwen3", "layer_types": ["x" * 5_000] * 32})
    assert max(len(doubt.reason) for doubt in spec.doubts) < 300


def test_that_a_lone_header_of_recurrent_layers_is_read_and_its_state_left_open() -> None:
    # state-spaces/mamba-130m: the shapes of its checkpoint, 129,135,360 parameters in all.
    shapes = {"backbone.embeddings.weight": (50280, 768), "backbone.norm_f.weight": (768,)}
    for layer in range(24):
        path = f"backbone.layers.{layer}."
        shapes |= {
            path + "norm.weight": (768,), path + "mixer.A_log": (1536, 16),
            path + "mixer.D": (1536,), path + "mixer.conv1d.weight": (1536, 1, 4),
            path + "mixer.conv1d.bias": (1536,), path + "mixer.dt_proj.weight": (1536, 48),
            path + "mixer.dt_proj.bias": (1536,), path + "mixer.in_proj.weight": (3072, 768),
            path + "mixer.out_proj.weight": (768, 1536), path + "mixer.x_proj.weight": (80, 1536),
        }  # fmt: skip
    tensors = tuple(HeaderTensor(name, "BF16", shape, 0) for name, shape in shapes.items())
    model = read(RawModel("x", "test", tensors=tensors))
    assert model.parameters == 129_135_360
    (doubt,) = model.spec.doubts
    assert (doubt.subject, doubt.direction) == (Subject.SEQUENCE_STATE, Direction.LOWER)


def test_that_a_model_keeps_the_type_of_its_whole_config() -> None:
    entry = catalogue.find("google/gemma-3-27b-it")
    assert entry is not None
    spec = read(catalogue.raw(entry)).spec
    assert (entry.model_type, spec.root_type, spec.model_type) == (
        "gemma3",
        "gemma3",
        "gemma3_text",
    )


def test_that_a_class_of_the_repositorys_own_code_is_a_doubt() -> None:
    # jina-embeddings-v2-base-en says "bert" and builds gated layers without a position table.
    stated = LLAMA | {"model_type": "qwen2", "architectures": ["JinaQwenForCausalLM"]}
    spec = specify(stated)
    assert {d.subject for d in spec.doubts} == {Subject.WEIGHTS, Subject.SEQUENCE_STATE}
    assert "JinaQwenForCausalLM is code of its repository" in spec.doubts[0].reason
    for known in ("Qwen2ForCausalLM", "Qwen2ForSequenceClassification", "Qwen2Model"):
        assert not specify(stated | {"architectures": [known]}).doubts
    # Qwen2.5-Math-RM scores by two matrices, other reward models by one.
    scored = specify(stated | {"architectures": ["Qwen2ForRewardModel"]})
    assert scored.direction(Subject.WEIGHTS) is Direction.EITHER
    assert scored.direction(Subject.SEQUENCE_STATE) is None


def test_that_a_config_of_a_hundred_thousand_keys_is_refused() -> None:
    with pytest.raises(ConfigError, match="100,0"):
        specify(LLAMA | {f"key_{i}": i for i in range(100_000)})


PLAIN = {
    "model_type": "nobody_knows", "hidden_size": 1024, "intermediate_size": 4096,
    "num_attention_heads": 16, "num_key_value_heads": 4, "num_hidden_layers": 12,
    "vocab_size": 32000,
}  # fmt: skip


@pytest.mark.parametrize(
    "stated",
    [
        {"head_size": 256},
        {"v_head_dim": 256},
        {"kv_dim": 4096},
        {"total_ut_steps": 4},  # Ouro keeps a cache for each of four passes
        {"num_loops": 4},
        {"layer_types": ["linear_attention"] * 12},
        {"hybrid_override_pattern": "MMMM"},
        {"per_layer_config": {"1": {"head_dim": 512}}},
        {"n_layers": 24},
        {"num_kv_heads": 16},
        {"num_meta_tokens": 128},
        {"talker_config": {"num_hidden_layers": 3}},
    ],
)
def test_that_what_may_keep_more_makes_no_upper_bound(stated: dict[str, Any]) -> None:
    assert specify(PLAIN).direction(Subject.SEQUENCE_STATE) is Direction.UPPER
    assert specify(PLAIN | stated).direction(Subject.SEQUENCE_STATE) is Direction.EITHER


@pytest.mark.parametrize(
    "stated",
    [
        {"mlp_type": "geglu"},
        {"attention_type": "mla"},
        {"layer_pattern": "MMMMMM"},
        {"ffn_multiplier": 2.5},
        {"extra_mlp": True},
        {"num_loops": 4},
    ],
)
def test_that_a_known_type_with_an_unknown_choice_is_a_doubt(stated: dict[str, Any]) -> None:
    spec = specify(PLAIN | {"model_type": "llama"} | stated)
    assert spec.direction(Subject.WEIGHTS) is not None


def test_that_prediction_blocks_of_no_known_layout_are_said() -> None:
    stated = LLAMA | {"num_nextn_predict_layers": 1}
    model = read(RawModel("x", "test", config=stated))
    assert any("prediction block (MTP)" in note for note in model.notes)
    assert model.parameters == read(RawModel("x", "test", config=LLAMA)).parameters


def test_that_a_missing_dtype_is_said_to_be_assumed() -> None:
    silent = {k: v for k, v in LLAMA.items() if k not in ("dtype", "torch_dtype")}
    assert any("no dtype" in note for note in read(RawModel("x", "test", config=silent)).notes)


def test_that_published_leftovers_of_training_are_no_doubt() -> None:
    # bloom-560m as published: 559,214,592 parameters.
    bloom = {
        "model_type": "bloom", "architectures": ["BloomForCausalLM"], "n_embed": 1024,
        "n_layer": 24, "num_attention_heads": 16, "vocab_size": 250880, "skip_bias_add": True,
        "masked_softmax_fusion": True, "attention_softmax_in_fp32": True, "torch_dtype": "float16",
    }  # fmt: skip
    spec = specify(bloom)
    assert spec.parameters == 559_214_592
    assert not spec.doubts


@pytest.mark.parametrize("kind", ["audioflamingo3", "musicflamingo"])
def test_that_a_class_that_never_ties_does_not(kind: str) -> None:
    untied = specify({"model_type": kind})
    assert (
        specify({"model_type": kind, "tie_word_embeddings": True}).parameters == untied.parameters
    )
