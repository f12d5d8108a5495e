"""The tab "Log": a run's log at the left, what it states against the plan at the right."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QScrollArea,
    QStackedLayout,
    QVBoxLayout,
    QWidget,
)
from typing_extensions import override

from engine.logs import words
from engine.words import tr
from gui.kit.controls import Choice, ElidedLabel, Ground, Hairline, label, running_text
from gui.kit.icons import icon, pixmap
from gui.log import present
from gui.log.log_text import LogText
from gui.log.region_table import RunRegionTable

if TYPE_CHECKING:
    from PySide6.QtGui import QResizeEvent

    from engine.logs.reading import Line
    from gui.kit.theme import Theme
    from gui.log.present import RegionLine
    from gui.log.view_model import LogState, LogViewModel

_PANE = 512
_PANE_LEAST = 400
_ROOMY_FROM = 1080
_GAP = 3


class LogView(Ground):
    """Text, table, and the way to both: a file, or what was copied."""

    open_wanted = Signal()
    paste_wanted = Signal()
    plan_wanted = Signal()
    """The run's own plan shall come into the window."""
    predict_wanted = Signal()
    """The run shall be predicted for the model in the window."""
    learn_wanted = Signal()
    """Plans for this computer shall follow what the run measured."""
    copy_wanted = Signal()

    def __init__(self, model: LogViewModel, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("log")
        self._model = model
        self._shown: object = None
        self._theme: Theme | None = None
        self.text = LogText()
        self.table = RunRegionTable()
        self.rank = Choice("run rank")
        self.rank.setAccessibleName(tr("Rank that is shown"))
        self._mark = QLabel()
        self._name = ElidedLabel("strong", Qt.TextElideMode.ElideMiddle, "log name")
        self._about = ElidedLabel("small", name="log facts")
        self._balance = label("", "small", "balance at the failure")
        self._balance.setWordWrap(True)
        self._passages = QVBoxLayout()
        self._plan = QPushButton(tr("Plan this run"))
        self._learn = QPushButton(tr("Learn from this run"))
        self._copy = QPushButton(tr("Copy"))
        self._predict = QPushButton()
        self._model_in_window = ""
        self._buttons: list[tuple[QPushButton, str]] = []
        self._stack = QStackedLayout(self)
        self._stack.addWidget(self._nothing())
        self._stack.addWidget(self._room())
        model.changed.connect(self.show_state)
        self.text.line_selected.connect(self._on_line_selected)
        self.table.region_selected.connect(self._on_region_selected)
        self.rank.picked.connect(self._on_rank_picked)
        self._plan.clicked.connect(self.plan_wanted)
        self._learn.clicked.connect(self.learn_wanted)
        self._copy.clicked.connect(self.copy_wanted)
        self._predict.clicked.connect(self.predict_wanted)

    def _nothing(self) -> QWidget:
        """What stands here before there is a log."""
        page = QWidget()
        lines = (
            ("strong", tr("What did a run really hold, and why did it fail?")),
            (
                "secondary",
                tr(
                    "Drop a log anywhere, or paste it: the start of a runtime, a metrics page, or "
                    "the text of an out-of-memory failure."
                ),
            ),
            ("small", tr("It is read on this computer and sent nowhere.")),
        )
        column = QVBoxLayout(page)
        column.setSpacing(4)
        column.addStretch(1)
        for role, text in lines:
            line = label(text, role)
            line.setAlignment(Qt.AlignmentFlag.AlignCenter)
            line.setWordWrap(True)
            column.addWidget(line)
        row = QHBoxLayout()
        row.setSpacing(8)
        row.setContentsMargins(0, 12, 0, 0)
        row.addStretch(1)
        row.addWidget(self._button(tr("Paste"), "clipboard", "paste a log first"))
        row.addWidget(self._button(tr("Open…"), "folder", "open a log first"))
        row.addStretch(1)
        column.addLayout(row)
        column.addStretch(1)
        return page

    def _button(self, text: str, picture: str, name: str) -> QPushButton:
        button = QPushButton(text)
        button.setObjectName(name)
        button.clicked.connect(self.paste_wanted if "paste" in name else self.open_wanted)
        self._buttons.append((button, picture))
        return button

    def _room(self) -> QWidget:
        head = QHBoxLayout()
        head.setContentsMargins(16, 4, 12, 4)
        head.setSpacing(8)
        head.addWidget(self._mark)
        head.addWidget(self._name)
        head.addWidget(self._about, 1)
        for text, picture, name in (
            (tr("Paste"), "clipboard", "paste a log"),
            (tr("Open…"), "folder", "open a log"),
        ):
            button = self._button(text, picture, name)
            button.setProperty("role", "flat")
            head.addWidget(button)
        left = QVBoxLayout()
        left.setSpacing(0)
        left.addLayout(head)
        left.addWidget(Hairline())
        left.addWidget(self.text, 1)
        room = QWidget()
        row = QHBoxLayout(room)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        row.addLayout(left, 1)
        row.addWidget(Hairline(upright=True))
        self._pane = self._side()
        row.addWidget(self._pane)
        return room

    def _side(self) -> QScrollArea:
        body = Ground()
        column = QVBoxLayout(body)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        chooser = QHBoxLayout()
        chooser.setContentsMargins(16, 6, 16, 2)
        chooser.addWidget(self.rank)
        chooser.addStretch(1)
        column.addLayout(chooser)
        column.addWidget(self.table)
        self._balance.setContentsMargins(16, 6, 16, 6)
        column.addWidget(self._balance)
        self._below = Hairline()
        column.addWidget(self._below)
        self._passages.setContentsMargins(16, 12, 16, 0)
        self._passages.setSpacing(0)
        column.addLayout(self._passages)
        column.addLayout(self._actions())
        column.addStretch(1)
        area = QScrollArea()
        area.setObjectName("run explained")
        area.setAccessibleName(tr("The run explained"))
        area.setFrameShape(QFrame.Shape.NoFrame)
        area.setWidgetResizable(True)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setWidget(body)
        return area

    def _actions(self) -> QHBoxLayout:
        """What can be done with the run."""
        row = QHBoxLayout()
        row.setContentsMargins(16, 4, 16, 14)
        row.setSpacing(8)
        self._plan.setObjectName("plan this run")
        self._learn.setObjectName("learn from this run")
        self._learn.setToolTip(tr("Let plans for this computer follow what this run measured"))
        self._copy.setObjectName("copy the run")
        self._plan.setToolTip(tr("Put model and settings of this run into the plan"))
        self._copy.setToolTip(tr("Copy what is said of this run as Markdown"))
        self._predict.setObjectName("predict the run")
        self._predict.setToolTip(tr("Take the model in the window for the one that ran"))
        row.addWidget(self._predict)
        row.addWidget(self._plan)
        row.addWidget(self._learn)
        row.addWidget(self._copy)
        row.addStretch(1)
        return row

    def offer_model(self, name: str) -> None:
        """The model in the window, which a log that names none may be of; empty for none."""
        self._model_in_window = name
        self._predict.setText(tr("Predict for {model}").format(model=name.rpartition("/")[2]))
        state = self._model.state
        lacks = state is not None and state.run.plan is None and bool(state.run.reading.runtime)
        self._predict.setVisible(bool(name) and lacks)

    def set_theme(self, theme: Theme) -> None:
        """Take the colours and fonts of ``theme``."""
        self._theme = theme
        self.text.set_theme(theme)
        self.table.set_theme(theme)
        ink = theme.color("text.secondary")
        self._mark.setPixmap(pixmap("file-text", ink, theme.grown(16), self.devicePixelRatioF()))
        size = theme.grown(15)
        for button, picture in (*self._buttons, (self._copy, "copy")):
            button.setIcon(icon(picture, ink, size, _GAP))
            button.setIconSize(QSize(size + _GAP, size))
        width = theme.grown(140)
        self.rank.set_widths(width, width)
        self._share_width()
        self.show_state(self._model.state)

    def show_state(self, state: LogState | None) -> None:
        """Show the log that is open, or how to open one."""
        self._stack.setCurrentIndex(0 if state is None else 1)
        if state is None:
            self._shown = None
            self.text.show_lines(())
            return
        if self._shown is not state.run:
            self._shown = state.run
            self.text.show_lines(state.run.reading.lines)
            if state.run.cause is not None:
                self.text.go_to(state.run.cause.line)
        self.text.mark(state.region)
        self._name.set_text(state.name)
        self._about.set_text(words.about(state.run.reading))
        names = present.rank_names(state)
        self.rank.set_items([(name, i) for i, name in enumerate(names)], state.rank)
        self.rank.setVisible(len(names) > 1)
        rows = present.region_lines(state)
        self.table.show_rows(rows, state.unit.value, state.region)
        self.table.setVisible(bool(rows))
        balance = present.balance(state)
        self._balance.setText(balance)
        self._balance.setVisible(bool(balance))
        self._below.setVisible(bool(balance))
        self._show_passages(present.passages(state))
        self._plan.setVisible(state.run.plan is not None)
        self._learn.setVisible(state.run.plan is not None and not state.run.has_failed)
        self.offer_model(self._model_in_window)

    def _show_passages(self, passages: tuple[present.Passage, ...]) -> None:
        while self._passages.count():
            taken = self._passages.takeAt(0)
            widget = taken.widget() if taken else None
            if widget is not None:
                widget.deleteLater()
        for passage in passages:
            heading = label(passage.heading, "strong")
            text = running_text("small")
            text.setText(passage.text)
            text.setContentsMargins(0, 3, 0, 12)
            self._passages.addWidget(heading)
            self._passages.addWidget(text)

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._share_width()

    def _share_width(self) -> None:
        """The figures keep what their words want, and the text more than a third."""
        width, grown = self.width(), self._theme.grown if self._theme else round
        wanted = min(grown(_PANE_LEAST), width * 6 // 10)
        least = max(_PANE_LEAST, width * 45 // 100, wanted)
        self._pane.setFixedWidth(grown(_PANE) if width >= grown(_ROOMY_FROM) else least)

    def _on_line_selected(self, line: Line) -> None:
        self._model.select(line.region)

    def _on_region_selected(self, row: RegionLine) -> None:
        self._model.select(row.region)
        if row.first_line:
            self.text.go_to(row.first_line)

    def _on_rank_picked(self, rank: object) -> None:
        self._model.show_rank(int(str(rank)))
