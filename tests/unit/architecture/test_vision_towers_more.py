"""Towers of multimodal models, each against arithmetic by hand on a small config.

Each sum is written in the order of the rule: patches, positions, layers, norm, projector. What
recurs is named once: a plain layer is 4 wide, with an MLP of 8 and biases everywhere.
"""

from __future__ import annotations

from typing import Any

import pytest

from engine.architecture.read import specify
from engine.architecture.spec import ModuleClass
from engine.architecture.towers.encoders import encoder
from engine.architecture.towers.registry import TOWERS
from engine.config.facts import facts_for
from engine.config.nesting import root_facts, text_facts
from engine.errors import ConfigError

SMALL = {
    "hidden_size": 4, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2,
    "num_channels": 3, "image_size": 4, "patch_size": 2,
}  # fmt: skip
TEXT = {"hidden_size": 6}
ATTENTION = 4 * (4 * 4 + 4)
MLP = (4 * 8 + 8) + (8 * 4 + 4)
NORMS = 2 * (4 + 4)
LAYER = ATTENTION + MLP + NORMS
PATCH = 12 * 4 + 4
SIGLIP = PATCH + 4 * 4 + LAYER + 8
CLIP = 12 * 4 + 4 + 5 * 4 + 8 + LAYER + 8


def beside(config: dict[str, Any]) -> int:
    """Parameters of everything beside the text model."""
    root = root_facts(config)
    return sum(t.parameters for t in TOWERS[root.model_type](root, text_facts(root)))


def linear(width: int, out: int) -> int:
    return width * out + out


def test_internvl_has_layer_scale_and_no_bias_of_queries() -> None:
    layer = 3 * 16 + 20 + MLP + NORMS + 2 * 4
    projector = 2 * 16 + linear(16, 6) + linear(6, 6)
    vision = {**SMALL, "image_size": [4, 4], "patch_size": [2, 2]}
    config = {"model_type": "internvl", "vision_config": vision, "text_config": TEXT}
    assert beside(config) == PATCH + 4 + 5 * 4 + layer + projector
    further = {**vision, "attention_bias": True, "use_qk_norm": True, "use_mean_pooling": False}
    more = 3 * 4 + 2 * 4 + 2 * 4
    assert beside({**config, "vision_config": further}) == beside(config) + more


def test_mllama_places_tiles_by_aspect_ratio() -> None:
    vision = {
        **SMALL, "num_global_layers": 1, "max_num_tiles": 2, "vision_output_dim": 12,
        "supported_aspect_ratios": [[1, 1], [1, 2]],
    }  # fmt: skip
    tiles = 3 * (2 * 5 * 4) + 1 + 2 * (3 * 2 * 4 + 1)
    layer = 4 * 16 + MLP + NORMS
    expected = 12 * 4 + 4 + 5 * 4 + tiles + 2 * 8 + 2 * layer + 2 + linear(12, 6)
    config = {"model_type": "mllama", "vision_config": vision, "text_config": TEXT}
    assert beside(config) == expected
    assert beside({**config, "architectures": ["MllamaForCausalLM"]}) == 0


def test_step3p7_widens_by_its_ratio() -> None:
    vision = {
        "width": 6, "layers": 1, "mlp_ratio": 2.0, "intermediate_size": 999,
        "image_size": 4, "patch_size": 2,
    }  # fmt: skip
    layer = 4 * linear(6, 6) + linear(6, 12) + linear(12, 6) + 2 * 12 + 2 * 6
    shrunk = linear(9 * 6, 12) + linear(9 * 12, 24)
    config = {"model_type": "step3p7", "vision_config": vision, "text_config": {"hidden_size": 5}}
    assert beside(config) == 12 * 6 + 4 * 6 + 12 + layer + shrunk + 24 * 5


def test_kimi_k25_is_read_in_the_names_of_both_releases() -> None:
    expected = PATCH + 3 * 5 * 4 + LAYER + 8 + 2 * 4 + linear(16, 16) + linear(16, 6)
    own = {
        "hidden_size": 4, "intermediate_size": 8, "num_hidden_layers": 1, "patch_size": 2,
        "pos_emb_height": 3, "pos_emb_width": 5,
    }  # fmt: skip
    published = {
        "vt_hidden_size": 4, "vt_intermediate_size": 8, "vt_num_hidden_layers": 1, "patch_size": 2,
        "init_pos_emb_height": 3, "init_pos_emb_width": 5, "mm_hidden_size": 4,
    }  # fmt: skip
    base = {"model_type": "kimi_k25", "text_config": TEXT}
    assert beside({**base, "vision_config": own, "projection_hidden_size": 4}) == expected
    assert beside({**base, "vision_config": published}) == expected
    wider = {**base, "vision_config": own, "projection_hidden_size": 7}
    assert beside(wider) == expected + 2 * 3


