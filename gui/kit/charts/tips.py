"""What is told of the thing under the pointer: a marker, a time of want, or a region."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gui.kit.charts import flags, strains
from gui.kit.charts.hits import region_at

if TYPE_CHECKING:
    from PySide6.QtCore import QPointF

    from gui.kit.charts.layout import PictureLayout
    from gui.kit.charts.measured import Live
    from gui.kit.charts.scene import PictureScene


def at(scene: PictureScene, places: PictureLayout, live: Live, point: QPointF) -> str:
    """The words for ``point``; empty where nothing is to be told."""
    for panel in places.panels:
        marker = flags.near(panel, live, point.x()) if flags.rect(panel).contains(point) else None
        if marker is not None:
            return marker.words(live.unit)
        strain = strains.near(panel, live, point)
        if strain is not None:
            return strains.tooltip(strain, live)
    region = region_at(places, point)
    segments = (panel.segment(region) for panel in scene.panels) if region else ()
    return next((segment.tooltip for segment in segments if segment), "")
