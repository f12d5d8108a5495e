"""Vision encoders and projectors, counted by hand.

Every encoder here is tiny: width 8, MLP 16, two layers, patches of two by two pixels in three
channels, images of four by four pixels, so a patch has 12 values and an image four patches.
"""

from __future__ import annotations

from typing import Any

import pytest

from engine.architecture.read import specify
from engine.architecture.spec import ArchitectureSpec, Direction, ModuleClass, Subject
from engine.architecture.towers.encoders import VISION_ENCODERS
from engine.config.facts import facts_for

SMALL: dict[str, Any] = {
    "hidden_size": 8, "intermediate_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2,
    "image_size": 4, "patch_size": 2,
}  # fmt: skip
MERGING: dict[str, Any] = {
    "depth": 2, "hidden_size": 8, "intermediate_size": 16, "num_heads": 2, "patch_size": 2,
    "temporal_patch_size": 2, "spatial_merge_size": 2, "out_hidden_size": 6,
}  # fmt: skip
TEXT: dict[str, Any] = {
    "model_type": "llama", "vocab_size": 32, "hidden_size": 4, "intermediate_size": 8,
    "num_hidden_layers": 1, "num_attention_heads": 1, "num_key_value_heads": 1,
}  # fmt: skip

QKVO = 4 * (8 * 8 + 8)
MLP = (16 * 8 + 16) + (8 * 16 + 8)
NORMS = 2 * (8 + 8)
LAYER = QKVO + MLP + NORMS
BARE_LAYER = 4 * 8 * 8 + 3 * 16 * 8 + 2 * 8
"""No biases, a gated MLP, RMS norms."""
PATCH = 12 * 8
NORM = 8 + 8
POOLING_HEAD = 8 + (3 * 8 * 8 + 3 * 8) + (8 * 8 + 8) + NORM + MLP


def tower(kind: str, config: dict[str, Any]) -> int:
    built = VISION_ENCODERS[kind](facts_for({**config, "model_type": kind}))
    return sum(tensor.parameters for tensor in built.tensors)


VITS: list[tuple[str, dict[str, Any], int]] = [
    ("siglip_vision_model", {"vision_use_head": False}, PATCH + 8 + 4 * 8 + 2 * LAYER + NORM),
    ("siglip_vision_model", {}, PATCH + 8 + 4 * 8 + 2 * LAYER + NORM + POOLING_HEAD),
    (
        "siglip2_vision_model",
        {"vision_use_head": False, "num_patches": 9},
        PATCH + 8 + 9 * 8 + 2 * LAYER + NORM,
    ),
    # A class token, a position for it, no bias of the patches, norms on both sides.
    ("clip_vision_model", {}, PATCH + 8 + 5 * 8 + 2 * LAYER + 2 * NORM),
    ("mlcd_vision_model", {}, PATCH + 8 + 2 * LAYER + 2 * NORM + 2),
    ("pixtral", {}, PATCH + 2 * BARE_LAYER + 8),
    ("aimv2_vision_model", {"use_head": False}, PATCH + 8 + 4 * 8 + 2 * BARE_LAYER + 2 * 8),
    (
        "aimv2_vision_model",
        {},
        PATCH + 8 + 4 * 8 + 2 * BARE_LAYER + 2 * 8 + 8 + 3 * 8 * 8 + 8,
    ),
    ("vit", {}, PATCH + 8 + 8 + 5 * 8 + 2 * LAYER + NORM + 8 * 8 + 8),
    ("deit", {}, PATCH + 8 + 2 * 8 + 6 * 8 + 2 * LAYER + NORM + 8 * 8 + 8),
    ("ijepa", {"qkv_bias": False}, PATCH + 8 + 4 * 8 + 2 * (LAYER - 3 * 8) + NORM),
    # The keys have no bias, and two vectors scale the halves of a layer.
    ("beit", {}, PATCH + 8 + 8 + 2 * (LAYER - 8 + 2 * 8) + NORM),
    # 3 by 3 distances between 2 by 2 patches, and three to and from the class token.
    (
        "beit",
        {"use_relative_position_bias": True},
        PATCH + 8 + 8 + 2 * (LAYER - 8 + 2 * 8 + 12 * 2) + NORM,
    ),
    ("dinov2", {"mlp_ratio": 2}, PATCH + 8 + 8 + 8 + 5 * 8 + 2 * (LAYER + 2 * 8) + NORM),
    # Three heads of 2 leave 2 of the model's 8 out.
    (
        "vit",
        {"num_attention_heads": 3},
        PATCH + 8 + 8 + 5 * 8 + 2 * (LAYER - 4 * 2 * 8 - 3 * 2) + NORM + 8 * 8 + 8,
    ),
    # Two thirds of 4 x 8, rounded up to 24, gated.
    (
        "dinov2",
        {"use_swiglu_ffn": True},
        PATCH + 8 + 8 + 8 + 5 * 8
        + 2 * (QKVO + 2 * (24 * 8 + 24) + (8 * 24 + 8) + NORMS + 2 * 8) + NORM,
    ),
    (
        "dinov3_vit",
        {"num_register_tokens": 4, "query_bias": False},
        PATCH + 8 + 8 + 8 + 4 * 8 + 2 * (LAYER - 2 * 8 + 2 * 8) + NORM,
    ),
    (
        "internvl_vision",
        {"attention_bias": True, "image_size": [4, 8], "patch_size": [2, 2], "use_qk_norm": True},
        PATCH + 8 + 8 + 9 * 8 + 2 * (LAYER + 2 * 8 + 2 * 8),
    ),
    ("blip_2_vision_model", {"qkv_bias": False}, PATCH + 16 + 5 * 8 + 2 * (LAYER - 3 * 8) + NORM),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "own", "wanted"), VITS)