def test_minicpmv_merges_inside_and_behind() -> None:
    inside = 8 + ATTENTION + 2 * 16 + linear(16, 32) + linear(32, 4)
    behind = 2 * 16 + linear(16, 16) + linear(16, 6)
    for kind in ("minicpmv4_6", "minicpmv4_7", "minicpm_ocr"):
        config = {"model_type": kind, "vision_config": SMALL, "text_config": TEXT}
        assert beside(config) == SIGLIP + inside + behind


def test_janus_counts_the_autoencoder_that_writes_images() -> None:
    vision = {
        "hidden_size": 4, "num_hidden_layers": 1, "num_attention_heads": 2, "mlp_ratio": 2.0,
        "image_size": 4, "patch_size": 2, "projection_dim": 4, "depth": 2,
    }  # fmt: skip
    codes = {
        "base_channels": 2, "channel_multiplier": [1, 2], "num_res_blocks": 1, "latent_channels": 3,
        "embed_dim": 2, "num_embeddings": 5, "projection_dim": 4, "num_hidden_layers": 2,
        "image_token_embed_dim": 4,
    }  # fmt: skip
    two, four = 4 + linear(18, 2) + 4 + linear(18, 2), 8 + linear(36, 4) + 8 + linear(36, 4)
    up = 4 + linear(18, 4) + 8 + linear(36, 4) + linear(2, 4)
    down = 8 + linear(36, 2) + 4 + linear(18, 2) + linear(4, 2)
    attention = 8 + 4 * linear(4, 4)
    middle = 2 * four + attention
    encoding = linear(27, 2) + two + linear(18, 2) + up + attention + middle + 8 + linear(36, 3)
    coding = 5 * 2 + linear(3, 2) + linear(2, 3)
    decoding = linear(27, 4) + middle + 2 * (four + attention) + linear(36, 4) + down + two
    writing = 5 * 2 + linear(2, 4) + linear(4, 4) + linear(4, 4) + linear(4, 5)
    expected = SIGLIP + 2 * linear(4, 4) + encoding + coding + decoding + 4 + linear(18, 3)
    config = {
        "model_type": "janus", "vision_config": vision, "vq_config": codes, "text_config": TEXT,
    }  # fmt: skip
    assert beside(config) == expected + writing


def test_ovis2_has_visual_words_and_an_untied_head_of_the_roots_width() -> None:
    vision = {
        **SMALL, "vocab_size": 9, "num_visual_indicator_tokens": 2, "hidden_stride": 2,
    }  # fmt: skip
    layer = 4 * 16 + 3 * 32 + 2 * 4
    expected = PATCH + 4 * 4 + 4 + layer + 4 + 16 * 7 + 14 + 9 * 6
    text = {
        "model_type": "qwen2", "hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1,
        "num_attention_heads": 2, "num_key_value_heads": 2, "vocab_size": 20,
    }  # fmt: skip
    config = {
        "model_type": "ovis2", "hidden_size": 6, "vocab_size": 11, "vision_config": vision,
        "text_config": text, "architectures": ["Ovis2ForConditionalGeneration"],
    }  # fmt: skip
    assert beside(config) == expected
    untied = specify({**config, "tie_word_embeddings": False}).parameters_by_class()
    assert untied[ModuleClass.LM_HEAD] == 11 * 6
    with pytest.raises(ConfigError, match="more words than indicators"):
        beside({**config, "vision_config": {**vision, "vocab_size": 2}})


def test_kosmos_resamples_and_shares_an_encoder_with_pix2struct() -> None:
    queries = 3 * 6 + linear(4, 6) + 4 * linear(6, 6)
    clip = {"model_type": "kosmos-2", "vision_config": SMALL, "latent_query_num": 3}
    text = {"embed_dim": 6}
    assert beside({**clip, "text_config": text}) == CLIP + queries
    flat = linear(5, 4) + 2 * 7 * 4 + (4 * 4 * 6 + 3 * 4 * 8 + 2 * 4) + 4
    vision = {**SMALL, "patch_embed_hidden_size": 5, "head_dim": 3, "max_num_patches": 7}
    config = {"model_type": "kosmos-2.5", "vision_config": vision, "latent_query_num": 3}
    assert beside({**config, "text_config": text}) == flat + queries
    vision = {**SMALL, "patch_embed_hidden_size": 5, "d_kv": 3, "seq_len": 7, "d_ff": 8}
    assert beside({"model_type": "pix2struct", "vision_config": vision}) == flat


