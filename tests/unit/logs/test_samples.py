"""Recorded logs: what they state, by hand from their text."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from engine.budget.model import Region
from engine.logs.regions import stated_regions
from tests.helpers.logs import GIB, MIB, reading, sample

if TYPE_CHECKING:
    from pathlib import Path

    from engine.logs.reading import LogReading, RankReading


def rank(found: LogReading, name: str) -> RankReading:
    return next(r for r in found.ranks if r.name == name)


def gib(value: float) -> int:
    return round(value * GIB)


def test_that_each_rank_of_an_early_vllm_keeps_its_own_figures(shared: Path) -> None:
    found = sample(shared, "vllm", "startup_v0_2025-04.log")
    assert (found.runtime, found.version) == ("vllm", "")
    driver, worker = found.ranks
    assert worker.name == "pid 12897"
    for each, weights, activations, pool in (
        (driver, 10.80, 1.01, 14.52),
        (worker, 10.30, 1.77, 14.26),
    ):
        assert each.bytes_of("weights") == gib(weights)
        assert each.bytes_of("activations") == gib(activations)
        assert each.bytes_of("kv_pool") == gib(pool)
        assert each.bytes_of("non_torch") == gib(0.33)
    assert worker.bytes_of("total") == gib(31.37)
    assert found.settings["gpu_memory_utilization"] == 0.85
    # 7,299 blocks of 16 tokens are 2.34 requests of 50,000.
    assert found.whole["kv_blocks"].value == 7299
    assert found.whole["max_concurrency"].value == 2.34


def test_that_the_line_that_holds_the_whole_budget_is_read_whole(shared: Path) -> None:
    found = sample(shared, "vllm", "actual-usage_2026-08_tp4.log")
    (only,) = found.ranks
    assert (only.name, only.index) == ("TP2 EP2", 2)
    stated = stated_regions(only)
    assert stated[Region.WEIGHTS].size_bytes == gib(106.69)
    assert stated[Region.ACTIVATIONS].size_bytes == gib(6.31)
    assert stated[Region.RUNTIME].size_bytes == gib(0.95)
    assert stated[Region.CUDA_GRAPHS].size_bytes == gib(4.13)
    assert stated[Region.KV_CACHE].size_bytes == gib(50.62)
    # 184.31 − 169.56 are left out of the share, 184.31 − 181.84 were held by others.
    assert abs(stated[Region.HEADROOM].size_bytes - gib(14.75)) <= 2
    assert abs(stated[Region.FOREIGN].size_bytes - gib(2.47)) <= 2


def test_that_what_lies_beside_pytorch_follows_from_one_figure_for_both(shared: Path) -> None:
    (only,) = sample(shared, "vllm", "startup_v1_2026-10_single-line.log").ranks
    stated = stated_regions(only)
    # 15.26 GiB consumed, 15.0 of them weights.
    assert abs(stated[Region.RUNTIME].size_bytes - gib(0.26)) <= 2
    assert stated[Region.KV_CACHE].size_bytes == gib(56.21)


def test_that_a_figure_knows_how_far_it_is_rounded(shared: Path) -> None:
    found = sample(shared, "vllm", "startup_v1_2025-10.log")
    weights = found.stated("weights")
    assert weights is not None
    assert weights.size_bytes == gib(0.9280)
    assert weights.half_bytes == round(GIB / 20_000)
    assert weights.line == 1


def test_that_a_metrics_page_gives_pool_and_load(shared: Path) -> None:
    found = sample(shared, "vllm", "metrics_0.25.1_loaded.prom")
    assert found.whole["kv_tokens"].value == 25_028 * 16
    assert found.whole["kv_fill"].value == pytest.approx(0.11223878)
    assert found.whole["waiting"].value == 64
    assert found.settings["model"] == "opt-125m-tp2"


def test_that_the_pool_of_a_draft_is_added_to_its_targets(shared: Path) -> None:
    found = sample(shared, "sglang", "startup_2026-09_target-and-draft_tp2.log")
    # 3.46 + 3.46 of the target and 1.08 + 1.08 of the draft.
    assert [r.name for r in found.ranks] == ["TP0", "TP1"]
    for each in found.ranks:
        assert abs((each.bytes_of("kv_pool") or 0) - gib(9.08)) <= 4


def test_that_sglangs_gb_are_gib(shared: Path) -> None:
    (only,) = sample(shared, "sglang", "startup_2026-07_mi.log").ranks
    pool = only.bytes_of("kv_pool") or 0
    # 48 layers × 4 heads × 128 × 2 × 2 bytes are 98,304 bytes a token.
    assert round(pool / 1_669_816 / 98_304, 3) == 1.0


def test_that_the_servers_own_account_is_read(shared: Path) -> None:
    (only,) = sample(shared, "sglang", "server_info_memory_usage_0.5.x.json").ranks
    assert only.bytes_of("weights") == gib(0.98)
    assert only.bytes_of("kv_pool") == gib(0.23)
    assert only.bytes_of("graphs") == gib(0.57)


def test_that_a_pass_that_is_only_tried_does_not_count(shared: Path) -> None:
    found = sample(shared, "llamacpp", "startup_2026_probe-pass-then-real.log")
    for name, total in (("CUDA0", 27677.76), ("CUDA1", 20121.76)):
        held = sum(s.size_bytes for s in stated_regions(rank(found, name)).values())
        assert abs(held - total * MIB) < 8


def test_that_early_buffer_lines_are_read_too(shared: Path) -> None:
    found = sample(shared, "llamacpp", "startup_2024-06_multi-gpu.log")
    held = sum(s.size_bytes for s in stated_regions(rank(found, "CUDA0")).values())
    assert held == round((12633.25 + 1472 + 1108.5) * MIB)
    pools = sum(r.bytes_of("kv_pool") or 0 for r in found.ranks)
    assert pools == 2560 * MIB
    assert found.settings["n_ctx"] == 8192


def test_that_a_projection_of_what_is_left_is_no_reading(shared: Path) -> None:
    found = sample(shared, "llamacpp", "memory-breakdown_2026-08_projection-negative.log")
    first = rank(found, "CUDA0")
    assert first.bytes_of("weights") == 15_364 * MIB
    assert first.bytes_of("unaccounted") is None
    assert first.bytes_of("free_at_start") == 23_860 * MIB


def test_that_a_quiet_log_of_llama_cpp_says_how_quiet(shared: Path) -> None:
    found = sample(shared, "llamacpp", "startup_2026-05_default-verbosity.log")
    assert found.whole["verbosity"].value == 3


def test_that_ollamas_estimate_is_read_in_its_own_units(shared: Path) -> None:
    found = sample(shared, "ollama", "serve_2025-06_offload.log")
    assert found.runtime == "ollama"
    for name, size in (("weights", 6.8), ("kv_pool", 1.3), ("activations", 0.5332)):
        fact = found.stated(name)
        assert fact is not None
        assert abs(fact.size_bytes - gib(size)) <= gib(0.06)
    assert found.whole["total_required"].value == gib(10.5)
    assert found.settings["n_ctx"] == 8192
    assert found.settings["n_parallel"] == 2


def test_that_a_program_that_starts_another_is_named(shared: Path) -> None:
    assert sample(shared, "ollama", "serve_2026-08_llama-server-runner.log").runtime == "ollama"
    assert sample(shared, "tgi", "args_and_warmup.log").runtime == "tgi"


def test_that_tensorrts_pool_is_read(shared: Path) -> None:
    (only,) = sample(shared, "trtllm", "kv-cache.log").ranks
    assert only.bytes_of("kv_pool") == gib(78.30)
    assert only.facts["kv_block_size"].value == 32


SAMPLES = ("vllm", "sglang", "llamacpp", "ollama", "tgi", "trtllm", "lmstudio", "errors")


def test_that_every_line_that_a_recorded_pattern_knows_is_understood(shared: Path) -> None:
    known = json.loads((shared / "live" / "log_patterns.json").read_text())
    patterns = {name: re.compile(text) for name, text in known.items()}
    seen: set[str] = set()
    for folder in SAMPLES:
        for path in sorted((shared / "live" / "samples" / folder).iterdir()):
            for text in path.read_text().splitlines():
                names = {name for name, pattern in patterns.items() if pattern.search(text)}
                assert not names or reading(text).understood == 1, (path.name, names, text)
                seen |= names
    assert seen == set(known)


USAGE = {
    # 0.5.x, until 0.5.22.
    "one number": '{"internal_states":[{"memory_usage":{"weight":15.27,"kvcache":5.5,'
    '"token_capacity":40000,"graph":0.75}}]}',
    # 0.5.23: graphs by phase, and what was free at the start.
    "by phase": '{"internal_states":[{"memory_usage":{"weight":15.27,"kvcache":5.5,'
    '"startup_available":78.5,"token_capacity":40000,"token_capacity_swa":100,'
    '"graph":{"decode":0.5,"prefill":0.25}}}]}',
    "made readable": '{\n  "memory_usage": {\n    "weight": 15.27,\n    "kvcache": 5.5,\n'
    '    "token_capacity": 40000,\n    "graph": 0.75\n  }\n}',
    "of the loads": '{"memory":{"weight_gb":15.27,"kv_cache_gb":5.5,"graph_gb":0.75,'
    '"token_capacity":40000}}',
}


@pytest.mark.parametrize("text", USAGE.values(), ids=USAGE)
def test_that_sglangs_own_account_is_read_in_every_release(text: str) -> None:
    found = reading(text)
    assert found.runtime == "sglang"
    (only,) = found.ranks
    assert only.bytes_of("weights") == gib(15.27)
    assert only.bytes_of("kv_pool") == gib(5.5)
    assert only.bytes_of("graphs") == gib(0.75)
    assert only.bytes_of("kv_tokens") == 40_000
    assert (only.bytes_of("free_before_load") == gib(78.5)) is ("startup" in text)


def test_that_another_programs_weight_is_no_weight_of_a_model() -> None:
    assert not reading('{"font": {"weight": 400, "graph": 3}}\n').ranks
