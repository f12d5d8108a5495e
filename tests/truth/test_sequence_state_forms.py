"""Forms of sequence state beside plain keys and values, against what runtimes printed.

Latent vectors, index keys, compressed entries, an encoder's tokens and recurrent states. Every
record names the model's geometry, or a published config beside this checkout has it; pools are
printed in hundredths of a GiB, so figures that follow from a pool are held within that.
"""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from engine.architecture.read import read
from engine.architecture.spec import (
    ArchitectureSpec,
    AttentionKind,
    AttentionSpec,
    LayerSpec,
    StateSpec,
)
from engine.deployment.spec import Deployment
from engine.devices.device import Vendor
from engine.formats.kv import latent_bytes, layer_bytes
from engine.runtimes.vllm.layout import PoolRule, RequestRule
from engine.runtimes.vllm.pool import pool_layout
from engine.sizing import size
from engine.source.raw import RawModel
from tests.helpers.published import GIB, MIB, gpu, machine

if TYPE_CHECKING:
    from engine.architecture.model import Model
    from engine.budget.model import SequenceState

SHARED = Path(__file__).resolve().parents[2].parent / "shared"
RECORD_FILES = (
    SHARED / "truth" / "runtime-logs" / "records.jsonl",
    SHARED / "truth" / "second-corpus" / "records.jsonl",
)

pytestmark = pytest.mark.skipif(
    not all(path.exists() for path in RECORD_FILES),
    reason="the measured records are not beside this checkout",
)

WHISPER = {
    "model_type": "whisper",
    "architectures": ["WhisperForConditionalGeneration"],
    "vocab_size": 51866,
    "d_model": 1280,
    "encoder_layers": 32,
    "decoder_layers": 32,
    "encoder_attention_heads": 20,
    "decoder_attention_heads": 20,
    "encoder_ffn_dim": 5120,
    "decoder_ffn_dim": 5120,
    "num_mel_bins": 128,
    "max_source_positions": 1500,
    "max_target_positions": 448,
    "torch_dtype": "float16",
}


@cache
def records() -> dict[str, dict[str, Any]]:
    lines = [line for path in RECORD_FILES for line in path.read_text("utf-8").splitlines()]
    return {record["id"]: record for record in map(json.loads, lines)}


def reported(name: str) -> dict[str, Any]:
    if name not in records():
        pytest.skip(f"{name} is not among the records beside this checkout")
    return records()[name]["reported"]


@cache
def published(name: str) -> Model:
    lines = (SHARED / "configs" / "index.jsonl").read_text(encoding="utf-8").splitlines()
    files = {entry["id"]: Path(entry["file"]).name for entry in map(json.loads, lines)}
    text = (SHARED / "configs" / "configs" / files[name]).read_text(encoding="utf-8")
    return read(RawModel(id=name, source="published config", config=json.loads(text)))


def state_of(
    model: Model,
    memory_gib: float = 90.0,
    capability: float = 9.0,
    vendor: Vendor = Vendor.NVIDIA,
    **chosen: Any,
) -> SequenceState:
    deployment = Deployment(**chosen)
    card = replace(gpu(memory_gib), compute_capability=capability, vendor=vendor)
    return size(model, deployment, machine(card, deployment.ranks)).budget.sequence_state


def test_that_an_encoder_is_charged_with_what_a_step_may_hand_over() -> None:
    # 28 blocks of the answer and 128 of 2,048 encoder tokens, not of Whisper's 1,500.
    printed = reported("v2-whisper-large-v3-16gb")
    whisper = read(RawModel(id="openai/whisper-large-v3", source="by hand", config=WHISPER))
    state = state_of(
        whisper,
        16.0,
        runtime_version="0.15.0",
        max_model_len=448,
        max_num_batched_tokens=2048,
        max_num_seqs=256,
        kv_pool_bytes=int(printed["kv_available_gib"] * GIB),
    )
    assert state.bytes_per_block == 32 * 16 * 20 * 64 * 2 * 2
    assert state.num_blocks == 4153
    assert state.pool_tokens == printed["kv_tokens"]
    assert f"{state.max_concurrency:.2f}" == f"{printed['max_concurrency']:.2f}"


