"""The command that puts a plan beside others, and what the comparison hands back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Slot
from PySide6.QtGui import QGuiApplication, QUndoCommand
from typing_extensions import override

from engine.words import tr
from gui.sizing.comparison import MOST

if TYPE_CHECKING:
    from gui.app import App
    from gui.sizing.compare_view_model import CompareViewModel
    from gui.sizing.comparison import Entry, Pinned
    from gui.sizing.view_model import State


class _EditCompared(QUndoCommand):
    """One edit of the compared plans, done already when it is pushed."""

    def __init__(
        self,
        model: CompareViewModel,
        words: str,
        before: tuple[Pinned, ...],
        after: tuple[Pinned, ...],
    ) -> None:
        super().__init__(words)
        self._model, self._before, self._after = model, before, after

    @override
    def undo(self) -> None:
        self._model.set_plans(self._before)

    @override
    def redo(self) -> None:
        self._model.set_plans(self._after)


class Comparing(QObject):
    """Connects the plan in force with the plans that were put aside."""

    def __init__(self, app: App) -> None:
        super().__init__(app)
        self._app = app
        self._action = app.window.commands["compare"]
        self._action.triggered.connect(self._on_add)
        app.view.header.add_action_button(
            self._action, "columns-3", tr("Add to compare"), flat=True
        )
        app.compare.changed.connect(self._on_changed)
        app.compare.edited.connect(self._on_edited)
        app.compare_view.add_wanted.connect(self._on_add)
        app.compare_view.open_wanted.connect(self._on_open)
        app.compare_view.copy_wanted.connect(self._on_copy)
        app.model.changed.connect(self._on_state_changed)

    @Slot()
    def _on_add(self) -> None:
        app = self._app
        if app.compare.add(app.model.state):
            count = len(app.compare.entries)
            hint = tr("Change the plan and add it again.") if count == 1 else ""
            words = tr("Plan {letter} is kept under Compare").format(letter="ABCDEF"[count - 1])
            app.filing.tell(words, hint)
        elif not app.compare.is_full:
            app.filing.tell(tr("This plan is among the compared ones already"))

    @Slot(str, object, object)
    def _on_edited(self, words: str, before: tuple[Pinned, ...], after: tuple[Pinned, ...]) -> None:
        stack = self._app.model.undo_stack
        stack.push(_EditCompared(self._app.compare, words, before, after))

    @Slot(object)
    def _on_changed(self, entries: tuple[Entry, ...]) -> None:
        self._app.view.tabs.set_count(self._app.compare_view, str(len(entries) or ""))
        self._allow(self._app.model.state)

    @Slot(object)
    def _on_state_changed(self, state: State) -> None:
        self._app.compare.set_here(state.here)
        self._app.compare_view.set_unit(state.unit)
        self._allow(state)

    def _allow(self, state: State) -> None:
        is_full = self._app.compare.is_full
        self._action.setEnabled(state.sizing is not None and not state.is_stale and not is_full)
        full = tr("{most} plans are compared already: remove one first").format(most=MOST)
        self._app.window.commands.tell("compare", full if is_full else "")

    @Slot(object)
    def _on_open(self, pinned: Pinned) -> None:
        self._app.model.open(pinned.model, pinned.plan)

    @Slot(str)
    def _on_copy(self, text: str) -> None:
        QGuiApplication.clipboard().setText(text)
        self._app.filing.tell(tr("Copied as Markdown"))
