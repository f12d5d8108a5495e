"""DeepSeek-V4's pools: entries, windows and what waits to be an entry, by hand arithmetic."""

from __future__ import annotations

import pytest

from engine.errors import DeploymentError
from engine.runtimes.sglang.caches import CacheRule, PoolLayout, pool_layout
from engine.runtimes.sglang.compressed import Steps
from engine.units import GIB
from tests.helpers.sglang import catalogued, sized

FLASH = "deepseek-ai/DeepSeek-V4-Flash"
"""43 layers: 21 with entries of 4 tokens and an index of 128, 20 with entries of 128."""
KEY, INDEX = 448 + 2 * 64 + 8, 128 + 4
ENTRIES = 21 * (KEY + INDEX) / 4 + 20 * KEY / 128
RING = 2 * 2 * (512 + 128) * 4
"""Of a token that waits to be an entry of 4."""


def layout(
    *version: int,
    drafts: int = 0,
    chunk: int = 8192,
    radix: bool = True,
    ratio: float | None = None,
) -> PoolLayout:
    steps = Steps(256, chunk, drafts, radix)
    rule = CacheRule("fp8_ds_mla", 1, 256, version, ratio, with_drafts=drafts > 0, steps=steps)
    found = pool_layout(catalogued(FLASH).spec, 0, 43, rule)
    assert found is not None
    return found


def test_that_a_start_of_0_5_12_has_as_many_tokens_as_it_prints() -> None:
    # 15,955.85 B a token and 1,317,632 tokens in 19.58 GiB (public GitHub file 70267455292): 44
    # windows, since the prediction block counts, and rings of 8 and 128 for each 128 tokens.
    found = layout(0, 5, 12)
    window = 44 * KEY + 21 * RING * 8 / 128 + 20 * 2 * 512 * 4
    assert found.counted_cell == pytest.approx(ENTRIES + 0.1 * window)
    assert round(found.counted_cell or 0, 2) == 15_955.85
    # Free memory is printed to 0.01 GiB.
    assert found.tokens_for(round(19.58 * GIB)) == pytest.approx(1_317_632, rel=0.005 / 19.58)
    assert found.fixed_bytes == 0


def test_that_large_entries_wait_by_request_since_0_5_15() -> None:
    found = layout(0, 5, 15)
    assert found.counted_cell == pytest.approx(ENTRIES + 0.1 * (43 * KEY + 21 * RING * 8 / 128))
    # 256 requests, one more and one of padding, each 128 rows; then whole 128.
    assert found.fixed_bytes == 20 * 2 * 512 * 4 * (258 * 128 + 128)
    assert found.tokens_for(found.fixed_bytes) == 0


def test_that_windows_follow_the_requests_since_0_5_21() -> None:
    found = layout(0, 5, 23)
    # A page of 256, 64 or 2 keys takes whole 576 B: 260, 65 and 3 of them.
    page, small, tiny = 260 * 576 / 256, 65 * 576 / 64, 3 * 576 / 2
    entries = 21 * (small + INDEX) / 4 + 20 * tiny / 128
    assert found.counted_cell == pytest.approx(entries)
    # Each request: window, eviction, two pages; two steps and a page; four windows kept for each.
    tokens = 256 * (128 + 128 + 256 + 256) + 2 * 8192 + 256 + 4 * 256 * (128 + 256)
    assert tokens % 256 == 0
    windows = tokens * (43 * page + 21 * RING * 8 / 256)
    states = 20 * 2 * 512 * 4 * (258 * 128 + 128)
    assert found.fixed_bytes == states + round(windows)
    assert found.sliding_cell == 0


def test_that_no_windows_are_kept_without_a_prefix_cache() -> None:
    kept, none = layout(0, 5, 23), layout(0, 5, 23, radix=False)
    each = 43 * 585 + 21 * RING * 8 / 256
    assert kept.fixed_bytes - none.fixed_bytes == pytest.approx(4 * 256 * 384 * each)


def test_that_a_ratio_as_given_or_whole_prompts_size_windows_by_tokens() -> None:
    for found, ratio in ((layout(0, 5, 23, ratio=0.2), 0.2), (layout(0, 5, 23, chunk=-1), 0.1)):
        assert found.ratio == ratio
        assert found.window == 128
        assert found.sliding_cell == round(43 * 585 + 21 * RING * 8 / 256)


def test_that_drafts_double_the_rings_and_count_a_layer_more() -> None:
    found = layout(0, 5, 15, drafts=2)
    window = 43 * KEY + 21 * RING * 16 / 128
    assert found.counted_cell == pytest.approx((ENTRIES + 0.1 * window) * 44 / 43)
    assert found.fixed_bytes == 20 * 2 * 512 * 4 * (258 * 256 + 128)


def test_that_256_requests_run_and_keys_are_packed() -> None:
    found = sized(FLASH, gpu="H200", gpu_count=4, tensor_parallel_size=4).budget
    assert found.deployment.max_running_requests == 256
    assert not [d for d in found.doubts if "compressed" in d.reason]
    assert [a for a in found.assumptions if "packed" in a]
    on_rocm = sized(FLASH, gpu="MI300X", gpu_count=4, tensor_parallel_size=4).budget
    assert [d for d in on_rocm.doubts if "compressed" in d.reason]


def test_that_entries_are_kept_in_no_other_dtype() -> None:
    settings = {"gpu": "H200", "gpu_count": 4, "tensor_parallel_size": 4}
    with pytest.raises(DeploymentError) as refused:
        sized(FLASH, kv_cache_dtype="fp8_e5m2", **settings)
    assert refused.value.field == "kv_cache_dtype"


def test_that_48_requests_run_beside_drafts() -> None:
    found = sized("Qwen/Qwen3-8B", gpu="H200", speculative_tokens=3).budget
    assert found.deployment.max_running_requests == 48
    assert [a for a in found.assumptions if "beside drafts" in a]
