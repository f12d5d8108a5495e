"""Settings, Network: off-line, proxy, certificates, mirror, and a test of all that."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from PySide6.QtCore import Signal, Slot
from PySide6.QtGui import QFontMetrics
from PySide6.QtWidgets import (
    QCheckBox,
    QFileDialog,
    QHBoxLayout,
    QLineEdit,
    QPushButton,
    QWidget,
)

from engine.errors import UsageError
from engine.source.access import DEFAULT_ENDPOINT
from engine.source.reach import ProxyChoice, Reach, mirror_of_environment
from engine.words import tr
from gui.kit.connection_trial import ConnectionTrial
from gui.kit.controls import Choice, Hairline, label
from gui.kit.messages import sentence
from gui.kit.setting_rows import SettingRows

if TYPE_CHECKING:
    from engine.source.hub import HubClient
    from gui.kit.tasks import TaskRunner
    from gui.kit.theme import Theme

_FIELD_LETTERS = 34
_LONGEST = 500


class NetworkPage(SettingRows):
    """Tells what was set; what holds is told it with ``show_values``."""

    reach_changed = Signal(object)
    """A ``Reach`` that can be one."""
    offline_picked = Signal(bool)

    def __init__(
        self, hub: HubClient, runner: TaskRunner, theme: Theme, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._reach = Reach()
        self.offline = QCheckBox(tr("Stay off-line"))
        self.offline.setObjectName("stay off-line")
        self.proxy = Choice("proxy")
        self.address = self._field("proxy address", "proxy.example.com:8080")
        self.no_proxy = self._field("no proxy for", ".example.com, 10.0.0.0/8")
        self.ca_file = self._field("certificates", "")
        self.mirror = self._field("mirror", mirror_of_environment() or DEFAULT_ENDPOINT)
        self._choose = QPushButton(tr("Choose…"))
        self._choose.setObjectName("choose certificates")
        self._choose.setAccessibleName(tr("Choose a file of certificates"))
        self._choose.setAutoDefault(False)
        self._choose.clicked.connect(self._on_choose)
        self.refusal = label("", "trouble", "refusal")
        self.refusal.setWordWrap(True)
        self.refusal.hide()
        self.trial = ConnectionTrial(hub, runner, theme)
        self._lay_out()
        self.set_theme(theme)
        self.proxy.picked.connect(self._on_proxy)
        self.offline.clicked.connect(self.offline_picked)

    def _field(self, name: str, hint: str) -> QLineEdit:
        made = QLineEdit()
        made.setObjectName(name)
        made.setPlaceholderText(hint)
        made.setMaxLength(_LONGEST)
        made.editingFinished.connect(self._on_edited)
        return made

    def _lay_out(self) -> None:
        self.add(
            tr("Off-line"),
            tr("Nothing is asked of the Hub. The catalogue and your own models still work."),
            self.offline,
        )
        self.add(tr("Proxy"), "", self.proxy)
        self.add(tr("Proxy’s address"), "", self.address)
        self.add(
            tr("Not through the proxy"), tr("Hosts, domains and networks, as in no_proxy."),
            self.no_proxy,
        )  # fmt: skip
        self._both = QWidget()
        row = QHBoxLayout(self._both)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(8)
        row.addWidget(self.ca_file, 1)
        row.addWidget(self._choose)
        self.add(
            tr("Certificates"),
            tr("A file to trust beside what this computer trusts, as companies have one."),
            self._both,
        )
        self.ca_file.setAccessibleName(tr("Certificates"))
        self.add(tr("Mirror"), tr("Another Hub to ask. Its token is its own."), self.mirror)
        self.add_wide(self.refusal)
        self.add_wide(Hairline())
        self.add_wide(self.trial)

    def show_values(self, reach: Reach, *, offline: bool, pinned: str = "") -> None:
        """Show what holds now.

        Args:
            reach: the way to the Hub.
            offline: whether it is not asked at all.
            pinned: the Hub that was named at the start, if one was; no mirror changes that.
        """
        self._reach = reach
        choices = (
            (tr("As this computer is set"), ProxyChoice.SYSTEM),
            (tr("As the environment says"), ProxyChoice.ENVIRONMENT),
            (tr("By its address"), ProxyChoice.MANUAL),
            (tr("None"), ProxyChoice.NONE),
        )
        self.proxy.offer(choices, reach.proxy)
        for field, text in (
            (self.address, reach.address.removeprefix("http://")),
            (self.no_proxy, reach.no_proxy),
            (self.ca_file, reach.ca_file),
            (self.mirror, pinned or reach.mirror),
        ):
            field.setText(text)
        self.mirror.setEnabled(not pinned)
        self.mirror.setToolTip(tr("Named at the start by --endpoint") if pinned else "")
        self._show_manual(by_hand=reach.proxy is ProxyChoice.MANUAL)
        self._refuse("")
        self.show_offline(offline=offline)

    def show_offline(self, *, offline: bool) -> None:
        """Show whether the Hub is not asked at all."""
        self.offline.setChecked(offline)

    def set_theme(self, theme: Theme) -> None:
        """Take colours and text size of ``theme``."""
        self.trial.set_theme(theme)
        letter = QFontMetrics(theme.font("body")).averageCharWidth()
        for field in (self.address, self.no_proxy, self._both, self.mirror):
            field.setFixedWidth(letter * _FIELD_LETTERS)

    def _refuse(self, words: str) -> None:
        self.refusal.setText(words)
        self.refusal.setVisible(bool(words))

    def _show_manual(self, *, by_hand: bool) -> None:
        self.address.setEnabled(by_hand)
        self.no_proxy.setEnabled(by_hand)

    @Slot(object)
    def _on_proxy(self, choice: ProxyChoice) -> None:
        by_hand = choice is ProxyChoice.MANUAL
        self._show_manual(by_hand=by_hand)
        if by_hand and not self.address.text().strip():
            # Not a mistake yet: the next thing to do.
            self.address.setFocus()
            return
        self._take(choice)

    @Slot()
    def _on_edited(self) -> None:
        self._take(list(ProxyChoice)[self.proxy.currentIndex()])

    def _take(self, choice: ProxyChoice) -> None:
        """Tell of the fields as they are, or say what can't be meant; that one is not told."""
        found = replace(
            self._reach,
            proxy=choice,
            address=self.address.text(),
            no_proxy=self.no_proxy.text().strip(),
            ca_file=self.ca_file.text(),
            mirror=self.mirror.text() if self.mirror.isEnabled() else self._reach.mirror,
        )
        try:
            found = found.checked()
        except UsageError as error:
            self._refuse(sentence(error))
            return
        self._refuse("")
        if found != self._reach:
            self._reach = found
            self.reach_changed.emit(found)

    @Slot()
    def _on_choose(self) -> None:
        filters = tr("Certificates (*.pem *.crt *.cer *.der);;All files (*)")
        dialog = QFileDialog(self, tr("Certificates to trust"), self.ca_file.text(), filters)
        dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
        dialog.fileSelected.connect(self._on_chosen)
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()

    @Slot(str)
    def _on_chosen(self, name: str) -> None:
        self.ca_file.setText(name)
        self._on_edited()
