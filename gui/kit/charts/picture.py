"""The one picture as a widget: plan and measurement on one axis.

What only the plan, the theme or the size changes is kept in a pixmap. Nothing is repainted
while nothing happens, and two to four times a second, at most, while samples arrive.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from PySide6.QtCore import QElapsedTimer, QEvent, QPointF, QRectF, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QAccessible, QHelpEvent, QPainter, QPixmap
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget
from typing_extensions import override

from engine.words import tr
from gui.kit.charts import measured, newest, strains, tips
from gui.kit.charts import painter as paints
from gui.kit.charts.hits import region_at
from gui.kit.charts.kept import Kept
from gui.kit.charts.layout import PictureLayout, Style, lay_out
from gui.kit.charts.measured import Live
from gui.kit.charts.time_shown import TimeShown
from gui.kit.charts.time_view import SPANS_S
from gui.kit.spoken import announce, speak_as

if TYPE_CHECKING:
    from collections.abc import Mapping

    from PySide6.QtGui import QKeyEvent, QMouseEvent, QPaintEvent, QResizeEvent, QWheelEvent

    from engine.budget.model import Region
    from engine.overlay.group import Planned
    from engine.overlay.overlay import Overlay
    from engine.telemetry.markers import Marker
    from engine.telemetry.snapshot import TelemetrySnapshot
    from gui.kit.charts.scene import PictureScene
    from gui.kit.charts.series import Series
    from gui.kit.theme import Theme

_BETWEEN_REPAINTS_MS = 250
_BETWEEN_SLOW_REPAINTS_MS = 500
_SILENCE_S = 10
"""So long without a sample, and the last one is shown with its age."""
_SLOW_FROM_S = 300
"""In a window this long half a second moves nothing by a pixel."""
_WHEEL_FACTOR = 1.25
_WHEEL_NOTCH = 120
_PAN_SHARE = 0.25
"""Of the window, that one key moves it by."""
_DRAG_FROM_PX = 4
_SHIFT = Qt.KeyboardModifier.ShiftModifier


class MemoryPicture(TimeShown):
    """Shows a ``PictureScene`` and, over it, what this computer's devices hold."""

    region_selected = Signal(object)
    """A ``Region``, or None when nothing is selected any more."""
    region_hovered = Signal(object)
    """A ``Region``, or None."""
    resized = Signal()
    measured_changed = Signal()
    """A first sample came, or another plan or source: whether there is time to look about in."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._style = Style(theme)
        self._scene: PictureScene | None = None
        self._places: PictureLayout | None = None
        self._plan: QPixmap | None = None
        self._is_recorded = False
        self._grip: tuple[QPointF, float] | None = None
        """Where the chart was taken, and the moment that was there."""
        self._live = Live()
        self._run_words = ""
        """What the overlay says in words."""
        self._selected: Region | None = None
        self._hovered: Region | None = None
        self._since_repaint = QElapsedTimer()
        self._later = QTimer(self, singleShot=True)
        self._later.timeout.connect(self.update)
        self._silent_s = 0
        self._silence = QTimer(self, interval=_SILENCE_S * 1000)
        self._silence.timeout.connect(self._on_silence)
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.setAccessibleName(tr("Memory picture"))
        speak_as(self, QAccessible.Role.Chart)

    def set_scene(self, scene: PictureScene | None) -> None:
        """Show another plan; None shows an empty ground. Samples are kept."""
        before = self.planned
        self._scene = scene
        if scene is None or scene.planned != before:
            self.kept.forget_plan()
        if scene is not None:
            self.setAccessibleName(scene.name)
            self._describe()
        if self._selected is not None and not self._has(self._selected):
            self._selected = None
        self._forget_plan()
        self.measured_changed.emit()

    def show_overlay(self, overlay: Overlay | None, sentence: str = "") -> None:
        """Show what the samples tell of the plan's run.

        Args:
            overlay: phases, residue and live cache by rank; None where nothing is known.
            sentence: the same in words, for those who hear the picture.
        """
        self._live = replace(self._live, overlay=overlay)
        self._run_words = sentence
        self._describe()
        has_run = overlay is not None and any(r.run.peaks for r in overlay.ranks)
        if has_run is not self._style.phases:
            self._style = replace(self._style, phases=has_run)
            self._forget_plan()

    def _describe(self) -> None:
        """Tell those who hear the picture what is planned, how it runs, and what runs short."""
        if self._scene is not None:
            panels, seen = self._scene.panels, self._seen()
            now = (newest.sentence(panels, seen), strains.sentence(panels, seen))
            said = " ".join(filter(None, (self._scene.description, self._run_words, *now)))
            if said != self.accessibleDescription():
                self.setAccessibleDescription(said)

    def set_theme(self, theme: Theme) -> None:
        """Paint in another scheme or text size."""
        self._style = replace(self._style, theme=theme)
        self._forget_plan()
        self.updateGeometry()

    def append(self, snapshot: TelemetrySnapshot) -> None:
        """Keep a moment of every device; repaint soon if one of them is in the picture.

        Of a recording that was read whole everything is kept already.
        """
        if self._is_recorded:
            return
        is_first = not self.kept.series
        self.kept.append(snapshot, self.planned, self._live_kv())
        if is_first:
            self.measured_changed.emit()
        self._live = replace(self._live, age="")
        self._silent_s = 0
        self._silence.start()
        if any(uuid in self.kept.series for uuid in self.uuids):
            self._describe()
            self._repaint_soon()

    def show_recording(self, kept: Kept, at_s: float) -> None:
        """Show what was ``kept`` of a whole recording; ``follow`` says where it is."""
        self.kept = kept
        if not self._is_recorded:
            self._release()
        self._is_recorded = True
        self._silence.stop()
        self.follow(at_s)
        self.measured_changed.emit()

    def follow(self, at_s: float) -> None:
        """A recording has come to ``at_s``."""
        self.kept.now_s = at_s
        self._live = replace(self._live, age="")
        self._describe()
        self._repaint_soon()

    def forget_samples(self) -> None:
        """Begin with nothing: another source is sampled from now on."""
        self.kept, self._is_recorded = Kept(), False
        self._release()
        self._hover_time(None)
        self.update()
        self.measured_changed.emit()

    @property
    def planned(self) -> Planned | None:
        """Whose processes are the plan's."""
        return self._scene.planned if self._scene else None

    @property
    def seen(self) -> Live:
        """All that is painted over the plan now."""
        return self._seen()

    @property
    def has_time(self) -> bool:
        """Whether the picture has a measured part to look about in."""
        return self._seen().window is not None and any(
            uuid in self.kept.series for uuid in self.uuids
        )

    @property
    @override
    def uuids(self) -> tuple[str, ...]:
        return tuple(self.titles)

    @property
    def titles(self) -> dict[str, str]:
        """What the devices are called, by uuid."""
        panels = self._scene.panels if self._scene else ()
        return {panel.uuid: panel.title for panel in panels if panel.uuid}

    @property
    def cursor_s(self) -> float | None:
        """The moment under the cursor."""
        return self._live.hover_s

    def mark(self, marker: Marker) -> None:
        """Set a marker."""
        self.kept.mark(self.kept.moments.place_of(marker.monotonic_s), marker)
        self.update()

    def go_to(self, time_s: float) -> None:
        """Bring a moment into the middle of the window, with the cursor on it."""
        window = self.window_now()
        if not window.start_s <= time_s <= window.end_s:
            self.pan((time_s - window.end_s) / self._view.span_s + 0.5)
        self._hover_time(time_s)

    def select_region(self, region: Region | None) -> None:
        """Give a region's band its full tint, as the tables do when a row is selected."""
        if region is not self._selected:
            self._selected = region
            self.update()

    def explain(self, *, explains: bool) -> None:
        """Show or put away the notes of the first start."""
        if explains is not self._live.explains:
            self._live = replace(self._live, explains=explains)
            self.update()

    @property
    def is_explaining(self) -> bool:
        """Whether the notes of the first start are shown where there is room."""
        return self._live.explains

    def toggle_lens(self) -> None:
        """Close the lens, or let the width decide again."""
        self._style = replace(self._style, lens=False if self._style.lens is None else None)
        self._forget_plan()

    @property
    def series(self) -> Mapping[str, Series]:
        """The samples kept, by device uuid."""
        return self.kept.series

    @property
    def between_repaints_ms(self) -> int:
        """The least time from one repaint to the next while samples arrive."""
        is_slow = self._view.span_s >= _SLOW_FROM_S
        return _BETWEEN_SLOW_REPAINTS_MS if is_slow else _BETWEEN_REPAINTS_MS

    @override
    def sizeHint(self) -> QSize:
        return QSize(1100, 330)

    @override
    def minimumSizeHint(self) -> QSize:
        # The labels grow with the text, the picture need not as much.
        return QSize(480, round(190 + 114 * (self._style.theme.text_scale - 1)))

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        ratio = self.devicePixelRatioF()
        if self._scene is None:
            painter.fillRect(self.rect(), self._style.theme.color("surface.base"))
            return
        if self._places is None:
            self._places = lay_out(self._scene, QRectF(self.rect()), self._style)
        if self._plan is None or self._plan.devicePixelRatio() != ratio:
            self._plan = self._painted_plan(ratio)
        painter.drawPixmap(0, 0, self._plan)
        paints.paint_live(painter, self._scene, self._places, self._style, self._seen())
        self._since_repaint.start()

    def paint_whole(self, painter: QPainter, *, paper: bool = False) -> None:
        """Paint all that is shown now elsewhere; on ``paper`` as lines alone."""
        painter.fillRect(self.rect(), self._style.theme.color("surface.base"))
        if self._scene is not None:
            style = replace(self._style, paper=paper)
            places = lay_out(self._scene, QRectF(self.rect()), style)
            paints.paint(painter, self._scene, places, style, self._seen())

    def _painted_plan(self, ratio: float) -> QPixmap:
        pixmap = QPixmap((QRectF(self.rect()).size() * ratio).toSize())
        pixmap.setDevicePixelRatio(ratio)
        pixmap.fill(self._style.theme.color("surface.base"))
        painter = QPainter(pixmap)
        if self._scene and self._places:
            paints.paint_plan(painter, self._scene, self._places, self._style)
        painter.end()
        return pixmap

    def _seen(self) -> Live:
        region = self._hovered if self._hovered is not None else self._selected
        window = self.window_now() if self._scene and self._scene.is_here else None
        unit = self._scene.unit if self._scene else self._live.unit
        return replace(
            self._live, series=self.kept.series, window=window, selected=region, unit=unit,
            wall_offset_s=self.kept.wall_offset_s, markers=tuple(self.kept.markers),
            strains=self.kept.strains.all,
            shift_s=self._shift_s(),
        )  # fmt: skip

    def _shift_s(self) -> float:
        """How far the axis is from the clock of the samples: sleep has its length on it."""
        overlay, now = self._live.overlay, self.kept.now_s
        return now - overlay.time_s if overlay and now is not None else 0.0

    def _live_kv(self) -> dict[str, int]:
        """What live tokens use of the cache by device, where the runtime states it."""
        ranks = self._live.overlay.ranks if self._live.overlay else ()
        return {
            rank.uuid: rank.kv_live_bytes
            for rank in ranks
            if rank.run.is_running and isinstance(rank.kv_live_bytes, int)
        }

    def _on_silence(self) -> None:
        """Nothing was sampled for a while: say so, and how long."""
        self._silent_s += _SILENCE_S
        age = newest.age_words(self._silent_s)
        if age != self._live.age:
            self._live = replace(self._live, age=age)
            self.update()

    def _repaint_soon(self) -> None:
        if self._view.held_s is not None or self._later.isActive():
            return
        waited = self._since_repaint.elapsed() if self._since_repaint.isValid() else 10**6
        if waited >= self.between_repaints_ms:
            self.update()
        else:
            self._later.start(int(self.between_repaints_ms - waited))

    def _forget_plan(self) -> None:
        self._places = self._plan = None
        self.update()

    def _has(self, region: Region) -> bool:
        return bool(self._scene and any(p.segment(region) for p in self._scene.panels))

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        self._forget_plan()
        self.resized.emit()

    @override
    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self._grip is not None and event.buttons() & Qt.MouseButton.LeftButton:
            self._drag(event.position())
            return
        self._hover_region(self._region_at(event.position()))
        self._hover_time(self._time_at(event.position()))

    @override
    def leaveEvent(self, event: QEvent) -> None:
        self._hover_region(None)
        self._hover_time(None)

    @override
    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton:
            self._choose(self._region_at(event.position()))
            moment = self._time_at(event.position())
            self._grip = (event.position(), moment) if moment is not None else None

    @override
    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        self._grip = None

    @override
    def wheelEvent(self, event: QWheelEvent) -> None:
        moment = self._time_at(event.position())
        turned = event.angleDelta()
        if moment is None:
            event.ignore()
        elif abs(turned.x()) > abs(turned.y()) or event.modifiers() & _SHIFT:
            self.pan(-(turned.x() or turned.y()) / _WHEEL_NOTCH * _PAN_SHARE / 2)
        else:
            factor = _WHEEL_FACTOR ** (-turned.y() / _WHEEL_NOTCH)
            self.zoom_by(factor, moment)

    def _drag(self, place: QPointF) -> None:
        """Let the moment that was taken stay under the pointer."""
        rect = self._time_rect(place.y())
        if self._grip is None or rect is None:
            return
        if abs(place.x() - self._grip[0].x()) < _DRAG_FROM_PX and self._view.held_s is None:
            return
        under = self.window_now().time_at(place.x(), rect)
        self.pan((self._grip[1] - under) / self._view.span_s)

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        is_far = bool(event.modifiers() & (Qt.KeyboardModifier.ControlModifier | _SHIFT))
        actions = {
            Qt.Key.Key_Up: lambda: self._step_region(1),
            Qt.Key.Key_Down: lambda: self._step_region(-1),
            Qt.Key.Key_Left: lambda: self._step_time(-1, is_far=is_far),
            Qt.Key.Key_Right: lambda: self._step_time(1, is_far=is_far),
            Qt.Key.Key_Home: lambda: self.pan(-SPANS_S[-1]),
            Qt.Key.Key_End: self.follow_newest,
            Qt.Key.Key_Space: self.toggle_hold,
            Qt.Key.Key_Plus: lambda: self.zoom(-1),
            Qt.Key.Key_Minus: lambda: self.zoom(1),
        }
        action = actions.get(Qt.Key(event.key()))
        if action is not None:
            action()
        elif event.key() == Qt.Key.Key_Escape and self._has_choice():
            self._choose(None)
            self._hover_time(None)
        else:
            super().keyPressEvent(event)

    @override
    def event(self, event: QEvent) -> bool:
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            self._show_tip(event)
            return True
        return super().event(event)

    def _show_tip(self, event: QHelpEvent) -> None:
        scene, places = self._scene, self._places
        point = QPointF(event.pos())
        said = tips.at(scene, places, self._seen(), point) if scene and places else ""
        QToolTip.showText(event.globalPos(), said, self)

    def _has_choice(self) -> bool:
        return self._selected is not None or self._live.hover_s is not None

    def _region_at(self, place: QPointF) -> Region | None:
        return region_at(self._places, place) if self._places else None

    def _time_at(self, place: QPointF) -> float | None:
        window = self._seen().window
        rect = self._time_rect(place.y(), place.x())
        return window.time_at(place.x(), rect) if rect and window else None

    def _time_rect(self, y: float, x: float | None = None) -> QRectF | None:
        """The time chart at a height (and a place across), of a device that is measured."""
        if self._places is None:
            return None
        rects = (p.time for p in self._places.panels if p.panel.uuid in self.kept.series)
        inside = (r for r in rects if r.contains(QPointF(r.center().x() if x is None else x, y)))
        return next(inside, None)

    def _hover_region(self, region: Region | None) -> None:
        if region is not self._hovered:
            self._hovered = region
            self.region_hovered.emit(region)
            self.update()

    def _hover_time(self, time_s: float | None) -> None:
        if time_s != self._live.hover_s:
            self._live = replace(self._live, hover_s=time_s)
            self.update()

    def _choose(self, region: Region | None) -> None:
        self.select_region(region)
        self.region_selected.emit(region)

    def _step_region(self, step: int) -> None:
        if not self._scene:
            return
        regions = [s.region for s in self._scene.panels[0].segments]
        if not regions:
            return
        if self._selected is not None and self._selected in regions:
            index = min(max(regions.index(self._selected) + step, 0), len(regions) - 1)
        else:
            index = 0 if step > 0 else len(regions) - 1
        self._choose(regions[index])

    def _step_time(self, step: int, *, is_far: bool) -> None:
        """Move the cursor by a sixtieth of the window, or the window by a quarter."""
        window = self._seen().window
        if window is None or not self.kept.series:
            return
        if is_far:
            self.pan(step * _PAN_SHARE)
            return
        moment = window.end_s if self._live.hover_s is None else self._live.hover_s
        moment += step * (window.end_s - window.start_s) / 60
        self._hover_time(min(max(moment, window.start_s), window.end_s))
        announce(self, self.cursor_words())

    def cursor_words(self) -> str:
        """What is known of the moment under the cursor, as one sentence; empty without one."""
        seen = self._seen()
        return measured.sentence(self._scene.panels, seen) if self._scene else ""
