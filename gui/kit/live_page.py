"""Settings, Live: when to be told that a device's memory runs out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QCheckBox, QSpinBox

from engine.words import tr
from gui.kit.setting_rows import SettingRows
from gui.kit.settings import ALERT_LEFT_GIB, ALERT_PERCENTS, ALERT_SECONDS

if TYPE_CHECKING:
    from PySide6.QtWidgets import QWidget

    from gui.kit.settings import Settings


class LivePage(SettingRows):
    """Tells what was picked; each takes effect at once."""

    picked = Signal(str, object)
    """Name and new value of a field of ``Settings``."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.alert = QCheckBox(tr("Tell when memory nears its ceiling"))
        self.alert.setObjectName("alert")
        self.percent = _number("alert percent", ALERT_PERCENTS, " %")
        self.left = _number("alert left", ALERT_LEFT_GIB, " GiB")
        self.left.setSpecialValueText(tr("off"))
        self.seconds = _number("alert seconds", ALERT_SECONDS, " s")
        self.add_switch(
            tr(
                "Once an episode, here and by the system’s own notices where it has any. A model "
                "that spills and a system about to kill what runs are always told."
            ),
            self.alert,
        )
        self.add(
            tr("From this part of the ceiling"),
            tr("Of what one process may get, never of a part that the firmware set aside."),
            self.percent,
        )
        self.add(tr("Or with this much left"), tr("Below the ceiling, on any device."), self.left)
        self.add(tr("For at least"), tr("A shorter peak is not told."), self.seconds)
        self.alert.clicked.connect(self._on_alert)
        self.percent.valueChanged.connect(self._on_percent)
        self.left.valueChanged.connect(self._on_left)
        self.seconds.valueChanged.connect(self._on_seconds)

    def show_settings(self, settings: Settings) -> None:
        """Show what holds now."""
        self.alert.setChecked(settings.alert)
        for box, value in (
            (self.percent, settings.alert_percent),
            (self.left, settings.alert_left_gib),
            (self.seconds, settings.alert_seconds),
        ):
            box.blockSignals(True)  # noqa: FBT003 - Qt's own
            box.setValue(value)
            box.blockSignals(False)  # noqa: FBT003
            box.setEnabled(settings.alert)

    def _on_alert(self) -> None:
        self.picked.emit("alert", self.alert.isChecked())

    def _on_percent(self, value: int) -> None:
        self.picked.emit("alert_percent", value)

    def _on_left(self, value: int) -> None:
        self.picked.emit("alert_left_gib", value)

    def _on_seconds(self, value: int) -> None:
        self.picked.emit("alert_seconds", value)


def _number(name: str, bounds: range, suffix: str) -> QSpinBox:
    made = QSpinBox()
    made.setObjectName(name)
    made.setRange(bounds[0], bounds[-1])
    made.setSuffix(suffix)
    return made
