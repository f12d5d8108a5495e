"""Which devices a typed text may mean, the likeliest first."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QModelIndex, QObject, QPersistentModelIndex, QSortFilterProxyModel, Qt
from typing_extensions import override

from engine.devices import names

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.devices.device import Device

SPELLINGS_ROLE = Qt.ItemDataRole.UserRole + 2
_NAME, _ALIAS, _BEGINS, _HAS_WORD, _CONTAINS = range(5)
_BEFORE = re.compile(r"(?:.* \+ )?\s*(?:\d{1,12} ?[x×] ?)?")
_WORDS = (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.EditRole)


def before_the_name(text: str) -> str:
    """What stands before the device that is being typed: its count, and the cards before it."""
    found = _BEFORE.match(text)
    return found[0] if found else ""


def spellings(device: Device) -> tuple[str, ...]:
    """What a person may call ``device``: its name first, then its other names."""
    maker = f"{device.vendor.value} {device.name} {device.label}"
    return (device.name, *device.aliases, maker)


def rank(text: str, known: Sequence[str]) -> int | None:
    """How well ``text`` names what is ``known`` by these spellings: 0 is best, None not at all."""
    wanted = " ".join(text.casefold().split())
    folded = [" ".join(spelling.casefold().split()) for spelling in known]
    if not wanted or not folded:
        return None
    if wanted == folded[0]:
        return _NAME
    key = names.key(wanted)
    if wanted in folded or (key and key in {names.key(spelling) for spelling in folded}):
        return _ALIAS
    if folded[0].startswith(wanted):
        return _BEGINS
    return _loosely(wanted, folded)


def _loosely(wanted: str, folded: Sequence[str]) -> int | None:
    if any(f" {wanted}" in f" {spelling}" for spelling in folded):
        return _HAS_WORD
    everything, squeezed = " ".join(folded), wanted.replace(" ", "")
    if all(word in everything for word in wanted.split()) or any(
        squeezed in spelling.replace(" ", "") for spelling in folded
    ):
        return _CONTAINS
    return None


class FoundDevices(QSortFilterProxyModel):
    """The entries of the device box that the typed text may mean, the likeliest first."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._ranks: Mapping[int, int] = {}
        self.before = ""
        """What the typed text says before the device's name: ``2 x ``."""
        self.setDynamicSortFilter(False)

    def look_for(self, text: str) -> None:
        """Keep what ``text`` may mean; of a list of cards, what its last name may mean."""
        self.before = before_the_name(text)
        name = text.removeprefix(self.before)
        source = self.sourceModel()
        # The first row is this computer, which is no card among others.
        rows = range(1 if self.before else 0, source.rowCount())
        found = {r: rank(name, source.index(r, 0).data(SPELLINGS_ROLE)) for r in rows}
        self._ranks = {row: value for row, value in found.items() if value is not None}
        self.invalidate()
        self.sort(0)

    def rows(self) -> list[int]:
        """Rows of the device box, the likeliest first."""
        return sorted(self._ranks, key=lambda row: (self._ranks[row], row))

    def meant(self) -> int | None:
        """The one row that is meant; None where several or none may be."""
        rows = self.rows()
        for exact in (_NAME, _ALIAS):
            same = [row for row in rows if self._ranks[row] == exact]
            if same:
                return same[0] if len(same) == 1 else None
        return rows[0] if len(rows) == 1 else None

    @override
    def data(
        self,
        index: QModelIndex | QPersistentModelIndex,
        role: int = Qt.ItemDataRole.DisplayRole,
    ) -> Any:
        found = super().data(index, role)
        return f"{self.before}{found}" if role in _WORDS else found

    @override
    def filterAcceptsRow(
        self, source_row: int, source_parent: QModelIndex | QPersistentModelIndex
    ) -> bool:
        return source_row in self._ranks

    @override
    def lessThan(
        self,
        source_left: QModelIndex | QPersistentModelIndex,
        source_right: QModelIndex | QPersistentModelIndex,
    ) -> bool:
        left, right = source_left.row(), source_right.row()
        return (self._ranks.get(left, 0), left) < (self._ranks.get(right, 0), right)
