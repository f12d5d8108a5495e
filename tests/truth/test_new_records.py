"""A record that nobody has seen is scored, or left out with a reason; it never breaks the board."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.truth.scoring.board import FIGURES, Board, scored
from tests.truth.scoring.page import page
from tests.truth.scoring.records import Record, records

BUILDER = Path(__file__).resolve().parents[2] / "packaging" / "data"
ODD: tuple[Any, ...] = (
    None, True, -1, 0, 1, 3, 3.5, 10**12, "", "auto", "later", "0.34.1rc2", "2026-11-30", [], [7],
)  # fmt: skip
"""What a key of a request may be found to hold."""


@cache
def scorable() -> list[Record]:
    """Records of planned runtimes with something to score."""
    return [one for one in records() if one.runtime in FIGURES and one.printed]


def settled(record: Record) -> None:
    """Every score is a number, and every figure without one has a reason."""
    scores, missed = scored(record)
    assert scores or missed
    assert all(one.reason for one in missed)
    assert all(math.isfinite(s.likely) and s.low <= s.likely <= s.high for s in scores)
    assert {score.figure for score in scores}.isdisjoint(record.left_out)


@settings(max_examples=120, deadline=None)
@given(data=st.data())
def test_that_a_changed_request_is_answered_or_left_out(data: st.DataObject) -> None:
    record = data.draw(st.sampled_from(scorable()))
    keys = sorted(record.request)
    gone = data.draw(st.sets(st.sampled_from(keys), max_size=2)) if keys else set[str]()
    odd = data.draw(st.dictionaries(st.sampled_from(keys or ["model"]), st.sampled_from(ODD)))
    request = {key: value for key, value in record.request.items() if key not in gone} | odd
    version = data.draw(st.sampled_from(["", "0.99.0", "b99999", "nightly of May", "1"]))
    settled(replace(record, id="new", request=request, version=version))


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_that_a_record_with_fewer_or_odd_figures_is_scored_as_far_as_it_goes(
    data: st.DataObject,
) -> None:
    record = data.draw(st.sampled_from(scorable()))
    names = sorted(name for name, value in record.printed.items() if isinstance(value, list))
    kept = data.draw(st.sets(st.sampled_from(names))) if names else set[str]()
    size = data.draw(st.sampled_from([0, 1, -5, 10**9, 0.5]))
    printed = {name: record.printed[name] for name in kept}
    if kept:
        name = min(kept)
        printed[name] = [size, *printed[name][1:]]
    settled(replace(record, id="new", printed=printed | {"a new figure": [1, 0]}))


@pytest.mark.parametrize("runtime", [*FIGURES, "a runtime of next year"])
def test_that_an_unknown_model_is_left_out_by_name(runtime: str) -> None:
    request = {"model": "nobody/Has-This-7B", "runtime": runtime}
    record = Record("new", "page", runtime, "", "Has-This", request, {"weights": [1, 0]}, {})
    scores, (missed,) = scored(record)
    assert scores == []
    assert "nobody/Has-This-7B" in missed.reason or missed.reason.endswith("not planned yet")


def test_that_the_page_takes_a_record_without_a_single_known_word() -> None:
    record = Record("new | odd\nname", "page", "?", "?", "?", {}, {"weights": [0, 0]}, {})
    scores, missed = scored(record)
    assert "new | odd" not in page(Board(tuple(scores), tuple(missed)))


RAW: dict[str, dict[str, Any]] = {
    "vllm": {
        "engine_version": "0.19.0", "model": "Qwen/Qwen3-8B", "gpu": "NVIDIA H100", "tp": 2,
        "gpu_total_gib": 79.19, "weight_format": "bf16", "kv_dtype": "auto", "max_model_len": 8192,
        "gpu_memory_utilization": 0.9, "other_flags": ["speculative mtp n=1"],
        "reported": {"weights_gib": 7.66, "kv_available_gib": 60.1, "graph_gib": -0.2},
    },
    "sglang": {
        "engine_version": "Feb 2026", "model_inferred": "Qwen3-8B class (36 layers)",
        "weight_format": "bf16", "chunked_prefill_size": 8192,
        "reported": {"weights_gib": 15.27, "free_after_load_gib": 7.3, "kv_tokens": 1000},
    },
    "llama.cpp": {
        "engine_version": "b7777", "model": "Qwen3-8B-UD-Q4_K_XL", "n_ctx": 8192, "gpu": "none",
        "weight_format": "gguf (qwen3 8B Q4_K - Medium)", "flash_attn": "enabled",
        "reported": {"buffers_mib": {"CPU": {"model": 5000.0, "kv": 1152.0}}},
    },
    "ik_llama.cpp": {
        "model": "Qwen3 235B A22B", "n_ctx": 16384, "type_k": "q8_0", "flash_attn": 1,
        "offloaded_layers": "95/95", "other_flags": ["-nkvo"],
        "reported": {
            "buffers_mib": {
                "CPU": {"model": 167201.25}, "CUDA0": {"model": 17333.91, "kv": 816.02},
                "CUDA1": {"model": 17851.86, "kv": 782.02, "compute": 312.75},
            }
        },
    },
    "transformers": {
        "model": "Qwen/Qwen3-8B", "weight_format": "bf16", "prompt_tokens": 100,
        "generated_tokens": 20, "reported": {"allocated_mib": 16000, "peak_gib": 15.9},
    },
    "mlx-lm": {
        "model": "mlx-community/Qwen3-8B-4bit", "weight_format": "mlx-4bit",
        "gpu": "Apple M3 Ultra 256GB", "reported": {"peak_gb": 5.1, "active_gb": 4.6},
    },
    "a runtime of next year": {"reported": {"weights_gib": 3}},
}  # fmt: skip
"""One start of every kind, in the words of the corpora."""


@pytest.fixture(scope="module")
def converted() -> Any:
    """What writes the records."""
    sys.path.insert(0, str(BUILDER))
    try:
        import build_records

        yield build_records.converted
    finally:
        sys.path.remove(str(BUILDER))


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_that_a_new_line_of_a_corpus_becomes_a_record(converted: Any, data: st.DataObject) -> None:
    engine = data.draw(st.sampled_from(sorted(RAW)))
    raw = {"id": "strix-of-next-year", "source_url": "page", "engine": engine} | RAW[engine]
    optional = sorted(raw.keys() - {"id", "source_url", "engine", "reported"})
    gone = data.draw(st.sets(st.sampled_from(optional), max_size=3)) if optional else set[str]()
    empty = data.draw(st.sets(st.sampled_from(optional), max_size=3)) if optional else set[str]()
    raw = {key: None if key in empty else raw[key] for key in raw if key not in gone}
    settled(Record(**converted(raw)))


def test_that_a_new_line_is_read_as_far_as_it_says(converted: Any) -> None:
    def read(engine: str) -> Record:
        raw = {"id": "new", "source_url": "page", "engine": engine} | RAW[engine]
        return Record(**converted(raw))

    served, parted, filed = read("vllm"), read("sglang"), read("llama.cpp")
    assert served.request["speculative_tokens"] == 1
    assert "graphs" in served.left_out
    # What was free before is what is left and the weights; a card with that much room.
    assert parted.facts["free_before_bytes"] == round(22.57 * 2**30)
    assert (parted.request["model"], parted.request["gpu"]) == ("Qwen3-8B", "RTX 4090")
    assert (filed.request["model"], filed.request["weight_format"]) == ("Qwen3-8B", "Q4_K_M")
    # 94 layers, 48 and 46 by their caches; the output layer goes with the last, experts stay.
    dealt = read("ik_llama.cpp")
    assert dealt.request["tensor_split"] == [48, 47]
    assert dealt.request["n_cpu_moe"] == 999
    assert dealt.request["offload_kqv"] is False
    assert dealt.left_out.keys() >= {"printed model buffers", "printed compute buffers"}
    assert read("mlx-lm").left_out["peak"] == "lengths of the prompts are not stated"


@pytest.mark.parametrize(
    ("engine", "said", "release"),
    [
        ("vllm", "0.8.5.post1", "0.8.5"),
        ("vllm", "2026-03-19 (0.18 line)", "0.18.0"),
        ("vllm", "2025-10-20", "0.11.0"),
        ("vllm", "2025-09 (0.10 line)", "0.10.0"),
        ("sglang", "Oct 2025", "0.5.3"),
        ("sglang", "Build 2026", None),
        ("vllm", "V0 line format", None),
        ("vllm", None, None),
    ],
)
def test_the_release_of_a_day(
    converted: Any, engine: str, said: str | None, release: str | None
) -> None:
    raw = {"id": "new", "source_url": "page", "engine": engine} | RAW[engine]
    request = converted(raw | {"engine_version": said})["request"]
    assert request.get("runtime_version") == release


@pytest.mark.parametrize(
    ("model", "is_scored"), [("Qwen/Qwen3-8B", True), ("Qwen/Qwen3.5-2B", False)]
)
def test_that_tokens_of_an_unknown_release_are_scored_where_all_count_alike(
    model: str, is_scored: bool
) -> None:
    # Until 0.19 a hybrid's tokens were divided by its groups; full attention was never.
    request = {"runtime": "vllm", "model": model, "max_model_len": 8192}
    printed = {"kv_pool": [10 * 2**30, 0], "kv_tokens": [72816, 0]}
    found, missed = scored(Record("new", "page", "vllm", "", model, request, printed, {}))
    assert [score.figure for score in found] == ["kv_tokens from a known pool"] * is_scored
    if is_scored:
        # 10 GiB of 36 layers × 2 × 8 heads × 128 × 2 B, in blocks of 16 tokens.
        assert found[0].likely == 10 * 2**30 // 147456 // 16 * 16
    reasons = {one.figure: one.reason for one in missed}
    assert reasons["kv_pool"] == "the card is not named"
    assert is_scored != ("kv_tokens from a known pool" in reasons)
