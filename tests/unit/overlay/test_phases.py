"""Phases out of curves whose corners are known: what is recognised, when, and with which peak."""

from __future__ import annotations

import pytest

from engine.overlay.seen import RAN_ALREADY, TOO_EARLY, Run, Seen
from engine.overlay.state import Stated
from engine.overlay.tracker import Tracker, recognise
from tests.helpers.curves import FOREIGN, GIB, MIB, Corner, moments

# vLLM as drawn: 14.99 of weights, a pause to profile, the pool, 0.45 with the first prompt.
SERVER: list[Corner] = [
    (0, 0), (20, 0), (60, 14.99), (66, 14.99), (68, 22.38), (100, 22.38), (101, 22.83),
    (160, 22.83), (160.01, 0), (180, 0),
]  # fmt: skip
READY = round(22.3 * GIB)


def phases(run: Run) -> list[Seen]:
    """Each phase once, in order, without repetition next to each other."""
    found: list[Seen] = []
    for span in run.spans:
        if not found or found[-1] is not span.phase:
            found.append(span.phase)
    return found


def begins(run: Run, phase: Seen) -> float:
    return next(s.start_s for s in run.spans if s.phase is phase) - 1000


def working(time_s: float) -> Stated:
    """Two requests from 100 to 150 s: prompts are read for 2 s at the start and 1 s at 120."""
    busy = 100 <= time_s < 150
    prompt = 0 if time_s < 100 else 4096 if time_s < 120 else 8192
    if 100 <= time_s < 102:
        prompt = round(2048 * (time_s - 100 + 1))
    generated = max(0, round((min(time_s, 150) - 102) * 50)) if time_s >= 102 else 0
    loaded = 66 <= time_s < 160
    return Stated(
        loaded,
        (2 if busy else 0) if loaded else None,
        0.52 if busy else 0.0,
        9000,
        prompt,
        generated,
    )


@pytest.mark.parametrize("every_s", [0.1, 0.5, 1.0, 2.0, 5.0])
def test_that_a_curve_alone_shows_load_first_prefill_rest_and_end_at_any_rate(every_s: float):
    run = recognise(moments(SERVER, every_s, noise_bytes=3 * MIB), READY)
    seen = phases(run)
    assert seen[:3] == [Seen.BEFORE, Seen.LOAD, Seen.IDLE]
    assert Seen.PREFILL in seen
    assert seen[-1] is Seen.AFTER
    assert begins(run, Seen.LOAD) == pytest.approx(20, abs=every_s + 0.2)
    assert begins(run, Seen.IDLE) == pytest.approx(68, abs=every_s + 0.2)
    assert begins(run, Seen.PREFILL) == pytest.approx(100, abs=every_s + 0.2)
    assert begins(run, Seen.AFTER) == pytest.approx(160, abs=every_s + 0.2)
    assert run.peaks[Seen.LOAD].own_bytes == pytest.approx(22.38 * GIB, abs=4 * MIB)
    assert run.peaks[Seen.PREFILL].own_bytes == pytest.approx(22.83 * GIB, abs=4 * MIB)
    assert run.foreign_bytes == FOREIGN
    assert run.every_s == pytest.approx(every_s)


def test_that_the_pause_after_the_weights_is_kept_as_their_size():
    run = recognise(moments(SERVER), READY)
    assert round(14.99 * GIB) in run.shelves_bytes
    assert run.ready_bytes == round(22.38 * GIB)


def test_that_a_pause_far_below_the_plan_is_no_end_of_the_load():
    seen = phases(
        recognise(moments([(0, 0), (5, 0), (30, 15), (60, 15), (61, 22.4), (80, 22.4)]), READY)
    )
    assert seen == [Seen.BEFORE, Seen.LOAD, Seen.IDLE]


def test_that_a_model_smaller_than_planned_is_loaded_at_last():
    run = recognise(moments([(0, 0), (5, 0), (20, 8), (120, 8)]), READY)
    assert run.phase is Seen.IDLE
    assert begins(run, Seen.IDLE) == pytest.approx(20, abs=1)


def test_that_counters_tell_prompts_from_answers_and_answers_from_rest():
    run = recognise(moments(SERVER, 0.5, state=working), READY)
    assert phases(run) == [
        Seen.BEFORE, Seen.LOAD, Seen.IDLE, Seen.PREFILL, Seen.DECODE, Seen.PREFILL, Seen.DECODE,
        Seen.IDLE, Seen.AFTER,
    ]  # fmt: skip
    assert begins(run, Seen.IDLE) == pytest.approx(66, abs=0.5)
    assert [t - 1000 for t in run.prefills_s] == [99.5, 119.5]
    assert run.most_running == 2
    assert run.most_pool_share == 0.52


def test_that_a_minute_of_requests_is_sustained_and_a_short_break_does_not_end_it():
    curve: list[Corner] = [(0, 0), (5, 0), (10, 20), (200, 20)]

    def state(time_s: float) -> Stated:
        running = 3 if 30 <= time_s < 150 and not 60 <= time_s < 64 else 0
        return Stated(
            time_s >= 10, running, None, None, None, max(0, round(time_s * 40)) if running else None
        )

    run = recognise(moments(curve, state=state))
    assert begins(run, Seen.SUSTAINED) == pytest.approx(29 + 60, abs=1)
    assert run.seconds[Seen.SUSTAINED] == pytest.approx(60, abs=6)
    assert run.phase is Seen.IDLE


