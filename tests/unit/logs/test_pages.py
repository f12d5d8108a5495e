"""Metrics pages of every runtime: what they state, by hand from their lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from engine.budget.model import Region
from engine.logs import words
from engine.logs.diagnosis import Kind, diagnose
from engine.logs.reading import Phase
from engine.logs.regions import stated_regions
from engine.logs.why import happened
from engine.units import UnitSystem
from tests.helpers.logs import GIB, reading, sample

if TYPE_CHECKING:
    from pathlib import Path

    from engine.logs.reading import LogReading


def said(found: LogReading) -> str:
    return " ".join(happened(diagnose(found), found, UnitSystem.BINARY))


def test_that_vllms_page_gives_the_pool_its_fill_and_who_waits(shared: Path) -> None:
    found = sample(shared, "vllm", "metrics_0.25.1_loaded.prom")
    assert found.runtime == "vllm"
    assert found.phase is Phase.SERVE
    values = {name: fact.value for name, fact in found.whole.items()}
    # 25,028 blocks of 16 tokens.
    assert (values["kv_tokens"], values["kv_blocks"], values["kv_block_size"]) == (
        400_448,
        25_028,
        16,
    )
    assert values["kv_fill"] == pytest.approx(0.11223878211531546)
    assert (values["running"], values["waiting"], values["preemptions"]) == (64, 64, 0)
    # A pool that is a ninth full holds nobody up.
    assert diagnose(found) is None
    assert "11 % of the KV cache is in use. 64 requests run, 64 wait." in said(found)
    assert "not for memory" in said(found)
    assert words.headline(None, found, UnitSystem.BINARY) == "This run came up"


def test_that_the_lines_of_the_pool_are_marked_as_its(shared: Path) -> None:
    found = sample(shared, "vllm", "metrics_0.25.1_loaded.prom")
    names = ("kv_cache_usage_perc{", "cache_config_info{", "num_preemptions_total{")
    for name in names:
        (line,) = [line for line in found.lines if f"vllm:{name}" in line.text]
        assert line.region is Region.KV_CACHE, name


def test_that_requests_of_all_engines_add_up_and_the_fullest_pool_counts() -> None:
    page = "".join(
        f'vllm:num_requests_running{{engine="{n}",model_name="X/Y"}} {running}.0\n'
        f'vllm:kv_cache_usage_perc{{engine="{n}",model_name="X/Y"}} {fill}\n'
        for n, running, fill in ((0, 3, 0.25), (1, 5, 0.75), (2, 1, 0.5))
    )
    for text in (page, page + page):  # scraped twice
        found = reading(text)
        assert found.whole["running"].value == 9
        assert found.whole["kv_fill"].value == 0.75
    assert found.settings["model"] == "X/Y"


@pytest.mark.parametrize(
    ("lines", "kind"),
    [
        ("vllm:kv_cache_usage_perc {f}\nvllm:num_requests_waiting 9.0\n", Kind.CONCURRENCY),
        ("vllm:gpu_cache_usage_perc {f}\nvllm:num_requests_waiting 9.0\n", Kind.CONCURRENCY),
        ("sglang:token_usage {f}\nsglang:num_queue_reqs 9\n", Kind.CONCURRENCY),
        ("llamacpp:kv_cache_usage_ratio {f}\nllamacpp:requests_deferred 9\n", Kind.CONCURRENCY),
        ("vllm:kv_cache_usage_perc {f}\nvllm:num_requests_waiting 0.0\n", None),
    ],
)
def test_that_a_full_pool_with_requests_that_wait_is_short(lines: str, kind: Kind | None) -> None:
    cause = diagnose(reading(lines.format(f="0.995")))
    assert (cause.kind if cause else None) is kind
    assert diagnose(reading(lines.format(f="0.5"))) is None
    if cause is not None:
        assert (cause.region, cause.is_soft) == (Region.KV_CACHE, True)


def test_that_requests_that_lost_their_cache_tell_of_a_pool_that_was_too_small() -> None:
    found = reading('vllm:num_preemptions_total{engine="0",model_name="X/Y"} 12.0\n')
    cause = diagnose(found)
    assert cause is not None
    assert (cause.kind, cause.is_soft, cause.line) == (Kind.CONCURRENCY, True, 1)
    assert "12 times a request had to give up its cache" in said(found)


def test_that_sglangs_page_gives_bytes_of_every_rank() -> None:
    page = "".join(
        f'sglang:weight_memory_usage_gb{{model_name="X/Y",tp_rank="{n}",pp_rank="0"}} {15.5 + n}\n'
        f'sglang:kv_cache_memory_usage_gb{{model_name="X/Y",tp_rank="{n}",pp_rank="0"}} 40.25\n'
        f'sglang:graph_memory_usage_gb{{phase="decode",tp_rank="{n}",pp_rank="0"}} 0.5\n'
        f'sglang:graph_memory_usage_gb{{phase="prefill",tp_rank="{n}",pp_rank="0"}} 0.25\n'
        for n in range(2)
    )
    first, second = reading(page).ranks
    assert [each.name for each in (first, second)] == ["TP0", "TP1"]
    stated = stated_regions(second)
    assert stated[Region.WEIGHTS].size_bytes == round(16.5 * GIB)
    assert stated[Region.KV_CACHE].size_bytes == round(40.25 * GIB)
    assert stated[Region.CUDA_GRAPHS].size_bytes == round(0.75 * GIB)


def test_that_a_request_that_every_rank_counts_is_one() -> None:
    page = "".join(
        f'sglang:num_running_reqs{{dp_rank="{dp}",tp_rank="{tp}"}} 4.0\n'
        for dp in range(2)
        for tp in range(4)
    )
    assert reading(page).whole["running"].value == 8


def test_that_sglangs_first_page_and_a_gateways_names_are_read(shared: Path) -> None:
    found = sample(shared, "sglang", "metrics_2024-11_first-version.prom")
    assert found.settings["model"] == "meta-llama/Llama-3.2-3B"
    assert found.settings["max_model_len"] == 131_072
    assert found.whole["kv_tokens"].value == 570_979
    other = sample(shared, "sglang", "metrics_underscore-names.prom")
    assert (other.runtime, other.settings["model"]) == (
        "sglang", "meta-llama/Llama-3.1-8B-Instruct",
    )  # fmt: skip


def test_that_llama_servers_page_is_known_and_says_that_it_tells_nothing_of_memory(
    shared: Path,
) -> None:
    found = sample(shared, "llamacpp", "server_metrics_2025-06.prom")
    assert (found.runtime, found.understood) == ("llama.cpp", 4)
    assert found.whole["tokens_read"].value == 143
    assert found.whole["tokens_written"].value == 673
    assert "nothing of memory" in said(found)


def test_that_tgis_page_is_known() -> None:
    found = reading(
        "tgi_batch_current_size 3\ntgi_queue_size 5\ntgi_batch_current_max_tokens 900\n"
    )
    assert found.runtime == "tgi"
    assert "3 requests run, 5 wait." in said(found)
    assert found.whole["kv_used_tokens"].value == 900


@pytest.mark.parametrize(
    "line",
    [
        "# HELP vllm:num_requests_running Number of requests in model execution batches.",
        "# TYPE vllm:num_requests_running gauge",
        'vllm:num_requests_running{engine="0"} NaN',
        'vllm:num_requests_running{engine="0"} ',
        'vllm:num_requests_running{engine="0',
        "vllm:unheard_of 3",
        "from sglang_router import x 3",
    ],
)
def test_that_what_is_no_sample_states_nothing(line: str) -> None:
    found = reading(line + "\n")
    assert not {"running"} & set(found.whole)


def test_that_series_without_end_are_not_kept() -> None:
    page = "".join(f'vllm:num_requests_running{{x="{n}"}} 1\n' for n in range(9_000))
    assert 0 < float(reading(page).whole["running"].value) <= 4_200
