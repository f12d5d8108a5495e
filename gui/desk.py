"""What the user's commands do, and what the window says of the state."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QLocale, QObject, Qt, QUrl, Slot
from PySide6.QtGui import QDesktopServices, QGuiApplication
from PySide6.QtWidgets import QFileDialog

from engine.devices import catalogue as device_catalogue
from engine.devices import plain
from engine.devices.device import DeviceKind
from engine.errors import PlimsollError, UsageError
from engine.fit.solve import limits
from engine.source import catalogue
from engine.units import UnitSystem
from gui import watch
from gui.kit.about import AboutDialog, own_version
from gui.kit.format import size
from gui.kit.settings import PAGES, SCHEMES
from gui.kit.throttle import Debounce
from gui.sizing import present

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.devices.device import Slot as DeviceSlot
    from engine.telemetry.snapshot import TelemetrySnapshot
    from gui.app import App
    from gui.browser.rows import Choice
    from gui.kit.settings import Settings
    from gui.sizing.view_model import State

_MODEL_FILES = "Models (*.json *.safetensors *.gguf);;All files (*)"
_RECORDINGS = "Recordings (*.jsonl);;All files (*)"
_HOLDS_TAB = 1
_BADGE_PAUSE_MS = 80
"""The browser's badges are for the plan at which an edit comes to rest."""


