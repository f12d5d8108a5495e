"""The composition root: builds every object once, and is the only place where rooms meet."""

from __future__ import annotations

import logging
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from PySide6.QtCore import QLocale, QObject, Qt, QTimer, Slot
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QApplication

from engine.contract.desk import default_runtime
from engine.errors import PlimsollError, TelemetryError
from engine.source.access import Access
from engine.source.hub import HubClient
from engine.words import tr
from gui.browser.view import BrowserView
from gui.dressing import appearance
from gui.kit import crashes, fonts
from gui.kit.collector import Collector
from gui.kit.crashes import CrashLog
from gui.kit.faults import Faults
from gui.kit.focus import FocusRings
from gui.kit.icons import app_icon
from gui.kit.language import speak
from gui.kit.loader import ModelLoader
from gui.kit.messages import sentence
from gui.kit.notices import Notice, TroubleNotice
from gui.kit.opening import await_picture
from gui.kit.settings import Settings, SettingsStore
from gui.kit.tasks import TaskRunner
from gui.kit.theme import Theme, ThemeManager, palette, style_sheet
from gui.main_window import MainWindow
from gui.sizing.view import SizingView
from gui.sizing.view_model import SizingViewModel
from gui.watch import Watch

if TYPE_CHECKING:
    from argparse import Namespace

    from engine.architecture.model import Model

_log = logging.getLogger("plimsoll.gui")

_LEAVE_WITHIN_MS = 2000
"""How long leaving waits for jobs before it goes anyway."""


@dataclass(frozen=True, slots=True)
class Options:
    """How the window is started."""

    offline: bool = False
    endpoint: str | None = None
    replay: Path | None = None
    reset: bool = False
    smoke: bool = False
    safe: bool = False
    scheme: str | None = None
    settings_folder: Path | None = None
    """Where settings and the session are kept; None for the platform's folders."""
    file: Path | None = None
    """A workspace to open."""


