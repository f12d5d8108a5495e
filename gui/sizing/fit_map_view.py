"""The tab "Fit map": how far the plan goes in context and requests, or a curve over context."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QHBoxLayout,
    QStackedLayout,
    QToolButton,
    QWidget,
)
from typing_extensions import override

from engine.fit.margin_classes import edges_bytes
from engine.words import tr, tr_later
from gui.kit.charts.fit_picture import CurvePicture, FitMapPicture
from gui.kit.charts.fit_scene import MapScene, PlanPoint, curve_scene
from gui.kit.controls import Ground, Hairline, Segments, label
from gui.sizing import fit_map_words as words
from gui.sizing.fit_map_panel import WIDTH, FitMapPanel
from gui.sizing.fit_map_table import FitTable

if TYPE_CHECKING:
    from PySide6.QtGui import QHideEvent, QResizeEvent, QShowEvent

    from gui.kit.charts.fit_scene import CurveScene
    from gui.kit.theme import Theme
    from gui.sizing.fit_map_model import Answer, FitMapModel
    from gui.sizing.view_model import State

MAP, CURVE = "map", "curve"
_DEFAULT_BLOCK = 16
_NO_MODEL = tr_later("Pick a model on the left: the map shows how far it goes here")
_NO_ANSWER = tr_later("This plan can’t be worked out, so there is no map of it")
_WORKING = tr_later("Working out the map…")


class FitMapView(Ground):
    """Map or curve, as a picture or as a table, and what stands beside it."""

    def __init__(self, model: FitMapModel, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("fit map page")
        self._model = model
        self._theme = theme
        self._shown = MAP
        self._rank: int | None = None
        self._curve_key: tuple[object, ...] = ()
        self._curve: CurveScene | None = None
        self.map = FitMapPicture(theme)
        self.curve = CurvePicture(theme)
        self.table = FitTable()
        self.empty = label("", "secondary", "no map")
        self.empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.panel = FitMapPanel()
        self.choice = Segments("map or curve", ((tr("Map"), MAP), (tr("Curve"), CURVE)))
        self.choice.set_current(MAP)
        self.as_table = QToolButton()
        self.tools = QWidget()
        self._build()
        self._connect()
        self.set_theme(theme)
        self.refresh()

    def _build(self) -> None:
        self.as_table.setObjectName("as table")
        self.as_table.setText(tr("Table"))
        self.as_table.setToolTip(tr("Show the same as figures"))
        self.as_table.setCheckable(True)
        self.as_table.setProperty("role", "chip")
        self.choice.setAccessibleName(tr("Map or curve"))
        tools = QHBoxLayout(self.tools)
        tools.setContentsMargins(0, 0, 0, 0)
        tools.setSpacing(8)
        tools.addWidget(self.choice)
        tools.addWidget(self.as_table)
        pictures = QWidget()
        self._stack = QStackedLayout(pictures)
        figures = self._figures = Ground()
        inside = QHBoxLayout(figures)
        inside.setContentsMargins(0, 0, 12, 0)
        inside.addWidget(self.table)
        for part in (self.empty, self.map, self.curve, figures):
            self._stack.addWidget(part)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        row.addWidget(pictures, 1)
        row.addWidget(Hairline(upright=True))
        row.addWidget(self.panel)

    def _connect(self) -> None:
        self._model.changed.connect(self.refresh)
        self.choice.picked.connect(self._on_picked)
        self.as_table.toggled.connect(self.refresh)
        self.panel.alternative.setChecked(True)
        self.panel.alternative.toggled.connect(self.refresh)
        for picture in (self.map, self.curve):
            picture.tip = self._tip
            picture.moved.connect(self._on_moved)
            picture.drag_ended.connect(self._model.end_drag)

    def set_theme(self, theme: Theme) -> None:
        """Take the colours and fonts of ``theme``."""
        self._theme = theme
        self.map.set_theme(theme)
        self.curve.set_theme(theme)
        self.table.set_theme(theme)
        for tool in (self.choice, self.as_table):
            tool.setFixedHeight(theme.size("control"))
        self._share()
        self.refresh()

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._share()

    def _share(self) -> None:
        """Give the panel what its words want, and no more than the map keeps."""
        self.panel.setFixedWidth(min(self._theme.grown(WIDTH), max(WIDTH, self.width() // 2)))

    def set_rank(self, rank: int) -> None:
        """Whose curve is drawn."""
        self._rank = rank
        self.refresh()

    @property
    def is_curve(self) -> bool:
        """Whether the curve is chosen."""
        return self._shown == CURVE

    @override
    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._model.set_seen(seen=True)

    @override
    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._model.set_seen(seen=False)

    def refresh(self) -> None:
        """Show what the model knows now."""
        state, answer = self._model.state, self._model.answer
        if state.model is None:
            answer = None
        self._show_panel(state, answer)
        if answer is None or state.sizing is None:
            self._show_empty(state)
            return
        point = self._point(state)
        self._show_map(state, answer, point)
        self._show_curve(state, answer, point)
        self._show_table(state, answer)
        if self.as_table.isChecked():
            self._stack.setCurrentWidget(self._figures)
        elif self.is_curve and self._curve is not None:
            self._stack.setCurrentWidget(self.curve)
        elif self.is_curve:
            self.empty.setText(self._why_empty(state))
            self._stack.setCurrentWidget(self.empty)
        else:
            self._stack.setCurrentWidget(self.map)

    def _why_empty(self, state: State) -> str:
        return tr(_NO_ANSWER if state.problem or self._model.has_failed else _WORKING)

    def _show_empty(self, state: State) -> None:
        if state.model is None:
            self.empty.setText(tr(_NO_MODEL))
        else:
            self.empty.setText(self._why_empty(state))
        self._stack.setCurrentWidget(self.empty)

    def _point(self, state: State) -> PlanPoint:
        assert state.sizing is not None  # noqa: S101 - asked only where there is an answer
        block = state.sizing.budget.sequence_state.block_size or _DEFAULT_BLOCK
        requests = state.plan.deployment.concurrency
        return PlanPoint(state.context or 1, requests, words.point_text(state), block)

    def _show_map(self, state: State, answer: Answer, point: PlanPoint) -> None:
        assert state.machine is not None  # noqa: S101 - there is an answer
        name, description = words.summary(state, answer.map)
        other = answer.alternative
        wanted = other is not None and self.panel.alternative.isChecked()
        total = answer.question.machine.slots[0].device.total_bytes
        with_other = ""
        if other is not None:
            with_other = tr("With {cache}").format(cache=words.cache_label(other.name))
        self.map.set_scene(
            MapScene(
                map=answer.map,
                edges_bytes=edges_bytes(total, state.unit),
                point=point,
                alternative=other.line if other and wanted else (),
                alternative_text=with_other,
                other=words.no_figure(answer.map)[0],
                name=name,
                description=description,
            )
        )
        self.map.set_pale(pale=not self._model.is_current)

    def _show_curve(self, state: State, answer: Answer, point: PlanPoint) -> None:
        assert state.sizing is not None  # noqa: S101 - there is an answer
        if answer.curve is None:
            self._curve = None
            self.curve.set_scene(None)
            return
        rank = self._rank_of(state)
        ranks = state.sizing.budget.ranks
        name, description = words.curve_summary(state, ranks[rank])
        key = (answer.curve, rank, state.unit)
        longest = self._curve.longest if self._curve and key == self._curve_key else None
        if state.limits is not None:
            longest = state.limits.max_context
        if self._curve is None or key != self._curve_key:
            self._curve_key = key
            self._curve = curve_scene(
                answer.curve, rank, state.unit, point, longest, (name, description)
            )
        if self._curve is not None:
            self._curve = replace(
                self._curve, point=point, longest=longest, name=name, description=description
            )
        self.curve.set_scene(self._curve)
        self.curve.set_pale(pale=not self._model.curve_is_current)

    def _show_table(self, state: State, answer: Answer) -> None:
        if not self.as_table.isChecked():
            return
        if self.is_curve:
            grid = answer.curve and words.curve_grid(answer.curve, self._rank_of(state), state.unit)
            self.table.show_grid(grid or None, tr("Memory over context, in figures"))
        else:
            grid = words.margin_grid(answer.table, state.unit)
            name = tr("Margin by context and requests at once, in figures")
            self.table.show_grid(grid, name)

    def _rank_of(self, state: State) -> int:
        assert state.sizing is not None  # noqa: S101 - there is an answer
        ranks = state.sizing.budget.ranks
        rank = state.sizing.verdict.binding_rank if self._rank is None else self._rank
        return min(rank, len(ranks) - 1)

    def _show_panel(self, state: State, answer: Answer | None) -> None:
        panel, sizing = self.panel, state.sizing
        panel.setVisible(sizing is not None)
        if sizing is None:
            return
        rows = (
            words.region_rows(sizing, self._rank_of(state), state.unit)
            if self.is_curve
            else words.point_rows(sizing, state.unit)
        )
        panel.figures.show_rows(rows, self._theme)
        for part in (panel.margin_title, panel.colors):
            part.setVisible(not self.is_curve)
        machine = state.machine or state.here
        edges = edges_bytes(machine.slots[0].device.total_bytes, state.unit)
        word, reason = words.no_figure(answer.map) if answer else ("", "")
        panel.colors.show_rows(words.legend(edges, state.unit, word), self._theme)
        panel.reason.setText(f"{word}: {reason}")
        panel.reason.setVisible(bool(reason))
        other = answer.alternative if answer else None
        has_limit = answer is not None and not (answer.map.unknown or answer.map.refused)
        offered = has_limit and other is not None and bool(other.line) and not self.is_curve
        panel.alternative.setVisible(offered)
        if other is not None and other.name:
            limit = tr("Limit with {cache}").format(cache=words.cache_label(other.name))
            panel.alternative.setText(limit)
        panel.hint.setText(tr(words.CURVE_HINT if self.is_curve else words.DRAG_HINT))

    def _tip(self, context: int, requests: int) -> str:
        margin = self._model.margin_bytes(context, requests)
        return words.plan_words(context, requests, margin, self._model.state.unit)

    def _on_picked(self, what: str) -> None:
        self._shown = what
        self.refresh()

    def _on_moved(self, plan: tuple[int, int]) -> None:
        picture = self.curve if self.is_curve else self.map
        self._model.move(*plan, dragging=picture.is_dragging)
