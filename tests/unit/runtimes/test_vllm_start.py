"""What vLLM's start makes of a pool: the length it finds, refusals, pools that are given."""

from __future__ import annotations

from typing import Any

import pytest

from engine.architecture.read import read
from engine.budget.model import Budget, Region
from engine.deployment.spec import Deployment
from engine.errors import DeploymentError
from engine.fit.verdict import Fit
from engine.sizing import size
from engine.source.raw import RawModel
from tests.helpers.published import GIB, gpu, machine, model

# A 27B of 48 gated delta nets and 16 full layers, as Qwen3.5-27B's config has them.
HYBRID = {
    "model_type": "qwen3_5_text",
    "architectures": ["Qwen3_5ForCausalLM"],
    "vocab_size": 248320,
    "hidden_size": 5120,
    "intermediate_size": 17408,
    "num_hidden_layers": 64,
    "num_attention_heads": 24,
    "num_key_value_heads": 4,
    "head_dim": 256,
    "full_attention_interval": 4,
    "linear_num_key_heads": 16,
    "linear_num_value_heads": 48,
    "linear_key_head_dim": 128,
    "linear_value_head_dim": 128,
    "linear_conv_kernel_dim": 4,
    "mamba_ssm_dtype": "float32",
    "max_position_embeddings": 262144,
    "torch_dtype": "bfloat16",
}


def plan(name: str, *, total_gib: float = 79.0, **settings: Any) -> Budget:
    chosen = Deployment(**settings)
    found = size(model(name), chosen, machine(gpu(total_gib), chosen.ranks))
    return found.budget


def hybrid(**settings: Any) -> Budget:
    stated = read(RawModel(id="27B", source="published dimensions", config=HYBRID))
    chosen = Deployment(max_model_len=131_072, enable_prefix_caching=False, **settings)
    return size(stated, chosen, machine(gpu(90.0))).budget


def test_that_a_pipeline_is_refused_by_what_the_whole_model_needs() -> None:
    # Logged: 71.16 GiB needed against 28.57 of one stage, an estimate of 81,392 tokens. A stage
    # of 11 or 12 of the 92 layers needs 9.3 GiB.
    settings = {
        "pipeline_parallel_size": 8,
        "max_model_len": 202_752,
        "kv_pool_bytes": 81_400 * 92 * 4096,
        "weight_format": "fp8",
    }
    budget = plan("GLM-4.7", runtime_version="0.15.1", **settings)
    (refusal,) = budget.refusals
    assert "71.16 GiB" in refusal
    assert "28.57 GiB" in refusal
    assert "max_model_len 81,392 starts" in refusal
    assert budget.sequence_state.reserved_bytes_per_sequence / GIB == pytest.approx(9.28, abs=0.01)
    assert not plan("GLM-4.7", runtime_version="0.17.0", **settings).refusals
    assert not plan("GLM-4.7", runtime_version="0.13.0", **settings).refusals


def test_that_such_a_refusal_is_a_plan_that_does_not_start() -> None:
    # Logged by 0.15: 24.0 GiB needed for 262,144 tokens, estimate 34,736 in 3.18 GiB.
    chosen = Deployment(
        runtime_version="0.15.1",
        pipeline_parallel_size=2,
        max_model_len=262_144,
        kv_pool_bytes=int(13 * GIB),
    )
    found = size(model("Qwen3-30B-A3B"), chosen, machine(gpu(79.0), 2))
    assert "24.00 GiB" in found.budget.refusals[0]
    assert found.verdict.outcome is Fit.DOES_NOT_FIT


def test_that_more_rows_than_blocks_are_refused_with_states() -> None:
    # Logged: "max_num_seqs (256) exceeds available Mamba cache blocks (184)".
    settings = {"kv_pool_bytes": int(8.82 * GIB), "max_num_seqs": 256}
    (refusal,) = hybrid(runtime_version="0.24.0", **settings).refusals
    assert "max_num_seqs 256 is more than the 184 blocks" in refusal
    assert not hybrid(runtime_version="0.24.0", enforce_eager=True, **settings).refusals
    # 0.18 and 0.19 captured fewer sizes.
    assert not hybrid(runtime_version="0.19.0", **settings).refusals
    assert not hybrid(runtime_version="0.24.0", **settings | {"max_num_seqs": 184}).refusals


@pytest.mark.parametrize(("version", "tokens"), [("0.24.0", 34_736), ("0.29.0", 34_720)])
def test_that_the_longest_length_is_found(version: str, tokens: int) -> None:
    # 2,171 blocks of 16 tokens; since 0.29 the block that is never given out is left out.
    budget = plan(
        "Qwen3-30B-A3B",
        runtime_version=version,
        max_model_len=-1,
        kv_pool_bytes=34_736 * 98_304,
    )
    assert budget.deployment.max_model_len == tokens
    assert any(f"max_model_len {tokens:,}" in text for text in budget.assumptions)


