"""The five steps: what the plan alone says, and how a run and a log fill them."""

from __future__ import annotations

from dataclasses import replace

from engine.budget.model import Region
from engine.evidence import Basis, exactly
from engine.overlay.checklist import Action, checklist
from engine.overlay.overlay import Follower, Overlay
from engine.overlay.state import Stated
from engine.overlay.steps import Evidence, Status
from tests.helpers import sizings
from tests.helpers.readings import server, serving
from tests.helpers.sizings import RTX_4090_TOTAL, gib

MADE = sizings.sizing()
BUDGET = MADE.budget


def ran(seconds: int, top: float = 22.83, state: Stated | None = None) -> Overlay:
    """A run that pauses at 14.99 + 0.50, holds its pool, and ``top`` with traffic."""
    follower = Follower()
    follower.follow(BUDGET)
    for second in range(seconds):
        own = 0 if second < 10 else 15.49 if second < 20 else 22.38 if second < 60 else top
        ours = (server(4211, gib(own)),) if own else ()
        busy = replace(state, generated_tokens=second) if state and second >= 60 else None
        moment = serving(second, ("GPU-0", RTX_4090_TOTAL, ours), foreign_bytes=gib(0.41))
        follower.add(moment, busy or (Stated(True, 0) if second >= 22 and state else None))
    overlay = follower.overlay(BUDGET)
    assert overlay is not None
    return overlay


def test_that_the_plan_alone_answers_as_on_the_drawn_screen():
    made = checklist(BUDGET, 0)
    assert [(s.answer.words, s.answer.status) for s in made.steps] == [
        ("Read from the model's files: 14.99 GiB", Status.KNOWN),
        ("Modelled: 0.60 GiB. 2,048 tokens a step, 256 sampled rows", Status.MODELLED),
        ("4 × 8,192 tokens: 4.00 GiB", Status.KNOWN),
        ("CUDA graphs 0.70, Runtime 0.50, Allocator slack 0.31 GiB", Status.MODELLED),
        ("0.81 GiB left; not yet checked", Status.OPEN),
    ]
    assert made.count == "2 of 5"
    assert [s.action for s in made.steps] == [
        Action.START, Action.PREFILL, Action.PLAN, Action.LOG, Action.LOAD,
    ]  # fmt: skip


def test_that_a_plan_over_the_load_line_has_nothing_left_to_check():
    weights = BUDGET.ranks[0].regions[Region.WEIGHTS]
    larger = replace(weights, estimate=exactly(gib(40), Basis.READ, "read"))
    rank = replace(BUDGET.ranks[0], regions=BUDGET.ranks[0].regions | {Region.WEIGHTS: larger})
    answer = checklist(replace(BUDGET, ranks=(rank,)), 0).steps[4].answer
    assert (answer.words, answer.status) == ("Nothing is left", Status.OPEN)


def test_that_a_loaded_run_measures_the_weights_where_the_load_paused():
    answer = checklist(BUDGET, 0, Evidence(ran(40))).steps[0].answer
    assert answer.words == "Held after loading: 14.99 GiB, planned 14.99 GiB"
    assert answer.estimate is not None
    assert answer.estimate.basis is Basis.MEASURED
    # The runtime's own 0.38 to 0.63 is what the figure may be off by.
    assert answer.estimate.low_bytes == gib(15.49) - gib(0.63)
    assert answer.estimate.high_bytes == gib(15.49) - gib(0.38)


def test_that_a_prefill_is_known_only_at_the_prompt_of_the_plan():
    run = ran(80)
    for longest, status in ((None, Status.MODELLED), (512, Status.MODELLED), (8192, Status.KNOWN)):
        answer = checklist(BUDGET, 0, Evidence(run, longest_prompt=longest)).steps[1].answer
        assert answer.status is status
        assert answer.words.startswith(
            "Highest seen 22.83 GiB, +0.41 GiB against the plan, sampled every 1 s"
        )


def test_that_the_cache_tells_the_most_that_was_in_use():
    answer = checklist(BUDGET, 0, Evidence(ran(80, state=Stated(True, 3, 0.5)))).steps[2].answer
    assert answer.words == "4 × 8,192 tokens: 4.00 GiB; 2.66 GiB in use at most so far"


def test_that_what_remains_is_kept_by_runtime_and_allocator():
    answer = checklist(BUDGET, 0, Evidence(ran(80))).steps[3].answer
    assert answer.status is Status.KNOWN
    assert answer.estimate is not None
    # 22.83 less 14.99, 5.32 and 0.60.
    assert abs(answer.estimate.likely_bytes - gib(1.92)) <= 4
    assert "1.92 GiB, planned 1.51 GiB" in answer.words


def test_that_a_log_states_what_it_states():
    stated = {0: {Region.WEIGHTS: gib(14.9889), Region.CUDA_GRAPHS: gib(0.68)}}
    steps = checklist(BUDGET, 0, Evidence(stated=stated)).steps
    assert steps[0].answer.words == "Stated by the log: 14.99 GiB"
    assert steps[0].action is None
    assert steps[3].answer.words == "With the log: 1.49 GiB, planned 1.51 GiB"


def test_that_headroom_is_known_after_ten_minutes_of_steady_load():
    some = checklist(BUDGET, 0, Evidence(ran(60 + 60 + 240, state=Stated(True, 3)))).steps[4].answer
    assert some.status is Status.OPEN
    assert some.words == "0.40 GiB left at the least, over 4 of 10 min of steady load"
    all_of_it = checklist(BUDGET, 0, Evidence(ran(60 + 60 + 620, state=Stated(True, 3)))).steps[4]
    assert all_of_it.answer.status is Status.KNOWN
    assert all_of_it.action is None


def test_that_every_rank_has_its_own_answer():
    made = sizings.many_ranks(2)
    step = checklist(made.budget, 0).steps[4]
    # 2.18 and 2.86 set aside, and what is free below the line besides.
    assert {rank: a.words for rank, a in step.per_rank.items()} == {
        0: "2.18 GiB left; not yet checked",
        1: "2.86 GiB left; not yet checked",
    }


def test_that_what_the_figures_hold_for_is_recorded():
    assert dict(checklist(BUDGET, 0, Evidence(kernel="FLASHINFER")).recorded) == {
        "Model revision": BUDGET.model.revision,
        "Runtime": "vLLM 0.33.0",
        "Attention kernel": "FLASHINFER",
        "Cache precision": "bf16",
    }
