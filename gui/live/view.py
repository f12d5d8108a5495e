"""The tab "What holds it": who holds a device's memory, and why other tools say otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import (
    QHBoxLayout,
    QLabel,
    QPushButton,
    QScrollArea,
    QStackedLayout,
    QTableView,
    QVBoxLayout,
    QWidget,
)
from typing_extensions import override

from engine.seen.model import Reach
from engine.words import tr
from gui.kit.controls import Choice, Ground, Hairline, label, running_text
from gui.kit.figures_table import dress, set_heights
from gui.kit.wrap import WrapRow
from gui.live import told
from gui.live.delegate import HoldsDelegate
from gui.live.holds_model import COLUMNS, STATED, HoldsModel
from gui.live.view_model import HoldsViewModel

if TYPE_CHECKING:
    from PySide6.QtGui import QResizeEvent

    from engine.seen.model import RuntimeSeen
    from engine.telemetry.snapshot import TelemetrySnapshot
    from engine.units import UnitSystem
    from gui.kit.theme import Theme
    from gui.live.explain import Passage
    from gui.live.present import HoldsState, Row
    from gui.live.view_model import DeviceChoice

_WIDTHS = {
    "process": 208, "pid": 72, "runtime": 232, "pool": 84, "requests": 84, "stated": 104,
    "size": 116, "share": 176,
}  # fmt: skip
_NARROWEST = {
    "process": 176, "pid": 60, "runtime": 108, "pool": 60, "requests": 72, "stated": 80,
    "size": 72, "share": 122,
}  # fmt: skip
_SPARED = (("stated",), ("pool", "requests"), ("runtime",))
"""Columns that give way where there is no room, the first ones first; the pane tells them too."""

_PANE, _NARROW_PANE = 337, 281
_ROOMY_FROM = 1000
"""Width of the room from which the explanation has its full width."""


class HoldsTable(QTableView):
    """The rows; the same process stays selected while rows move."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("holders")
        self.setAccessibleName(tr("What holds the device's memory"))
        self._rows = HoldsModel(self)
        self._delegate = HoldsDelegate(self)
        self.setModel(self._rows)
        self.setItemDelegate(self._delegate)
        dress(self)

    @property
    def rows(self) -> HoldsModel:
        """The item model."""
        return self._rows

    def set_theme(self, theme: Theme) -> None:
        """Take colours, fonts and row height of ``theme``."""
        self._delegate.theme = theme
        self._rows.set_theme(theme)
        set_heights(self, theme, row=theme.size("row.table") * 5 // 4)
        self._lay_out()
        self.viewport().update()

    def show_state(self, state: HoldsState | None) -> None:
        """Show ``state`` and keep what was selected."""
        # A table that has the focus has a current row, selected or not.
        has_selection = self.selectionModel().hasSelection()
        selected = self._rows.row_at(self.currentIndex().row()) if has_selection else None
        told_engines = self._rows.tells_engines
        self._rows.show_state(state)
        if self._rows.tells_engines is not told_engines:
            self._lay_out()
        if selected is None:
            return
        now = self._rows.row_of(selected.pid, selected.label)
        if now < 0:
            self.clearSelection()
        elif now != self.currentIndex().row():
            self.selectRow(now)

    def _shown(self, keys: list[str], width: int) -> list[str]:
        """The columns that there is something for, and room."""
        tells = self._rows.tells_engines
        shown = [key for key in keys if tells or key not in STATED]
        for spared in _SPARED:
            if sum(_NARROWEST[key] for key in shown) > width:
                shown = [key for key in shown if key not in spared]
        return shown

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._lay_out()

    def _lay_out(self) -> None:
        theme = self._delegate.theme
        # Shared out at plain size, then grown with the text.
        scale = theme.text_scale if theme else 1.0
        width = round(self.viewport().width() / scale)
        keys = [column.key for column in COLUMNS]
        shown = self._shown(keys, width)
        for at, key in enumerate(keys):
            self.setColumnHidden(at, key not in shown)
        has_runtime = "runtime" in shown
        spare = width - sum(_WIDTHS[key] for key in shown)
        floor = sum(_NARROWEST[key] for key in shown)
        head = self.horizontalHeader()
        for key in shown:
            size = _WIDTHS[key]
            if spare < 0:
                give = (_WIDTHS[key] - _NARROWEST[key]) / max(
                    sum(_WIDTHS[k] for k in shown) - floor, 1
                )
                size = max(_NARROWEST[key], round(size + spare * give))
            elif key in ("runtime", "share"):
                size += spare // 2 if has_runtime else spare if key == "share" else 0
            head.resizeSection(keys.index(key), round(size * scale))


class ExplainPane(QScrollArea):
    """Passages of words: why another tool says another number, and what was before."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("explanation")
        self.setAccessibleName(tr("Explanation"))
        self.setWidgetResizable(True)
        self.setFrameShape(QScrollArea.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.devices = Choice("device shown")
        self.devices.setAccessibleName(tr("Device shown below"))
        self.devices.hide()
        self.instead = QPushButton()
        self.instead.setObjectName("instead")
        self.instead.hide()
        self.match = QPushButton(tr("Match with a plan"))
        self.match.setObjectName("match")
        self.match.setToolTip(
            tr("Open the model and the settings of what runs as the plan in this window")
        )
        self.match.hide()
        self.add = QPushButton(tr("Add address…"))
        self.add.setObjectName("add address")
        self.add.setToolTip(tr("Where else a runtime answers: another port, or another computer"))
        self._labels: list[tuple[QLabel, QLabel]] = []
        body = Ground()
        self._passages = QVBoxLayout()
        self._passages.setSpacing(0)
        column = QVBoxLayout(body)
        column.setContentsMargins(16, 10, 16, 12)
        column.setSpacing(8)
        column.addWidget(self.devices)
        buttons = WrapRow()
        self.elsewhere = QPushButton(tr("Machine elsewhere…"))
        self.elsewhere.setObjectName("watch elsewhere")
        self.elsewhere.setToolTip(tr("Watch the devices of another machine by its address"))
        for button in (self.match, self.add, self.elsewhere, self.instead):
            buttons.add(button, alignment=Qt.AlignmentFlag.AlignLeft)
        column.addLayout(buttons)
        column.addLayout(self._passages)
        column.addStretch(1)
        self.setWidget(body)

    def show_passages(self, passages: tuple[Passage, ...]) -> None:
        """Show ``passages``; labels are kept, so that a changing number doesn't flicker."""
        while len(self._labels) < len(passages):
            self._labels.append(self._add())
        for i, (heading, text) in enumerate(self._labels):
            is_used = i < len(passages)
            heading.setVisible(is_used)
            text.setVisible(is_used)
            if is_used and (heading.text(), text.text()) != (passages[i].heading, passages[i].text):
                heading.setText(passages[i].heading)
                text.setText(passages[i].text)

    def _add(self) -> tuple[QLabel, QLabel]:
        heading = label("", "strong")
        heading.setWordWrap(True)
        text = running_text("small")
        text.setContentsMargins(0, 3, 0, 14)
        self._passages.addWidget(heading)
        self._passages.addWidget(text)
        return heading, text

    @override
    def sizeHint(self) -> QSize:
        return QSize(336, 200)


class HoldsView(Ground):
    """Table and explanation of one device; a selector where there are several."""

    count_changed = Signal(str)
    """How many processes hold the device, for the tab's title; empty where it isn't known."""
    instead_wanted = Signal(object)
    """The ``Row`` of the process whose place the plan shall take."""
    match_wanted = Signal(object)
    """The ``RuntimeSeen`` that shall become the plan."""
    add_wanted = Signal()
    """Another address shall be asked."""
    elsewhere_wanted = Signal()
    """Another machine shall be watched."""
    balance_changed = Signal(str)
    """Used + free + reserved = total, for the status line."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme: Theme | None = None
        self.view_model = HoldsViewModel(self)
        self.table = HoldsTable()
        self.pane = ExplainPane()
        self._empty = label(tr("Nothing was measured yet."), "secondary", "nothing measured")
        self._empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        rooms = QWidget()
        row = QHBoxLayout(rooms)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        row.addWidget(self.table, 1)
        row.addWidget(Hairline(upright=True))
        row.addWidget(self.pane)
        self._stack = QStackedLayout(self)
        self._stack.addWidget(self._empty)
        self._stack.addWidget(rooms)
        self.view_model.changed.connect(self._on_changed)
        self.view_model.devices_changed.connect(self._on_devices_changed)
        self.pane.devices.picked.connect(self._on_device_picked)
        self.pane.instead.clicked.connect(self._on_instead)
        self.pane.match.clicked.connect(self._on_match)
        self.pane.add.clicked.connect(self.add_wanted)
        self.pane.elsewhere.clicked.connect(self.elsewhere_wanted)
        self.table.selectionModel().selectionChanged.connect(self._on_selected)

    def set_theme(self, theme: Theme) -> None:
        """Take the colours of ``theme``."""
        self._theme = theme
        self.table.set_theme(theme)
        self._share()

    def set_unit(self, unit: UnitSystem) -> None:
        """Write sizes in GiB or GB."""
        self.view_model.set_unit(unit)

    def show_snapshot(self, snapshot: TelemetrySnapshot, uuid: str) -> None:
        """Show device ``uuid`` (the first one where it is empty or gone) of ``snapshot``."""
        self.view_model.show(snapshot, uuid)

    def show_runtimes(self, runtimes: tuple[RuntimeSeen, ...]) -> None:
        """Tell what these runtimes state beside what their processes hold."""
        self.view_model.set_runtimes(runtimes)

    def show_nothing(self, words: str = "") -> None:
        """Say that nothing is measured: the plan's device isn't here, or sampling has not begun."""
        self._empty.setText(words or tr("Nothing was measured yet."))
        self.view_model.clear()

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._share()

    def _share(self) -> None:
        grown = self._theme.grown if self._theme else round
        wanted = grown(_PANE if self.width() >= grown(_ROOMY_FROM) else _NARROW_PANE)
        self.pane.setFixedWidth(min(wanted, max(_NARROW_PANE, self.width() // 2)))

    def _on_changed(self, state: HoldsState | None) -> None:
        self._stack.setCurrentIndex(0 if state is None else 1)
        self.table.show_state(state)
        count = state.process_count if state else None
        self.count_changed.emit("" if count is None else str(count))
        self.balance_changed.emit(state.balance if state else "")
        self._offer_devices()
        self._on_selected()

    def _on_selected(self) -> None:
        """Tell of the runtime that is selected, or of the one there is, and what can be done."""
        seen, state = self.engine, self.view_model.state
        self.pane.match.setVisible(seen is not None)
        wants_key = seen is not None and seen.reach is Reach.WANTS_KEY
        self.pane.match.setText(tr("Enter its key…") if wants_key else tr("Match with a plan"))
        told_first = (told.passage(seen, self.view_model.unit),) if seen is not None else ()
        self.pane.show_passages((*told_first, *(state.passages if state else ())))
        self._offer_instead()

    @property
    def engine(self) -> RuntimeSeen | None:
        """The runtime of the selected row; with nothing selected, the only one that is told."""
        state = self.view_model.state
        if self.table.selectionModel().hasSelection():
            row = self.table.rows.row_at(self.table.currentIndex().row())
            return self.view_model.runtime_of(row) if row is not None else None
        found = [row.seen for row in state.rows if row.seen] if state else []
        return found[0] if len(found) == 1 else None

    def _on_match(self) -> None:
        if self.engine is not None:
            self.match_wanted.emit(self.engine)

    def _offer_instead(self) -> None:
        row = self._selected()
        self.pane.instead.setVisible(row is not None)
        if row is not None:
            self.pane.instead.setText(tr("Plan instead of {name}").format(name=row.label))

    def _selected(self) -> Row | None:
        """The process that is selected, if one is."""
        if not self.table.selectionModel().hasSelection():
            return None
        row = self.table.rows.row_at(self.table.currentIndex().row())
        return row if row is not None and row.pid and row.size_bytes else None

    def _on_instead(self) -> None:
        row = self._selected()
        if row is not None:
            self.instead_wanted.emit(row)

    def _on_devices_changed(self, devices: tuple[DeviceChoice, ...]) -> None:
        self.pane.devices.setVisible(len(devices) > 1)
        self._offer_devices()

    def _offer_devices(self) -> None:
        choices = [(device.label, device.uuid) for device in self.view_model.devices]
        state = self.view_model.state
        self.pane.devices.set_items(choices, state.uuid if state else None)

    def _on_device_picked(self, uuid: object) -> None:
        self.view_model.pick(str(uuid))
