"""Faults that other tools had with what runtimes print: each recorded input, its right outcome."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from engine.budget.model import Region
from engine.contract.log import log_answer
from engine.logs import words
from engine.logs.diagnosis import Kind, diagnose
from engine.logs.why import happened
from engine.units import UnitSystem
from tests.helpers.logs import MIB, explained, reading

if TYPE_CHECKING:
    from pathlib import Path

    from engine.logs.reading import LogReading


@pytest.fixture
def bugs(shared: Path) -> dict[str, dict[str, Any]]:
    rows = json.loads((shared / "live" / "bugs_open.json").read_text())
    return {row["id"]: row for row in rows}


def told(found: LogReading) -> str:
    cause = diagnose(found)
    parts = happened(cause, found, UnitSystem.BINARY)
    return " ".join((words.headline(cause, found, UnitSystem.BINARY), *parts))


def test_that_an_estimate_that_is_no_number_is_told_without_one(bugs) -> None:
    assert "NaN" in bugs["B33"]["title"]
    text = (
        "Error: Model loading was stopped due to insufficient system resources. Under the current "
        f"settings, this model requires {bugs['B33']['title'].strip(chr(34))}, and continuing "
        "to load it would likely overload your system and cause it to freeze.\n"
    )
    answer = json.dumps(log_answer(explained(text)) | {"facts": []})
    for slip in ("NaN", "Infinity", "undefined", "None"):
        assert slip not in answer
    assert told(reading(text)).startswith("LM Studio refused to start ")


def test_that_a_load_that_aborts_is_out_of_memory_at_the_projector(bugs) -> None:
    tail = bugs["B39"]["input"].rpartition("log tail ")[2].strip('"')
    text = (
        "load_tensors: offloaded 49/49 layers to GPU\n"
        "load_tensors:        CUDA0 model buffer size =  6144.00 MiB\n"
        "clip_model_loader: model name:   projector\n"
        f"ggml_backend_cuda_buffer_type_alloc_buffer: allocating 921.60 MiB on device 0: {tail}\n"
        "error: SIGABRT while loading the model; the file may be corrupt\n"
    )
    found = reading(text)
    cause = diagnose(found)
    assert cause is not None
    assert (cause.kind, cause.region) == (Kind.LOAD, Region.WEIGHTS)
    assert cause.short_bytes == round(921.6 * MIB)
    assert "projector" in told(found)
    assert "corrupt" not in told(found)
    # Cut down to its end, it is still out of memory.
    end = diagnose(reading(f"{tail}\nSIGABRT\n"))
    assert end is not None
    assert end.kind is Kind.UNKNOWN
    assert told(reading(f"{tail}\nSIGABRT\n")).startswith("This run ran out")


def test_that_a_drafts_buffers_add_to_the_targets(bugs) -> None:
    assert "draft" in bugs["B45"]["symptom"]
    one = (
        "llama_model_loader: loaded meta data with 29 key-value pairs and 292 tensors from {file} "
        "(version GGUF V3 (latest))\n"
        "load_tensors:        CUDA0 model buffer size = {size:.2f} MiB\n"
        "llama_kv_cache:      CUDA0 KV buffer size = {cache:.2f} MiB\n"
    )
    target = one.format(file="a.gguf", size=80_000, cache=8_000)
    draft = one.format(file="mtp.gguf", size=1_500, cache=500)
    (rank,) = reading(target + draft).ranks
    assert rank.bytes_of("weights") == 81_500 * MIB
    assert rank.bytes_of("kv_pool") == 8_500 * MIB
    # What the program says of itself is kept as what it is: stated.
    table = (
        "NAME              ID              SIZE     PROCESSOR    CONTEXT    UNTIL\n"
        "gemma4:31b-mtp    74042bbc64db    12 GB    100% GPU     262144     Forever\n"
    )
    assert "12 GB 100 % GPU ctx 262144" in bugs["B45"]["input"]
    found = reading(table + target + draft)
    assert found.whole["loaded"].value == 12 * 10**9
    assert found.whole["n_ctx"].value == 262_144
    assert found.stated("weights").size_bytes == 81_500 * MIB


def test_that_all_on_the_gpu_is_no_claim_that_the_gpu_is_full(bugs) -> None:
    assert "24,000,000,000" in bugs["B46"]["input"]
    answer = '{"models":[{"name":"x","size":24000000000,"size_vram":24000000000}]}'
    table = "x:latest    d9db479f49e8    24 GB    100% GPU     Forever\n"
    for text in (answer, table):
        found = reading(text)
        # 22.35 GiB.
        assert found.whole["loaded"].value == 24 * 10**9
        assert diagnose(found) is None
        assert "full" not in told(found)


def test_that_a_pool_in_tokens_is_the_servers_own_figure(bugs) -> None:
    labels = bugs["B47"]["input"].partition(": ")[2].replace(' "', '="').replace(", ", ",")
    found = reading(f"vllm:cache_config_info{{{labels}}} 1.0\n")
    assert found.whole["kv_tokens"].value == 1_048_576
    # 25,028 blocks × 4 would be 100,112: nowhere.
    assert "100112" not in json.dumps(
        log_answer(explained(f"vllm:cache_config_info{{{labels}}} 1\n"))
    )
