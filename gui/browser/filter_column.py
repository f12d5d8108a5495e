"""The column of filters: a group of check boxes, a range or a choice for each kind."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import (
    QCheckBox,
    QHBoxLayout,
    QPushButton,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)
from typing_extensions import override

from engine.units import UnitSystem, format_bytes
from engine.words import figures, tr, tr_count, tr_later
from gui.browser import filters as f
from gui.browser.filters import ALL, ANY, UNKNOWN, Group, Span
from gui.browser.range_slider import RangeSlider
from gui.browser.rows import parameters_short
from gui.kit.controls import Choice, ElidedLabel, Ground, Hairline, label
from gui.kit.format import count, tokens_short

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gui.browser.columns import Arranged
    from gui.browser.filters import Filters
    from gui.kit.theme import Theme

WIDTH = 216
_BOXES: dict[Group, tuple[str, ...]] = {
    Group.FIT: f.FITS,
    Group.FORMAT: f.FORMATS,
    Group.TAKES: (*f.TAKES, UNKNOWN),
    Group.ACCESS: f.ACCESS,
}
"""Groups of check boxes; the others have one box, for what isn't known."""
_ALWAYS = {(Group.FIT, UNKNOWN)}
_NOT_KNOWN = tr_later("Not known")
_UNKNOWN_WORDS = {Group.FIT: UNKNOWN}
_AGES = {
    tr_later("A month"): 30,
    tr_later("Three months"): 91,
    tr_later("A year"): 365,
    tr_later("Two years"): 730,
}
_MOST_CHOICES = 200
"""Authors offered, those with most models first."""


class CheckRow(QWidget):
    """A check box with the number of models behind it."""

    def __init__(self, group: Group, choice: str, words: str) -> None:
        super().__init__()
        self.group, self.choice = group, choice
        self.box = QCheckBox(words)
        self.box.setObjectName(f"{group.value}: {choice}")
        self._words = words
        self._number = label("", "caption")
        self._number.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(self.box, 1)
        row.addWidget(self._number)

    def set_theme(self, theme: Theme) -> None:
        """Take the fonts and sizes of ``theme``."""
        self.setFixedHeight(theme.size("hit.min") + 1)
        self.box.setFont(theme.font("table"))
        self._number.setFont(theme.font("small.num"))

    def show_choice(self, number: int, *, checked: bool) -> None:
        """Show whether it is on, and for how many models it stands."""
        self.box.setChecked(checked)
        self._number.setText(count(number))
        said = tr_count(
            "{group}: {choice}, {number} model", "{group}: {choice}, {number} models", number
        )
        self.box.setAccessibleName(
            said.format(group=tr(self.group.value), choice=self._words, number=count(number))
        )


class _Section(QWidget):
    """One group: its heading, its control and its check boxes."""

    def __init__(self, group: Group, control: QWidget | None) -> None:
        super().__init__()
        self.group, self.control = group, control
        self.heading = ElidedLabel("caption", name=f"{group.value} heading")
        self.heading.set_text(tr(group.value))
        boxes = _BOXES.get(group, (UNKNOWN,))
        self.boxes = tuple(
            CheckRow(group, choice, tr(_UNKNOWN_WORDS.get(group, _NOT_KNOWN)))
            if choice == UNKNOWN
            else CheckRow(group, choice, tr(choice))
            for choice in boxes
        )
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 10, 16, 8)
        column.setSpacing(0)
        column.addWidget(self.heading)
        column.addSpacing(4)
        if control is not None:
            column.addWidget(control)
            self.heading.setBuddy(control)
            if isinstance(control, Choice):
                control.setAccessibleName(tr(group.value))
        for box in self.boxes:
            column.addWidget(box)


