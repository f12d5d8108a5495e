"""What models hear and speak with, by hand: one sum for each kind of encoder, codec and talker."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from engine.architecture.read import specify
from engine.architecture.spec import Direction, ModuleClass, Subject
from engine.architecture.towers.audio import listen
from engine.architecture.towers.omni_speech import (
    bigvgan,
    code2wav,
    code_predictor,
    dit,
    talker_moe,
)
from engine.config.facts import Facts, facts_for

CONFIGS = Path(__file__).resolve().parents[3].parent / "shared" / "configs" / "configs"
TEXT: dict[str, Any] = {
    "vocab_size": 100,
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "head_dim": 8,
}


def sum_of(config: dict[str, Any], module: ModuleClass = ModuleClass.AUDIO) -> int:
    spec = specify(config)
    assert spec.direction(Subject.WEIGHTS) is None, spec.doubts
    return spec.parameters_by_class()[module]


def heard(kind: str, **keys: object) -> int:
    return sum(tensor.parameters for tensor in listen(facts_for(keys, kind)).tensors)


def linear(rows: int, columns: int) -> int:
    return rows * columns + rows


WHISPER = {"num_mel_bins": 5, "hidden_size": 8, "intermediate_size": 12, "num_hidden_layers": 3}
# Query, value and output with a bias, the key without; the MLP; two norms.
WHISPER_LAYER = 4 * 8 * 8 + 3 * 8 + linear(12, 8) + linear(8, 12) + 2 * 16


def test_whisper_with_a_projector_over_joined_frames() -> None:
    config = {
        "model_type": "voxtral",
        "text_config": TEXT,
        "audio_config": {**WHISPER, "max_source_positions": 20},
    }
    encoder = linear(8, 3 * 5) + linear(8, 3 * 8) + 20 * 8 + 3 * WHISPER_LAYER + 16
    assert sum_of(config) == encoder + 16 * 12 + 16 * 16


def test_that_a_root_fills_in_a_text_part_that_is_stated_in_part() -> None:
    # Voxtral's class: 30 layers of 3072 with 8 keys of 128, whatever Llama's class says.
    spec = specify({"model_type": "voxtral", "text_config": {"num_hidden_layers": 2}})
    assert spec.hidden_size == 3072
    assert spec.layers[0].attention is not None
    assert spec.layers[0].attention.num_key_value_heads == 8
    assert spec.layers[0].attention.head_dim == 128


def test_whisper_without_positions_and_with_a_wide_projector() -> None:
    audio = {**WHISPER, "num_attention_heads": 2}
    config = {"model_type": "glmasr", "text_config": TEXT, "audio_config": audio}
    encoder = linear(8, 15) + linear(8, 24) + 3 * WHISPER_LAYER + 16
    assert sum_of(config) == encoder + linear(32, 12) + linear(16, 32)


def test_an_encoder_with_rms_norms_and_heads_of_their_own_width() -> None:
    layer = 3 * (12 * 8) + 2 * 12 + linear(8, 12)  # 3 heads of 4: no bias for the key
    layer += 3 * (8 * 12) + 8 + 2 * 8  # gated, a bias only on the way down
    keys = {**WHISPER, "num_attention_heads": 3, "head_dim": 4}
    assert heard("voxtral_realtime_encoder", **keys) == (
        linear(8, 15) + linear(8, 24) + 3 * layer + 8
    )


def test_planes_of_time_and_pitch() -> None:
    layer = 4 * linear(8, 8) + linear(12, 8) + linear(8, 12) + 2 * 16
    planes = linear(6, 9) + 2 * linear(6, 6 * 9)
    # 20 pitches, halved three times and rounded up: 10, 5, 3.
    expected = planes + 8 * 6 * 3 + 2 * layer + 16
    keys = {
        "d_model": 8, "encoder_ffn_dim": 12, "encoder_layers": 2, "num_mel_bins": 20,
        "downsample_hidden_size": 6, "output_dim": 10,
    }  # fmt: skip
    assert heard("qwen3_asr_encoder", **keys) == expected
    assert heard("qwen3_omni_moe_audio_encoder", **keys) == (
        expected + linear(8, 8) + linear(10, 8)
    )


def test_convolutions_over_raw_sound() -> None:
    layer = 4 * linear(8, 8) + linear(12, 8) + linear(8, 12) + 2 * 16
    waves = linear(4, 5) + 8 + linear(6, 4 * 3) + 12
    positions = 8 * (8 // 2) * 7 + 8
    keys = {
        "conv_dim": [4, 6], "conv_kernel": [5, 3], "conv_stride": [5, 2], "hidden_size": 8,
        "intermediate_size": 12, "num_hidden_layers": 2, "num_conv_pos_embeddings": 7,
        "num_conv_pos_embedding_groups": 2,
    }  # fmt: skip
    expected = waves + 12 + linear(8, 6) + positions + 2 * layer + 16
    assert heard("omniasr_audio", **keys) == expected
    assert heard("omniasr_audio", **keys, conv_bias=False) == expected - 4 - 6


def test_a_first_layer_of_stacked_frames_and_memories_by_convolution() -> None:
    later = 4 * linear(8, 8) + linear(12, 8) + linear(8, 12) + 2 * 16
    first = 3 * linear(8, 15) + linear(8, 8) + linear(12, 8) + linear(8, 12) + 30 + 16
    keys = {
        "num_mel_bins": 5, "num_stacked_frames": 3, "hidden_size": 8, "intermediate_size": 12,
        "num_hidden_layers": 5, "num_timestamp_prediction_layers": 2, "fsmn_kernel_size": 7,
    }  # fmt: skip
    # Two of the layers end in a norm: the last of each purpose.
    assert heard("fun_asr_nano_encoder", **keys) == first + 4 * later + 5 * 8 * 7 + 2 * 16


def test_granites_conformer_and_its_q_former() -> None:
    half = 16 + linear(16, 8) + linear(8, 16)
    attention = 16 + 3 * 8 * 8 + linear(8, 8) + (2 * 4 + 1) * 4
    conv = 16 + linear(2 * 24, 8) + 24 * 5 + 48 + linear(8, 24)
    encoder = linear(8, 10) + 2 * (2 * half + attention + conv + 16) + linear(7, 8) + linear(8, 7)
    sight = 2 * linear(6, 6) + 2 * linear(6, 8) + 12
    layer = 4 * linear(6, 6) + 12 + linear(9, 6) + linear(6, 9) + 12
    former = 12 + 3 * layer + 2 * sight + 3 * 6 + linear(16, 6)  # layers 0 and 2 look
    config = {
        "model_type": "granite_speech",
        "text_config": {**TEXT, "model_type": "granite"},
        "encoder_config": {
            "input_dim": 10, "num_layers": 2, "hidden_dim": 8, "feedforward_mult": 2,
            "num_heads": 2, "output_dim": 7, "max_pos_emb": 4, "conv_kernel_size": 5,
            "conv_expansion_factor": 3,
        },
        "projector_config": {
            "hidden_size": 6, "intermediate_size": 9, "num_hidden_layers": 3,
            "encoder_hidden_size": 8, "cross_attention_frequency": 2,
        },
        "window_size": 15,
        "downsample_rate": 5,
    }  # fmt: skip
    assert sum_of(config) == encoder + former


def test_a_fast_conformer() -> None:
    convolutions = linear(4, 9) + linear(4, 9) + linear(4, 4) + linear(8, 4 * 3)
    halves = 2 * (linear(12, 8) + linear(8, 12))
    conv = linear(16, 8) + linear(8, 5) + linear(8, 8) + 16
    attention = 4 * linear(8, 8) + 8 * 8 + 2 * 8
    keys = {
        "hidden_size": 8, "intermediate_size": 12, "num_hidden_layers": 2,
        "num_attention_heads": 2, "num_mel_bins": 12, "subsampling_factor": 4,
        "subsampling_conv_channels": 4, "conv_kernel_size": 5,
    }  # fmt: skip
    layer = halves + conv + attention + 5 * 16
    assert heard("parakeet_encoder", **keys) == convolutions + 2 * layer
    bare = 2 * (2 * (12 + 8) + 4 * 8)
    assert heard("parakeet_encoder", **keys, attention_bias=False) == (
        convolutions + 2 * layer - bare
    )


def test_gemma_3ns_conformer() -> None:
    # 16 pitches: (16 + 2 - 3) // 2 + 1 = 8, then 4.
    convolutions = 4 * 9 + 4 + 2 * 4 * 9 + 2 + 8 * 2 * 4
    halves = 2 * (2 * 8 * 32 + 16)
    attention = 5 * 8 * 8 + 4 + 2 * 8
    conv = 16 * 8 + 8 * 5 + 8 * 8 + 16
    keys = {
        "hidden_size": 8, "conf_num_hidden_layers": 2, "conf_num_attention_heads": 2,
        "input_feat_size": 16, "sscp_conv_channel_size": [4, 2],
    }  # fmt: skip
    assert heard("gemma3n_audio", **keys) == convolutions + 2 * (halves + attention + conv + 8)


def test_phi_4s_conformer() -> None:
    convolutions = linear(4, 9) + linear(4, 9) + linear(4, 4) + linear(8, 4 * 5)  # 20, 10, 5
    halves = 2 * (16 + linear(24, 8) + linear(8, 12))
    conv = 16 + linear(20, 8) + 20 + linear(16, 3) + linear(6, 16) + linear(10, 8)
    layer = halves + conv + 4 * linear(8, 8) + 2 * 16
    keys = {
        "hidden_size": 8, "intermediate_size": 12, "num_blocks": 2, "num_attention_heads": 2,
        "input_size": 20, "time_reduction": 4, "nemo_conv_channels": 4, "bias_max_distance": 6,
        "ext_pw_out_channel": 10, "depthwise_separable_out_channel": 6, "depthwise_multiplier": 2,
    }  # fmt: skip
    assert heard("phi4_multimodal_audio", **keys) == convolutions + 12 * 2 + 2 * layer


def test_stacked_frames() -> None:
    layer = 3 * 8 * 8 + linear(8, 8) + 4 * 4 + linear(12, 8) + linear(8, 12) + 2 * 16
    keys = {
        "hidden_size": 8, "intermediate_size": 12, "num_hidden_layers": 2,
        "num_attention_heads": 2, "num_mel_bins": 5, "subsampling_factor": 4,
    }  # fmt: skip
    assert heard("nemotron3_5_transcribe_asr_audio", **keys) == 8 * 20 + 2 * layer + 2 * 16


def test_a_codec_of_convolutions() -> None:
    def block(width: int) -> int:
        return linear(width, 7) + linear(2 * width, width) + linear(width, 2 * width) + 4 * width

    keys = {
        "num_filters": 2, "downsampling_ratios": [3, 5], "depths": [1, 2, 3], "ffn_expansion": 2,
        "hidden_size": 6,
    }  # fmt: skip
    stages = block(2) + 2 * block(4) + 3 * block(8)
    down = linear(2, 7) + linear(4, 2 * 6) + linear(8, 4 * 10) + linear(6, 8 * 7)
    up = linear(8, 6 * 7) + 8 * 4 * 10 + 4 + 4 * 2 * 6 + 2 + linear(1, 2 * 7)
    assert heard("vibevoice_acoustic_tokenizer_encoder", **keys) == down + stages
    assert heard("vibevoice_acoustic_tokenizer", **keys) == down + up + 2 * stages


def test_what_folds_an_image_step_by_step() -> None:
    # Of 2 frames of 4 by 4 pixels: sides of 2 and of 4 are folded first, both frames then. The
    # logs of their volumes are 0, 1.39, 2.77 and 3.47; the shares of log(96) that four layers
    # take are 0, 1.14, 2.28, 3.42 and 4.56. Widths are rounded up to 64.
    config = {
        "model_type": "inkling_mm_model",
        "text_config": {**TEXT, "moe_intermediate_size": 8, "n_routed_experts": 2},
        "vision_config": {"patch_size": 4, "temporal_patch_size": 2, "num_hidden_layers": 4},
        "audio_config": {"n_mel_bins": 3, "mel_vocab_size": 5},
    }
    spec = specify(config)
    first, second, third = 64 * 3 * 4 + 64, 64 * 64 * 4 + 64, 6144 * 64 * 2 + 6144
    vision = first + second + third + 16 * 6144 + 16
    assert spec.parameters_by_class()[ModuleClass.VISION] == vision
    assert spec.parameters_by_class()[ModuleClass.AUDIO] == 15 * 16 + 16


def test_which_of_two_names_for_one_thing_decides() -> None:
    # transformers 5.24.0 builds 14 experts from this: ``num_experts`` is the class's field, and
    # what is no field is set behind the fields.
    both = facts_for({"num_experts": 6, "num_local_experts": 14}, "qwen3_omni_moe_talker_text")
    assert both.integer("num_experts") == 14


def test_talkers_and_vocoders() -> None:
    talker = {
        "hidden_size": 8, "intermediate_size": 12, "num_hidden_layers": 2, "num_attention_heads": 2,
        "num_key_value_heads": 1, "vocab_size": 20, "num_experts": 3, "moe_intermediate_size": 5,
        "shared_expert_intermediate_size": 7,
    }  # fmt: skip
    attention = 2 * 8 * 8 + 2 * 4 * 8 + 2 * 4
    experts = 3 * (3 * 5 * 8) + 3 * 7 * 8 + 3 * 8 + 8
    outside = 2 * 20 * 8 + 8 + 2 * (linear(12, 10) + linear(8, 12))
    root = Facts({"thinker_hidden_size": 10})
    tensors = talker_moe(root, facts_for(talker, "qwen3_omni_moe_talker_text"))
    assert sum(t.parameters for t in tensors) == 2 * (attention + experts + 16) + outside

    codes = {**talker, "head_dim": 4, "num_code_groups": 4}
    tensors = code_predictor(facts_for(codes, "qwen3_omni_moe_talker_code_predictor"))
    layer = attention + 3 * 12 * 8 + 16
    assert sum(t.parameters for t in tensors) == 2 * layer + 8 + 3 * 2 * 20 * 8

    wave = {
        "hidden_size": 8, "intermediate_size": 12, "num_hidden_layers": 2, "num_attention_heads": 2,
        "num_key_value_heads": 2, "codebook_size": 10, "num_quantizers": 3, "decoder_dim": 12,
        "upsample_rates": [3], "upsampling_ratios": [2],
    }  # fmt: skip
    layer = 4 * 8 * 8 + 3 * 8 * 12 + 4 * 8
    lengthen = linear(8, 8 * 2) + linear(8, 7) + 16 + linear(32, 8) + linear(8, 32) + 8
    unit = 2 * 2 * 6 + linear(6, 6 * 7) + linear(6, 6)
    raise_rate = linear(12, 8 * 7) + 24 + 12 * 6 * 6 + 6 + 3 * unit + 12 + linear(1, 6 * 7)
    tensors = code2wav(facts_for(wave, "qwen3_omni_moe.code2wav_config", fixed=True))
    assert sum(t.parameters for t in tensors) == 30 * 8 + 2 * layer + 8 + lengthen + raise_rate

    vocoder = {
        "mel_dim": 5, "upsample_initial_channel": 8, "upsample_rates": [2],
        "upsample_kernel_sizes": [4], "resblock_kernel_sizes": [3, 7],
        "resblock_dilation_sizes": [[1, 3, 5], [1, 3, 5]],
    }  # fmt: skip
    blocks = 6 * (linear(4, 12) + 8) + 6 * (linear(4, 28) + 8)
    tensors = bigvgan(facts_for(vocoder, "qwen2_5_omni_bigvgan"))
    assert sum(t.parameters for t in tensors) == (
        linear(8, 35) + 8 * 4 * 4 + 4 + blocks + 8 + 4 * 7
    )


def test_a_diffusion_that_is_told_who_speaks() -> None:
    keys = {
        "hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2, "head_dim": 3,
        "ff_mult": 2, "emb_dim": 5, "num_embeds": 9, "mel_dim": 4, "enc_emb_dim": 3, "enc_dim": 2,
        "enc_channels": [6, 6, 10], "enc_kernel_sizes": [5, 3, 1], "enc_dilations": [1, 2, 1],
        "enc_attention_channels": 7, "enc_res2net_scale": 2, "enc_se_channels": 4,
    }  # fmt: skip
    outside = linear(8, 256) + linear(8, 8) + 10 * 5 + linear(8, 4 + 2 + 3 + 5)
    first = linear(6, 4 * 5)
    second = linear(6, 6) + linear(3, 3 * 3) + linear(6, 6) + linear(4, 6) + linear(6, 4)
    speaker = first + second + linear(10, 10) + linear(7, 30) + linear(10, 7) + linear(2, 20)
    layer = linear(48, 8) + 3 * linear(6, 8) + linear(8, 6) + linear(16, 8) + linear(8, 16)
    end = linear(16, 8) + linear(4, 8)
    tensors = dit(facts_for(keys, "qwen2_5_omni_dit"))
    assert sum(t.parameters for t in tensors) == outside + speaker + 2 * layer + end


@pytest.mark.parametrize("speaks", [True, False])
def test_that_a_talker_counts_only_where_it_is_built(speaks: bool) -> None:
    config = {"model_type": "qwen2_5_omni", "enable_audio_output": speaks}
    spec = specify(config)
    # The class's own talker: 28 layers of 3584 with a width of 18944 are more than 6 billion.
    assert (spec.parameters_by_class()[ModuleClass.AUDIO] > 6_000_000_000) is speaks
    kept = spec.direction(Subject.SEQUENCE_STATE)
    assert kept is (Direction.LOWER if speaks else None)


def test_the_first_published_vibevoice() -> None:
    path = CONFIGS / "microsoft__VibeVoice-1.5B.json"
    if not path.exists():
        pytest.skip("the published configuration is not here")
    spec = specify(json.loads(path.read_text(encoding="utf-8")))
    # The total that the Hub shows for its files.
    assert spec.parameters == 2_704_021_985
    assert spec.direction(Subject.WEIGHTS) is None


def test_the_first_published_qwen3_asr() -> None:
    path = CONFIGS / "Qwen__Qwen3-ASR-0.6B.json"
    if not path.exists():
        pytest.skip("the published configuration is not here")
    spec = specify(json.loads(path.read_text(encoding="utf-8")))
    layer = 4 * linear(896, 896) + linear(3584, 896) + linear(896, 3584) + 2 * 1792
    planes = linear(480, 9) + 2 * linear(480, 480 * 9) + 896 * 480 * 16
    audio = planes + 18 * layer + 1792 + linear(896, 896) + linear(1024, 896)
    # Its text model is Qwen3-0.6B, whose 596,049,920 parameters are well known.
    assert spec.parameters == 596_049_920 + audio


def test_hubert_and_what_it_may_leave_out() -> None:
    keys: dict[str, Any] = {
        "conv_dim": [4, 6], "conv_kernel": [5, 3], "conv_stride": [5, 2], "hidden_size": 8,
        "intermediate_size": 12, "num_hidden_layers": 2, "num_conv_pos_embeddings": 7,
        "num_conv_pos_embedding_groups": 2,
    }  # fmt: skip
    layer = 4 * linear(8, 8) + linear(12, 8) + linear(8, 12) + 2 * 16
    waves = 4 * 5 + 8 + 6 * 4 * 3  # a norm in the first convolution, and no bias
    positions = 8 + 7 + 8 * 4 * 7
    expected = waves + 12 + linear(8, 6) + positions + 8 + 16 + 2 * layer
    assert heard("hubert", **keys) == expected
    assert heard("hubert", **keys, feat_proj_layer_norm=False) == expected - 12
    assert heard("hubert", **keys, conv_pos_batch_norm=True) == expected - 7 + 16


def test_wavlms_gates() -> None:
    keys: dict[str, Any] = {"hidden_size": 8, "intermediate_size": 12, "num_attention_heads": 2}
    plain = heard("wav2vec2", **keys, num_conv_pos_embedding_groups=2, num_hidden_layers=3)
    gated = heard("wavlm", **keys, num_conv_pos_embedding_groups=2, num_hidden_layers=3)
    assert gated - plain == 3 * (2 + linear(8, 4)) + 320 * 2


def test_a_fast_conformer_over_time_alone() -> None:
    convolutions = linear(8, 10) + linear(8, 8 * 3) + linear(4, 8 * 3) + linear(8, 4)
    layer = 4 * 8 * 12 + 4 * 8 * 8 + 2 * 8 * 8 + 8 * 5 + 8 * 8 + 16 + 5 * 8
    keys = {
        "hidden_size": 8, "intermediate_size": 12, "num_hidden_layers": 2,
        "num_attention_heads": 2, "num_mel_bins": 10, "subsampling_conv_kernel_size": 3,
        "subsampling_conv_channels": 4, "conv_kernel_size": 5,
    }  # fmt: skip
    assert heard("lasr_encoder", **keys) == convolutions + 2 * layer + 8


def test_tables_for_text_and_codes_with_a_depth_decoder() -> None:
    small = {"intermediate_size": 12, "num_hidden_layers": 1, "num_attention_heads": 2}
    config: dict[str, Any] = {
        "model_type": "csm",
        **small,
        "hidden_size": 8,
        "num_key_value_heads": 1,
        "vocab_size": 10,
        "num_codebooks": 3,
        "text_vocab_size": 20,
        "depth_decoder_config": {
            **small,
            "hidden_size": 6,
            "num_key_value_heads": 1,
            "backbone_hidden_size": 8,
            "vocab_size": 10,
            "num_codebooks": 3,
        },
    }
    spec = specify(config)
    sums = spec.parameters_by_class()
    assert sums[ModuleClass.EMBEDDING] == 3 * 10 * 8 + 20 * 8
    assert sums[ModuleClass.LM_HEAD] == 10 * 8
    # The table is the depth decoder's too; untied, it has one of its own.
    untied = specify({**config, "tie_codebooks_embeddings": False})
    assert untied.parameters - spec.parameters == 3 * 10 * 8
    depth = 2 * 6 * 6 + 2 * 3 * 6 + 3 * 6 * 12 + 2 * 6 + 6 + 6 * 8 + 2 * 6 * 10
    two = {**config["depth_decoder_config"], "num_hidden_layers": 2}
    more = specify({**config, "depth_decoder_config": two})
    assert more.parameters - spec.parameters == depth - 6 - 6 * 8 - 2 * 6 * 10
    assert spec.direction(Subject.SEQUENCE_STATE) is Direction.LOWER


def test_a_second_way_for_sound() -> None:
    # bosonai/higgs-audio-v2-generation-3B-base: 5,771,283,456 on the Hub, of which the class does
    # not build the head over text, 128,256 by 3,072.
    spec = specify({"model_type": "higgs_audio_v2", "codebook_size": 1026})
    assert spec.parameters == 5_771_283_456 - 128_256 * 3_072


def test_tokenizers_of_images_and_sound() -> None:
    config = {
        "model_type": "apertus1p5",
        "text_config": {**TEXT, "vocab_size": 40},
        "vision_config": {
            "base_channels": 4, "channel_multiplier": [1, 2], "num_res_blocks": 2, "embed_dim": 3,
            "latent_channels": 5, "codebook_size": 10, "resolution": 8, "attn_resolutions": [4],
        },
        "audio_config": {
            "num_filters": 2, "upsampling_ratios": [3], "hidden_size": 6, "codebook_size": 10,
            "kernel_size": 7, "last_kernel_size": 7, "residual_kernel_size": 3,
            "num_lstm_layers": 1,
        },
    }  # fmt: skip

    def residual(before: int, width: int) -> int:
        shortcut = linear(width, before) if before != width else 0
        both = linear(width, 9 * before) + linear(width, 9 * width)
        return 2 * before + 2 * width + both + shortcut

    attention = 16 + 4 * linear(8, 8)
    first = 2 * residual(4, 4) + linear(4, 36)
    second = residual(4, 8) + residual(8, 8) + 2 * attention
    middle = 2 * residual(8, 8) + attention
    ends = linear(4, 27) + 16 + linear(5, 72) + 10 * 3 + linear(3, 5)
    assert sum_of(config, ModuleClass.VISION) == first + second + middle + ends

    def conv(out: int, width: int, kernel: int) -> int:
        return linear(out, width * kernel) + out  # the length of each row is a parameter too

    blocks = conv(1, 2, 3) + conv(2, 1, 1) + conv(2, 2, 1)
    recurrent = 2 * 4 * 4 * 4 + 2 * 4 * 4
    expected = conv(2, 1, 7) + blocks + conv(4, 2, 6) + recurrent + conv(6, 4, 7)
    assert sum_of(config) == expected
