"""Settings, General: units, paper, baseline, language."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Signal

from engine.units import UnitSystem
from engine.words import LANGUAGES, tr
from gui.kit.controls import Choice, Segments
from gui.kit.setting_rows import SettingRows
from gui.kit.settings import PAGES

if TYPE_CHECKING:
    from PySide6.QtWidgets import QWidget


class GeneralPage(SettingRows):
    """Tells what was picked; what holds is told it with ``show_values``."""

    unit_picked = Signal(object)
    paper_picked = Signal(object)
    emptied_picked = Signal(object)
    language_picked = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.unit = Segments("unit of sizes", [(unit.value, unit) for unit in UnitSystem])
        self.paper = Segments("paper of reports", [(page, page) for page in PAGES])
        self.emptied = Choice("first baseline")
        self.language = Choice("language")
        self.add(
            tr("Unit of sizes"),
            tr("1 GiB is 1,073,741,824 bytes, 1 GB is 1,000,000,000. Changes every number."),
            self.unit,
        )
        self.add(tr("Paper of reports"), "", self.paper)
        self.add(
            tr("Plans begin"),
            tr("Whether memory that others hold now counts as taken."),
            self.emptied,
        )
        self.add(tr("Language"), tr("Takes effect at the next start."), self.language)
        self.unit.picked.connect(self.unit_picked)
        self.paper.picked.connect(self.paper_picked)
        self.emptied.picked.connect(self.emptied_picked)
        self.language.picked.connect(self.language_picked)

    def show_values(self, unit: UnitSystem, paper: str, *, emptied: bool, language: str) -> None:
        """Show what holds now."""
        self.unit.set_current(unit)
        self.paper.set_current(paper)
        baselines = ((tr("Beside what runs now"), False), (tr("As if nothing else ran"), True))
        self.emptied.offer(baselines, emptied)
        languages = ((one.name, one.code) for one in LANGUAGES)
        self.language.offer(((tr("As the system"), ""), *languages), language)
