"""How much of one core the live picture takes: 8 devices, an hour behind them, 10 samples a second.

``live_share`` measures; the limit is the benchmark's (under 0.25 of one core).
"""

from __future__ import annotations

import time

from PySide6.QtGui import QPixmap

from engine.telemetry.snapshot import DeviceReading, PoolKind, ProcessReading, TelemetrySnapshot
from gui.kit.charts.picture import MemoryPicture
from gui.kit.charts.scene import scene_for
from gui.kit.theme import load_theme
from tests.helpers import sizings
from tests.helpers.sizings import gib

SAMPLES_A_SECOND = 10


def filled(devices: int, seconds: int) -> tuple[MemoryPicture, float]:
    """A picture of ``devices`` ranks with a full history, and that history's last second."""
    picture = MemoryPicture(load_theme("light"))
    picture.resize(1144, 329)
    picture.set_scene(scene_for(sizings.many_ranks(devices)))
    picture.set_window_seconds(seconds)
    count = seconds * SAMPLES_A_SECOND
    for step in range(count):
        _keep(picture, devices, step / SAMPLES_A_SECOND, step)
    return picture, float(seconds)


def live_share(devices: int = 8, seconds: int = 3600, rounds: int = 12) -> float:
    """CPU seconds a second for keeping 10 samples and drawing as often as the picture does."""
    picture, now = filled(devices, seconds)
    redraws_a_second = 1000 / picture.between_repaints_ms
    samples = round(SAMPLES_A_SECOND / redraws_a_second)
    target = QPixmap(picture.size())
    picture.render(target)
    start = time.process_time()
    for step in range(rounds):
        for _ in range(samples):
            now += 1 / SAMPLES_A_SECOND
            _keep(picture, devices, now, step)
        picture.render(target)
    return (time.process_time() - start) / rounds * redraws_a_second


def _keep(picture: MemoryPicture, devices: int, now: float, step: int) -> None:
    used = gib(40 + step * 7919 % 100 / 80)
    processes = (ProcessReading(7, "VLLM::EngineCore", gib(39.5), "VLLM::EngineCore"),)
    readings = tuple(
        DeviceReading(
            f"GPU-{number}", "L40S", PoolKind.VRAM, gib(45), used, 0, 0, processes, "made"
        )
        for number in range(devices)
    )
    picture.append(TelemetrySnapshot(now, 1.7e9 + now, readings))