def test_that_a_cache_which_grows_token_by_token_is_decoding():
    # MLX and Transformers: 3 MiB a second, no step.
    grows: list[Corner] = [(0, 0), (5, 0), (10, 8), (20, 8), (60, 8 + 0.117), (80, 8.117)]
    run = recognise(moments(grows))
    assert phases(run) == [Seen.BEFORE, Seen.LOAD, Seen.IDLE, Seen.DECODE, Seen.IDLE]
    assert begins(run, Seen.DECODE) == pytest.approx(20, abs=10)


def test_that_missing_samples_leave_a_gap_and_change_no_phase():
    run = recognise(moments(SERVER, skip=lambda t: 75 < t < 95), READY)
    assert phases(run)[:4] == [Seen.BEFORE, Seen.LOAD, Seen.IDLE, Seen.PREFILL]
    edges = [
        (s.end_s - 1000, n.start_s - 1000) for s, n in zip(run.spans, run.spans[1:], strict=False)
    ]
    assert (75, 95) in edges


def test_that_one_sample_without_the_process_is_no_end():
    series = list(moments(SERVER))
    at = next(i for i, m in enumerate(series) if m.time_s == 1120)
    series[at] = type(series[at])(series[at].time_s, series[at].used_bytes, 0)
    assert phases(recognise(series, READY)).count(Seen.AFTER) == 1


def test_that_what_was_freed_is_not_judged_before_five_seconds():
    tracker, early = Tracker(READY), None
    for moment in moments(SERVER):
        tracker.add(moment)
        if moment.time_s == 1163:
            early = tracker.run
    assert early is not None
    assert early.left_bytes is TOO_EARLY
    assert early.phase is not Seen.AFTER
    assert tracker.run.left_bytes == 0


def test_that_a_second_run_begins_anew():
    again = [*SERVER, *((t + 180, g) for t, g in SERVER[1:])]
    run = recognise(moments(again), READY)
    assert phases(run).count(Seen.LOAD) == 2
    assert run.foreign_bytes == FOREIGN


def test_that_a_run_which_was_there_first_has_no_before_and_no_load():
    run = recognise(moments([(0, 22.4), (30, 22.4)]), READY)
    assert run.foreign_bytes is RAN_ALREADY
    assert Seen.LOAD not in run.peaks
    assert phases(run) == [Seen.IDLE]


def test_that_without_a_process_list_the_rise_above_what_was_there_is_the_run():
    run = recognise(moments(SERVER, is_told=False, noise_bytes=3 * MIB), READY)
    assert run.is_derived
    assert Seen.LOAD in phases(run)
    assert run.peaks[Seen.PREFILL].own_bytes == pytest.approx(22.83 * GIB, abs=8 * MIB)


def test_that_samples_of_the_past_and_empty_ones_change_nothing():
    series = list(moments(SERVER))
    tracker = Tracker(READY)
    for moment in series:
        tracker.add(moment)
        tracker.add(type(moment)(moment.time_s - 50, 1, 1))
        tracker.add(type(moment)(moment.time_s + 0.2, None, None))
    assert tracker.run == recognise(series, READY)


def test_that_a_runtime_that_is_asked_every_five_seconds_shows_prompt_and_answer_in_one():
    kept: dict[int, Stated] = {}

    def seldom(time_s: float) -> Stated:
        """``working``, but one answer, one object, for five seconds."""
        asked = int(time_s // 5)
        return kept.setdefault(asked, working(asked * 5))

    run = recognise(moments(SERVER, state=seldom), READY)
    # At 100 s only a prompt was read; the look at 120 s tells of a prompt and of answers.
    assert phases(run)[2:6] == [Seen.IDLE, Seen.PREFILL, Seen.DECODE, Seen.IDLE]
    assert run.peaks[Seen.PREFILL].own_bytes == round(22.83 * GIB)
    assert len(run.prefills_s) == 2


def test_that_what_others_take_after_the_end_did_not_stay_behind():
    series = list(moments(SERVER))
    later = [
        type(m)(m.time_s, FOREIGN + (GIB if m.time_s > 1172 else 0), 0) if m.time_s > 1160 else m
        for m in series
    ]
    assert recognise(later, READY).left_bytes == 0


def resting(cores: float | None) -> tuple[list[str], set[Seen]]:
    """What is said of a loaded pool that holds still for a minute while so much is worked."""
    curve: list[Corner] = [(0, 0), (5, 0), (10, 22.4), (80, 22.4)]

    def state(time_s: float) -> Stated:
        return Stated(cpu_s=None if cores is None else 7.0 + cores * time_s)

    run = recognise(moments(curve, state=state), READY)
    later = [span for span in run.spans if span.end_s > 1030]
    return [span.label for span in later], {span.phase for span in later}


def test_that_a_pool_that_holds_still_is_not_called_idle_where_nobody_says_so():
    assert resting(None) == (["Decode or idle"], {Seen.IDLE})


def test_that_processor_time_tells_a_silent_run_at_work_from_one_at_rest():
    assert resting(0.01) == (["Idle"], {Seen.IDLE})
    labels, _ = resting(1.0)
    assert labels in (["Decode"], ["Decode", "Sustained"])


def test_that_fewer_processes_than_before_tell_of_no_rest():
    curve: list[Corner] = [(0, 0), (5, 0), (10, 22.4), (60, 22.4)]
    run = recognise(moments(curve, state=lambda t: Stated(cpu_s=100.0 - t)), READY)
    assert run.spans[-1].label == "Decode or idle"