class App(QObject):
    """Everything there is one of."""

    def __init__(
        self,
        application: QApplication,
        options: Options,
        crashes: CrashLog | None = None,
        store: SettingsStore | None = None,
        *,
        opens: bool = False,
    ) -> None:
        """With ``opens`` the window is on the screen before its commands are made."""
        super().__init__()
        self._application = application
        self._options = options
        self._dressed: Theme | None = None
        self.store = store or SettingsStore(options.settings_folder)
        self.crashes = crashes or CrashLog(None)
        self.is_safe = options.safe or self.crashes.wants_safe_start
        self.settings = Settings() if options.reset else self.store.load()
        self.keeps = not (options.smoke or self.is_safe)
        """Whether settings and session are kept; else their files stay as they are."""
        self.unread = self.store.set_aside() if self.keeps else None
        if self.is_safe:
            self.settings = self.settings.for_safe_start()
        self.faults = Faults(self)
        self.runner = TaskRunner(self)
        self.themes = ThemeManager(self)
        self.themes.ask(appearance(self.settings, options.scheme))
        self._dress(self.themes.current)
        self.hub = HubClient(options.endpoint, offline=options.offline, reach=self.settings.reach)
        self.hub.access = Access(self.hub.endpoint)
        self.loader = ModelLoader(self.runner, self, self.hub)
        self.watch = Watch(options.replay, self, asks_drivers=not self.is_safe)
        self.watch.corrections = self.settings.corrections
        self._add_rooms()
        self._add_notices()
        self._begin_collecting()
        if opens:
            self._open()
        self._add_pages()
        self._add_commands()
        self._connect()
        self._on_theme_changed(self.themes.current)

    def _add_rooms(self) -> None:
        here = self.watch.machine()
        self.model = SizingViewModel(self.runner, here, default_runtime, self)
        self.model.set_unit(self.settings.unit)
        self.model.begin_emptied(emptied=self.settings.emptied)
        self.view = SizingView(self.model, self.themes.current)
        self.browser = BrowserView(self.runner, self.hub, self.themes.current)
        self.window = MainWindow(self._application, self.browser, self.view, self._undo_actions())
        self.rings = FocusRings(self._application, self)

    def _add_notices(self) -> None:
        self.trouble = TroubleNotice()
        self.welcome = Notice("welcome", "monitor-check", "accent")
        self.note = Notice("note", "check", "fits")
        for notice in (self.trouble, self.note, self.welcome):
            self.view.add_notice(notice)

    def _begin_collecting(self) -> None:
        self.collector = Collector(self)
        # By then the catalogue has been read, and stays.
        self.browser.model.settled.connect(
            self.collector.settle, Qt.ConnectionType.SingleShotConnection
        )

    def _open(self) -> None:
        """Put the window on the screen as it will be, and let it be drawn."""
        for part in (self.view, self.browser, self.window):
            part.set_theme(self.themes.current)
        self._restore()
        self.window.show()
        await_picture(self.window)

    def _restore(self) -> None:
        self.window.restore(self.settings.geometry, self.settings.splitters)
        self._on_narrow_changed()
        self.view.fold_tabs(folded=self.settings.tabs_folded)

    def _add_pages(self) -> None:
        from gui import acts  # noqa: PLC0415 - a third of all modules, after the first picture

        self.compare = acts.CompareViewModel(self.runner, self.model.state.here, self)
        self.compare_view = acts.CompareView(self.compare)
        self.view.tabs.add_page(tr("Compare"), self.compare_view, alone=True)
        self.holds = acts.HoldsView()
        self.view.tabs.add_page(tr("What holds it"), self.holds)

    def _add_commands(self) -> None:
        from gui import acts  # noqa: PLC0415 - as above

        # The window before what lies in it: a style sheet takes back the fonts it finds.
        self.themes.changed.connect(self._on_theme_changed)
        self.preferring = acts.Preferring(self)
        # Before the desk: a sample's overlay is there when the picture takes the sample.
        self.overlaying = acts.Overlaying(self)
        self.checking = acts.Checking(self)
        self.dressing = acts.Dressing(self)
        self.keying = acts.Keying(self)
        self.settling = acts.Settling(self)
        self.comparing = acts.Comparing(self)
        self.launching = acts.Launching(self)
        self.filing = acts.Filing(self)
        self.playing = acts.Playing(self)
        self.charting = acts.Charting(self)
        self.alerting = acts.Alerting(self)
        self.compact = acts.Compact(self)
        self.desk = acts.Desk(self)
        self.verifying = acts.Verifying(self)
        self.access = acts.HubAccess(self)
        self.networking = acts.Networking(self, self._options.endpoint or "")
        self.replacing = acts.Replacing(self)
        self.expanding = acts.Expanding(self)
        self.shelving = acts.Shelving(self)
        self.simplifying = acts.Simplifying(self)
        self.adjoining = acts.Adjoining(self)
        self.crashing = acts.Crashing(self)
        self.diagnosing = acts.Diagnosing(self)
        self.learning = acts.Learning(self, self._options.settings_folder)
        self.workspaces = acts.Workspaces(self)
        self.saving = acts.Saving(self, self.workspaces)
        self.session = acts.Session(self, self._options.settings_folder)
        self.correcting = acts.Correcting(self)
        self.announcing = acts.Announcing(self)
        self.seeing = acts.Seeing(self)
        self.elsewhere = acts.GoingElsewhere(self)
        self.overlaying.follow_runtimes()
        self.checking.follow()

    def _undo_actions(self) -> tuple[QAction, QAction]:
        stack = self.model.undo_stack
        undo, redo = stack.createUndoAction(self), stack.createRedoAction(self)
        undo.setShortcut("Ctrl+Z")
        redo.setShortcuts([QKeySequence("Ctrl+Y"), QKeySequence("Ctrl+Shift+Z")])
        return undo, redo

    def _connect(self) -> None:
        self.faults.happened.connect(self.trouble.report)
        self.loader.loaded.connect(self._on_loaded)
        self.session.ready.connect(self._on_ready)
        self.loader.busy_changed.connect(self.window.progress.set_busy)
        self.browser.chosen.connect(self.desk.on_chosen)
        self.model.changed.connect(self.desk.on_state_changed)
        self.watch.sampled.connect(self.desk.on_sampled)
        self.watch.failed.connect(self.trouble.report)
        self.window.dropped.connect(self.desk.on_dropped)
        self.window.narrow_changed.connect(self._on_narrow_changed)
        self.window.closing.connect(self.close)

    def start(self) -> None:
        """Show the window, then begin to sample and load the worked example."""
        self.faults.install()
        self.desk.offer_devices()
        if not self.window.isVisible():
            self._restore()
        self.shelving.restore()
        self.desk.on_state_changed(self.model.state)
        self.desk.welcome()
        self.window.show()
        self.view.setFocus()
        if not self.is_safe:
            self.watch.start()
            self.learning.begin()
            self.seeing.start()
            self.playing.begin()
            self.compact.restore()
        self.crashing.begin()
        if not self.keeps:
            self._on_ready(restored=False)
        elif self._options.reset:
            self.session.begin_anew()
        else:
            self.session.restore()

    @Slot(bool)
    def _on_ready(self, restored: bool) -> None:  # noqa: FBT001 - a signal's argument
        """Begin with the last session, or the worked example; then open what was asked for."""
        if not restored and self.model.state.model is None and not self.loader.is_busy:
            from gui import example  # noqa: PLC0415 - only where nothing else is shown

            here = self.model.state.here
            self.loader.load(lambda token: example.fetch(here, token))
        if self._options.file is not None:
            self.workspaces.open(self._options.file)
        self.crashing.await_rest()

    def close(self) -> None:
        """Leave in order: no new work, no sampling, the pool at rest, settings written."""
        self.loader.cancel()
        self.seeing.stop()
        self.watch.stop()
        if not self.runner.shutdown(_LEAVE_WITHIN_MS):
            _log.warning("jobs were still running when the window closed")
        self.saving.close()
        if self.keeps:
            self.session.close()
            self.store.save(self.desk.settings_now())
        self.compact.close()
        self.model.close()
        self.collector.close()
        self.faults.remove()

    @Slot(object)
    def _on_loaded(self, model: Model) -> None:
        if not self.workspaces.receive(model):
            self.model.load(model)
        self.launching.on_loaded(model)
        self.browser.model.note_opened()

    def _on_narrow_changed(self) -> None:
        self.view.set_low(low=self.window.is_narrow)

    def _dress(self, theme: Theme) -> None:
        # Before any widget is made: a style sheet keeps the font a label was born with.
        self._application.setFont(theme.font("body"))
        self._application.setPalette(palette(theme))
        self._application.setStyleSheet(style_sheet(theme))
        self._dressed = theme

    def _on_theme_changed(self, theme: Theme) -> None:
        if theme is not self._dressed:
            self._dress(theme)
        for part in (self.view, self.browser, self.compare_view, self.holds, self.window):
            part.set_theme(theme)
        for notice in (self.trouble, self.note, self.welcome):
            notice.set_theme(theme)


