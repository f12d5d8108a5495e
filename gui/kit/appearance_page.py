"""Settings, Appearance: scheme, patterns, text size, motion."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QCheckBox

from engine.words import tr, tr_later
from gui.kit.controls import Choice
from gui.kit.setting_rows import SettingRows
from gui.kit.settings import SCHEMES, TEXT_PERCENTS

if TYPE_CHECKING:
    from PySide6.QtWidgets import QWidget

    from gui.kit.settings import Settings

_NAMES: Final = {
    "system": tr_later("As the system"),
    "light": tr_later("Light"),
    "dark": tr_later("Dark"),
    "contrast-light": tr_later("High contrast, light"),
    "contrast-dark": tr_later("High contrast, dark"),
}


class AppearancePage(SettingRows):
    """Tells what was picked; each takes effect at once."""

    picked = Signal(str, object)
    """Name and new value of a field of ``Settings``."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.scheme = Choice("scheme")
        self.text = Choice("text size")
        self.patterns = _switch("patterns", tr("Patterns"))
        self.still = _switch("still", tr("Less motion"))
        self.add(tr("Colours"), "", self.scheme)
        self.add(tr("Text size"), "", self.text)
        hatched = tr("Hatches the regions, so that they can be told apart without colour.")
        self.add_switch(hatched, self.patterns)
        self.add_switch(tr("Nothing moves of itself. Off, it is as the system says."), self.still)
        self.scheme.picked.connect(partial(self.picked.emit, "scheme"))
        self.text.picked.connect(partial(self.picked.emit, "text_percent"))
        self.patterns.clicked.connect(self._on_patterns)
        self.still.clicked.connect(self._on_still)

    def show_settings(self, settings: Settings) -> None:
        """Show what holds now."""
        self.scheme.offer([(tr(_NAMES[name]), name) for name in SCHEMES], settings.scheme)
        percents = [(f"{percent} %", percent) for percent in TEXT_PERCENTS]
        self.text.offer(percents, settings.text_percent)
        self.patterns.setChecked(settings.patterns)
        self.still.setChecked(settings.still)

    def _on_patterns(self) -> None:
        self.picked.emit("patterns", self.patterns.isChecked())

    def _on_still(self) -> None:
        self.picked.emit("still", self.still.isChecked())


def _switch(name: str, words: str) -> QCheckBox:
    made = QCheckBox(words)
    made.setObjectName(name)
    return made
