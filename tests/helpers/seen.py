"""Runtimes as a look finds them, with round figures."""

from __future__ import annotations

from typing import Any

from engine.seen.model import (
    HeldBytes,
    ModelSeen,
    PoolSeen,
    Reach,
    RuntimeSeen,
    StatedBytes,
)
from engine.telemetry.address import Address
from engine.telemetry.snapshot import Quality

GIB = 2**30


def on_card(size_bytes: int) -> HeldBytes:
    """What the driver of ``readings.card`` attributes."""
    return HeldBytes("GPU-0", "card", size_bytes, Quality.EXACT, is_accelerator=True)


def vllm(**changes: Any) -> RuntimeSeen:
    """A vLLM whose engine core is the process 4211 of ``readings.card``."""
    fields: dict[str, Any] = {
        "runtime": "vllm", "label": "vLLM", "reach": Reach.ANSWERS, "version": "0.33.0",
        "address": Address("127.0.0.1", 8000), "pids": (4200, 4211),
        "model": ModelSeen("meta-llama/Llama-3.1-8B-Instruct", 8192),
        "pool": PoolSeen(tokens=40_000, used_share=0.52, used_tokens=20_800),
        "running": 3, "waiting": 0, "settings": {"max_model_len": 8192},
        "held": (on_card(round(22.83 * GIB)),),
    }  # fmt: skip
    return RuntimeSeen(**(fields | changes))


def ollama(**changes: Any) -> RuntimeSeen:
    """An Ollama that says 12 GB while its processes hold 88 GiB (ollama issue 17251)."""
    fields: dict[str, Any] = {
        "runtime": "ollama", "label": "Ollama", "reach": Reach.ANSWERS, "version": "0.32.0",
        "address": Address("127.0.0.1", 11434), "pids": (10, 11),
        "model": ModelSeen("gemma4:31b-mtp", 262_144),
        "stated": (StatedBytes(12 * 10**9),),
        "held": (on_card(88 * GIB),),
    }  # fmt: skip
    return RuntimeSeen(**(fields | changes))
