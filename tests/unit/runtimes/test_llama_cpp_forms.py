"""The forms in which llama.cpp keeps what is no plain key and value, worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest

from engine.architecture.read import read, specify
from engine.architecture.spec import Direction, Subject
from engine.budget.model import Region, RegionBudget
from engine.deployment.spec import Deployment
from engine.errors import DeploymentError
from engine.runtimes.kept import doubts_in
from engine.sizing import size
from engine.source.raw import RawModel
from tests.helpers.published import gpu, machine

CELLS = 8192


def cache_of(config: dict[str, Any], **chosen: Any) -> RegionBudget:
    """The KV cache of a GPU that holds all layers."""
    model = read(RawModel(id="x/y", source="by hand", config=config))
    fields: dict[str, Any] = {"n_ctx": CELLS, "n_parallel": 1, "weight_format": "Q4_K_M"} | chosen
    deployment = Deployment(runtime="llama.cpp", **fields)
    return size(model, deployment, machine(gpu(600.0), 1)).budget.ranks[0].regions[Region.KV_CACHE]


def held(config: dict[str, Any], **chosen: Any) -> int:
    return cache_of(config, **chosen).estimate.likely_bytes


LATENT: dict[str, Any] = {
    "model_type": "deepseek_v3",
    "vocab_size": 1024,
    "hidden_size": 1024,
    "intermediate_size": 512,
    "moe_intermediate_size": 256,
    "n_routed_experts": 8,
    "num_experts_per_tok": 2,
    "n_group": 1,
    "topk_group": 1,
    "num_hidden_layers": 4,
    "num_attention_heads": 16,
    "first_k_dense_replace": 1,
}


@pytest.mark.parametrize(("cache_type", "row_bytes"), [("f16", 1152), ("q8_0", 612)])
def test_that_a_latent_is_one_row_without_values(cache_type: str, row_bytes: int) -> None:
    # 576 elements: 2 B each, or 18 blocks of 34 B, and on CUDA 512 - 64 elements more a tensor.
    size_bytes = held(LATENT, kv_cache_dtype=cache_type)
    padding = 4 * (14 * 34 + 36) if cache_type == "q8_0" else 0
    assert size_bytes == CELLS * 4 * row_bytes + padding


def test_that_index_keys_are_counted_at_the_most() -> None:
    indexed = LATENT | {"model_type": "deepseek_v32", "index_head_dim": 128}
    region = cache_of(indexed)
    assert region.estimate.likely_bytes == CELLS * 4 * (576 + 128) * 2
    (doubt,) = doubts_in(specify(indexed), "llama.cpp")
    assert doubt.direction is Direction.UPPER


V4: dict[str, Any] = {
    "model_type": "deepseek_v4",
    "vocab_size": 1024,
    "hidden_size": 1024,
    "num_hidden_layers": 4,
    "num_attention_heads": 16,
    "moe_intermediate_size": 256,
    "n_routed_experts": 8,
    "head_dim": 512,
    "index_head_dim": 128,
    "sliding_window": 128,
    "compress_ratios": [0, 4, 128, 4],
}


def test_that_compressed_entries_lie_beside_the_windows() -> None:
    # 128 + 512 tokens are 768 cells in each of four layers; an entry has 512 elements, and its
    # key in the index 128.
    windows = 4 * 768 * 512 * 2
    entries = 2 * (CELLS // 4) * (512 + 128) * 2 + (CELLS // 128) * 512 * 2
    region = cache_of(V4)
    assert region.estimate.likely_bytes == windows + entries
    assert "(768 cells × 1,024 B + 2,621,440 B of entries)" in region.estimate.formula
    assert "(768 cells × 1,024 B + 65,536 B of entries)" in region.estimate.formula


def test_that_every_slot_has_entries_of_its_own() -> None:
    one = held(V4, kv_unified=True)
    assert held(V4, n_parallel=4, kv_unified=True) == 4 * one


def test_that_windows_of_deepseek_v4_take_the_printed_cells() -> None:
    # Logged for 43 layers: 4,352 cells at a micro-batch of 4,096, 182.75 MiB without values.
    flash = V4 | {"num_hidden_layers": 43, "compress_ratios": [0] * 43}
    size_bytes = held(flash, n_ctx=64_000, n_batch=4096, n_ubatch=4096, kv_cache_dtype="bf16")
    assert size_bytes == 43 * 4352 * 512 * 2 == int(182.75 * 2**20)


@pytest.mark.parametrize(
    ("model_type", "direction"),
    [
        ("t5", None), ("whisper", Direction.LOWER), ("longcat_flash", Direction.EITHER),
        ("cpmant", Direction.LOWER), ("llama", None), ("kimi_linear", None),
    ],
)  # fmt: skip
def test_that_what_no_source_shows_is_doubted(model_type: str, direction: Direction | None) -> None:
    spec = specify({"model_type": model_type})
    own = doubts_in(spec, "llama.cpp")[len(spec.doubts) :]
    assert [d.direction for d in own] == ([] if direction is None else [direction])
    assert all(d.subject is Subject.SEQUENCE_STATE for d in own)


def test_that_an_encoder_s_keys_are_read_anew() -> None:
    # T5: two decoder layers of self-attention, 4 heads of 64, and nothing for the encoder.
    config = {
        "model_type": "t5", "vocab_size": 1024, "d_model": 256, "d_kv": 64, "d_ff": 512,
        "num_layers": 2, "num_heads": 4,
    }  # fmt: skip
    assert held(config) == CELLS * 2 * 2 * 4 * 64 * 2


def test_that_every_width_must_be_whole_blocks() -> None:
    # Gemma 4: heads of 16 x 2 where it slides, 48 where it doesn't; a block of Q8_0 holds 32.
    config = {
        "model_type": "gemma4_text", "vocab_size": 128, "hidden_size": 64, "head_dim": 16,
        "intermediate_size": 128, "num_attention_heads": 4, "num_key_value_heads": 2,
        "num_hidden_layers": 2, "sliding_window": 16, "global_head_dim": 24,
        "layer_types": ["sliding_attention", "full_attention"], "max_position_embeddings": 512,
    }  # fmt: skip
    model = read(RawModel("x", "test", config=config))
    plan = Deployment(runtime="llama.cpp", n_ctx=100, cache_type_k="q8_0")
    with pytest.raises(DeploymentError, match="does not divide this model's width of 48"):
        size(model, plan, machine(gpu(24)))
