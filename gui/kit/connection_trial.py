"""Test connection: one button, and how far the way to the Hub was good."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QTimer, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QScrollArea, QVBoxLayout, QWidget

from engine.source.connection import attempt
from engine.source.trail import Step, Trail
from engine.words import tr, tr_later
from gui.kit.controls import label
from gui.kit.latest import LatestOnly
from gui.kit.messages import sentence
from gui.kit.step_list import Stand, StepList

if TYPE_CHECKING:
    from engine.cancel import CancelToken
    from engine.source.hub import HubClient
    from gui.kit.tasks import TaskRunner
    from gui.kit.theme import Theme

_TITLES = {
    Step.NAME: tr_later("Name"),
    Step.PROXY: tr_later("Proxy"),
    Step.CONNECT: tr_later("Connection"),
    Step.TLS: tr_later("Encryption"),
    Step.ANSWER: tr_later("Answer"),
    Step.HUB: tr_later("The Hub"),
}
_LOOK_EVERY_MS = 100


class ConnectionTrial(QWidget):
    """Asks the Hub once, when told to, by the way that is in force then."""

    def __init__(
        self, hub: HubClient, runner: TaskRunner, theme: Theme, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._hub = hub
        self._trail: Trail | None = None
        self._asked = LatestOnly(runner, self)
        self._asked.succeeded.connect(self._on_succeeded)
        self._asked.failed.connect(self._on_failed)
        # The trail is written by a worker and looked at from here: no signal crosses threads.
        self._look = QTimer(self)
        self._look.setInterval(_LOOK_EVERY_MS)
        self._look.timeout.connect(self._show_passed)
        self.button = QPushButton()
        self.button.setObjectName("test connection")
        self.button.setAutoDefault(False)
        self.button.clicked.connect(self._on_clicked)
        self.copy = QPushButton(tr("Copy"))
        self.copy.setObjectName("copy the trial")
        self.copy.setAccessibleName(tr("Copy what the test found"))
        self.copy.setAutoDefault(False)
        self.copy.setEnabled(False)
        self.copy.clicked.connect(self._on_copy)
        self.outcome = label("", "strong", "outcome")
        self.outcome.setWordWrap(True)
        self.outcome.setText(tr("Not tested yet"))
        self.steps = StepList([tr(title) for title in _TITLES.values()], theme)
        # Before a test they would be a list of nothing.
        self.steps.hide()
        row = QHBoxLayout()
        row.setSpacing(8)
        row.addWidget(self.button)
        row.addWidget(self.outcome, 1)
        row.addWidget(self.copy)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(12)
        column.addLayout(row)
        column.addWidget(self.steps)
        self._show_busy()

    def set_theme(self, theme: Theme) -> None:
        """Take the colours of ``theme``."""
        self.steps.set_theme(theme)

    def stop(self) -> None:
        """Give up a test that goes on."""
        if self._asked.is_busy:
            self._asked.cancel()
            self._end(tr("Stopped"))

    @Slot()
    def _on_clicked(self) -> None:
        if self._asked.is_busy:
            self.stop()
            return
        hub, trail = self._hub, Trail()
        self._trail = trail

        def job(token: CancelToken) -> None:
            attempt(hub, token, trail)

        host = hub.endpoint.partition("://")[2]
        self.outcome.setText(tr("Asking {host}…").format(host=host))
        self.steps.show()
        self._asked.submit(job)
        self._look.start()
        self._show_passed()
        self._show_busy()
        self._come_into_sight()

    def _come_into_sight(self) -> None:
        around = self.parentWidget()
        while around is not None and not isinstance(around, QScrollArea):
            around = around.parentWidget()
        if around is not None:
            around.ensureWidgetVisible(self.steps)

    def _show_passed(self) -> None:
        if self._trail is None:
            return
        passed = {one.step: one for one in self._trail.passed}
        running = self._trail.next_step if self._asked.is_busy else None
        for row, step in enumerate(Step):
            one = passed.get(step)
            if one is not None:
                stand = Stand.PASSED if one.is_needed else Stand.NOT_NEEDED
                self.steps.show_step(row, stand, one.words)
            else:
                self.steps.show_step(row, Stand.RUNNING if step is running else Stand.OPEN)

    @Slot(object)
    def _on_succeeded(self, _: object) -> None:
        self._end(tr("The Hub can be reached"))

    @Slot(object)
    def _on_failed(self, error: BaseException) -> None:
        failed = self._trail.next_step if self._trail is not None else None
        step = failed or Step.HUB
        self._end(tr("It ends at: {step}").format(step=tr(_TITLES[step])))
        self.steps.show_step(list(Step).index(step), Stand.FAILED, sentence(error))

    def _end(self, outcome: str) -> None:
        self._look.stop()
        self._show_passed()
        self.outcome.setText(outcome)
        self.copy.setEnabled(True)
        self._show_busy()

    def _show_busy(self) -> None:
        self.button.setText(tr("Stop") if self._asked.is_busy else tr("Test connection"))

    @Slot()
    def _on_copy(self) -> None:
        QGuiApplication.clipboard().setText(f"{self.outcome.text()}\n{self.steps.text}")
