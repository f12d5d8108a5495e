"""Readings made by hand, with the figures of the mock-up of the live room."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from engine.telemetry.snapshot import (
    DeviceReading,
    Missing,
    PoolKind,
    ProcessReading,
    TelemetrySnapshot,
)

MIB, GIB = 2**20, 2**30
NO_FILES = Missing("mapped files are told apart in host memory only")
TOTAL = 24564 * MIB
RESERVED = 359 * MIB
USED = 23798 * MIB
ENGINE = ProcessReading(4211, "VLLM::EngineCor", round(22.83 * GIB), "VLLM::EngineCore")
DESKTOP = (
    ProcessReading(1820, "Xorg", round(0.22 * GIB), "/usr/lib/xorg/Xorg"),
    ProcessReading(2044, "gnome-shell", round(0.13 * GIB), "gnome-shell"),
    ProcessReading(9310, "firefox", round(0.06 * GIB), "firefox"),
)


def card(**changes: Any) -> DeviceReading:
    """An RTX 4090 that serves a model beside a desktop."""
    used = changes.get("used_bytes", USED)
    free = TOTAL - used - RESERVED if isinstance(used, int) else used
    base = DeviceReading(
        uuid="GPU-0",
        name="NVIDIA GeForce RTX 4090",
        pool=PoolKind.VRAM,
        total_bytes=TOTAL,
        used_bytes=USED,
        free_bytes=free,
        reserved_bytes=RESERVED,
        processes=(ENGINE, *DESKTOP),
        source="NVML 580.126.09",
    )
    return replace(base, **changes)


def host(**changes: Any) -> DeviceReading:
    """A computer of 64 GiB on which llama.cpp has mapped a model file."""
    held = (
        ProcessReading(77, "llama-server", 3 * GIB, "llama-server -m ~/a.gguf", 11 * GIB),
        ProcessReading(3, "firefox", 2 * GIB, "firefox", GIB // 2),
        ProcessReading(0, "40 smaller processes", GIB // 2, "", GIB // 4),
    )
    base = DeviceReading(
        uuid="host",
        name="Computer",
        pool=PoolKind.HOST,
        total_bytes=64 * GIB,
        used_bytes=19 * GIB,  # 11 of them mapped
        free_bytes=45 * GIB,
        reserved_bytes=0,
        processes=held,
        source="psutil 7.2.2",
    )
    return replace(base, **changes)


def moment(*devices: DeviceReading, second: int = 0) -> TelemetrySnapshot:
    """A snapshot of ``devices``."""
    return TelemetrySnapshot(100.0 + second, 1.75e9 + second, devices)


def server(
    pid: int, own_bytes: int | Missing, file_bytes: int | Missing = NO_FILES, **words: Any
) -> ProcessReading:
    """A process of vLLM that names no model, unless ``words`` say otherwise."""
    base = ProcessReading(pid, "VLLM::EngineCor", own_bytes, "VLLM::EngineCore", file_bytes)
    return replace(base, **words)


def serving(
    second: float, *cards: tuple[str, int, tuple[ProcessReading, ...]], foreign_bytes: int = 0
) -> TelemetrySnapshot:
    """Cards (uuid, total, processes) on which ``foreign_bytes`` are held besides."""
    made = []
    for uuid, total, processes in cards:
        own = sum(p.used_bytes for p in processes if isinstance(p.used_bytes, int))
        others = ProcessReading(9, "Xorg", foreign_bytes, "/usr/lib/xorg/Xorg")
        reading = card(uuid=uuid, total_bytes=total, used_bytes=own + foreign_bytes)
        made.append(replace(reading, processes=(*processes, others)))
    return TelemetrySnapshot(1000.0 + second, 1.75e9 + second, tuple(made))
