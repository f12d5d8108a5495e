"""KV cache bytes per head and token, against the reference table (section 2.1)."""

from __future__ import annotations

import pytest

from engine.formats.kv import (
    KV_DTYPES,
    LLAMA_CPP_KV_DTYPES,
    head_bytes,
    indexer_bytes,
    is_known,
    latent_bytes,
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


def test_that_every_offered_dtype_can_be_computed() -> None:
    for dtype in (*KV_DTYPES[1:], *LLAMA_CPP_KV_DTYPES):
        assert is_known(dtype)
        assert head_bytes(dtype, 128, 128) > 0


def test_that_an_unresolved_dtype_is_refused() -> None:
    assert not is_known("auto")
    with pytest.raises(ValueError, match="auto"):
        head_bytes("auto", 128, 128)
