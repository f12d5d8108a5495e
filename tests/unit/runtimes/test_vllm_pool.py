"""vLLM's pool arithmetic against the reference specification's worked tables."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.architecture.spec import (
    ArchitectureSpec,
    AttentionKind,
    AttentionSpec,
    LayerSpec,
    StateSpec,
)
from engine.runtimes.vllm.layout import PoolLayout, PoolRule, RequestRule
from engine.runtimes.vllm.pool import pool_layout
from tests.helpers.published import GIB, model

LENGTH = 131_072
AVAILABLE = 20 * GIB
TWO_STEPS = RequestRule(tokens_in_flight=2 * 8192)


def layout_of(name: str, **rule: object) -> PoolLayout:
    spec = model(name).spec
    found = pool_layout(spec, 0, len(spec.layers), PoolRule("bfloat16", **rule))  # type: ignore[arg-type]
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("name", "groups", "bytes_per_block", "blocks", "per_request", "printed", "tokens"),
    [
        ("Llama-3.1-8B", 1, 2_097_152, 10_240, 8_192, "1.25", 163_840),
        ("gpt-oss-20b", 2, 393_216, 54_613, 9_225, "5.92", 775_960),
        ("gemma-3-27b", 7, 1_310_720, 16_384, 14_726, "1.11", 145_829),
    ],
)
def test_that_the_worked_table_comes_out_to_the_block(  # noqa: PLR0917
    name: str,
    groups: int,
    bytes_per_block: int,
    blocks: int,
    per_request: int,
    printed: str,
    tokens: int,
) -> None:
    layout = layout_of(name)
    assert layout.num_groups == groups
    assert layout.bytes_per_block == bytes_per_block
    assert AVAILABLE // layout.bytes_per_block == blocks
    assert layout.blocks_per_request(LENGTH, TWO_STEPS) == per_request
    assert f"{blocks / per_request:.2f}" == printed
    assert blocks * LENGTH // per_request == tokens


def test_that_gemma_3_is_padded_by_eight_layers() -> None:
    # vLLM's own log line for gemma-3-27b: "Add 8 padding layers".
    assert layout_of("gemma-3-27b").padding_layers == 8


def test_that_without_hybrid_groups_every_layer_is_charged_in_full() -> None:
    layout = layout_of("gemma-3-27b", hybrid_groups=False)
    assert layout.num_groups == 1
    assert layout.bytes_per_block == 62 * 16 * 16 * 128 * 2 * 2


def test_that_kv_heads_are_replicated_beyond_their_number() -> None:
    assert layout_of("Qwen3-30B-A3B", tensor_parallel_size=4).bytes_per_block == 48 * 16 * 512
    assert layout_of("Qwen3-30B-A3B", tensor_parallel_size=8).bytes_per_block == 48 * 16 * 512


def test_that_an_indexer_lies_beside_the_latent_in_one_group() -> None:
    # DeepSeek-V3.2: 656 + 132 bytes a token and layer, seen as 48,068 B over 61 layers.
    attention = AttentionSpec(
        kind=AttentionKind.LATENT,
        num_attention_heads=128,
        num_key_value_heads=128,
        head_dim=192,
        v_head_dim=128,
        kv_lora_rank=512,
        qk_rope_head_dim=64,
        qk_nope_head_dim=128,
        index_head_dim=128,
    )
    spec = spec_of([LayerSpec((), attention)] * 61)
    layout = pool_layout(spec, 0, 61, PoolRule("fp8_ds_mla", block_size=64))
    assert layout is not None
    assert layout.num_groups == 1
    assert layout.bytes_per_block == 64 * 48_068


def spec_of(layers: list[LayerSpec]) -> ArchitectureSpec:
    return ArchitectureSpec(
        model_type="test",
        layers=tuple(layers),
        outer=(),
        mtp=(),
        hidden_size=1024,
        vocab_size=1000,
        max_position_embeddings=262_144,
        dtype="bfloat16",
        tie_word_embeddings=False,
        weight_format="bf16",
    )


def delta_net(value_heads: int) -> StateSpec:
    return StateSpec(
        kind="gated_delta_net",
        conv_dim=2 * 16 * 128 + value_heads * 128,
        conv_kernel=4,
        recurrent_elements=value_heads * 128 * 128,
        recurrent_heads=value_heads,
        state_dtype="float32",
    )


def full(kv_heads: int, head_dim: int) -> AttentionSpec:
    return AttentionSpec(AttentionKind.FULL, 16, kv_heads, head_dim, head_dim)


def test_that_state_pages_set_the_block_of_a_hybrid() -> None:
    # Logged for a 27B of 48 delta-net and 16 full layers, fp8 cache: block 1568, 3 groups of
    # state, 14 blocks a request of 16,384 tokens, 26 blocks in 1.29 GiB (printed 1.86x).
    state = LayerSpec((), state=delta_net(48))
    attention = LayerSpec((), full(4, 256))
    spec = spec_of(([state] * 3 + [attention]) * 16)
    layout = pool_layout(spec, 0, 64, PoolRule("fp8"))
    assert layout is not None
    assert layout.num_groups == 4
    assert layout.bytes_per_block == 16 * 1568 * 2048
    assert layout.blocks_per_request(16_384, RequestRule(2048)) == 14
    assert int(1.29 * GIB) // layout.bytes_per_block == 26


def test_that_a_small_hybrid_is_packed_like_its_log() -> None:
    # Logged for Qwen3.5-0.8B (18 + 6 layers): block 544, groups of 6, 19 blocks at 8,192.
    state = LayerSpec(
        (), state=StateSpec("gated_delta_net", 3 * 16 * 128, 4, 16 * 128 * 128, 16, "float32")
    )
    attention = LayerSpec((), full(2, 256))
    spec = spec_of(([state] * 3 + [attention]) * 6)
    layout = pool_layout(spec, 0, 24, PoolRule("bfloat16"))
    assert layout is not None
    assert layout.bytes_per_block == 6 * 1_114_112
    assert layout.blocks_per_request(8192, RequestRule(8192)) == 19


@given(
    name=st.sampled_from(["Llama-3.1-8B", "gpt-oss-20b", "gemma-3-27b", "Kimi-K2"]),
    tokens=st.integers(1, 200_000),
    step=st.integers(1, 32_768),
)
def test_that_blocks_cover_what_the_architecture_needs(name: str, tokens: int, step: int) -> None:
    from engine.budget.sequence_state import architecture_bytes

    layout = layout_of(name)
    blocks = layout.blocks_per_request(tokens, RequestRule(step))
    least = architecture_bytes(model(name).spec, "bfloat16", tokens)
    assert blocks * layout.bytes_per_block >= least
    assert layout.blocks_per_request(tokens + 1, RequestRule(step)) >= blocks


def test_that_a_prediction_block_joins_the_full_layers() -> None:
    # Logged for a 27B with MTP: 48 state layers padded to 51, groups of 17, 12 state blocks at
    # three speculative tokens: 176 blocks a request of 262,144 tokens in blocks of 1,600.
    state = LayerSpec((), state=delta_net(48))
    attention = LayerSpec((), full(4, 256))
    spec = spec_of(([state] * 3 + [attention]) * 16)
    rule = PoolRule("fp8", tensor_parallel_size=2, speculative_tokens=3, with_mtp=True)
    layout = pool_layout(spec, 0, 64, rule)
    assert layout is not None
    assert layout.padding_layers == 3
    assert layout.bytes_per_block == 17 * 1_638_400
    assert layout.blocks_per_request(262_144, RequestRule(8192, state_blocks=4)) == 176
    assert int(14.68 * GIB) // layout.bytes_per_block == 565


def test_that_a_stage_without_cache_has_no_pool() -> None:
    assert pool_layout(spec_of([LayerSpec(())]), 0, 1, PoolRule("bfloat16")) is None


def test_that_pages_that_do_not_divide_are_padded() -> None:
    # Full layers of 2 x 256 and windows of 3 x 128: 1,536 B a token do not divide 2,048.
    window = AttentionSpec(AttentionKind.SLIDING, 16, 3, 128, 128, window=1024)
    spec = spec_of([LayerSpec((), window), LayerSpec((), full(2, 256))] * 4)
    layout = pool_layout(spec, 0, 8, PoolRule("bfloat16"))
    assert layout is not None
    assert layout.num_groups == 2
    assert layout.bytes_per_block == 4 * 16 * 2048


def test_that_chunked_layers_are_charged_in_full() -> None:
    # Llama 4 Scout, TP 8: vLLM asked 240.0 GiB a rank for one request of 10,485,760 tokens.
    chunked = AttentionSpec(AttentionKind.CHUNKED, 40, 8, 128, 128, window=8192)
    spec = spec_of([LayerSpec((), chunked)] * 36 + [LayerSpec((), full(8, 128))] * 12)
    layout = pool_layout(spec, 0, 48, PoolRule("bfloat16", tensor_parallel_size=8))
    assert layout is not None
    blocks = layout.blocks_per_request(10_485_760, RequestRule(8192))
    assert blocks * layout.bytes_per_block == 240 * GIB
