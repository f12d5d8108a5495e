"""The strip that says which models of a workspace aren't here, with the click that gets them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Signal

from engine.source.origin import Named, label
from engine.words import tr, tr_count
from gui.kit.notices import Notice

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.source.origin import Origin


class AbsenceNotice(Notice):
    """Nothing is fetched before its button is pressed."""

    wanted = Signal()

    def __init__(self) -> None:
        super().__init__("absent models", "cloud", "accent")
        # Without it there would be no way left to what the plan waits for.
        self._cross.hide()
        self._button = self.add_button("")
        self._button.clicked.connect(self.wanted)

    def tell_absent(self, reasons: Mapping[Origin, str]) -> None:
        """Say which models are missing, or go.

        Args:
            reasons: why each isn't here.
        """
        if not reasons:
            self.hide()
            return
        on_hub = [origin for origin in reasons if isinstance(origin, Named)]
        self._button.setText(tr("Fetch from the Hub") if on_hub else tr("Try to read it"))
        line = next((why for origin, why in reasons.items() if origin not in on_hub), "")
        if on_hub:
            names = ", ".join(map(label, on_hub))
            line = tr_count("{names} needs the Hub", "{names} need the Hub", len(on_hub))
            line = line.format(names=names)
        self.tell(line, tr("Nothing was fetched. The plans are kept meanwhile."))