def test_plain_vision_transformers(kind: str, own: dict[str, Any], wanted: int) -> None:
    assert tower(kind, {**SMALL, **own}) == wanted


QWEN_PATCH = 2 * 12 * 8
MERGED = 4 * 8
MERGER = NORM + (MERGED * MERGED + MERGED) + (6 * MERGED + 6)
RMS_MERGER = MERGER - 8
DEEP_MERGER = 2 * MERGED + (MERGED * MERGED + MERGED) + (6 * MERGED + 6)
GATED = 2 * (16 * 8 + 16) + (8 * 16 + 8)
MERGERS: list[tuple[str, dict[str, Any], int]] = [
    (
        "qwen2_vl_vision",
        {"embed_dim": 8, "mlp_ratio": 2, "hidden_size": 6},
        QWEN_PATCH + 2 * LAYER + MERGER,
    ),
    ("qwen2_5_vl_vision", {}, QWEN_PATCH + 2 * (QKVO + GATED + 2 * 8) + RMS_MERGER),
    # One head of keys and values for two of queries: half as wide.
    (
        "exaone4_5_vision",
        {"num_key_value_heads": 1},
        QWEN_PATCH + 2 * (2 * 72 + 2 * (4 * 8 + 4) + GATED + 2 * 8) + RMS_MERGER,
    ),
    (
        "qwen3_vl_vision",
        {"num_position_embeddings": 9, "deepstack_visual_indexes": [0, 1]},
        QWEN_PATCH + 8 + 9 * 8 + 2 * LAYER + MERGER + 2 * DEEP_MERGER,
    ),
    (
        "qwen3_5_vision",
        {"num_position_embeddings": 9, "deepstack_visual_indexes": [0, 1]},
        QWEN_PATCH + 8 + 9 * 8 + 2 * LAYER + MERGER,
    ),
    # The MLP is as wide as what comes out (6), the merger's as wide as the config's 16.
    (
        "glm4v_vision",
        {"image_size": 4},
        QWEN_PATCH + 8 + 4 * 8 + 8 + 8 + 2 * (4 * 8 * 8 + 3 * 6 * 8 + 2 * 8)
        + (6 * MERGED + 6) + 6 * 6 + 12 + 3 * 16 * 6,
    ),
    # Norms of query and key over a head of 4; the merger's MLP is 3 channels x 6 wide.
    (
        "glm_ocr_vision",
        {},
        QWEN_PATCH + 8 + 8 + 2 * (QKVO + GATED + 2 * 8 + 2 * 4)
        + (6 * MERGED + 6) + 6 * 6 + 12 + 3 * 18 * 6,
    ),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "own", "wanted"), MERGERS)
def test_encoders_that_merge_patches(kind: str, own: dict[str, Any], wanted: int) -> None:
    assert tower(kind, {**MERGING, **own}) == wanted


def test_hunyuan_merges_to_the_text_width_that_its_root_has() -> None:
    vision = {**SMALL, "max_image_size": 4, "text_hidden_size": 99}
    del vision["image_size"]
    merger = 8 + (16 * 32 + 16) + (32 * 16 + 32) + (4 * 32 + 4) + 32 + 3 * 4 + 4
    text = {**TEXT, "model_type": "hunyuan_vl_text", "head_dim": 4}
    spec = specify({"model_type": "hunyuan_vl", "text_config": text, "vision_config": vision})
    assert seen(spec) == PATCH + 8 + 5 * 8 + 2 * LAYER + merger


