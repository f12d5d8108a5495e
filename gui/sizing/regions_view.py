"""The tab Regions: the table, and beside it the pane that explains the selected region."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from PySide6.QtCore import QModelIndex, QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFontMetrics, QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHBoxLayout,
    QLabel,
    QScrollArea,
    QStyle,
    QStyleOptionViewItem,
    QTableView,
    QVBoxLayout,
    QWidget,
)
from typing_extensions import override

from engine.budget.model import Region
from engine.words import tr
from gui.kit.charts import inks
from gui.kit.controls import ElidedLabel, Ground, Hairline, label, running_text
from gui.kit.figures_table import EDGE, SWATCH, Index, RowDelegate, dress, paint_swatch, set_heights
from gui.sizing import explain, present, running
from gui.sizing.regions_model import RegionsModel

if TYPE_CHECKING:
    from engine.overlay.overlay import Overlay
    from gui.kit.theme import Theme
    from gui.sizing.view_model import State

_FORMULA_FROM = 1100
"""Width of the whole room from which the table has room for how each figure is worked out."""
_LEAST_FORMULA = 160
_LEAST_COLUMN = 40
_BESIDE_NUMBER = 8
_DETAIL = 337
_MOST_COLUMNS = 8
"""Ranks side by side; more are shown one at a time."""
_WIDTHS = {
    "region": 144,
    "size": 72,
    "rank": 72,
    "span": 104,
    "least": 76,
    "basis": 100,
    "planned": 96,
    "measured": 104,
    "difference": 84,
    "known from": 116,
}


class _Delegate(RowDelegate):
    """Hairlines and swatches."""

    @override
    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        if self.theme is None:
            return
        model = cast("RegionsModel", index.model())
        cell = model.cell(index)
        if cell is None:
            return
        row, theme = cell.row, self.theme
        place: QRect = option.rect  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType]  # public in Qt, absent from the stubs
        state = option.state  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType]  # public in Qt, absent from the stubs
        is_selected = bool(state & QStyle.StateFlag.State_Selected)
        is_region = row.region is not None
        self.paint_ground(painter, place, theme, selected=is_selected, ruled=is_region)
        inside = place.adjusted(
            EDGE if index.column() == 0 else _BESIDE_NUMBER, 0, -_BESIDE_NUMBER, -1
        )
        if index.column() == 0 and row.region is not None:
            painter.save()
            painter.setOpacity(0.55 if row.is_absent else 1.0)
            paint_swatch(painter, inside, row.region, theme)
            painter.restore()
        painter.setFont(cell.font)
        painter.setPen(cell.color)
        text = cell.text
        if not cell.alignment & Qt.AlignmentFlag.AlignRight:
            metrics = QFontMetrics(cell.font)
            text = metrics.elidedText(text, Qt.TextElideMode.ElideRight, inside.width())
        painter.drawText(inside, cell.alignment, text)


class RegionTable(QTableView):
    """The rows; the selection is a region."""

    region_selected = Signal(object)
    """The ``Region`` selected, or None for the load line."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("regions")
        self.setAccessibleName(tr("Regions of memory"))
        self._rows = RegionsModel(self)
        self._delegate = _Delegate(self)
        self._formula_wanted = True
        self._given: dict[int, int] = {}
        self.setModel(self._rows)
        self.setItemDelegate(self._delegate)
        dress(self)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAsNeeded)
        self.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.horizontalHeader().setTextElideMode(Qt.TextElideMode.ElideRight)
        self.selectionModel().currentRowChanged.connect(self._on_current_changed)

    @property
    def rows(self) -> RegionsModel:
        """The item model."""
        return self._rows

    def set_theme(self, theme: Theme) -> None:
        """Take colours, fonts and row height of ``theme``."""
        self._delegate.theme = theme
        self._rows.set_theme(theme)
        set_heights(self, theme)
        self._lay_out()

    def show_rows(
        self, rows: tuple[present.RegionRow, ...], unit: str, ranks: tuple[str, ...] = ()
    ) -> None:
        """Show ``rows`` and keep the region that was selected."""
        kept = self.current_region
        had_any = self.currentIndex().isValid()
        is_other = self._rows.set_rows(rows, unit, ranks)
        if is_other or self._least_widths() != self._given:
            self._lay_out()
        if is_other and had_any:
            self.select(kept)

    @property
    def current_region(self) -> Region | None:
        """The selected region; None for the load line or nothing."""
        row = self._rows.row_at(self.currentIndex().row())
        return row.region if row else None

    def select(self, region: Region | None) -> None:
        """Select the row of ``region``."""
        index = self._rows.index_of(region)
        if index >= 0 and index != self.currentIndex().row():
            self.selectRow(index)

    def want_formula(self, *, wanted: bool) -> None:
        """Show or hide the last column."""
        self._formula_wanted = wanted
        self._lay_out()

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._lay_out()

    def _lay_out(self) -> None:
        columns = self._rows.columns
        head = self.horizontalHeader()
        grown = self._delegate.theme.grown if self._delegate.theme else round
        widths = {i: grown(_WIDTHS[c.key]) for i, c in enumerate(columns) if c.key != "note"}
        self._given = self._least_widths()
        widths |= {i: max(width, widths[i]) for i, width in self._given.items()}
        left = self.viewport().width() - sum(widths.values())
        last = len(columns) - 1
        hidden = not self._formula_wanted or left < grown(_LEAST_FORMULA)
        if hidden and widths:
            # What is over goes to the last column; what is missing comes from the first, as
            # far as its names allow. Then the table scrolls.
            widths[last - 1 if left > 0 else 0] += left
            widths[0] = max(widths[0], self._least_name_width())
        for i, width in widths.items():
            head.resizeSection(i, max(grown(_LEAST_COLUMN), width))
        for i in range(len(columns)):
            self.setColumnHidden(i, hidden and i == last)
        head.resizeSection(last, max(grown(_LEAST_FORMULA), left))

    def _least_widths(self) -> dict[int, int]:
        """What the numbers of each column take: they are never cut."""
        found: dict[int, int] = {}
        for place, column in enumerate(self._rows.columns):
            if column.is_number:
                indexes = (self._rows.index(row, place) for row in range(self._rows.rowCount()))
                cells = filter(None, map(self._rows.cell, indexes))
                widths = (QFontMetrics(c.font).horizontalAdvance(c.text) for c in cells)
                found[place] = max(widths, default=0) + 2 * _BESIDE_NUMBER
        return found

    def _least_name_width(self) -> int:
        metrics = QFontMetrics(self.font())
        names = (metrics.horizontalAdvance(region.label) for region in Region)
        return max(names) + 16 + SWATCH + 16

    def _on_current_changed(self, current: QModelIndex, _previous: QModelIndex) -> None:
        if current.isValid():
            self.region_selected.emit(self.current_region)


