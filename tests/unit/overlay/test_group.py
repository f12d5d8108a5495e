"""The plan's own share of a device: its processes, mapped model files included."""

from __future__ import annotations

from engine.overlay.group import Planned, plan_bytes
from engine.telemetry.snapshot import DeviceReading, Missing, PoolKind, ProcessReading
from engine.units import GIB

PLAN = Planned("llama.cpp", "meta-llama/Llama-3.1-8B-Instruct")


def holding(*processes: ProcessReading) -> DeviceReading:
    return DeviceReading(
        "host", "Computer", PoolKind.HOST, 64 * GIB, 30 * GIB, 34 * GIB, 0, processes, "made"
    )


def server(model: str, used_bytes: int | Missing, file_bytes: int = 0) -> ProcessReading:
    command = f"llama-server -m /models/{model}.gguf"
    return ProcessReading(7, "llama-server", used_bytes, command, file_bytes)


def test_that_a_mapped_model_file_is_part_of_the_share():
    ours = server("Llama-3.1-8B-Instruct-Q4_K_M", 2 * GIB, 5 * GIB)
    assert plan_bytes(holding(ours), PLAN) == 7 * GIB


def test_that_another_model_of_the_same_runtime_is_not_ours():
    assert plan_bytes(holding(server("gemma-3-27b", 2 * GIB)), PLAN) == 0


def test_that_a_hidden_share_is_unknown():
    ours = server("Llama-3.1-8B", Missing("not told"))
    assert plan_bytes(holding(ours), PLAN) is None
