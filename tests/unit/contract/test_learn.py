"""Learning from a log: what it states becomes this machine's figure, or one sentence why not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.budget.model import Region
from engine.contract.learn import lesson_of, lesson_of_watched
from engine.devices import catalogue
from engine.devices.device import Device, DeviceKind, Machine, Slot, Vendor
from engine.errors import LessonError
from engine.evidence import Basis, exactly
from engine.lessons import TOTAL
from engine.sizing import size
from tests.helpers import logs, sizings
from tests.helpers.logs import GIB, MIB, explained
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


ON_CPU = """\
0.00.001.713 I srv          init: build_info: b6123-79c1160b
0.00.001.724 I cmn  common_param:   - CPU     : AMD EPYC (65536 MiB, 65536 MiB free)
0.00.100.000 I llama_model_loader: loaded meta data with 29 key-value pairs and 292 tensors from \
/models/Meta-Llama-3.1-8B-Instruct-Q4_K_M.gguf (version GGUF V3 (latest))
0.00.100.100 I print_info: file type   = Q4_K - Medium
0.00.141.321 I load_tensors:   CPU_Mapped model buffer size =  4685.30 MiB
0.00.141.330 I load_tensors:   CPU_REPACK model buffer size =  3204.00 MiB
0.00.172.971 I llama_context: n_seq_max             = 1
0.00.172.984 I llama_context: n_ctx                 = 8192
0.00.173.011 I llama_context: n_batch               = 2048
0.00.173.012 I llama_context: n_ubatch              = 512
0.00.173.353 I llama_kv_cache:        CPU KV buffer size =  1024.00 MiB
0.00.278.834 I sched_reserve:        CPU compute buffer size =   558.50 MiB
0.01.234.700 I srv          init: listening on http://127.0.0.1:8080
"""
"""A llama-server of 2026 without a GPU, as it logs with -lv 4."""


def cpu_alone() -> Machine:
    nothing = exactly(0, Basis.SETTING, "a test")
    capacity = exactly(64 * GIB, Basis.SETTING, "a test")
    device = Device("64 GiB RAM", Vendor.CPU, DeviceKind.HOST, "", 64 * GIB, capacity)
    host = Slot(device, nothing, "host")
    return Machine("here", (host,), host, is_here=True)


def test_that_the_kinds_of_the_computers_own_memory_are_learned_together():
    run = explained(ON_CPU)
    assert (run.cause, run.reading.settings["n_ctx"]) == (None, 8192)
    assert [rank.name for rank in run.reading.ranks] == ["CPU", "CPU_REPACK"]
    lesson = lesson_of(run, cpu_alone(), "server.log", 0.0)
    # Mapped from the file, and packed anew beside it.
    assert lesson.ranks[0]["weights"].size_bytes == round(4685.30 * MIB) + 3204 * MIB
    assert lesson.ranks[0]["kv_cache"].size_bytes == GIB


def test_that_a_plan_without_a_gpu_is_the_same_whether_or_not_it_says_so():
    run = explained(ON_CPU)
    lesson = lesson_of(run, cpu_alone(), "server.log", 0.0)
    assert run.plan is not None
    assert run.plan.deployment.n_gpu_layers == 0
    here = replace(cpu_alone(), lessons=(lesson, replace(lesson, id="again")))
    later = size(run.plan.model, run.plan.deployment.with_(n_gpu_layers=None), here).budget
    weights = later.ranks[0].regions[Region.WEIGHTS].estimate
    assert (weights.basis, weights.source.split(";")[0]) == (
        Basis.LEARNED, "2 runs of this plan on this machine",
    )  # fmt: skip


def test_that_a_run_that_is_slow_but_goes_on_is_learned_from():
    run = explained(ON_CPU + "load_tensors: offloaded 0/33 layers to GPU\n")
    assert run.cause is not None
    assert run.cause.is_soft
    assert lesson_of(run, cpu_alone(), "server.log", 0.0).ranks
