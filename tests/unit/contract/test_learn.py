"""Learning from a log: what it states becomes this machine's figure, or one sentence why not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.budget.model import Region
from engine.contract.learn import lesson_of, lesson_of_watched
from engine.devices import catalogue
from engine.errors import LessonError
from engine.evidence import Basis
from engine.lessons import TOTAL
from engine.sizing import size
from tests.helpers import logs, sizings
from tests.helpers.logs import GIB, explained
from tests.unit.overlay.test_attribution import RUN, watched

ACTUAL = (
    "INFO 10-08 10:41:50 [gpu_worker.py:391] Free memory on device (23.21/23.64 GiB) on startup. "
    "Desired GPU memory utilization is (0.92, 21.75 GiB). Actual usage is 14.99 GiB for weight, "
    "1.30 GiB for peak activation, 0.21 GiB for non-torch memory, and 0.35 GiB for CUDAGraph "
    "memory. Replace gpu_memory_utilization config with `--kv-cache-memory=5300000000` to fit into "
    "requested memory. Current kv cache memory in use is 5701591040 bytes.\n"
)
UP = logs.VLLM_HEAD + logs.VLLM_LOADED + logs.VLLM_POOL + ACTUAL + logs.VLLM_UP
HERE = catalogue.machine(catalogue.find("RTX 4090"))


def test_that_a_start_teaches_what_it_states_and_later_plans_of_the_same_follow_it():
    run = explained(UP)
    lesson = lesson_of(run, HERE, "server.log", 1796058000.0)
    stated = lesson.ranks[0]["activations"]
    assert stated.size_bytes == round(1.30 * GIB)
    assert stated.half_bytes == round(0.005 * GIB)
    assert lesson.key.devices == (f"RTX 4090 · {HERE.slots[0].device.total_bytes}",)
    assert (lesson.key.runtime, lesson.key.runtime_version) == ("vllm", "0.33.0")
    assert lesson.source == "From the log server.log"
    assert run.plan is not None
    plan = run.plan.deployment.with_(kv_pool_bytes=None)
    later = size(run.plan.model, plan, replace(HERE, lessons=(lesson,))).budget
    estimate = later.ranks[0].regions[Region.ACTIVATIONS].estimate
    assert (estimate.basis, estimate.likely_bytes) == (Basis.LEARNED, round(1.30 * GIB))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (logs.TAKEN, "failed"),
        (UP.replace("version 0.33.0", ""), "which release"),
        (UP.replace("/23.64 GiB)", "/79.19 GiB)"), "79.2 GiB"),
        (UP.replace("meta-llama/Llama-3.1-8B-Instruct", "acme/unheard"), "Nothing to learn"),
    ],
)
def test_that_a_log_that_teaches_nothing_says_why(text: str, says: str):
    with pytest.raises(LessonError, match=says):
        lesson_of(explained(text), HERE, "server.log", 0.0)


def test_that_earlier_runs_do_not_stand_in_for_the_rule():
    run = explained(UP)
    first = lesson_of(run, HERE, "a.log", 0.0)
    second = lesson_of(run, replace(HERE, lessons=(first,)), "b.log", 1.0)
    assert second.ranks == first.ranks


def test_that_a_watched_run_teaches_the_most_that_its_processes_held():
    # 22.42 GiB from the first prompt on
    budget = sizings.sizing().budget
    lesson = lesson_of_watched(budget, watched(RUN, 70), "0.33.0", 1.0)
    total = lesson.ranks[0][TOTAL]
    assert total.size_bytes == sizings.gib(22.42)
    planned = [
        budget.ranks[0].regions[region].estimate.likely_bytes
        for region in Region
        if region not in {Region.FOREIGN, Region.HEADROOM}
    ]
    assert total.likely_bytes == sum(planned)
    assert lesson.key.runtime_version == "0.33.0"


@pytest.mark.parametrize(("seconds", "release", "says"), [(70, "", "release"), (15, "1", "prompt")])
def test_that_a_run_that_is_not_known_well_enough_teaches_nothing(seconds, release, says):
    budget = sizings.sizing().budget
    with pytest.raises(LessonError, match=says):
        lesson_of_watched(budget, watched(RUN, seconds), release, 1.0)
