"""This computer's hardware: what was found, what its user says instead, and a report on it."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, Slot
from PySide6.QtGui import QGuiApplication

from engine.devices.hardware_report import hardware_report
from engine.redaction import redacted
from engine.source import catalogue
from engine.words import tr
from gui.kit.about import own_version
from gui.kit.latest import LatestOnly
from gui.kit.notices import Notice
from gui.sizing.found import brief, found, sources
from gui.sizing.hardware_dialog import HardwareDialog

if TYPE_CHECKING:
    from engine.cancel import CancelToken
    from engine.devices.corrected import Correction
    from engine.devices.device import Machine
    from engine.units import UnitSystem
    from gui.app import App
    from gui.sizing.view_model import State


class Correcting(QObject):
    """Says what was found, opens the editor, and marks what is corrected as long as it is."""

    def __init__(self, app: App) -> None:
        super().__init__(app)
        self._app = app
        self._told: tuple[Machine, UnitSystem] | None = None
        self._is_closed = False
        self._report = LatestOnly(app.runner, self)
        self._report.succeeded.connect(self._on_reported)
        self._report.failed.connect(app.trouble.report)
        app.welcome.add_button(tr("That’s wrong…")).clicked.connect(self._on_edit)
        app.welcome.add_button(tr("Copy hardware report")).clicked.connect(self._on_copy)
        self.notice = Notice("corrected", "cpu", "accent")
        self.notice.add_button(tr("Change…")).clicked.connect(self._on_edit)
        self.notice.add_button(tr("As detected")).clicked.connect(self._on_back)
        self.notice.closed.connect(self._on_closed)
        app.view.add_notice(self.notice)
        app.themes.changed.connect(self.notice.set_theme)
        self.notice.set_theme(app.themes.current)
        app.window.commands["hardware"].triggered.connect(self._on_edit)
        app.window.commands["hardware report"].triggered.connect(self._on_copy)
        app.model.changed.connect(self.show_state)

    def tell_found(self) -> None:
        """The strip of the first start: every device with its source and doubt."""
        app = self._app
        here, unit = app.model.state.here, app.model.state.unit
        text = tr("Nothing has been sent; the catalogue of {count} models came with the app.")
        words = [sources(here, unit), *app.watch.last.notes]
        words.append(text.format(count=len(catalogue.entries())))
        if here.slots == (here.host,):
            words.append(tr("Pick a device to plan for a GPU."))
        app.welcome.tell(found(here, unit), " ".join(words))

    def use(self, corrections: tuple[Correction, ...]) -> None:
        """Plan for this computer with ``corrections`` from now on."""
        app = self._app
        app.settings = app.settings.with_(corrections=corrections)
        app.watch.corrections = corrections
        self._is_closed = False
        app.desk.take_machine()
        if app.welcome.isVisible():
            app.welcome.setVisible(not app.model.state.here.is_corrected)

    @Slot(object)
    def show_state(self, state: State) -> None:
        """Mark this computer as corrected where the plan is for it."""
        shown = state.here.is_corrected and state.plan.device is None and not self._is_closed
        if shown and (state.here, state.unit) != self._told:
            now, before = state.here, self._app.watch.detected()
            line = tr("This computer, corrected by you: {devices}")
            second = tr("As detected: {devices}. What is measured is the driver’s, as before.")
            self.notice.tell(
                line.format(devices=brief(now, state.unit)),
                second.format(devices=brief(before, state.unit)),
            )
            self._told = (state.here, state.unit)
        self.notice.setVisible(shown)

    def _on_edit(self) -> None:
        app = self._app
        dialog = HardwareDialog(
            app.watch.detected(), app.settings.corrections, app.model.state.unit, app.window
        )
        dialog.confirmed.connect(self.use)
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()

    def _on_back(self) -> None:
        self.use(())

    def _on_closed(self) -> None:
        self._is_closed = True

    def _on_copy(self) -> None:
        app = self._app
        program, asks_drivers = f"Plimsoll {own_version()}", not app.is_safe
        said = [
            asdict(c) | {"uuid": "", "name": redacted(c.name)} for c in app.settings.corrections
        ]

        def ask(_: CancelToken) -> dict[str, Any]:
            report = hardware_report(Path("/"), program, asks_drivers=asks_drivers)
            return report | {"corrections": said}

        self._report.submit(ask)

    @Slot(object)
    def _on_reported(self, report: dict[str, Any]) -> None:
        text = json.dumps(report, indent=1, ensure_ascii=False)
        QGuiApplication.clipboard().setText(text)
        self._app.filing.tell(
            tr("The hardware report is copied"),
            tr("What the sources answered, without names, serial numbers and programs."),
        )
