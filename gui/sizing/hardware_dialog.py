"""What this computer's hardware is, where detection is wrong: device by device, or one more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt, QTimer, Signal
from PySide6.QtWidgets import (
    QCompleter,
    QFrame,
    QGridLayout,
    QLineEdit,
    QPushButton,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from engine.devices import catalogue
from engine.devices.corrected import MOST_OF_ONE, Correction, corrected
from engine.devices.device import DeviceKind
from engine.errors import DeviceError
from engine.words import tr
from gui.kit import format as fmt
from gui.kit.controls import label, running_text, set_role
from gui.kit.dialogs import GrowingDialog, closing_row, leave_button, primary_button
from gui.kit.fields import NumberField, NumberKind
from gui.sizing import typed_sizes
from gui.sizing.found import doubt, found

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.devices.device import Machine, Slot
    from engine.units import UnitSystem

_WIDTH, _HEIGHT = 720, 520
_NAME, _TOTAL, _LINE, _COUNT, _REMOVE = range(5)


class HardwareDialog(GrowingDialog):
    """Opened with ``open()``; tells the corrections once they make a machine."""

    confirmed = Signal(object)
    """A tuple of ``Correction``; empty for the hardware as it was detected."""

    def __init__(
        self,
        detected: Machine,
        corrections: Sequence[Correction],
        unit: UnitSystem,
        parent: QWidget,
    ) -> None:
        super().__init__(parent, _WIDTH, _HEIGHT)
        self.setObjectName("hardware")
        self.setWindowTitle(tr("Hardware of this computer"))
        self._detected = detected
        self._unit = unit
        self._known: tuple[Correction, ...] | None = None
        self.rows: list[DeviceRow] = []
        self.words = running_text("small")
        self.words.setObjectName("hardware words")
        self.add = QPushButton(tr("Add a device"))
        self.add.setAutoDefault(False)
        self.back = QPushButton(tr("As detected"))
        self.back.setAutoDefault(False)
        self.back.setEnabled(bool(corrections))
        self.confirm = primary_button(tr("Use this hardware"))
        self._build()
        for slot in _found_slots(detected):
            kept = next((c for c in corrections if c.uuid == slot.uuid), None)
            self._add_row(slot, kept)
        for kept in corrections:
            if not kept.uuid:
                self._add_row(None, kept)
        self.add.clicked.connect(self._on_add)
        self.back.clicked.connect(self._on_back)
        self.confirm.clicked.connect(self._on_confirm)
        next(f for f in self.rows[0].fields if f.isEnabled()).setFocus()
        self._on_typed()

    def _build(self) -> None:
        purpose = running_text("small")
        purpose.setText(
            tr(
                "Type only what is wrong; what is left empty stays as it was detected. Every plan "
                "for this computer then counts with it, and says so. What the driver measures is "
                "shown as before."
            )
        )
        leave = leave_button(self, tr("Cancel"))
        buttons = closing_row(leave, self.confirm, first=(self.add, self.back))
        self.words.setMinimumHeight(3 * self.words.fontMetrics().lineSpacing())
        whole = QVBoxLayout()
        whole.addWidget(label(tr("Hardware of this computer"), "title"))
        whole.addWidget(purpose)
        whole.addWidget(self._made_table(), 1)
        whole.addWidget(self.words)
        self.lay_out(whole, buttons)

    def _made_table(self) -> QScrollArea:
        """The rows' place, under their headings."""
        held = QWidget()
        self._grid = QGridLayout(held)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(8)
        self._grid.setVerticalSpacing(4)
        self._grid.setColumnStretch(_NAME, 3)
        self._grid.setColumnStretch(_TOTAL, 2)
        self._grid.setColumnStretch(_LINE, 2)
        headings = (tr("Device"), tr("Memory"), tr("For programs"), tr("Count"))
        for column, text in enumerate(headings):
            self._grid.addWidget(label(text, "caption"), 0, column)
        column = QVBoxLayout()
        column.addWidget(held)
        column.addStretch(1)
        column.setContentsMargins(0, 0, 8, 0)
        inner = QWidget()
        inner.setLayout(column)
        scroll = self._scroll = QScrollArea()
        scroll.setFrameShape(QFrame.Shape.NoFrame)
        scroll.setWidgetResizable(True)
        scroll.setWidget(inner)
        scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        return scroll

    def _add_row(self, slot: Slot | None, kept: Correction | None) -> DeviceRow:
        row = DeviceRow(slot, self._unit, self)
        if kept is not None:
            row.show_correction(kept)
        row.place(self._grid, 1 + 2 * len(self.rows))
        row.changed.connect(self._on_typed)
        row.remove.clicked.connect(lambda: self._on_remove(row))
        self.rows.append(row)
        return row

    def _on_add(self) -> None:
        row = self._add_row(None, None)
        row.name.setFocus()
        self._on_typed()
        # Once the row has its place.
        QTimer.singleShot(0, row, lambda: self._scroll.ensureWidgetVisible(row.source))

    def _on_remove(self, row: DeviceRow) -> None:
        row.hide()
        self._on_typed()

    def _on_typed(self) -> None:
        self._known = None
        try:
            wanted = tuple(c for row in self.rows if (c := row.correction()) is not None)
            machine = corrected(self._detected, wanted)
        except DeviceError as error:
            self._say(error.message, wrong=True)
            return
        except ValueError as error:
            self._say(str(error), wrong=True)
            return
        self._known = wanted if machine.is_corrected else ()
        self._say(found(machine, self._unit), wrong=False)

    def _say(self, text: str, *, wrong: bool) -> None:
        set_role(self.words, "trouble" if wrong else "small")
        self.words.setText(text)
        self.confirm.setEnabled(self._known is not None)

    def _on_back(self) -> None:
        self.confirmed.emit(())
        self.accept()

    def _on_confirm(self) -> None:
        if self._known is not None:
            self.confirmed.emit(self._known)
            self.accept()


