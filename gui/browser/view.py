"""The browser as a person sees it: search, sources, filters, and the list."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from PySide6.QtCore import QItemSelectionModel, QModelIndex, QPoint, QSize, Qt, Signal, Slot
from PySide6.QtGui import QAction, QActionGroup
from PySide6.QtWidgets import (
    QHBoxLayout,
    QMenu,
    QStackedLayout,
    QToolButton,
    QVBoxLayout,
    QWidget,
)
from typing_extensions import override

from engine.words import tr, tr_later
from gui.browser import scrolling
from gui.browser.delegate import RowDelegate
from gui.browser.files_panel import FilesPanel
from gui.browser.filters import (
    ANY,
    FORMATS,
    HIDES_WHAT_DOESNT_FIT,
    SIZES,
    UNKNOWN,
    Filters,
    Group,
)
from gui.browser.messages import Message
from gui.browser.panels import EndLine, MessagePanel
from gui.browser.parts import OrderButton, SearchField, SourceChoice
from gui.browser.row_list import RowList
from gui.browser.row_menu import row_menu
from gui.browser.rows import ROW_ROLE, Choice, Row, RowModel
from gui.browser.view_model import BrowserViewModel
from gui.kit.controls import ElidedLabel, Ground, Hairline
from gui.kit.icons import icon
from gui.kit.progress import ProgressLine

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from PySide6.QtGui import QShowEvent

    from engine.cancel import CancelToken
    from engine.deployment.spec import Deployment
    from engine.devices.device import Machine
    from engine.source.hub import HubClient
    from engine.source.raw import RawModel
    from engine.units import UnitSystem
    from gui.browser.repository_files import FilesState
    from gui.browser.state import State
    from gui.kit.tasks import TaskRunner
    from gui.kit.theme import Theme

_MARK = 12
_GAP = 2
"""More room between the check mark and its word than the style leaves."""
_BEHIND_MORE = frozenset(Group) - {Group.FIT, Group.PARAMETERS, Group.FORMAT}
"""Filters that only the expanded browser shows."""


class BrowserView(Ground):
    """Finds a model; what is picked leaves through ``chosen``."""

    chosen = Signal(object)
    """A ``Choice``."""
    more_wanted = Signal()
    """All filters and figures are asked for."""

    def __init__(
        self, runner: TaskRunner, hub: HubClient, theme: Theme, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent, window=True)
        self.setObjectName("browser")
        self.setAccessibleName(tr("Models"))
        self.model = BrowserViewModel(runner, hub, self)
        self._theme = theme
        self._was_shown = False
        self._arrangement = -1
        self.search = SearchField()
        self.sources = SourceChoice("sources")
        self.sources.setStyleSheet("QToolButton { padding: 0 3px; }")
        self._fits = self._chip(tr("Fits here"), "fits here")
        self._fits.setCheckable(True)
        self._fits.setToolTip(tr("Hide models that don't fit the plan; unknown ones stay"))
        sizes = tuple(text for text, _ in SIZES)
        self._sizes = self._menu_chip(tr("Size"), "sizes", sizes, self._on_size_chosen)
        formats = tuple(text for text in FORMATS if text != UNKNOWN)
        self._formats = self._menu_chip(tr("Format"), "formats", formats, self._on_format_chosen)
        self._only_one(self._menu_of(self._sizes))
        self._more = self._chip(tr("More"), "more")
        self._more.setCheckable(True)
        self._more.setToolTip(tr("All filters, and every model with its figures"))
        self._chips = (self._fits, self._sizes, self._formats, self._more)
        self._summary = ElidedLabel("caption", name="summary")
        self._order = OrderButton("order", tr("Order of the list"))
        self.rows = RowModel(self)
        self._delegate = RowDelegate(theme, self)
        self.list = RowList(self.rows, self._delegate)
        self.message = MessagePanel()
        self.end = EndLine("end of list")
        self.files = FilesPanel(self.model.files, theme, "files", stands_alone=True)
        self.other_files = EndLine("other files")
        self._progress = ProgressLine(self)
        self._build()
        self._connect()
        self.set_theme(theme)
        self._show(self.model.state)

    def _chip(self, text: str, name: str) -> QToolButton:
        chip = QToolButton()
        chip.setText(text)
        chip.setObjectName(name)
        chip.setProperty("role", "chip")
        chip.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        # Four of them stand side by side in the narrowest browser.
        chip.setStyleSheet("QToolButton { padding: 0 3px; }")
        return chip

    def _menu_chip(
        self, text: str, name: str, choices: tuple[str, ...], chosen: Callable[[], None]
    ) -> QToolButton:
        """A chip that opens a list of check marks; none checked means all."""
        chip = self._chip(text, name)
        chip.setCheckable(True)
        menu = QMenu(chip)
        menu.setObjectName(f"{name} menu")
        chip.clicked.connect(self._on_menu_chip)
        for choice in choices:
            action = QAction(tr(choice), menu)
            action.setData(choice)
            action.setCheckable(True)
            action.triggered.connect(chosen)
            menu.addAction(action)
        return chip

    def _only_one(self, menu: QMenu) -> None:
        """Let one choice of ``menu`` be checked, or none."""
        group = QActionGroup(menu)
        group.setExclusionPolicy(QActionGroup.ExclusionPolicy.ExclusiveOptional)
        for action in menu.actions():
            group.addAction(action)

    def _build(self) -> None:
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 12, 0, 0)
        column.setSpacing(0)
        top = QVBoxLayout()
        top.setContentsMargins(12, 0, 12, 0)
        top.setSpacing(8)
        top.addWidget(self.search)
        top.addWidget(self.sources)
        chips = QHBoxLayout()
        chips.setSpacing(6)
        for chip in self._chips:
            chips.addWidget(chip)
        chips.addStretch(1)
        top.addLayout(chips)
        column.addLayout(top)
        line = QHBoxLayout()
        line.setContentsMargins(12, 11, 8, 5)
        line.addWidget(self._summary, 1, Qt.AlignmentFlag.AlignBaseline)
        line.addWidget(self._order, 0, Qt.AlignmentFlag.AlignBaseline)
        column.addLayout(line)
        column.addWidget(Hairline())
        below = QWidget()
        self._stack = QStackedLayout(below)
        self._stack.addWidget(self.list)
        self._stack.addWidget(self.message)
        self._stack.addWidget(self.files)
        column.addWidget(below, 1)
        column.addWidget(self.end)
        column.addWidget(self.other_files)
        self._below = below

    def _connect(self) -> None:
        self.search.textChanged.connect(self.model.set_query)
        self.search.returnPressed.connect(self.model.submit)
        self.search.left_downwards.connect(self._on_left_downwards)
        self.sources.picked.connect(self.model.set_source)
        self._fits.clicked.connect(self._on_fits)
        self._more.clicked.connect(self._on_more)
        self._order.picked.connect(self.model.set_sort)
        self.list.clicked.connect(self._on_row)
        self.list.entered_row.connect(self._on_row)
        self.list.inside_wanted.connect(self._on_inside)
        self.files.picked.connect(self.model.choose_file)
        self.files.closed.connect(self._on_files_closed)
        self.other_files.acted.connect(self._on_other_files)
        self.model.files.changed.connect(self._on_files)
        self.list.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.list.customContextMenuRequested.connect(self._on_menu)
        self.rows.more_wanted.connect(self.model.fetch_more)
        scrolling.fetch_ahead(self.list)
        self.message.acted.connect(self.model.act_on_message)
        self.end.acted.connect(self.model.act_at_end)
        self.model.changed.connect(self._on_changed)
        self.model.badges_changed.connect(self._on_badges)
        self.model.rested.connect(self._on_rested)
        self.model.chosen.connect(self.chosen)

    # --- what the rest of the window tells

    def set_plan(self, deployment: Deployment, machine: Machine) -> None:
        """Show how each model fares under this plan."""
        self.model.set_plan(deployment, machine)

    def set_unit(self, unit: UnitSystem) -> None:
        """Write margins in ``unit``."""
        self.model.set_unit(unit)

    def fetcher(self, choice: Choice) -> Callable[[CancelToken], RawModel]:
        """What reads the picked model; belongs in a worker."""
        return choice.fetch

    def set_chosen(self, model_id: str) -> None:
        """Mark the model that is in the window now."""
        self.model.set_chosen(model_id)

    def open(self, what: Path | str) -> None:
        """Open a file, a folder, or whatever a text refers to."""
        self.model.open(what)

    def show_query(self) -> None:
        """Show the words that are searched for, which may have been typed elsewhere."""
        self.search.setText(self.model.state.query)

    def focus_search(self) -> None:
        """Put the cursor into the search field, its text selected."""
        self.search.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.search.selectAll()

    def set_theme(self, theme: Theme) -> None:
        """Take the colours and sizes of ``theme``."""
        self._theme = theme
        self._delegate.set_theme(theme)
        self.search.set_theme(theme)
        self.message.set_theme(theme)
        for part in (self.end, self.files, self.other_files):
            part.set_theme(theme)
        self.list.set_theme(theme)
        for chip in self._chips:
            chip.setFixedHeight(theme.size("chip"))
            chip.setIconSize(QSize(theme.grown(_MARK) + _GAP, theme.grown(_MARK)))
        self.sources.set_theme(theme)
        # A widget with a style sheet of its own doesn't follow the application's font.
        for button in self._chips:
            button.setFont(theme.font("small"))
        self.search.setFont(theme.font("body"))
        self._order.set_theme(theme)
        self._show(self.model.state)

    # --- the state

    @Slot(object)
    def _on_changed(self, state: State) -> None:
        if self.isVisible():
            self._show(state)

    def _show(self, state: State) -> None:
        self.sources.show_source(state.source, state.counts)
        self.search.show_sending(state.sends_to)
        self._show_filters(state.wanted.filters)
        self._summary.set_text(state.summary)
        self._order.show_order(state.wanted, is_sorted=state.rows.is_sorted)
        if self.rows.unit is not state.unit:
            self.rows.set_unit(state.unit)
        self._show_rows(state)
        self.rows.set_chosen(state.wanted.chosen)
        self.rows.set_favourites(state.shelf.favourites)
        self._progress.set_busy(state.is_busy)
        if state.message is not None:
            self.message.show_message(state.message)
        self.files.set_look(state.unit, state.wanted.chosen)
        self._show_page(state)

    def _show_page(self, state: State) -> None:
        """The list, a message in its place, or the files of one row."""
        are_files_shown = self.model.files.state.repository is not None
        page = self.message if state.message else self.list
        self._stack.setCurrentWidget(self.files if are_files_shown else page)
        self.end.show_message(None if state.message or are_files_shown else state.end)
        repository = self.model.repository_in_window
        words = None
        if repository is not None and not are_files_shown:
            title = tr("One file of {name} is open").format(name=repository.name)
            words = Message(title, "", tr_later("Its files"), "file")
        self.other_files.show_message(words)

    def _show_filters(self, filters: Filters) -> None:
        fits_here = HIDES_WHAT_DOESNT_FIT in filters.hidden
        self._fits.setChecked(fits_here)
        ink = self._theme.color("accent.text" if fits_here else "text.tertiary")
        self._fits.setIcon(icon("check", ink, self._theme.grown(_MARK), _GAP))
        self._sizes.setChecked(filters.narrows(Group.PARAMETERS))
        self._formats.setChecked(filters.narrows(Group.FORMAT))
        self._more.setChecked(any(map(filters.narrows, _BEHIND_MORE)))
        color, size = self._theme.color("text.secondary"), self._theme.grown(_MARK)
        self._more.setIcon(icon("list-filter", color, size, _GAP))
        spans = dict(SIZES)
        for action in self._menu_of(self._sizes).actions():
            action.setChecked(spans[str(action.data())] == filters.parameters)
        is_narrow = filters.narrows(Group.FORMAT)
        for action in self._menu_of(self._formats).actions():
            action.setChecked(is_narrow and not filters.hides(Group.FORMAT, str(action.data())))

    def _show_rows(self, state: State) -> None:
        """Take over the rows; the keyboard's place is kept by the key of its row.

        The list stays where it is unless the user asked for other rows.
        """
        before = self.rows.rows
        if state.rows is before:
            return
        is_same = state.arrangement == self._arrangement
        held = scrolling.hold(self.list) if is_same else None
        self._arrangement = state.arrangement
        current = self.list.currentIndex()
        row, place = cast("Row | None", current.data(ROW_ROLE)), current.row()
        self.rows.set_badges(self.model.badges, {})
        self.rows.set_rows(state.rows, has_more=state.has_more)
        if is_same:
            kept = scrolling.still_there(before, place, state.rows)
        else:
            self.list.scrollToTop()
            kept = self.rows.place(row.key) if row else None
        if kept is not None and not self.list.currentIndex().isValid():
            if is_same:
                self.list.selectionModel().setCurrentIndex(
                    self.rows.index(kept), QItemSelectionModel.SelectionFlag.ClearAndSelect
                )
            else:
                self.list.setCurrentIndex(self.rows.index(kept))
        if is_same:
            scrolling.put_back(self.list, held, before, state.rows)

    @Slot(object)
    def _on_badges(self, made: object) -> None:
        self.rows.set_badges(self.model.badges, cast("dict[str, object]", made).keys())

    @Slot()
    def _on_rested(self) -> None:
        if self.isVisible() and not scrolling.is_pointed_at(self.list):
            self.model.let_go()

    # --- what the user does

    @Slot(QModelIndex)
    def _on_row(self, index: QModelIndex) -> None:
        row = cast("Row | None", index.data(ROW_ROLE))
        if row is not None:
            self.model.choose(row.key)

    @Slot(QModelIndex)
    def _on_inside(self, index: QModelIndex) -> None:
        row = cast("Row | None", index.data(ROW_ROLE))
        if row is not None and self.model.files.may_have(row):
            self.model.files.show(row)

    @Slot()
    def _on_other_files(self) -> None:
        repository = self.model.repository_in_window
        if repository is not None:
            self.model.files.show(repository)

    @Slot()
    def _on_files_closed(self) -> None:
        self.model.files.close()
        self.list.setFocus(Qt.FocusReason.OtherFocusReason)

    @Slot(object)
    def _on_files(self, files: FilesState) -> None:
        was_shown = self._stack.currentWidget() is self.files
        self._show_page(self.model.state)
        if files.repository is not None and not was_shown and self.isVisible():
            self.files.list.setFocus(Qt.FocusReason.OtherFocusReason)

    @Slot(QPoint)
    def _on_menu(self, place: QPoint) -> None:
        under = self.list.indexAt(place)
        index = under if under.isValid() else self.list.currentIndex()
        row = cast("Row | None", index.data(ROW_ROLE))
        if row is not None:
            row_menu(row, self.model, self.list).popup(self.list.viewport().mapToGlobal(place))

    @Slot()
    def _on_left_downwards(self) -> None:
        if self.rows.rowCount():
            if not self.list.currentIndex().isValid():
                self.list.setCurrentIndex(self.rows.index(0))
            self.list.setFocus(Qt.FocusReason.TabFocusReason)

    @Slot()
    def _on_fits(self) -> None:
        filters = self.model.state.wanted.filters
        shown = not self._fits.isChecked()
        self.model.set_filters(filters.with_shown(*HIDES_WHAT_DOESNT_FIT, shown=shown))

    @Slot()
    def _on_size_chosen(self) -> None:
        sizes = self._checked(self._sizes)
        span = next((span for text, span in SIZES if text in sizes), ANY)
        self.model.set_filters(self.model.state.wanted.filters.with_(parameters=span))

    @Slot()
    def _on_format_chosen(self) -> None:
        filters = self.model.state.wanted.filters
        self.model.set_filters(
            filters.with_only(Group.FORMAT, self._checked(self._formats), FORMATS)
        )

    @Slot()
    def _on_more(self) -> None:
        self._show_filters(self.model.state.wanted.filters)
        self.more_wanted.emit()

    def _menu_of(self, chip: QToolButton) -> QMenu:
        return cast("QMenu", chip.findChild(QMenu))

    def _checked(self, chip: QToolButton) -> frozenset[str]:
        return frozenset(str(a.data()) for a in self._menu_of(chip).actions() if a.isChecked())

    @Slot()
    def _on_menu_chip(self) -> None:
        chip = cast("QToolButton", self.sender())
        # A click opens the menu; whether the chip is lit is for its filter to say.
        self._show_filters(self.model.state.wanted.filters)
        self._menu_of(chip).popup(chip.mapToGlobal(QPoint(0, chip.height() + 2)))

    @override
    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._show(self.model.state)
        if not self._was_shown:
            self._was_shown = True
            self.model.count_local()

    @override
    def resizeEvent(self, event: object) -> None:
        super().resizeEvent(event)  # pyright: ignore[reportArgumentType]  # handed on as it came
        self._progress.setGeometry(0, self._below.y(), self.width(), 2)
        self._progress.raise_()