def test_lfm3_vl_mixes_convolutions_and_attention() -> None:
    vision = {
        "hidden_size": 4, "intermediate_size": 6, "num_hidden_layers": 3, "num_attention_heads": 2,
        "num_key_value_heads": 1, "in_channels": 3, "patch_size": 2, "temporal_patch_size": 2,
        "spatial_merge_size": 2, "conv_kernel_size": 3,
    }  # fmt: skip
    every = 3 * (2 * 4 + 3 * 4 * 6)
    convolution, attention = 3 * 16 + 4 * 9 + 16, 16 + 8 + 8 + 16 + 2 + 2
    projector = 8 + linear(16, 5) + linear(5, 6)
    expected = 24 * 4 + 4 + every + 2 * convolution + attention + projector
    config = {
        "model_type": "lfm3_vl", "vision_config": vision, "text_config": TEXT,
        "projector_hidden_size": 5,
    }  # fmt: skip
    assert beside(config) == expected
    listed = {**vision, "layer_types": ["conv", "full_attention"]}
    with pytest.raises(ConfigError, match="one entry for each of 3 layers"):
        beside({**config, "vision_config": listed})


def test_muse_spark_hears_with_a_pyramid() -> None:
    vision = {**SMALL, "patch_temporal": 2, "pos_emb_height": 3, "pos_emb_width": 3}
    seen = 24 * 4 + 9 * 4 + 8 + LAYER + 8 + 5 * 7 + 7 * 7 + 7 * 6
    audio = {
        "hidden_sizes": [2, 4], "patch_sizes": [3, 2], "depths": [1, 0], "num_hidden_layers": 2,
        "conv_kernel_size": 5, "mlp_ratio": 2.0, "out_hidden_size": 6,
    }  # fmt: skip
    block = (2 * 5 + 2) + 2 + linear(2, 4) + linear(4, 2)
    heard = linear(3, 2) + 2 + block + linear(4, 4) + 4 + 4 + linear(4, 6) + 6
    config = {
        "model_type": "muse_spark", "vision_config": vision, "audio_config": audio,
        "text_config": TEXT, "out_hidden_size": 5, "projector_hidden_size": 7,
    }  # fmt: skip
    assert beside(config) == seen + heard
    assert beside({**config, "model_type": "muse_glimmer"}) == seen
    with pytest.raises(ConfigError, match="one entry for each of 2 layers"):
        beside({**config, "audio_config": {**audio, "depths": [1]}})


def test_molmo2_builds_as_many_layers_as_it_reads() -> None:
    vision = {
        "hidden_size": 4, "intermediate_size": 8, "num_hidden_layers": 5, "num_attention_heads": 2,
        "num_key_value_heads": 1, "head_dim": 3, "image_default_input_size": [4, 4],
        "image_patch_size": 2,
    }  # fmt: skip
    adapter = {
        "hidden_size": 4, "num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 2,
        "intermediate_size": 6, "text_hidden_size": 8, "vit_layers": [-2, -4],
    }  # fmt: skip
    layer = linear(4, 6) + 2 * linear(4, 3) + linear(6, 4) + MLP + NORMS
    pooled = 3 * linear(8, 4) + linear(4, 4) + 2 * 4 * 6 + 6 * 8
    config = {"model_type": "molmo2", "vit_config": vision, "adapter_config": adapter}
    assert beside(config) == PATCH + 4 * 4 + 4 * layer + pooled
    named = {"model_type": "molmo2", "vision_config": vision, "adapter_config": adapter}
    assert beside(named) == PATCH + 4 * 4 + 5 * layer + pooled


def test_nemotron_omni_sees_with_radio() -> None:
    vision = {
        "hidden_size": 4, "num_hidden_layers": 1, "num_attention_heads": 2, "mlp_ratio": 2.0,
        "patch_size": 2, "max_img_size": 4, "num_cls_tokens": 1, "num_registers": 2,
        "video_temporal_patch_size": 2,
    }  # fmt: skip
    seen = 12 * 4 + 24 * 4 + 4 * 4 + 3 * 4 + LAYER + 2 * 4
    projector = 16 + 16 * 5 + 5 * 6
    config = {
        "model_type": "nemotron_h_omni", "vision_config": vision, "vision_hidden_size": 4,
        "projector_hidden_size": 5, "text_config": TEXT,
    }  # fmt: skip
    assert beside(config) == seen + projector


