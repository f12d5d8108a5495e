"""Faults of other tools about what engines report, each with its recorded input and outcome."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from engine.seen.attribution import difference, held
from engine.telemetry.snapshot import Missing, ProcessReading
from engine.units import UnitSystem, format_bytes
from tests.helpers.live_records import fault
from tests.helpers.readings import GIB, card, host, moment

if TYPE_CHECKING:
    from pathlib import Path


def ollama(said, size: int, on_device: int, context: int, version: str):
    (seen,) = said({
        "/api/version": {"version": version},
        "/api/ps": {"models": [{"name": "gemma4:31b-mtp", "size": size, "size_vram": on_device,
                                "context_length": context}]},
    })  # fmt: skip
    return seen


def test_that_12_gb_said_and_88_gib_held_are_both_shown_with_the_reason(shared: Path, said):
    assert "88 GiB" in fault(shared, "B45")["input"]
    seen = ollama(said, 12 * 10**9, 12 * 10**9, 262144, "0.32.0")
    child = "/usr/lib/ollama/llama-server --model x"
    cards = [
        card(uuid=f"GPU-{n}", processes=(ProcessReading(7, "llama-server", 22 * GIB, child),))
        for n in range(4)
    ]
    seen = replace(seen, held=held({7}, moment(*cards)))
    assert (seen.stated_bytes, seen.held_bytes) == (12 * 10**9, 88 * GIB)
    found = difference(seen)
    assert found is not None
    assert "The engine’s figure is incomplete" in found.reason
    assert seen.model.context_tokens == 262144


def test_that_24_gb_said_are_22_35_gib_and_say_nothing_of_the_card(shared: Path, said):
    record = fault(shared, "B46")
    assert "24,000,000,000" in record["input"]
    seen = ollama(said, 24_000_000_000, 24_000_000_000, 8192, "0.3.4")
    assert format_bytes(seen.stated_bytes) == "22.35 GiB"
    assert format_bytes(seen.stated_bytes, UnitSystem.DECIMAL) == "24.00 GB"
    assert seen.notes == ("All of what it states lies on the GPU.",)
    assert not any("full" in note for note in seen.notes)


def test_that_a_pools_own_label_comes_before_blocks(shared: Path, said):
    assert 'block_size "4"' in fault(shared, "B47")["input"]
    page = ('vllm:cache_config_info{block_size="4",num_gpu_blocks="25028",'
            'kv_cache_size_tokens="1048576"} 1.0\n')  # fmt: skip
    (seen,) = said({"/metrics": page})
    assert seen.pool.tokens == 1_048_576
    assert "100112" not in repr(seen)  # 25028 x 4
    (older,) = said({"/metrics": page.replace(',kv_cache_size_tokens="1048576"', "")})
    assert isinstance(older.pool.tokens, Missing)


def test_that_mapped_weights_are_a_models_memory_during_cpu_inference(shared: Path):
    assert "RssFile 38.9 GiB" in fault(shared, "B31")["input"]
    command = "llama-server -m qwen-72b.gguf"
    process = ProcessReading(
        31, "llama-server", round(1.1 * GIB), command, file_bytes=round(38.9 * GIB)
    )
    (row,) = held({31}, moment(host(processes=(process,))))
    assert row.size_bytes == round(1.1 * GIB) + round(38.9 * GIB)
    assert not row.is_accelerator
