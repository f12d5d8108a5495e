"""Settings, Learned runs: what plans for this computer follow, to look at, export and forget."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import (
    QHBoxLayout,
    QHeaderView,
    QPushButton,
    QTableWidget,
    QTableWidgetItem,
    QVBoxLayout,
    QWidget,
)

from engine.budget.model import Region
from engine.lessons import TOTAL
from engine.units import UnitSystem
from engine.words import tr, tr_count
from gui.kit import format as fmt
from gui.kit.controls import running_text
from gui.kit.figures_table import dress_as_list, set_heights

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.lessons import Kept, Lesson, Measured
    from gui.kit.theme import Theme

_MODEL = 1


class LearnedPage(QWidget):
    """A row per run, and below it what the chosen one measured beside what the rule had said."""

    forget_wanted = Signal(object)
    """Ids of the runs that are to go."""
    undo_wanted = Signal()
    export_wanted = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._kept: tuple[Lesson, ...] = ()
        self._unit = UnitSystem.BINARY
        self.told = running_text("secondary")
        self.told.setObjectName("learned runs told")
        self.table = QTableWidget(0, 4)
        self.table.setObjectName("learned runs")
        self.table.setAccessibleName(tr("Learned runs"))
        self.table.setHorizontalHeaderLabels([tr("Date"), tr("Model"), tr("Runtime"), tr("Device")])
        self.details = running_text("small")
        self.details.setObjectName("learned run")
        self.details.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse
            | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self.forget = self._button(tr("Forget"), tr("Forget the chosen runs"))
        self.undo = self._button(tr("Undo"), tr("Take back the last forgetting"))
        self.export = self._button(tr("Export…"), tr("Write all runs to a file"))
        self._lay_out()
        self._dress_table()
        self.set_theme(theme)
        self.table.itemSelectionChanged.connect(self._on_selected)
        self.forget.clicked.connect(self._on_forget)
        self.undo.clicked.connect(self.undo_wanted)
        self.export.clicked.connect(self.export_wanted)
        self.undo.setEnabled(False)

    def _lay_out(self) -> None:
        row = QHBoxLayout()
        row.setSpacing(8)
        for button in (self.forget, self.undo, self.export):
            row.addWidget(button)
        row.addStretch(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(12)
        column.addWidget(self.told)
        column.addWidget(self.table, 1)
        column.addWidget(self.details)
        column.addLayout(row)
        column.addStretch()

    def _dress_table(self) -> None:
        table = self.table
        dress_as_list(table)
        head = table.horizontalHeader()
        head.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        head.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        head.setSectionResizeMode(_MODEL, QHeaderView.ResizeMode.Stretch)

    @staticmethod
    def _button(text: str, name: str) -> QPushButton:
        button = QPushButton(text)
        button.setAccessibleName(name)
        button.setToolTip(name)
        button.setAutoDefault(False)
        return button

    def set_theme(self, theme: Theme) -> None:
        """Take the fonts and heights of ``theme``."""
        set_heights(self.table, theme)
        self.table.setFont(theme.font("small"))

    def show_kept(self, kept: Kept, unit: UnitSystem, *, can_undo: bool) -> None:
        """Show the runs, newest first."""
        self._kept = tuple(sorted(kept.lessons, key=lambda one: -one.learned_at_s))
        self._unit = unit
        self.told.setText(_told(len(self._kept), len(kept.unread_lines)))
        self.table.setRowCount(len(self._kept))
        for row, lesson in enumerate(self._kept):
            key = lesson.key
            for column, text in enumerate(
                (_day(lesson), key.model, f"{key.runtime} {key.runtime_version}", _devices(lesson))
            ):
                self.table.setItem(row, column, QTableWidgetItem(text))
        self.table.setVisible(bool(self._kept))
        self.export.setEnabled(bool(self._kept))
        self.undo.setEnabled(can_undo)
        if self._kept:
            self.table.selectRow(0)
        self._on_selected()

    @property
    def chosen(self) -> tuple[Lesson, ...]:
        """The runs that are selected."""
        rows = {index.row() for index in self.table.selectedIndexes()}
        return tuple(self._kept[row] for row in sorted(rows) if row < len(self._kept))

    @Slot()
    def _on_selected(self) -> None:
        chosen = self.chosen
        self.forget.setEnabled(bool(chosen))
        self.details.setText("\n".join(_details(chosen[0], self._unit)) if chosen else "")
        self.details.setVisible(bool(chosen))

    @Slot()
    def _on_forget(self) -> None:
        self.forget_wanted.emit(tuple(lesson.id for lesson in self.chosen))


def _told(count: int, unread: int) -> str:
    if not count:
        told = tr(
            "Nothing was learned yet. Open the log of a run on this computer and choose “Learn "
            "from this run”."
        )
    else:
        words = tr_count(
            "Plans that are the same as this run follow it; those near it get narrower ranges.",
            "Plans that are the same as one of these {count} runs follow it; those near one get "
            "narrower ranges.",
            count,
        )
        told = words.format(count=fmt.count(count))
    if unread:
        words = tr("{count} lines of the file can’t be read; they are kept.")
        told = f"{told} {words.format(count=fmt.count(unread))}"
    return told


def _day(lesson: Lesson) -> str:
    return datetime.fromtimestamp(lesson.learned_at_s, UTC).astimezone().strftime("%Y-%m-%d")


def _devices(lesson: Lesson) -> str:
    names = [device.rpartition(" · ")[0] for device in lesson.key.devices]
    return ", ".join(
        name if names.count(name) == 1 else f"{names.count(name)} × {name}"
        for name in dict.fromkeys(names)
    )


def _details(lesson: Lesson, unit: UnitSystem) -> Iterator[str]:
    settings = ", ".join(f"{name} {value}" for name, value in lesson.key.settings)
    yield f"{lesson.source}. {settings}".strip()
    names = {region.value: region.label for region in Region} | {TOTAL: tr("All of the plan")}
    for rank, regions in enumerate(lesson.ranks):
        for region, one in regions.items():
            words = tr("Rank {rank}, {region}: {measured} measured, the rule said {range}")
            yield words.format(
                rank=rank,
                region=names.get(region, region),
                measured=fmt.size(one.size_bytes, unit),
                range=_range(one, unit),
            )


def _range(one: Measured, unit: UnitSystem) -> str:
    low, high = fmt.size(one.low_bytes, unit), fmt.size(one.high_bytes, unit)
    return low if low == high else tr("{low} to {high}").format(low=low, high=high)