def test_pi0_has_an_expert_of_actions_that_shares_the_vocabulary() -> None:
    text = {"model_type": "gemma", "hidden_size": 6, "vocab_size": 10}
    vlm = {
        "model_type": "paligemma", "text_config": text, "projection_dim": 7,
        "vision_config": {"model_type": "siglip_vision_model", **SMALL, "vision_use_head": False},
    }  # fmt: skip
    expert = {
        "model_type": "gemma", "hidden_size": 4, "intermediate_size": 8, "num_hidden_layers": 1,
        "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 2,
    }  # fmt: skip
    config = {
        "model_type": "pi0", "vlm_config": vlm, "dit_config": expert, "max_action_dim": 3,
        "max_state_dim": 5,
    }  # fmt: skip
    acting = 10 * 4 + (16 + 8 + 8 + 16) + 3 * 32 + 2 * 4 + 4
    joining = linear(3, 4) + linear(5, 4) + linear(8, 4) + linear(4, 4) + linear(4, 3)
    assert beside(config) == SIGLIP + linear(4, 7) + acting + joining


SAM = {
    "hidden_size": 4, "num_hidden_layers": 2, "num_attention_heads": 2, "mlp_dim": 8,
    "image_size": 8, "patch_size": 2, "window_size": 3, "global_attn_indexes": [1],
    "output_channels": 3,
}  # fmt: skip
SAM_COUNT = (
    PATCH + 16 * 4 + 2 * LAYER + 2 * 2 * (2 * 3 - 1) + 2 * 2 * (2 * 4 - 1)
    + 4 * 3 + 6 + 9 * 3 * 3 + 6
)  # fmt: skip


def test_unlimited_ocr_reads_what_sam_saw() -> None:
    shrunk = 9 * 3 * 2 + 9 * 2 * 5
    reading = 4 + 5 * 4 + 8 + LAYER
    vision = {"sam_config": {**SAM, "downsample_channels": [2, 5]}, "encoder_config": SMALL}
    config = {"model_type": "unlimited_ocr", "vision_config": vision, "text_config": TEXT}
    assert beside(config) == SAM_COUNT + shrunk + reading + linear(5 + 4, 6) + 2 * 6


def test_pp_formulanet_projects_to_its_decoders_width() -> None:
    vision = {
        **SAM, "post_conv_in_channels": 3, "post_conv_mid_channels": 2, "post_conv_out_channels": 5,
        "decoder_hidden_size": 6,
    }  # fmt: skip
    projector = 9 * 3 * 2 + 9 * 2 * 5 + linear(5, 5) + linear(5, 6)
    assert beside({"model_type": "pp_formulanet", "vision_config": vision}) == SAM_COUNT + projector


def test_swin_doubles_its_width_between_stages() -> None:
    config = {
        "model_type": "swin", "embed_dim": 4, "depths": [1, 2], "num_heads": [1, 2],
        "window_size": 3, "mlp_ratio": 2.0, "image_size": 8, "patch_size": 2,
    }  # fmt: skip
    second = 4 * linear(8, 8) + linear(8, 16) + linear(16, 8) + 2 * 16 + 25 * 2
    stages = LAYER + 25 + (16 * 8 + 2 * 16) + 2 * second
    expected = PATCH + 8 + stages
    assert sum(t.parameters for t in encoder(facts_for(config)).tensors) == expected + 16
    donut = facts_for({**config, "model_type": "donut-swin"})
    assert sum(t.parameters for t in encoder(donut).tensors) == expected
    with pytest.raises(ConfigError, match="as many entries in num_heads"):
        encoder(facts_for({**config, "num_heads": [1]}))


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("vipllava", CLIP + 2 * 20 + linear(20, 6) + linear(6, 6)),
        ("video_llava", 2 * CLIP + linear(4, 6) + linear(6, 6)),
        ("paddleocr_vl", SIGLIP + 8 + linear(16, 16) + linear(16, 6)),
        ("video_llama_3", SIGLIP - 4 * 4 + linear(4, 6) + linear(6, 6)),
    ],
)
def test_that_a_root_projects_its_usual_encoder(kind: str, expected: int) -> None:
    config = {"model_type": kind, "vision_config": SMALL, "text_config": TEXT}
    assert beside(config) == expected
