"""Decoders of one multimodal model each, and towers beside them, counted by hand."""

from __future__ import annotations

from typing import Any

import pytest

from engine.architecture.read import specify
from engine.architecture.spec import AttentionKind, Direction, ModuleClass, Subject
from engine.runtimes.transformers.cache import layer_bytes

TEXT: dict[str, Any] = {
    "vocab_size": 32, "hidden_size": 8, "intermediate_size": 16, "num_hidden_layers": 4,
    "num_attention_heads": 2, "max_position_embeddings": 10,
}  # fmt: skip
SEES: dict[str, Any] = {
    "hidden_size": 6, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
    "image_size": 4, "patch_size": 2,
}  # fmt: skip
LAYER_OF_SIX = 4 * (6 * 6 + 6) + (16 * 6 + 16) + (6 * 16 + 6) + 4 * 6
CLIP_OF_SIX = 12 * 6 + 6 + 5 * 6 + LAYER_OF_SIX + 2 * 12
BERT_LAYER = 4 * (8 * 8 + 8) + (16 * 8 + 16) + (8 * 16 + 8) + 4 * 8
LLAMA_LAYER = 4 * 8 * 8 + 3 * 16 * 8 + 2 * 8


def exact(config: dict[str, Any]) -> int:
    spec = specify(config)
    assert spec.direction(Subject.WEIGHTS) is None, spec.doubts
    return spec.parameters


def test_git_is_a_bert_that_decodes_behind_clip() -> None:
    own = {"model_type": "git", "vision_config": SEES, "num_image_with_embedding": 3}
    text = 32 * 8 + 10 * 8 + 16 + 4 * BERT_LAYER + (32 * 8 + 32)
    projection = (8 * 6 + 8) + 16 + 3 * 6
    assert exact({**TEXT, **own}) == text + CLIP_OF_SIX + projection


def test_blip_looks_at_an_encoder_as_wide_as_the_root_has_it() -> None:
    text = {**TEXT, "encoder_hidden_size": 99}
    config = {"model_type": "blip", "text_config": text, "vision_config": SEES}
    crossing = 2 * (8 * 8 + 8) + 2 * (8 * 6 + 8) + 16
    head = (8 * 8 + 8) + 16 + 32
    wanted = 32 * 8 + 10 * 8 + 16 + 4 * (BERT_LAYER + crossing) + head
    encoder = 12 * 6 + 6 + 6 + 5 * 6 + LAYER_OF_SIX + 12
    assert exact(config) == wanted + encoder
    spec = specify(config)
    assert spec.layers[0].cross is not None
    assert spec.layers[0].cross.kind is AttentionKind.CROSS
    # Four patches and the class token of one image, however long the answer is.
    assert spec.layers[0].cross.window == 5
    assert spec.direction(Subject.SEQUENCE_STATE) is None
    # Measured: transformers keeps 1,792 bytes of 7 tokens in two layers and 4,352 of 17 patches.
    small = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    seen = {**SEES, "image_size": 8, "patch_size": 2}
    spec = specify({"model_type": "blip", "text_config": small, "vision_config": seen})
    assert sum(layer_bytes(layer, 7, "float32") for layer in spec.layers) == 1792 + 4352


def test_blip_alone_does_not_know_how_much_it_sees() -> None:
    spec = specify({"model_type": "blip_text_model", **TEXT})
    assert spec.direction(Subject.SEQUENCE_STATE) is Direction.EITHER


@pytest.mark.parametrize(
    ("own", "crossing"),
    [
        ({}, 4),
        # Layers 0 and 2, and of three only layer 0: a fourth has no block to go with it.
        ({"cross_layer_interval": 2}, 2),
        ({"cross_layer_interval": 3}, 1),
    ],
)
def test_idefics_has_a_whole_layer_more_where_it_looks_at_the_image(
    own: dict[str, Any], crossing: int
) -> None:
    vision = {**SEES, "embed_dim": 6}
    config = {"model_type": "idefics", **TEXT, "vision_config": vision, **own}
    gated = 2 * 8 * 8 + 2 * 8 * 6 + 3 * 16 * 8 + 2 * 8 + 2
    text = 2 * 32 * 8 + 8 + 4 * LLAMA_LAYER
    assert exact(config) == text + crossing * gated + CLIP_OF_SIX


