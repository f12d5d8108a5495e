"""The command that verifies parameters: when it can, with which Python, and where it is shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Slot

from engine.words import tr, tr_later
from gui.sizing.verify_dialog import VerifyDialog
from gui.sizing.verify_view_model import VerifyViewModel

if TYPE_CHECKING:
    from gui.app import App
    from gui.kit.theme import Theme
    from gui.sizing.view_model import State

_TIP = tr_later("Doubt the parameters? Build the model without weights, with PyTorch, and compare")
_NO_MODEL = (
    tr_later("Pick a model first"),
    tr_later("&Verify the parameters (pick a model first)"),
)
_NO_CONFIG = (
    tr_later("There is no config.json to build this model from"),
    tr_later("&Verify the parameters (there is no config.json to build this model from)"),
)
"""Tooltip and menu text while the command can't be used."""
_READY = (_TIP, tr_later("&Verify the parameters…"))


class Verifying(QObject):
    """Opens the panel and remembers the Python that was chosen in it."""

    def __init__(self, app: App) -> None:
        super().__init__(app)
        self._app = app
        self._chosen = ""
        self._dialog: VerifyDialog | None = None
        self.model = VerifyViewModel(app.runner, self)
        self.model.python_found.connect(self._on_python_found)
        self._action = app.window.commands["verify"]
        self._action.triggered.connect(self.open)
        app.view.header.add_action_button(self._action, "scale", tr("Verify"), beside_facts=True)
        app.model.changed.connect(self._on_state_changed)
        app.themes.changed.connect(self._on_theme_changed)
        self._on_state_changed(app.model.state)

    @property
    def dialog(self) -> VerifyDialog | None:
        """The open panel."""
        return self._dialog

    @Slot()
    def open(self) -> None:
        """Open the panel and begin."""
        model = self._app.model.state.model
        if model is None or model.config is None or self._dialog is not None:
            return
        self._dialog = VerifyDialog(self._app.themes.current, self._app.window)
        self._dialog.python_chosen.connect(self._on_python_chosen)
        self._dialog.finished.connect(self._on_finished)
        self.model.changed.connect(self._dialog.show_state)
        self._chosen = self._app.settings.python
        self.model.start(model, self._chosen)
        self._dialog.open()

    @Slot(str)
    def _on_python_chosen(self, python: str) -> None:
        self._chosen = python
        self.model.choose(python)

    @Slot(str)
    def _on_python_found(self, _python: str) -> None:
        """Remember a choice that proved able."""
        if self._chosen:
            self._app.settings = self._app.settings.with_(python=self._chosen)

    @Slot()
    def _on_finished(self) -> None:
        self.model.cancel()
        if self._dialog is not None:
            self.model.changed.disconnect(self._dialog.show_state)
            self._dialog.deleteLater()
            self._dialog = None

    @Slot(object)
    def _on_theme_changed(self, theme: Theme) -> None:
        if self._dialog is not None:
            self._dialog.set_theme(theme)

    @Slot(object)
    def _on_state_changed(self, state: State) -> None:
        words = _READY
        if state.model is None:
            words = _NO_MODEL
        elif state.model.config is None:
            words = _NO_CONFIG
        tip, text = words
        self._action.setEnabled(words is _READY)
        self._app.window.commands.tell("verify", tr(tip))
        self._action.setText(tr(text))
