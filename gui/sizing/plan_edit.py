"""One edit of the plan, which can be undone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtGui import QUndoCommand
from typing_extensions import override

from engine.words import tr, tr_later

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.architecture.model import Model
    from gui.sizing.plan import Plan

_MERGE_PAUSE_MS = 1000
"""Edits of one control closer together than this are one step of undo."""
ADDED = "added beside"
REMOVED = "removed beside"
"""Beginnings of a field; what follows keeps two of them from becoming one step."""


@dataclass(frozen=True, slots=True)
class Laid:
    """What a kept plan puts in force."""

    model: Model | None
    """None where it isn't here."""
    plan: Plan
    awaited: str = ""
    """What the model is called that the plan waits for."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan, and the model it is for where an edit changes that too."""

    plan: Plan
    model: Model | None = None


class EditPlan(QUndoCommand):
    """Successive edits of one control become one."""

    def __init__(
        self,
        restore: Callable[[Planned], None],
        before: Planned,
        after: Planned,
        field: str,
        at_ms: int,
    ) -> None:
        """``field`` names the control, ``at_ms`` the moment."""
        super().__init__(tr(_title(field)))
        self._restore = restore
        self.before = before
        self.after = after
        self.field = field
        self.at_ms = at_ms

    @override
    def id(self) -> int:
        return 1

    @override
    def mergeWith(self, other: QUndoCommand) -> bool:
        if not isinstance(other, EditPlan) or other.field != self.field:
            return False
        if self.after.model or other.at_ms - self.at_ms > _MERGE_PAUSE_MS:
            return False
        self.after = other.after
        self.at_ms = other.at_ms
        self.setObsolete(self.after == self.before)
        return True

    @override
    def undo(self) -> None:
        self._restore(self.before)

    @override
    def redo(self) -> None:
        self._restore(self.after)


class LayOut(QUndoCommand):
    """A kept plan for another model takes the place of the one in force."""

    def __init__(self, take: Callable[[Laid], None], before: Laid, after: Laid) -> None:
        super().__init__(tr("opening of a kept plan"))
        self._take, self._before, self._after = take, before, after

    @override
    def undo(self) -> None:
        self._take(self._before)

    @override
    def redo(self) -> None:
        self._take(self._after)


def _title(field: str) -> str:
    exact = _TITLES.get(field)
    if exact is not None:
        return exact
    begun = (words for start, words in _BEGINNINGS.items() if field.startswith(start))
    return next(begun, tr_later("change of the plan"))


_BEGINNINGS = {
    ADDED: tr_later("model beside it"),
    REMOVED: tr_later("removal of a model beside it"),
}
_TITLES = {
    "runtime": tr_later("runtime"),
    "weights": tr_later("weight format"),
    "kv": tr_later("KV cache format"),
    "context": tr_later("context"),
    "concurrency": tr_later("requests at once"),
    "tp": tr_later("tensor parallelism"),
    "pp": tr_later("pipeline parallelism"),
    "device": tr_later("device"),
    "ram": tr_later("RAM"),
    "emptied": tr_later("now or emptied"),
    "fit map": tr_later("move on the fit map"),
    "swap": tr_later("change to a model beside it"),
}
