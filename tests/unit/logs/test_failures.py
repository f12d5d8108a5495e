"""Failures: which region, how much, and what would have helped; by hand from the texts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from engine.budget.model import Region
from engine.fit.verdict import Fit
from engine.logs import words
from engine.logs.diagnosis import _BY_CODE, Kind, diagnose
from engine.logs.patterns import patterns
from engine.logs.reading import Phase
from engine.logs.why import _WHY, happened
from engine.sizing import size
from engine.units import UnitSystem
from tests.helpers import logs
from tests.helpers.logs import GIB, MIB, explained, reading, sample

if TYPE_CHECKING:
    from pathlib import Path

    from engine.logs.diagnosis import Cause


def cause(text: str) -> Cause:
    found = diagnose(reading(text))
    assert found is not None
    return found


def headline(text: str) -> str:
    found = reading(text)
    return words.headline(diagnose(found), found, UnitSystem.BINARY)


@dataclass(frozen=True)
class Case:
    text: str
    kind: Kind
    region: Region | None
    short_bytes: int | None
    headline: str


CASES = {
    # 224.00 − 14.44 MiB.
    "load": Case(
        logs.LOAD,
        Kind.LOAD,
        Region.WEIGHTS,
        round(209.56 * MIB),
        "This run ran out: 0.2 GiB short while loading the weights",
    ),
    # 896.00 − 14.44 MiB.
    "prefill": Case(
        logs.PREFILL,
        Kind.PREFILL,
        Region.ACTIVATIONS,
        round(881.56 * MIB),
        "This run ran out: 0.9 GiB short in the working memory of a step",
    ),
    "prefill of a server": Case(
        logs.SGLANG_PREFILL,
        Kind.PREFILL,
        Region.ACTIVATIONS,
        round(1.2 * GIB) - 310 * MIB,
        "This run ran out: 0.9 GiB short in the working memory of a step",
    ),
    "concurrency": Case(
        logs.CONCURRENCY,
        Kind.CONCURRENCY,
        Region.KV_CACHE,
        None,
        "This run ran out in the KV cache",
    ),
    "fragmentation": Case(
        logs.FRAGMENTATION,
        Kind.FRAGMENTATION,
        Region.ALLOCATOR,
        None,
        "This run ran out, though memory was free",
    ),
    # 32.00 − 14.44 MiB, in MiB since it would round to 0.0 GiB.
    "graphs": Case(
        logs.GRAPHS,
        Kind.GRAPHS,
        Region.CUDA_GRAPHS,
        round(17.56 * MIB),
        "This run ran out: 18 MiB short while capturing graphs",
    ),
    "rank": Case(
        logs.RANK,
        Kind.RANK,
        Region.ACTIVATIONS,
        round(625.56 * MIB),
        "This run ran out on TP1 first, which holds more than TP0",
    ),
    # 3.6 − 3.22 GiB.
    "refused": Case(
        logs.REFUSED,
        Kind.REFUSED,
        Region.FOREIGN,
        round(0.38 * GIB),
        "vLLM refused to start: 0.4 GiB less was free than it asks for",
    ),
    # 16.00 − 5.31 GiB.
    "too long": Case(
        logs.TOO_LONG,
        Kind.REFUSED,
        Region.KV_CACHE,
        round(10.69 * GIB),
        "vLLM refused to start: 10.7 GiB of KV cache short",
    ),
    "spilled": Case(
        logs.SPILLED,
        Kind.SPILLED,
        Region.WEIGHTS,
        None,
        "This run is partly in system memory",
    ),
    "killed": Case(
        logs.KILLED,
        Kind.KILLED,
        None,
        None,
        "This run was killed: the computer’s memory ran out",
    ),
    "taken": Case(
        logs.TAKEN,
        Kind.TAKEN,
        Region.FOREIGN,
        round(17.56 * MIB),
        "This run ran out: 18 MiB short while capturing graphs",
    ),
    "llama.cpp's cache": Case(
        logs.LLAMA_KV,
        Kind.CONCURRENCY,
        Region.KV_CACHE,
        16 * GIB,
        "This run ran out: 16.0 GiB short in the KV cache",
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_that_each_kind_of_failure_is_told_from_the_others(case: Case) -> None:
    found = cause(case.text)
    assert (found.kind, found.region) == (case.kind, case.region)
    if case.short_bytes is None:
        assert found.short_bytes is None
    else:
        assert found.short_bytes is not None
        assert abs(found.short_bytes - case.short_bytes) <= 4
    assert headline(case.text) == case.headline


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_that_each_failure_is_explained_in_whole_sentences(case: Case) -> None:
    found = reading(case.text)
    said = happened(diagnose(found), found, UnitSystem.BINARY)
    assert said
    assert all(sentence.endswith(".") and "{" not in sentence for sentence in said)


def test_that_every_signature_of_the_table_has_words_and_a_kind() -> None:
    codes = {pattern.fails for pattern in patterns() if pattern.fails}
    by_region = {"torch", "llama_alloc", "working_set", "device_alloc"}
    assert codes - by_region <= set(_BY_CODE)
    assert codes - by_region <= set(_WHY)


def test_that_uneven_shards_are_told_with_both_figures() -> None:
    found = reading(logs.RANK)
    said = happened(diagnose(found), found, UnitSystem.BINARY)
    expected = "Weights: 10.80 GiB on TP1, 10.30 GiB on TP0."
    assert said == (f"The shards are uneven, and the fullest decides. {expected}",)


def test_that_ranks_that_are_alike_are_not_blamed_for_it() -> None:
    assert cause(logs.RANK.replace("10.80", "10.31")).kind is Kind.PREFILL


def test_that_nothing_is_promised_of_a_card_of_unknown_size() -> None:
    labels = [one.label for one in explained(logs.TOO_LONG).remedies]
    assert not any("llama.cpp" in label for label in labels)
    assert explained(logs.CONCURRENCY).remedies == ()


def test_that_all_parts_of_the_device_add_up_at_the_failure() -> None:
    found = cause(logs.TAKEN)
    parts = dict(found.balance)
    # 23.64 − 21.59 − 0.0141 GiB.
    assert abs(parts["others"] - round(2.0359 * GIB)) < MIB
    assert parts["mine"] + parts["others"] + parts["free"] == parts["total"]
    expected = "At the failure: this process 21.59 + others 2.04 + free 0.01 = 23.64 GiB"
    assert words.balance(found, UnitSystem.BINARY) == expected


def test_that_others_that_were_there_before_took_nothing() -> None:
    start = (
        "(EngineCore pid=1) INFO Free memory on device (21.60/23.64 GiB) on startup. Desired GPU "
        "memory utilization is (0.9, 21.28 GiB). Actual usage is 14.99 GiB for weight, 0.60 GiB "
        "for peak activation, 0.10 GiB for non-torch memory, and 0.40 GiB for CUDAGraph memory.\n"
    )
    text = logs.TAKEN.replace("Process 3120 has 1.62 GiB memory in use. ", "")
    assert cause(text).kind is Kind.TAKEN
    assert cause(text.replace(logs.VLLM_POOL, logs.VLLM_POOL + start)).kind is Kind.GRAPHS


def test_that_the_innermost_doing_is_blamed_though_capturing_runs_the_model() -> None:
    assert cause(logs.GRAPHS).phase is Phase.CAPTURE


def test_that_a_figure_that_cannot_be_is_no_figure(shared: Path) -> None:
    """PyTorch has printed 17179869184.00 GiB for a process."""
    text = (shared / "live" / "samples" / "errors" / "oom_texts.txt").read_text().splitlines()[1]
    found = reading(text)
    assert found.failure is not None
    assert found.failure.bytes_of("process") is None
    assert found.failure.bytes_of("requested") == 30 * GIB


def test_that_what_goes_on_is_no_failure() -> None:
    text = "[2026-09-12 00:24:02] KV cache pool is full. Retract requests. #retracted: 4\n"
    found = cause(text)
    assert found.is_soft
    assert headline(text) == "This run was short of KV cache, and went on"


def test_that_a_failure_that_stops_goes_before_one_that_does_not() -> None:
    soft = "[2026-09-12 00:24:02] KV cache pool is full. Retract requests. #retracted: 4\n"
    assert cause(soft + logs.LOAD).kind is Kind.LOAD


def test_that_an_earlier_start_is_not_the_one_explained() -> None:
    found = reading(logs.GRAPHS + logs.VLLM_HEAD + logs.VLLM_LOADED + logs.VLLM_POOL + logs.VLLM_UP)
    assert found.runs == 2
    assert diagnose(found) is None
    assert words.headline(None, found, UnitSystem.BINARY) == "This run came up"


@pytest.mark.parametrize("number", range(2, 23))
def test_that_every_recorded_text_of_a_runtime_is_known(shared: Path, number: int) -> None:
    text = (shared / "live" / "samples" / "errors" / "oom_texts.txt").read_text().splitlines()
    found = reading(text[number].partition("|")[2])
    assert found.understood == 1


def test_that_hosts_that_are_short_are_told_with_both_sides(shared: Path) -> None:
    found = diagnose(sample(shared, "ollama", "serve_lxc_false-oom.log"))
    assert found is not None
    assert found.kind is Kind.REFUSED
    # 5.5 − 3.4 GiB.
    assert found.short_bytes == round(5.5 * GIB) - round(3.4 * GIB)


def test_that_a_containers_limit_is_told_beside_the_computers_memory(shared: Path) -> None:
    found = sample(shared, "ollama", "serve_lxc_false-oom.log")
    said = happened(diagnose(found), found, UnitSystem.BINARY)
    assert said[-1] == (
        "The container may take 6.00 GiB of the computer’s 32.00 GiB; files that it has read count."
    )


def test_that_who_held_memory_before_nobody_looked_is_not_said_to_have_taken_it() -> None:
    text = logs.frame("transformers/generation/utils.py", "_sample") + logs.torch_oom(
        mine="15.59 GiB", allocated="14.90 GiB"
    )
    for found, start in ((reading(text), "Other processes hold"), (reading(logs.TAKEN), "Another")):
        cause = diagnose(found)
        assert cause is not None
        assert cause.kind is Kind.TAKEN
        assert happened(cause, found, UnitSystem.BINARY)[0].startswith(start)


def test_that_each_remedy_is_a_plan_that_fits_on_the_device_of_the_run() -> None:
    for text in (logs.TAKEN, logs.TOO_LONG, logs.GRAPHS, logs.PREFILL, logs.SGLANG_PREFILL):
        run = explained(text, gpu_total_bytes=round(23.64 * GIB))
        assert run.plan is not None
        assert run.remedies, text
        for one in run.remedies:
            assert one.fit in (Fit.FITS, Fit.TIGHT)
            if one.deployment is not None:
                again = size(run.plan.model, one.deployment, run.plan.machine)
                assert again.verdict.outcome in (Fit.FITS, Fit.TIGHT)


def test_that_who_took_the_memory_is_the_first_remedy() -> None:
    labels = [one.label for one in explained(logs.TAKEN).remedies]
    assert labels[0] == "Without the others"
    # (23.64 − 2.04) / 23.64 is 0.91, and graphs come beside the share.
    assert labels[1] in ("Utilisation 0.91", "Utilisation 0.90")


def test_that_a_context_is_offered_that_the_stated_pool_holds() -> None:
    run = explained(logs.TOO_LONG)
    (shorter,) = [one for one in run.remedies if one.label.startswith("Context")]
    assert shorter.deployment is not None
    tokens = shorter.deployment.max_model_len or 0
    # 5.31 GiB at 131,072 bytes a token hold 43,499 tokens; vLLM itself says 43,488.
    assert 42 * 1024 <= tokens <= 43_499
    assert "By its own figures a context of 43,488 tokens fits." in happened(
        run.cause, run.reading, UnitSystem.BINARY
    )


def test_that_graphs_are_given_room_beside_the_pool() -> None:
    labels = [one.label for one in explained(logs.GRAPHS).remedies]
    assert labels[0] == "No CUDA graphs"
    assert labels[-1].startswith("Utilisation 0.")


def test_that_a_shorter_step_takes_less_of_what_ran_out() -> None:
    run = explained(logs.SGLANG_PREFILL)
    assert run.sizing is not None
    assert run.plan is not None
    before = run.sizing.budget.ranks[0].regions[Region.ACTIVATIONS].estimate.likely_bytes
    steps = [one for one in run.remedies if one.label.startswith("Steps of")]
    for one in steps:
        assert one.deployment is not None
        after = size(run.plan.model, one.deployment, run.plan.machine)
        held = after.budget.ranks[0].regions[Region.ACTIVATIONS].estimate.likely_bytes
        assert before - held >= (run.cause.short_bytes or 0) if run.cause else False


def test_that_a_pool_that_was_too_small_is_shared_by_fewer() -> None:
    text = (
        "[2025-10-01 12:00:00] server_args=ServerArgs(model_path='Qwen/Qwen3-32B', tp_size=2, "
        "mem_fraction_static=0.9, context_length=40960)\n"
        "[2025-10-01 12:00:08 TP0] Init torch distributed ends. mem usage=0.90 GB\n"
        "[2025-10-01 12:00:09 TP0] Load weight begin. avail mem=78.10 GB\n"
        "[2025-10-01 12:00:30 TP0] KV Cache is allocated. #tokens: 310000, K size: 18.92 GB, "
        "V size: 18.92 GB\n"
        "[2025-10-01 12:02:41 TP0] Decode out of memory. Try to lower your batch size.\n"
    )
    labels = [one.label for one in explained(text).remedies]
    # 310,000 tokens are 7.57 requests of 40,960.
    assert labels == ["max_running_requests 7", "FP8 KV cache"]


def test_that_no_change_is_promised_that_is_smaller_than_what_was_short() -> None:
    text = (
        "llama_model_load_from_file_impl: using device CUDA0 (RTX 3060) - 11500 MiB free\n"
        "llama_model_loader: loaded meta data with 29 key-value pairs and 292 tensors from "
        "Llama-3.1-8B-Instruct-Q4_K_M.gguf (version GGUF V3 (latest))\n"
        "load_tensors: offloaded 33/33 layers to GPU\n"
        "load_tensors:        CUDA0 model buffer size =  4403.49 MiB\n"
        "llama_context: n_ctx         = 32768\n"
        "llama_kv_cache:      CUDA0 KV buffer size =  4096.00 MiB\n"
        "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 4000.00 MiB on device 0: "
        "cudaMalloc failed: out of memory\n"
        "ggml_gallocr_reserve_n: failed to allocate CUDA0 buffer of size 4194304000\n"
    )
    run = explained(text)
    # By our figures it fits: the log knows better, by the 4,000 MiB that it could not get.
    assert run.sizing is not None
    assert run.sizing.verdict.margin_bytes > 0
    assert run.remedies
    (device,) = run.sizing.budget.ranks[:1]
    before = sum(
        device.regions[r].estimate.likely_bytes
        for r in (Region.WEIGHTS, Region.KV_CACHE, Region.ACTIVATIONS)
    )
    assert run.plan is not None
    for one in run.remedies:
        assert one.deployment is not None
        after = size(run.plan.model, one.deployment, run.plan.machine).budget.ranks[0]
        held = sum(
            after.regions[r].estimate.likely_bytes
            for r in (Region.WEIGHTS, Region.KV_CACHE, Region.ACTIVATIONS)
        )
        assert before - held >= 4000 * MIB * 0.95


def test_that_what_was_short_by_nobody_knows_how_much_is_promised_no_margin() -> None:
    text = logs.SGLANG_PREFILL.rpartition("torch.OutOfMemoryError")[0] + (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate\n"
    )
    run = explained(text, gpu="L40S")
    assert run.cause is not None
    assert run.cause.short_bytes is None
    assert run.remedies
    for one in run.remedies:
        assert (one.margin_bytes, one.fit) == (None, None)
        assert one.deployment is not None


def test_that_without_the_others_the_machine_is_empty_and_no_log_says_so() -> None:
    run = explained(logs.REFUSED, gpu_total_bytes=24 * GIB)
    assert run.plan is not None
    assert run.cause is not None
    alone = run.remedies[0]
    assert alone.label == "Without the others"
    emptied = size(run.plan.model, run.plan.deployment, run.plan.machine.emptied())
    assert alone.margin_bytes == emptied.verdict.margin_bytes