class _Swatch(QWidget):
    """A region's swatch beside its name."""

    def __init__(self) -> None:
        super().__init__()
        self.setFixedSize(SWATCH, SWATCH)
        self.region: Region | None = None
        self.theme: Theme | None = None

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        if self.theme is None:
            return
        painter = QPainter(self)
        if self.region is not None:
            inks.rounded_swatch(painter, QRectF(self.rect()), self.region, self.theme)
            return
        painter.setPen(QPen(self.theme.color("chart.loadline"), 2))
        painter.drawLine(0, SWATCH // 2, SWATCH, SWATCH // 2)


class DetailPane(QScrollArea):
    """Formula with the numbers put in, exact bytes, source, and why more is held."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("detail")
        self.setWidgetResizable(True)
        self.setFrameShape(QScrollArea.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._theme: Theme | None = None
        self._detail: explain.Detail | None = None
        self._labels: list[tuple[QLabel, QLabel]] = []
        self._kinds: list[bool] = []
        self._swatch = _Swatch()
        self._title = label("", "strong")
        self._exact = ElidedLabel("small", name="exact bytes")
        self._body = body = Ground()
        head = QHBoxLayout()
        head.setSpacing(8)
        head.addWidget(self._swatch)
        head.addWidget(self._title)
        head.addStretch(1)
        head.addWidget(self._exact)
        self._passages = QVBoxLayout()
        self._passages.setSpacing(0)
        column = QVBoxLayout(body)
        column.setContentsMargins(16, 9, 16, 12)
        column.setSpacing(4)
        column.addLayout(head)
        column.addLayout(self._passages)
        column.addStretch(1)
        self.setWidget(body)

    @property
    def labels(self) -> list[tuple[QLabel, QLabel]]:
        """Caption and text of every passage."""
        return self._labels

    def set_theme(self, theme: Theme) -> None:
        """Take the fonts and colours of ``theme``."""
        self._theme = theme
        self._swatch.theme = theme
        if self._detail is not None:
            shown, self._detail = self._detail, None
            self.show_detail(shown)

    def set_blank(self, *, blank: bool) -> None:
        """Explain nothing for a while, or again what is shown next."""
        self._body.setVisible(not blank)

    def show_detail(self, detail: explain.Detail) -> None:
        """Explain one region."""
        if self._theme is None or detail == self._detail:
            self._detail = detail
            return
        before, self._detail = self._detail, detail
        if before is None or before.region is not detail.region:
            self._swatch.region = detail.region
            self._swatch.update()
        self._title.setText(detail.title)
        self._exact.set_text(detail.exact)
        self.setAccessibleName(f"{detail.title}: {detail.exact}")
        if [p.is_formula for p in detail.passages] != self._kinds:
            self._make_labels(detail)
        for (caption, text), passage in zip(self._labels, detail.passages, strict=True):
            caption.setText(passage.caption)
            text.setText(passage.text)
            text.setAccessibleName(f"{passage.caption}: {passage.text}")

    def _make_labels(self, detail: explain.Detail) -> None:
        """Labels are kept from edit to edit; only other kinds of passages need others."""
        while (item := self._passages.takeAt(0)) is not None:
            widget = item.widget()
            if widget is not None:
                widget.hide()
                widget.deleteLater()
        self._kinds = [passage.is_formula for passage in detail.passages]
        self._labels = [self._add(is_formula=kind) for kind in self._kinds]

    def _add(self, *, is_formula: bool) -> tuple[QLabel, QLabel]:
        caption = label("", "caption")
        caption.setContentsMargins(0, 6, 0, 1)
        text = running_text("formula" if is_formula else "small")
        self._passages.addWidget(caption)
        self._passages.addWidget(text)
        return caption, text

    @override
    def sizeHint(self) -> QSize:
        return QSize(336, 200)


class RegionsView(Ground):
    """Table and detail, kept on one region."""

    region_selected = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.table = RegionTable()
        self.detail = DetailPane()
        self._state: State | None = None
        self._theme: Theme | None = None
        self._overlay: Overlay | None = None
        self._rank = 0
        self._shown_ranks = 0
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        row.addWidget(self.table, 1)
        row.addWidget(Hairline(upright=True))
        row.addWidget(self.detail)
        self.table.region_selected.connect(self._on_region_selected)

    def set_theme(self, theme: Theme) -> None:
        """Take the colours of ``theme``."""
        self._theme = theme
        self.table.set_theme(theme)
        self.detail.set_theme(theme)
        self._share()

    @property
    def rank(self) -> int:
        """The rank whose figures are explained."""
        return self._rank

    def set_rank(self, rank: int) -> None:
        """Explain this rank's figures."""
        self._rank = rank
        if self._state is not None:
            self.show_state(self._state)

    def show_overlay(self, overlay: Overlay | None) -> None:
        """Put what is measured beside the plan, while it runs."""
        self._overlay = overlay
        if self._state is not None:
            self.show_state(self._state)

    def select(self, region: Region | None) -> None:
        """Select ``region``, as chosen elsewhere."""
        self.table.select(region)

    def show_state(self, state: State) -> None:
        """Show the budget of ``state``."""
        self._state = state
        self.detail.set_blank(blank=state.sizing is None)
        if state.sizing is None:
            self.table.show_rows((), state.unit.value)
            return
        budget = state.sizing.budget
        ranks = len(budget.ranks)
        if ranks != self._shown_ranks:
            self._shown_ranks = ranks
            self._rank = state.sizing.verdict.binding_rank
        together = 1 < ranks <= _MOST_COLUMNS
        seen = self._overlay.of(self._rank) if self._overlay else None
        if seen is not None and seen.residue is not None:
            together = False
        rows = present.region_rows(budget, self._rank, state.unit, side_by_side=together)
        names = present.rank_names(budget) if together else ()
        if seen is not None and seen.residue is not None:
            rows = present.live_rows(rows, budget.ranks[self._rank], seen, state.unit)
        self.table.show_rows(rows, state.unit.value, names)
        if not self.table.currentIndex().isValid():
            self.table.select(state.sizing.verdict.binding_region)
        self._show_detail(self.table.current_region)

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._share()

    def _share(self) -> None:
        if self._theme is None:
            return
        # With large text each has half of it at the most.
        self.detail.setFixedWidth(min(self._theme.grown(_DETAIL), max(_DETAIL, self.width() // 2)))
        self.table.want_formula(wanted=self.width() >= self._theme.grown(_FORMULA_FROM))

    def _on_region_selected(self, region: Region | None) -> None:
        self._show_detail(region)
        self.region_selected.emit(region)

    def _show_detail(self, region: Region | None) -> None:
        if self._state is None or self._state.sizing is None:
            return
        budget = self._state.sizing.budget
        rank = budget.ranks[self._rank]
        found = explain.detail(budget, rank, region, self._state.unit)
        seen = self._overlay.of(self._rank) if self._overlay else None
        self.detail.show_detail(running.explained(found, seen, self._state.unit))
