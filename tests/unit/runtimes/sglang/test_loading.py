"""Weights as SGLang's log prints them: tensors, whole segments, tables, by hand."""

from __future__ import annotations

import pytest

from engine.budget.model import Region
from engine.runtimes.sglang.allocator import rounding_bytes
from engine.units import GIB, MIB
from tests.helpers.sglang import sized


def test_that_large_tensors_have_segments_of_their_own() -> None:
    # 17.5 MiB take 18, 12.5 take 14; what divides by 2 MiB loses nothing.
    assert rounding_bytes([35 * MIB // 2, 25 * MIB // 2, 64 * MIB]) == 2 * MIB


def test_that_smaller_ones_share_segments() -> None:
    # Two of 8.5 MiB in one segment of 20, a third of 3 MiB in its rest of 3: nothing is lost.
    assert rounding_bytes([17 * MIB // 2, 17 * MIB // 2, 3 * MIB]) == 0
    # A rest of no more than 1 MiB stays with the last of them; a fourth takes a new segment.
    assert rounding_bytes([9 * MIB, 21 * MIB // 2 - MIB]) == 3 * MIB // 2
    assert rounding_bytes([9 * MIB, 9 * MIB, 9 * MIB]) == 2 * MIB + 11 * MIB


def parts(name: str, **settings: object) -> dict[str, int]:
    budget = sized(name, **settings).budget
    found = budget.ranks[0].regions[Region.WEIGHTS].estimate.parts
    return {part.label: part.likely_bytes for part in found}


@pytest.mark.parametrize(
    ("name", "settings", "lost_mib"),
    [
        # 40 layers of 5,120: 1,792 rows of keys, 1,280 and 4,352 × 2 columns on each of four.
        # 17.5, 12.5, 85 and 42.5 MiB take 18, 14, 86 and 44.
        ("Qwen/Qwen3-14B", {"tensor_parallel_size": 4, "gpu_count": 4}, 40 * 4.5),
        # 64 layers: 17.5, 12.5, 135 and 67.5 MiB take 18, 14, 136 and 68.
        ("Qwen/Qwen2.5-32B-Instruct", {"tensor_parallel_size": 4, "gpu_count": 4}, 64 * 3.5),
        # Every matrix of Llama-3.1-8B is a multiple of 2 MiB.
        ("meta-llama/Llama-3.1-8B-Instruct", {}, 0),
    ],
)
def test_that_layers_lose_what_their_segments_round_up(
    name: str, settings: dict[str, object], lost_mib: float
) -> None:
    assert parts(name, gpu="RTX 4090", **settings)["rounding"] == lost_mib * MIB


def test_that_intel_counts_what_is_allocated() -> None:
    assert "rounding" not in parts("Qwen/Qwen3-0.6B", gpu="Arc Pro B60")


def test_that_experts_in_groups_keep_their_indices_on_rocm() -> None:
    # 60 layers × 384 experts × (7,168 + 2,048 / 8) inputs × two tables of 4 B.
    settings = {"tensor_parallel_size": 8, "gpu_count": 8}
    on_rocm = parts("moonshotai/Kimi-K2.5", gpu="MI355X", **settings)
    assert on_rocm["group indices"] == 60 * 384 * (7168 + 256) * 2 * 4
    assert "group indices" not in parts("moonshotai/Kimi-K2.5", gpu="B200", **settings)


def test_that_a_tower_of_plain_layers_is_whole_on_every_rank() -> None:
    # Attention in 16 bits: of 61 layers q_a and kv_a whole, the rest in eighths; the tower whole.
    found = parts("moonshotai/Kimi-K2.5", gpu="MI355X", tensor_parallel_size=8, gpu_count=8)
    whole = 7168 * (1536 + 576)
    cut = (1536 * 64 * 192 + 512 * 64 * 256 + 64 * 128 * 7168) // 8
    attention = 61 * 2 * (whole + cut)
    experts = 60 * 384 * 3 * 7168 * 256 * (1 / 2 + 2 / 32)
    tables = 2 * 163_840 * 7168 * 2 // 8
    beside = 60 * (3 * 7168 * 256 * 2 + 384 * 7168 * 2) + 3 * 7168 * 18_432 * 2 // 8
    tower = 471_143_920 * 2
    expected = attention + experts + tables + beside + tower
    assert found["tensors"] == pytest.approx(expected, rel=0.001)


def test_that_up_projections_are_copied_in_16_bits_on_cuda() -> None:
    settings = {"tensor_parallel_size": 8, "gpu_count": 8, "weight_format": "fp8-block"}
    # 61 layers × 16 heads × 512 × (128 + 128).
    size = 61 * 16 * 512 * 256
    cuda = parts("deepseek-ai/DeepSeek-V3.2-Exp", gpu="H200", **settings)
    rocm = parts("deepseek-ai/DeepSeek-V3.2-Exp", gpu="MI355X", **settings)
    assert (cuda["absorbed projections"], rocm["absorbed projections"]) == (2 * size, size)


def test_that_a_shared_memory_is_read_with_the_hosts_own() -> None:
    # 17.17 GiB printed for a 9B, 51.86 for a 27B: less than its tensors, and more.
    nine = sized("Qwen/Qwen3.5-9B", gpu="GB10 (DGX Spark)", runtime_version="0.5.14").budget
    weights = nine.ranks[0].regions[Region.WEIGHTS].estimate
    assert weights.low_bytes < 17.17 * GIB < weights.high_bytes
    assert "the host's own memory" not in parts("Qwen/Qwen3-0.6B", gpu="RTX 4090")


def test_that_hybrids_without_positions_have_no_table() -> None:
    assert "rotary table" not in parts("ibm-granite/granite-4.0-h-micro", gpu="RTX 4090")