class FilterColumn(Ground):
    """Shows the filters in force and tells which ones the user wants."""

    changed = Signal(object)
    """The new ``Filters``."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent, window=True)
        self.setObjectName("filters")
        self.setAccessibleName(tr("Filters"))
        self._filters = ALL
        self._unit = UnitSystem.BINARY
        self.parameters = RangeSlider(Group.PARAMETERS.value, f.PARAMETER_LIMITS, _parameters)
        self.weights = RangeSlider(Group.WEIGHTS.value, f.WEIGHT_LIMITS, self._bytes)
        self.quant = Choice("quantisation")
        self.context = Choice("least context")
        self.updated = Choice("last change")
        self.author = Choice("author")
        self.licence = Choice("licence")
        controls: dict[Group, QWidget] = {
            Group.PARAMETERS: self.parameters,
            Group.WEIGHTS: self.weights,
            Group.QUANT: self.quant,
            Group.CONTEXT: self.context,
            Group.UPDATED: self.updated,
            Group.AUTHOR: self.author,
            Group.LICENCE: self.licence,
        }
        self._sections = tuple(_Section(group, controls.get(group)) for group in Group)
        self.reset = QPushButton(tr("Show all"))
        self.reset.setObjectName("show all")
        self._build()
        self.parameters.moved.connect(self._on_parameters)
        self.weights.moved.connect(self._on_weights)
        self.quant.picked.connect(self._on_quant)
        self.context.picked.connect(self._on_context)
        self.updated.picked.connect(self._on_updated)
        self.author.picked.connect(self._on_author)
        self.licence.picked.connect(self._on_licence)
        self.reset.clicked.connect(self._on_reset)

    def _build(self) -> None:
        inside = Ground(window=True)
        column = QVBoxLayout(inside)
        column.setContentsMargins(0, 4, 0, 12)
        column.setSpacing(0)
        for section in self._sections:
            column.addWidget(section)
            column.addWidget(Hairline())
            for row in section.boxes:
                row.box.clicked.connect(self._on_box)
        column.addSpacing(12)
        foot = QHBoxLayout()
        foot.setContentsMargins(16, 0, 16, 0)
        foot.addWidget(self.reset)
        foot.addStretch(1)
        column.addLayout(foot)
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

    @override
    def sizeHint(self) -> QSize:
        return QSize(WIDTH, 600)

    def set_theme(self, theme: Theme) -> None:
        """Take the fonts and sizes of ``theme``."""
        for section in self._sections:
            section.heading.setFont(theme.font("small"))
            for row in section.boxes:
                row.set_theme(theme)
        for choice in (self.quant, self.context, self.updated, self.author, self.licence):
            choice.setFont(theme.font("table"))
            choice.set_widths(80, WIDTH - 48)
            choice.setFixedHeight(theme.size("control"))
        self.reset.setFixedHeight(theme.size("control"))

    def show_filters(self, filters: Filters, rows: Arranged, unit: UnitSystem, plan: str) -> None:
        """Show ``filters`` with the numbers of ``rows``; tells nobody.

        Args:
            filters: those in force.
            rows: what they leave, which counts each choice.
            unit: of the stored bytes.
            plan: what "fit" is about: machine, context, runtime.
        """
        self._filters, self._unit = filters, unit
        self.parameters.set_span(filters.parameters)
        self.weights.set_span(filters.weights)
        for section in self._sections:
            self._show_section(section, filters, rows.counts(section.group), plan)
        self.reset.setEnabled(filters != ALL)

    def _show_section(
        self, section: _Section, filters: Filters, counts: Mapping[str, int], plan: str
    ) -> None:
        group = section.group
        for row in section.boxes:
            number = counts.get(row.choice, 0)
            is_takes = group is Group.TAKES and row.choice != UNKNOWN
            checked = (
                row.choice in filters.takes if is_takes else not filters.hides(group, row.choice)
            )
            row.show_choice(number, checked=checked)
            is_needed = bool(number) or not checked or (group, row.choice) in _ALWAYS
            row.setVisible(is_needed or row.choice != UNKNOWN)
        match group:
            case Group.FIT:
                words = tr("Fit on {plan}").format(plan=plan) if plan else tr(group.value)
                section.heading.set_text(words)
            case Group.PARAMETERS:
                section.heading.set_text(_span(group, filters.parameters, _parameters))
            case Group.WEIGHTS:
                section.heading.set_text(_span(group, filters.weights, self._bytes))
            case Group.QUANT:
                offered = _offered(counts, filters.quant, tr("Any quantisation"))
                self.quant.set_items(offered, filters.quant)
            case Group.CONTEXT:
                tokens = tr("{number} tokens")
                spans = ((tokens.format(number=tokens_short(n)), n) for n in f.CONTEXTS)
                items = [(tr("Any"), 0), *spans]
                self.context.set_items(items, filters.context)
            case Group.UPDATED:
                self.updated.set_items(_ages(filters.since), filters.since)
            case Group.AUTHOR:
                self.author.set_items(
                    _offered(counts, filters.author, tr("Any author")), filters.author
                )
            case Group.LICENCE:
                offered = _offered(counts, filters.licence, tr("Any licence"))
                self.licence.set_items(offered, filters.licence)
            case _:
                pass

    def _bytes(self, number: int) -> str:
        return format_bytes(number, self._unit, digits=1 if number < 10 * 2**30 else 0)

    def _on_box(self) -> None:
        for section in self._sections:
            for row in section.boxes:
                if row.box is self.sender():
                    self._tell(_with_box(self._filters, row))

    def _on_parameters(self, span: Span) -> None:
        self._tell(self._filters.with_(parameters=span))

    def _on_weights(self, span: Span) -> None:
        self._tell(self._filters.with_(weights=span))

    def _on_quant(self, quant: object) -> None:
        self._tell(self._filters.with_(quant=quant))

    def _on_context(self, least: object) -> None:
        self._tell(self._filters.with_(context=least))

    def _on_updated(self, since: object) -> None:
        self._tell(self._filters.with_(since=since))

    def _on_author(self, author: object) -> None:
        self._tell(self._filters.with_(author=author))

    def _on_licence(self, licence: object) -> None:
        self._tell(self._filters.with_(licence=licence))

    def _on_reset(self) -> None:
        self._tell(ALL)

    def _tell(self, filters: Filters) -> None:
        self._filters = filters
        self.changed.emit(filters)


def _with_box(filters: Filters, row: CheckRow) -> Filters:
    checked = row.box.isChecked()
    if row.group is Group.TAKES and row.choice != UNKNOWN:
        one = {row.choice}
        return filters.with_(takes=filters.takes | one if checked else filters.takes - one)
    return filters.with_shown(row.group, row.choice, shown=checked)


def _parameters(number: int) -> str:
    """``90 B``: a round number needs no decimal."""
    return parameters_short(number).replace(figures(".0 "), " ")


def _span(group: Group, span: Span, say: Callable[[int], str]) -> str:
    """``Parameters: 1 B to 90 B``."""
    if span == ANY:
        words = tr("{group}: any")
    elif span.high >= ANY.high:
        words = tr("{group}: from {low}")
    else:
        words = tr("{group}: {low} to {high}") if span.low else tr("{group}: up to {high}")
    return words.format(group=tr(group.value), low=say(span.low), high=say(span.high))


def _ages(chosen: int) -> list[tuple[str, object]]:
    """Spans up to today; one that was chosen on another day keeps its own first day."""
    today = datetime.now(UTC).date()
    days = {words: today - timedelta(days=number) for words, number in _AGES.items()}
    found = [(tr(words), f.moment(day.isoformat())) for words, day in days.items()]
    known = [(tr("Any time"), 0), *found]
    if chosen not in {since for _, since in known}:
        text = str(chosen)
        day = f"{text[:4]}-{text[4:6]}-{text[6:8]}"
        known.append((tr("Since {day}").format(day=day), chosen))
    return [*known]


def _offered(counts: Mapping[str, int], chosen: str, anything: str) -> list[tuple[str, object]]:
    """What is known, with numbers, the most frequent first; what is chosen always."""
    known = sorted(counts, key=lambda word: (-counts[word], word.casefold()))
    kept = [word for word in known if word != UNKNOWN and counts[word]][:_MOST_CHOICES]
    if chosen and chosen not in kept:
        kept.insert(0, chosen)
    return [(anything, ""), *((f"{word}, {count(counts.get(word, 0))}", word) for word in kept)]
