"""Fit map and curve as widgets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QPointF, QRectF
from typing_extensions import override

from gui.kit.charts.curve_painter import CurvePlaces, paint_curve, paint_curve_point
from gui.kit.charts.fit_painter import MapPlaces, paint_map, paint_point
from gui.kit.charts.fit_scene import CurveScene, MapScene
from gui.kit.charts.log_axis import nearest_round
from gui.kit.charts.plan_picture import PlanPicture

if TYPE_CHECKING:
    from PySide6.QtWidgets import QWidget

    from gui.kit.charts.fit_scene import PlanPoint
    from gui.kit.charts.pens import Canvas
    from gui.kit.theme import Theme


class FitMapPicture(PlanPicture[MapScene]):
    """Margins over context and requests, the limit, and the plan."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__("fit map", theme, parent)

    @override
    def place_of(self, context: int, requests: int) -> QPointF:
        return self._places().point(context, requests)

    @override
    def plan_at(self, place: QPointF, *, fine: bool) -> tuple[int, int]:
        places, (least, most, most_requests) = self._places(), self.limits()
        point = self._scene.point if self._scene else None
        tokens = _tokens(places.x.value(place.x()), point, fine=fine)
        requests = round(places.y.value(place.y()))
        return min(max(tokens, least), most), min(max(requests, 1), most_requests)

    @override
    def limits(self) -> tuple[int, int, int]:
        if self._scene is None:
            return 1, 1, 1
        axes = self._scene.map.axes
        return axes.least_context, axes.most_context, axes.most_requests

    @override
    def paint_ground(self, canvas: Canvas) -> None:
        if self._scene is not None:
            paint_map(canvas, self._scene, self._places(canvas))

    @override
    def paint_over(self, canvas: Canvas) -> None:
        if self._scene is not None:
            paint_point(canvas, self._scene, self._places(canvas))

    def _places(self, canvas: Canvas | None = None) -> MapPlaces:
        assert self._scene is not None  # noqa: S101 - asked only where there is a point
        ratio = canvas.ratio if canvas else self.devicePixelRatioF()
        return MapPlaces(self.theme, ratio, self._scene, QRectF(self.rect()))


class CurvePicture(PlanPicture[CurveScene]):
    """Every region over the context, under the load line, and the plan."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__("curve", theme, parent)

    @override
    def place_of(self, context: int, requests: int) -> QPointF:
        places = self._places()
        assert self._scene is not None  # noqa: S101 - asked only where there is a point
        return places.point(self._scene)

    @override
    def plan_at(self, place: QPointF, *, fine: bool) -> tuple[int, int]:
        least, most, _ = self.limits()
        point = self._scene.point if self._scene else None
        tokens = _tokens(self._places().x.value(place.x()), point, fine=fine)
        return min(max(tokens, least), most), point.requests if point else 1

    @override
    def limits(self) -> tuple[int, int, int]:
        if self._scene is None:
            return 1, 1, 1
        return self._scene.contexts[0], self._scene.contexts[-1], self._scene.most_requests

    @override
    def paint_ground(self, canvas: Canvas) -> None:
        if self._scene is not None:
            paint_curve(canvas, self._scene, self._places(canvas))

    @override
    def paint_over(self, canvas: Canvas) -> None:
        if self._scene is not None:
            paint_curve_point(canvas, self._scene, self._places(canvas))

    def _places(self, canvas: Canvas | None = None) -> CurvePlaces:
        assert self._scene is not None  # noqa: S101 - asked only where there is a point
        ratio = canvas.ratio if canvas else self.devicePixelRatioF()
        return CurvePlaces(self.theme, ratio, self._scene, QRectF(self.rect()))


def _tokens(tokens: float, point: PlanPoint | None, *, fine: bool) -> int:
    if fine and point is not None:
        return max(1, round(tokens / point.block_tokens) * point.block_tokens)
    return nearest_round(tokens)