def test_that_index_keys_beside_grouped_heads_stay_in_16_bits_on_every_rank() -> None:
    # MiniMax-M3 on eight cards: 60 layers of one head and 57 index keys of 128: 45,312 B a token.
    wanted = reported("recipes-653-minimax-m3")["kv_needed_gib_for_len"]
    for kv_dtype, heads_bytes in (("bf16", 60 * 512), ("fp8", 60 * 256)):
        state = state_of(
            published("nvidia/MiniMax-M3-NVFP4"),
            max_model_len=wanted["len"],
            tensor_parallel_size=8,
            kv_cache_dtype=kv_dtype,
        )
        needed = state.reserved_bytes_per_sequence
        assert needed == wanted["len"] * (heads_bytes + 57 * 256)
        if kv_dtype == "bf16":
            assert f"{needed / GIB:.2f}" == f"{wanted['gib']:.2f}"
        # The longest that would have fit is a whole number of blocks.
        assert state.block_size == 128
        assert reported("recipes-653-minimax-m3")["est_max_len"] % state.block_size == 0


def test_that_only_leaders_keep_index_keys_and_the_prediction_block_does() -> None:
    # GLM-5.2 over four ranks of a shared context: 78 layers and a prediction block of 656 B, and
    # 21 + 1 index keys of 132 B: 516 blocks of 64 tokens in 1.81 GB.
    printed = reported("fi-glm52-nvfp4-4xgb10-dcp4")
    state = state_of(
        published("zai-org/GLM-5.2"),
        capability=12.1,
        max_model_len=131_072,
        max_num_batched_tokens=1024,
        tensor_parallel_size=4,
        decode_context_parallel_size=4,
        speculative_tokens=1,
        kv_cache_dtype="fp8",
        kv_pool_bytes=printed["kv_bytes"],
    )
    assert state.bytes_per_block == 64 * (79 * 656 + 22 * 132)
    assert state.pool_tokens == printed["kv_tokens"]
    assert f"{state.max_concurrency:.2f}" == f"{printed['max_concurrency']:.2f}"


def test_that_deepseek_v4_is_packed_as_its_log_says() -> None:
    printed = reported("fi-dsv4-flash-8xrtxpro5000")
    state = state_of(
        published("deepseek-ai/DeepSeek-V4-Flash"),
        runtime_version="0.22.1",
        max_model_len=256_000,
        max_num_batched_tokens=8192,
        tensor_parallel_size=8,
        kv_pool_bytes=int(printed["kv_available_gib"] * GIB),
    )
    # 22 sets of an entry page of 64 × 584 B, one of 2 × 584 B and one of 64 index keys, each
    # rounded up to 576 B.
    assert state.bytes_per_block == 22 * (37_440 + 1_728 + 8_640)
    slack = 0.006 / printed["kv_available_gib"]
    assert state.max_concurrency == pytest.approx(printed["max_concurrency"], abs=0.006)
    assert state.pool_tokens == pytest.approx(printed["kv_tokens"], rel=slack)


def test_that_scales_of_every_head_and_token_lie_beside_8_bits() -> None:
    # Qwen3.6-27B on two cards: 2 heads of 256 in 8 bits with a scale of 4 B a side, and five
    # blocks of state for four speculative tokens, and one more for cached prefixes.
    printed = reported("club3090-745-qwen36-27b-int8kv")
    state = state_of(
        published("nvidia/Qwen3.6-27B-NVFP4"),
        capability=8.6,
        runtime_version="0.24.0",
        max_model_len=262_144,
        max_num_batched_tokens=2048,
        tensor_parallel_size=2,
        speculative_tokens=4,
        enable_prefix_caching=True,
        kv_cache_dtype="int8_per_token_head",
        kv_pool_bytes=int(printed["kv_available_gib"] * GIB),
    )
    assert state.bytes_per_block == 17 * 1584 * 2 * 2 * (256 + 4)
    assert state.reserved_bytes_per_sequence == (166 + 3 * 6) * state.bytes_per_block
    assert state.pool_tokens == printed["kv_tokens"]
    assert f"{state.max_concurrency:.2f}" == f"{printed['max_concurrency']:.2f}"


