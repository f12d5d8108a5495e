"""Paste a start command: what it means is said at once, and what isn't understood."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import (
    QPlainTextEdit,
    QVBoxLayout,
    QWidget,
)

from engine.errors import PlimsollError
from engine.launch.read import read
from engine.runtimes import registry
from engine.text import printable
from engine.words import tr, tr_count
from gui.kit import format as fmt
from gui.kit.controls import label, running_text, set_role
from gui.kit.dialogs import GrowingDialog, closing_row, leave_button, primary_button
from gui.kit.messages import sentence

if TYPE_CHECKING:
    from engine.launch.read import Understood
    from gui.kit.theme import Theme

_EXAMPLE = "vllm serve Qwen/Qwen3-8B --max-model-len 32768"
_MOST_NAMED = 6
_WIDTH = 620
_MODEL_FIELDS = ("runtime", "runtime_version", "max_model_len", "concurrency")


class CommandDialog(GrowingDialog):
    """Opened with ``open()``; tells the plan once the command is understood."""

    understood = Signal(object)
    """The ``Understood`` command."""

    def __init__(self, theme: Theme, model: str, parent: QWidget) -> None:
        """``model`` is the one in the window, for a command that names none."""
        super().__init__(parent, _WIDTH)
        self.setObjectName("command")
        self.setWindowTitle(tr("Plan from a command"))
        self._model = model
        self._found: Understood | None = None
        self.text = QPlainTextEdit()
        self.text.setObjectName("command text")
        self.text.setAccessibleName(tr("Start command"))
        self.text.setPlaceholderText(_EXAMPLE)
        self.text.setTabChangesFocus(True)
        self.text.setFont(theme.font("mono"))
        self.text.document().setDocumentMargin(12)
        self.meaning = running_text("body")
        self.meaning.setObjectName("command meaning")
        self.rest = running_text("small")
        self.rest.setObjectName("command rest")
        self.confirm = primary_button(tr("Open this plan"))
        self._build()
        self.text.textChanged.connect(self._on_typed)
        self.confirm.clicked.connect(self._on_confirm)
        self._on_typed()

    def _build(self) -> None:
        purpose = running_text("small")
        purpose.setText(
            tr(
                "Paste what starts a model: vllm serve, llama-server, sglang, mlx_lm, an Ollama "
                "Modelfile, docker run, or a file for Compose, Kubernetes or Ray Serve. It is read "
                "here and never run."
            )
        )
        line = self.text.fontMetrics().lineSpacing()
        self.text.setMinimumHeight(7 * line)
        for words, lines in ((self.meaning, 1), (self.rest, 3)):
            words.setMinimumHeight(lines * words.fontMetrics().lineSpacing())
        leave = leave_button(self, tr("Cancel"))
        column = QVBoxLayout()
        column.addWidget(label(tr("Plan from a command"), "title"))
        column.addWidget(purpose)
        column.addWidget(self.text, 1)
        column.addWidget(self.meaning)
        column.addWidget(self.rest)
        self.rest.setAlignment(Qt.AlignmentFlag.AlignTop)
        self.lay_out(column, closing_row(leave, self.confirm))

    @Slot()
    def _on_typed(self) -> None:
        self._found = None
        text = self.text.toPlainText()
        meaning, rest, wrong = "", "", False
        if text.strip():
            try:
                found = read(text)
            except PlimsollError as error:
                meaning, wrong = sentence(error), True
            else:
                meaning, rest, wrong = self._take(found)
        set_role(self.meaning, "trouble" if wrong else "body")
        self.meaning.setText(meaning)
        self.rest.setText(rest)
        self.confirm.setEnabled(self._found is not None)

    def _take(self, found: Understood) -> tuple[str, str, bool]:
        """What ``found`` means, what is left of it, and whether it can't be opened."""
        if not found.model and not self._model:
            return tr("The command names no model: pick one first."), left_of(found), True
        self._found = found
        return _in_words(found, found.model or self._model), left_of(found), False

    @Slot()
    def _on_confirm(self) -> None:
        if self._found is not None:
            self.understood.emit(self._found)
            self.accept()


def _in_words(found: Understood, model: str) -> str:
    """``vLLM 0.10.2, Qwen/Qwen3-8B, 32,768 tokens; 3 more settings``."""
    plan = found.deployment
    release = f" {plan.runtime_version}" if plan.runtime_version else ""
    parts = [f"{registry.get(found.runtime).label}{release}", printable(model, 80)]
    if plan.max_model_len and plan.max_model_len > 0:
        parts.append(tr("{count} tokens").format(count=fmt.count(plan.max_model_len)))
    if plan.concurrency > 1:
        parts.append(tr("{count} at once").format(count=fmt.count(plan.concurrency)))
    more = len([name for name in found.stated if name not in _MODEL_FIELDS])
    further = tr_count("{count} more setting", "{count} more settings", more).format(count=more)
    return ", ".join([*parts, further] if more else parts)


def left_of(found: Understood) -> str:
    """What of the command isn't in the plan, in a sentence or two; empty where nothing is left."""
    parts: list[str] = []
    if found.strays:
        named = ", ".join(found.strays[:_MOST_NAMED])
        dots = " …" if len(found.strays) > _MOST_NAMED else ""
        parts.append(tr("Not understood: {words}.").format(words=named + dots))
    parts += found.notes
    if found.harmless:
        words = tr("Without effect on memory: {words}.")
        parts.append(words.format(words=", ".join(found.harmless[:_MOST_NAMED])))
    return " ".join(parts)
