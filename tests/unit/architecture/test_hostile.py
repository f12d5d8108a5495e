"""Mutated configs: a model or one clear error, never anything else."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from engine.architecture.families.registry import FAMILIES
from engine.architecture.read import read
from engine.architecture.towers.encoders import VISION_ENCODERS
from engine.architecture.towers.registry import TOWERS
from engine.errors import ConfigError, UnknownArchitectureError
from engine.source.raw import RawModel

SMALL: dict[str, Any] = {
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 48,
    "moe_intermediate_size": 16,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "num_experts": 4,
    "num_local_experts": 4,
    "n_routed_experts": 4,
    "n_shared_experts": 1,
    "num_experts_per_tok": 2,
    "sliding_window": 16,
    "layer_types": ["full_attention", "sliding_attention"] * 2,
    "mlp_layer_types": ["dense", "sparse"] * 2,
    "first_k_dense_replace": 1,
    "kv_lora_rank": 8,
    "q_lora_rank": 8,
    "qk_nope_head_dim": 8,
    "qk_rope_head_dim": 4,
    "v_head_dim": 8,
    "rope_scaling": {"type": "linear", "factor": 2.0},
    "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]},
    "text_config": None,
    "vision_config": None,
    "architectures": ["XForCausalLM"],
    "torch_dtype": "bfloat16",
    "tie_word_embeddings": False,
    "attention_bias": False,
    "max_position_embeddings": 128,
    "hybrid_override_pattern": "M*E-",
    "id2label": {"0": "a"},
    "block_configs": [
        {"attention": {"n_heads_in_group": 2}, "ffn": {"ffn_mult": 1.5}},
        {"attention": {"no_op": True}, "ffn": {"replace_with_linear": True}},
    ]
    * 2,
}
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text(max_size=12)
    | st.sampled_from(["full_attention", "mamba", "dense", "fp8", "gptq", "float16", "M" * 300])
)
ENCODER_KEYS = [
    "depths", "embed_dim", "hidden_size", "hidden_sizes", "image_size", "intermediate_size",
    "layer_scale_init_value", "mlp_ratio", "num_attention_heads", "num_heads",
    "num_hidden_layers", "num_stages", "patch_size", "spatial_merge_size", "window_size",
]  # fmt: skip
garbage = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=8,
)


def answers(config: object) -> None:
    try:
        model = read(RawModel("x", "test", config=config))  # pyright: ignore[reportArgumentType]
    except (ConfigError, UnknownArchitectureError) as error:
        message = error.message
    else:
        message = ""
        assert model.parameters > 0
        assert len(model.spec.layers) <= 1024
    assert len(message) < 400


@given(
    st.sampled_from([*sorted(FAMILIES), "", "unheard_of", "gemma3", "llava", "kimi_k25"]),
    st.dictionaries(st.sampled_from(sorted(SMALL)), garbage, max_size=3),
    st.sets(st.sampled_from(sorted(SMALL)), max_size=4),
)
def test_that_a_mutated_config_gives_a_model_or_one_clear_error(
    model_type: str, changes: dict[str, Any], missing: set[str]
) -> None:
    config = {"model_type": model_type} | SMALL | changes
    answers({k: v for k, v in config.items() if k not in missing or k in changes})


@given(st.sampled_from(sorted(TOWERS)), garbage)
def test_that_a_garbage_sub_config_gives_a_model_or_one_clear_error(
    model_type: str, sub: object
) -> None:
    answers({"model_type": model_type, "text_config": SMALL, "vision_config": sub})
    answers({"model_type": model_type, "text_config": sub, "audio_config": sub})


@given(
    st.sampled_from(sorted(VISION_ENCODERS)),
    st.dictionaries(st.sampled_from(ENCODER_KEYS), garbage, max_size=3),
)
def test_that_a_garbage_encoder_gives_a_model_or_one_clear_error(
    kind: str, changes: dict[str, Any]
) -> None:
    answers(
        {
            "model_type": "llava",
            "text_config": SMALL,
            "vision_config": {"model_type": kind} | changes,
        }
    )


@given(garbage, garbage)
def test_that_a_garbage_rotation_is_survived(kind: object, factor: object) -> None:
    rotation = {"rope_type": kind, "factor": factor}
    answers({"model_type": "llama"} | SMALL | {"rope_parameters": rotation})


@given(garbage)
def test_that_garbage_is_no_config(config: object) -> None:
    answers(config)


@given(garbage)
def test_that_a_garbage_quantisation_is_survived(quantisation: object) -> None:
    answers({"model_type": "llama"} | SMALL | {"quantization_config": quantisation})
