"""What is held, whose it is, and what the plan doesn't explain; figures as in the drawn screens."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from engine.budget.model import Region
from engine.overlay import words
from engine.overlay.overlay import Follower, Overlay, RankOverlay
from engine.overlay.regions import KnownFrom, measured_regions
from engine.overlay.seen import Seen
from engine.overlay.state import Stated
from engine.telemetry.lane import silent
from engine.telemetry.snapshot import Missing, PoolKind, ProcessReading, TelemetrySnapshot
from tests.helpers import sizings
from tests.helpers.readings import card, host, server, serving
from tests.helpers.sizings import RTX_4090_TOTAL, gib

if TYPE_CHECKING:
    from engine.sizing import Sizing

FOREIGN = gib(0.41)


def watched(
    levels: dict[int, float],
    until: int,
    made: Sizing | None = None,
    state: Stated | None = None,
    foreign: dict[int, float] | None = None,
) -> Overlay:
    """The overlay after ``until`` seconds of a run that holds ``levels`` (GiB) from a second on."""
    made = made or sizings.sizing()
    follower = Follower()
    follower.follow(made.budget)
    for second in range(until):
        own = gib(levels[max(at for at in levels if at <= second)])
        others = FOREIGN
        if foreign:
            others = gib(foreign[max(at for at in foreign if at <= second)])
        ours = (server(4211, own),) if own else ()
        card_now = ("GPU-0", RTX_4090_TOTAL, ours)
        follower.add(serving(second, card_now, foreign_bytes=others), state)
    overlay = follower.overlay(made.budget)
    assert overlay is not None
    return overlay


def only(overlay: Overlay) -> RankOverlay:
    (rank,) = overlay.ranks
    return rank


RUN = {0: 0, 10: 14.99, 20: 22.38, 60: 22.42}
"""GiB by second: weights, pool, and all of the plan with the first prompt."""


def test_that_a_run_as_planned_has_nothing_to_name():
    rank = only(watched(RUN, 80))
    assert rank.run.foreign_bytes == FOREIGN
    assert rank.residue is not None
    assert rank.residue.is_within
    assert rank.residue.suspects == ()
    assert words.summary(watched(RUN, 80)) == (
        "Running as planned: 22.4 GiB held, within 0.1 GiB of the plan."
    )


@pytest.mark.parametrize("gone", [True, False], ids=["silent", "not named"])
def test_that_a_run_on_a_silent_device_is_not_said_to_go_on(gone):
    follower, made = Follower(), sizings.sizing()
    follower.follow(made.budget)
    for second in range(83):
        own = gib(RUN[max(at for at in RUN if at <= second)])
        ours = ("GPU-0", RTX_4090_TOTAL, (server(4211, own),) if own else ())
        sample = serving(second, ours, foreign_bytes=FOREIGN)
        if second >= 80:
            left = (silent(sample.devices[0], "the driver does not answer"),) if gone else ()
            sample = replace(sample, devices=(*left, host()))
        follower.add(sample)
        overlay = follower.overlay(made.budget)
        said = words.summary(overlay) if overlay else ""
        if second in {79, 80}:
            assert said == "Running as planned: 22.4 GiB held, within 0.1 GiB of the plan."
    assert said == "Last seen with 22.4 GiB held; its device tells nothing now."


def test_that_more_within_the_range_is_no_residue():
    # 22.42 likely. Outside the pool's share runtime and slack go up to 0.63 and 0.78, a step's own
    # work to 0.75: 23.17 at the most.
    rank = only(watched({**RUN, 60: 22.83}, 80))
    assert rank.expected is not None
    assert rank.expected.high_bytes == pytest.approx(gib(23.17), abs=4)
    assert rank.residue is not None
    assert not rank.residue.is_unexplained
    assert rank.residue.size_bytes == pytest.approx(gib(0.41), abs=4)


def test_that_what_comes_with_a_prefill_is_named_runtime_first():
    overlay = watched({**RUN, 60: 23.22}, 80)
    rank = only(overlay)
    assert rank.residue is not None
    assert rank.residue.since is Seen.PREFILL
    assert [s.region for s in rank.residue.suspects] == [
        Region.RUNTIME, Region.ACTIVATIONS, Region.ALLOCATOR,
    ]  # fmt: skip
    assert words.residue_name(rank.residue) == "0.8 GiB more than planned: runtime"
    said = (
        "0.8 GiB more than planned: runtime, probably kernels and workspaces that came with the "
        "first prefill."
    )
    assert words.summary(overlay) == said
    assert words.residue_sentence(rank.residue) == f"{said} Else: activations, allocator slack."


def test_that_an_exact_figure_is_suspected_last():
    made = sizings.sizing()
    (budget,) = made.budget.ranks
    rank = only(watched({0: 0, 10: 24.0}, 40, made))
    assert rank.residue is not None
    assert rank.residue.since is Seen.LOAD
    assert budget.regions[Region.WEIGHTS].estimate.basis.value == "read"
    assert [s.region for s in rank.residue.suspects][-2:] == [Region.WEIGHTS, Region.KV_CACHE]


def test_that_less_than_planned_is_the_cache_first():
    rank = only(watched({0: 0, 10: 18.0}, 120))
    assert rank.residue is not None
    assert rank.residue.size_bytes == gib(18.0) - sum(
        map(gib, (14.99, 5.32, 0.60, 0.70, 0.50, 0.31))
    )
    assert words.residue_name(rank.residue).startswith("4.4 GiB less than planned")
    assert {s.region for s in rank.residue.suspects} >= {Region.KV_CACHE, Region.ACTIVATIONS}


def test_that_others_who_grow_meanwhile_are_others():
    overlay = watched(RUN, 80, foreign={0: 0.41, 70: 2.03})
    rank = only(overlay)
    assert rank.foreign_change_bytes == gib(2.03) - gib(0.41)
    assert "Others hold 1.6 GiB more than before it was loaded." in words.summary(overlay)
    assert rank.residue is not None
    assert rank.residue.is_within


def test_that_the_stated_share_of_the_pool_is_what_is_live():
    overlay = watched(RUN, 80, state=Stated(True, 3, 0.52))
    assert only(overlay).kv_live_bytes == round(0.52 * gib(5.32))
    assert "3 requests use 2.8 of the 5.3 GiB KV cache." in words.summary(overlay)


def test_that_live_tokens_are_worth_their_width():
    overlay = watched(RUN, 80, state=Stated(True, 1, live_tokens=8192))
    assert only(overlay).kv_live_bytes == 8192 * 131_072


def test_that_a_silent_runtime_leaves_the_live_cache_unknown():
    assert isinstance(only(watched(RUN, 80)).kv_live_bytes, Missing)


def test_that_each_phase_is_held_against_its_own_prediction():
    overlay = watched({**RUN, 60: 22.83}, 80)
    errors = {e.phase: e for e in only(overlay).errors}
    assert errors[Seen.LOAD].peak_bytes == gib(22.38)
    prefill = errors[Seen.PREFILL]
    assert prefill.error_bytes == pytest.approx(gib(0.41), abs=4)
    assert prefill.error_share == pytest.approx(0.41 / 22.42, abs=1e-6)
    assert words.peak_sentence(prefill, 1.0) == (
        "Prefill: highest seen 22.83 GiB, predicted 22.42 GiB (+0.41 GiB, +1.8%), sampled every 1 s"
    )


def test_that_measured_regions_add_up_to_what_is_held():
    made = sizings.sizing()
    (budget,) = made.budget.ranks
    rank = only(watched({**RUN, 60: 23.22}, 80, made))
    rows = {r.region: r for r in measured_regions(budget, rank, {Region.ACTIVATIONS: gib(0.58)})}
    inside = [r for region, r in rows.items() if region not in (Region.FOREIGN, Region.HEADROOM)]
    assert sum(r.measured_bytes for r in inside if isinstance(r.measured_bytes, int)) == gib(23.22)
    assert rows[Region.ACTIVATIONS].known_from is KnownFrom.LOG
    assert rows[Region.ACTIVATIONS].difference_bytes == gib(0.58) - gib(0.60)
    assert rows[Region.RUNTIME].known_from is KnownFrom.REMAINS
    assert rows[Region.RUNTIME].difference_bytes == pytest.approx(gib(0.80 + 0.02), abs=8)
    assert rows[Region.WEIGHTS].known_from is KnownFrom.PLAN
    assert rows[Region.FOREIGN].measured_bytes == FOREIGN
    assert rows[Region.HEADROOM].measured_bytes == gib(23.64) - gib(23.22) - FOREIGN


def four_cards(processes: dict[str, ProcessReading], second: int) -> TelemetrySnapshot:
    found = [
        (f"GPU-{n}", gib(44.99), (p,) if (p := processes.get(f"GPU-{n}")) else ()) for n in range(6)
    ]
    return serving(second, *found, foreign_bytes=gib(0.02))


def test_that_ranks_are_where_their_titles_say_and_uneven_shards_show():
    made = sizings.many_ranks(4)
    follower = Follower()
    follower.follow(made.budget)
    held = {0: 41.56, 1: 41.44, 2: 43.90, 3: 41.44}
    for second in range(60):
        ours = {
            f"GPU-{5 - rank}": server(
                100 + rank, gib(size) if second > 5 else 0, name=f"VLLM::Worker_TP{rank}"
            )
            for rank, size in held.items()
        }
        follower.add(four_cards(ours, second))
    overlay = follower.overlay(made.budget)
    assert overlay is not None
    assert {r.rank: r.uuid for r in overlay.ranks} == {
        0: "GPU-5",
        1: "GPU-4",
        2: "GPU-3",
        3: "GPU-2",
    }
    assert {r.rank: r.run.own_bytes for r in overlay.ranks} == {n: gib(s) for n, s in held.items()}
    worst = overlay.worst
    assert worst is not None
    assert worst.rank == 2
    assert words.summary(overlay).startswith("Rank 2: 2.3 GiB more than planned")


def test_that_ranks_without_titles_take_the_devices_that_hold_them_in_the_order_of_the_bus():
    made = sizings.many_ranks(2)
    follower = Follower()
    follower.follow(made.budget)
    for second in range(30):
        ours = {f"GPU-{n}": server(n, gib(41.4)) for n in (2, 4)}
        follower.add(four_cards(ours, second))
    overlay = follower.overlay(made.budget)
    assert overlay is not None
    assert {r.rank: r.uuid for r in overlay.ranks} == {0: "GPU-2", 1: "GPU-4"}
    assert overlay.placed_by.startswith("in the order of the bus")


def cpu_plan() -> Sizing:
    """llama.cpp on a CPU: 11 GiB of mapped weights, 3 GiB of cache and buffers."""
    made = sizings.unified()
    (rank,) = made.budget.ranks
    ram = sizings.card("64 GB RAM", gib(64), 62.0, sizings.DeviceKind.HOST, sizings.Vendor.CPU)
    regions = {
        Region.WEIGHTS: sizings.estimate(11.0),
        Region.KV_CACHE: sizings.estimate(2.5),
        Region.ACTIVATIONS: sizings.estimate(0.4, 0.3, 0.5),
        Region.RUNTIME: sizings.estimate(0.1, 0.05, 0.2),
    }
    filled = {
        r: replace(b, estimate=regions.get(r, sizings.estimate(0))) for r, b in rank.regions.items()
    }
    moved = replace(rank, slot=replace(rank.slot, device=ram, uuid="host"), regions=filled)
    return sizings.sizing(moved, deployment=made.budget.deployment)


def on_the_host(must_stay: float, mapped: float) -> RankOverlay:
    made = cpu_plan()
    follower = Follower()
    follower.follow(made.budget)
    for second in range(30):
        ours = ProcessReading(
            77, "llama-server", gib(must_stay), "llama-server -m a.gguf", gib(mapped)
        )
        held = (ours,) if second > 5 else ()
        used = gib(5) + (gib(must_stay) + gib(mapped) if held else 0)
        follower.add(TelemetrySnapshot(second, second, (host(processes=held, used_bytes=used),)))
    overlay = follower.overlay(made.budget)
    assert overlay is not None
    return only(overlay)


def test_that_mapped_files_are_told_from_memory_that_must_stay():
    rank = on_the_host(must_stay=2.7, mapped=11.0)
    assert not isinstance(rank.held, Missing)
    assert (rank.held.must_stay_bytes, rank.held.file_bytes) == (gib(2.7), gib(11))
    assert rank.run.foreign_bytes == gib(5)
    assert rank.residue is not None
    assert rank.residue.is_within


def test_that_weights_which_lie_mapped_and_repacked_are_named_as_such():
    rank = on_the_host(must_stay=12.5, mapped=11.0)
    assert rank.residue is not None
    assert rank.residue.suspects[0].region is Region.WEIGHTS
    assert "mapped" in rank.residue.suspects[0].why


def test_that_a_card_which_lists_no_process_is_measured_by_its_rise():
    made = sizings.sizing()
    follower = Follower()
    follower.follow(made.budget)
    for second in range(40):
        used = FOREIGN + (gib(23.6) if second >= 10 else 0)
        hidden = card(processes=Missing("WDDM"), used_bytes=used)
        follower.add(TelemetrySnapshot(second, second, (hidden,)))
    overlay = follower.overlay(made.budget)
    assert overlay is not None
    rank = only(overlay)
    assert rank.run.is_derived
    assert rank.run.own_bytes == gib(23.6)
    assert rank.residue is not None
    assert rank.residue.suspects[0].region is Region.FOREIGN


def test_that_an_empty_list_on_a_card_in_use_is_no_idle_card():
    hidden = card(processes=(), used_bytes=gib(20))
    assert hidden.pool is PoolKind.VRAM
    follower = Follower()
    made = sizings.sizing()
    follower.follow(made.budget)
    follower.add(TelemetrySnapshot(0, 0, (hidden,)))
    overlay = follower.overlay(made.budget)
    assert overlay is not None
    assert isinstance(only(overlay).held, Missing)


def test_that_another_context_keeps_what_was_seen_and_another_model_does_not():
    made = sizings.sizing()
    follower = Follower()
    follower.follow(made.budget)
    for second in range(20):
        follower.add(serving(second, ("GPU-0", RTX_4090_TOTAL, (server(1, gib(22.4)),))))
    longer = replace(made.budget, deployment=made.budget.deployment.with_(max_model_len=4096))
    follower.follow(longer)
    kept = follower.overlay(longer)
    assert kept is not None
    assert only(kept).run.is_running
    other = replace(made.budget, deployment=made.budget.deployment.with_(runtime="sglang"))
    follower.follow(other)
    assert follower.overlay(other) is None
