"""How much RAM another machine has: a chip beside the device, and what it opens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import (
    QDialog,
    QLineEdit,
    QPushButton,
    QSizePolicy,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from engine.devices import catalogue
from engine.errors import DeviceError
from engine.evidence import Basis
from engine.words import tr
from gui.kit import format as fmt
from gui.kit.controls import label, running_text, set_role
from gui.kit.dialogs import closing_row, leave_button, primary_button
from gui.sizing import typed_sizes
from gui.sizing.plan import has_ram_to_state

if TYPE_CHECKING:
    from gui.sizing.view_model import SizingViewModel, State


def origin(state: State) -> str:
    """Whose word the RAM is, in a sentence."""
    stated = state.plan.host_total_bytes
    if stated is not None:
        return tr("RAM of that machine: {size}, as you say").format(
            size=fmt.size(stated, state.unit, digits=1)
        )
    host = state.machine.host.device.allocatable if state.machine is not None else None
    if host is None or host.basis is not Basis.ASSUMED:
        return tr("RAM of that machine: not stated")
    return tr("RAM of that machine: not stated, {size} assumed").format(
        size=fmt.size(host.likely_bytes, state.unit, digits=1)
    )


class RamChip(QToolButton):
    """Shown while the plan is for a machine whose RAM nobody can measure here."""

    def __init__(self, model: SizingViewModel, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._model = model
        self.setObjectName("ram")
        self.setProperty("role", "chip")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.setStyleSheet("QToolButton { padding: 0 6px; }")
        self.clicked.connect(self._on_clicked)
        self.hide()

    def show_state(self, state: State) -> None:
        """Say whose word the RAM of ``state`` is."""
        self.setVisible(has_ram_to_state(state.plan.device))
        words = origin(state)
        self.setAccessibleName(words)
        self.setToolTip(words)
        stated = state.plan.host_total_bytes
        size = "" if stated is None else fmt.size(stated, state.unit, digits=0)
        self.setText(tr("RAM {size}").format(size=size) if size else tr("RAM?"))

    @Slot()
    def _on_clicked(self) -> None:
        dialog = RamDialog(self._model.state, self.window())
        dialog.stated.connect(self._model.state_ram)
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()


class RamDialog(QDialog):
    """Opened with ``open()``; tells the RAM that was typed, or that none is stated."""

    stated = Signal(object)
    """Bytes, or None."""

    def __init__(self, state: State, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("ram dialog")
        self.setWindowTitle(tr("RAM of that machine"))
        self._device = state.plan.device or ""
        self._unit = state.unit
        self.text = QLineEdit()
        self.text.setObjectName("ram text")
        self.text.setAccessibleName(tr("RAM of that machine"))
        self.text.setPlaceholderText("64 GiB")
        known = state.plan.host_total_bytes
        if known is not None:
            self.text.setText(typed_sizes.typed(known, state.unit))
            self.text.selectAll()
        self.trouble = running_text("small")
        self.trouble.setObjectName("ram trouble")
        self.confirm = primary_button(tr("Use this"))
        self.forget = QPushButton(tr("Not stated"))
        self.forget.setAutoDefault(False)
        self.forget.setEnabled(known is not None)
        self._build(state)
        self.text.textChanged.connect(self._on_typed)
        self.confirm.clicked.connect(self._on_confirm)
        self.forget.clicked.connect(self._on_forget)
        self._on_typed()

    def _build(self, state: State) -> None:
        purpose = running_text("small")
        purpose.setText(
            tr(
                "What doesn’t fit on the devices may lie in the computer’s own memory. Of another "
                "machine nobody here can measure it. {now}."
            ).format(now=origin(state))
        )
        self.trouble.setMinimumHeight(2 * self.trouble.fontMetrics().lineSpacing())
        self.setMinimumWidth(420)
        column = QVBoxLayout(self)
        column.setContentsMargins(24, 20, 24, 16)
        column.setSpacing(12)
        column.addWidget(label(tr("RAM of that machine"), "title"))
        column.addWidget(purpose)
        column.addWidget(self.text)
        column.addWidget(self.trouble)
        leave = leave_button(self, tr("Cancel"))
        column.addLayout(closing_row(leave, self.confirm, first=(self.forget,)))

    @property
    def _bytes(self) -> int:
        """What is typed.

        Raises:
            ValueError: no size.
            DeviceError: one that cannot be.
        """
        size = typed_sizes.read(self.text.text(), self._unit)
        catalogue.planned(self._device, 1, size)
        return size

    @Slot()
    def _on_typed(self) -> None:
        words = ""
        if self.text.text().strip():
            try:
                self._bytes  # noqa: B018 - asked for what is wrong with it
            except DeviceError as error:
                words = error.message
            except ValueError:
                words = tr("Give a size such as 64 GiB or 128 GB.")
        self.trouble.setText(words)
        set_role(self.trouble, "trouble" if words else "small")
        self.confirm.setEnabled(bool(self.text.text().strip()) and not words)

    @Slot()
    def _on_confirm(self) -> None:
        self.stated.emit(self._bytes)
        self.accept()

    @Slot()
    def _on_forget(self) -> None:
        self.stated.emit(None)
        self.accept()
