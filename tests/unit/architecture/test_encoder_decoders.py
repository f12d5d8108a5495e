"""Encoder-decoders: parameters as published or by hand, caches as measured, by class.

Sources:
    Totals of the published checkpoints (their safetensors headers), and of the classes built on
    the meta device (transformers 5.24.0). Caches: ``configs/tiny_cache.jsonl`` beside the
    checkout, measured with an encoder of 12 tokens.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.architecture.read import specify
from engine.architecture.spec import (
    ArchitectureSpec,
    AttentionKind,
    Direction,
    ModuleClass,
    Subject,
)
from engine.budget.sequence_state import architecture_bytes, equation
from engine.runtimes.transformers.cache import attention_bytes
from engine.runtimes.vllm.layout import PoolRule, RequestRule
from engine.runtimes.vllm.pool import pool_layout

MEASURED = (
    Path(__file__).resolve().parents[3].parent / "shared" / "configs" / "tiny_cache.jsonl"
)  # fmt: skip
SOURCE_TOKENS = 12


def whisper(width: int, layers: int, heads: int, **more: Any) -> dict[str, Any]:
    return {
        "model_type": "whisper", "d_model": width, "vocab_size": 51865,
        "encoder_layers": layers, "decoder_layers": layers,
        "encoder_attention_heads": heads, "decoder_attention_heads": heads,
        "encoder_ffn_dim": 4 * width, "decoder_ffn_dim": 4 * width, **more,
    }  # fmt: skip


LARGE_V3 = whisper(1280, 32, 20, vocab_size=51866, num_mel_bins=128, dtype="float16")
BART_BASE = {
    "model_type": "bart", "d_model": 768, "encoder_layers": 6, "decoder_layers": 6,
    "encoder_attention_heads": 12, "decoder_attention_heads": 12, "encoder_ffn_dim": 3072,
    "decoder_ffn_dim": 3072,
}  # fmt: skip
T5_BASE = {"model_type": "t5", "d_model": 768, "d_ff": 3072, "num_layers": 12, "num_heads": 12}


@pytest.mark.parametrize(
    ("config", "total"),
    [
        pytest.param(whisper(384, 4, 6), 37_760_640, id="whisper-tiny"),
        pytest.param(whisper(512, 6, 8), 72_593_920, id="whisper-base"),
        pytest.param(whisper(768, 12, 12), 241_734_912, id="whisper-small"),
        pytest.param(whisper(1024, 24, 16), 763_857_920, id="whisper-medium"),
        pytest.param(LARGE_V3, 1_543_490_560, id="whisper-large-v3"),
        pytest.param({"model_type": "t5"}, 60_506_624, id="t5-small"),
        pytest.param(T5_BASE, 222_903_552, id="t5-base"),
        pytest.param(BART_BASE, 139_420_416, id="bart-base"),
        pytest.param({"model_type": "bart"}, 406_291_456, id="bart-large"),
        pytest.param({"model_type": "mbart", "vocab_size": 250054}, 610_879_488, id="mbart-50"),
        pytest.param({"model_type": "m2m_100"}, 483_905_536, id="m2m100-418m"),
        pytest.param({"model_type": "m2m_100", "vocab_size": 256206}, 615_073_792, id="nllb-600m"),
    ],
)
def test_that_a_published_model_has_its_published_parameters(
    config: dict[str, Any], total: int
) -> None:
    spec = specify(config)
    assert spec.parameters == total
    assert spec.direction(Subject.WEIGHTS) is None
    assert spec.direction(Subject.SEQUENCE_STATE) is None
    assert spec.direction(Subject.ACTIVATIONS) is Direction.LOWER


NESTED = {
    "model_type": "t5gemma",
    "encoder": {"hidden_size": 512, "num_hidden_layers": 2},
    "decoder": {"hidden_size": 256, "num_hidden_layers": 3},
}


@pytest.mark.parametrize(
    ("config", "total"),
    [
        ({"model_type": "musicgen", "text_encoder": {"model_type": "t5"},
          "audio_encoder": {"model_type": "encodec"},
          "decoder": {"model_type": "musicgen_decoder"}}, 470_291_938),
        ({"model_type": "dia"}, 1_611_160_576),
        ({"model_type": "kyutai_speech_to_text"}, 2_696_431_425),
        ({"model_type": "canary"}, 962_155_520),
        ({"model_type": "moonshine"}, 27_092_736),
        ({"model_type": "speecht5"}, 151_165_056),
        # facebook/seamless-m4t-v2-large: text, speech, units and voice.
        ({"model_type": "seamless_m4t_v2", "architectures": ["SeamlessM4Tv2Model"]}, 2_309_249_669),
        ({"model_type": "udop"}, 742_440_960),
        ({"model_type": "switch_transformers", "num_sparse_encoder_layers": 6}, 383_390_976),
        ({"model_type": "dory"}, 3_975_229_440),
        (NESTED, 263_464_192),
        ({"model_type": "vision-encoder-decoder",
          "encoder": {"model_type": "vit", "num_hidden_layers": 2},
          "decoder": {"model_type": "trocr", "decoder_layers": 2,
                      "cross_attention_hidden_size": 768}}, 100_055_040),
        ({"model_type": "encoder-decoder", "encoder": {"model_type": "bert"}}, 247_363_386),
    ],
)  # fmt: skip
def test_that_a_class_has_the_parameters_that_it_builds(config: dict[str, Any], total: int) -> None:
    spec = specify(config)
    assert (spec.parameters, spec.direction(Subject.WEIGHTS)) == (total, None)


def test_that_a_tiny_bart_comes_out_by_hand() -> None:
    config = {
        "model_type": "bart", "vocab_size": 128, "d_model": 64, "encoder_layers": 3,
        "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 2,
        "encoder_ffn_dim": 96, "decoder_ffn_dim": 160, "max_position_embeddings": 30,
    }  # fmt: skip
    attention, norm = 4 * (64 * 64 + 64), 2 * 64
    encoder = 3 * (attention + 2 * 64 * 96 + 96 + 64 + 2 * norm)
    decoder = 2 * (2 * attention + 2 * 64 * 160 + 160 + 64 + 3 * norm)
    side = (30 + 2) * 64 + norm
    assert specify(config).parameters == 128 * 64 + encoder + decoder + 2 * side
    alone = specify(config | {"architectures": ["BartForCausalLM"]})
    assert alone.parameters == 128 * 64 + decoder + side
    # A vocabulary four times: the shared table, both sides' own, and the head.
    untied = specify(config | {"tie_word_embeddings": False})
    assert untied.parameters == 4 * 128 * 64 + encoder + decoder + 2 * side


def test_that_the_class_decides_which_sides_there_are() -> None:
    whole = specify(T5_BASE | {"architectures": ["T5ForConditionalGeneration"]})
    encoder = specify(T5_BASE | {"architectures": ["T5EncoderModel"]})
    assert all(layer.cross is not None for layer in whole.layers)
    assert [len(whole.attentions), len(encoder.attentions)] == [12, 0]
    # Twelve layers of the encoder, the table, one bias of positions and the last norm.
    layer = 4 * 768 * 768 + 2 * 768 * 3072 + 2 * 768
    assert encoder.parameters == 12 * layer + 32128 * 768 + 32 * 12 + 768
    alone = specify(BART_BASE | {"architectures": ["BartForCausalLM"]})
    assert all(layer.cross is None for layer in alone.layers)
    assert any("encoder_attn" in t.name for t in alone.layers[0].tensors)
    assert alone.doubts == ()


def test_that_a_decoder_inside_another_model_reads_that_ones_encoder() -> None:
    decoder = BART_BASE | {"architectures": ["BartForConditionalGeneration"]}
    spec = specify(
        {"model_type": "vision-encoder-decoder", "encoder": {"model_type": "vit"},
         "decoder": decoder}
    )  # fmt: skip
    assert spec.layers[0].cross is not None
    assert spec.parameters_by_class()[ModuleClass.VISION] == 86_389_248
    alone = specify(BART_BASE | {"architectures": ["BartForCausalLM"]})
    assert spec.parameters == alone.parameters + 86_389_248


@pytest.mark.parametrize(
    ("encoder", "tokens"),
    [
        # 384 / 16 = 24 patches a side, and the class token.
        ({"model_type": "vit", "image_size": 384}, 24 * 24 + 1),
        # 2560 × 1920 in patches of 4, whose sides three stages halve: Donut's 4,800 tokens.
        ({"model_type": "donut-swin", "image_size": [2560, 1920]}, 4800),
    ],
)
def test_that_an_image_is_as_many_tokens_whatever_the_answers_length(
    encoder: dict[str, Any], tokens: int
) -> None:
    decoder = {"model_type": "trocr", "decoder_layers": 2}
    spec = specify({"model_type": "vision-encoder-decoder", "encoder": encoder, "decoder": decoder})
    cross = spec.layers[0].cross
    assert cross is not None
    assert cross.window == tokens
    assert spec.direction(Subject.SEQUENCE_STATE) is None


def test_that_a_sound_of_any_length_leaves_the_cache_open() -> None:
    spec = specify({"model_type": "moonshine"})
    assert spec.direction(Subject.SEQUENCE_STATE) is Direction.EITHER


def test_that_keys_and_values_are_made_of_the_encoders_width() -> None:
    layer = specify(NESTED).layers[0]
    shapes = {t.name: t.shape for t in layer.tensors}
    assert shapes["cross_attn.k_proj.weight"] == (4 * 256, 512)
    assert shapes["self_attn.k_proj.weight"] == (4 * 256, 256)


def test_that_a_head_that_t5_may_store_apart_is_a_lower_bound() -> None:
    spec = specify(T5_BASE | {"tie_word_embeddings": False})
    assert spec.parameters == 222_903_552
    assert spec.direction(Subject.WEIGHTS) is Direction.LOWER


def test_that_an_unknown_encoder_decoder_stays_in_doubt() -> None:
    config = {
        "model_type": "bart_of_tomorrow", "hidden_size": 64, "num_hidden_layers": 2,
        "num_attention_heads": 4, "intermediate_size": 128, "vocab_size": 100,
        "encoder_layers": 2, "is_encoder_decoder": True,
    }  # fmt: skip
    spec = specify(config)
    assert spec.direction(Subject.WEIGHTS) is not None
    assert any("encoder or cross-attention" in doubt.reason for doubt in spec.doubts)


def cache_bytes(spec: ArchitectureSpec, tokens: int, dtype: str) -> int:
    """What transformers keeps with an encoder of ``SOURCE_TOKENS``."""
    kept = 0
    for layer in spec.layers:
        if layer.attention is not None:
            kept += attention_bytes(layer.attention, tokens, dtype)
        if layer.cross is not None:
            source = replace(layer.cross, window=SOURCE_TOKENS)
            kept += attention_bytes(source, tokens, dtype)
    return kept


@pytest.mark.skipif(not MEASURED.is_file(), reason="the measured caches are not there")
def test_that_the_caches_of_both_sides_are_as_measured() -> None:
    seen: set[str] = set()
    for line in MEASURED.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if row["kind"] != "encdec" or row["status"] != "ok":
            continue
        config = {"model_type": row["measured_config_type"], **row["config"]}
        spec = specify(config | {"architectures": [row["model_class"]]})
        theirs = {int(n): run["total_bytes"] for n, run in row["runs"].items()}
        assert {n: cache_bytes(spec, n, row["dtype"]) for n in theirs} == theirs, row["model_type"]
        assert spec.direction(Subject.SEQUENCE_STATE) is None
        seen.add(row["model_type"])
    assert len(seen) >= 20


def test_that_whisper_keeps_its_encoders_tokens_whatever_the_answers_length() -> None:
    spec = specify(LARGE_V3)
    # Keys and values of 20 heads of 64 in 16 bits, in 32 layers.
    token = 2 * 20 * 64 * 2 * 32
    for answer in (1, 448):
        assert architecture_bytes(spec, "float16", answer) == (answer + 1500) * token
    said = equation(spec, "float16")
    assert (
        "2 × 32 cross-attention layers × 20 heads × 64 × 2 B (the encoder's 1,500 tokens)" in said
    )


def test_that_vllm_gives_an_encoders_tokens_blocks_of_their_own() -> None:
    """Both kinds of layers have pages of one size, so that each takes a group of 32."""
    layout = pool_layout(specify(LARGE_V3), 0, 32, PoolRule("float16"))
    assert layout is not None
    assert layout.num_groups == 2
    assert layout.bytes_per_block == 32 * 16 * 2 * 20 * 64 * 2
    request = RequestRule(2048)
    # 448 / 16 = 28 blocks of the answer, 1,500 / 16 = 94 of the encoder.
    assert layout.blocks_per_request(448, request) == 28 + 94
    assert layout.blocks_per_request(16, request) == 1 + 94


def test_that_an_encoder_as_long_as_the_input_counts_as_such() -> None:
    layout = pool_layout(specify(BART_BASE), 0, 6, PoolRule("float16"))
    assert layout is not None
    assert layout.blocks_per_request(1000, RequestRule(2048)) == 63 + 63
    kept = specify(BART_BASE).layers[0].cross
    assert kept is not None
    assert (kept.kind, kept.window) == (AttentionKind.CROSS, 0)
