"""The plans that are compared: put aside, reordered, and sized anew with the machine."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal, Slot

from engine.errors import PlimsollError
from engine.fit.solve import limits
from engine.words import tr
from gui.kit.latest import LatestOnly
from gui.kit.messages import sentence
from gui.sizing.beside import answer
from gui.sizing.comparison import MOST, Entry, Pinned

if TYPE_CHECKING:
    from engine.cancel import CancelToken
    from engine.devices.device import Machine
    from engine.fit.solve import Limits
    from gui.kit.tasks import TaskRunner
    from gui.sizing.view_model import State

_log = logging.getLogger("plimsoll.gui")


class CompareViewModel(QObject):
    """Up to six plans in an order; the first is the one that the others differ from."""

    changed = Signal(object)
    """The entries, in order."""
    edited = Signal(str, object, object)
    """What the user did, in words; the ``Pinned`` plans before and after."""

    def __init__(self, runner: TaskRunner, here: Machine, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._here = here
        self.entries: tuple[Entry, ...] = ()
        self._reserved = 0
        """Places of plans that wait for their models."""
        self._search = LatestOnly(runner, self)
        self._search.succeeded.connect(self._on_found)
        self._search.failed.connect(self._on_failed)

    @property
    def is_full(self) -> bool:
        """Whether no further plan has room."""
        return len(self.entries) + self._reserved >= MOST

    @property
    def is_settled(self) -> bool:
        """Whether nothing is still being worked out."""
        return not self._search.is_busy

    def add(self, state: State) -> bool:
        """Put the plan in force aside. Returns whether it wasn't among them already."""
        if state.model is None or self.is_full:
            return False
        pinned = Pinned(state.model, state.plan)
        if any(entry.pinned == pinned for entry in self.entries):
            return False
        self._edit(tr("adding a plan to compare"), (*self.pinned, pinned))
        return True

    def remove(self, index: int) -> None:
        """Drop one plan."""
        if 0 <= index < len(self.entries):
            words = tr("removal of a compared plan")
            self._edit(words, self.pinned[:index] + self.pinned[index + 1 :])

    def move(self, index: int, to: int) -> None:
        """Put plan ``index`` at place ``to``."""
        if index == to or not (0 <= index < len(self.entries) and 0 <= to < len(self.entries)):
            return
        rest = [*self.pinned]
        rest.insert(to, rest.pop(index))
        self._edit(tr("order of the compared plans"), tuple(rest))

    @property
    def pinned(self) -> tuple[Pinned, ...]:
        """The plans, in order."""
        return tuple(entry.pinned for entry in self.entries)

    def set_plans(self, pinned: tuple[Pinned, ...]) -> None:
        """Compare these; what was worked out of those that stay is kept."""
        if pinned != self.pinned:
            known = {entry.pinned: entry for entry in self.entries}
            self._publish(tuple(known.get(each) or self._entry(each) for each in pinned))

    def lay(self, pinned: tuple[Pinned, ...], *, reserved: int) -> None:
        """Compare these, and keep places for plans whose models aren't here."""
        self._reserved = reserved
        self.set_plans(pinned)
        self.changed.emit(self.entries)

    def _edit(self, words: str, pinned: tuple[Pinned, ...]) -> None:
        before = self.pinned
        self.set_plans(pinned)
        self.edited.emit(words, before, pinned)

    def set_here(self, here: Machine) -> None:
        """Size the plans for this computer anew after a measurement."""
        if here != self._here:
            self._here = here
            self._publish(tuple(self._entry(entry.pinned) for entry in self.entries))

    def _entry(self, pinned: Pinned) -> Entry:
        try:
            found = answer(pinned.model, pinned.plan, self._here)
            return Entry(pinned, found.sizing, beside=found.beside)
        except PlimsollError as error:
            return Entry(pinned, None, sentence(error))
        except Exception as error:  # noqa: BLE001 - one plan must not take the others along
            _log.exception("sizing a compared plan failed")
            return Entry(pinned, None, sentence(error))

    def _publish(self, entries: tuple[Entry, ...]) -> None:
        self.entries = entries
        self.changed.emit(entries)
        waiting = [entry for entry in entries if entry.limits is None and entry.sizing is not None]
        if not waiting:
            self._search.cancel()
            return

        def search(token: CancelToken) -> dict[int, Limits]:
            found: dict[int, Limits] = {}
            for entry in waiting:
                token.raise_if_cancelled()
                if entry.sizing is not None:
                    machine = entry.sizing.budget.machine
                    plan = entry.pinned.plan.deployment
                    found[id(entry)] = limits(entry.pinned.model, plan, machine)
            return found

        self._search.submit(search)

    @Slot(object)
    def _on_found(self, found: dict[int, Limits]) -> None:
        self.entries = tuple(
            replace(entry, limits=found[id(entry)]) if id(entry) in found else entry
            for entry in self.entries
        )
        self.changed.emit(self.entries)

    @Slot(object)
    def _on_failed(self, error: BaseException) -> None:
        _log.error("the limits of a comparison could not be worked out", exc_info=error)
