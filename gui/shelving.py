"""What a person keeps of the browser: restored, remembered, and each edit of it undoable."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Slot
from PySide6.QtGui import QUndoCommand
from PySide6.QtWidgets import QFileDialog
from typing_extensions import override

from engine.words import tr
from gui.browser import shelf_file
from gui.browser.rows import Source
from gui.browser.shelf import Shelf
from gui.kit.latest import LatestOnly
from gui.kit.whole_file import write_whole

if TYPE_CHECKING:
    from engine.cancel import CancelToken
    from gui.app import App
    from gui.browser.view_model import BrowserViewModel


class _EditShelf(QUndoCommand):
    """One edit, done already when it is pushed; what was opened meanwhile stays as it is."""

    def __init__(self, model: BrowserViewModel, words: str, before: Shelf, after: Shelf) -> None:
        super().__init__(words)
        self._model, self._before, self._after = model, before, after

    @override
    def undo(self) -> None:
        self._model.set_shelf(_edited(self._model.state.shelf, self._after, self._before))

    @override
    def redo(self) -> None:
        self._model.set_shelf(_edited(self._model.state.shelf, self._before, self._after))


def _edited(now: Shelf, old: Shelf, new: Shelf) -> Shelf:
    """``now`` with what differs between ``old`` and ``new`` as in ``new``."""
    return Shelf(
        new.favourites if new.favourites != old.favourites else now.favourites,
        new.recents if new.recents != old.recents else now.recents,
        new.folders if new.folders != old.folders else now.folders,
    )


class Shelving(QObject):
    """Connects the browser's shelf with settings, commands and undo."""

    def __init__(self, app: App) -> None:
        super().__init__(app)
        self._app = app
        self._model = app.browser.model
        self._favourite = app.window.commands["favourite"]
        self._favourite.triggered.connect(self._on_favourite)
        app.window.commands["search folder"].triggered.connect(self._on_search_folder)
        app.window.commands["export shelf"].triggered.connect(self._on_export)
        app.window.commands["import shelf"].triggered.connect(self._on_import)
        self._files = LatestOnly(app.runner, self)
        self._files.succeeded.connect(self._on_file_done)
        self._files.failed.connect(app.trouble.report)
        self._model.edited.connect(self._on_edited)
        self._model.changed.connect(self._on_changed)
        self._on_changed()

    def restore(self) -> None:
        """Take over what was remembered."""
        kept = self._app.settings
        self._model.set_shelf(Shelf(kept.favourites, kept.recents, kept.folders))
        self._model.restore_order(kept.order, kept.turned_orders)

    def settings_now(self) -> dict[str, tuple[str, ...]]:
        """What to remember."""
        shelf = self._model.state.shelf
        return {
            "favourites": shelf.favourites,
            "recents": shelf.recents,
            "folders": shelf.folders,
        }

    @Slot(str, object, object)
    def _on_edited(self, words: str, before: Shelf, after: Shelf) -> None:
        self._app.model.undo_stack.push(_EditShelf(self._model, words, before, after))

    def _on_changed(self) -> None:
        row = self._model.chosen_row
        self._favourite.setEnabled(row is not None)
        kept = row is not None and row.is_among(self._model.state.shelf.favourites)
        self._favourite.setChecked(kept)

    def _on_favourite(self) -> None:
        row = self._model.chosen_row
        if row is not None:
            self._model.set_favourite(row, not row.is_among(self._model.state.shelf.favourites))

    def _on_export(self) -> None:
        filters = tr("Favourites (*.json)")
        self._app.filing.ask_where(
            tr("Export favourites"), filters, "favourites.json", self._on_export_to
        )

    @Slot(str)
    def _on_export_to(self, name: str) -> None:
        path, text = Path(name), shelf_file.written(self._model.state.shelf)

        def job(_token: CancelToken) -> tuple[Path, Shelf | None]:
            write_whole(path, text)
            return path, None

        self._files.submit(job)

    def _on_import(self) -> None:
        filters = tr("Favourites (*.json);;All files (*)")
        self._app.filing.ask_file(tr("Import favourites"), filters, self._on_import_from)

    @Slot(str)
    def _on_import_from(self, name: str) -> None:
        path = Path(name)
        self._files.submit(lambda _token: (path, shelf_file.read(path)))

    @Slot(object)
    def _on_file_done(self, done: tuple[Path, Shelf | None]) -> None:
        path, found = done
        if found is None:
            self._app.filing.tell(tr("Favourites written to {name}").format(name=path.name))
            return
        near, far = shelf_file.near(found)
        words = tr("import of {name}").format(name=path.name)
        self._model.edit_shelf(words, shelf_file.merged(self._model.state.shelf, near))
        hint = tr("Folders on other computers are left out: search them yourself.") if far else ""
        self._app.filing.tell(tr("Favourites of {name} added").format(name=path.name), hint)

    def _on_search_folder(self) -> None:
        app = self._app
        dialog = QFileDialog(app.window, tr("Search a folder for models"), app.settings.last_folder)
        dialog.setFileMode(QFileDialog.FileMode.Directory)
        dialog.fileSelected.connect(self._on_folder)
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()

    @Slot(str)
    def _on_folder(self, folder: str) -> None:
        self._model.set_folder(folder, searched=True)
        self._model.set_source(Source.LOCAL)
