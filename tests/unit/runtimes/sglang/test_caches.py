"""Bytes of a token, two pools, states: by hand from the models' shapes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from engine.errors import DeploymentError
from engine.runtimes.sglang.caches import CacheRule, PoolLayout, cache_doubts, pool_layout
from engine.runtimes.sglang.states import slot_bytes
from tests.helpers.published import model
from tests.helpers.sglang import catalogued, sized

if TYPE_CHECKING:
    from engine.architecture.spec import ArchitectureSpec

NEW = (0, 5, 23)


def layout(
    spec: ArchitectureSpec,
    *,
    kv_dtype: str = "bf16",
    tp: int = 1,
    page: int = 1,
    version: tuple[int, ...] = NEW,
) -> PoolLayout:
    rule = CacheRule(kv_dtype, tp, page, version, None, with_drafts=False)
    found = pool_layout(spec, 0, len(spec.layers), rule)
    assert found is not None
    return found


def of_catalogue(name: str) -> ArchitectureSpec:
    return catalogued(name).spec


def test_that_pairs_are_counted_layer_by_layer() -> None:
    spec = model("Llama-3.1-8B").spec
    assert layout(spec).cell == 32 * 8 * (128 + 128) * 2
    assert layout(spec, kv_dtype="fp8_e4m3").cell == 65_536
    # One scale byte for 32 elements: 65,536 × 33 / 32.
    assert layout(spec, kv_dtype="mxfp8").cell == 67_584
    # Half a byte and a scale for 16: 131,072 / 4 + 131,072 / 32.
    assert layout(spec, kv_dtype="nvfp4").cell == 36_864


def test_that_heads_are_replicated_beyond_their_number() -> None:
    # Nemotron-3-Nano on four cards: 6 layers × 1 head × 256 × 2 B, as its log has it.
    spec = of_catalogue("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16")
    assert layout(spec, tp=4).cell == 6 * 1 * 256 * 2


def test_that_latents_are_whole_on_every_rank() -> None:
    spec = of_catalogue("moonshotai/Kimi-K2.5")
    assert layout(spec, tp=8).cell == 61 * 576 * 2
    assert layout(spec, tp=8, kv_dtype="fp8_e4m3").cell == 61 * 576


@pytest.mark.parametrize(
    ("version", "counted"),
    [
        # Pull request 11309 printed 1,462,784 tokens before it and 975,424 with it: of what is
        # held, 656 B and an index of 132, the first counted 576, the second 576 and the index.
        ((0, 5, 3), 576), ((0, 5, 4), 576 + 132), ((0, 5, 16), 576 + 132), ((0, 5, 17), 656 + 132),
    ],
)  # fmt: skip
def test_that_packed_latents_and_their_index_were_counted_by_and_by(
    version: tuple[int, ...], counted: int
) -> None:
    spec = of_catalogue("deepseek-ai/DeepSeek-V3.2-Exp")
    found = layout(spec, kv_dtype="fp8_ds_mla", page=64, version=version)
    assert found.cell == 61 * (656 + 132)
    assert found.size_bytes(640) == (640 + 64) * 61 * 788
    assert found.tokens_for(61 * counted * 640) == 640
    assert found.tokens_for(61 * counted * 640 - 1) == 640 - 64


def test_that_plain_latents_beside_an_index_count_in_full() -> None:
    spec = of_catalogue("deepseek-ai/DeepSeek-V3.2-Exp")
    found = layout(spec, page=64, version=(0, 5, 9))
    assert found.tokens_for(61 * (1152 + 132) * 64) == 64


def test_that_one_release_counted_sliding_layers_twice() -> None:
    # Pull request 18039: MiMo-V2-Flash on four cards, a full layer of 640 B and a sliding one of
    # 1,280 in each of 48 and 39 layers; the tokens of all layers are then shared by 0.8 to 1.
    spec = of_catalogue("XiaomiMiMo/MiMo-V2-Flash")
    counted = (48 * 640 + 39 * 1280) * (0.8 * 39 + 9) / 48
    faulty = layout(spec, tp=4, version=(0, 5, 8))
    assert faulty.tokens_for(round(counted * 1000) + 1) == 1000
    mended = layout(spec, tp=4, version=(0, 5, 9))
    assert mended.tokens_for(round((9 * 640 + 0.8 * 39 * 1280) * 1000) + 1) == 1000
    assert faulty.cell == mended.cell


def test_that_every_layer_counts_where_there_is_one_pool() -> None:
    # Gemma 3 27B on any release: 62 layers × 16 heads × 256 × 2 B, sliding or not.
    spec = model("gemma-3-27b").spec
    for version in ((0, 4, 4), NEW):
        assert layout(spec, version=version).cell == 62 * 16 * 256 * 2


def test_that_sliding_layers_have_a_pool_of_their_own_where_sglang_says_so() -> None:
    spec = model("gpt-oss-20b").spec
    each = 12 * 8 * 128 * 2
    two = layout(spec)
    assert (two.full_cell, two.sliding_cell, two.ratio, two.window) == (each, each, 0.8, 128)
    assert two.cell == pytest.approx(1.8 * each)
    one = layout(spec, version=(0, 5, 7))
    assert (one.full_cell, one.sliding_cell) == (2 * each, 0)


def test_that_gemma_4_keeps_a_cache_in_all_its_layers() -> None:
    # 7 full layers × 2 heads × 1,024 × 2 B, 35 sliding × 2 heads × 512 × 2 B, though 18 share.
    spec = of_catalogue("google/gemma-4-E4B-it")
    found = layout(spec)
    assert (found.full_cell, found.sliding_cell) == (7 * 2 * 1024 * 2, 35 * 2 * 512 * 2)
    assert found.cell == 28_672 + 0.8 * 71_680


def test_that_keys_and_values_may_differ_in_width() -> None:
    # MiMo-V2-Flash on four cards of December 2025: 39 sliding layers × 2 heads, 9 full × 1 head,
    # keys of 192 and values of 128, as many tokens in both pools.
    found = layout(of_catalogue("XiaomiMiMo/MiMo-V2-Flash"), tp=4, version=(0, 5, 7))
    assert (found.full_cell, found.sliding_cell) == (9 * 320 * 2, 39 * 2 * 320 * 2)
    assert found.ratio == 1.0
    assert found.size_bytes(1_496_958) == pytest.approx(77.63 * 2**30, rel=1e-4)


def test_that_tokens_come_in_whole_pages() -> None:
    found = PoolLayout(1000, 0, 0.0, 0, 64)
    assert found.tokens(130_000) == 128
    assert found.tokens(-5) == 0
    assert found.size_bytes(128) == (128 + 64) * 1000
    assert found.needed_tokens(3, 65, 8192) == 3 * 128


def test_that_short_requests_are_bound_by_the_sliding_pool() -> None:
    found = PoolLayout(100, 100, 0.5, 1000, 1)
    # Windows of 100 requests: 100 × 500 in a pool of half the tokens.
    assert found.needed_tokens(100, 500, 2048) == 100_000
    # Long ones: 10 × 8,000 against (10 × 1,001 + 2,048) / 0.5.
    assert found.needed_tokens(10, 8000, 2048) == 80_000


def test_that_states_are_in_32_bits() -> None:
    # Granite-4.0-H-Micro: 36 layers × (64 heads × 64 × 128 × 4 B + 4,352 channels × 3 × 2 B).
    spec = of_catalogue("ibm-granite/granite-4.0-h-micro")
    each = 36 * (64 * 64 * 128 * 4 + 4352 * 3 * 2)
    assert slot_bytes(spec, 0, len(spec.layers), "bfloat16", 1) == each
    # LFM2-700M: ten convolutions of 1,536 channels, two columns each.
    lfm = of_catalogue("LiquidAI/LFM2-700M")
    assert slot_bytes(lfm, 0, len(lfm.layers), "bfloat16", 1) == 10 * 1536 * 2 * 2


def test_that_what_is_not_known_is_a_doubt() -> None:
    assert cache_doubts(model("Llama-3.1-8B").spec, NEW) == ()
    older = of_catalogue("google/gemma-4-E4B-it")
    assert cache_doubts(older, NEW) == ()
    (doubt,) = cache_doubts(older, (0, 5, 10))
    assert "counts every layer alike" in doubt.reason


@pytest.mark.parametrize(
    ("name", "dtype", "words"),
    [
        ("meta-llama/Llama-3.1-8B-Instruct", "q8_0", "no KV cache dtype of SGLang"),
        ("moonshotai/Kimi-K2.5", "mxfp8", "keeps latent vectors"),
    ],
)
def test_that_a_dtype_it_cannot_have_is_refused(name: str, dtype: str, words: str) -> None:
    with pytest.raises(DeploymentError, match=words) as refused:
        sized(name, kv_cache_dtype=dtype)
    assert refused.value.field == "kv_cache_dtype"


@pytest.mark.parametrize(
    ("gpu", "version", "dtype", "cell"),
    [
        # Hopper keeps 16 bits by default; Blackwell FP8, packed with scales until 0.5.9.
        ("H200", "0.5.23", "auto", 61 * (1152 + 132)),
        ("H200", "0.5.23", "fp8_e4m3", 61 * (656 + 132)),
        ("B200", "0.5.8", "auto", 61 * (656 + 132)),
        ("B200", "0.5.23", "auto", 61 * (576 + 132)),
    ],
)
def test_that_sparse_latents_are_kept_as_the_card_reads_them(
    gpu: str, version: str, dtype: str, cell: int
) -> None:
    answer = sized(
        "deepseek-ai/DeepSeek-V3.2-Exp", gpu=gpu, gpu_count=8, tensor_parallel_size=8,
        runtime_version=version, kv_cache_dtype=dtype,
    )  # fmt: skip
    state = answer.budget.sequence_state
    assert state.bytes_per_token == cell
    assert state.block_size == 64
