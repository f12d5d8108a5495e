"""The settings that hold everywhere: their pages, and the command that opens them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Slot

from engine.words import tr
from gui.kit.general_page import GeneralPage
from gui.kit.settings_dialog import SettingsDialog

if TYPE_CHECKING:
    from gui.app import App


class Preferring(QObject):
    """Owns the dialog. Whoever has something to set adds a page to ``app.preferring.dialog``."""

    def __init__(self, app: App) -> None:
        super().__init__(app)
        self._app = app
        self.dialog = SettingsDialog(app.themes.current, app.window)
        self.dialog.opening.connect(self._on_opening)
        app.themes.changed.connect(self.dialog.set_theme)
        app.window.commands["preferences"].triggered.connect(self.dialog.open)
        self.general = GeneralPage()
        self.dialog.add_page(tr("General"), "sliders-horizontal", self.general)
        self.general.unit_picked.connect(app.model.set_unit)
        self.general.paper_picked.connect(self._on_paper)
        self.general.emptied_picked.connect(self._on_emptied)
        self.general.language_picked.connect(self._on_language)

    @Slot()
    def _on_opening(self) -> None:
        app, kept = self._app, self._app.settings
        self.general.show_values(
            app.model.state.unit, app.filing.paper, emptied=kept.emptied, language=kept.language
        )

    @Slot(object)
    def _on_paper(self, page: str) -> None:
        self._app.settings = self._app.settings.with_(page=page)

    @Slot(object)
    def _on_emptied(self, emptied: bool) -> None:  # noqa: FBT001 - a signal's argument
        self._app.settings = self._app.settings.with_(emptied=emptied)
        self._app.model.begin_emptied(emptied=emptied)

    @Slot(object)
    def _on_language(self, code: str) -> None:
        self._app.settings = self._app.settings.with_(language=code)
