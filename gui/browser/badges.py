"""Fit badges, worked out by the engine in slices so short that the window never waits.

On the GUI thread on purpose: a worker would hold the interpreter's lock just when a row is
to be painted, for some milliseconds at each of its callbacks.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from PySide6.QtCore import QElapsedTimer, QObject, QTimer, Signal

from engine.budget.weights import WeightLayout, weights
from engine.errors import PlimsollError
from engine.fit.verdict import Fit
from engine.runtimes import registry
from engine.sizing import size
from engine.words import tr
from gui.browser.rows import Badge
from gui.kit.format import count, tokens_short
from gui.kit.format import size as format_size
from gui.kit.messages import sentence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.architecture.model import Model
    from engine.architecture.spec import ArchitectureSpec
    from engine.deployment.spec import Deployment
    from engine.devices.device import Machine
    from gui.browser.rows import Row

_log = logging.getLogger("plimsoll.gui")

SLICE_MS = 8
"""Half a frame; the longest single sizing comes on top of it."""
REST_MS = 200
"""How often the list may change while badges are worked out; more often is a flicker."""
_AS_STORED = WeightLayout(with_mtp=True)
_GGUF_RUNTIME = "llama.cpp"
_ALL_ON_GPU = {"vllm", "transformers"}
"""Runtimes that put no weights elsewhere by themselves."""


class BadgeQueue(QObject):
    """Works through rows while the window is idle; a new plan starts it over."""

    ready = Signal(object)
    """``dict`` of badges by row key, those of one slice."""
    finished = Signal()
    rested = Signal()
    """Sent every ``REST_MS`` while more is to come."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._waiting: list[Row] = []
        self._plan: tuple[Deployment, Machine] | None = None
        self._alike = Alike()
        self._since_rest = QElapsedTimer()
        self._timer = QTimer(self)
        self._timer.setInterval(0)
        self._timer.timeout.connect(self._work)

    @property
    def is_busy(self) -> bool:
        """Whether badges are still to come."""
        return self._timer.isActive()

    def start(self, rows: Sequence[Row], deployment: Deployment, machine: Machine) -> None:
        """Work out ``rows`` in their order; what was waiting is dropped."""
        self._waiting = list(reversed(rows))
        self._plan = (deployment, machine)
        self._alike = Alike()
        self._since_rest.start()
        self._timer.start()

    def add(self, rows: Sequence[Row]) -> None:
        """Work out ``rows`` too, after those that wait."""
        if self._plan is not None:
            self._waiting = [*reversed(rows), *self._waiting]
            self._since_rest.start()
            self._timer.start()

    def stop(self) -> None:
        """Drop everything."""
        self._waiting = []
        self._timer.stop()

    def _work(self) -> None:
        clock = QElapsedTimer()
        clock.start()
        made: dict[str, Badge] = {}
        while self._waiting and self._plan is not None and clock.elapsed() < SLICE_MS:
            row = self._waiting.pop()
            made[row.key] = badge_for(row, *self._plan, self._alike)
        is_last = not self._waiting
        if is_last:
            self._timer.stop()
        if made:
            self.ready.emit(made)
        if is_last:
            self.finished.emit()
        elif self._since_rest.elapsed() >= REST_MS:
            self._since_rest.start()
            self.rested.emit()


class Alike:
    """Badges of one plan by architecture: many models are another's with other weights.

    A model of which no header was read is sized by its spec and its config alone; equal configs
    have the very same spec (``engine.architecture.memory``).
    """

    def __init__(self) -> None:
        self._badges: dict[ArchitectureSpec, tuple[Model, Badge]] = {}

    def find(self, model: Model) -> Badge | None:
        """The badge of a model that is sized like ``model``; None where none was yet."""
        like, badge = self._badges.get(model.spec, (None, None))
        is_same = like is not None and _is_known_by_config(model) and like.config == model.config
        return badge if is_same else None

    def keep(self, model: Model, badge: Badge) -> Badge:
        """``badge``, which others like ``model`` have too."""
        if _is_known_by_config(model):
            self._badges.setdefault(model.spec, (model, badge))
        return badge


