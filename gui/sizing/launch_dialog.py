"""How the plan in force is started: a text to copy for each form, anew at every edit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Signal, Slot
from PySide6.QtGui import QGuiApplication, QSyntaxHighlighter, QTextCharFormat
from PySide6.QtWidgets import (
    QHBoxLayout,
    QPlainTextEdit,
    QTabBar,
    QVBoxLayout,
    QWidget,
)
from typing_extensions import override

from engine.errors import PlimsollError
from engine.launch.dialect import NODE_DEVICES
from engine.launch.launch import TITLES, Kind
from engine.launch.write import launch
from engine.words import tr, tr_later
from gui.kit.controls import label, running_text
from gui.kit.dialogs import GrowingDialog, closing_row, leave_button, primary_button
from gui.kit.fields import NumberField, NumberKind
from gui.kit.messages import sentence
from gui.sizing import present

if TYPE_CHECKING:
    from engine.launch.launch import Form, Launch
    from gui.kit.theme import Theme
    from gui.sizing.view_model import State

_WIDTH, _HEIGHT = 760, 560
_MARGIN = 12
_PER_NODE = NumberKind(tr_later("GPUs per node"), 1, 1024, example="8")


class _Remarks(QSyntaxHighlighter):
    """Sets what is a comment back behind what is run."""

    def __init__(self, text: QPlainTextEdit) -> None:
        super().__init__(text.document())
        self._quiet = QTextCharFormat()

    def set_theme(self, theme: Theme) -> None:
        """Take the colours of ``theme``."""
        self._quiet.setForeground(theme.color("text.secondary"))
        self.rehighlight()

    @override
    def highlightBlock(self, text: str) -> None:
        if text.lstrip().startswith("#"):
            self.setFormat(0, len(text), self._quiet)


class LaunchDialog(GrowingDialog):
    """Stays open beside the window."""

    copied = Signal(str)
    """The title of the form that lies on the clipboard now."""
    resized_nodes = Signal()
    """``node_devices`` holds another value."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent, _WIDTH, _HEIGHT)
        self.setObjectName("launch")
        self.setWindowTitle(tr("Launch command"))
        self._forms: tuple[Form, ...] = ()
        self._wanted = Kind.COMMAND
        """The form that was picked; it is shown again where the next plan has it too."""
        self._title = label("", "title", "launch title")
        self.words = running_text("small")
        self.words.setObjectName("launch words")
        self.node_devices = NumberField(_PER_NODE)
        self.node_devices.setObjectName("launch node devices")
        self.node_devices.setAccessibleName(tr(_PER_NODE.name))
        self.node_devices.setFixedWidth(self.node_devices.text_width("8888"))
        self.node_devices.set_value(NODE_DEVICES)
        self._nodes = QWidget()
        self._refusal = running_text("small")
        self.tabs = QTabBar()
        self.tabs.setObjectName("launch forms")
        self.tabs.setAccessibleName(tr("Forms of the command"))
        self.tabs.setExpanding(False)
        self.tabs.setDrawBase(False)
        self.text = QPlainTextEdit()
        self.text.setObjectName("launch text")
        self.text.setAccessibleName(tr("Launch command"))
        self.text.setReadOnly(True)
        self.text.setTabChangesFocus(True)
        self.text.document().setDocumentMargin(_MARGIN)
        self._remarks = _Remarks(self.text)
        self.text.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.copy = primary_button(tr("Copy"))
        self._build()
        self.copy.clicked.connect(self._on_copy)
        self.node_devices.committed.connect(self.resized_nodes)
        self.node_devices.refused.connect(self._refusal.setText)
        self.tabs.currentChanged.connect(self._on_tab)
        self.set_theme(theme)

    def _build(self) -> None:
        leave = leave_button(self, tr("Close"))
        column = QVBoxLayout()
        column.addWidget(self._title)
        column.addWidget(self.words)
        row = QHBoxLayout(self._nodes)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(label(tr(_PER_NODE.name), "small"))
        row.addWidget(self.node_devices)
        row.addWidget(self._refusal, 1)
        column.addWidget(self._nodes)
        column.addWidget(self.tabs)
        column.addWidget(self.text, 1)
        self.lay_out(column, closing_row(leave, self.copy))
        self.tabs.setFocus()

    def set_theme(self, theme: Theme) -> None:
        """Take the colours and fonts of ``theme``."""
        self.text.setFont(theme.font("mono"))
        self._remarks.set_theme(theme)

    def show_state(self, state: State, path: str = "") -> None:
        """Show the plan in force.

        Args:
            state: model and plan.
            path: where the model lies on this computer; empty for one of the Hub.
        """
        if state.sizing is None or state.is_stale:
            self._show_nothing(state.problem or tr("Pick a model first."))
            return
        try:
            found = launch(
                state.sizing, state.plan.deployment, path, node_devices=self.node_devices.value
            )
        except PlimsollError as error:
            self._show_nothing(sentence(error))
            return
        self._show(found, state)

    def _show(self, found: Launch, state: State) -> None:
        self._title.setText(found.label)
        name = present.title(state.model) if state.model else ""
        where = present.device_name(state)
        self.words.setText(tr("{model} on {device}").format(model=name, device=where))
        plan = state.plan.deployment
        self._nodes.setVisible(plan.runtime == "vllm" and plan.ranks > 1)
        self._forms = found.forms
        kinds = [form.kind for form in found.forms]
        self.tabs.blockSignals(True)  # noqa: FBT003 - Qt's own
        while self.tabs.count():
            self.tabs.removeTab(0)
        for kind in kinds:
            self.tabs.addTab(tr(TITLES[kind]))
        self.tabs.setCurrentIndex(kinds.index(self._wanted) if self._wanted in kinds else 0)
        self.tabs.blockSignals(False)  # noqa: FBT003 - see above
        self.tabs.setVisible(len(kinds) > 1)
        self.copy.setEnabled(True)
        self._show_text()

    def _show_nothing(self, why: str) -> None:
        """An old command must not pass for the new plan's."""
        self._title.setText(tr("Launch command"))
        self.words.setText(why)
        self._forms = ()
        self._nodes.hide()
        self.tabs.hide()
        self.text.clear()
        self.copy.setEnabled(False)

    def _show_text(self) -> None:
        text = self._forms[self.tabs.currentIndex()].text
        if text != self.text.toPlainText():
            self.text.setPlainText(text)

    @Slot(int)
    def _on_tab(self, index: int) -> None:
        if 0 <= index < len(self._forms):
            self._wanted = self._forms[index].kind
            self._show_text()

    @Slot()
    def _on_copy(self) -> None:
        if self._forms:
            form = self._forms[self.tabs.currentIndex()]
            QGuiApplication.clipboard().setText(form.text)
            self.copied.emit(tr(TITLES[form.kind]))
