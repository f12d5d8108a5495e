"""The scene says what will be drawn, in bytes and words, before anything is drawn."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from engine.architecture.read import read
from engine.architecture.spec import Direction, Subject
from engine.budget.model import STACK_ORDER, Region
from engine.deployment.spec import Deployment
from engine.devices import catalogue as devices
from engine.evidence import Basis, Estimate, exactly
from engine.sizing import size
from engine.source import catalogue
from engine.units import GIB, UnitSystem
from gui.kit.charts.scene import scene_for
from tests.helpers import sizings
from tests.helpers.sizings import gib


def test_that_the_stack_of_a_pool_ends_at_the_load_line() -> None:
    panel = scene_for(sizings.sizing()).panels[0]
    # 14.99 + 5.32 + 0.60 + 0.70 + 0.50 + 0.31 + 0.81 + 0.41 = 23.64
    assert panel.stack_bytes == pytest.approx(gib(23.64), abs=16)
    assert panel.over_bytes <= 16


def test_that_regions_stand_in_the_stack_order_without_gaps() -> None:
    segments = scene_for(sizings.sizing()).panels[0].segments
    order = [s.region for s in segments]
    assert order == [r for r in STACK_ORDER if r is not Region.RECURRENT_STATE]
    assert segments[0].bottom_bytes == 0
    assert all(a.top_bytes == b.bottom_bytes for a, b in itertools.pairwise(segments))


def test_that_the_unused_part_of_the_pool_is_marked() -> None:
    kv = scene_for(sizings.sizing()).panels[0].segment(Region.KV_CACHE)
    assert kv is not None
    assert kv.spare_from_bytes == kv.bottom_bytes + gib(4.0)


def test_that_the_cache_grows_to_what_is_needed_and_the_rest_lies_over_the_line() -> None:
    panel = scene_for(sizings.over_the_line()).panels[0]
    kv = panel.segment(Region.KV_CACHE)
    assert kv is not None
    assert (kv.label, kv.value) == ("KV needed", "8.00")
    # 8.00 - 5.32 = 2.68 over
    assert panel.over_bytes == pytest.approx(gib(2.68), abs=16)
    assert panel.over_texts[0] == "2.7 GiB over the load line"


def test_that_a_runtime_without_a_pool_leaves_white_below_the_line() -> None:
    panel = scene_for(sizings.unified()).panels[0]
    assert panel.stack_bytes == pytest.approx(gib(13.85), abs=16)
    assert panel.over_bytes == 0
    assert panel.reserve_text == "10.56 GiB that macOS keeps for itself and for apps"
    assert panel.load_texts[0] == "Load line: 37.44 GiB that Metal lets the GPU use"


def test_that_the_axis_reaches_past_the_total_or_past_the_stack() -> None:
    total = sizings.RTX_4090_TOTAL
    assert scene_for(sizings.sizing()).axis_max_bytes == round(total * 1.025)
    over = scene_for(sizings.over_the_line())
    assert over.axis_max_bytes == round(over.panels[0].stack_bytes * 1.03)


def test_that_the_captions_do_the_sums() -> None:
    words = [c.texts[0] for c in scene_for(sizings.sizing()).panels[0].captions]
    assert "32,768 tokens × 128 KiB = 4.00 GiB needed" in words
    assert "1.32 GiB spare in the pool" in words


def test_that_weights_of_two_bytes_a_parameter_are_shown_as_the_product() -> None:
    regions = dict(sizings.VLLM_8B)
    tensors = exactly(16_060_522_496, Basis.EXACT, "shapes", label="tensors")
    buffers = exactly(33_554_432, Basis.EXACT, "rotary", label="rotary table")
    weights = Estimate(
        16_094_076_928,
        16_094_076_928,
        16_094_076_928,
        Basis.EXACT,
        "shapes",
        parts=(tensors, buffers),
    )
    regions[Region.WEIGHTS] = (weights, 14.96, "plus buffers")
    scene = scene_for(sizings.sizing(sizings.rank_budget(regions=regions)))
    assert scene.panels[0].captions[0].texts == ("8,030,261,248 parameters × 2 bytes",)


def test_that_a_cache_that_is_no_plain_product_is_not_shown_as_one() -> None:
    made = scene_for(sizings.sizing(bytes_per_token=1000)).panels[0].captions
    assert made[1].texts[0] == "4 × 8,192 tokens need 4.00 GiB"


def test_that_requests_that_wait_for_a_slot_are_not_in_what_is_needed() -> None:
    model = read(catalogue.raw(catalogue.find("Qwen/Qwen2.5-3B")))
    plan = Deployment(runtime="llama.cpp", n_ctx=131072, n_parallel=2, concurrency=4)
    answered = size(model, plan, devices.machine(devices.find("H100 SXM 80GB"), 1))
    # 36 layers of K and V, 2 heads of 128, 2 bytes: 36 KiB a token, 4.5 GiB for both slots.
    captions = [c.texts[0] for c in scene_for(answered).panels[0].captions]
    assert "131,072 tokens × 36 KiB = 4.50 GiB needed" in captions


def test_that_the_picture_says_its_verdict_and_its_regions_to_those_who_hear_it() -> None:
    scene = scene_for(sizings.sizing())
    assert scene.name == "Fits, with 1.3 GiB to spare"
    assert "Weights 14.99" in scene.description
    assert "Load line at 23.64 GiB of 23.99 GiB" in scene.description


def test_that_all_ranks_share_one_scale_and_the_fullest_stands_out() -> None:
    scene = scene_for(sizings.many_ranks(4))
    assert [p.title for p in scene.panels] == ["Rank 0", "Rank 1", "Rank 2", "Rank 3"]
    assert scene.axis_max_bytes == round(gib(44.99) * 1.025)
    assert sum(p.is_fullest for p in scene.panels) == 1


def test_that_the_fullest_is_the_one_that_really_holds_most() -> None:
    # Where every rank's stack ends at the load line, headroom makes up the difference.
    ranks = sizings.many_ranks(4).budget.ranks
    moved = [replace(rank, rank=(rank.rank + 2) % 4) for rank in ranks]
    moved.sort(key=lambda rank: rank.rank)
    panels = scene_for(sizings.sizing(*moved)).panels
    assert [p.is_fullest for p in panels] == [False, False, True, False]
    # 16.92 + 21.31 + 0.86 + 0.82 + 1.50 + 0.35 + 0.58 of the 44.52 GiB.
    assert panels[2].summary == "42.3 of 44.5 GiB"


def test_that_one_rank_can_be_shown_alone() -> None:
    assert [p.rank for p in scene_for(sizings.many_ranks(4), rank=2).panels] == [2]


def test_that_a_bound_carries_its_sign() -> None:
    regions = dict(sizings.VLLM_8B)
    regions[Region.WEIGHTS] = (sizings.estimate(14.99, basis=Basis.BOUND), None, "")
    made = sizings.sizing(sizings.rank_budget(regions=regions))
    signs = {Direction.UPPER: "≤", Direction.LOWER: "≥", Direction.EITHER: "≈"}
    for direction, sign in signs.items():
        doubted = sizings.doubted(made, Subject.WEIGHTS, direction)
        segment = scene_for(doubted).panels[0].segment(Region.WEIGHTS)
        assert segment is not None
        is_open = direction is not Direction.UPPER
        assert (segment.value, segment.is_open) == (f"{sign} 14.99", is_open)


def test_that_a_cache_nobody_knows_is_drawn_open_and_not_as_nothing() -> None:
    panel = scene_for(sizings.unknown_cache()).panels[0]
    kv = panel.segment(Region.KV_CACHE)
    assert kv is not None
    assert (kv.value, kv.is_open) == ("unknown", True)
    # Nobody knows where the regions above would begin.
    assert [s.region for s in panel.segments] == [Region.FOREIGN, Region.WEIGHTS, Region.KV_CACHE]


def test_that_host_memory_the_plan_hardly_touches_is_words_and_not_a_panel() -> None:
    scene = scene_for(sizings.beside_host())
    assert [p.rank for p in scene.panels] == [0]
    assert scene.panels[0].title == "RTX 4090"
    assert scene.asides[0] == "Besides, 0.63 GiB of host memory"


def test_that_decimal_units_change_every_figure() -> None:
    panel = scene_for(sizings.sizing(), UnitSystem.DECIMAL).panels[0]
    weights = panel.segment(Region.WEIGHTS)
    assert weights is not None
    assert weights.value == f"{14.99 * GIB / 1e9:.2f}"
    assert panel.load_texts[0].startswith(f"Load line: {23.64 * GIB / 1e9:.2f} GB")
