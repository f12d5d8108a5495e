"""Several models on one machine: how another one comes beside the plan, and goes again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Slot

from engine.words import tr
from gui.kit.loader import ModelLoader
from gui.kit.notices import Notice
from gui.sizing import beside, present

if TYPE_CHECKING:
    from engine.architecture.model import Model
    from gui.app import App
    from gui.browser.rows import Choice
    from gui.sizing.view_model import State


class Adjoining(QObject):
    """Lets the next model that is picked run beside the plan in place of taking its place."""

    def __init__(self, app: App) -> None:
        super().__init__(app)
        self._app = app
        self.loader = ModelLoader(app.runner, self, app.hub)
        self.loader.loaded.connect(self._on_loaded)
        self.loader.failed.connect(app.trouble.report)
        self.loader.busy_changed.connect(app.window.progress.set_busy)
        self.notice = Notice("beside", "plus", "accent")
        app.view.add_notice(self.notice)
        app.themes.changed.connect(self.notice.set_theme)
        self.notice.set_theme(app.themes.current)
        self._action = app.window.commands["beside"]
        self._action.triggered.connect(self._on_wanted)
        app.view.beside.add_wanted.connect(self._action.trigger)
        app.model.changed.connect(self._on_state_changed)

    @property
    def is_picking(self) -> bool:
        """Whether the next model picked runs beside the plan."""
        return not self.notice.isHidden()

    def take(self, choice: Choice) -> bool:
        """Whether a model that was picked is to run beside the plan; it is read then."""
        if not (choice.beside or self.is_picking):
            return False
        self.notice.dismiss()
        self._app.trouble.dismiss()
        if self._action.isEnabled():
            self.loader.load(choice.fetch, choice.said)
        self._mark_planned()
        return True

    def give_up(self) -> bool:
        """Leave the machine as it is. Returns whether a model was being picked or read."""
        was_reading = self.loader.cancel()
        return self.notice.dismiss() or was_reading

    @Slot()
    def _on_wanted(self) -> None:
        model = self._app.model.state.model
        if model is None:
            return
        self.notice.tell(
            tr("Pick the model that is to run beside {model}").format(model=present.title(model)),
            tr("On the left, or drop a file. Esc leaves the machine as it is."),
        )
        self._app.window.commands["search"].trigger()

    @Slot(object)
    def _on_loaded(self, model: Model) -> None:
        if self._action.isEnabled():
            self._app.model.add_beside(model)

    def _mark_planned(self) -> None:
        """The list marks the model in the window, and that is still the one before."""
        model = self._app.model.state.model
        self._app.browser.model.stay_with(model.id if model else "")

    @Slot(object)
    def _on_state_changed(self, state: State) -> None:
        is_full = len(state.plan.beside) >= beside.MOST
        self._action.setEnabled(state.sizing is not None and not state.is_stale and not is_full)
        full = tr("{most} models run beside this one already").format(most=beside.MOST)
        self._app.window.commands.tell("beside", full if is_full else "")
