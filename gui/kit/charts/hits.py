"""What lies under the pointer."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PySide6.QtCore import QPointF

    from engine.budget.model import Region
    from gui.kit.charts.layout import PanelLayout, PictureLayout, Scale
    from gui.kit.charts.scene import Panel

_LABEL_HALF_HEIGHT = 8
_LABEL_REACH = 180
_LEADER = 2


def region_at(places: PictureLayout, place: QPointF) -> Region | None:
    """The region whose label, bar, band or lens part is at ``place``."""
    lens = places.lens
    if lens and lens.box.contains(place):
        return _in_stack(places.panels[0].panel, lens.scale, place.y())
    for panel in places.panels:
        if panel.bar.united(panel.bands).contains(place):
            return _in_stack(panel.panel, panel.scale, place.y())
        if region := _at_label(panel, place):
            return region
    return None


def _in_stack(panel: Panel, scale: Scale, y: float) -> Region | None:
    at = scale.bytes_at(y)
    found = (s.region for s in panel.segments if s.bottom_bytes <= at < s.top_bytes)
    return next(found, None)


def _at_label(panel: PanelLayout, place: QPointF) -> Region | None:
    right = panel.bar.left() - _LEADER
    if not right - _LABEL_REACH <= place.x() <= right:
        return None
    near = (
        label.segment.region
        for label in panel.labels
        if abs(label.y - place.y()) <= _LABEL_HALF_HEIGHT
    )
    return next(near, None)