def run(arguments: Namespace) -> int:
    """Open the window and stay until it is closed.

    Args:
        arguments: ``offline``, ``endpoint``, ``replay``, ``reset``, ``safe``, ``smoke``, ``file``.

    Returns:
        The exit status.
    """
    _give_streams()
    replay = cast("str | None", arguments.replay)
    file = cast("str | None", arguments.file)
    options = Options(
        offline=bool(arguments.offline),
        endpoint=cast("str | None", arguments.endpoint),
        replay=Path(replay) if replay else None,
        reset=bool(arguments.reset),
        safe=bool(arguments.safe),
        smoke=bool(arguments.smoke),
        file=Path(file).absolute() if file else None,
    )
    if options.smoke:
        return _stay(options, CrashLog(None))
    log = CrashLog(crashes.default_folder())
    log.begin()
    try:
        return _stay(options, log)
    except PlimsollError:
        log.end()
        raise
    except Exception as error:  # noqa: BLE001 - whatever it is, it is kept and said
        kept = log.end(error)
        where = f" It is written down in {kept}." if kept else ""
        sys.stderr.write(f"plimsoll: {sentence(error)}{where}\n")
        return 70
    except BaseException:
        log.end()
        raise


def _stay(options: Options, log: CrashLog) -> int:
    application = make_application(sys.argv[:1])
    store = SettingsStore(options.settings_folder)
    speak(application, "" if options.reset else store.load().language)
    try:
        app = App(application, options, log, store, opens=True)
    except TelemetryError as error:
        log.end()
        sys.stderr.write(f"plimsoll: {error.message}\n")
        return 2
    app.start()
    if options.smoke:
        from gui.smoke import Smoke  # noqa: PLC0415 - only where the build is tested

        smoke = Smoke(app)
        QTimer.singleShot(0, smoke, smoke.begin)
        application.exec()
        return smoke.status
    status = application.exec()
    # What Qt may stumble over while all is taken down costs nobody anything.
    log.end()
    return status


def make_application(arguments: list[str]) -> QApplication:
    """The Qt application of the program."""
    application = QApplication(arguments)
    dress_application(application)
    return application


def dress_application(application: QApplication) -> None:
    """Give the application the house's style, fonts, language and names."""
    QLocale.setDefault(QLocale(QLocale.Language.English, QLocale.Country.UnitedStates))
    application.setApplicationName("Plimsoll")
    application.setDesktopFileName("plimsoll")
    if sys.platform.startswith("linux"):
        application.setStyle("Fusion")
    application.setWindowIcon(app_icon())
    application.setAttribute(Qt.ApplicationAttribute.AA_DontShowIconsInMenus)
    fonts.load()


def _give_streams() -> None:
    """A windowed program has no standard streams, and libraries that print would raise."""
    if sys.stdout is None or sys.stderr is None:  # pyright: ignore[reportUnnecessaryComparison]  # None in a windowed bundle
        nowhere = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - as long as the program
        sys.stdout = sys.stdout or nowhere
        sys.stderr = sys.stderr or nowhere
