"""The forms in which vLLM keeps what is no plain key and value, worked out by hand."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from engine.architecture.read import read, specify
from engine.architecture.spec import (
    ArchitectureSpec,
    AttentionKind,
    AttentionSpec,
    Direction,
    LayerSpec,
    StateSpec,
    Subject,
)
from engine.deployment.spec import Deployment
from engine.errors import DeploymentError
from engine.runtimes.vllm.layout import Keeps, PoolLayout, PoolRule, RequestRule
from engine.runtimes.vllm.pool import pool_layout
from engine.sizing import size
from engine.source.raw import RawModel
from tests.helpers.published import gpu, machine

if TYPE_CHECKING:
    from engine.budget.model import SequenceState

VECTORS = Path(__file__).resolve().parents[4] / "shared" / "memory-model" / "vectors.json"
PACKED = {"ratio 4": (37_440, 8_640), "ratio 128": (1_728,)}
"""64 entries of 584 B, 64 index keys of 132 B and 2 entries of 584 B, up to multiples of 576 B."""


def spec_of(*layers: LayerSpec, model_type: str = "test") -> ArchitectureSpec:
    return ArchitectureSpec(
        model_type=model_type,
        layers=layers,
        outer=(),
        mtp=(),
        hidden_size=1024,
        vocab_size=1000,
        max_position_embeddings=262_144,
        dtype="bfloat16",
        tie_word_embeddings=False,
        weight_format="bf16",
    )


def layout_of(spec: ArchitectureSpec, kv_dtype: str = "bfloat16", **rule: Any) -> PoolLayout:
    found = pool_layout(spec, 0, len(spec.layers), PoolRule(kv_dtype, **rule))
    assert found is not None
    return found


def latent(**more: int) -> AttentionSpec:
    sizes: dict[str, Any] = {
        "kv_lora_rank": 512,
        "qk_nope_head_dim": 128,
        "qk_rope_head_dim": 64,
    } | more
    return AttentionSpec(AttentionKind.LATENT, 128, 128, 192, 128, **sizes)


V4 = {
    "model_type": "deepseek_v4",
    "vocab_size": 129280,
    "hidden_size": 4096,
    "num_hidden_layers": 43,
    "head_dim": 512,
    "index_head_dim": 128,
    "sliding_window": 128,
    "compress_ratios": [0, 0, *([4, 128] * 20), 4],
}


def test_that_deepseek_v4_lies_side_by_side_in_0_33() -> None:
    layout = layout_of(specify(V4), "fp8_ds_mla")
    entries = 21 * sum(PACKED["ratio 4"]) + 20 * sum(PACKED["ratio 128"])
    # 4 tokens that wait in both halves: 2 × 2 × 512 × 4 B each; of the indexer, 2 × 2 × 128 × 4 B.
    waiting_4 = 21 * (32_832 + 8_640)
    waiting_128 = 20 * 32_832
    sizes = [group.size_bytes for group in layout.groups]
    assert sizes == [entries, 22 * 37_440, 21 * 37_440, waiting_4, waiting_128]
    assert layout.bytes_per_block == entries == 1_002_240
    assert layout.num_groups == 5
    blocks = 1000 + 2 * (130 + 1) + (2050 + 1) + (1040 + 1)
    assert layout.blocks_per_request(256_000, RequestRule(8192)) == blocks
    assert layout.printed_blocks(256_000, RequestRule(8192)) == blocks


def test_that_deepseek_v4_was_padded_to_equal_sets_until_0_28() -> None:
    layout = layout_of(specify(V4), "fp8_ds_mla", pads_tuples=True)
    assert layout.bytes_per_block == 22 * (37_440 + 8_640 + 1_728)
    # What vLLM printed weighs each group by its own pages: 21 × (37,440 + 8,640) of the entries
    # that overlap, whose waiting tokens take pages of that size too.
    taken = 1000 * 1_002_240 + 131 * 43 * 37_440 + 2051 * 21 * 46_080 + 1041 * 20 * 37_440
    request = RequestRule(8192)
    assert layout.printed_blocks(256_000, request) == -(-taken // 1_002_240) == 3969
    assert layout.blocks_per_request(256_000, request) == 4354


def test_that_a_prediction_block_of_deepseek_v4_keeps_a_window() -> None:
    layout = layout_of(specify(V4), "fp8_ds_mla", with_mtp=True)
    windows = [g.size_bytes for g in layout.groups if g.page.block_tokens == 64]
    assert windows == [22 * 37_440]
    assert [g.count for g in layout.groups if g.page.block_tokens == 64] == [2]


def test_that_plain_keys_of_deepseek_v4_are_rounded_to_512_bytes() -> None:
    layout = layout_of(specify(V4 | {"num_hidden_layers": 4}), "bfloat16")
    # One layer each of ratio 4 and 128: 64 × 1,024 B, 64 × 132 B up to 8,704 B, 2 × 1,024 B.
    assert layout.groups[0].size_bytes == 65_536 + 8_704 + 2_048


def test_that_a_model_of_heavily_compressed_layers_alone_is_packed() -> None:
    layout = layout_of(
        specify(V4 | {"num_hidden_layers": 4, "compress_ratios": [0, 128, 128, 128]}),
        "fp8_ds_mla",
    )
    # 3 × 1,728 B of entries; windows and what waits go down to one page a group.
    assert layout.bytes_per_block == 37_440
    assert [g.count for g in layout.groups] == [1, 4, 3]


def test_that_the_packing_of_releases_between_is_doubted() -> None:
    model = read(RawModel(id="x/v4", source="by hand", config=V4))
    for version, doubted in (("0.22.1", False), ("0.28.0", True), ("0.33.0", False)):
        deployment = Deployment(runtime_version=version, max_model_len=8192)
        doubts = size(model, deployment, machine(gpu(140.0), 1)).budget.doubts
        found = [d.direction for d in doubts if d.subject is Subject.SEQUENCE_STATE]
        assert found == ([Direction.EITHER] if doubted else [])


def test_that_minicpm3_keeps_every_head() -> None:
    # vLLM's class has no latent cache: values are padded to the keys' 96.
    attention = replace(latent(kv_lora_rank=256, qk_rope_head_dim=32), num_attention_heads=40)
    attention = replace(attention, head_dim=96, v_head_dim=64)
    spec = spec_of(LayerSpec((), attention), model_type="minicpm3")
    assert layout_of(spec).bytes_per_block == 16 * 40 * (96 + 96) * 2
    assert layout_of(spec, tensor_parallel_size=4).bytes_per_block == 16 * 10 * (96 + 96) * 2


def test_that_windows_of_latents_are_groups_of_their_own() -> None:
    spec = spec_of(*[LayerSpec((), latent(window=512)), LayerSpec((), latent())] * 4)
    layout = layout_of(spec)
    assert {g.page.keeps for g in layout.groups} == {Keeps.ALL, Keeps.WINDOW}
    request = RequestRule(8192)
    expected = 100_000 // 16 + -(-(511 + 8192) // 16) + 1
    assert layout.blocks_per_request(100_000, request) == expected
    assert layout_of(spec, hybrid_groups=False).num_groups == 1


def test_that_windows_alone_are_one_group_whatever_their_heads() -> None:
    layers = [
        LayerSpec((), AttentionSpec(AttentionKind.SLIDING, 8, heads, 128, 128, window=4096))
        for heads in (8, 2)
    ]
    layout = layout_of(spec_of(*layers))
    assert layout.num_groups == 1
    assert layout.bytes_per_block == 16 * 10 * 256 * 2


def test_that_two_caches_a_layer_are_two_pages() -> None:
    layout = layout_of(spec_of(*[LayerSpec((), latent(caches=2))] * 28), block_size=64)
    assert layout.bytes_per_block == 64 * 28 * 2 * 1152


def test_that_groups_of_states_are_copied_where_ranks_outnumber_them() -> None:
    # One group of 128 states on four ranks: conv (3,072 + 4 × 256) / 4 × 3, states 48 / 4 heads.
    state = StateSpec("mamba2", 3072 + 256, 4, 3072 * 128, 48, groups=1, group_channels=256)
    layout = layout_of(spec_of(LayerSpec((), state=state)), tensor_parallel_size=4)
    assert layout.bytes_per_block == ((3072 + 4 * 256) // 4 * 3 + 3072 * 128 // 4) * 2
    # Speculative tokens widen the convolution alone.
    wider = layout_of(spec_of(LayerSpec((), state=state)), speculative_tokens=3)
    assert wider.bytes_per_block == ((3072 + 256) * 6 + 3072 * 128) * 2


def test_that_the_convolution_of_mamba_1_is_not_widened_by_speculation() -> None:
    state = StateSpec("mamba", 5120, 4, 5120 * 16, 1)
    layout = layout_of(spec_of(LayerSpec((), state=state)), speculative_tokens=3)
    assert layout.bytes_per_block == (5120 * 3 + 5120 * 16) * 2


def test_that_states_follow_family_and_release() -> None:
    state = StateSpec("mamba2", 12_288, 4, 128 * 80 * 128, 128, "float32")
    attention = AttentionSpec(AttentionKind.FULL, 40, 8, 128, 128)
    layers = (LayerSpec((), state=state), LayerSpec((), attention))
    # Nemotron-Nano-9B-v2 in 0.10: pages of 2,695,168 B in the model's dtype, blocks of 672.
    nano = spec_of(*layers, model_type="nemotron_h")
    assert layout_of(nano, states_as_stated=False).block_size == 672
    assert layout_of(nano).block_size == 1312
    assert layout_of(spec_of(*layers, model_type="qwen3_next")).block_size == 672


@pytest.mark.skipif(not VECTORS.exists(), reason="the specification is not beside this checkout")
def test_that_the_published_blocks_of_hybrids_come_out() -> None:
    for vector in json.loads(VECTORS.read_text(encoding="utf-8"))["hybrid_block_size"]:
        # A state of the page's size and one head that takes the bytes of a token.
        width = vector["attn_token"] // 4
        state = StateSpec("lightning", 0, 0, vector["mamba_page"] // 2, 1)
        attention = AttentionSpec(AttentionKind.FULL, 1, 1, width, width)
        layout = layout_of(spec_of(LayerSpec((), state=state), LayerSpec((), attention)))
        assert layout.block_size == vector["block"]


def test_that_blocks_of_latents_beside_states_are_multiples_of_128() -> None:
    state = StateSpec("kda", 3 * 4096, 4, 4096 * 128, 32, "float32")
    layout = layout_of(spec_of(LayerSpec((), state=state), LayerSpec((), latent())))
    # 73,728 B of convolution and 2,097,152 B of state over 1,152 B a token: 1,885 tokens.
    assert layout.block_size == 1920


def test_that_an_encoder_s_share_is_the_budget_of_a_step() -> None:
    cross = AttentionSpec(AttentionKind.CROSS, 20, 20, 64, 64, 1500)
    own = AttentionSpec(AttentionKind.FULL, 20, 20, 64, 64)
    layout = layout_of(spec_of(*[LayerSpec((), own, cross=cross)] * 32))
    assert layout.num_groups == 2
    assert layout.blocks_per_request(448, RequestRule(2048, encoder_tokens=2048)) == 28 + 128
    assert layout.blocks_per_request(448, RequestRule(2048)) == 28 + 94


V32 = {
    "model_type": "deepseek_v32",
    "num_hidden_layers": 4,
    "vocab_size": 1000,
    "hidden_size": 1024,
    "torch_dtype": "bfloat16",
}


@pytest.mark.parametrize(
    ("version", "capability", "asked", "token_bytes"),
    [
        ("0.33.0", 9.0, "auto", 1152), ("0.33.0", 9.0, "fp8", 656),
        ("0.33.0", 10.0, "fp8", 576), ("0.33.0", 10.0, "fp8_ds_mla", 656),
        ("0.33.0", 10.0, "nvfp4_ds_mla", 352), ("0.33.0", 12.0, "auto", 656),
        ("0.11.0", 9.0, "auto", 656), ("0.12.0", 9.0, "auto", 1152), ("0.12.0", 9.0, "bf16", 1152),
    ],
)  # fmt: skip
def test_that_sparse_latents_are_laid_out_for_the_card(
    version: str, capability: float, asked: str, token_bytes: int
) -> None:
    state = state_of(V32, version, capability, asked)
    # Beside 132 B of the indexer's key in every layer, in blocks of 64.
    assert state.bytes_per_block == 64 * 4 * (token_bytes + 132)


def state_of(config: dict[str, Any], version: str, capability: float, asked: str) -> SequenceState:
    model = read(RawModel(id="x/y", source="by hand", config=config))
    card = replace(gpu(140.0), compute_capability=capability)
    chosen = Deployment(
        runtime_version=version, max_model_len=8192, kv_cache_dtype=asked, max_num_seqs=8
    )
    return size(model, chosen, machine(card, 1)).budget.sequence_state


def test_that_stages_share_the_groups_of_the_whole_model() -> None:
    # 30 layers, every sixth full: one group of 5 full layers, five of 5 that slide. The first of
    # two stages has 2 full and 13 sliding ones, of which three groups have 3 and two have 2.
    slides = AttentionSpec(AttentionKind.SLIDING, 8, 8, 256, 256, window=1024)
    full = AttentionSpec(AttentionKind.FULL, 8, 8, 256, 256)
    layers = [LayerSpec((), full if i % 6 == 5 else slides) for i in range(30)]
    spec, rule = spec_of(*layers), PoolRule("bfloat16")
    page = 16 * 8 * 512 * 2
    whole = pool_layout(spec, 0, 30, rule)
    assert whole is not None
    assert (whole.num_groups, whole.bytes_per_block) == (6, 5 * page)
    for first, stop in ((0, 15), (15, 30)):
        share = pool_layout(spec, first, stop, rule)
        assert share is not None
        assert (share.num_groups, share.bytes_per_block) == (6, 3 * page)


def test_that_a_stage_without_states_has_the_blocks_of_the_model() -> None:
    state = StateSpec("gated_delta_net", 8192, 4, 32 * 128 * 128, 32)
    attention = AttentionSpec(AttentionKind.FULL, 16, 2, 256, 256)
    spec = spec_of(LayerSpec((), state=state), LayerSpec((), attention))
    share = pool_layout(spec, 1, 2, PoolRule("bfloat16"))
    assert share is not None
    assert (share.block_size, share.num_groups) == (544, 2)


def test_that_stages_share_the_groups_of_deepseek_v4() -> None:
    spec = specify(V4)
    shares = [pool_layout(spec, *ends, PoolRule("fp8_ds_mla")) for ends in ((0, 22), (22, 43))]
    # 10 layers of ratio 4 and 10 of 128 in the first stage, 11 and 10 in the second.
    for share, fours, groups in zip(shares, (10, 11), (5, 5), strict=True):
        assert share is not None
        assert share.num_groups == groups
        entries = fours * sum(PACKED["ratio 4"]) + 10 * sum(PACKED["ratio 128"])
        assert share.groups[0].size_bytes == entries
        assert share.bytes_per_block == max(entries, 11 * 37_440, fours * 41_472)


def test_that_deepseek_v4_is_kept_packed_unless_asked_otherwise() -> None:
    small = V4 | {"num_hidden_layers": 4}
    assert state_of(small, "0.33.0", 9.0, "auto").bytes_per_block == 47_808
    assert state_of(small, "0.33.0", 9.0, "fp8").bytes_per_block == 47_808
    plain = state_of(small, "0.33.0", 10.0, "bf16").bytes_per_block
    assert plain == 65_536 + 8_704 + 2_048


def test_that_a_packed_layout_needs_latents() -> None:
    with pytest.raises(DeploymentError, match="fp8_ds_mla"):
        state_of({"model_type": "llama"}, "0.33.0", 9.0, "fp8_ds_mla")


HYBRID: dict[str, Any] = {
    "model_type": "qwen3_next",
    "vocab_size": 1000,
    "hidden_size": 1024,
    "num_hidden_layers": 4,
    "num_attention_heads": 16,
    "num_key_value_heads": 2,
    "head_dim": 256,
    "linear_num_key_heads": 16,
    "linear_num_value_heads": 32,
    "linear_key_head_dim": 128,
    "linear_value_head_dim": 128,
    "num_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 64,
    "shared_expert_intermediate_size": 64,
    "torch_dtype": "bfloat16",
}


@pytest.mark.parametrize(
    ("version", "capability", "asked", "block", "states"),
    [
        # One full layer and three groups of one state; pages of 1,097,728 B over 2,048 B a token.
        ("0.27.0", 9.0, None, 544, 1), ("0.28.0", 9.0, None, 544, 2),
        ("0.28.0", 9.0, False, 544, 1), ("0.27.0", 9.0, True, 544, 2),
        # Since 0.33 kernels of some cards write a state inside the prompt, every 64 tokens.
        ("0.33.0", 9.0, None, 576, 3), ("0.33.0", 12.0, None, 576, 3),
        ("0.33.0", 8.9, None, 544, 2), ("0.33.0", 9.0, False, 544, 1),
    ],
)  # fmt: skip
def test_that_cached_prefixes_take_states_of_their_own(
    version: str, capability: float, asked: bool | None, block: int, states: int
) -> None:
    model = read(RawModel(id="x/y", source="by hand", config=HYBRID))
    card = replace(gpu(140.0), compute_capability=capability)
    chosen = Deployment(
        runtime_version=version, max_model_len=65_536, max_num_seqs=8, enable_prefix_caching=asked
    )
    state = size(model, chosen, machine(card, 1)).budget.sequence_state
    assert state.block_size == block
    blocks = -(-65_536 // block) + 3 * states
    assert state.reserved_bytes_per_sequence == blocks * block * 2048


def test_that_fp4_needs_keys_as_wide_as_values() -> None:
    uneven = {"model_type": "mimo_v2_flash"}
    with pytest.raises(DeploymentError, match="nvfp4"):
        state_of(uneven, "0.33.0", 10.0, "nvfp4")
