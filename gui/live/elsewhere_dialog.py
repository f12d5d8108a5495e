"""Which machine elsewhere is to be watched: its address, and one of several that it tells of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QStringListModel, Qt, Signal, Slot
from PySide6.QtWidgets import QCompleter, QLineEdit, QListWidget, QVBoxLayout

from engine.errors import EndpointError
from engine.telemetry.address import parsed
from engine.words import tr
from gui.kit.controls import label, running_text, set_role
from gui.kit.dialogs import GrowingDialog, closing_row, leave_button, primary_button
from gui.kit.messages import sentence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from PySide6.QtWidgets import QWidget

_EXAMPLE = "gpu-box:9400"
_WIDTH = 540


class ElsewhereDialog(GrowingDialog):
    """Opened with ``open()``; asks nobody itself."""

    wanted = Signal(str, object)
    """The address as typed, and the machine that was chosen; None for the only one."""

    def __init__(self, before: Sequence[str], parent: QWidget) -> None:
        """Ask for an address.

        Args:
            before: addresses that were watched before, the last one first.
            parent: the window.
        """
        super().__init__(parent, _WIDTH)
        self.setObjectName("elsewhere")
        self.setWindowTitle(tr("Watch a machine elsewhere"))
        self.address = QLineEdit(before[0] if before else "")
        self.address.setObjectName("machine address")
        self.address.setPlaceholderText(_EXAMPLE)
        self.address.setAccessibleName(tr("Address of the machine"))
        self.address.selectAll()
        completer = QCompleter(QStringListModel(list(before), self), self)
        completer.setFilterMode(Qt.MatchFlag.MatchContains)
        self.address.setCompleter(completer)
        self.told = running_text("small")
        self.told.setObjectName("machine told")
        self.machines = QListWidget()
        self.machines.setObjectName("machines")
        self.machines.setAccessibleName(tr("Machines that it tells of"))
        self.machines.hide()
        self.watch = primary_button(tr("Watch"))
        self._build()
        self.address.textChanged.connect(self._on_typed)
        self.watch.clicked.connect(self._on_watch)
        self.machines.itemActivated.connect(self._on_watch)
        self._on_typed()
        self.address.setFocus()

    def _build(self) -> None:
        purpose = running_text("small")
        purpose.setText(
            tr(
                "An exporter’s page tells what a machine’s devices hold: DCGM’s (port 9400), "
                "nvidia_gpu_exporter (9835), node_exporter (9100), macmon (9090); a Prometheus "
                "server (9090) tells of all that it watches. The page of vLLM, SGLang or "
                "llama-server is listed under What holds it. Nothing is asked before you press "
                "Watch; then every 5 s, for memory alone, until you go back."
            )
        )
        name = label(tr("Address"), "caption")
        name.setBuddy(self.address)
        column = QVBoxLayout()
        column.addWidget(label(tr("Watch a machine elsewhere"), "title"))
        column.addWidget(purpose)
        column.addWidget(name)
        column.addWidget(self.address)
        self.told.setMinimumHeight(2 * self.told.fontMetrics().lineSpacing())
        column.addWidget(self.told)
        self.machines.setMaximumHeight(8 * self.machines.fontMetrics().lineSpacing())
        column.addWidget(self.machines)
        column.addStretch(1)
        self.lay_out(column, closing_row(leave_button(self, tr("Cancel")), self.watch))

    def show_asking(self) -> None:
        """Say that an answer is awaited."""
        self._tell(tr("Asking {place}…").format(place=parsed(self.address.text()).shown))
        self.watch.setEnabled(False)

    def show_trouble(self, words: str) -> None:
        """Say why there is nothing to watch; another address can be typed."""
        self._tell(words, is_trouble=True)
        self.watch.setEnabled(True)
        self.address.setFocus()

    def show_machines(self, names: Sequence[str]) -> None:
        """Let one of several machines be chosen."""
        self._tell(tr("It tells of several machines. Which one?"))
        self.machines.clear()
        self.machines.addItems([name or tr("without a name") for name in names])
        for at, name in enumerate(names):
            self.machines.item(at).setData(Qt.ItemDataRole.UserRole, name)
        self.machines.setCurrentRow(0)
        self.machines.show()
        self.machines.setFocus()
        self.watch.setEnabled(True)
        self.take_room()

    @Slot()
    def _on_typed(self) -> None:
        """Say what the address means: whether asking it leaves this computer."""
        self.machines.hide()
        self.machines.clear()
        text = self.address.text()
        words, is_trouble = "", False
        if text.strip():
            try:
                found = parsed(text)
            except EndpointError as error:
                words, is_trouble = sentence(error), True
            else:
                words = tr(
                    "{address} is another computer: asking it sends requests over the network."
                )
                if found.is_loopback:
                    words = tr("{address} is on this computer.")
                words = words.format(address=found)
        self._tell(words, is_trouble=is_trouble)
        self.watch.setEnabled(bool(text.strip()) and not is_trouble)

    def _tell(self, words: str, *, is_trouble: bool = False) -> None:
        set_role(self.told, "trouble" if is_trouble else "small")
        self.told.setText(words)

    @Slot()
    def _on_watch(self) -> None:
        if self.watch.isEnabled():
            index = self.machines.currentIndex()
            name = str(index.data(Qt.ItemDataRole.UserRole)) if index.isValid() else None
            self.wanted.emit(self.address.text(), name)
