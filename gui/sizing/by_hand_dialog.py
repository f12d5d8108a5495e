"""Enter a model that has no config: what is known of it, and at once what is made of that."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Signal
from PySide6.QtWidgets import (
    QFormLayout,
    QLineEdit,
    QVBoxLayout,
    QWidget,
)

from engine.errors import PlimsollError
from engine.source.by_hand import Measures, by_hand
from engine.units import parse_parameters, parse_tokens
from engine.words import tr, tr_later
from gui.kit import format as fmt
from gui.kit.controls import label, running_text, set_role
from gui.kit.dialogs import GrowingDialog, closing_row, leave_button, primary_button
from gui.kit.fields import parse_count

if TYPE_CHECKING:
    from collections.abc import Callable

_PURPOSE = tr_later(
    "For a model without a config.json. The cache follows from layers, KV heads and head width "
    "alone; what is left empty is chosen so that the parameters come out as stated."
)
_FIELDS: tuple[tuple[str, str, str, Callable[[str], int], bool], ...] = (
    ("parameters", tr_later("&Parameters"), "8B", parse_parameters, True),
    ("num_hidden_layers", tr_later("&Layers"), "32", parse_count, True),
    ("num_key_value_heads", tr_later("&KV heads"), "8", parse_count, True),
    ("head_dim", tr_later("&Head width"), "128", parse_count, True),
    ("hidden_size", tr_later("Hidden &size"), "", parse_count, False),
    ("vocab_size", tr_later("&Vocabulary"), "", parse_count, False),
    ("max_position_embeddings", tr_later("Longest &context"), "", parse_tokens, False),
)
"""Key, label, example, how it is read, whether it has to be known."""
_MOST = 10**15
_WIDTH = 520


class ByHandDialog(GrowingDialog):
    """Opened with ``open()``; tells the measures once they make a model."""

    entered = Signal(object)
    """The ``Measures``."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent, _WIDTH)
        self.setObjectName("by hand")
        self.setWindowTitle(tr("Enter a model by hand"))
        self.name = QLineEdit()
        self.name.setObjectName("name")
        self.name.setPlaceholderText(tr("entered by hand"))
        self.fields = {key: QLineEdit() for key, *_ in _FIELDS}
        self.words = running_text("small")
        self.words.setObjectName("by hand words")
        self.confirm = primary_button(tr("Size this model"))
        self._known: Measures | None = None
        self._build()
        self.confirm.clicked.connect(self._on_size)
        for field in (self.name, *self.fields.values()):
            field.textChanged.connect(self._on_typed)
        self._on_typed()

    def _build(self) -> None:
        purpose = label(tr(_PURPOSE), "small")
        purpose.setWordWrap(True)
        form = QFormLayout()
        form.setRowWrapPolicy(QFormLayout.RowWrapPolicy.WrapLongRows)
        form.setVerticalSpacing(8)
        form.setHorizontalSpacing(16)
        form.addRow(tr("&Name"), self.name)
        for key, text, example, _, needed in _FIELDS:
            field = self.fields[key]
            field.setObjectName(key)
            field.setPlaceholderText(example if needed else tr("chosen"))
            form.addRow(tr(text), field)
        leave = leave_button(self, tr("Cancel"))
        self.words.setMinimumHeight(3 * self.words.fontMetrics().lineSpacing())
        column = QVBoxLayout()
        column.addWidget(label(tr("Enter a model by hand"), "title"))
        column.addWidget(purpose)
        column.addLayout(form)
        column.addWidget(self.words)
        column.addStretch(1)
        self.lay_out(column, closing_row(leave, self.confirm))

    def _on_typed(self) -> None:
        self._known = None
        try:
            known = self._read()
            raw = by_hand(known) if known is not None else None
        except (PlimsollError, ValueError) as error:
            self._say(str(error), wrong=True)
            return
        if known is None or raw is None:
            self._say(
                tr("Parameters, layers, KV heads and head width have to be known."), wrong=False
            )
            return
        self._known = known
        (note,) = raw.notes
        each = 4 * known.num_hidden_layers * known.num_key_value_heads * known.head_dim
        self._say(
            tr("{note} {size} bytes a token in 16 bits.").format(note=note, size=fmt.count(each)),
            wrong=False,
        )

    def _read(self) -> Measures | None:
        """What is typed; None while something that has to be known is empty.

        Raises:
            ValueError: a text is no number, in one sentence.
        """
        found: dict[str, int] = {}
        for key, text, example, parse, _ in _FIELDS:
            typed = self.fields[key].text().strip()
            if not typed:
                continue
            name = tr(text).replace("&", "")
            try:
                value = parse(typed)
            except ValueError:
                wanted = tr("a whole number")
                if example:
                    wanted = tr("a number such as {example}").format(example=example)
                message = tr("{name}: “{typed}” is not {wanted}.").format(
                    name=name, typed=typed[:40], wanted=wanted
                )
                raise ValueError(message) from None
            if not 1 <= value <= _MOST:
                message = tr("{name}: type at least 1.").format(name=name)
                raise ValueError(message)
            found[key] = value
        if not all(key in found for key, *_, needed in _FIELDS if needed):
            return None
        return Measures(**found, name=self.name.text().strip()[:80] or tr(Measures.name))

    def _say(self, text: str, *, wrong: bool) -> None:
        set_role(self.words, "trouble" if wrong else "small")
        self.words.setText(text)
        self.confirm.setEnabled(self._known is not None)

    def _on_size(self) -> None:
        if self._known is not None:
            self.entered.emit(self._known)
            self.accept()
