"""One evaluation by hand: models so small that nothing is freed before it ends."""

from __future__ import annotations

from typing import Any

import pytest

from engine.architecture.read import read
from engine.runtimes.mlx.layers import stack
from engine.runtimes.mlx.passes import run
from engine.runtimes.mlx.reading import Pass
from engine.source.raw import RawModel

FUSED = frozenset({64, 80, 128})
LLAMA: dict[str, Any] = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "vocab_size": 512,
    "hidden_size": 96,
    "intermediate_size": 160,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "max_position_embeddings": 4096,
    "tie_word_embeddings": True,
    "torch_dtype": "bfloat16",
}
T = 256


def outcome(wanted: Pass, **changes: Any):
    model = read(RawModel(id="tiny", source="by hand", config=LLAMA | changes))
    found = stack(model.spec, range(len(model.spec.layers)), "bf16", 1, 0)
    return run(found, wanted)


def first(**more: Any) -> Pass:
    return Pass(**({"tokens": T, "offset": 0, "step": 2048, "fused": FUSED} | more))


# Of a token, in elements: the hidden state is 96 wide, queries 256, keys and values 128 each.
MIXES = 96 + 256 + 128 + 128 + 256 + (128 + 128)
"""Norm, three products, rotated queries, and keys and values on their way to the cache."""
FEEDS = 96 + 160 + 160 + 96
"""Norm, gate, up (the product of both lies in the gate's place), down (the sum lies there)."""


def test_that_a_chunk_holds_every_tensor_that_its_only_command_buffer_made():
    found = outcome(first())
    # The embedding; two layers up to their caches; one's attention, product out and MLP. What
    # the last layer gives is asked for by nothing.
    per_token = 96 + 2 * (MIXES + 256) + (256 + 96) + FEEDS
    assert found.peak_bytes == per_token * T * 2
    assert found.cache_bytes == 2 * 256 * 256 * 2


def test_that_attention_without_a_kernel_makes_all_scores_and_a_mask_of_bytes():
    found = outcome(first(fused=frozenset()))
    plain = outcome(first())
    # Four heads of T × T scores, T × T bytes of mask, and the output once more in order.
    assert found.peak_bytes - plain.peak_bytes == 4 * T * T * 2 + T * T + 256 * T * 2
    # The scores are the largest buffer: softmax is written over them.
    assert found.largest_bytes == 4 * T * T * 2


def test_that_heads_of_a_width_without_a_kernel_make_scores():
    wide = outcome(first(), head_dim=256)
    assert wide.largest_bytes == max(4 * T * T * 2, T * 4 * 256 * 2)
    long = outcome(first(offset=2048), head_dim=256)
    assert long.largest_bytes == 4 * T * (2048 + T) * 2


def test_that_a_grown_cache_lies_beside_the_old_one():
    later, plain = outcome(first(offset=512)), outcome(first())
    # 512 rows of two layers before; each is copied into 768 rows.
    old, new = 2 * 512 * 256 * 2, 2 * 768 * 256 * 2
    assert later.peak_bytes - plain.peak_bytes == old + new - plain.cache_bytes
    assert later.cache_bytes == new


def test_that_logits_of_a_whole_chunk_come_on_top_in_older_releases():
    asked, plain = outcome(first(logits=True)), outcome(first())
    # The last layer runs through: attention, product out, MLP; and a row of logits a token.
    more = 256 + 96 + FEEDS + 512
    assert asked.peak_bytes - plain.peak_bytes == more * T * 2


def test_that_one_token_that_finds_room_copies_no_cache():
    found = outcome(first(tokens=1, offset=511, grows=False))
    assert found.cache_bytes == 2 * 512 * 256 * 2
    assert found.peak_bytes - found.cache_bytes < 20_000


@pytest.mark.parametrize(("experts", "per_token"), [(8, 2), (16, 4)])
def test_that_experts_read_sorted_copies_of_every_token(experts: int, per_token: int):
    dense = outcome(first())
    changes = {
        "model_type": "mixtral",
        "architectures": ["MixtralForCausalLM"],
        "num_local_experts": experts,
        "num_experts_per_tok": per_token,
    }
    found = outcome(first(), **changes)
    # Scores and order of the experts in 32 bits; tokens sorted, gate and up, down, and put back.
    sparse = 2 * experts * 4 + (96 + 2 * 160 + 96 + 96) * per_token * 2 + 96 * 2
    assert found.peak_bytes - dense.peak_bytes == (sparse - (FEEDS - 96) * 2) * T


def test_that_the_input_of_a_convolution_lives_until_the_chunk_ends():
    config = {
        "model_type": "qwen3_next",
        "architectures": ["Qwen3NextForCausalLM"],
        "hidden_size": 1024,
        "num_hidden_layers": 40,
        "layer_types": ["linear_attention"] * 40,
        "linear_num_key_heads": 8,
        "linear_num_value_heads": 16,
        "linear_key_head_dim": 128,
        "linear_value_head_dim": 128,
        "num_experts": 0,
        "intermediate_size": 1024,
    }
    short, long = (outcome(first(tokens=tokens), **config) for tokens in (4096, 8192))
    # 40 convolutions over 2 × 8 × 128 + 16 × 128 channels, 2 bytes each: beside what is under
    # way, which is bounded, the peak grows by them.
    grown = (long.peak_bytes - short.peak_bytes) / 4096
    assert 40 * 4096 * 2 <= grown <= 40 * 4096 * 2 + 60_000
