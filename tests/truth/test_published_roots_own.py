"""Published models of unusual shapes, whose types have code of their own, and their totals.

Dimensions are facts of the models' configs, totals what the Hub states of their safetensors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from engine.architecture.read import specify
from engine.architecture.spec import Direction, Subject
from engine.runtimes.transformers.cache import layer_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping

OPENVLA: dict[str, object] = {
    "model_type": "openvla", "architectures": ["OpenVLAForActionPrediction"],
    "arch_specifier": "no-align+fused-gelu-mlp", "hf_llm_id": "meta-llama/Llama-2-7b-hf",
    "image_sizes": [224, 224], "llm_backbone_id": "llama2-7b-pure", "n_action_bins": 256,
    "norm_stats": {"bridge_orig": {}}, "pad_to_multiple_of": 64,
    "text_config": {"model_type": "llama", "vocab_size": 32_064},
    "timm_override_act_layers": [None, None], "use_fused_vision_backbone": True,
    "vision_backbone_id": "dinosiglip-vit-so-224px",
}  # fmt: skip
HUGINN: dict[str, object] = {
    "model_type": "huginn_raven", "architectures": ["RavenForCausalLM"], "n_embd": 5_280,
    "n_heads": 55, "n_layers": 8, "n_layers_in_prelude": 2, "n_layers_in_recurrent_block": 4,
    "n_layers_in_coda": 2, "head_dim": 96, "num_key_value_heads": 55, "intermediate_size": 17_920,
    "vocab_size": 65_536, "padded_vocab_size": 65_536, "mean_recurrence": 32, "qk_bias": True,
    "bias": False, "tie_embeddings": True, "injection_type": "linear",
    "block_class_name": "SandwichBlock", "mlp_class_name": "GatedMLP",
}  # fmt: skip
DPR = {"model_type": "dpr", "architectures": ["DPRQuestionEncoder"], "projection_dim": 0}
PROGEN: dict[str, object] = {
    "model_type": "progen", "architectures": ["ProGenForCausalLM"], "n_positions": 2_048,
    "activation_function": "gelu_new", "n_inner": None, "tie_word_embeddings": False,
}  # fmt: skip
PLAMO: dict[str, object] = {
    "model_type": "plamo2", "architectures": ["Plamo2ForCausalLM"], "hidden_size": 2_048,
    "num_hidden_layers": 16, "num_attention_heads": 16, "num_key_value_heads": 1,
    "hidden_size_per_head": 128, "intermediate_size": 8_192, "vocab_size": 100_000,
    "mamba_num_heads": 32, "mamba_d_state": 64, "mamba_d_conv": 4, "mamba_step": 2,
    "mamba_chunk_size": 256, "tie_word_embeddings": True, "torch_dtype": "bfloat16",
}  # fmt: skip
SOLAR: dict[str, object] = {
    "model_type": "solar_open2", "architectures": ["SolarOpen2ForCausalLM"], "hidden_size": 4_096,
    "num_hidden_layers": 48, "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 128,
    "vocab_size": 196_608, "intermediate_size": 10_240, "moe_intermediate_size": 1_280,
    "n_routed_experts": 320, "n_shared_experts": 1, "num_experts_per_tok": 8, "gqa_interval": 3,
    "gqa_layers": list(range(0, 48, 4)), "first_k_dense_replace": 0, "torch_dtype": "bfloat16",
    "linear_attn_config": {
        "short_conv_kernel_size": 4, "head_dim": 128, "num_heads": 64, "num_kv_heads": None,
    },
}  # fmt: skip
OVIS: dict[str, object] = {
    "model_type": "ovis2_5", "architectures": ["Ovis2_5"], "visual_vocab_size": 65_536,
    "vit_config": {
        "model_type": "siglip2_navit", "hidden_size": 1_152, "intermediate_size": 4_304,
        "num_hidden_layers": 27, "num_attention_heads": 16, "image_size": 512, "patch_size": 16,
        "num_channels": 3, "num_patches": -1, "hidden_stride": 2, "window_size": 112,
        "temporal_patch_size": 1, "preserve_original_pe": True, "use_rope": True,
        "fullatt_block_indexes": None,
    },
}  # fmt: skip
QWEN3: dict[str, object] = {
    "model_type": "qwen3", "vocab_size": 151_936, "num_key_value_heads": 8, "head_dim": 128,
}  # fmt: skip
JINA: dict[str, object] = {
    "model_type": "xlm-roberta", "architectures": ["XLMRobertaModel"], "hidden_size": 1_024,
    "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4_096,
    "vocab_size": 250_002, "max_position_embeddings": 8_194, "type_vocab_size": 1,
    "position_embedding_type": "rotary", "lora_rank": 4, "lora_alpha": 1, "use_flash_attn": True,
    "lora_adaptations": [
        "retrieval.query", "retrieval.passage", "separation", "classification", "text-matching",
    ],
    "lora_dropout_p": 0.0, "lora_main_params_trainable": False, "emb_pooler": None,
    "matryoshka_dimensions": [32, 64, 128, 256, 512, 768, 1_024], "truncate_dim": None,
    "task_instructions": {"separation": ""}, "load_trained_adapters": True,
}  # fmt: skip
EXACT: dict[str, tuple[Mapping[str, object], int]] = {
    "openvla/openvla-7b-finetuned-libero-spatial": (OPENVLA, 7_541_237_184),
    "hugohrban/progen2-small": (
        {
            **PROGEN,
            "embed_dim": 1_024,
            "n_layer": 12,
            "n_head": 16,
            "rotary_dim": 32,
            "vocab_size_emb": 32,
            "vocab_size_lm_head": 32,
        },
        151_148_576,
    ),
    "hugohrban/progen2-large": (
        {
            **PROGEN,
            "embed_dim": 2_560,
            "n_layer": 32,
            "n_head": 32,
            "rotary_dim": 64,
            "vocab_size_emb": 51_200,
            "vocab_size_lm_head": 51_200,
        },
        2_779_356_160,
    ),
    "fla-hub/transformer-1.3B-100B": (
        {
            "model_type": "transformer",
            "hidden_size": 2_048,
            "hidden_ratio": 4,
            "num_heads": 32,
            "intermediate_size": None,
            "num_hidden_layers": 24,
            "num_kv_heads": None,
            "vocab_size": 32_000,
            "qkv_bias": False,
            "window_size": None,
            "fuse_norm": True,
            "fuse_cross_entropy": True,
            "tie_word_embeddings": False,
        },
        1_364_297_728,
    ),
    "Motif-Technologies/Motif-2.6B": (
        {
            "model_type": "Motif",
            "num_hidden_layers": 32,
            "num_attention_heads": 16,
            "num_key_value_heads": 16,
            "hidden_size": 2_048,
            "vocab_size": 219_520,
            "intermediate_size": 8_192,
            "hidden_act": "poly_norm",
            "max_window_layers": 28,
            "sliding_window": None,
            "use_sliding_window": False,
            "tie_word_embeddings": True,
        },
        2_597_218_432,
    ),
    "upstage/Solar-Open2-250B": (SOLAR, 250_287_810_304),
    "AIDC-AI/Ovis2.5-9B": (
        {
            **OVIS,
            "llm_config": {
                **QWEN3,
                "num_hidden_layers": 36,
                "num_attention_heads": 32,
                "hidden_size": 4_096,
                "intermediate_size": 12_288,
                "tie_word_embeddings": False,
            },
        },
        9_174_807_784,
    ),
    "AIDC-AI/Ovis2.5-2B": (
        {
            **OVIS,
            "llm_config": {
                **QWEN3,
                "num_hidden_layers": 28,
                "num_attention_heads": 16,
                "hidden_size": 2_048,
                "intermediate_size": 6_144,
                "tie_word_embeddings": True,
            },
        },
        2_570_429_672,
    ),
    "jinaai/jina-embeddings-v3": (JINA, 572_310_396),
    "allenai/OLMo-1B": (
        {
            "model_type": "olmo",
            "architectures": ["OLMoForCausalLM"],
            "d_model": 2_048,
            "n_layers": 16,
            "n_heads": 16,
            "mlp_ratio": 8,
            "vocab_size": 50_280,
            "embedding_size": 50_304,
            "weight_tying": True,
            "block_type": "sequential",
            "layer_norm_type": "default",
            "activation_type": "swiglu",
        },
        1_176_764_416,
    ),
    "bigcode/santacoder": (
        {
            "model_type": "gpt2",
            "architectures": ["GPT2LMHeadCustomModel"],
            "n_embd": 2_048,
            "attention_head_type": "multiquery",
            "n_layer": 24,
            "n_head": 16,
            "n_inner": 8_192,
            "n_positions": 2_048,
            "vocab_size": 49_280,
        },
        1_124_886_528,
    ),
    "pfnet/plamo-2-1b": (PLAMO, 1_291_441_920),
    # BERT (109,482,240) without its pooler.
    "facebook/dpr-question_encoder-single-nq-base": (DPR, 109_482_240 - 768 * 769),
}


@pytest.mark.parametrize("name", EXACT)
def test_that_it_has_its_published_total(name: str) -> None:
    stated, total = EXACT[name]
    spec = specify(stated)
    assert spec.parameters == total
    assert not spec.doubts


def test_that_passes_over_the_same_layers_keep_a_cache_each() -> None:
    """The file of huginn-0125 also holds the tied head and a table of rotations."""
    spec = specify(HUGINN)
    assert spec.parameters == 3_911_400_096 - 65_536 * 5_280 - 4_096 * 96
    caches = sum(layer.attention.caches for layer in spec.layers if layer.attention)
    assert caches == 2 + 4 * 32 + 2
    assert spec.direction(Subject.WEIGHTS) is None
    assert spec.direction(Subject.SEQUENCE_STATE) is Direction.EITHER


def test_that_another_backbone_than_the_known_one_is_not_guessed() -> None:
    spec = specify({**OPENVLA, "vision_backbone_id": "siglip-vit-so400m"})
    # Llama 2 7B with 64 words more.
    assert spec.parameters == 6_738_415_616 + 2 * 64 * 4_096
    assert spec.direction(Subject.WEIGHTS) is Direction.LOWER


def test_that_every_second_layer_of_plamo_keeps_a_state() -> None:
    """Three columns of the convolution in bf16, 32 matrices of 128 x 64 in fp32."""
    states = 8 * (32 * 128 * 3 * 2 + 32 * 128 * 64 * 4)
    keys = 8 * 2 * 128 * 2
    spec = specify(PLAMO)
    kept = [sum(layer_bytes(x, tokens, "bfloat16") for x in spec.layers) for tokens in (1, 101)]
    assert kept == [states + keys, states + 101 * keys]


def test_that_every_fourth_layer_of_solar_keeps_keys_and_values() -> None:
    """The others: four inputs of three convolutions in bf16, 64 matrices of 128 x 128 in fp32."""
    states = 36 * (3 * 64 * 128 * 4 * 2 + 64 * 128 * 128 * 4)
    keys = 12 * 2 * 8 * 128 * 2
    spec = specify(SOLAR)
    kept = [sum(layer_bytes(x, tokens, "bfloat16") for x in spec.layers) for tokens in (1, 101)]
    assert kept == [states + keys, states + 101 * keys]
