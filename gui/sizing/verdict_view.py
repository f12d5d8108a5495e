"""The verdict in one sentence, what would change it, and the two inverse answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QSizePolicy, QVBoxLayout, QWidget
from typing_extensions import override

from engine.fit.verdict import Fit
from engine.units import in_unit
from engine.words import tr, tr_later
from gui.kit.controls import ElidedLabel, Ground, Hairline, Segments, label
from gui.kit.verdict_parts import MarginButton, VerdictMark
from gui.kit.wrap import WrapRow
from gui.sizing import present, running

if TYPE_CHECKING:
    from PySide6.QtGui import QResizeEvent

    from engine.fit.changes import Change
    from engine.overlay.overlay import Overlay
    from engine.units import UnitSystem
    from gui.kit.theme import Theme
    from gui.sizing.view_model import SizingViewModel, State

_NARROW = 950
_BASELINE, _SAID = 132, 300
_MOST_SAID = 700
"""What the words of the verdict have beside a rail in the smallest window."""
_CAPTION = tr_later("What would fit")
_HOPELESS = tr_later(
    "No single change makes it fit: pick a larger device, more of them, or a smaller model"
)


class FactView(QWidget):
    """A caption over a number with its unit."""

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName(name)
        self._caption = label("", "caption")
        self._value = label("", "fact")
        self._unit = label("", "small")
        row = QHBoxLayout()
        row.setSpacing(4)
        row.addWidget(self._value)
        row.addWidget(self._unit, 0, Qt.AlignmentFlag.AlignBaseline)
        row.addStretch(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addStretch(1)
        column.addWidget(self._caption)
        column.addLayout(row)
        column.addStretch(1)

    def show_fact(self, fact: present.Fact, *, narrow: bool) -> None:
        """Show ``fact``, in short where it is narrow."""
        self._caption.setText(fact.short if narrow else fact.caption)
        self._value.setText(fact.value)
        self._unit.setText("" if narrow else fact.unit)
        self._unit.setVisible(not narrow)
        self.setToolTip(fact.tooltip)
        self.setAccessibleName(f"{fact.caption}: {fact.value} {fact.unit}")

    def set_theme(self, theme: Theme) -> None:
        """Take the fonts of ``theme``."""
        self._value.setFont(theme.font("fact.strong.num"))


class ChangeButton(MarginButton):
    """One change that would help, with the margin it would bring."""

    def __init__(self, change: Change, unit: UnitSystem, theme: Theme) -> None:
        color = present.COLORS[change.verdict.fit]
        super().__init__(change.label, present.change_margin(change, unit), color, theme)
        self.change = change
        self.setToolTip(in_unit(change.verdict.headline, unit))


class ChangesRow(QWidget):
    """As many changes as the width holds, the smallest first."""

    chosen = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("changes")
        self._caption = label(tr(_CAPTION), "secondary")
        self._buttons: list[ChangeButton] = []
        self._row = QHBoxLayout(self)
        self._row.setContentsMargins(44, 0, 0, 0)
        self._row.setSpacing(8)
        self._row.addWidget(self._caption)
        self._row.addSpacing(4)
        self._row.addStretch(1)
        self.setMinimumWidth(200)

    @property
    def buttons(self) -> tuple[ChangeButton, ...]:
        """The buttons, smallest change first."""
        return tuple(self._buttons)

    def show_changes(self, state: State, theme: Theme) -> None:
        """Offer the changes of ``state``."""
        for button in self._buttons:
            self._row.removeWidget(button)
            button.hide()
            button.deleteLater()
        self._buttons = []
        for change in state.changes:
            button = ChangeButton(change, state.unit, theme)
            button.clicked.connect(self._on_clicked)
            self._buttons.append(button)
            self._row.insertWidget(self._row.count() - 1, button)
        hopeless = state.limits is not None and not state.changes
        self._caption.setText(tr(_HOPELESS if hopeless else _CAPTION))
        self._fit()

    @override
    def minimumSizeHint(self) -> QSize:
        return QSize(200, 32)

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        left = self.width() - 44 - self._caption.sizeHint().width() - 12
        for button in self._buttons:
            left -= button.sizeHint().width() + 8
            button.setVisible(left >= -8)

    def _on_clicked(self) -> None:
        button = self.sender()
        if isinstance(button, ChangeButton):
            self.chosen.emit(button.change)


class VerdictView(Ground):
    """Mark, headline, detail; facts and the choice between now and emptied; the changes."""

    def __init__(self, model: SizingViewModel, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._model = model
        self._state: State | None = None
        self._overlay: Overlay | None = None
        self._theme: Theme | None = None
        self.mark = VerdictMark()
        self.headline = ElidedLabel("verdict", name="verdict")
        self.detail = ElidedLabel("secondary", name="verdict detail")
        self.longest = FactView("longest context")
        self.most = FactView("most at once")
        self._between = Hairline(upright=True)
        self.baseline = Segments("baseline", ((tr("Now"), False), (tr("Emptied"), True)))
        self.baseline.setToolTip(
            tr(
                "Now: beside what other programs hold on this computer. "
                "Emptied: as if they were all closed."
            )
        )
        self.baseline.picked.connect(self._on_baseline)
        self.changes = ChangesRow()
        self.changes.chosen.connect(model.apply)
        self._build()

    def _build(self) -> None:
        words = QVBoxLayout()
        words.setSpacing(2)
        words.addWidget(self.headline)
        words.addWidget(self.detail)
        self._said = QWidget()
        said = QHBoxLayout(self._said)
        said.setContentsMargins(0, 0, 0, 0)
        said.setSpacing(12)
        said.addWidget(self.mark, 0, Qt.AlignmentFlag.AlignVCenter)
        said.addLayout(words, 1)
        self._facts = QWidget()
        facts = QHBoxLayout(self._facts)
        facts.setContentsMargins(0, 0, 4, 0)
        facts.setSpacing(16)
        facts.addWidget(self.longest)
        facts.addWidget(self._between, 0, Qt.AlignmentFlag.AlignVCenter)
        facts.addWidget(self.most)
        row = WrapRow()
        row.set_gap(12)
        row.add(self._said, 1)
        row.add(self._facts)
        row.add(self.baseline, 0, Qt.AlignmentFlag.AlignVCenter)
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 14, 16, 4)
        column.setSpacing(10)
        column.addLayout(row)
        column.addWidget(self.changes)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)

    @property
    def labels(self) -> tuple[QLabel, QLabel]:
        """Headline and detail."""
        return self.headline, self.detail

    def set_theme(self, theme: Theme) -> None:
        """Take the colours and fonts of ``theme``."""
        self._theme = theme
        self.longest.set_theme(theme)
        self.most.set_theme(theme)
        self._between.setFixedHeight(theme.grown(36))
        self.baseline.setFixedWidth(theme.grown(_BASELINE))
        is_large = theme.text_scale > 1
        self._said.setMinimumWidth(min(theme.grown(_SAID), _MOST_SAID) if is_large else 0)
        for words in (self.headline, self.detail):
            words.set_wraps(wraps=is_large)
        self._fit_headline()
        if self._state is not None:
            self.show_state(self._state)

    def show_state(self, state: State) -> None:
        """Say the verdict in force, or why there is none."""
        self._state = state
        if self._theme is None:
            return
        words = running.verdict(present.verdict(state), self._overlay, state.unit)
        self.mark.show_mark(self._theme, words.color, words.icon)
        self.headline.set_text(words.headline, words.tooltip)
        self.detail.set_text(words.detail)
        self._show_facts()
        # Beside a bound they would promise what nobody knows.
        has_answer = state.fit in (Fit.FITS, Fit.TIGHT)
        self._facts.setVisible(has_answer)
        self.baseline.set_current(state.plan.emptied)
        self.baseline.setVisible(state.plan.device is None)
        # Where only another doesn't fit, no change of this plan is what is wanted.
        offered = state.own_fit is Fit.DOES_NOT_FIT
        self.changes.setVisible(offered)
        if offered:
            self.changes.show_changes(state, self._theme)
        self._give_room()

    def show_overlay(self, overlay: Overlay | None) -> None:
        """Say what runs of the plan, in place of what the plan would do."""
        self._overlay = overlay
        if self._state is not None:
            self.show_state(self._state)

    def _give_room(self) -> None:
        """Lay out the facts, from the inside out, before anything is painted.

        Qt would do so a moment later, and until then show a number cut to the room that the one
        before had.
        """
        for part in (self.longest, self.most, self._facts, self):
            layout = part.layout()
            if layout is not None:
                layout.activate()

    @override
    def sizeHint(self) -> QSize:
        return QSize(super().sizeHint().width(), self.heightForWidth(self.width()))

    @override
    def minimumSizeHint(self) -> QSize:
        return QSize(super().minimumSizeHint().width(), self.heightForWidth(self.width()))

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._show_facts()
        self._fit_headline()
        if event.size().width() != event.oldSize().width():
            self.updateGeometry()

    def _fit_headline(self) -> None:
        if self._theme is not None:
            role = "verdict.compact" if self._is_narrow(self._theme) else "verdict"
            self.headline.setFont(self._theme.font(role))

    def _is_narrow(self, theme: Theme) -> bool:
        return self.width() < theme.grown(_NARROW)

    def _show_facts(self) -> None:
        if self._state is None or self._theme is None:
            return
        narrow = self._is_narrow(self._theme)
        longest, most = running.facts(present.facts(self._state), self._overlay, self._state.unit)
        self.longest.show_fact(longest, narrow=narrow)
        self.most.show_fact(most, narrow=narrow)

    def _on_baseline(self, emptied: object) -> None:
        self._model.set_emptied(emptied=bool(emptied))