def test_gemma_4_has_norms_of_query_and_key_and_positions_by_row_and_column() -> None:
    own = {"head_dim": 4, "num_key_value_heads": 1, "position_embedding_size": 5}
    layer = 2 * 8 * 8 + 2 * 4 * 8 + 3 * 16 * 8 + 4 * 8 + 2 * 4
    assert tower("gemma4_vision", {**SMALL, **own}) == PATCH + 2 * 5 * 8 + 2 * layer


def test_sam_keeps_distances_of_its_windows_and_in_global_layers_of_the_image() -> None:
    own = {
        "mlp_dim": 16, "image_size": 8, "window_size": 3, "global_attn_indexes": [1],
        "output_channels": 5,
    }  # fmt: skip
    # Windows of 3 by 3 have 5 distances an axis, the 4 by 4 patches of the image 7; heads of 4.
    distances = 2 * 5 * 4 + 2 * 7 * 4
    neck = 5 * 8 + 10 + 9 * 5 * 5 + 10
    wanted = PATCH + 8 + 16 * 8 + 2 * LAYER + distances + neck
    assert tower("sam_vision_model", {**SMALL, **own}) == wanted


def test_davit_has_a_block_for_windows_and_one_for_channels() -> None:
    own = {
        "embed_dim": [4, 8], "depths": [1, 2], "num_heads": [1, 2], "num_groups": [1, 2],
        "patch_size": [3, 2], "patch_stride": [2, 2], "patch_padding": [1, 1],
        "patch_prenorm": [False, True], "mlp_ratio": 2.0,
    }  # fmt: skip
    convolutions = 2 * (9 * 8 + 8)
    narrow = 4 * (4 * 4 + 4) + (8 * 4 + 8) + (4 * 8 + 4) + 4 * 4 + 2 * (9 * 4 + 4)
    first = 4 * 3 * 9 + 4 + 2 * 4 + 2 * narrow
    # The second stage's norm stands in front of its convolution: it is as wide as the first.
    second = 8 * 4 * 4 + 8 + 2 * 4 + 4 * (LAYER + convolutions)
    assert tower("florence_vision", own) == first + second


def test_swin_2_makes_its_bias_of_distances() -> None:
    own = {"embed_dim": 8, "depths": [1, 1], "num_heads": [2, 4], "mlp_ratio": 2.0}
    own |= {"image_size": 4, "patch_size": 2}
    bias = (2 * 512 + 512) + 512 * 2 + 2
    wider = 4 * (16 * 16 + 16) - 16 + (32 * 16 + 32) + (16 * 32 + 16) + 4 * 16
    wider += (2 * 512 + 512) + 512 * 4 + 4
    merging = 16 * 32 + 2 * 16
    wanted = PATCH + 8 + NORM + (LAYER - 8 + bias) + merging + wider + 2 * 16
    assert tower("swinv2", own) == wanted


def test_convnext_has_a_convolution_for_each_channel() -> None:
    own = {"hidden_sizes": [4, 8], "depths": [1, 1], "num_stages": 2, "patch_size": 2}

    def layer(width: int) -> int:
        mlp = (4 * width * width + 4 * width) + (4 * width * width + width)
        return 49 * width + width + 2 * width + mlp + width

    between = 2 * 4 + 8 * 4 * 4 + 8
    assert tower("convnext", own) == (12 * 4 + 4 + 8) + layer(4) + between + layer(8) + 2 * 8


def root(kind: str, **own: Any) -> ArchitectureSpec:
    return specify({"model_type": kind, "text_config": TEXT, **own})


def seen(spec: ArchitectureSpec) -> int:
    assert spec.direction(Subject.WEIGHTS) is None, spec.doubts
    return spec.parameters_by_class()[ModuleClass.VISION]


CLIP = {**SMALL, "model_type": "clip_vision_model"}
CLIP_TOWER = PATCH + 8 + 5 * 8 + 2 * LAYER + 2 * NORM


