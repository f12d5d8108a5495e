"""What is known of one model: its name and facts, what can be done with it, its shape."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import (
    QFormLayout,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QScrollArea,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from engine.errors import PlimsollError
from engine.text import printable
from engine.units import UnitSystem, in_unit
from engine.words import tr, tr_later
from gui.browser.files_block import FilesBlock
from gui.browser.filters import IMAGES, SOUND, TEXT
from gui.browser.rows import parameters_short, where
from gui.browser.shape import shape
from gui.kit.controls import Ground, Hairline, label, running_text
from gui.kit.dialogs import closing_row
from gui.kit.format import count
from gui.kit.icons import icon, pixmap
from gui.kit.messages import sentence

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gui.browser.repository_files import RepositoryFiles
    from gui.browser.rows import Badge, Row
    from gui.kit.theme import Theme

WIDTH, NARROW = 336, 280
_GAP = 4
_MONTHS = (
    tr_later("Jan"),
    tr_later("Feb"),
    tr_later("Mar"),
    tr_later("Apr"),
    tr_later("May"),
    tr_later("Jun"),
    tr_later("Jul"),
    tr_later("Aug"),
    tr_later("Sep"),
    tr_later("Oct"),
    tr_later("Nov"),
    tr_later("Dec"),
)
_TAKEN = {TEXT: tr_later("text"), IMAGES: tr_later("images"), SOUND: tr_later("sound")}
_GATED = tr_later(
    "Sizing works already: the shape of this model is known here. Exact file sizes and the newest "
    "revision need your access."
)
_GATED_UNREAD = tr_later(
    "Accept them on the model’s page; then its files can be read with your token."
)


class DetailPane(Ground):
    """One row of the table, at length."""

    opened = Signal(str)
    """Key of the row that shall be sized."""
    favourite_turned = Signal(object, bool)
    """The ``Row``, and whether it shall be kept."""
    access_wanted = Signal()
    """A token is to be entered."""
    page_wanted = Signal(str)
    """Address of the model's page."""

    def __init__(self, files: RepositoryFiles, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("detail")
        self.setAccessibleName(tr("About this model"))
        self._theme = theme
        self._row: Row | None = None
        self._page = ""
        self.name = running_text("title")
        self.name.setObjectName("detail name")
        self._gated = QWidget()
        self._lock, self._gated_word = QLabel(), label(tr("Gated"), "secondary")
        self.facts = running_text("secondary")
        self.facts.setObjectName("detail facts")
        self.verdict = running_text("plain")
        self.verdict.setObjectName("detail verdict")
        self.choose = QPushButton(tr("Size this model"))
        self.choose.setObjectName("size this model")
        self.choose.setProperty("role", "primary")
        self.page = QPushButton(tr("Hub page"))
        self.page.setObjectName("hub page")
        self.star = QPushButton()
        self.star.setObjectName("favourite")
        self.star.setProperty("role", "flat")
        self.star.setCheckable(True)
        self._terms = QWidget()
        self._terms_title = label(tr("Files are behind the publisher’s terms"), "strong")
        self._terms_title.setWordWrap(True)
        self._terms_text = running_text("small")
        self.terms = QPushButton(tr("Open terms"))
        self.terms.setObjectName("open terms")
        self.access = QPushButton(tr("Enter a token…"))
        self.access.setObjectName("enter a token")
        self.files = FilesBlock(files, theme)
        self._shape_title = label(tr("Shape"), "strong", "shape")
        self._shape = QWidget()
        self._build()
        self._connect()
        self.set_theme(theme)
        self.show_row(None, None, "", UnitSystem.BINARY)

    def _connect(self) -> None:
        self.choose.clicked.connect(self._on_size)
        self.page.clicked.connect(self._on_page)
        self.star.clicked.connect(self._on_star)
        self.terms.clicked.connect(self._on_page)
        self.access.clicked.connect(self.access_wanted)

    def _build(self) -> None:
        inside = Ground()
        column = self._column = QVBoxLayout(inside)
        column.setContentsMargins(16, 16, 16, 16)
        column.setSpacing(0)
        head = QHBoxLayout()
        head.addWidget(self.name, 1, Qt.AlignmentFlag.AlignTop)
        gated = QHBoxLayout(self._gated)
        gated.setContentsMargins(0, 3, 0, 0)
        gated.setSpacing(_GAP)
        gated.addWidget(self._lock)
        gated.addWidget(self._gated_word)
        head.addWidget(self._gated, 0, Qt.AlignmentFlag.AlignTop)
        head.addWidget(self.star, 0, Qt.AlignmentFlag.AlignTop)
        column.addLayout(head)
        column.addSpacing(2)
        column.addWidget(self.facts)
        column.addSpacing(6)
        column.addWidget(self.verdict)
        column.addSpacing(12)
        column.addLayout(closing_row(first=(self.choose, self.page)))
        column.addSpacing(16)
        column.addWidget(self._terms_block())
        column.addWidget(self.files)
        self._shape_edge = Hairline()
        column.addWidget(self._shape_edge)
        column.addSpacing(12)
        column.addWidget(self._shape_title)
        column.addSpacing(6)
        column.addWidget(self._shape)
        column.addStretch(1)
        area = QScrollArea()
        area.setFrameShape(QScrollArea.Shape.NoFrame)
        area.setWidgetResizable(True)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        area.setWidget(inside)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.addWidget(area)

    def _terms_block(self) -> QWidget:
        column = QVBoxLayout(self._terms)
        column.setContentsMargins(0, 0, 0, 16)
        column.setSpacing(4)
        column.addWidget(Hairline())
        column.addSpacing(8)
        column.addWidget(self._terms_title)
        column.addWidget(self._terms_text)
        column.addSpacing(4)
        column.addLayout(closing_row(first=(self.terms, self.access)))
        return self._terms

    def set_theme(self, theme: Theme) -> None:
        """Take the colours and fonts of ``theme``."""
        self._theme = theme
        self.name.setFont(theme.font("title"))
        self.facts.setFont(theme.font("small"))
        self.verdict.setFont(theme.font("small.medium"))
        self.files.set_theme(theme)
        for part in (self._terms_title, self._shape_title):
            part.setFont(theme.font("body.strong"))
        ink = theme.color("text.secondary")
        self._lock.setPixmap(pixmap("lock", ink, theme.grown(12), self.devicePixelRatioF()))
        self._gated_word.setFont(theme.font("small.strong"))
        size = theme.grown(14)
        for button in (self.page, self.terms):
            button.setIconSize(QSize(size + _GAP, size))
            button.setIcon(icon("external-link", theme.color("text.primary"), size, _GAP))
        self.star.setIconSize(QSize(size, size))
        for part in self._shape.findChildren(QLabel):
            part.setFont(theme.font("small"))

    def show_row(self, row: Row | None, badge: Badge | None, page: str, unit: UnitSystem) -> None:
        """Tell of ``row``.

        Args:
            row: the model; None where none is chosen.
            badge: whether it fits.
            page: address of its page; empty where it has none.
            unit: of all sizes.
        """
        self._row, self._page = row, page
        self.files.show_row(row if page else None)
        is_there = row is not None
        self.name.setText(printable(row.name, 200) if row else tr("No model chosen"))
        self.facts.setText(
            _facts(row, unit) if row else tr("Choose one in the table to see its shape.")
        )
        self._gated.setVisible(bool(row and row.gated))
        self.verdict.setText(in_unit(badge.reason, unit) if badge else "")
        self.verdict.setVisible(bool(badge and badge.reason))
        self.choose.setVisible(is_there)
        self.page.setVisible(is_there and bool(page))
        self.star.setVisible(is_there)
        self._terms.setVisible(bool(row and row.gated and page))
        is_known = row is not None and row.model is not None
        self._terms_text.setText(tr(_GATED if is_known else _GATED_UNREAD))
        self._shape_title.setVisible(is_there)
        self._shape_edge.setVisible(is_there)
        self._fill_shape(_lines(row, unit) if row else ())

    def show_favourite(self, *, kept: bool) -> None:
        """Show whether the row is among the favourites."""
        words = tr("Remove from favourites") if kept else tr("Add to favourites")
        self.star.setChecked(kept)
        self.star.setAccessibleName(words)
        self.star.setToolTip(words)
        ink = self._theme.color("accent.text" if kept else "text.secondary")
        self.star.setIcon(icon("star", ink, self._theme.grown(14)))

    def _fill_shape(self, lines: Iterable[tuple[str, str]]) -> None:
        old, self._shape = self._shape, QWidget()
        form = QFormLayout(self._shape)
        form.setContentsMargins(0, 0, 0, 0)
        form.setHorizontalSpacing(12)
        form.setVerticalSpacing(6)
        form.setFormAlignment(Qt.AlignmentFlag.AlignTop)
        for name, text in lines:
            head, figure = label(name, "secondary"), running_text("plain")
            head.setMinimumWidth(self._theme.grown(76))
            figure.setText(text)
            figure.setAccessibleName(f"{name}: {text}")
            figure.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
            for part in (head, figure):
                part.setFont(self._theme.font("small"))
            form.addRow(head, figure)
            form.addRow(Hairline())
        self._column.replaceWidget(old, self._shape)
        old.deleteLater()

    def _on_size(self) -> None:
        if self._row is not None:
            self.opened.emit(self._row.key)

    def _on_star(self) -> None:
        if self._row is not None:
            self.favourite_turned.emit(self._row, self.star.isChecked())

    def _on_page(self) -> None:
        if self._page:
            self.page_wanted.emit(self._page)


def _facts(row: Row, unit: UnitSystem) -> str:
    """``google, 12.2 B parameters, BF16, licence gemma, updated 21 Mar 2025, on the Hub``."""
    parts = [row.owner]
    if row.parameters:
        number = parameters_short(row.parameters)
        parts.append(tr("{number} parameters").format(number=number))
    parts.append(row.weight_format)
    if row.takes:
        words = tr(" and ").join(tr(_TAKEN[word]) for word in row.takes)
        parts.append(tr("takes in {words}").format(words=words))
    if row.downloads:
        parts.append(tr("{number} downloads").format(number=count(row.downloads)))
    if row.likes:
        parts.append(tr("{number} likes").format(number=count(row.likes)))
    if row.licence:
        parts.append(tr("licence {name}").format(name=row.licence))
    parts.append(_day(row.updated))
    places = where(row, unit)
    parts.append(places[:1].lower() + places[1:])
    return ", ".join(printable(part, 100) for part in parts if part)


def _day(stated: str) -> str:
    """``updated 21 Mar 2025``, from an ISO 8601 moment; empty where it is none."""
    year, month, day = [*stated[:10].split("-"), "", ""][:3]
    if not (year.isdecimal() and month.isdecimal() and day.isdecimal() and 1 <= int(month) <= 12):
        return ""
    return tr("updated {day} {month} {year}").format(
        day=int(day), month=tr(_MONTHS[int(month) - 1]), year=year
    )


def _lines(row: Row, unit: UnitSystem) -> tuple[tuple[str, str], ...]:
    if row.model is None:
        return ((tr("Unread"), tr("Size this model to read the headers of its files.")),)
    try:
        return shape(row.model(), unit)
    except PlimsollError as error:
        return ((tr("Unknown"), sentence(error)),)
