"""The browser over the whole window: all filters, every model with its figures, one at length."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from PySide6.QtCore import QPoint, QSize, Qt, Signal, Slot
from PySide6.QtWidgets import (
    QHBoxLayout,
    QPushButton,
    QScrollArea,
    QStackedLayout,
    QVBoxLayout,
    QWidget,
)
from typing_extensions import override

from engine.words import tr, tr_count
from gui.browser import detail, filter_column, scrolling
from gui.browser.detail import DetailPane
from gui.browser.filter_column import FilterColumn
from gui.browser.panels import EndLine, MessagePanel
from gui.browser.parts import OrderButton, SearchField, SourceChoice
from gui.browser.row_menu import row_menu
from gui.browser.table import ModelTable
from gui.kit.controls import ElidedLabel, Ground, Hairline
from gui.kit.format import count
from gui.kit.icons import icon
from gui.kit.progress import ProgressLine
from gui.kit.wrap import WrapRow

if TYPE_CHECKING:
    from PySide6.QtGui import QResizeEvent, QShowEvent

    from gui.browser.rows import Row
    from gui.browser.state import State
    from gui.browser.view_model import BrowserViewModel
    from gui.kit.theme import Theme

_NARROW = 1200
"""Width below which filters and details take turns beside the table."""
_BELOW = 860
"""Width, as to the text, below which the details stand below the table."""
_BELOW_HEIGHT = 130
"""Least height of either then; where the window has no room for both, the room scrolls."""
_LEAST = 880
_GAP = 4


class ExpandedBrowser(Ground):
    """A second look at the state of the narrow browser; both show the same rows and filters."""

    closed = Signal()
    """Back to the plan."""
    access_wanted = Signal()
    """A token is to be entered."""
    page_wanted = Signal(str)
    """Address of a page to open."""

    def __init__(
        self, model: BrowserViewModel, theme: Theme, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.setObjectName("expanded browser")
        self.setAccessibleName(tr("All models"))
        self.model = model
        self._theme = theme
        self._arrangement = -1
        self.search = SearchField()
        self.sources = SourceChoice("all sources")
        self.filters_button = QPushButton(tr("Filters"))
        self.filters_button.setObjectName("filters button")
        self.filters_button.setCheckable(True)
        self._summary = ElidedLabel("secondary", name="number of models", keeps_whole=True)
        self._order = OrderButton("order of all", tr("Order of the table"))
        self.back = QPushButton(tr("Back to plan"))
        self.back.setObjectName("back to plan")
        self.back.setProperty("role", "flat")
        self.filters = FilterColumn()
        self.table = ModelTable(theme)
        self.message = MessagePanel()
        self.end = EndLine("end of table")
        self.detail = DetailPane(model.files, theme)
        self._progress = ProgressLine(self)
        self._build()
        self._connect()
        self.set_theme(theme)

    def _build(self) -> None:
        top = WrapRow(keeps_widths=True)
        top.setContentsMargins(16, 12, 16, 12)
        top.set_gap(12)
        top.add(self.filters_button)
        top.add(self.search, 3)
        top.add(self.sources, 3)
        top.add(QWidget(), 2)
        for part in (self._summary, self._order, self.back):
            top.add(part)
        right = QVBoxLayout()
        right.setSpacing(0)
        right.addLayout(top)
        right.addWidget(Hairline())
        self._middle = middle = QHBoxLayout()
        middle.setSpacing(0)
        middle.addLayout(self._build_rows(), 1)
        self._detail_edge, self._detail_top = Hairline(upright=True), Hairline()
        middle.addWidget(self._detail_edge)
        middle.addWidget(self._detail_top)
        middle.addWidget(self.detail)
        right.addLayout(middle, 1)
        inside = Ground()
        whole = QHBoxLayout(inside)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.setSpacing(0)
        # How much stands side by side follows the width, and so may not decide about it.
        whole.setSizeConstraint(QHBoxLayout.SizeConstraint.SetNoConstraint)
        roll = QScrollArea()
        roll.setFrameShape(QScrollArea.Shape.NoFrame)
        roll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        roll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        roll.setWidgetResizable(True)
        roll.setWidget(inside)
        around = QVBoxLayout(self)
        around.setContentsMargins(0, 0, 0, 0)
        around.setSizeConstraint(QVBoxLayout.SizeConstraint.SetNoConstraint)
        around.addWidget(roll)
        whole.addWidget(self.filters)
        self._filters_edge = Hairline(upright=True)
        whole.addWidget(self._filters_edge)
        whole.addLayout(right, 1)
        for before, after in (
            (self.search, self.sources),
            (self.sources, self._order),
            (self._order, self.back),
            (self.back, self.filters),
        ):
            QWidget.setTabOrder(before, after)

    def _build_rows(self) -> QVBoxLayout:
        """The table, or a message in its place, and the line below its last row."""
        self._below = QWidget()
        self._stack = QStackedLayout(self._below)
        self._stack.addWidget(self.table)
        self._stack.addWidget(self.message)
        rows = QVBoxLayout()
        rows.setSpacing(0)
        rows.addWidget(self._below, 1)
        rows.addWidget(self.end)
        return rows

    def _connect(self) -> None:
        self.search.textEdited.connect(self.model.set_query)
        self.search.textChanged.connect(self._on_text)
        self.search.returnPressed.connect(self.model.submit)
        self.search.left_downwards.connect(self._on_left_downwards)
        self.sources.picked.connect(self.model.set_source)
        self.filters_button.clicked.connect(self._lay_out)
        self._order.picked.connect(self.model.set_sort)
        self.back.clicked.connect(self.closed)
        self.filters.changed.connect(self.model.set_filters)
        self.table.opened.connect(self.model.choose)
        self.table.looked_at.connect(self._on_looked_at)
        self.table.sort_wanted.connect(self.model.set_sort)
        self.table.rows.more_wanted.connect(self.model.fetch_more)
        scrolling.fetch_ahead(self.table)
        self.message.acted.connect(self.model.act_on_message)
        self.end.acted.connect(self.model.act_at_end)
        self.detail.opened.connect(self.model.choose)
        self.detail.files.panel.picked.connect(self.model.choose_file)
        self.detail.favourite_turned.connect(self.model.set_favourite)
        self.table.menu_wanted.connect(self._on_menu)
        self.detail.access_wanted.connect(self.access_wanted)
        self.detail.page_wanted.connect(self.page_wanted)
        self.model.changed.connect(self._on_changed)
        self.model.badges_changed.connect(self._on_badges)
        self.model.rested.connect(self._on_rested)

    def set_theme(self, theme: Theme) -> None:
        """Take the colours and sizes of ``theme``."""
        self._theme = theme
        for part in (self.search, self.filters, self.table, self.message, self.end, self.detail):
            part.set_theme(theme)
        self.sources.set_theme(theme)
        self._summary.setFont(theme.font("small.num"))
        self._order.set_theme(theme)
        for button, picture in (
            (self.back, "panel-left-close"),
            (self.filters_button, "list-filter"),
        ):
            size = theme.grown(15)
            button.setIconSize(QSize(size + _GAP, size))
            button.setIcon(icon(picture, theme.color("text.secondary"), size, _GAP))
        self._lay_out()
        if self.isVisible():
            self._show(self.model.state)

    def focus_search(self) -> None:
        """Put the cursor into the search field, its text selected."""
        self.search.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.search.selectAll()

    # --- the state

    @Slot(object)
    def _on_changed(self, state: State) -> None:
        if self.isVisible():
            self._show(state)

    def _show(self, state: State) -> None:
        if self.search.text() != state.query:
            self.search.setText(state.query)
        self.sources.show_source(state.source, state.counts)
        self.sources.setMinimumWidth(self.sources.sizeHint().width())
        self.search.show_sending(state.sends_to)
        number = len(state.rows)
        whole = state.rows.answering
        words = tr_count("{number} model", "{number} models", number)
        if number != whole:
            words = tr("{number} of {whole}")
        words = words.format(number=count(number), whole=count(whole))
        self._summary.set_text(words)
        self._order.show_order(state.wanted, is_sorted=state.rows.is_sorted)
        self.filters.show_filters(
            state.wanted.filters, state.rows, state.unit, self.model.plan_words
        )
        self._show_rows(state)
        self._progress.set_busy(state.is_busy)
        if state.message is not None:
            self.message.show_message(state.message)
        self._stack.setCurrentWidget(self.message if state.message else self.table)
        self.end.show_message(None if state.message else state.end)

    def _show_rows(self, state: State) -> None:
        rows, wanted = self.table.rows, state.wanted
        rows.set_look(state.unit, wanted, state.shelf.favourites)
        before = rows.rows
        if state.rows is not before:
            is_same = state.arrangement == self._arrangement
            held = scrolling.hold(self.table) if is_same else None
            self._arrangement = state.arrangement
            key, place = self.table.current_key(), self.table.currentIndex().row()
            rows.set_badges(self.model.badges, ())
            rows.set_rows(state.rows, has_more=state.has_more)
            kept = scrolling.still_there(before, place, state.rows) if is_same else None
            self.table.look_at(state.rows[kept].key if kept is not None else key or wanted.chosen)
            if is_same:
                scrolling.put_back(self.table, held, before, state.rows)
        if not self.table.currentIndex().isValid() and rows.rowCount():
            self.table.setCurrentIndex(rows.index(0, 0))
        self.detail.files.panel.set_look(state.unit, wanted.chosen)
        self._tell_detail()

    def _tell_detail(self) -> None:
        key = self.table.current_key()
        row = self.model.columns.get(key) if key else None
        page = self.model.page_of(row) if row else ""
        shelf = self.model.state.shelf
        self.detail.show_row(row, self.model.badges.get(key), page, self.model.state.unit)
        self.detail.show_favourite(kept=row is not None and row.is_among(shelf.favourites))

    @Slot(object)
    def _on_badges(self, made: object) -> None:
        if self.isVisible():
            keys = cast("dict[str, object]", made).keys()
            self.table.rows.set_badges(self.model.badges, keys)
            if self.table.current_key() in keys:
                self._tell_detail()

    @Slot()
    def _on_rested(self) -> None:
        if self.isVisible() and not scrolling.is_pointed_at(self.table):
            self.model.let_go()

    # --- what the user does

    @Slot(str)
    def _on_text(self, text: str) -> None:
        # The cross in the field clears it without an edit.
        if text != self.model.state.query:
            self.model.set_query(text)

    @Slot(str)
    def _on_looked_at(self, _key: str) -> None:
        self._tell_detail()

    @Slot(object, QPoint)
    def _on_menu(self, row: Row, place: QPoint) -> None:
        row_menu(row, self.model, self.table).popup(place)

    @Slot()
    def _on_left_downwards(self) -> None:
        self.table.setFocus(Qt.FocusReason.TabFocusReason)

    @Slot()
    def _lay_out(self) -> None:
        """Filters, table and details side by side, or two of them where there is no room."""
        grown = self._theme.grown
        is_narrow = self.width() < grown(_NARROW)
        self.filters_button.setVisible(is_narrow)
        shows_filters = not is_narrow or self.filters_button.isChecked()
        shows_detail = not (is_narrow and shows_filters)
        is_below = shows_detail and self.width() < grown(_BELOW)
        # There the headings of the table are enough to sort by.
        self._order.setVisible(shows_detail)
        self.filters.setVisible(shows_filters)
        self._filters_edge.setVisible(shows_filters)
        self.detail.setVisible(shows_detail)
        self._detail_edge.setVisible(shows_detail and not is_below)
        self._detail_top.setVisible(is_below)
        # With large text neither takes more than it leaves to the table.
        most = max(detail.NARROW, self.width() // 3)
        directions = QHBoxLayout.Direction
        self._middle.setDirection(directions.TopToBottom if is_below else directions.LeftToRight)
        self._middle.setStretchFactor(self.detail, int(is_below))
        width = min(grown(detail.NARROW if is_narrow else detail.WIDTH), most)
        self.detail.setMinimumSize(0 if is_below else width, grown(_BELOW_HEIGHT) * is_below)
        self.detail.setMaximumWidth(self.width() if is_below else width)
        self._below.setMinimumHeight(grown(_BELOW_HEIGHT) * is_below)
        self.filters.setFixedWidth(min(grown(filter_column.WIDTH), self.width() // 2))
        self.search.setMinimumWidth(grown(120))
        self.search.setMaximumWidth(grown(300))
        self.sources.setMaximumWidth(grown(360))

    @override
    def minimumSizeHint(self) -> QSize:
        return QSize(_LEAST, 300)

    @override
    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.model.count_local()
        self._show(self.model.state)

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._lay_out()
        left = self.filters.width() if self.filters.isVisible() else 0
        self._progress.setGeometry(left, self._below.y(), self.width() - left, 2)
        self._progress.raise_()
