"""How the window looks: scheme, patterns, text size, motion; by command or on its page."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, Slot

from engine.words import tr
from gui.kit.appearance_page import AppearancePage
from gui.kit.settings import SCHEMES
from gui.kit.theme import Appearance

if TYPE_CHECKING:
    from gui.app import App
    from gui.kit.settings import Settings


def appearance(settings: Settings, scheme: str | None = None) -> Appearance:
    """What ``settings`` ask for, in ``scheme`` where one is given for this start."""
    kept = None if settings.scheme == "system" else settings.scheme
    return Appearance(
        scheme or kept, settings.text_percent / 100, settings.patterns, settings.still
    )


class Dressing(QObject):
    """One state of the appearance, shown by the menu and the page alike."""

    def __init__(self, app: App) -> None:
        super().__init__(app)
        self._app = app
        self.page = AppearancePage()
        self.page.picked.connect(self._on_picked)
        app.preferring.dialog.add_page(tr("Appearance"), "contrast", self.page)
        for scheme in SCHEMES:
            action = app.window.commands[f"scheme {scheme}"]
            action.triggered.connect(partial(self._change, scheme=scheme))
        self._show()

    def _change(self, _checked: object = None, **changes: Any) -> None:
        self._app.settings = self._app.settings.with_(**changes)
        self._app.themes.ask(appearance(self._app.settings))
        self._show()

    def _show(self) -> None:
        settings = self._app.settings
        self._app.window.commands[f"scheme {settings.scheme}"].setChecked(True)
        self.page.show_settings(settings)

    @Slot(str, object)
    def _on_picked(self, name: str, value: object) -> None:
        self._change(**{name: value})
