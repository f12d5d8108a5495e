"""Send a bounded load to a runtime of this computer, so that its peaks can be seen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import (
    QCheckBox,
    QDialog,
    QFormLayout,
    QLineEdit,
    QProgressBar,
    QVBoxLayout,
    QWidget,
)
from typing_extensions import override

from engine.errors import PlimsollError
from engine.seen.load_driver import LIMITS, Ended, Load, Outcome
from engine.telemetry.address import parsed
from engine.telemetry.snapshot import Missing
from engine.units import parse_tokens
from engine.words import figures, tr, tr_count, tr_later
from gui.kit import format as fmt
from gui.kit.controls import label, running_text, set_role
from gui.kit.dialogs import closing_row, leave_button, primary_button
from gui.kit.fields import NumberField, NumberKind, double_or_halve, parse_count
from gui.kit.messages import sentence

if TYPE_CHECKING:
    from engine.seen.load_driver import Driven, Request

_KINDS = {
    "prompt_tokens": (tr_later("Tokens of each prompt"), parse_tokens, double_or_halve),
    "output_tokens": (tr_later("Tokens of each answer"), parse_tokens, double_or_halve),
    "requests": (tr_later("Requests in all"), parse_count, int.__add__),
    "concurrency": (tr_later("At once"), parse_count, int.__add__),
    "give_up_every": (tr_later("Give up every … request (0: none)"), parse_count, int.__add__),
    "pause_s": (tr_later("Seconds between bursts"), parse_count, int.__add__),
    "limit_s": (tr_later("End after, seconds"), parse_count, int.__add__),
}
_ENDED = {
    Ended.ALL_SENT: tr_later("All sent"),
    Ended.TIME: tr_later("Its time was over"),
    Ended.BY_USER: tr_later("Stopped"),
    Ended.FAILURES: tr_later("Ended after three refusals"),
}


class LoadDialog(QDialog):
    """Asks what to send; ``start_wanted`` and ``stop_wanted`` are for whoever sends it."""

    start_wanted = Signal(object, str, object, str)
    """``Address``, the model's name, the ``Load``, and the key (empty for none)."""
    stop_wanted = Signal()

    def __init__(self, address: str, model: str, load: Load, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("load")
        self.setWindowTitle(tr("Send a load"))
        self.setMinimumWidth(460)
        self.address = QLineEdit(address)
        self.address.setObjectName("load address")
        self.model = QLineEdit(model)
        self.model.setObjectName("load model")
        self.key = QLineEdit()
        self.key.setObjectName("load key")
        self.key.setEchoMode(QLineEdit.EchoMode.Password)
        self.key.setPlaceholderText(tr("none; used once and not kept"))
        self.fields = {name: _field(name, getattr(load, name)) for name in _KINDS}
        self.bursts = QCheckBox(tr("In bursts: all at once begin together"))
        self.bursts.setObjectName("load bursts")
        self.bursts.setChecked(load.in_bursts)
        self.progress = QProgressBar()
        self.progress.setAccessibleName(tr("Requests sent"))
        self.progress.setTextVisible(False)
        self.progress.hide()
        self.said = running_text("small")
        self.said.setObjectName("load said")
        self.start = primary_button(tr("Start"))
        self.stop = leave_button(self, tr("Stop"))
        self.stop.setObjectName("load stop")
        self.stop.clicked.disconnect()
        self.leave = leave_button(self, tr("Close"))
        self._requests: list[Request] = []
        self._is_running = False
        self._build()
        self.show_running(running=False)

    def _build(self) -> None:
        purpose = running_text("small")
        purpose.setText(
            tr(
                "Requests go to a runtime of this computer alone. It ends by itself: after "
                "its requests, after its time, or after three refusals in a row."
            )
        )
        form = QFormLayout()
        form.setHorizontalSpacing(16)
        form.setVerticalSpacing(8)
        form.addRow(tr("Address"), self.address)
        form.addRow(tr("Model, as the runtime calls it"), self.model)
        form.addRow(tr("Its API key"), self.key)
        for name, field in self.fields.items():
            form.addRow(tr(_KINDS[name][0]), field)
            field.refused.connect(self._on_refused)
        form.addRow("", self.bursts)
        column = QVBoxLayout(self)
        column.setContentsMargins(24, 20, 24, 16)
        column.setSpacing(12)
        column.addWidget(label(tr("Send a load"), "title"))
        column.addWidget(purpose)
        column.addLayout(form)
        column.addWidget(self.progress)
        self.said.setMinimumHeight(2 * self.said.fontMetrics().lineSpacing())
        column.addWidget(self.said)
        column.addStretch(1)
        column.addLayout(closing_row(self.leave, self.stop, self.start))
        self.start.clicked.connect(self._on_start)
        self.stop.clicked.connect(self.stop_wanted)

    @property
    def load(self) -> Load:
        """What is to be sent.

        Raises:
            PlimsollError: a figure is outside its limits.
        """
        sizes = {name: field.value for name, field in self.fields.items()}
        return Load(**sizes, in_bursts=self.bursts.isChecked())

    def show_running(self, *, running: bool) -> None:
        """Let only what makes sense now be pressed."""
        self._is_running = running
        for field in (self.address, self.model, self.key, self.bursts, *self.fields.values()):
            field.setEnabled(not running)
        self.start.setEnabled(not running)
        self.stop.setEnabled(running)
        self.progress.setVisible(running)
        if running:
            self._requests = []
            self.progress.setRange(0, self.fields["requests"].value)
            self.progress.setValue(0)
            self._say(tr("Sending…"))

    @Slot(object)
    def show_request(self, request: Request) -> None:
        """A request has ended."""
        self._requests.append(request)
        self.progress.setValue(len(self._requests))
        self._say(_counted(self._requests))

    def show_driven(self, driven: Driven) -> None:
        """The load is over."""
        self.show_running(running=False)
        words = tr("{ended} after {seconds} s: {requests}").format(
            ended=tr(_ENDED[driven.ended]),
            seconds=figures(f"{driven.took_s:.0f}"),
            requests=_counted(driven.requests),
        )
        why = next((r.why for r in driven.requests if r.why), "")
        longest = longest_prompt(driven)
        told = tr("Its longest prompt had {tokens} tokens.").format(tokens=fmt.count(longest or 0))
        self._say(" ".join(filter(None, (words, why, told if longest else ""))))

    def show_stopped(self) -> None:
        """The load was stopped; what was sent until then stands here."""
        self.show_running(running=False)
        stopped = tr("{ended}.").format(ended=tr(_ENDED[Ended.BY_USER]))
        self._say(" ".join(filter(None, (stopped, _counted(self._requests)))))

    def show_error(self, error: Exception) -> None:
        """The load could not be sent."""
        self.show_running(running=False)
        self._say(sentence(error), wrong=True)

    @override
    def reject(self) -> None:
        if self._is_running:
            self.stop_wanted.emit()
        super().reject()

    @Slot()
    def _on_start(self) -> None:
        if any(field.is_wrong for field in self.fields.values()):
            return
        try:
            address, load = parsed(self.address.text()), self.load
        except PlimsollError as error:
            self._say(error.message, wrong=True)
            return
        if not address.is_loopback:
            words = tr("A load is sent to this computer alone, and {address} is elsewhere.")
            self._say(words.format(address=address), wrong=True)
            return
        self.start_wanted.emit(address, self.model.text().strip(), load, self.key.text())

    def _on_refused(self, words: str) -> None:
        self._say(words, wrong=bool(words))

    def _say(self, words: str, *, wrong: bool = False) -> None:
        set_role(self.said, "trouble" if wrong else "small")
        self.said.setText(words)


def _field(name: str, value: float) -> NumberField:
    words, parse, step = _KINDS[name]
    least, most = LIMITS[name]
    made = NumberField(NumberKind(words, least, most, parse, step))
    made.setObjectName(f"load {name}")
    made.setAccessibleName(tr(words))
    made.set_value(round(value))
    return made


def _counted(requests: list[Request] | tuple[Request, ...]) -> str:
    """``5 requests done, 1 given up, 1 failed``."""
    words = {
        Outcome.DONE: tr("{n} done"),
        Outcome.GIVEN_UP: tr("{n} given up"),
        Outcome.STOPPED: tr("{n} stopped"),
        Outcome.FAILED: tr("{n} failed"),
    }
    counts = {outcome: sum(r.outcome is outcome for r in requests) for outcome in Outcome}
    parts = [words[outcome].format(n=n) for outcome, n in counts.items() if n]
    total = tr_count("{n} request", "{n} requests", len(requests)).format(n=len(requests))
    return tr("{total}: {parts}.").format(total=total, parts=", ".join(parts)) if parts else ""


def longest_prompt(driven: Driven) -> int | None:
    """Tokens of the longest prompt that the runtime counted; None where it counted none."""
    counted = [r.prompt_tokens for r in driven.requests if not isinstance(r.prompt_tokens, Missing)]
    return max(counted, default=None)
