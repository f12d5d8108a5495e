"""Pictures drawn off screen, with what was written where."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from PySide6.QtCore import QRectF
from PySide6.QtGui import QImage, QPainter

from engine.telemetry.snapshot import Pressure
from engine.telemetry.strain import Strain
from gui.kit.charts import painter as paints
from gui.kit.charts.axis import TimeWindow
from gui.kit.charts.layout import PictureLayout, Style, lay_out
from gui.kit.charts.measured import Live
from gui.kit.charts.scene import scene_for
from gui.kit.charts.series import Sample, Series
from gui.kit.theme import load_theme
from tests.helpers.sizings import gib

if TYPE_CHECKING:
    from engine.sizing import Sizing

# The picture's place in the window of 1440 x 900, 1280 x 800 and 960 x 600.
SIZES = ((1144, 329), (996, 270), (916, 307))


def draw(
    sizing: Sizing,
    size: tuple[int, int] = SIZES[0],
    scheme: str = "light",
    live: Live | None = None,
    text_scale: float = 1.0,
) -> tuple[QImage, PictureLayout, list[tuple[QRectF, str]]]:
    """The picture, its layout, and every text with its place."""
    style = Style(load_theme(scheme, text_scale))
    image = QImage(*size, QImage.Format.Format_RGB32)
    image.fill(style.theme.color("surface.base"))
    scene = scene_for(sizing)
    places = lay_out(scene, QRectF(0, 0, *size), style)
    painter = QPainter(image)
    canvas = paints.paint(painter, scene, places, style, live or Live())
    painter.end()
    return image, places, canvas.words


def idle(uuid: str = "GPU-0", used: float = 0.41) -> Live:
    """Two minutes in which nothing of the plan runs."""
    series = Series.of(Sample(float(second), gib(used), 0) for second in range(121))
    return Live({uuid: series}, TimeWindow(0, 120))


def running(uuid: str = "GPU-0") -> Live:
    """Five minutes of a run that ends 0.4 GiB above the plan."""
    samples = [
        Sample(
            float(second),
            gib(min(0.41 + second * 0.2, 23.24)),
            gib(min(second * 0.2, 22.83)),
            gib(2.5) if second > 120 else None,
        )
        for second in range(301)
    ]
    return Live({uuid: Series.of(samples)}, TimeWindow(0, 300))


def strained(uuid: str = "GPU-0") -> Live:
    """The same run, of which 2.1 GiB run from system RAM since 14:02 while RAM is scarce."""
    spill = Strain(
        uuid, "RTX 4090", 180.0, 300.0, gib(2.1), gib(2.4), Pressure.NONE, "NVML, Windows counters",
        (("llama-server", gib(2.0)),),
    )  # fmt: skip
    want = Strain("", "", 240.0, 300.0, gib(0.9), gib(0.8), Pressure.SOME, "psutil 7.2.2")
    two = time.mktime((2026, 11, 30, 14, 2, 0, 0, 0, -1))
    return replace(running(uuid), strains=(spill, want), wall_offset_s=two - 180)


def silent(uuid: str = "GPU-0", seconds: int = 40) -> Live:
    """The run, of which the driver has told nothing for the last ``seconds``."""
    kept = running(uuid).series[uuid].values[:, :-seconds]
    samples = [Sample(float(time), int(used), int(plan)) for time, used, plan, _ in kept.T]
    samples += [Sample(float(second), None) for second in range(301 - seconds, 301)]
    return Live({uuid: Series.of(samples)}, TimeWindow(0, 300))
