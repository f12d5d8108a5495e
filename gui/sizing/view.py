"""The room where a model is sized: one column from the model's name down to the figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QObject, QPoint, QSize, Qt, Signal
from PySide6.QtWidgets import QSplitter, QVBoxLayout, QWidget
from typing_extensions import override

from engine.overlay.words import summary
from engine.words import tr
from gui.kit.charts.picture import MemoryPicture
from gui.kit.charts.scene import scene_for
from gui.kit.controls import Choice, ElidedLabel, Ground, Hairline, set_role
from gui.kit.veil import Veil
from gui.sizing import present
from gui.sizing.beside_row import BesideRow
from gui.sizing.fit_map_model import FitMapModel
from gui.sizing.fit_map_view import FitMapView
from gui.sizing.header import HeaderBar
from gui.sizing.plan_strip import PlanStrip
from gui.sizing.regions_view import RegionsView
from gui.sizing.tabs import TabPanel
from gui.sizing.verdict_view import VerdictView

if TYPE_CHECKING:
    from PySide6.QtGui import QResizeEvent

    from engine.budget.model import Region
    from engine.overlay.overlay import Overlay
    from gui.kit.theme import Theme
    from gui.sizing.view_model import SizingViewModel, State

_TABS_HEIGHT = 37 + 26 + 10 * 24 + 2
"""Strip, heading and the ten rows of the table."""
_LEAST_REST = 120
"""Of the picture above a page that lies over it: load line, a few names and their figures."""
_MAP_HEIGHT = 37 + 420
"""Strip, and a map with what stands beside it; the picture keeps its least."""


class SizingView(Ground):
    """Header, plan, verdict, picture, tabs."""

    region_selected = Signal(object)

    def __init__(self, model: SizingViewModel, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._model = model
        self._theme = theme
        self._folded_by_user: bool | None = None
        self._laying_out = False
        self._is_low: bool | None = None
        self._is_simple = False
        self._run: QWidget | None = None
        self._overlay: Overlay | None = None
        self._shared_height = _TABS_HEIGHT
        self._notices = QVBoxLayout()
        self._notices.setSpacing(0)
        self.header = HeaderBar()
        self.strip = PlanStrip(model)
        self.beside = BesideRow(model)
        self.remark = ElidedLabel("small", name="remark")
        self.remark.setContentsMargins(16, 0, 16, 8)
        self.remark.set_wraps(wraps=True)
        self.remark.hide()
        self.verdict = VerdictView(model)
        self.picture = MemoryPicture(theme)
        self.picture.setObjectName("picture")
        self.regions = RegionsView()
        self._veils = (Veil(self.picture), Veil(self.regions))
        self.tabs = TabPanel()
        self.tabs.add_page(tr("Regions"), self.regions)
        self.fit_map = FitMapView(FitMapModel(model, model.runner, self), theme)
        self.tabs.add_page(tr("Fit map"), self.fit_map)
        self.rank = Choice("rank")
        self.rank.setAccessibleName(tr("Rank that is explained"))
        self.rank.setVisible(False)
        self.tabs.add_tool(self.rank)
        self.tabs.add_tool(self.fit_map.tools)
        self._build()
        self._connect()
        self.set_theme(theme)
        self.show_state(model.state)

    def _build(self) -> None:
        upper = Ground()
        column = QVBoxLayout(upper)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.verdict)
        column.addWidget(self.picture, 1)
        self._upper = upper
        self._upper_column = column
        self.splitter = QSplitter(Qt.Orientation.Vertical)
        self.splitter.setObjectName("picture and tabs")
        self.splitter.setChildrenCollapsible(False)
        self.splitter.setHandleWidth(1)
        self.splitter.addWidget(upper)
        self.splitter.addWidget(self.tabs)
        self.splitter.setStretchFactor(0, 1)
        self.splitter.setStretchFactor(1, 0)
        self.splitter.setSizes([480, _TABS_HEIGHT])
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.setSpacing(0)
        outer.addLayout(self._notices)
        outer.addWidget(self.header)
        outer.addWidget(self.strip)
        outer.addWidget(self.beside)
        outer.addWidget(self.remark)
        outer.addWidget(Hairline())
        outer.addWidget(self.splitter, 1)
        for part in (self.splitter, self.verdict):
            part.installEventFilter(self)

    def _connect(self) -> None:
        self._model.changed.connect(self.show_state)
        self.strip.refused.connect(self._on_refused)
        self.tabs.folded_changed.connect(self._on_folded_changed)
        self.tabs.current_changed.connect(self._on_page_changed)
        self.regions.region_selected.connect(self.picture.select_region)
        self.regions.region_selected.connect(self.region_selected)
        self.rank.picked.connect(self.regions.set_rank)
        self.rank.picked.connect(self.fit_map.set_rank)
        self.fit_map.choice.picked.connect(self._show_tools)
        self.picture.region_selected.connect(self._on_picture_selected)

    def add_run_verdict(self, verdict: QWidget) -> None:
        """What stands in the place of the plan's verdict while ``show_run`` says so."""
        self._run = verdict
        self._upper_column.insertWidget(0, verdict)
        verdict.installEventFilter(self)
        verdict.hide()

    def add_below_picture(self, strip: QWidget) -> None:
        """Put a strip between the picture and the tabs."""
        self._upper_column.addWidget(strip)

    def show_run(self, *, shown: bool) -> None:
        """Let the words of a run stand in the place of the plan's verdict, or not."""
        if self._run is not None:
            self._run.setVisible(shown)
            self.verdict.setVisible(not shown)
            self._place_pages()

    def add_notice(self, notice: QWidget) -> None:
        """Put a strip above the header."""
        self._notices.addWidget(notice)

    def set_theme(self, theme: Theme) -> None:
        """Take the colours of ``theme``."""
        self._theme = theme
        self.header.set_theme(theme)
        self.strip.set_theme(theme)
        self.beside.set_theme(theme)
        self.verdict.set_theme(theme)
        self.picture.set_theme(theme)
        self.regions.set_theme(theme)
        self.fit_map.set_theme(theme)
        self.tabs.set_theme(theme)
        width = self.fontMetrics().horizontalAdvance(tr("Rank {rank}").format(rank=88)) + 40
        self.rank.set_widths(width, width)

    def show_state(self, state: State) -> None:
        """Show the answer to the plan in force."""
        self.header.show_state(state)
        self.strip.show_state(state)
        self.beside.show_state(state)
        self.verdict.show_state(state)
        self.regions.show_state(state)
        if state.sizing is not None:
            self.picture.set_scene(scene_for(state.sizing, state.unit))
            ranks = state.sizing.budget.ranks
            names = present.rank_names(state.sizing.budget)
            items = [(name, r.rank) for name, r in zip(names, ranks, strict=True)]
            self.rank.set_items(items, self.regions.rank)
            self._show_tools()
        elif state.model is None:
            self.picture.set_scene(None)
        for veil in self._veils:
            veil.lay(laid=state.is_stale)
        self._say(present.remarks(state), wrong=False)

    def show_overlay(self, overlay: Overlay | None) -> None:
        """Show what really happens over what was planned: picture, verdict, regions."""
        unit = self._model.state.unit
        self.picture.show_overlay(overlay, summary(overlay, unit) if overlay else "")
        # While nothing runs, what they say is the plan's, and samples change nothing of it.
        before, self._overlay = self._overlay, overlay
        if any(one is not None and one.is_running for one in (before, overlay)):
            self.verdict.show_overlay(overlay)
            self.regions.show_overlay(overlay)

    def _on_picture_selected(self, region: Region | None) -> None:
        if region is not None:
            self.regions.select(region)

    def _on_refused(self, sentence: str) -> None:
        self._say(sentence or present.remarks(self._model.state), wrong=bool(sentence))

    def _say(self, text: str, *, wrong: bool) -> None:
        set_role(self.remark, "trouble" if wrong else "small")
        self.remark.set_text(text)
        self.remark.setVisible(bool(text))

    def set_low(self, *, low: bool) -> None:
        """Let the tabs lie over the picture for want of room, or beside it."""
        if low == self._is_low:
            return
        self._laying_out = True
        self._is_low = low
        self.tabs.set_floating(self if low else None)
        self.tabs.set_folded(folded=low or bool(self._folded_by_user))
        self._laying_out = False
        self._share_height()
        self._place_pages()

    def set_simple(self, *, simple: bool) -> None:
        """Show what a person plans with and the answer, or all; the plan is as it was."""
        self._is_simple = simple
        self.header.setVisible(not simple)
        self.strip.set_simple(simple=simple)
        if simple:
            self.close_floating()
        self.tabs.setVisible(not simple)
        self._share_height()
        self._place_pages()

    @property
    def is_simple(self) -> bool:
        """Whether only model, machine, context and users are to be seen."""
        return self._is_simple

    def close_floating(self) -> bool:
        """Fold the pages that lie over the picture. Returns whether there were any."""
        was_open = bool(self._is_low) and not self.tabs.is_folded
        if was_open:
            self.tabs.set_folded(folded=True)
        return was_open

    def fold_tabs(self, *, folded: bool | None) -> None:
        """Fold or open the tabs as remembered; None leaves it to the room there is."""
        self._folded_by_user = folded
        if not self._is_low:
            self.tabs.set_folded(folded=bool(folded))

    @property
    def folded_by_user(self) -> bool | None:
        """What the user last did to the tabs; None for nothing."""
        return self._folded_by_user

    @override
    def heightForWidth(self, arg__1: int) -> int:
        """The least it can be used at: what is above it scrolls for no more than that."""
        layout = self.layout()
        return layout.totalMinimumHeightForWidth(arg__1) if layout else -1

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place_pages()

    @override
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        # A notice that goes, or a verdict of more lines, moves what the floating page leaves free.
        if event.type() in (QEvent.Type.Resize, QEvent.Type.Move):
            self._place_pages()
        return super().eventFilter(watched, event)

    def _place_pages(self) -> None:
        if self._is_low and not self.tabs.is_folded:
            bottom = self.height() - self.tabs.strip_height
            room = bottom - self.splitter.y()
            said = self._run if self._run is not None and self.verdict.isHidden() else self.verdict
            below = room - said.height()
            height = min(self._theme.grown(_TABS_HEIGHT) - self.tabs.strip_height, room)
            # A rest of the picture too low to be read is better covered.
            is_rest_low = 0 < below - height < self._theme.grown(_LEAST_REST)
            if self.tabs.wants_all or self._is_map or is_rest_low:
                height = below
            self.tabs.float_at(QPoint(0, bottom - height), QSize(self.width(), height))

    def _share_height(self) -> None:
        alone = self._is_alone
        self.picture.setVisible(not alone)
        if alone:
            self.splitter.setSizes([1, self.splitter.height() - 1])
            return
        low = self._is_low or self.tabs.is_folded
        tabs = self.tabs.strip_height if low else self._wanted_height()
        self.splitter.setSizes([max(1, self.splitter.height() - tabs), tabs])
        self._shared_height = self._wanted_height()

    @property
    def _is_alone(self) -> bool:
        """Whether the open page stands in the picture's place."""
        return self.tabs.wants_all and not self._is_low and not self._is_simple

    def _wanted_height(self) -> int:
        """What the open page would like to have, with the strip."""
        return self._theme.grown(_MAP_HEIGHT if self._is_map else _TABS_HEIGHT)

    @property
    def _is_map(self) -> bool:
        return self.tabs.stack.currentWidget() is self.fit_map

    def _show_tools(self) -> None:
        """Only what the open page heeds stands in the strip."""
        page, sizing = self.tabs.stack.currentWidget(), self._model.state.sizing
        is_map = self._is_map and not self.tabs.is_folded
        heeds_rank = page is self.regions or (is_map and self.fit_map.is_curve)
        self.fit_map.tools.setVisible(is_map)
        self.rank.setVisible(heeds_rank and sizing is not None and len(sizing.budget.ranks) > 1)

    def _on_page_changed(self) -> None:
        if self.picture.isHidden() != self._is_alone or (
            self._shared_height != self._wanted_height()
        ):
            self._share_height()
        self._place_pages()
        self._show_tools()

    def _on_folded_changed(self, folded: bool) -> None:  # noqa: FBT001 - a signal's argument
        if not self._laying_out:
            if not self._is_low:
                self._folded_by_user = folded
            self._share_height()
        self._place_pages()
        self._show_tools()