def test_that_layers_that_share_keys_keep_none() -> None:
    # Gemma 4 E2B: of 35 layers the first 15 keep keys and values, three of them of every token in
    # heads of 512; twelve slide over 512 tokens in heads of 256.
    printed = reported("fi-gemma4-e2b-1kvhead")
    state = state_of(
        published("google/gemma-4-E2B-it"),
        runtime_version="0.22.0",
        max_model_len=32_768,
        max_num_batched_tokens=8192,
        max_num_seqs=64,
        kv_pool_bytes=10_200 * 3 * 16 * 2048,
    )
    pool = 10_200 * 3 * 16 * 2048
    assert pool / GIB == pytest.approx(printed["kv_available_gib"], abs=0.006)
    per_request = 32_768 // 16 + 4 * (-(-(511 + 8192) // 32) + 1)
    assert state.reserved_bytes_per_sequence == per_request * 3 * 16 * 2048
    assert state.pool_tokens == printed["kv_tokens"]
    assert state.max_concurrency == pytest.approx(printed["max_concurrency"], abs=0.006)


def test_that_blocks_on_intel_s_cards_hold_64_tokens() -> None:
    # Gemma 4 31B on two cards: 10 full layers in blocks of 128, which are as large as the 64 of
    # 50 sliding ones: 1,280 blocks and five groups of 145 a request of 163,840 tokens.
    printed = reported("fi-gemma4-31b-2xb70")
    state = state_of(
        published("nvidia/Gemma-4-31B-IT-NVFP4"),
        capability=0.0,
        vendor=Vendor.INTEL,
        runtime_version="0.22.0",
        max_model_len=163_840,
        max_num_batched_tokens=8192,
        tensor_parallel_size=2,
        kv_cache_dtype="bf16",
        kv_pool_bytes=int(printed["kv_available_gib"] * GIB),
    )
    assert state.bytes_per_block == 10 * 64 * 8 * 256 * 2 * 2
    assert state.pool_tokens == printed["kv_tokens"]
    assert f"{state.max_concurrency:.2f}" == f"{printed['max_concurrency']:.2f}"


def test_that_blocks_beside_states_are_multiples_of_64_there_too() -> None:
    # Qwen3.6-35B-A3B in 1 GiB: 1,088 tokens cover a state of 2,146,304 B at 2,048 B a token, and
    # cached prefixes take a second state in each of three groups: 48 blocks are 4.80 requests.
    printed = reported("v2-xpu-lunarlake-qwen36-35b")
    state = state_of(
        published("nvidia/Qwen3.6-35B-A3B-NVFP4"),
        capability=0.0,
        vendor=Vendor.INTEL,
        runtime_version="0.28.0",
        max_model_len=4096,
        max_num_batched_tokens=2048,
        enable_prefix_caching=True,
        kv_cache_dtype="bf16",
        kv_pool_bytes=GIB,
    )
    assert (state.block_size, state.num_blocks) == (1088, 48)
    assert state.pool_tokens == printed["kv_tokens"]
    assert f"{state.max_concurrency:.2f}" == f"{printed['max_concurrency']:.2f}"


def test_that_a_head_of_fp8_on_each_rank_is_cut_as_printed() -> None:
    # Qwen3.6-35B-A3B on two cards: one head of 256 in FP8 and half the states on each.
    printed = reported("club3090-523-qwen36-35b-nvfp4-2x5090")
    state = state_of(
        published("nvidia/Qwen3.6-35B-A3B-NVFP4"),
        capability=12.0,
        runtime_version="0.24.0",
        max_model_len=262_144,
        max_num_batched_tokens=8192,
        tensor_parallel_size=2,
        enable_prefix_caching=True,
        kv_cache_dtype="fp8_e4m3",
        kv_pool_bytes=int(printed["kv_available_gib"] * GIB),
    )
    assert (state.block_size, state.num_blocks) == (2096, 1658)
    assert state.pool_tokens == printed["kv_tokens"]


