"""What SGLang holds for a moment, by hand from shapes."""

from __future__ import annotations

from engine.budget.phases import Phase, peaks
from engine.units import MIB
from tests.helpers.sglang import sized


def loading(name: str, **settings: object) -> dict[str, int]:
    rank = sized(name, **settings).budget.ranks[0]
    return {part.label: part.likely_bytes for part in rank.moments.load}


def test_that_nothing_more_is_held_of_weights_that_stay_as_they_are() -> None:
    assert loading("Qwen/Qwen3-8B", gpu="H100 SXM 80GB") == {}


def test_that_all_is_in_16_bits_before_the_first_matrix_is_quantised() -> None:
    # 36 layers: q, k, v 6,144 rows, o 4,096, gate and up 24,576, down 12,288 columns, of 4,096;
    # in FP8 half of it, beside one of 24,576 × 4,096.
    matrices = 36 * 4096 * (6144 + 4096 + 24_576 + 12_288)
    found = loading("Qwen/Qwen3-8B", gpu="H100 SXM 80GB", weight_format="fp8")
    wanted = matrices + 24_576 * 4096
    assert abs(found["weights in 16 bits"] - wanted) < MIB


def test_that_a_checkpoint_in_fp8_is_read_as_it_is() -> None:
    assert "weights in 16 bits" not in loading(
        "Qwen/Qwen3-235B-A22B-FP8", gpu="H100 SXM 80GB", gpu_count=4, tensor_parallel_size=4
    )


def test_that_packed_experts_are_laid_out_beside_themselves_and_their_indices() -> None:
    settings = {"gpu": "B200", "gpu_count": 8, "tensor_parallel_size": 8}
    found = loading("moonshotai/Kimi-K2.5", **settings)
    # Gate and up of 384 experts: 512 × 7,168 in 4 bits, a scale of 16 for 32 of them, and the
    # two shapes in 64 bits.
    assert found["a matrix laid out anew"] == 384 * (512 * 7168 * 9 // 16 + 2 * 2 * 8)
    assert found["group indices"] == 60 * 384 * (7168 + 256) * 2 * 4
    kept = loading("moonshotai/Kimi-K2.5", **(settings | {"gpu": "MI355X"}))
    assert "group indices" not in kept


def test_that_the_load_peak_holds_what_is_held_for_a_moment() -> None:
    budget = sized("Qwen/Qwen3-8B", gpu="H100 SXM 80GB", weight_format="fp8").budget
    found = {peak.phase: peak for peak in peaks(budget.ranks[0])}
    names = [part.label for part in found[Phase.LOAD].estimate.parts]
    assert "weights in 16 bits" in names


def test_that_an_index_scores_every_token_of_a_step_against_all_before_it() -> None:
    budget = sized(
        "deepseek-ai/DeepSeek-V3.2-Exp", gpu="B200", gpu_count=8, tensor_parallel_size=8,
        max_model_len=10_000, concurrency=50, chunked_prefill_size=8192,
    ).budget  # fmt: skip
    (scores,) = budget.ranks[0].moments.sustained
    assert scores.likely_bytes == 8192 * 10_000 * 4
    assert scores.high_bytes == 50 * scores.likely_bytes