class DeviceRow(QObject):
    """The fields of one device, and below them what is known of it."""

    changed = Signal()

    def __init__(self, slot: Slot | None, unit: UnitSystem, parent: QObject) -> None:
        """``slot`` is the detected device; None for one to add."""
        super().__init__(parent)
        self._slot = slot
        self._unit = unit
        self._is_gone = False
        self._is_host = slot is not None and slot.device.kind is DeviceKind.HOST
        self.name, self.total, self.line = QLineEdit(), QLineEdit(), QLineEdit()
        least = 0 if slot is not None else 1
        self.count = NumberField(NumberKind(tr("Count"), least, MOST_OF_ONE))
        self.count.set_value(1)
        self.count.setFixedWidth(self.count.text_width("888"))
        self.remove = QPushButton(tr("Remove"))
        self.remove.setAutoDefault(False)
        self.source = label("", "small")
        self.source.setWordWrap(True)
        self.fields = (self.name, self.total, self.line, self.count, self.remove)
        self._name_fields()
        self._show_detected()
        for field in (self.name, self.total, self.line):
            field.textChanged.connect(self.changed)
        self.count.committed.connect(self.changed)

    def _name_fields(self) -> None:
        called = self._slot.device.name if self._slot else tr("added device")
        names = (tr("Name of {device}"), tr("Memory of {device}"), tr("For programs of {device}"))
        for field, text in zip((self.name, self.total, self.line), names, strict=True):
            field.setAccessibleName(text.format(device=called))
        self.count.setAccessibleName(tr("Count of {device}").format(device=called))
        self.remove.setAccessibleName(tr("Remove {device}").format(device=called))
        key = self._slot.uuid if self._slot else "added"
        for field, part in ((self.name, "name"), (self.total, "total"), (self.line, "line")):
            field.setObjectName(f"{part} of {key}")
        self.count.setObjectName(f"count of {key}")

    def _show_detected(self) -> None:
        if self._slot is None:
            self.name.setPlaceholderText(tr("A name such as RTX 4090"))
            self.total.setPlaceholderText("24 GiB")
            self.line.setPlaceholderText(tr("as usual"))
            completer = QCompleter([device.name for device in catalogue.devices()], self.name)
            completer.setCaseSensitivity(Qt.CaseSensitivity.CaseInsensitive)
            completer.setFilterMode(Qt.MatchFlag.MatchContains)
            self.name.setCompleter(completer)
            self.source.setText(tr("Added by you: it isn’t detected, and nothing of it is sampled"))
            return
        device = self._slot.device
        self.name.setPlaceholderText(device.name)
        self.name.setEnabled(not self._is_host)
        self.total.setPlaceholderText(fmt.size(device.total_bytes, self._unit))
        self.line.setPlaceholderText(fmt.size(device.allocatable.likely_bytes, self._unit))
        parts = (tr(device.source), doubt(device, self._unit))
        text = tr("Detected by {source}").format(source=", ".join(filter(None, parts)))
        self.source.setText(text)

    def show_correction(self, kept: Correction) -> None:
        """Fill in what was corrected before."""
        self.name.setText(kept.name)
        for field, size in ((self.total, kept.total_bytes), (self.line, kept.allocatable_bytes)):
            field.setText(typed_sizes.typed(size, self._unit))
        self.count.set_value(kept.count)

    def place(self, grid: QGridLayout, at: int) -> None:
        """Take two lines of ``grid``."""
        grid.addWidget(self.name, at, _NAME)
        grid.addWidget(self.total, at, _TOTAL)
        grid.addWidget(self.line, at, _LINE)
        grid.addWidget(self.count, at, _COUNT)
        grid.addWidget(self.remove, at, _REMOVE)
        self.count.setVisible(not self._is_host)
        self.remove.setVisible(self._slot is None)
        grid.addWidget(self.source, at + 1, _NAME, 1, _REMOVE + 1)
        grid.setRowMinimumHeight(at + 1, self.source.fontMetrics().lineSpacing() + 12)

    def hide(self) -> None:
        """The device was taken out again."""
        self._is_gone = True
        for part in (*self.fields, self.source):
            part.hide()

    def correction(self) -> Correction | None:
        """What is typed; None where that is nothing.

        Raises:
            ValueError: a text is no size, in one sentence.
        """
        name = self.name.text().strip()
        total = self._size(self.total, tr("Memory"))
        line = self._size(self.line, tr("For programs"))
        is_empty = not (name or total or line)
        if self._is_gone or (is_empty and (self._slot is None or self.count.value == 1)):
            return None
        uuid = self._slot.uuid if self._slot else ""
        return Correction(uuid, name, total, line, self.count.value)

    def _size(self, field: QLineEdit, caption: str) -> int:
        text = field.text().strip()
        if not text:
            return 0
        try:
            return typed_sizes.read(text, self._unit)
        except ValueError:
            message = tr("{field}: “{text}” is not a size such as 24 GiB.")
            raise ValueError(message.format(field=caption, text=text[:40])) from None


def _found_slots(detected: Machine) -> list[Slot]:
    """The detected devices, and the computer's own memory where it is a device of its own."""
    slots = list(detected.slots)
    if detected.host not in slots and slots[0].device.kind is not DeviceKind.UNIFIED:
        slots.append(detected.host)
    return slots
