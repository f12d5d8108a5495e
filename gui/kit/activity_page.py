"""Settings, Network activity: every request of this session, and that there was no other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, Qt, QTimer, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import (
    QHBoxLayout,
    QHeaderView,
    QPushButton,
    QTableView,
    QVBoxLayout,
    QWidget,
)
from typing_extensions import override

from engine.source import activity
from engine.words import figures, tr, tr_count, tr_later
from gui.kit.controls import label, running_text
from gui.kit.figures_table import dress_as_list, set_heights
from gui.kit.format import count

if TYPE_CHECKING:
    from PySide6.QtGui import QHideEvent, QShowEvent

    from engine.source.activity import Activity, Asked
    from gui.kit.theme import Theme

Index = QModelIndex | QPersistentModelIndex

_LOOK_EVERY_MS = 500
_COLUMNS = (
    tr_later("Time"),
    tr_later("Request"),
    tr_later("Status"),
    tr_later("Bytes"),
    tr_later("Seconds"),
)
_REQUEST = 1
_FIGURES = {2, 3, 4}
_WIDEST = ("00:00:00", "", tr_later("no answer"), "67,108,864", "0000.00")


class ActivityModel(QAbstractTableModel):
    """The requests, newest first."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._rows: tuple[Asked, ...] = ()

    @property
    def rows(self) -> tuple[Asked, ...]:
        """Newest first."""
        return self._rows

    def show_rows(self, rows: tuple[Asked, ...]) -> None:
        """Show ``rows``, newest first."""
        self.beginResetModel()
        self._rows = rows
        self.endResetModel()

    @override
    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008 - Qt's own default
        return 0 if parent.isValid() else len(self._rows)

    @override
    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008 - see above
        return 0 if parent.isValid() else len(_COLUMNS)

    @override
    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        if orientation is not Qt.Orientation.Horizontal:
            return None
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _alignment(section)
        return tr(_COLUMNS[section]) if role == Qt.ItemDataRole.DisplayRole else None

    @override
    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        asked = self._rows[index.row()]
        if role == Qt.ItemDataRole.DisplayRole:
            return _cells(asked)[index.column()]
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _alignment(index.column())
        return _more(asked) if role == Qt.ItemDataRole.ToolTipRole else None


def _alignment(column: int) -> Qt.AlignmentFlag:
    side = Qt.AlignmentFlag.AlignRight if column in _FIGURES else Qt.AlignmentFlag.AlignLeft
    return side | Qt.AlignmentFlag.AlignVCenter


def _cells(asked: Asked) -> tuple[str, ...]:
    going_on = asked.duration_s is None
    none = "…" if going_on else tr("no answer")
    often = f" × {count(asked.times)}" if asked.times > 1 else ""
    return (
        f"{asked.at.astimezone():%H:%M:%S}",
        f"{asked.method} {asked.host}{asked.path}{often}",
        none if asked.status is None else str(asked.status),
        "" if going_on else count(asked.received_bytes),
        "" if asked.duration_s is None else figures(f"{asked.duration_s:.2f}"),
    )


def _more(asked: Asked) -> str:
    through = tr("Through the proxy {proxy}").format(proxy=asked.proxy) if asked.proxy else ""
    return "\n".join(
        filter(None, (f"{asked.method} {asked.host}{asked.path}", through, asked.trouble))
    )


class ActivityPage(QWidget):
    """Looks at the list of requests while it is shown."""

    def __init__(self, listed: Activity, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._listed = listed
        self._version = -1
        self.promise = running_text("small")
        self.promise.setObjectName("promise")
        self.promise.setText(tr(activity.PROMISE))
        self.told = label("", "strong", "requests")
        self.copy = QPushButton(tr("Copy"))
        self.copy.setObjectName("copy the list")
        self.copy.setAccessibleName(tr("Copy the list of requests"))
        self.copy.setAutoDefault(False)
        self.copy.clicked.connect(self._on_copy)
        self.table = QTableView()
        self.table.setObjectName("requests of this session")
        self.table.setAccessibleName(tr("Requests of this session"))
        self.model = ActivityModel(self)
        self.table.setModel(self.model)
        self._dress_table()
        head = QHBoxLayout()
        head.addWidget(self.told, 1)
        head.addWidget(self.copy)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(12)
        column.addWidget(self.promise)
        column.addLayout(head)
        column.addWidget(self.table, 1)
        self._look = QTimer(self)
        self._look.setInterval(_LOOK_EVERY_MS)
        self._look.timeout.connect(self.refresh)
        self.set_theme(theme)
        self.refresh()

    def _dress_table(self) -> None:
        table = self.table
        dress_as_list(table)
        table.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        head = table.horizontalHeader()
        head.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        head.setSectionResizeMode(_REQUEST, QHeaderView.ResizeMode.Stretch)

    def set_theme(self, theme: Theme) -> None:
        """Take the fonts and heights of ``theme``."""
        table = self.table
        set_heights(table, theme)
        table.setFont(theme.font("small.num"))
        cells, head = table.fontMetrics(), table.horizontalHeader().fontMetrics()
        for column, (title, widest) in enumerate(zip(_COLUMNS, _WIDEST, strict=True)):
            if column != _REQUEST:
                width = max(cells.horizontalAdvance(tr(widest)), head.horizontalAdvance(tr(title)))
                table.setColumnWidth(column, width + 18)

    @Slot()
    def refresh(self) -> None:
        """Show what was asked by now."""
        if self._version == self._listed.version:
            return
        self._version = self._listed.version
        rows = self._listed.all
        self.model.show_rows(rows[::-1])
        self.told.setText(_told(self._listed.total, len(rows)))
        self.copy.setEnabled(bool(rows))
        self.table.setVisible(bool(rows))

    @override
    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.refresh()
        self._look.start()

    @override
    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._look.stop()

    @Slot()
    def _on_copy(self) -> None:
        QGuiApplication.clipboard().setText(activity.text(self._listed.all))


def _told(total: int, kept: int) -> str:
    if not total:
        return tr("Nothing was sent in this session.")
    words = tr_count("{number} request in this session", "{number} requests in this session", total)
    told = words.format(number=count(total))
    if kept < total:
        told = tr("{requests}, the last {kept} of them here").format(
            requests=told, kept=count(kept)
        )
    return told
