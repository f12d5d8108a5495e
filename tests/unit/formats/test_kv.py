"""KV cache bytes per head and token, against the reference table (section 2.1)."""

from __future__ import annotations

import pytest

from engine.formats.kv import (
    KV_DTYPES,
    LLAMA_CPP_KV_DTYPES,
    PACKED_LATENTS,
    compressed_bytes,
    head_bytes,
    indexer_bytes,
    is_known,
    latent_bytes,
    layer_bytes,
    side_bytes,
)


@pytest.mark.parametrize(
    ("dtype", "expected_bytes"),
    [
        ("bf16", 512),
        ("fp16", 512),
        ("fp8", 256),
        ("fp8_e4m3", 256),
        ("int8_per_token_head", 264),
        ("fp8_per_token_head", 264),
        ("int4_per_token_head", 136),
        ("nvfp4", 144),
        ("nvfp4_4over6", 144),
        ("q8_0", 272),
        ("q5_1", 192),
        ("q5_0", 176),
        ("q4_1", 160),
        ("q4_0", 144),
        ("iq4_nl", 144),
        ("f16", 512),
    ],
)
def test_that_a_head_of_128_takes_the_bytes_of_the_reference_table(
    dtype: str, expected_bytes: int
) -> None:
    assert head_bytes(dtype, 128, 128) == expected_bytes


def test_that_keys_and_values_may_differ_in_width() -> None:
    assert head_bytes("bf16", 192, 128) == 2 * 192 + 2 * 128


def test_that_latent_vectors_take_the_published_bytes() -> None:
    # DeepSeek-V3: 1,152 bytes in bf16 and 656 in the FlashMLA layout, times 61 layers.
    assert latent_bytes("bf16", 512, 64) * 61 == 70_272
    assert latent_bytes("fp8_ds_mla", 512, 64) * 61 == 40_016
    assert latent_bytes("fp8", 512, 64) == 576
    assert indexer_bytes(128) == 132


def test_that_packed_latents_take_the_bytes_of_their_layouts() -> None:
    # 512 values in FP4 (256), 64 rotary ones in FP8, an FP8 scale per 16 of the 512 (32).
    assert latent_bytes("nvfp4_ds_mla", 512, 64) == 256 + 64 + 32 == 352
    # A scale a token takes its place twice, as if there were values.
    assert latent_bytes("int8_per_token_head", 512, 64) == 576 + 2 * 4
    assert latent_bytes("int4_per_token_head", 512, 64) == 288 + 2 * 4
    # A layer that keeps the index's keys alone has no latent vector.
    assert latent_bytes("bf16", 0, 0) == latent_bytes("fp8_ds_mla", 0, 0) == 0


def test_that_keys_of_deepseek_v4_take_584_bytes() -> None:
    # 448 values in FP8, 64 rotary ones in BF16, an 8-bit scale per 64 of the 448 in 8 bytes.
    assert compressed_bytes("fp8_ds_mla", 512, 64) == 448 + 128 + 8 == 584
    assert compressed_bytes("bf16", 512, 64) == 1024
    assert compressed_bytes("fp8", 512, 64) == 512


def test_that_widths_that_are_no_multiple_of_a_block_are_rounded_as_the_runtimes_do() -> None:
    # llama.cpp: two heads of 80 are one row of 160 elements, five blocks of 34 bytes.
    assert layer_bytes("q8_0", 2, 80, 80) == 2 * 5 * 34
    assert layer_bytes("q8_0", 1, 80, 80) == 2 * 3 * 34
    # vLLM: whole bytes of two values, and a scale per whole 16.
    assert side_bytes("nvfp4", 88) == 44 + 5
    assert side_bytes("int4_per_token_head", 81) == 40 + 4
    assert layer_bytes("int8_per_token_head", 8, 192, 128) == 8 * (192 + 4 + 128 + 4)


def test_that_what_is_not_kept_takes_nothing() -> None:
    for dtype in ("bf16", "int8_per_token_head", "int4_per_token_head", "nvfp4", "q8_0"):
        assert side_bytes(dtype, 0) == 0


def test_that_every_offered_dtype_can_be_computed() -> None:
    for dtype in (*KV_DTYPES[1:], *LLAMA_CPP_KV_DTYPES):
        assert is_known(dtype)
        if dtype not in PACKED_LATENTS:
            assert head_bytes(dtype, 128, 128) > 0
    for dtype in PACKED_LATENTS:
        assert latent_bytes(dtype, 512, 64) > 0
        with pytest.raises(ValueError, match=dtype):
            head_bytes(dtype, 128, 128)


def test_that_an_unresolved_dtype_is_refused() -> None:
    assert not is_known("auto")
    with pytest.raises(ValueError, match="auto"):
        head_bytes("auto", 128, 128)
