"""Shortcuts: as they are kept, on their page of the settings, on their sheet; and the terms."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Slot
from PySide6.QtGui import QKeySequence

from engine.report import terms
from engine.words import tr
from gui.kit.actions import COMMANDS, EDIT, MENUS
from gui.kit.keys import Bound, Keys
from gui.kit.look_up import Chapter, LookUp
from gui.kit.shortcuts_page import ShortcutsPage

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gui.app import App


class Keying(QObject):
    """Keeps the shortcuts, and opens the two sheets of the Help menu."""

    def __init__(self, app: App) -> None:
        super().__init__(app)
        self._app = app
        self.keys = Keys(_bound(app), self)
        self.keys.restore(app.settings.shortcuts)
        self.page = ShortcutsPage(self.keys)
        self.page.set_theme(app.themes.current)
        app.themes.changed.connect(self.page.set_theme)
        app.preferring.dialog.add_page(tr("Shortcuts"), "keyboard", self.page)
        self.keys.changed.connect(self._on_changed)
        app.window.commands["keys"].triggered.connect(self._on_sheet)
        app.window.commands["terms"].triggered.connect(self._on_terms)
        self._show_keys()

    @Slot()
    def _on_changed(self) -> None:
        self._app.settings = self._app.settings.with_(shortcuts=self.keys.changes)
        self._show_keys()

    def _show_keys(self) -> None:
        self._app.window.commands.refresh()
        native = self.keys.of("search").toString(QKeySequence.SequenceFormat.NativeText)
        self._app.browser.search.set_keys(native.replace("+", " "))

    def _on_sheet(self) -> None:
        bound = self.keys.commands.values()
        chapters = [
            Chapter(menu, tuple((one.title, self.keys.text(one.key)) for one in group))
            for menu, group in groupby(
                (one for one in bound if self.keys.text(one.key)), key=lambda one: one.menu
            )
        ]
        self._open(tr("Keyboard shortcuts"), chapters)

    def _on_terms(self) -> None:
        tables = (
            (tr("The plan"), terms.PLAN),
            (tr("The verdict"), terms.VERDICT),
            (tr("Regions"), {r.label: words for r, words in terms.REGIONS.items()}),
            (tr("The picture and its figures"), terms.PICTURE),
            (tr("Basis"), {b.word: words for b, words in terms.BASES.items()}),
            (tr("Units"), terms.UNITS),
        )
        chapters = [
            Chapter(title, tuple((tr(term), tr(words)) for term, words in table.items()))
            for title, table in tables
        ]
        self._open(tr("What the words mean"), chapters)

    def _open(self, title: str, chapters: Sequence[Chapter]) -> None:
        sheet = LookUp(title, chapters, self._app.themes.current, self._app.window)
        sheet.finished.connect(sheet.deleteLater)
        sheet.open()


def _bound(app: App) -> Iterator[Bound]:
    """Every command, menu by menu; Undo and Redo are the undo stack's own."""
    for menu in MENUS:
        title = tr(menu).replace("&", "")
        if menu == EDIT:
            names = (("undo", tr("Undo")), ("redo", tr("Redo")))
            for (key, name), action in zip(names, app.window.edit_actions, strict=True):
                yield Bound(key, name, title, action, tuple(action.shortcuts()))
        for command in COMMANDS:
            if command.menu == menu:
                action = app.window.commands[command.key]
                yield Bound(command.key, command.title, title, action, command.keys)