def _is_known_by_config(model: Model) -> bool:
    return model.stored is None and not model.is_gguf


def badge_for(
    row: Row, deployment: Deployment, machine: Machine, alike: Alike | None = None
) -> Badge:
    """The badge of one row; whatever is wrong with a model makes it unknown, not an error.

    Args:
        row: the model.
        deployment: the plan.
        machine: where it runs.
        alike: what was worked out of others by this plan.
    """
    if row.model is None:
        return _unread(row, deployment, machine)
    stored, alike = None, alike or Alike()
    try:
        model = row.model()
        known = alike.find(model)
        if known is not None:
            return known
        stored = stored_bytes(model)
        badge = replace(_sized(model, deployment, machine), weight_bytes=stored)
        return alike.keep(model, badge)
    except PlimsollError as error:
        return Badge(Fit.UNKNOWN, None, tr("Unknown"), sentence(error), stored)
    except Exception as error:  # noqa: BLE001 - one odd model must not take the list with it
        _log.exception("no badge for %s", row.key)
        return Badge(Fit.UNKNOWN, None, tr("Unknown"), sentence(error), stored)


def stored_bytes(model: Model) -> int:
    """Bytes of all weights of ``model`` as they are stored."""
    if model.stored is not None:
        return model.stored.size_bytes
    return sum(stage.size_bytes for stage in weights(model, _AS_STORED).stages)


def _unread(row: Row, deployment: Deployment, machine: Machine) -> Badge:
    """A row of which only the stored size is known: enough to say no, never to say yes."""
    capacity = sum(slot.device.allocatable.high_bytes for slot in machine.slots)
    resident = row.stored_bytes or 0
    # What is stored may be more than what is loaded: a tied embedding stored twice, a block
    # for multi-token prediction. In models that could matter here it is far under a quarter.
    is_certain = resident * 3 // 4 > capacity
    if is_certain and deployment.weight_format == "auto" and deployment.runtime in _ALL_ON_GPU:
        reason = tr("Its files hold {size} of weights, far more than there is room.").format(
            size=format_size(resident)
        )
        return Badge(Fit.DOES_NOT_FIT, None, tr("Too large"), reason)
    return Badge(None, None, tr("Size it"), tr("Read its files to see whether it fits."))


def _sized(model: Model, deployment: Deployment, machine: Machine) -> Badge:
    plan, remark = _for_model(model, deployment)
    longest = model.spec.max_position_embeddings
    wanted = plan.max_model_len
    if longest is not None and wanted is not None and wanted > longest:
        reason = tr("The plan asks for {wanted} tokens, this model takes {longest}.").format(
            wanted=count(wanted), longest=count(longest)
        )
        word = tr("Context {longest}").format(longest=tokens_short(longest))
        return Badge(Fit.UNKNOWN, None, word, reason)
    verdict = size(model, plan, machine).verdict
    reason = f"{verdict.headline}. {remark}".strip()
    if verdict.fit is Fit.UNKNOWN:
        return Badge(Fit.UNKNOWN, None, tr("Unknown"), reason)
    if verdict.refusals:
        return Badge(verdict.outcome, None, tr("Won’t start"), tr(verdict.refusals[0]))
    return Badge(verdict.outcome, verdict.margin_bytes, "", reason)


def _for_model(model: Model, deployment: Deployment) -> tuple[Deployment, str]:
    """The plan as this model would be opened with it, and what was changed for that."""
    remark = ""
    if model.is_gguf and registry.family(deployment.runtime) != _GGUF_RUNTIME:
        deployment = deployment.with_(runtime=_GGUF_RUNTIME, runtime_version=None)
        remark = tr("With llama.cpp, which reads GGUF files.")
    runtime = registry.get(deployment.runtime)
    if deployment.kv_cache_dtype not in runtime.kv_cache_dtypes:
        deployment = deployment.with_(kv_cache_dtype="auto")
    if (
        deployment.weight_format != "auto"
        and deployment.weight_format not in runtime.weight_formats(model)
    ):
        deployment = deployment.with_(weight_format="auto")
        remark = f"{remark} {tr('With its weights as stored.')}".strip()
    return deployment, remark
