"""Files in and out: models, recordings, reports, and what goes to the clipboard."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QLocale, QObject, QUrl, Slot
from PySide6.QtGui import QDesktopServices, QGuiApplication
from PySide6.QtWidgets import QFileDialog

from engine.contract.workspace import SUFFIX
from engine.errors import PlimsollError, UsageError
from engine.launch.read import is_one
from engine.report.files import Kind
from engine.source.by_hand import by_hand
from engine.words import tr, tr_later
from gui import reporting
from gui.diagnosing import SUFFIXES, is_log
from gui.kit.about import AboutDialog
from gui.kit.settings import PAGES
from gui.launching import SUFFIXES as STARTING
from gui.sizing import present
from gui.sizing.by_hand_dialog import ByHandDialog
from gui.sizing.markdown import markdown

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.cancel import CancelToken
    from engine.source.by_hand import Measures
    from gui.app import App

_ANY_FILES = tr_later("Models, workspaces, recordings and logs ({kinds});;All files (*)")
_KINDS = (
    ".json", ".safetensors", ".gguf", SUFFIX, ".jsonl", ".jsonl.gz", *STARTING, *sorted(SUFFIXES)
)  # fmt: skip
_RECORDED = (".jsonl", ".jsonl.gz")
_RECORDINGS = tr_later("Recordings (*.jsonl *.jsonl.gz);;All files (*)")
_NEW_RECORDING = tr_later("Recordings (*.jsonl)")


class Filing(QObject):
    """The commands that open, write and copy."""

    def __init__(self, app: App) -> None:
        super().__init__(app)
        self._app = app
        self._dialog: QFileDialog | None = None
        self._written: Path | None = None
        self._connect()

    def _connect(self) -> None:
        app, commands = self._app, self._app.window.commands
        header = app.view.header
        header.add_action_button(commands["record"], "circle-dot", tr("Record"))
        header.add_action_button(commands["report"], "file-text", tr("Report"))
        commands["open"].triggered.connect(self._on_open)
        commands["open folder"].triggered.connect(self._on_open_folder)
        commands["by hand"].triggered.connect(self._on_by_hand)
        commands["open recording"].triggered.connect(self._on_open_recording)
        commands["record"].triggered.connect(self._on_record)
        commands["report"].triggered.connect(self._on_report)
        commands["copy"].triggered.connect(self._on_copy)
        commands["quit"].triggered.connect(app.window.close)
        commands["about"].triggered.connect(self._on_about)
        app.watch.recording_changed.connect(self._on_recording_changed)
        self._open_button = app.note.add_button(tr("Open it"))
        self._open_button.clicked.connect(self._on_open_written)
        commands["measure"].triggered.connect(self._on_measure)

    def _ask(self, title: str, filters: str, taken: Callable[[str], None]) -> QFileDialog:
        dialog = QFileDialog(self._app.window, title, self._app.settings.last_folder, filters)
        dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
        dialog.fileSelected.connect(taken)
        dialog.fileSelected.connect(self._on_file_selected)
        dialog.finished.connect(dialog.deleteLater)
        self._dialog = dialog
        return dialog

    def ask_file(self, title: str, filters: str, taken: Callable[[str], None]) -> None:
        """Ask for a file to read; ``taken`` is called with its name."""
        self._ask(title, filters, taken).open()

    def ask_where(
        self,
        title: str,
        filters: str,
        suggested: str,
        taken: Callable[[str], None],
        *,
        replaces: bool = True,
    ) -> None:
        """Ask for a file to write; ``taken`` is called with its name.

        Args:
            title: of the dialog.
            filters: kinds of files, as Qt writes them.
            suggested: a name, whose suffix is given to one without.
            taken: what to do with the name.
            replaces: whether a file of that name goes, which the dialog then asks about.
        """
        dialog = self._ask(title, filters, taken)
        dialog.setOption(QFileDialog.Option.DontConfirmOverwrite, on=not replaces)
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setFileMode(QFileDialog.FileMode.AnyFile)
        dialog.setDefaultSuffix(Path(suggested).suffix[1:])
        dialog.selectFile(suggested)
        dialog.open()

    def _on_file_selected(self, name: str) -> None:
        self._app.settings = self._app.settings.with_(last_folder=str(Path(name).parent))

    def _on_open(self) -> None:
        filters = tr(_ANY_FILES).format(kinds=" ".join(f"*{kind}" for kind in _KINDS))
        self.ask_file(tr("Open a model, a workspace or a log"), filters, self._on_selected)

    def _on_open_folder(self) -> None:
        dialog = self._ask(tr("Open a model's folder"), "", self._on_selected)
        dialog.setFileMode(QFileDialog.FileMode.Directory)
        dialog.open()

    def _on_selected(self, name: str) -> None:
        self.take(Path(name))

    def take(self, what: Path | str) -> None:
        """Give a file, folder, link, name or pasted config to whoever reads such."""
        app = self._app
        if is_log(what):
            app.diagnosing.read(what)
        elif isinstance(what, str) and is_one(what):
            app.launching.take(what)
        elif isinstance(what, Path) and what.suffix.lower() in STARTING:
            app.launching.take_file(what)
        elif isinstance(what, Path) and what.name.lower().endswith(SUFFIX):
            app.workspaces.open(what)
        elif isinstance(what, Path) and what.name.lower().endswith(_RECORDED):
            self.play(what)
        else:
            app.browser.open(what)

    def _on_by_hand(self) -> None:
        dialog = ByHandDialog(self._app.window)
        dialog.entered.connect(self._on_entered)
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()

    def _on_entered(self, measures: Measures) -> None:
        self._app.loader.load(lambda _: by_hand(measures), measures)

    def _on_open_recording(self) -> None:
        self.ask_file(tr("Open a recording"), tr(_RECORDINGS), self._on_recording_selected)

    def _on_recording_selected(self, name: str) -> None:
        self.play(Path(name))

    def play(self, path: Path) -> None:
        """Play a recording in place of this computer."""
        app = self._app
        try:
            app.watch.watch(path)
        except PlimsollError as error:
            app.trouble.report(error)
            return
        self._app.desk.take_machine()
        self.tell(tr("Playing {name}").format(name=path.name), tr("F5 returns to this computer."))

    def _on_record(self) -> None:
        app = self._app
        if app.watch.is_recording:
            path = app.watch.stop_recording()
            if path is not None:
                self.tell(tr("Recorded to {path}").format(path=path), written=path)
            return
        app.window.commands["record"].setChecked(False)
        # Nothing is written over: a name that is taken gets a number.
        self.ask_where(
            tr("Record to"), tr(_NEW_RECORDING), "memory.jsonl", self._on_record_to, replaces=False
        )

    def _on_record_to(self, name: str) -> None:
        wanted = Path(name)
        try:
            path = self._app.watch.record(wanted)
        except PlimsollError as error:
            self._app.trouble.report(error)
            return
        if path != wanted:
            self.tell(
                tr("Recording to {name}").format(name=path.name),
                tr("{name} exists already and stays as it is.").format(name=wanted.name),
            )

    def _on_recording_changed(self) -> None:
        action = self._app.window.commands["record"]
        action.setChecked(self._app.watch.is_recording)
        action.setText(tr("Stop &recording") if self._app.watch.is_recording else tr("&Record"))

    def _on_report(self) -> None:
        state = self._app.model.state
        if state.model is None:
            return
        suggested = f"{present.title(state.model)}.pdf"
        title, filters = tr("Export the report"), ";;".join(self._kinds())
        self.ask_where(title, filters, suggested, self._on_report_to)
        if self._dialog:
            self._dialog.filterSelected.connect(self._on_kind_selected)

    def _kinds(self) -> list[str]:
        """The kinds of report, as Qt writes them; the usual paper first."""
        papers = sorted(PAGES, key=lambda page: page != self.paper)
        return [
            *(tr("PDF, {page} (*.pdf)").format(page=page) for page in papers),
            tr("Web page (*.html)"),
            tr("Markdown (*.md)"),
            tr("Table of bytes (*.csv)"),
            tr("JSON, as the terminal answers (*.json)"),
        ]

    def _on_kind_selected(self, chosen: str) -> None:
        """Let the name end as the kind does."""
        if self._dialog is None:
            return
        suffix = chosen.rpartition("*")[2].rstrip(")")
        self._dialog.setDefaultSuffix(suffix[1:])
        named = self._dialog.selectedFiles()
        if named and Path(named[0]).suffix in {f".{kind}" for kind in Kind}:
            self._dialog.selectFile(Path(named[0]).with_suffix(suffix).name)

    @property
    def paper(self) -> str:
        """The paper of a report: as chosen, or as is usual here."""
        us = QLocale.system().measurementSystem() is QLocale.MeasurementSystem.ImperialUSSystem
        return self._app.settings.page or ("Letter" if us else "A4")

    def _on_report_to(self, name: str) -> None:
        path = Path(name)
        chosen = self._dialog.selectedNameFilter() if self._dialog else ""
        page = next((p for p in PAGES if p in chosen), None)
        if page is not None:
            self._app.settings = self._app.settings.with_(page=page)
        try:
            subject, paper = self._subject(), self.paper
        except PlimsollError as error:
            self._app.trouble.report(error)
            return

        def job(_: CancelToken) -> Path:
            reporting.write(subject, path, paper)
            return path

        task = self._app.runner.submit(job)
        task.succeeded.connect(self._on_report_written)
        task.failed.connect(self._app.trouble.report)

    @Slot(object)
    def _on_report_written(self, path: Path) -> None:
        self.tell(tr("Report written to {path}").format(path=path), written=path)

    def write_report(self, path: Path) -> None:
        """Write the report on the plan in force, as the kind that its name ends in.

        Raises:
            PlimsollError: the plan can't be worked out, or the file not be written.
            OSError: the same, from the disk.
        """
        reporting.write(self._subject(), path, self.paper)

    def _subject(self) -> reporting.Subject:
        """What a report is on now; it stays so while the report is written."""
        state = self._app.model.state
        if state.sizing is None or state.is_stale:
            raise UsageError(tr("There is no plan to report on yet: pick a model first."))
        recorded = self._app.watch.recorded if state.sizing.budget.machine.is_here else None
        from engine.observed import observed  # noqa: PLC0415 - needed by no one who doesn't report

        checking = self._app.checking
        log = checking.log_of(state.sizing.budget)
        found = observed(state.sizing, checking.evidence, state.unit, log)
        return reporting.Subject(state, self._app.compare.entries, recorded, found)

    def tell(self, line: str, second: str = "", *, written: Path | None = None) -> None:
        """Say what was done; a file that was ``written`` can be opened from there."""
        self._written = written
        self._open_button.setVisible(written is not None)
        self._app.note.tell(line, second)

    def _on_open_written(self) -> None:
        if self._written is not None:
            QDesktopServices.openUrl(QUrl.fromLocalFile(str(self._written)))

    def _on_about(self) -> None:
        dialog = AboutDialog(self._app.window)
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()

    def _on_copy(self) -> None:
        QGuiApplication.clipboard().setText(markdown(self._app.model.state))
        self.tell(tr("Copied as Markdown"))

    def _on_measure(self) -> None:
        app = self._app
        was_away = not app.watch.is_here
        try:
            if was_away:
                app.watch.watch(None)
            else:
                app.watch.look_again()
        except PlimsollError as error:
            app.trouble.report(error)
            return
        if was_away:
            app.note.dismiss()
        app.desk.take_machine()
