"""What can be done with one row, as its context menu."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtGui import QAction, QGuiApplication
from PySide6.QtWidgets import QMenu, QWidget

from engine.words import tr
from gui.browser.rows import Source

if TYPE_CHECKING:
    from collections.abc import Callable

    from gui.browser.rows import Row
    from gui.browser.view_model import BrowserViewModel


def row_menu(row: Row, model: BrowserViewModel, parent: QWidget) -> QMenu:
    """The menu of ``row``; it deletes itself when it is closed."""
    menu = QMenu(parent)
    menu.setObjectName("row menu")
    menu.aboutToHide.connect(menu.deleteLater)
    shelf = model.state.shelf
    kept = row.is_among(shelf.favourites)

    def add(words: str, act: Callable[[], None]) -> None:
        action = QAction(words, menu)
        action.triggered.connect(act)
        menu.addAction(action)

    def open_row() -> None:
        model.choose(row.key)

    def turn_favourite() -> None:
        model.set_favourite(row, not kept)

    def forget() -> None:
        model.forget(row)

    def copy_name() -> None:
        QGuiApplication.clipboard().setText(row.reference)

    add(tr("Size this model"), open_row)
    add(tr("Run it beside the model in the window"), partial(model.choose, row.key, beside=True))
    if model.files.may_have(row):
        add(tr("Show its files"), partial(model.files.show, row))
    add(tr("Remove from favourites") if kept else tr("Add to favourites"), turn_favourite)
    if model.state.source is Source.OWN and row.is_among(shelf.recents) and not kept:
        add(tr("Forget that it was opened"), forget)
    add(tr("Copy path") if row.path else tr("Copy name"), copy_name)
    for folder in shelf.folders:
        if row.path and Path(row.path).is_relative_to(folder):
            menu.addSeparator()
            words = tr("Stop searching {folder}").format(folder=Path(folder).name or folder)
            add(words, _stopper(folder, model))
    return menu


def _stopper(folder: str, model: BrowserViewModel) -> Callable[[], None]:
    def stop() -> None:
        model.set_folder(folder, searched=False)

    return stop