def test_that_states_of_qwen3_next_take_16_bits() -> None:
    # Asked for here, and the model's dtype anyway: 121 blocks of 544 tokens and three groups of
    # two states, of which 470 blocks hold 3.70 requests.
    printed = reported("fi-qwen3next-80b-w4a16-util75")
    state = state_of(
        published("Qwen/Qwen3-Next-80B-A3B-Instruct"),
        runtime_version="0.27.0",
        max_model_len=65_536,
        enable_prefix_caching=True,
        kv_pool_bytes=470 * 12 * 544 * 2048,
    )
    pool = 470 * 12 * 544 * 2048
    assert pool / GIB == pytest.approx(printed["kv_available_gib"], abs=0.006)
    assert state.block_size == 544
    assert state.pool_tokens == printed["kv_tokens"]
    assert state.max_concurrency == pytest.approx(printed["max_concurrency"], abs=0.006)


def mamba2(heads: int, width: int, groups: int, dtype: str | None = None) -> StateSpec:
    inner = heads * width
    return StateSpec(
        "mamba2",
        inner + 2 * groups * 128,
        4,
        inner * 128,
        heads,
        dtype,
        groups=groups,
        group_channels=2 * 128,
    )


def full(kv_heads: int, width: int) -> AttentionSpec:
    return AttentionSpec(AttentionKind.FULL, kv_heads * 4, kv_heads, width, width)


def spec_of(*layers: tuple[LayerSpec, int]) -> ArchitectureSpec:
    return ArchitectureSpec(
        model_type="test",
        layers=tuple(layer for layer, count in layers for _ in range(count)),
        outer=(),
        mtp=(),
        hidden_size=1024,
        vocab_size=1000,
        max_position_embeddings=262_144,
        dtype="bfloat16",
        tie_word_embeddings=False,
        weight_format="bf16",
    )


# Record -> layers, KV dtype, length, blocks of state a request, blocks in the pool.
HYBRIDS: dict[str, tuple[ArchitectureSpec, str, int, int, int]] = {
    # 4 attention layers of 4 heads of 128, 36 states of 48 heads: ten groups of four.
    "fi-granite4-h-1b": (
        spec_of((LayerSpec((), full(4, 128)), 4), (LayerSpec((), state=mamba2(48, 64, 1)), 36)),
        "bfloat16",
        4096,
        1,
        1339,
    ),
    # 6 layers of 8 heads of 64 and 10 short convolutions of 2,048 channels.
    "v2-lfm25-12b-metax-c500": (
        spec_of(
            (LayerSpec((), full(8, 64)), 6),
            (LayerSpec((), state=StateSpec("short_conv", 2048, 3, 0, 0)), 10),
        ),
        "float16",
        2048,
        1,
        40_738,
    ),
    # 4 layers of 8 heads of 128 in FP8, 21 states in 16 bits, as the checkpoint asks.
    "v2-nemotronh-4b-fp8-16gb": (
        spec_of((LayerSpec((), full(8, 128)), 4), (LayerSpec((), state=mamba2(96, 80, 8)), 21)),
        "fp8",
        8192,
        1,
        1473,
    ),
    # 6 layers of 2 heads of 128 in FP8, 23 states of 64 heads in 16 bits: 2,128 tokens a block.
    "v2-nemotron3-nano-omni-nvfp4-5090": (
        spec_of((LayerSpec((), full(2, 128)), 6), (LayerSpec((), state=mamba2(64, 64, 8)), 23)),
        "fp8",
        131_072,
        1,
        680,
    ),
    # The same in 32 bits.
    "v2-nemotron-cascade2-30b-nvfp4-h100": (
        spec_of(
            (LayerSpec((), full(2, 128)), 6),
            (LayerSpec((), state=mamba2(64, 64, 8, "float32")), 23),
        ),
        "fp8",
        262_144,
        1,
        int(68.97 * GIB) // (6 * 4176 * 512),
    ),
}


