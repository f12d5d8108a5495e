"""What runs on this computer taught: kept in a file, hung on the machine, shown in the settings."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Slot

from engine import lessons
from engine.contract.learn import lesson_of, lesson_of_watched
from engine.errors import PlimsollError
from engine.lessons import Kept
from engine.words import tr
from gui.kit.learned_page import LearnedPage

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.cancel import CancelToken
    from engine.lessons import Lesson
    from gui.app import App

_LINES = "JSON Lines (*.jsonl)"


class Learning(QObject):
    """Owns the file. Reading and writing it run off the GUI thread, one after the other."""

    def __init__(self, app: App, folder: Path | None) -> None:
        """``folder``: where the file lies; None for the platform's."""
        super().__init__(app)
        self._app = app
        self._file = folder / lessons.FILE_NAME if folder else lessons.default_file()
        self._lock = threading.Lock()
        self._forgotten: tuple[Lesson, ...] = ()
        self.kept = Kept()
        self.page = LearnedPage(app.themes.current)
        dialog = app.preferring.dialog
        dialog.add_page(tr("Learned runs"), "circle-dot", self.page)
        dialog.opening.connect(self._show)
        app.themes.changed.connect(self.page.set_theme)
        self.page.forget_wanted.connect(self._on_forget)
        self.page.undo_wanted.connect(self._on_undo)
        self.page.export_wanted.connect(self._on_export)
        app.diagnosing.view.learn_wanted.connect(self._on_learn)
        app.checking.view.learn_wanted.connect(self._on_learn_watched)

    def begin(self) -> None:
        """Read what was kept; plans follow it once it is there."""
        self._submit(lambda kept: kept)

    def learn(self, lesson: Lesson) -> None:
        """Keep a further run, and plan by it from now on."""
        self._submit(lambda kept: lessons.with_(kept, [lesson]))
        self._app.filing.tell(
            tr("Learned from this run"),
            tr("Plans that are the same follow it. Settings, Learned runs shows and forgets it."),
        )

    def _submit(self, change: Callable[[Kept], Kept]) -> None:
        path, lock = self._file, self._lock

        def job(_: CancelToken) -> Kept:
            with lock:
                before = lessons.read(path)
                after = change(before)
                if after != before:
                    lessons.save(path, after)
                return after

        task = self._app.runner.submit(job)
        task.succeeded.connect(self._on_kept)
        task.failed.connect(self._app.trouble.report)

    @Slot(object)
    def _on_kept(self, kept: Kept) -> None:
        is_other = kept.lessons != self.kept.lessons
        self.kept = kept
        self._show()
        if is_other:
            self._app.watch.lessons = kept.lessons
            self._app.model.set_here(self._app.replacing.machine())

    @Slot()
    def _show(self) -> None:
        unit = self._app.model.state.unit
        self.page.show_kept(self.kept, unit, can_undo=bool(self._forgotten))

    @Slot()
    def _on_learn(self) -> None:
        state = self._app.diagnosing.model.state
        if state is None:
            return
        if not self._app.watch.is_here:
            told = tr(
                "What a log teaches is kept for this computer, and another machine is watched now: "
                "go back to this computer first."
            )
            self._app.trouble.report_sentence(told)
            return
        try:
            lesson = lesson_of(state.run, self._app.watch.machine(), state.name, time.time())
        except PlimsollError as error:
            self._app.trouble.report(error)
        else:
            self.learn(lesson)

    @Slot()
    def _on_learn_watched(self) -> None:
        sizing, overlay = self._app.model.state.sizing, self._app.overlaying.overlay
        if sizing is None or overlay is None:
            return
        budget = sizing.budget
        if budget.machine.is_simulated:
            told = tr("Nothing is learned from a simulated machine: nothing was measured.")
            self._app.trouble.report_sentence(told)
            return
        try:
            release = self._app.checking.release(budget)
            lesson = lesson_of_watched(budget, overlay, release, time.time())
        except PlimsollError as error:
            self._app.trouble.report(error)
        else:
            self.learn(lesson)

    @Slot(object)
    def _on_forget(self, ids: tuple[str, ...]) -> None:
        self._forgotten = tuple(one for one in self.kept.lessons if one.id in ids)
        self._submit(lambda kept: lessons.without(kept, ids))

    @Slot()
    def _on_undo(self) -> None:
        again, self._forgotten = self._forgotten, ()
        self._submit(lambda kept: lessons.with_(kept, again))

    @Slot()
    def _on_export(self) -> None:
        self._app.filing.ask_where(
            tr("Export the learned runs"), _LINES, "plimsoll-learned.jsonl", self._export
        )

    def _export(self, name: str) -> None:
        path, kept = Path(name), self.kept

        def job(_: CancelToken) -> None:
            lessons.save(path, kept)

        task = self._app.runner.submit(job)
        task.failed.connect(self._app.trouble.report)
