"""Verdicts that other tools got wrong: each recorded input, its right outcome."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from engine.architecture.read import read
from engine.budget.model import Region
from engine.deployment.spec import Deployment
from engine.devices.here import this_machine
from engine.fit.inverse import inverse
from engine.fit.solve import limits
from engine.fit.verdict import Fit
from engine.sizing import Sizing, size
from engine.source import catalogue
from engine.source.raw import HeaderTensor, RawModel
from engine.telemetry.snapshot import PoolKind, ProcessReading, TelemetrySnapshot
from tests.helpers.live_records import fault
from tests.helpers.published import GIB, MIB, gpu, machine
from tests.helpers.readings import card, host

if TYPE_CHECKING:
    from pathlib import Path

    from engine.architecture.model import Model


def known(name: str) -> Model:
    """A model of the catalogue."""
    entry = catalogue.find(name)
    assert entry is not None
    return read(catalogue.raw(entry))


def kv(sizing: Sizing) -> int:
    return sizing.budget.ranks[0].needed.likely_bytes


def every_word(sizing: Sizing) -> str:
    """All that is said of an answer."""
    budget = sizing.budget
    regions = [r for rank in budget.ranks for r in rank.regions.values()]
    said = [sizing.verdict.headline, sizing.verdict.detail, *budget.assumptions, *budget.warnings]
    said += [f"{r.note} {r.gap} {r.estimate.source} {r.estimate.formula}" for r in regions]
    return " ".join((*said, *budget.bounds))


def unknown_gguf(architecture: str, size_bytes: int) -> Model:
    """A GGUF of an architecture without head counts, its tensors ``size_bytes`` together."""
    # The embedding is not put on the GPU.
    rows = size_bytes // 2 // 4096
    tensors = (
        HeaderTensor("token_embd.weight", "F16", (4096, 64), 64 * 4096 * 2),
        HeaderTensor("blk.0.time_mix_key.weight", "F16", (4096, rows), rows * 4096 * 2),
    )
    metadata: dict[str, Any] = {
        "general.architecture": architecture,
        "general.file_type": 1,
        f"{architecture}.block_count": 1,
        f"{architecture}.embedding_length": 4096,
        f"{architecture}.context_length": 4096,
    }
    return read(RawModel("x", "test", tensors=tensors, gguf_metadata=metadata, file_bytes=1))


def test_that_an_unknown_state_makes_the_answer_unknown_and_no_text_odd(shared: Path) -> None:
    record = fault(shared, "B33")
    architecture = re.findall(r'"(\w+)"', record["input"])[0]
    found = size(
        unknown_gguf(architecture, GIB), Deployment(runtime="llama.cpp"), machine(gpu(8.0))
    )
    assert found.verdict.fit is Fit.UNKNOWN
    assert found.verdict.headline == "Unknown: at least 1.0 GiB"
    assert architecture in found.verdict.detail
    said = every_word(found)
    # A note may begin with "None;": a value that is none has something around it.
    assert not re.search(r"\b(NaN|nan|inf|undefined)\b|[=:(] ?None|None[,)\]]", said)


def test_that_no_estimate_is_no_refusal(shared: Path) -> None:
    record = fault(shared, "B34")
    free, file = (int(n) * GIB for n in re.findall(r"(\d+) GiB", record["input"]))
    found = size(
        unknown_gguf("nobody-knows", file),
        Deployment(runtime="llama.cpp"),
        machine(gpu(free / GIB)),
    )
    assert found.verdict.fit is Fit.UNKNOWN
    assert found.verdict.headline == f"Unknown: at least {file / GIB:.1f} GiB"


def test_that_a_long_default_is_no_default_of_ours_and_is_named_when_asked_for(
    shared: Path,
) -> None:
    record = fault(shared, "B35")
    at_start, at_most = (float(n) for n in re.findall(r"([\d.]+) GiB", record["right"]))
    tokens = int(re.findall(r"max_position_embeddings (\d+)", record["input"])[0])
    config = {
        "model_type": "mistral", "architectures": ["MistralForCausalLM"], "hidden_size": 5120,
        "intermediate_size": 14336, "num_hidden_layers": 40, "num_attention_heads": 32,
        "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 131072,
        "max_position_embeddings": 1_024_000, "torch_dtype": "bfloat16",
    }  # fmt: skip
    nemo = read(RawModel(id="nemo", source="as recorded", config=config))
    here = machine(gpu(24.0))

    def at(context: int) -> Sizing:
        plan = Deployment(runtime="llama.cpp", weight_format="Q4_K_M", max_model_len=context)
        return size(nemo, plan, here)

    assert kv(at(8192)) == at_start * GIB
    most = at(tokens)
    assert kv(most) == at_most * GIB
    assert most.verdict.headline.endswith("because of the KV cache")
    assert "1,024,000 cells" in most.budget.ranks[0].regions[Region.KV_CACHE].note


def test_that_the_context_is_the_runtimes_own_and_stands_beside_the_answer(shared: Path) -> None:
    record = fault(shared, "B36")
    assert "no context set" in record["input"]
    plan = Deployment(runtime="ollama", weight_format="Q4_K_M")
    found = size(known("Qwen/Qwen3.5-9B"), plan, machine(gpu(8 * 0.93)))
    assert found.verdict.fit in (Fit.FITS, Fit.TIGHT)
    assert found.budget.deployment.n_ctx == 4096
    assert any("default" in said and "4,096" in said for said in found.budget.assumptions)


def test_that_full_offload_with_a_long_context_is_red_and_shows_what_would_fit(
    shared: Path,
) -> None:
    record = fault(shared, "B38")
    context = int(re.findall(r"context (\d+)", record["input"])[0])
    model, here = known("google/gemma-4-26B-A4B-it"), machine(gpu(7.6, "RTX 3070"))
    plan = Deployment(
        runtime="llama.cpp", weight_format="Q4_K_M", max_model_len=context, n_gpu_layers=999
    )
    found = size(model, plan, here)
    assert found.verdict.fit is Fit.DOES_NOT_FIT
    # Its tool's own estimate was 30 GB; the weights alone are twice the card.
    assert found.verdict.margin_bytes < -8 * GIB
    (placed,) = (a for a in inverse(model, plan, here) if a.question == "best_placement")
    fewer = plan.with_(**placed.settings)
    assert size(model, fewer, here).verdict.fit is not Fit.DOES_NOT_FIT
    assert (limits(model, fewer, here).max_context or 0) >= context


def test_that_what_another_program_holds_is_counted_and_named(shared: Path) -> None:
    record = fault(shared, "B39")
    total, held = (int(n) * MIB for n in re.findall(r"(\d+) MiB", record["input"]))
    other = ProcessReading(99, "python3", held, "python3 train.py")
    reading = card(
        name="NVIDIA GeForce RTX 5090", total_bytes=total, used_bytes=held,
        reserved_bytes=500 * MIB, processes=(other,),
    )  # fmt: skip
    here = this_machine(TelemetrySnapshot(0, 0, (reading, host())))
    plan = Deployment(runtime="llama.cpp", weight_format="Q4_K_M", max_model_len=8192)
    found = size(known("Qwen/Qwen3.5-9B"), plan, here)
    assert found.verdict.fit is Fit.DOES_NOT_FIT
    assert found.verdict.binding_region is Region.FOREIGN
    assert found.verdict.detail.startswith("29.3 GiB is held by python3. ")
    assert size(known("Qwen/Qwen3.5-9B"), plan, here.emptied()).verdict.fit is Fit.FITS


def test_that_a_small_device_is_listed_and_can_be_planned_for(shared: Path) -> None:
    record = fault(shared, "B40")
    name = re.findall(r'"(.+)"', record["input"])[0]
    total = int(re.findall(r"(\d+) MiB", record["input"])[0]) * MIB
    reading = card(
        name=name, uuid="renoir", pool=PoolKind.VRAM, total_bytes=total, used_bytes=200 * MIB,
        reserved_bytes=0, processes=(),
    )  # fmt: skip
    here = this_machine(TelemetrySnapshot(0, 0, (reading, host())))
    (slot,) = here.slots
    assert (slot.device.name, slot.device.total_bytes) == (name, 4 * GIB)
    plan = Deployment(runtime="llama.cpp", weight_format="Q4_K_M", max_model_len=4096)
    assert size(known("Qwen/Qwen3-0.6B"), plan, here).verdict.fit is Fit.FITS


@pytest.mark.parametrize("fit", list(Fit))
def test_that_only_what_does_not_fit_is_red(fit: Fit) -> None:
    from gui.sizing.present import COLORS

    assert (COLORS[fit] == "over") is (fit is Fit.DOES_NOT_FIT)