@pytest.mark.parametrize(
    ("kind", "own", "projector"),
    [
        ("llava", {}, (4 * 8 + 4) + (4 * 4 + 4)),
        # Three layers of the tower side by side.
        ("llava", {"vision_feature_layer": [-2, -5, 1]}, (4 * 24 + 4) + (4 * 4 + 4)),
        ("llava", {"multimodal_projector_bias": False}, 4 * 8 + 4 * 4),
        ("llava_next", {}, (4 * 8 + 4) + (4 * 4 + 4) + 4),
        ("paligemma", {"projection_dim": 5}, 5 * 8 + 5),
        ("gemma3", {"tie_word_embeddings": False}, 8 * 4 + 8),
        ("mistral3", {"spatial_merge_size": 3}, 8 + 8 * 72 + 4 * 8 + 4 * 4),
        ("aya_vision", {}, 2 * 32 + (4 * 32 + 4) + (4 * 2 + 4)),
        ("cohere2_vision", {"alignment_intermediate_size": 6}, (6 * 32 + 6) + (4 * 3 + 4)),
        ("deepseek_vl", {}, (4 * 8 + 4) + (4 * 4 + 4)),
        (
            "aria",
            {"projector_patch_to_query_dict": {"4": 3, "16": 7}},
            7 * 8 + 3 * 64 + (24 * 8 + 24) + 2 * 72 + 3 * 16 + 4 * 8 + 4 * 4,
        ),
    ],
)
def test_projectors_behind_any_encoder(kind: str, own: dict[str, Any], projector: int) -> None:
    text = {**TEXT, **_TEXTS.get(kind, {})}
    spec = root(kind, text_config=text, vision_config=CLIP, **own)
    assert seen(spec) == CLIP_TOWER + projector


_TEXTS: dict[str, dict[str, Any]] = {
    "aria": {"model_type": "aria_text", "moe_num_experts": 2, "moe_topk": 1},
    "gemma3": {"model_type": "gemma3_text", "head_dim": 4},
}


def test_idefics_3_projects_patches_that_are_put_side_by_side() -> None:
    spec = root("idefics3", vision_config=SMALL, scale_factor=3)
    assert seen(spec) == PATCH + 8 + 4 * 8 + 2 * LAYER + NORM + 4 * 9 * 8


def test_a_q_former_looks_at_the_image_in_every_second_layer() -> None:
    former = {
        "hidden_size": 8, "intermediate_size": 16, "num_hidden_layers": 3,
        "num_attention_heads": 2, "cross_attention_frequency": 2, "encoder_hidden_size": 99,
    }  # fmt: skip
    vision = {**SMALL, "hidden_size": 6}
    six = 4 * (6 * 6 + 6) + (16 * 6 + 16) + (6 * 16 + 6) + 4 * 6
    encoder = 12 * 6 + 6 + 6 + 5 * 6 + 2 * six + 12
    crossing = 2 * (8 * 8 + 8) + 2 * (8 * 6 + 8) + NORM
    text = {**TEXT, "tie_word_embeddings": True}
    spec = root(
        "blip-2", text_config=text, vision_config=vision, qformer_config=former, num_query_tokens=5
    )
    wanted = 3 * LAYER + 2 * crossing + NORM + 5 * 8 + (4 * 8 + 4)
    assert seen(spec) == encoder + wanted


def test_granite_4_vision_projects_each_level_and_each_corner() -> None:
    text = {**TEXT, "model_type": "granite4_vision_text"}
    former = {"num_hidden_layers": 1, "intermediate_size": 16, "cross_attention_frequency": 1}
    own = {"downsample_rate": "2/3", "deepstack_layer_map": [[1, 0]], "qformer_config": former}
    spec = root("granite4_vision", text_config=text, vision_config=CLIP, **own)
    one = LAYER + QKVO + NORM + NORM + NORM + 4 * 8 + 9 * 8 + (4 * 8 + 4)
    assert seen(spec) == CLIP_TOWER + 5 * one + 4


def test_the_perceiver_of_idefics_2_is_as_wide_as_the_text() -> None:
    perceiver = {
        "resampler_n_latents": 3, "resampler_depth": 2, "resampler_n_heads": 4,
        "resampler_head_dim": 2, "num_key_value_heads": 1,
    }  # fmt: skip
    spec = root("idefics2", vision_config=SMALL, perceiver_config=perceiver)
    layer = 2 * 8 * 4 + 2 * 2 * 4 + 3 * 16 * 4 + 3 * 4
    connector = 2 * 8 * 8 + 4 * 8 + 3 * 4 + 2 * layer + 4
    assert seen(spec) == PATCH + 8 + 4 * 8 + 2 * LAYER + NORM + connector


