"""An answer: the rows that pass, in order, and what the filters made of the others. No Qt."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING, overload

import numpy as np
from typing_extensions import override

from gui.browser.filters import Group
from gui.browser.rows import Row

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from gui.browser.columns import Columns
    from gui.browser.filters import Filters
    from gui.browser.rows import ShownRows

    Mask = NDArray[np.bool_]
    Places = NDArray[np.intp]


class Arranged(Sequence[Row]):
    """Rows in the order of the list, with what the filters made of the others."""

    def __init__(
        self,
        columns: Columns,
        order: Places,
        asked: Mask,
        masks: Mapping[Group, Mask],
        *,
        is_sorted: bool = True,
    ) -> None:
        self.columns = columns
        self.rows = columns.rows
        self.order = order
        self.is_sorted = is_sorted
        """Whether the order holds throughout; what came later may stand below what was there."""
        self._asked = asked
        self._masks = masks
        self._ranks: Places | None = None

    @override
    def __len__(self) -> int:
        return len(self.order)

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Row]: ...
    @override
    def __getitem__(self, index: int | slice) -> Row | Sequence[Row]:
        if isinstance(index, slice):
            return tuple(self.rows[int(n)] for n in self.order[index])
        return self.rows[int(self.order[index])]

    def place(self, key: str) -> int | None:
        """Where ``key`` stands; None where it isn't shown."""
        row = self.columns.place(key)
        if row is None or row >= len(self.rows):
            return None
        if self._ranks is None:
            self._ranks = np.full(len(self.rows), -1, np.intp)
            self._ranks[self.order] = np.arange(len(self.order))
        found = int(self._ranks[row])
        return found if found >= 0 else None

    def continues(self, other: ShownRows) -> bool:
        """Whether it is ``other``, perhaps with more rows at its end, or more known of some."""
        if not isinstance(other, Arranged) or other.columns is not self.columns:
            return False
        length = len(other)
        return 0 < length <= len(self) and np.array_equal(self.order[:length], other.order)

    @property
    def answering(self) -> int:
        """How many rows answer to the query, whatever the filters say."""
        return int(np.count_nonzero(self._asked))

    @property
    def only_on_the_hub(self) -> int:
        """How many of those are known by the Hub's answer alone."""
        return int(np.count_nonzero(self._asked & self.columns.is_only_on_the_hub))

    def counts(self, group: Group) -> dict[str, int]:
        """Rows for each choice of ``group``, among those that all other filters let through."""
        return self.columns.count(group, self._but(group))

    def loosened(self, filters: Filters) -> tuple[Group, Row] | None:
        """The one filter that keeps most rows out, and the nearest of them.

        None where it takes more than one. Whether it fits is asked about first.
        """
        kept_out = {
            group: self._but(group) & ~self._masks[group]
            for group in Group
            if filters.narrows(group)
        }
        sums = {group: int(np.count_nonzero(mask)) for group, mask in kept_out.items()}
        group = max(sums, key=lambda g: (sums[g] > 0 and g is Group.FIT, sums[g]), default=None)
        if group is None or not sums[group]:
            return None
        row = self.columns.nearest(group, filters, kept_out[group])
        return None if row is None else (group, row)

    def _but(self, group: Group) -> Mask:
        others = (mask for name, mask in self._masks.items() if name is not group)
        return reduce(np.logical_and, others, self._asked)
