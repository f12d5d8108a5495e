"""The KV equation, against hand arithmetic and published figures."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from engine.budget.sequence_state import (
    architecture_bytes,
    cache_terms,
    equation,
    rank_bytes,
    token_growth_bytes,
)
from tests.helpers.published import CONFIGS, GIB, model


def growth(name: str, dtype: str = "bfloat16", context: int = 1) -> int:
    spec = model(name).spec
    return token_growth_bytes(spec, dtype, context, range(len(spec.layers)), 1)


def test_that_bytes_per_token_are_the_published_ones() -> None:
    assert growth("Llama-3.1-8B") == 131_072
    assert growth("Llama-3.1-70B") == 327_680
    assert growth("Qwen2.5-7B") == 57_344
    assert growth("Qwen3-8B") == 147_456
    assert growth("Qwen3-30B-A3B") == 98_304
    # 61 layers of one latent vector of 512 + 64, whatever the heads.
    assert growth("Kimi-K2") == 70_272
    assert growth("Kimi-K2", "fp8_ds_mla") == 40_016


def test_that_sixteen_requests_of_8192_tokens_take_16_gib() -> None:
    spec = model("Llama-3.1-8B").spec
    assert architecture_bytes(spec, "bfloat16", 8192) == GIB
    assert 16 * architecture_bytes(spec, "bfloat16", 8192) == 16 * GIB


def test_that_sliding_layers_keep_their_window_only() -> None:
    # gpt-oss-20b: 12 full layers and 12 of the last 128 tokens, 2 x 8 x 64 x 2 B each.
    spec = model("gpt-oss-20b").spec
    assert architecture_bytes(spec, "bfloat16", 8192) == 12 * 2048 * (8192 + 128)
    assert growth("gpt-oss-20b", context=8192) == 12 * 2048
    assert growth("gpt-oss-20b", context=64) == 24 * 2048


def test_that_the_equation_shows_its_inputs() -> None:
    spec = model("Llama-3.1-8B").spec
    expected = "2 × 32 layers × 8 heads × 128 × 2 B = 131,072 B a token"
    assert equation(spec, "bfloat16") == expected
    assert "(512 + 64) × 2 B" in equation(model("Kimi-K2").spec, "bfloat16")
    assert "last 128 tokens" in equation(model("gpt-oss-20b").spec, "bfloat16")


def test_that_terms_cover_every_layer_that_keeps_a_cache() -> None:
    for name in CONFIGS:
        spec = model(name).spec
        assert sum(t.layers for t in cache_terms(spec, "bfloat16")) == len(spec.attentions)


@given(
    name=st.sampled_from(["Llama-3.1-8B", "gpt-oss-20b", "gemma-3-27b", "Kimi-K2"]),
    tokens=st.integers(1, 200_000),
    more=st.integers(0, 10_000),
)
def test_that_more_tokens_never_cost_less(name: str, tokens: int, more: int) -> None:
    spec = model(name).spec
    few = architecture_bytes(spec, "bfloat16", tokens)
    assert architecture_bytes(spec, "bfloat16", tokens + more) >= few


@given(tokens=st.integers(1, 200_000), tp=st.sampled_from([1, 2, 4, 8]))
def test_that_ranks_share_the_cache_of_grouped_heads(tokens: int, tp: int) -> None:
    spec = model("Llama-3.1-8B").spec
    whole = architecture_bytes(spec, "bfloat16", tokens)
    assert tp * rank_bytes(spec, "bfloat16", tokens, range(32), tp) == whole
    latent = model("Kimi-K2").spec
    one = architecture_bytes(latent, "bfloat16", tokens)
    assert rank_bytes(latent, "bfloat16", tokens, range(61), tp) == one
