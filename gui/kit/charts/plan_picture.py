"""A picture over context and requests on which the plan is a point that can be moved.

What stays while the plan moves is kept in a pixmap: a drag repaints the point.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QAccessible, QHelpEvent, QPainter, QPixmap
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget
from typing_extensions import override

from gui.kit.charts.fit_scene import CurveScene, MapScene
from gui.kit.charts.layout import Style
from gui.kit.charts.log_axis import stepped
from gui.kit.charts.pens import Canvas
from gui.kit.spoken import speak_as

if TYPE_CHECKING:
    from collections.abc import Callable

    from PySide6.QtGui import QKeyEvent, QMouseEvent, QPaintEvent, QResizeEvent

    from gui.kit.charts.fit_scene import PlanPoint
    from gui.kit.theme import Theme

SceneT = TypeVar("SceneT", MapScene, CurveScene)

_PALE = 0.35
_GRIP = 20
"""Pixels round the point from which it can be taken."""
_ARROWS = {
    Qt.Key.Key_Left: (-1, 0),
    Qt.Key.Key_Right: (1, 0),
    Qt.Key.Key_Down: (0, -1),
    Qt.Key.Key_Up: (0, 1),
}


class PlanPicture(QWidget, Generic[SceneT]):
    """What map and curve have in common: theme, focus, dragging, keys."""

    moved = Signal(object)
    """The context and the requests (two ``int``) that the user moved the plan to."""
    drag_ended = Signal()

    def __init__(self, name: str, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName(name)
        self.tip: Callable[[int, int], str] = _no_words
        """What to say of a plan that is pointed at."""
        self._scene: SceneT | None = None
        self._style = Style(theme)
        self._ground: QPixmap | None = None
        self._is_pale = False
        self._is_dragging = False
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        speak_as(self, QAccessible.Role.Chart)

    def set_theme(self, theme: Theme) -> None:
        """Paint in another scheme or text size."""
        self._style = Style(theme)
        self.forget_ground()

    @property
    def theme(self) -> Theme:
        """The scheme it is painted in."""
        return self._style.theme

    def set_pale(self, *, pale: bool) -> None:
        """Whether the picture belongs to an earlier plan."""
        if pale is not self._is_pale:
            self._is_pale = pale
            self.update()

    @property
    def is_pale(self) -> bool:
        """Whether the picture belongs to an earlier plan."""
        return self._is_pale

    @property
    def scene(self) -> SceneT | None:
        """What is shown."""
        return self._scene

    def set_scene(self, scene: SceneT | None) -> None:
        """Show ``scene``; None shows an empty ground."""
        before, self._scene = self._scene, scene
        if scene is None or before is None or before.ground != scene.ground:
            self.forget_ground()
        self.update()
        if scene is not None:
            self.setAccessibleName(scene.name)
            self.setAccessibleDescription(scene.description)

    def point(self) -> PlanPoint | None:
        """The plan in force, where there is a picture."""
        return self._scene.point if self._scene else None

    def place_of(self, context: int, requests: int) -> QPointF:
        """Where a plan stands on the widget."""
        raise NotImplementedError

    def plan_at(self, place: QPointF, *, fine: bool) -> tuple[int, int]:
        """The plan nearest to a place, in round numbers unless ``fine``."""
        raise NotImplementedError

    def limits(self) -> tuple[int, int, int]:
        """Least and most tokens, and most requests, that the plan can be moved to."""
        raise NotImplementedError

    def paint_ground(self, canvas: Canvas) -> None:
        """What stays while the plan moves."""
        raise NotImplementedError

    def paint_over(self, canvas: Canvas) -> None:
        """The plan."""
        raise NotImplementedError

    @override
    def sizeHint(self) -> QSize:
        return QSize(780, 360)

    @override
    def minimumSizeHint(self) -> QSize:
        return QSize(360, 160)

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        theme = self._style.theme
        painter.fillRect(self.rect(), theme.color("surface.base"))
        if self.point() is not None:
            painter.setOpacity(_PALE if self._is_pale else 1)
            painter.drawPixmap(0, 0, self._painted_ground())
            self.paint_over(Canvas(painter, self._style))

    def _painted_ground(self) -> QPixmap:
        ratio = self.devicePixelRatioF()
        if self._ground is None or self._ground.devicePixelRatio() != ratio:
            self._ground = QPixmap((QRectF(self.rect()).size() * ratio).toSize())
            self._ground.setDevicePixelRatio(ratio)
            self._ground.fill(self._style.theme.color("surface.base"))
            painter = QPainter(self._ground)
            self.paint_ground(Canvas(painter, self._style))
            painter.end()
        return self._ground

    def forget_ground(self) -> None:
        """Paint all anew."""
        self._ground = None
        self.update()

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.forget_ground()

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        arrow, point = _ARROWS.get(Qt.Key(event.key())), self.point()
        if arrow is None or point is None:
            super().keyPressEvent(event)
            return
        fine = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        least, most, most_requests = self.limits()
        context, requests = point.context, point.requests
        across, up = arrow
        if across and fine:
            context = _block_on(context, across, point.block_tokens)
        elif across:
            context = stepped(context, across, rounded=True)
        if up:
            requests = requests + up if fine else stepped(requests, up, rounded=False)
        context = min(max(context, least), most)
        requests = min(max(requests, 1), most_requests)
        self.moved.emit((context, requests))

    @override
    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton and self._is_on_point(event.position()):
            self._is_dragging = True
            self.setCursor(Qt.CursorShape.ClosedHandCursor)

    @override
    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if not self._is_dragging:
            on = self._is_on_point(event.position())
            self.setCursor(Qt.CursorShape.OpenHandCursor if on else Qt.CursorShape.ArrowCursor)
            return
        fine = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        plan, point = self.plan_at(event.position(), fine=fine), self.point()
        if point is not None and plan != (point.context, point.requests):
            self.moved.emit(plan)

    @override
    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if self._is_dragging and event.button() == Qt.MouseButton.LeftButton:
            self._is_dragging = False
            self.setCursor(Qt.CursorShape.OpenHandCursor)
            self.drag_ended.emit()

    @property
    def is_dragging(self) -> bool:
        """Whether the point is held."""
        return self._is_dragging

    @override
    def event(self, event: QEvent) -> bool:
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            words = ""
            if self.point() is not None and not self._is_dragging:
                words = self.tip(*self.plan_at(QPointF(event.pos()), fine=False))
            QToolTip.showText(event.globalPos(), words, self)
            return True
        return super().event(event)

    def _is_on_point(self, place: QPointF) -> bool:
        point = self.point()
        if point is None:
            return False
        off = place - self.place_of(point.context, point.requests)
        return off.x() ** 2 + off.y() ** 2 <= _GRIP**2


def _block_on(tokens: int, steps: int, block: int) -> int:
    """The next multiple of a block, or the one before."""
    return (tokens // block + 1) * block if steps > 0 else (tokens - 1) // block * block


def _no_words(_context: int, _requests: int) -> str:
    return ""
