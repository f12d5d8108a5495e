"""What the window says of an earlier start that ended badly, and of a safe start."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QDateTime, QLocale, QObject, QTimer, QUrl
from PySide6.QtGui import QDesktopServices, QGuiApplication

from engine.words import grouped, tr, tr_count
from gui.kit.notices import Notice

if TYPE_CHECKING:
    from gui.app import App
    from gui.kit.crashes import CrashReport

_LOOK_MS = 200


class Crashing(QObject):
    """Tells once of what an earlier start left, and notes when this one has come to rest."""

    def __init__(self, app: App) -> None:
        super().__init__(app)
        self._app = app
        self._reports: tuple[CrashReport, ...] = app.crashes.untold()
        self.notice = self._made(Notice("crash", "triangle-alert", "tight"))
        self.notice.add_button(tr("Copy report")).clicked.connect(self._on_copy)
        self.notice.add_button(tr("Show file")).clicked.connect(self._on_show)
        self.notice.add_button(tr("Delete")).clicked.connect(self._on_delete)
        self.safe_notice = self._made(Notice("safe", "info", "accent"))
        self._aside = self.safe_notice.add_button(tr("Set the last session aside"))
        self._aside.clicked.connect(self._on_set_aside)
        self.has_rested = False
        """Whether the window stands, with all that was to lie on the desk worked out."""
        app.faults.happened.connect(app.crashes.note)
        self._look = QTimer(self)
        self._look.setInterval(_LOOK_MS)
        self._look.timeout.connect(self._on_look)

    def _made(self, notice: Notice) -> Notice:
        self._app.view.add_notice(notice)
        self._app.themes.changed.connect(notice.set_theme)
        notice.set_theme(self._app.themes.current)
        return notice

    def begin(self) -> None:
        """Say what there is to say, once the window is shown."""
        if self._reports:
            self._tell_reports()
        if self._app.is_safe:
            self._app.window.commands["record"].setEnabled(False)
            self._tell_safe()

    def await_rest(self) -> None:
        """Note once what is on the desk has been worked out: until then it may be what kills."""
        self._look.start()

    def _tell_reports(self) -> None:
        at = QDateTime.fromSecsSinceEpoch(int(self._reports[0].at.timestamp()))
        when = QLocale().toString(at, QLocale.FormatType.ShortFormat)
        line = tr("Plimsoll closed unexpectedly on {when}").format(when=when)
        before = len(self._reports) - 1
        if before:
            line = tr_count(
                "Plimsoll closed unexpectedly on {when}, and {count} time before",
                "Plimsoll closed unexpectedly on {when}, and {count} times before",
                before,
            ).format(when=when, count=grouped(before))
        self.notice.tell(
            line,
            tr(
                "What it was doing is kept in a file on this computer, without names, home "
                "folders and tokens. Nothing has been sent."
            ),
        )

    def _tell_safe(self) -> None:
        line = tr("Safe mode")
        if self._app.crashes.wants_safe_start:
            line = tr("Safe mode, since the last starts ended before the window was ready")
        self._aside.setVisible(self._app.crashes.wants_safe_start)
        self.safe_notice.tell(
            line,
            tr(
                "Your settings and last session are kept but not used, and neither graphics "
                "driver nor memory is sampled. What you change now isn’t remembered. To go back, "
                "close Plimsoll and start it again."
            ),
        )

    def _on_set_aside(self) -> None:
        """Let the next start be one without what may have ended the last."""
        aside = self._app.session.set_aside()
        self._aside.hide()
        if aside is not None:
            words = tr("The last session is kept as {path}, and the next start begins without it")
            self._app.filing.tell(words.format(path=aside))

    def _on_look(self) -> None:
        app = self._app
        is_busy = app.loader.is_busy or app.workspaces.is_opening
        if app.model.is_settled and app.compare.is_settled and not is_busy:
            self._look.stop()
            self.has_rested = True
            app.crashes.came_to_rest()

    def _on_copy(self) -> None:
        QGuiApplication.clipboard().setText("\n\n".join(r.text() for r in self._reports))

    def _on_show(self) -> None:
        QDesktopServices.openUrl(QUrl.fromLocalFile(str(self._reports[0].path)))

    def _on_delete(self) -> None:
        for report in self._reports:
            self._app.crashes.delete(report)
        self._reports = ()
        self.notice.dismiss()
