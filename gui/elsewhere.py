"""Another machine in place of this computer, by its address, or one that isn't there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Slot

from engine.errors import PlimsollError
from engine.seen.meeting import meet
from engine.telemetry.probe import simulated_sampler
from engine.words import tr
from gui.kit.latest import LatestOnly
from gui.kit.messages import sentence
from gui.kit.notices import Notice
from gui.live.elsewhere_dialog import ElsewhereDialog
from gui.watch import Elsewhere

if TYPE_CHECKING:
    from engine.cancel import CancelToken
    from engine.seen.meeting import Met
    from gui.app import App


class GoingElsewhere(QObject):
    """The commands that watch another machine, and the strip that says so as long as it is."""

    def __init__(self, app: App) -> None:
        super().__init__(app)
        self._app = app
        # An address that was given up may be silent for seconds: the next one doesn't wait for it.
        self._meeting = LatestOnly(app.runner, self)
        self._meeting.succeeded.connect(self._on_met)
        self._meeting.failed.connect(self._on_failed)
        self._dialog: ElsewhereDialog | None = None
        self.notice = Notice("elsewhere watched", "monitor", "accent")
        self.notice.add_button(tr("Back to this computer")).clicked.connect(self.go_back)
        app.view.add_notice(self.notice)
        app.themes.changed.connect(self.notice.set_theme)
        self.notice.set_theme(app.themes.current)
        commands = app.window.commands
        commands["elsewhere"].triggered.connect(self.ask)
        commands["simulated"].triggered.connect(self._on_simulated)
        commands["back here"].triggered.connect(self.go_back)
        app.watch.source_changed.connect(self._on_source_changed)
        app.holds.elsewhere_wanted.connect(self.ask)
        self._on_source_changed()

    @Slot()
    def ask(self) -> None:
        """Ask for an address; whoever answers there is watched."""
        dialog = ElsewhereDialog(self._app.settings.watched, self._app.window)
        dialog.wanted.connect(self._on_wanted)
        dialog.finished.connect(self._on_finished)
        self._dialog = dialog
        dialog.open()

    @Slot()
    def go_back(self) -> None:
        """Watch this computer again."""
        if not self._app.watch.is_here:
            self._app.window.commands["measure"].trigger()

    @Slot()
    def _on_finished(self) -> None:
        self._meeting.cancel()
        if self._dialog is not None:
            self._dialog.deleteLater()
            self._dialog = None

    @Slot(str, object)
    def _on_wanted(self, typed: str, machine: str | None) -> None:
        app, dialog = self._app, self._dialog
        if dialog is None:
            return
        dialog.show_asking()

        def job(token: CancelToken) -> tuple[Met, str | None]:
            return meet(typed, token, lambda: app.hub.offline, machine), machine

        self._meeting.submit(job)

    @Slot(object)
    def _on_met(self, result: tuple[Met, str | None]) -> None:
        met, machine = result
        if met.machines and self._dialog is not None:
            self._dialog.show_machines(met.machines)
            return
        if met.sampler is None or met.first is None:
            self._leave_dialog()
            self._ask_runtime(met)
            return
        place = f"{machine}, {met.address.shown}" if machine else met.address.shown
        host = machine or met.address.host
        if self._turn(Elsewhere(place, met.sampler, met.first, host)):
            self._leave_dialog()
            self._remember(str(met.address))

    def _leave_dialog(self) -> None:
        if self._dialog is not None:
            self._dialog.accept()

    def _ask_runtime(self, met: Met) -> None:
        """A runtime's page states no device's memory: it belongs under What holds it."""
        app = self._app
        app.seeing.add(met.address)
        app.view.tabs.open_page(app.holds)
        told = tr("{runtime} at {place} is listed under What holds it")
        more = tr(
            "Its page tells of its pool and its requests, and not what its devices hold: for "
            "that, watch the exporter of its machine."
        )
        app.filing.tell(told.format(runtime=met.runtime, place=met.address.shown), more)

    @Slot(object)
    def _on_failed(self, error: BaseException) -> None:
        if self._dialog is not None:
            self._dialog.show_trouble(sentence(error))
        else:
            self._app.trouble.report(error)

    @Slot(bool)
    def _on_simulated(self, wanted: bool) -> None:  # noqa: FBT001 - a signal's argument
        if not wanted:
            self.go_back()
            return
        sampler = simulated_sampler()
        far = Elsewhere(tr("simulated"), sampler, sampler.sample(), is_simulated=True)
        if not self._turn(far):
            self._on_source_changed()

    def _turn(self, far: Elsewhere) -> bool:
        """Watch ``far`` and plan for it; whether that could be."""
        app = self._app
        try:
            app.watch.watch_elsewhere(far)
        except PlimsollError as error:
            far.sampler.close()
            self._on_failed(error)
            return False
        app.trouble.dismiss()
        app.welcome.hide()
        app.model.choose_device(None)
        app.desk.take_machine()
        return True

    def _remember(self, address: str) -> None:
        app = self._app
        others = (other for other in app.settings.watched if other != address)
        app.settings = app.settings.with_(watched=(address, *others)[:8])

    @Slot()
    def _on_source_changed(self) -> None:
        far, commands = self._app.watch.elsewhere, self._app.window.commands
        commands["simulated"].setChecked(far is not None and far.is_simulated)
        commands["back here"].setEnabled(not self._app.watch.is_here)
        commands["hardware"].setEnabled(self._app.watch.is_here)
        simulated = tr("Simulated machine: nothing here is measured")
        if far is None and self._app.watch.last.is_simulated:
            self.notice.tell(simulated, tr("It was recorded from a machine that isn’t there."))
        elif far is None:
            self.notice.hide()
        elif far.is_simulated:
            self.notice.tell(
                simulated,
                tr("A model is loaded, serves and is unloaded, every five minutes anew."),
            )
        else:
            self.notice.tell(
                tr("Watching {place}").format(place=far.place),
                tr("Verdict and picture are of that machine. Its programs are not told."),
            )
