"""Stated beside attributed: by pid group and device, and why they differ."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.budget.model import Region
from engine.seen.attribution import difference, held, plain
from engine.seen.model import (
    HeldBytes,
    ModelSeen,
    PoolSeen,
    Reach,
    RuntimeSeen,
    StatedBytes,
)
from engine.telemetry.snapshot import Missing, PoolKind, ProcessReading, Quality
from tests.helpers.readings import DESKTOP, GIB, card, host, moment

MIB = 2**20


def on_card(size_bytes: int, quality: Quality = Quality.EXACT) -> tuple[HeldBytes, ...]:
    return (HeldBytes("GPU-0", "card", size_bytes, quality, is_accelerator=True),)


def seen(stated_bytes: int, held_bytes: int, runtime: str = "ollama", **more) -> RuntimeSeen:
    fields = {"version": "0.32.1", "held": on_card(held_bytes)} | more
    return RuntimeSeen(runtime, runtime, stated=(StatedBytes(stated_bytes),), **fields)


def process(pid: int, used, **more) -> ProcessReading:
    return ProcessReading(pid, "python", used, more.pop("command", "python x.py"), **more)


def test_that_a_group_is_added_up_per_device():
    first = card(processes=(process(1, 3 * GIB), process(2, 2 * GIB), *DESKTOP))
    second = card(uuid="GPU-1", processes=(process(2, 5 * GIB),))
    rows = held({1, 2}, moment(first, second))
    assert [(row.uuid, row.size_bytes) for row in rows] == [("GPU-0", 5 * GIB), ("GPU-1", 5 * GIB)]
    assert replace(seen(0, 0), held=rows).held_bytes == 10 * GIB


def test_that_mapped_weights_count_where_nothing_runs_on_a_gpu():
    (row,) = held({77}, moment(host()))
    # 3 GiB of its own and 11 of the mapped GGUF.
    assert (row.size_bytes, row.is_accelerator) == (14 * GIB, False)


def test_that_the_gpu_counts_and_not_the_computers_memory_beside_it():
    gpu = card(processes=(process(77, 8 * GIB),))
    row = replace(seen(0, 0), held=held({77}, moment(gpu, host())))
    assert row.held_bytes == 8 * GIB


def test_that_a_driver_that_lists_nobody_leaves_it_unknown_and_says_why():
    gone = Missing("not reported by Windows")
    row = replace(seen(0, 0), held=held({5}, moment(card(processes=gone))))
    assert (row.held_bytes, row.quality) == (gone, Quality.NOT_REPORTED)


def test_that_the_worst_mark_of_a_group_is_its_mark():
    listed = (process(1, GIB), process(2, GIB, quality=Quality.OVER_COUNTS))
    (row,) = held({1, 2}, moment(card(processes=listed)))
    assert row.quality is Quality.OVER_COUNTS
    unknown = (process(1, GIB), process(2, Missing("no permission")))
    (row,) = held({1, 2}, moment(card(processes=unknown)))
    assert (row.size_bytes, row.quality) == (GIB, Quality.NOT_REPORTED)


@pytest.mark.parametrize(
    ("stated_gib", "held_gib", "differs"),
    [
        (2.0, 2.9, False),  # below 1 GiB
        (2.0, 3.1, True),
        (40.0, 46.0, False),  # 6 GiB, yet 13% of the larger
        (40.0, 48.0, True),  # 16.7%
        (24.0, 16.0, True),
    ],
)
def test_that_a_difference_counts_from_1_gib_and_15_percent(stated_gib, held_gib, differs):
    found = difference(seen(round(stated_gib * GIB), round(held_gib * GIB)))
    assert (found is not None) is differs


def test_that_the_reason_is_the_releases_own():
    short = difference(seen(12 * 10**9, 88 * GIB))
    assert short is not None
    assert short.reason.startswith("The engine’s figure is incomplete: with a draft model")
    early = difference(seen(22 * GIB, 16 * GIB, version="0.3.4"))
    assert early is not None
    assert early.reason.startswith("Ollama’s figure is an estimate made before the load")
    late = difference(seen(22 * GIB, 16 * GIB, version="0.32.0"))
    assert late is not None
    assert late.reason.startswith("Not all that the engine states is in the devices’ memory")
    other = difference(seen(2 * GIB, 9 * GIB, "tensorrt-llm"))
    assert other is not None
    assert other.reason.startswith("The engine’s figure is incomplete: its libraries")


def test_that_shared_memory_counted_twice_is_the_drivers_fault():
    row = seen(4 * GIB, 9 * GIB, held=on_card(9 * GIB, Quality.OVER_COUNTS))
    found = difference(row)
    assert found is not None
    assert found.reason.startswith("The driver counts memory that programs share")


def test_that_a_stated_pool_alone_is_no_whole_to_compare():
    row = replace(seen(0, 20 * GIB), stated=(StatedBytes(4 * GIB, Region.KV_CACHE),))
    assert difference(row) is None
    whole = (*row.stated, StatedBytes(GIB, Region.WEIGHTS))
    assert difference(replace(row, stated=whole)) is not None


def test_that_a_python_run_on_a_card_is_seen_and_small_ones_and_others_are_not():
    listed = (process(1, 3 * GIB), process(2, 100 * MIB), process(3, GIB), *DESKTOP)
    snapshot = moment(card(processes=listed), host(processes=(process(9, 30 * GIB),)))
    assert [p.pid for p in plain(snapshot, {3})] == [1]
    unified = card(pool=PoolKind.UNIFIED, processes=(process(9, 30 * GIB),))
    assert [p.pid for p in plain(moment(unified), ())] == [9]


def test_that_the_overlay_is_told_in_its_own_words():
    pool = PoolSeen(tokens=1000, used_share=0.25, used_tokens=250)
    row = RuntimeSeen("vllm", "vLLM", Reach.ANSWERS, model=ModelSeen("m"), pool=pool, running=3,
                      prompt_tokens=70, output_tokens=9)  # fmt: skip
    assert (row.is_loaded, row.requests_running) == (True, 3)
    assert (row.pool_share, row.live_tokens) == (0.25, 250)
    assert (row.prompt_tokens, row.generated_tokens) == (70, 9)
    loading = RuntimeSeen("vllm", "vLLM", Reach.LOADING)
    assert loading.is_loaded is False
    assert isinstance(loading.pool_share, Missing)
    empty = RuntimeSeen("ollama", "Ollama", Reach.ANSWERS, model=Missing("no model is loaded"))
    assert empty.is_loaded is False
    assert isinstance(RuntimeSeen("vllm", "vLLM", Reach.SILENT).is_loaded, Missing)