def test_idefics_keeps_rows_of_its_own_beside_the_vocabulary() -> None:
    config = {"model_type": "idefics", **TEXT, "vision_config": {**SEES, "embed_dim": 6}}
    assert exact({**config, "additional_vocab_size": 5}) == exact(config) + 2 * 5 * 8
    tied = {**config, "tie_word_embeddings": True}
    assert exact({**tied, "additional_vocab_size": 5}) == exact(tied) + 5 * 8


def test_evolla_adapts_every_second_layer_to_the_protein() -> None:
    protein = {
        "vocab_size": 20, "hidden_size": 6, "num_hidden_layers": 1, "num_attention_heads": 2,
        "intermediate_size": 16,
    }  # fmt: skip
    own = {
        "model_type": "evolla", "protein_encoder_config": protein, "num_key_value_heads": 1,
        "aligner_num_add_layers": 2, "aligner_ffn_mult": 3, "resampler_depth": 2,
        "resampler_heads": 2, "resampler_dim_head": 5, "resampler_ff_mult": 2,
        "resampler_num_latents": 4,
    }  # fmt: skip
    adapter = 3 * (8 * 8 + 8) + (8 * 8 + 8) + 8 + 16 + 2 * 24 * 8 + 2
    text = 2 * 32 * 8 + 8 + 4 * (LLAMA_LAYER - 2 * 4 * 8) + 2 * adapter
    encoder = 20 * 6 + LAYER_OF_SIX + 12
    queries = 4 * 6 + 2 * (3 * 12 + 3 * 10 * 6 + 6 * 10 + 2 * 12 * 6) + 16 + (8 * 6 + 8)
    assert exact({**TEXT, **own}) == text + encoder + queries


def test_chameleon_norms_queries_and_keys_head_by_head() -> None:
    codes = {"base_channels": 4, "channel_multiplier": [1], "num_res_blocks": 1}
    config = {**TEXT, "model_type": "chameleon", "num_key_value_heads": 1, "vq_config": codes}
    spec = specify(config)
    sums = spec.parameters_by_class()
    # Weight and bias for each head: two of queries, one of keys, each 4 wide.
    assert sums[ModuleClass.NORM] == 4 * (2 * 8 + 2 * (8 + 4)) + 8
    assert sums[ModuleClass.ATTENTION] == 4 * (2 * 8 * 8 + 2 * 4 * 8)


def test_dots_sees_with_ever_more_experts_and_hears() -> None:
    text = {"model_type": "dots3_note_text"}
    vision = {
        **SEES, "num_hidden_layers": 3, "moe_intermediate_size": 5, "adapter_in_dim": 6,
        "adapter_out_dim": 8, "pyramid_num_routed": [-1, 2, 4],
    }  # fmt: skip
    audio = {
        "hidden_size": 6, "intermediate_size": 16, "num_hidden_layers": 1,
        "num_attention_heads": 2, "feature_size": 12, "downsample_hidden_size": 5,
        "adapter_input_size": 6, "adapter_out_dim": 8,
    }  # fmt: skip
    config = {
        "model_type": "dots3_note",
        "text_config": text,
        "vision_config": vision,
        "audio_config": audio,
    }
    spec = specify(config)
    assert spec.direction(Subject.WEIGHTS) is None
    sums = spec.parameters_by_class()
    attention = 4 * 6 * 6 + 2 * 3 + 2 * 6
    dense, experts = 3 * 16 * 6, 2 * (3 * 5 * 6 + 6) + 4 * (3 * 5 * 6 + 6)
    merger = 12 + (24 * 24 + 24) + (8 * 24 + 8)
    wanted = 12 * 6 + 6 + 6 + 3 * attention + dense + experts + 6 + merger
    assert sums[ModuleClass.VISION] == wanted
    layer = 4 * 6 * 6 + 3 * 6 + 3 * 16 * 6 + 2 * 16 + 6 + 2 * 6
    stem = (9 * 5 + 5) + 2 * (9 * 5 * 5 + 5) + 6 * 5 * 2
    adapter = 12 + (8 * 6 + 8) + (8 * 8 + 8)
    assert sums[ModuleClass.AUDIO] == stem + layer + 6 + adapter