@pytest.mark.parametrize("name", sorted(HYBRIDS))
def test_that_states_set_the_block_and_the_groups(name: str) -> None:
    printed = reported(name)
    spec, kv_dtype, length, states, blocks = HYBRIDS[name]
    layout = pool_layout(spec, 0, len(spec.layers), PoolRule(kv_dtype))
    assert layout is not None
    if "block_size" in printed:
        assert layout.block_size == printed["block_size"]
    if "padding_layers" in printed:
        assert layout.padding_layers == printed["padding_layers"]
    request = layout.blocks_per_request(length, RequestRule(8192, state_blocks=states))
    assert blocks / request == pytest.approx(printed["max_concurrency"], rel=1e-3)
    # Until 0.20 the line of tokens divides the blocks by the number of groups.
    assert blocks // layout.num_groups * layout.block_size == printed["kv_tokens"]
    if "kv_available_gib" in printed:
        pool = blocks * layout.bytes_per_block / GIB
        assert pool == pytest.approx(printed["kv_available_gib"], abs=0.011)


def test_that_latents_are_whole_on_both_ranks() -> None:
    # Mistral Small 4: 36 layers of 256 + 64 in 16 bits on each of two cards.
    printed = reported("v2-mistral-small4-119b-awq-2xl40s")
    each = 36 * latent_bytes("bfloat16", 256, 64)
    assert each == 23_040
    assert each * printed["kv_tokens"] / GIB == pytest.approx(
        printed["kv_available_gib"], abs=0.006
    )


@pytest.mark.parametrize(
    ("name", "dtype", "layers"),
    [
        ("ik-099-deepseek-v3-0324", "q8_0", 61),
        ("ik-096-deepseek-r1-0528", "q8_0", 61),
        ("ik-131-deepseek-r1", "f16", 61),
        ("ik-119-deepseek-r1-0528", "f16", 61),
        ("ik-188-kimi-k2-instruct", "q8_0", 61),
    ],
)
def test_that_ggml_s_latents_take_the_printed_bytes(name: str, dtype: str, layers: int) -> None:
    printed = reported(name)["buffers_mib"]
    cells = records()[name]["n_ctx"]
    held = sum(device.get("kv", 0.0) for device in printed.values())
    expected = cells * layers * latent_bytes(dtype, 512, 64) / MIB
    # Quantised rows are padded on CUDA, by some tens of KiB in all.
    assert held == pytest.approx(expected, abs=0.06)


@pytest.mark.parametrize(("type_k", "printed_mib"), [("f16", 19_200.0), ("q8_0", 13_800.0)])
def test_that_old_conversions_keep_every_head(type_k: str, printed_mib: float) -> None:
    # DeepSeek-V2: 60 layers of 128 heads, keys of 128 + 64 and values of 128.
    reported("lc-12728-dsv2-vulkan-4k")
    keys = layer_bytes(type_k, 128, 192, 0)
    values = layer_bytes("f16", 128, 0, 128)
    assert 4096 * 60 * (keys + values) / MIB == printed_mib


def test_that_whole_heads_were_kept_before_latents() -> None:
    # DeepSeek-Coder-V2 on eight cards in 2024: 60 layers of 16 heads, padded to 256: 983,040 B.
    reported("vllm-4650-deepseek-coder-v2-h100x8")
    latent = AttentionSpec(
        AttentionKind.LATENT, 128, 128, 192, 128, kv_lora_rank=512, qk_rope_head_dim=64
    )
    spec = spec_of((LayerSpec((), latent), 60))
    rule = PoolRule("bfloat16", tensor_parallel_size=8, keeps_latents=False)
    layout = pool_layout(spec, 0, 60, rule)
    assert layout is not None
    assert layout.bytes_per_block == 16 * 983_040
