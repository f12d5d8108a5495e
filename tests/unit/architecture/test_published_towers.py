"""Multimodal models whose code is published with their weights, against their published totals."""

from __future__ import annotations

from typing import Any

import pytest

from engine.architecture.read import specify
from engine.architecture.towers.registry import TOWERS
from engine.config.nesting import root_facts, text_facts


def beside(config: dict[str, Any]) -> int:
    """Parameters of everything beside the text model."""
    root = root_facts(config)
    return sum(t.parameters for t in TOWERS[root.model_type](root, text_facts(root)))


def linear(width: int, out: int) -> int:
    return width * out + out


LLAMA = {
    "model_type": "llama", "vocab_size": 128256, "num_attention_heads": 32,
    "num_key_value_heads": 8,
}  # fmt: skip
PERCEPTION = [
    (
        "vit_pe_core_large_patch14_336", {"embed_dim": 1024, "depth": 23},
        {"hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16, "head_dim": 64,
         "tie_word_embeddings": True},
        1_533_524_992,
    ),
    (
        "vit_pe_core_gigantic_patch14_448", {"embed_dim": 1536, "depth": 47},
        {"hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "head_dim": 128},
        9_794_260_736,
    ),
]  # fmt: skip


@pytest.mark.parametrize(("name", "size", "text", "published"), PERCEPTION)
def test_perception_lm_has_its_published_total(
    name: str, size: dict[str, int], text: dict[str, Any], published: int
) -> None:
    args = {
        **size, "img_size": [448, 448], "global_pool": "", "use_post_transformer_norm": False,
        "init_values": 0.1, "ref_feat_shape": [32, 32],
    }  # fmt: skip
    vision = {"model_type": "timm_wrapper", "architecture": name, "model_args": args}
    config = {
        "model_type": "perception_lm", "text_config": {**LLAMA, **text}, "vision_config": vision,
        "architectures": ["PerceptionLMForConditionalGeneration"],
    }  # fmt: skip
    spec = specify(config)
    assert spec.parameters == published
    assert not spec.doubts
    pooling = {**vision, "model_args": size}
    assert specify({**config, "vision_config": pooling}).doubts


def llama(hidden: int, width: int, layers: int, heads: tuple[int, int], vocab: int) -> Any:
    """The usual fields of a decoder, as published files state them."""
    return {
        "hidden_size": hidden, "intermediate_size": width, "num_hidden_layers": layers,
        "num_attention_heads": heads[0], "num_key_value_heads": heads[1], "vocab_size": vocab,
        "tie_word_embeddings": False,
    }  # fmt: skip


SO400M = {
    "hidden_size": 1152, "intermediate_size": 4304, "num_hidden_layers": 27, "image_size": 980,
    "patch_size": 14,
}  # fmt: skip
MOONVIT = {
    "model_type": "moonvit", "hidden_size": 1152, "intermediate_size": 4304,
    "num_hidden_layers": 27, "patch_size": 14, "init_pos_emb_height": 64,
    "init_pos_emb_width": 64, "merge_kernel_size": [2, 2],
}  # fmt: skip
TINY_DEEPSEEK = {
    "model_type": "deepseek_v2", **llama(1280, 6848, 12, (10, 10), 129280), "use_mla": False,
    "kv_lora_rank": None, "q_lora_rank": None, "qk_nope_head_dim": 0, "qk_rope_head_dim": 0,
    "v_head_dim": 0, "moe_intermediate_size": 896, "n_routed_experts": 64, "n_shared_experts": 2,
    "num_experts_per_tok": 6, "first_k_dense_replace": 1,
}  # fmt: skip
MOONLIGHT = {
    "model_type": "deepseek_v3", **llama(2048, 11264, 27, (16, 16), 163840), "kv_lora_rank": 512,
    "q_lora_rank": None, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
    "moe_intermediate_size": 1408, "n_routed_experts": 64, "n_shared_experts": 2,
    "num_experts_per_tok": 6, "first_k_dense_replace": 1, "num_nextn_predict_layers": 0,
}  # fmt: skip
ALIGNED = {"depth": 2, "projector_type": "mlp_gelu"}
SIGLIP_L = {"params": {"model_name": "siglip_large_patch16_384", "image_size": 384}}
FIRST_LLAVA = {
    "mm_vision_tower": "openai/clip-vit-large-patch14-336", "mm_hidden_size": 1024,
    "mm_projector_type": "mlp2x_gelu", "mm_vision_select_layer": -2,
}  # fmt: skip
# Totals of safetensors that the Hub states.
PUBLISHED: dict[str, tuple[dict[str, Any], int]] = {
    "OpenGVLab/InternVL2-26B": (
        {
            "model_type": "internvl_chat", "architectures": ["InternVLChatModel"],
            "downsample_ratio": 0.5,
            "llm_config": {
                "model_type": "internlm2", **llama(6144, 16384, 48, (48, 8), 92553), "bias": False,
            },
            "vision_config": {
                "model_type": "intern_vit_6b", "hidden_size": 3200, "num_hidden_layers": 45,
                "intermediate_size": 12800, "image_size": 448, "patch_size": 14,
                "qkv_bias": False, "qk_normalization": True, "norm_type": "rms_norm",
            },
        },
        25_514_186_112,
    ),
    "deepseek-ai/deepseek-vl2-tiny": (
        {
            "model_type": "deepseek_vl_v2", "language_config": TINY_DEEPSEEK, "tile_tag": "2D",
            "projector_config": {"n_embed": 1280},
            "vision_config": {
                "model_name": "siglip_so400m_patch14_384", "width": 1152, "layers": 27,
                "mlp_ratio": 3.7362, "patch_size": 14,
            },
        },
        3_370_501_440,
    ),
    "deepseek-ai/DeepSeek-OCR": (
        {
            "model_type": "deepseek_vl_v2", "language_config": TINY_DEEPSEEK, "tile_tag": "2D",
            "projector_config": {"n_embed": 1280, "projector_type": "linear"},
            "vision_config": {"model_name": "deeplip_b_l"},
        },
        3_336_106_240,
    ),
    "deepseek-ai/deepseek-vl-1.3b-chat": (
        {
            "model_type": "multi_modality", "vision_config": SIGLIP_L,
            "aligner_config": {"params": {**ALIGNED, "input_dim": 1024, "n_embed": 2048}},
            "language_config": {"model_type": "llama", **llama(2048, 5632, 24, (16, 16), 102400)},
        },
        1_975_235_584,
    ),
    "openbmb/MiniCPM-V-2_6": (
        {
            "model_type": "minicpmv", "version": 2.6, "query_num": 64, "vision_config": SO400M,
            **llama(3584, 18944, 28, (28, 4), 151666),
        },
        8_099_175_152,
    ),
    "openbmb/MiniCPM-V-4": (
        {
            "model_type": "minicpmv", "version": 4.0, "query_num": 64, "vision_config": SO400M,
            **llama(2560, 10240, 32, (32, 2), 73448), "head_dim": 128,
        },
        4_059_533_040,
    ),
    "openbmb/MiniCPM-V-4_5": (
        {
            "model_type": "minicpmv", "version": 4.5, "query_num": 64, "vision_config": SO400M,
            **llama(4096, 12288, 36, (32, 8), 151748), "head_dim": 128,
        },
        8_695_895_280,
    ),
    "openbmb/MiniCPM-Llama3-V-2_5": (
        {
            "model_type": "minicpmv", "query_num": 96, "vision_config": SO400M,
            **llama(4096, 14336, 32, (32, 8), 128256),
        },
        8_537_092_336,
    ),
    "microsoft/Phi-3.5-vision-instruct": (
        {
            "model_type": "phi3_v", **llama(3072, 8192, 32, (32, 32), 32064),
            "embd_layer": {"use_hd_transform": True, "with_learnable_separator": True},
            "img_processor": {"name": "clip_vision_model", "image_dim_out": 1024},
        },
        4_146_621_440,
    ),
    "allenai/Molmo-72B-0924": (
        {
            "model_type": "molmo", **llama(8192, 59136, 80, (64, 8), 152064), "qkv_bias": True,
            "embedding_size": 152064, "layer_norm_type": "rms", "attention_layer_norm": False,
        },
        73_308_285_952,
    ),
    "PULSE-ECG/PULSE-7B": (
        {
            "model_type": "llava_llama", **llama(4096, 11008, 32, (32, 32), 32000), **FIRST_LLAVA,
            "mm_patch_merge_type": "spatial_unpad",
        },
        7_062_906_880,
    ),
    "FreedomIntelligence/HuatuoGPT-Vision-7B": (
        {"model_type": "llava_qwen2", **llama(3584, 18944, 28, (28, 4), 152064), **FIRST_LLAVA},
        7_935_646_208,
    ),
    "nvidia/Eagle2-2B": (
        {
            "model_type": "eagle_2_5_vl", "downsample_ratio": 0.5, "mlp_connector_layers": 2,
            "vision_config": {"model_type": "siglip_vision_model", **SO400M, "image_size": 448},
            "text_config": {"model_type": "qwen2", **llama(1536, 8960, 28, (12, 2), 151674)},
        },
        2_214_298_048,
    ),
    "allenai/Molmo2-O-7B": (
        {
            "model_type": "molmo2",
            "adapter_config": {"intermediate_size": 11008, "text_hidden_size": 4096},
            "text_config": {
                **llama(4096, 11008, 32, (32, 32), 100278), "head_dim": 128, "norm_after": True,
                "qk_norm_type": "olmo",
            },
        },
        7_760_786_896,
    ),
    "OpenGVLab/InternVL3_5-8B-HF": (
        {
            "model_type": "internvl", "tie_word_embeddings": False,
            "vision_config": {"model_type": "internvl_vision", "attention_bias": True},
            "text_config": {
                "model_type": "qwen3", **llama(4096, 12288, 36, (32, 8), 151936), "head_dim": 128,
            },
        },
        8_528_318_464,
    ),
    "thisisiron/Ovis2-1B-hf": (
        {
            "model_type": "ovis2", "hidden_size": 896, "vocab_size": 151936,
            "text_config": {"model_type": "qwen2", **llama(896, 4864, 24, (14, 2), 151936)},
            "vision_config": {"vocab_size": 65536, "hidden_stride": 2, "image_size": 448},
        },
        1_131_283_318,
    ),
    "AIDC-AI/Ovis1.6-Llama3.2-3B": (
        {
            "model_type": "ovis",
            "llm_config": {
                "model_type": "llama", **llama(3072, 8192, 28, (24, 8), 128256), "head_dim": 128,
                "tie_word_embeddings": True,
            },
            "visual_tokenizer_config": {
                "vocab_size": 65536, "hidden_stride": 2,
                "backbone_config": {
                    "model_type": "siglip_vision_model", **SO400M, "image_size": 384,
                },
            },
        },
        4_144_399_926,
    ),
    # Stored with the head beside the embedding that it is tied to.
    "AIDC-AI/Ovis2-4B": (
        {
            "model_type": "ovis",
            "llm_config": {"model_type": "qwen2", **llama(2048, 11008, 36, (16, 2), 151936)},
            "visual_tokenizer_config": {
                "vocab_size": 65536, "hidden_stride": 2,
                "backbone_config": {
                    "model_type": "aimv2", "hidden_size": 1536, "intermediate_size": 4096,
                    "num_hidden_layers": 24, "image_size": 448, "patch_size": 14,
                    "qkv_bias": False, "use_bias": False,
                },
            },
        },
        4_616_106_486,
    ),
    # Stored with the head beside the embedding it is tied to: 152,681 rows of 2,048 more.
    "nvidia/LocateAnything-3B": (
        {
            "model_type": "locateanything", "vision_config": MOONVIT, "mlp_connector_layers": 2,
            "text_config": {
                "model_type": "qwen2", **llama(2048, 11008, 36, (16, 2), 152681),
                "tie_word_embeddings": True,
            },
        },
        3_830_665_968 - 152_681 * 2_048,
    ),
    # Stored with 3,392 values of buffers, as many as its text model Moonlight-16B-A3B has.
    "moonshotai/Kimi-VL-A3B-Instruct": (
        {"model_type": "kimi_vl", "vision_config": MOONVIT, "text_config": MOONLIGHT},
        16_407_657_776 - 3_392,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PUBLISHED)
def test_that_a_root_with_published_code_has_its_published_total(name: str) -> None:
    config, total = PUBLISHED[name]
    spec = specify(config)
    assert spec.parameters == total
    assert not spec.doubts


def test_janus_as_first_published_writes_as_its_class_does() -> None:
    parts = {
        "aligner_config": {"params": {**ALIGNED, "input_dim": 1024, "n_embed": 2048}},
        "gen_aligner_config": {"params": {**ALIGNED, "input_dim": 8, "n_embed": 2048}},
        "gen_head_config": {"params": {"image_token_embed": 2048}},
        "gen_vision_config": {"params": {"image_token_size": 16384}},
    }
    first = beside({"model_type": "multi_modality", "vision_config": SIGLIP_L, **parts})
    own = {"hidden_size": 1024, "num_hidden_layers": 24, "image_size": 384, "patch_size": 16}
    pooling = 1024 + 4 * linear(1024, 1024) + 2 * 1024 + linear(1024, 4096) + linear(4096, 1024)
    assert first == beside({"model_type": "janus", "vision_config": own}) + pooling


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("OpenGVLab/InternVL2-26B", {"use_llm_lora": 8}),
        ("deepseek-ai/deepseek-vl2-tiny", {"tile_tag": "1D"}),
        ("deepseek-ai/DeepSeek-OCR", {"projector_config": {"projector_type": "identity"}}),
        ("deepseek-ai/deepseek-vl-1.3b-chat", {"aligner_config": {"params": {}}}),
        ("openbmb/MiniCPM-V-2_6", {"version": 9.9}),
        ("microsoft/Phi-3.5-vision-instruct", {"img_processor": {"name": "other"}}),
        ("allenai/Molmo-72B-0924", {"embedding_size": 152128}),
        ("PULSE-ECG/PULSE-7B", {"mm_vision_tower": "mobileclip_l_1024"}),
        ("nvidia/LocateAnything-3B", {"mlp_connector_layers": 1}),
        ("nvidia/Eagle2-2B", {"mlp_connector_layers": 1}),
        ("AIDC-AI/Ovis2-4B", {"visual_tokenizer_config": {"backbone_config": {}}}),
    ],
)
def test_that_what_was_not_compared_is_in_doubt(name: str, changed: dict[str, Any]) -> None:
    config, _ = PUBLISHED[name]
    assert specify({**config, **changed}).doubts