class Desk(QObject):
    """Connects the commands of the window with the rooms."""

    def __init__(self, app: App) -> None:
        super().__init__(app)
        self._app = app
        self._dialog: QFileDialog | None = None
        self._written: Path | None = None
        self._unit: UnitSystem | None = None
        self._chosen = ""
        self._badges = Debounce(_BADGE_PAUSE_MS, self._tell_plan, self)
        self._connect_files()
        self._connect_view()
        self._connect_plan()

    def _connect_files(self) -> None:
        app, commands = self._app, self._app.window.commands
        header = app.view.header
        header.add_action_button(commands["record"], "circle-dot", "Record")
        header.add_action_button(commands["report"], "file-text", "Report")
        commands["open"].triggered.connect(self._on_open)
        commands["open folder"].triggered.connect(self._on_open_folder)
        commands["open recording"].triggered.connect(self._on_open_recording)
        commands["record"].triggered.connect(self._on_record)
        commands["report"].triggered.connect(self._on_report)
        commands["quit"].triggered.connect(app.window.close)
        commands["about"].triggered.connect(self._on_about)
        app.watch.recording_changed.connect(self._on_recording_changed)
        app.watch.ended.connect(self._on_replay_ended)
        app.watch.aged.connect(self._on_aged)
        app.note.add_button("Open").clicked.connect(self._on_open_written)
        app.welcome.add_button("Copy hardware report").clicked.connect(self._on_copy_hardware)
        app.welcome.closed.connect(self._on_welcome_closed)

    def _connect_view(self) -> None:
        app, commands = self._app, self._app.window.commands
        commands["search"].triggered.connect(self._on_search)
        commands["tabs"].triggered.connect(app.view.tabs.toggle)
        app.view.tabs.folded_changed.connect(self._on_tabs_folded)
        commands["tab 1"].triggered.connect(self._on_first_tab)
        commands["tab 2"].triggered.connect(self._on_second_tab)
        for scheme in SCHEMES:
            commands[f"scheme {scheme}"].triggered.connect(self._on_scheme)
        commands[f"scheme {app.settings.scheme}"].setChecked(True)
        for unit in UnitSystem:
            commands[f"unit {unit.value}"].triggered.connect(self._on_unit_action)
        app.window.status_line.unit.picked.connect(app.model.set_unit)
        app.holds.balance_changed.connect(self._on_balance)
        app.holds.count_changed.connect(self._on_holders_counted)
        commands["hold"].triggered.connect(app.view.picture.toggle_hold)
        # Space presses the focused button everywhere else.
        commands["hold"].setShortcutContext(Qt.ShortcutContext.WidgetShortcut)
        app.view.picture.addAction(commands["hold"])
        app.view.picture.held.connect(commands["hold"].setChecked)

    def _connect_plan(self) -> None:
        app, commands = self._app, self._app.window.commands
        commands["context"].triggered.connect(self._on_context)
        commands["halve"].triggered.connect(self._on_halve)
        commands["double"].triggered.connect(self._on_double)
        commands["now"].triggered.connect(self._on_now)
        commands["emptied"].triggered.connect(self._on_emptied)
        commands["measure"].triggered.connect(self._on_measure)
        app.window.set_areas(
            (app.browser, app.view.strip, app.view.verdict, app.view.picture, app.view.tabs)
        )
        app.window.set_closers(
            (app.loader.cancel, app.view.close_floating, app.trouble.dismiss, app.note.dismiss)
        )

    def here_name(self) -> str:
        """This computer's first device, for the device box."""
        return self._app.model.state.here.slots[0].device.name

    def settings_now(self) -> Settings:
        """What to remember."""
        app = self._app
        return app.settings.with_(
            unit=app.model.state.unit,
            tabs_folded=app.view.folded_by_user,
            geometry=bytes(app.window.saveGeometry().data()),
            splitters=app.window.splitter_states(),
        )

    def welcome(self) -> None:
        """The strip of the first start: what was found, how it is known, and what was sent."""
        if not self._app.settings.welcome_closed and self._app.watch.replay is None:
            self._tell_found()

    def _tell_found(self) -> None:
        app = self._app
        slot = app.model.state.here.slots[0]
        count = len(catalogue.entries())
        is_host = slot.device.kind is DeviceKind.HOST
        hint = " Pick a device to plan for a GPU." if is_host else ""
        app.welcome.tell(
            _found(slot, app.model.state.unit),
            f"From {slot.device.source}. Nothing has been sent anywhere; "
            f"the catalogue of {count} models came with the app.{hint}",
        )

    @Slot(object)
    def on_state_changed(self, state: State) -> None:
        """Say of the state what belongs to no room."""
        app, window = self._app, self._app.window
        name = present.title(state.model) if state.model else "Plimsoll"
        on = f" on {present.device_name(state)}" if state.model else ""
        window.setWindowTitle(f"{name}{on}")
        window.status_line.unit.set_current(state.unit)
        window.commands[f"unit {state.unit.value}"].setChecked(True)
        window.commands["emptied" if state.plan.emptied else "now"].setChecked(True)
        for key in ("now", "emptied"):
            window.commands[key].setEnabled(state.plan.device is None)
        window.commands["report"].setEnabled(state.sizing is not None and not state.is_stale)
        for key in ("halve", "double", "context"):
            window.commands[key].setEnabled(state.model is not None)
        self._badges.request()
        window.status_line.device.tell(self._device_words(state))
        offline = app.hub.offline
        count = len(catalogue.entries())
        window.status_line.hub.tell(
            f"Off-line, catalogue of {count}" if offline else "Hub: asked only when you search",
            picture="cloud-off" if offline else "cloud",
        )
        self._tell_unit(state)
        name = state.model.id if state.model else ""
        if name != self._chosen:
            self._chosen = name
            app.browser.set_chosen(name)
        self.on_sampled(app.watch.last)

    def _tell_unit(self, state: State) -> None:
        app = self._app
        if state.unit is self._unit:
            return
        self._unit = state.unit
        app.holds.set_unit(state.unit)
        app.browser.set_unit(state.unit)
        if app.welcome.isVisible():
            self._tell_found()

    def _tell_plan(self) -> None:
        state = self._app.model.state
        if state.machine is not None and not state.is_stale:
            self._app.browser.set_plan(state.plan.deployment, state.machine)

    @Slot(object)
    def on_sampled(self, snapshot: TelemetrySnapshot) -> None:
        """Show the sample in the status line and the rooms."""
        app, state = self._app, self._app.model.state
        app.window.status_line.sampling.tell(watch.sampling_words(snapshot))
        machine = state.machine or state.here
        uuid = machine.slots[0].uuid if machine.is_here else state.here.slots[0].uuid
        app.holds.show_snapshot(snapshot, uuid)
        if machine.is_here:
            app.view.picture.append(snapshot)

    @Slot(object)
    def on_chosen(self, choice: Choice) -> None:
        """Load what was picked in the browser."""
        self._app.trouble.dismiss()
        self._app.loader.load(choice.fetch)

    @Slot(object)
    def on_dropped(self, what: Path | str) -> None:
        """Take a file, folder, link, name or pasted config that was dropped on the window."""
        if isinstance(what, Path) and what.suffix == ".jsonl":
            self._play(what)
        else:
            self._app.browser.open(what)

    def _device_words(self, state: State) -> str:
        here = state.here.slots[0].device
        note = f", {here.source.split(',')[0]}" if here.source else ""
        return f"{here.name}{note}"

    def _ask(self, title: str, filters: str, taken: Callable[[str], None]) -> QFileDialog:
        dialog = QFileDialog(self._app.window, title, self._app.settings.last_folder, filters)
        dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
        dialog.fileSelected.connect(taken)
        dialog.fileSelected.connect(self._on_file_selected)
        dialog.finished.connect(dialog.deleteLater)
        self._dialog = dialog
        return dialog

    def _on_file_selected(self, name: str) -> None:
        self._app.settings = self._app.settings.with_(last_folder=str(Path(name).parent))

    def _on_open(self) -> None:
        self._ask("Open a model", _MODEL_FILES, self._on_model_selected).open()

    def _on_open_folder(self) -> None:
        dialog = self._ask("Open a model's folder", "", self._on_model_selected)
        dialog.setFileMode(QFileDialog.FileMode.Directory)
        dialog.open()

    def _on_model_selected(self, name: str) -> None:
        self._app.browser.open(Path(name))

    def _on_open_recording(self) -> None:
        self._ask("Open a recording", _RECORDINGS, self._on_recording_selected).open()

    def _on_recording_selected(self, name: str) -> None:
        self._play(Path(name))

    def _play(self, path: Path) -> None:
        app = self._app
        try:
            app.watch.watch(path)
        except PlimsollError as error:
            app.trouble.report(error)
            return
        self._take_machine()
        app.note.tell(f"Playing {path.name}", "F5 returns to this computer.")

    def _on_replay_ended(self) -> None:
        self._app.note.tell("The recording is over", "F5 returns to this computer.")

    def _on_aged(self, age: str) -> None:
        if age:
            self._app.window.status_line.sampling.tell(f"Last sample {age}")

    def _on_record(self) -> None:
        app = self._app
        if app.watch.is_recording:
            path = app.watch.stop_recording()
            if path is not None:
                self._written = path
                app.note.tell(f"Recorded to {path}")
            return
        app.window.commands["record"].setChecked(False)
        dialog = self._ask("Record to", _RECORDINGS, self._on_record_to)
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setFileMode(QFileDialog.FileMode.AnyFile)
        dialog.setDefaultSuffix("jsonl")
        dialog.selectFile("memory.jsonl")
        dialog.open()

    def _on_record_to(self, name: str) -> None:
        try:
            self._app.watch.record(Path(name))
        except PlimsollError as error:
            self._app.trouble.report(error)

    def _on_recording_changed(self) -> None:
        action = self._app.window.commands["record"]
        action.setChecked(self._app.watch.is_recording)
        action.setText("Stop &recording" if self._app.watch.is_recording else "&Record")

    def _on_report(self) -> None:
        state = self._app.model.state
        if state.model is None:
            return
        papers = sorted(PAGES, key=lambda page: page != self._page())
        filters = ";;".join(f"PDF, {page} (*.pdf)" for page in papers)
        dialog = self._ask("Export the report", filters, self._on_report_to)
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setFileMode(QFileDialog.FileMode.AnyFile)
        dialog.setDefaultSuffix("pdf")
        dialog.selectFile(f"{present.title(state.model)}.pdf")
        dialog.open()

    def _page(self) -> str:
        us = QLocale.system().measurementSystem() is QLocale.MeasurementSystem.ImperialUSSystem
        return self._app.settings.page or ("Letter" if us else "A4")

    def _on_report_to(self, name: str) -> None:
        path = Path(name)
        chosen = self._dialog.selectedNameFilter() if self._dialog else ""
        page = next((p for p in PAGES if p in chosen), self._page())
        self._app.settings = self._app.settings.with_(page=page)
        try:
            self.write_report(path)
        except (PlimsollError, OSError) as error:
            self._app.trouble.report(error)
            return
        self._written = path
        self._app.note.tell(f"Report written to {path}")

    def write_report(self, path: Path) -> None:
        """Write the report on the plan in force.

        Raises:
            PlimsollError: the plan can't be worked out, or the file not be written.
            OSError: the same, from the disk.
        """
        # Composer and PDF writer are needed by no one who doesn't report.
        from engine.report.compose import About, compose  # noqa: PLC0415
        from gui.report.pdf import write_pdf  # noqa: PLC0415

        state = self._app.model.state
        if state.sizing is None or state.is_stale:
            raise UsageError("There is no plan to report on yet: pick a model first.")
        budget = state.sizing.budget
        deployment = state.plan.deployment
        found = state.limits or limits(budget.model, deployment, budget.machine)
        about = About(
            on=datetime.now(tz=UTC).astimezone().date(),
            plan=deployment,
            unit=state.unit,
            version=own_version(),
        )
        recorded = self._app.watch.recorded if budget.machine.is_here else None
        document = compose(state.sizing, found, about, recorded)
        write_pdf(document, path, self._page())

    def _on_open_written(self) -> None:
        if self._written is not None:
            QDesktopServices.openUrl(QUrl.fromLocalFile(str(self._written)))

    def _on_about(self) -> None:
        dialog = AboutDialog(self._app.window)
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()

    def _on_copy_hardware(self) -> None:
        report = plain.to_dict(self._app.model.state.here)
        QGuiApplication.clipboard().setText(json.dumps(report, indent=1, ensure_ascii=False))

    def _on_welcome_closed(self) -> None:
        self._app.settings = self._app.settings.with_(welcome_closed=True)

    def _on_search(self) -> None:
        self._app.window.show_browser()
        self._app.browser.focus_search()

    def _on_tabs_folded(self, folded: bool) -> None:  # noqa: FBT001 - a signal's argument
        self._app.window.commands["tabs"].setChecked(not folded)

    def _on_balance(self, text: str) -> None:
        line = self._app.window.status_line
        changed = len(text) != len(line.balance.full_text)
        line.balance.set_text(text)
        if changed:
            line.make_room()

    def _on_holders_counted(self, count: str) -> None:
        self._app.view.tabs.tabs.set_count(_HOLDS_TAB, count)

    def _on_first_tab(self) -> None:
        self._app.view.tabs.open(0)

    def _on_second_tab(self) -> None:
        self._app.view.tabs.open(_HOLDS_TAB)

    def _on_scheme(self) -> None:
        commands = self._app.window.commands
        scheme = next(s for s in SCHEMES if commands[f"scheme {s}"].isChecked())
        self._app.settings = self._app.settings.with_(scheme=scheme)
        self._app.themes.pin(None if scheme == "system" else scheme)

    def _on_unit_action(self) -> None:
        commands = self._app.window.commands
        binary = commands[f"unit {UnitSystem.BINARY.value}"].isChecked()
        self._app.model.set_unit(UnitSystem.BINARY if binary else UnitSystem.DECIMAL)

    def _on_context(self) -> None:
        field = self._app.view.strip.context
        field.setFocus()
        field.selectAll()

    def _on_halve(self) -> None:
        self._app.model.scale_context(-1)

    def _on_double(self) -> None:
        self._app.model.scale_context(1)

    def _on_now(self) -> None:
        self._app.model.set_emptied(emptied=False)

    def _on_emptied(self) -> None:
        self._app.model.set_emptied(emptied=True)

    def _on_measure(self) -> None:
        app = self._app
        if app.watch.replay is not None:
            try:
                app.watch.watch(None)
            except PlimsollError as error:
                app.trouble.report(error)
                return
            app.note.dismiss()
        self._take_machine()

    def _take_machine(self) -> None:
        app = self._app
        app.model.set_here(app.watch.machine())
        app.view.strip.set_devices(self.here_name(), device_catalogue.devices())
        app.view.strip.show_state(app.model.state)


def _found(slot: DeviceSlot, unit: UnitSystem) -> str:
    device = slot.device
    total, line = size(device.total_bytes, unit), size(device.allocatable.likely_bytes, unit)
    held = size(slot.foreign.likely_bytes, unit)
    if device.kind is DeviceKind.HOST:
        return (
            f"No GPU found: the plan is for this computer’s memory, {total}, {line} for programs, "
            f"{held} in use."
        )
    return f"Found: {device.name}, {total} by the driver, {line} for programs, {held} in use."