def test_chameleon_attends_at_the_resolutions_it_lists() -> None:
    codes = {
        "base_channels": 4, "channel_multiplier": [1, 2], "num_res_blocks": 1, "resolution": 8,
        "attn_resolutions": [4], "latent_channels": 3, "embed_dim": 2, "num_embeddings": 5,
    }  # fmt: skip

    def block(width: int, out: int) -> int:
        beside = width * out + out if width != out else 0
        return 2 * width + 9 * width * out + out + 2 * out + 9 * out * out + out + beside

    attention = 2 * 8 + 4 * (8 * 8 + 8)
    encoder = (9 * 3 * 4 + 4) + block(4, 4) + (9 * 4 * 4 + 4) + block(4, 8) + attention
    encoder += 2 * block(8, 8) + attention + 2 * 8 + (9 * 8 * 3 + 3)
    spec = specify({**TEXT, "model_type": "chameleon", "vq_config": codes})
    assert seen(spec) == encoder + 5 * 2 + (3 * 2 + 2) + (2 * 3 + 3)


def test_a_tower_that_only_has_a_name_is_counted_where_its_sum_is_known() -> None:
    vision = {"model_type": "timm_wrapper", "architecture": "fastvit_mci3", "hidden_size": 3072}
    known = root("fast_vlm", vision_config={**vision, "model_args": {"inference_mode": True}})
    assert seen(known) == 122_714_208 + (4 * 3072 + 4) + (4 * 4 + 4)
    # FastVLM-7B as published: 7,762,651,744 parameters in all.
    assert specify({"model_type": "fast_vlm"}).parameters == 7_762_651_744


def test_a_tower_that_only_has_a_name_is_a_bound_where_its_sum_is_not_known() -> None:
    vision = {"model_type": "timm_wrapper", "architecture": "nobody_knows", "hidden_size": 8}
    spec = root("fast_vlm", vision_config=vision)
    assert spec.direction(Subject.WEIGHTS) is Direction.LOWER
    assert "nobody_knows of timm" in " ".join(doubt.reason for doubt in spec.doubts)


def test_an_encoder_that_is_not_known_is_a_bound_and_not_taken_for_another() -> None:
    spec = root("llava", vision_config={**CLIP, "model_type": "nobody"})
    assert spec.direction(Subject.WEIGHTS) is Direction.LOWER
    assert ModuleClass.VISION not in spec.parameters_by_class()


def test_a_root_without_a_rule_is_counted_with_the_encoder_that_it_names() -> None:
    spec = root("vision_llama_of_tomorrow", vision_config=CLIP)
    assert spec.direction(Subject.WEIGHTS) is Direction.EITHER
    assert spec.parameters_by_class()[ModuleClass.VISION] == CLIP_TOWER
    unnamed = root("vision_llama_of_tomorrow", vision_config=SMALL)
    assert unnamed.direction(Subject.WEIGHTS) is Direction.LOWER
    assert ModuleClass.VISION not in unnamed.parameters_by_class()


def test_what_the_root_leaves_out_is_its_own_class_default() -> None:
    """PaliGemma's tower: 27 layers of 1152 and 4096, patches of 14 in images of 224, no head."""
    layer = 4 * (1152 * 1152 + 1152) + (4096 * 1152 + 4096) + (1152 * 4096 + 1152) + 4 * 1152
    encoder = 588 * 1152 + 1152 + 256 * 1152 + 27 * layer + 2 * 1152
    text = {**TEXT, "model_type": "gemma", "head_dim": 4}
    assert seen(root("paligemma", text_config=text)) == encoder + 2048 * 1152 + 2048


@pytest.mark.parametrize(
    ("kind", "of_root", "of_text", "tied"),
    [
        # The class that makes the head reads the root's config.
        ("llava_next", None, True, False),
        ("llava_next", True, False, True),
        ("gemma3", None, False, True),
        ("gemma3", False, True, False),
        # Older files hold it in the text config: a true one is believed.
        ("llava", None, True, True),
        ("llava", False, True, True),
        ("llava", True, False, True),
        # The head is the text model's own.
        ("llama4", True, False, False),
        ("llama4", None, True, True),
    ],
)
def test_who_says_that_the_head_is_tied(
    kind: str, of_root: bool | None, of_text: bool, tied: bool
) -> None:
    text = {
        **TEXT,
        "model_type": {"llama4": "llama4_text", "gemma3": "gemma3_text"}.get(kind, "llama"),
    }
    config: dict[str, Any] = {
        "model_type": kind,
        "text_config": {**text, "tie_word_embeddings": of_text},
    }
    if of_root is not None:
        config["tie_word_embeddings"] = of_root
    assert specify(config).tie_word_embeddings is tied
