"""The expanded browser: made when it is first asked for, over the plan until one goes back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QUrl, Slot
from PySide6.QtGui import QDesktopServices

from engine.words import tr
from gui.browser.expanded import ExpandedBrowser

if TYPE_CHECKING:
    from gui.app import App
    from gui.kit.theme import Theme


class Expanding(QObject):
    """Opens and closes it, and gives the keyboard back to where it was."""

    def __init__(self, app: App) -> None:
        super().__init__(app)
        self._app = app
        self._action = app.window.commands["all models"]
        self._action.triggered.connect(self._on_action)
        self.view: ExpandedBrowser | None = None
        app.browser.more_wanted.connect(self.open)
        app.browser.chosen.connect(self.close)
        app.window.covered.connect(self._on_covered)
        app.themes.changed.connect(self._on_theme_changed)

    @Slot()
    def open(self) -> None:
        """Show it."""
        app = self._app
        if self.view is None:
            self.view = ExpandedBrowser(app.browser.model, app.themes.current)
            self.view.closed.connect(self.close)
            self.view.page_wanted.connect(self._on_page_wanted)
            self.view.access_wanted.connect(app.window.commands["access"].trigger)
        app.window.cover(self.view)
        self.view.focus_search()

    @Slot()
    def close(self) -> None:
        """Go back to the plan."""
        self._app.window.uncover()

    def focus_search(self) -> bool:
        """Put the cursor into its search field. Returns whether it is there."""
        is_open = self.view is not None and self.view.isVisible()
        if is_open and self.view is not None:
            self.view.focus_search()
        return is_open

    def _on_action(self) -> None:
        if self._app.window.is_covered:
            self.close()
        else:
            self.open()

    def _on_covered(self, covered: bool) -> None:  # noqa: FBT001 - a signal's argument
        app = self._app
        self._action.setChecked(covered)
        if covered:
            app.window.set_heading(tr("Models"))
            return
        app.browser.show_query()
        app.desk.on_state_changed(app.model.state)
        app.view.setFocus()

    def _on_page_wanted(self, address: str) -> None:
        QDesktopServices.openUrl(QUrl(address))

    def _on_theme_changed(self, theme: Theme) -> None:
        if self.view is not None:
            self.view.set_theme(theme)
