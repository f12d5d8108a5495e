"""The token for the Hub: whose it is, where it is kept, and how to give one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtCore import QUrl, Signal, Slot
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import (
    QLineEdit,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from engine.source.access import Access, Origin
from engine.words import tr, tr_later
from gui.kit.controls import label, running_text, set_role
from gui.kit.dialogs import GrowingDialog, closing_row, leave_button, primary_button
from gui.kit.latest import LatestOnly
from gui.kit.messages import sentence
from gui.kit.progress import ProgressLine

if TYPE_CHECKING:
    from engine.cancel import CancelToken
    from engine.source.hub import HubClient
    from gui.kit.tasks import TaskRunner

_PURPOSE = tr_later(
    "Some publishers let only those read their files who have accepted their terms. With a token "
    "that may read, their models are sized like all others. It is sent to {host} alone."
)
_KEPT = {
    Origin.NONE: tr_later("No token is kept."),
    Origin.KEYRING: tr_later("A token is kept in this computer’s keyring."),
    Origin.SESSION: tr_later(
        "A token is kept until Plimsoll is closed: this system has no keyring for it."
    ),
    Origin.LOGIN: tr_later("The token of your login with the Hub’s own tools is used."),
}

_WIDTH = 520


@dataclass(frozen=True, slots=True)
class _Tried:
    origin: Origin
    name: str = ""
    reads_only: bool = True


class AccessDialog(GrowingDialog):
    """Opened with ``open()``; every question to keyring or Hub is asked by a worker."""

    granted = Signal()
    """A token that works was given."""

    def __init__(self, hub: HubClient, runner: TaskRunner, page: str, parent: QWidget) -> None:
        """``page`` is the address of the gated model's terms, if there is one."""
        super().__init__(parent, _WIDTH)
        self.setObjectName("access dialog")
        self.setWindowTitle(tr("Access to the Hub"))
        self._hub = hub
        self._page = page
        self._asked = LatestOnly(runner, self)
        self._asked.succeeded.connect(self._on_answered)
        self._asked.failed.connect(self._on_refused)
        self.field = QLineEdit()
        self.field.setObjectName("token")
        self.field.setAccessibleName(tr("Token with read access"))
        self.field.setPlaceholderText("hf_…")
        self.field.setEchoMode(QLineEdit.EchoMode.Password)
        self.status = running_text("small")
        self.status.setObjectName("access status")
        self.keep = primary_button(tr("Test and keep"))
        self.forget = QPushButton(tr("Forget the token"))
        self._progress = ProgressLine()
        self._asked.busy_changed.connect(self._progress.set_busy)
        self._build()
        self.field.textChanged.connect(self._on_typed)
        self.keep.clicked.connect(self._on_keep)
        self.forget.clicked.connect(self._on_forget)
        self._on_typed("")
        self._ask_state()

    def _build(self) -> None:
        host = self._hub.endpoint.partition("://")[2]
        purpose = running_text("small")
        purpose.setText(tr(_PURPOSE).format(host=host))
        links = [self._link(tr("Make a token"), f"{self._hub.endpoint}/settings/tokens")]
        if self._page:
            links.insert(0, self._link(tr("Open terms"), self._page))
        steps = closing_row(first=tuple(links))
        leave = leave_button(self, tr("Close"))
        self.forget.setAutoDefault(False)
        buttons = closing_row(leave, self.keep, first=(self.forget,))
        self.status.setMinimumHeight(2 * self.status.fontMetrics().lineSpacing())
        column = QVBoxLayout()
        column.addWidget(label(tr("Access to the Hub"), "title"))
        column.addWidget(purpose)
        column.addLayout(steps)
        column.addWidget(label(tr("Token with read access"), "caption"))
        column.addWidget(self.field)
        column.addWidget(self._progress)
        column.addWidget(self.status)
        column.addStretch(1)
        self.lay_out(column, buttons)

    def _link(self, text: str, address: str) -> QPushButton:
        button = QPushButton(text)
        button.setAutoDefault(False)
        button.setToolTip(address)
        button.clicked.connect(lambda: QDesktopServices.openUrl(QUrl(address)))
        return button

    def _ask_state(self) -> None:
        access = self._hub.access

        def look(_: CancelToken) -> _Tried:
            return _Tried(access.origin if access else Origin.NONE)

        self._asked.submit(look)

    def _on_keep(self) -> None:
        text, hub, access = self.field.text(), self._hub, self._hub.access
        if access is None:
            return

        def attempt(token: CancelToken) -> _Tried:
            name, reads_only = hub.asked_as(Access.only(text)).whoami(token)
            token.raise_if_cancelled()
            return _Tried(access.keep(text), name, reads_only)

        self._asked.submit(attempt)

    def _on_forget(self) -> None:
        access = self._hub.access
        if access is None:
            return

        def drop(_: CancelToken) -> _Tried:
            access.forget()
            return _Tried(access.origin)

        self._asked.submit(drop)

    @Slot(object)
    def _on_answered(self, found: _Tried) -> None:
        words = [tr(_KEPT[found.origin])]
        if found.name:
            words.insert(0, tr("It is {name}’s.").format(name=found.name))
        if not found.reads_only:
            words.append(tr("It may also write: a token with read access would be enough."))
        self._say(" ".join(words), wrong=False)
        self.forget.setEnabled(found.origin in (Origin.KEYRING, Origin.SESSION))
        if found.name:
            self.field.clear()
            self.granted.emit()

    @Slot(object)
    def _on_refused(self, error: BaseException) -> None:
        self._say(sentence(error), wrong=True)

    def _on_typed(self, text: str) -> None:
        self.keep.setEnabled(bool(text.strip()))

    def _say(self, text: str, *, wrong: bool) -> None:
        set_role(self.status, "trouble" if wrong else "small")
        self.status.setText(text)
