"""The one picture as a widget: plan and measurement on one axis.

What only the plan, the theme or the size changes is kept in a pixmap. Nothing is repainted
while nothing happens, and two to four times a second, at most, while samples arrive.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from PySide6.QtCore import QElapsedTimer, QEvent, QPointF, QRectF, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QAccessible, QHelpEvent, QPainter, QPixmap
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget
from typing_extensions import override

from engine.overlay.group import plan_bytes
from engine.words import tr
from gui.kit.charts import painter as paints
from gui.kit.charts.axis import TimeWindow
from gui.kit.charts.hits import region_at
from gui.kit.charts.layout import PictureLayout, Style, lay_out
from gui.kit.charts.measured import Live
from gui.kit.charts.series import Sample, Series
from gui.kit.spoken import speak_as

if TYPE_CHECKING:
    from collections.abc import Mapping

    from PySide6.QtGui import QKeyEvent, QMouseEvent, QPaintEvent, QResizeEvent

    from engine.budget.model import Region
    from engine.overlay.overlay import Overlay
    from engine.telemetry.snapshot import DeviceReading, TelemetrySnapshot
    from gui.kit.charts.scene import PictureScene
    from gui.kit.theme import Theme

_BETWEEN_REPAINTS_MS = 250
_BETWEEN_SLOW_REPAINTS_MS = 500
_SILENCE_S = 10
"""So long without a sample, and the last one is shown with its age."""
_SLOW_FROM_S = 300
"""In a window this long half a second moves nothing by a pixel."""
_WINDOWS_S = (60, 120, 300, 900, 3600)
_DEFAULT_WINDOW_S = 120


class MemoryPicture(QWidget):
    """Shows a ``PictureScene`` and, over it, what this computer's devices hold."""

    region_selected = Signal(object)
    """A ``Region``, or None when nothing is selected any more."""
    region_hovered = Signal(object)
    """A ``Region``, or None."""
    held = Signal(bool)
    """Whether the picture stands still while samples go on being kept."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._style = Style(theme)
        self._scene: PictureScene | None = None
        self._places: PictureLayout | None = None
        self._plan: QPixmap | None = None
        self._series: dict[str, Series] = {}
        self._window_s = _DEFAULT_WINDOW_S
        self._now_s: float | None = None
        self._held_s: float | None = None
        self._live = Live()
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
        before = self._scene.planned if self._scene else None
        self._scene = scene
        if scene is None or scene.planned != before:
            for series in self._series.values():
                series.forget_plan()
        if scene is not None:
            self.setAccessibleName(scene.name)
            self.setAccessibleDescription(scene.description)
        if self._selected is not None and not self._has(self._selected):
            self._selected = None
        self._forget_plan()

    def show_overlay(self, overlay: Overlay | None, sentence: str = "") -> None:
        """Show what the samples tell of the plan's run.

        Args:
            overlay: phases, residue and live cache by rank; None where nothing is known.
            sentence: the same in words, for those who hear the picture.
        """
        self._live = replace(self._live, overlay=overlay)
        if self._scene is not None:
            said = " ".join(filter(None, (self._scene.description, sentence)))
            self.setAccessibleDescription(said)
        has_run = overlay is not None and any(r.run.peaks for r in overlay.ranks)
        if has_run is not self._style.phases:
            self._style = replace(self._style, phases=has_run)
            self._forget_plan()

    def set_theme(self, theme: Theme) -> None:
        """Paint in another scheme or text size."""
        self._style = replace(self._style, theme=theme)
        self._forget_plan()
        self.updateGeometry()

    def append(self, snapshot: TelemetrySnapshot) -> None:
        """Keep a moment of every device; repaint soon if one of them is in the picture."""
        offset = snapshot.wall_time_s - snapshot.monotonic_s
        self._live = replace(self._live, wall_offset_s=offset, age="")
        self._now_s = snapshot.monotonic_s
        self._silent_s = 0
        self._silence.start()
        for device in snapshot.devices:
            series = self._series.setdefault(device.uuid, Series())
            series.append(self._sample(snapshot.monotonic_s, device))
        if self._scene and any(p.uuid in self._series for p in self._scene.panels if p.uuid):
            self._repaint_soon()

    def set_window_seconds(self, seconds: int) -> None:
        """Show the last ``seconds``."""
        self._window_s = seconds
        self.update()

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

    def toggle_hold(self) -> None:
        """Let the picture stand still, or follow the newest sample again."""
        self._held_s = self._now_s if self._held_s is None else None
        self.held.emit(self._held_s is not None)
        self.update()

    @property
    def series(self) -> Mapping[str, Series]:
        """The samples kept, by device uuid."""
        return self._series

    @property
    def between_repaints_ms(self) -> int:
        """The least time from one repaint to the next while samples arrive."""
        is_slow = self._window_s >= _SLOW_FROM_S
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
        window = self._window() if self._scene and self._scene.is_here else None
        unit = self._scene.unit if self._scene else self._live.unit
        return replace(self._live, series=self._series, window=window, selected=region, unit=unit)

    def _window(self) -> TimeWindow:
        end = self._now_s if self._held_s is None else self._held_s
        if end is None:
            end = time.monotonic()
        return TimeWindow(end - self._window_s, end)

    def _sample(self, time_s: float, device: DeviceReading) -> Sample:
        used = device.used_bytes if isinstance(device.used_bytes, int) else None
        plan = plan_bytes(device, self._scene.planned) if self._scene else None
        return Sample(time_s, used, plan, self._live_kv_bytes(device.uuid))

    def _live_kv_bytes(self, uuid: str) -> int | None:
        """What live tokens use of the cache on a device, where the runtime states it."""
        ranks = self._live.overlay.ranks if self._live.overlay else ()
        found = next((r for r in ranks if r.uuid == uuid and r.run.is_running), None)
        return found.kv_live_bytes if found and isinstance(found.kv_live_bytes, int) else None

    def _on_silence(self) -> None:
        """Nothing was sampled for a while: say so, and how long."""
        self._silent_s += _SILENCE_S
        minutes, seconds = divmod(self._silent_s, 60)
        age = tr("{time} min") if minutes else tr("{time} s")
        age = age.format(time=minutes or seconds)
        if age != self._live.age:
            self._live = replace(self._live, age=age)
            self.update()

    def _repaint_soon(self) -> None:
        if self._held_s is not None or self._later.isActive():
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

    @override
    def mouseMoveEvent(self, event: QMouseEvent) -> None:
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

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        actions = {
            Qt.Key.Key_Up: lambda: self._step_region(1),
            Qt.Key.Key_Down: lambda: self._step_region(-1),
            Qt.Key.Key_Left: lambda: self._step_time(-1),
            Qt.Key.Key_Right: lambda: self._step_time(1),
            Qt.Key.Key_Space: self.toggle_hold,
            Qt.Key.Key_Plus: lambda: self._zoom(-1),
            Qt.Key.Key_Minus: lambda: self._zoom(1),
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
        region = self._region_at(QPointF(event.pos()))
        segments = (p.segment(region) for p in self._scene.panels) if self._scene and region else ()
        segment = next((s for s in segments if s), None)
        QToolTip.showText(event.globalPos(), segment.tooltip if segment else "", self)

    def _has_choice(self) -> bool:
        return self._selected is not None or self._live.hover_s is not None

    def _region_at(self, place: QPointF) -> Region | None:
        return region_at(self._places, place) if self._places else None

    def _time_at(self, place: QPointF) -> float | None:
        window = self._seen().window
        if self._places is None or window is None:
            return None
        rects = (p.time for p in self._places.panels if p.panel.uuid in self._series)
        rect = next((r for r in rects if r.contains(place)), None)
        return window.time_at(place.x(), rect) if rect else None

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

    def _step_time(self, step: int) -> None:
        window = self._seen().window
        if window is None or not self._series:
            return
        moment = window.end_s if self._live.hover_s is None else self._live.hover_s
        moment += step * (window.end_s - window.start_s) / 60
        self._hover_time(min(max(moment, window.start_s), window.end_s))

    def _zoom(self, step: int) -> None:
        nearest = min(_WINDOWS_S, key=lambda s: abs(s - self._window_s))
        index = min(max(_WINDOWS_S.index(nearest) + step, 0), len(_WINDOWS_S) - 1)
        self.set_window_seconds(_WINDOWS_S[index])
