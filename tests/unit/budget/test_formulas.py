"""Every calculation that is shown multiplies out to the figure it stands for."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.architecture.read import read
from engine.budget.model import Region
from engine.contract.kv import kv_baseline
from engine.deployment.spec import Deployment
from engine.devices import catalogue as devices
from engine.errors import DeploymentError
from engine.runtimes.registry import get
from engine.source import catalogue

H100 = devices.machine(devices.find("H100 SXM 80GB"))
ENTRIES = catalogue.entries()
WORDS = re.compile(r"\((?:latent|K )[^)]*\)|[a-zA-Z](?:[a-zA-Z' ]|-(?=[a-zA-Z]))*")


def worked_out(formula: str) -> int:
    """The steps of ``A × B + C = D; × E = F``, each checked; the last figure."""
    carried = ""
    for step in formula.split("; "):
        *left, right = WORDS.sub(" ", step).replace(",", "").replace("×", "*").split("=")
        (sides,) = left or [right]
        assert re.fullmatch(r"[0-9 *+()]+", sides), formula
        found = eval(f"{carried} {sides}")
        assert found == int(right), formula
        carried = str(found)
    return int(carried)


def model(name: str):
    entry = catalogue.find(name)
    assert entry is not None
    return read(catalogue.raw(entry))


@pytest.mark.parametrize(
    ("name", "figure"),
    [
        # 12 full layers and 12 of a window: 4 slots share 4 × 128 + 512 = 1,024 cells there.
        ("openai/gpt-oss-20b", 12 * 32_768 * 2048 + 12 * 1024 * 2048),
        # 10 full layers and 52 of a window: 4 × 1,024 + 512 = 4,608 cells.
        ("google/gemma-3-27b-it", 10 * 32_768 * 8192 + 52 * 4608 * 8192),
    ],
)
def test_that_llama_cpp_names_a_term_for_each_kind_of_layer(name, figure):
    plan = Deployment(runtime="llama.cpp", max_model_len=8192, concurrency=4)
    budget = get("llama.cpp").plan(model(name), plan, H100)
    region = budget.ranks[0].regions[Region.KV_CACHE].estimate
    assert region.likely_bytes == worked_out(region.formula) == figure
    assert worked_out(budget.sequence_state.formula) == figure


def test_that_the_baseline_of_windows_counts_each_kind_at_what_it_keeps():
    baseline = kv_baseline(model("openai/gpt-oss-20b"), 8192)
    assert worked_out(baseline.formula) == baseline.total_bytes == 12 * 2048 * (8192 + 128)


@given(
    entry=st.sampled_from(ENTRIES),
    runtime=st.sampled_from(["vllm", "llama.cpp", "transformers"]),
    context=st.integers(1, 100_000),
    concurrency=st.integers(1, 8),
)
def test_that_what_is_shown_for_a_sequence_multiplies_out(entry, runtime, context, concurrency):
    found = read(catalogue.raw(entry))
    baseline = kv_baseline(found, context)
    if baseline.terms:
        assert worked_out(baseline.formula) == baseline.total_bytes
    plan = Deployment(runtime=runtime, max_model_len=context, concurrency=concurrency)
    try:
        budget = get(runtime).plan(found, plan, H100)
    except DeploymentError:
        return
    state = budget.sequence_state
    if "=" in state.formula:
        figure = (
            state.pool_bytes if runtime == "llama.cpp" else state.architecture_bytes_per_sequence
        )
        assert worked_out(state.formula) == figure
    for rank in budget.ranks:
        estimate = rank.regions[Region.KV_CACHE].estimate
        if runtime != "vllm" and "=" in estimate.formula:
            assert worked_out(estimate.formula) == estimate.likely_bytes


def test_that_layers_across_two_texts_multiply_out_too():
    entry = catalogue.find("meta-llama/Llama-3.2-11B-Vision-Instruct")
    assert entry is not None
    plan = Deployment(runtime="vllm", max_model_len=1)
    state = get("vllm").plan(read(catalogue.raw(entry)), plan, H100).sequence_state
    # 32 layers at one token, and 8 that read 4 × 1,601 patches of a picture
    assert worked_out(state.formula) == 2 * 8 * 128 * 2 * (32 + 8 * 6404)