def test_that_the_whole_length_is_kept_where_it_fits() -> None:
    budget = plan("Llama-3.1-8B", max_model_len=-1, kv_pool_bytes=20 * GIB)
    assert budget.deployment.max_model_len == 131_072


def test_that_the_poorest_stage_bounds_the_length() -> None:
    # 48 layers in two stages: 24 layers × 2,048 B a token.
    settings = {"pipeline_parallel_size": 2, "max_model_len": -1, "kv_pool_bytes": 16_000 * 49_152}
    found = plan("Qwen3-30B-A3B", runtime_version="0.24.0", **settings)
    assert found.deployment.max_model_len == 16_000
    # 0.14 to 0.16 hold all 48 layers against it.
    found = plan("Qwen3-30B-A3B", runtime_version="0.15.0", **settings)
    assert found.deployment.max_model_len == 8_000


def test_that_older_releases_take_no_length_that_fits() -> None:
    with pytest.raises(DeploymentError, match=r"from 0\.14 on") as caught:
        plan("Llama-3.1-8B", runtime_version="0.13.0", max_model_len=-1)
    assert caught.value.field == "max_model_len"


def test_that_a_pool_in_bytes_ignores_the_share() -> None:
    # 6,000,000,000 B were printed as 5.59 GiB; Llama-3.1-8B's blocks are of 2 MiB.
    for share in (0.3, 0.9):
        budget = plan(
            "Llama-3.1-8B", gpu_memory_utilization=share, kv_cache_memory_bytes=6_000_000_000
        )
        pool = budget.ranks[0].regions[Region.KV_CACHE].estimate
        assert pool.low_bytes == pool.high_bytes == 6_000_000_000
        assert f"{pool.likely_bytes / GIB:.2f}" == "5.59"
        assert budget.sequence_state.num_blocks == 2861
    with pytest.raises(DeploymentError, match=r"from 0\.10\.2 on"):
        plan("Llama-3.1-8B", runtime_version="0.10.1", kv_cache_memory_bytes=6_000_000_000)


def test_that_blocks_may_be_overridden() -> None:
    budget = plan("Llama-3.1-8B", num_gpu_blocks_override=1000, max_model_len=8192)
    assert budget.sequence_state.num_blocks == 1000
    assert budget.sequence_state.pool_bytes == 1000 * 2 * 2**20
    assert budget.sequence_state.max_concurrency == 1000 / 512


def test_that_the_block_size_is_taken_as_asked() -> None:
    # Logged on an Ascend card: 13,291 blocks of 128 tokens, 1,701,248 tokens, 207.67x at 8,192.
    budget = plan(
        "Llama-3-8B",
        runtime_version="0.11.0",
        tensor_parallel_size=2,
        pipeline_parallel_size=2,
        max_model_len=8192,
        block_size=128,
        kv_pool_bytes=int(51.92 * GIB),
    )
    state = budget.sequence_state
    assert (state.num_blocks, state.pool_tokens) == (13_291, 1_701_248)
    assert f"{state.max_concurrency:.2f}" == "207.67"


@pytest.mark.parametrize(
    ("version", "stages", "steps"),
    [("0.25.0", 1, 1), ("0.25.0", 2, 1), ("0.26.0", 1, 2), ("0.28.0", 2, 2), ("0.29.0", 2, 3)],
)
def test_that_windows_hold_the_steps_under_way(version: str, stages: int, steps: int) -> None:
    # gpt-oss-20b: 12 full layers and 12 with windows of 128; two groups.
    budget = plan(
        "gpt-oss-20b",
        runtime_version=version,
        pipeline_parallel_size=stages,
        max_model_len=65_536,
        max_num_batched_tokens=2048,
    )
    state = budget.sequence_state
    assert state.bytes_per_block is not None
    windows = -(-(127 + steps * 2048) // 16) + 1
    assert state.reserved_bytes_per_sequence == (4096 + windows) * state.bytes_per_block


def test_that_concurrency_came_from_tokens_until_0_9() -> None:
    # 1,478 blocks of 16 tokens at 29,000: 23,648 / 29,000 and not 1,478 / 1,813.
    settings = {"max_model_len": 29_000, "kv_pool_bytes": 1478 * 2 * 2**20}
    older = plan("Llama-3.1-8B", runtime_version="0.6.4", **settings).sequence_state
    assert older.max_concurrency == 23_648 / 29_000
    newer = plan("Llama-3.1-8B", runtime_version="0.10.0", **settings).sequence_state
    assert newer.max_concurrency == 1478 / 1813
