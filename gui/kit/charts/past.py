"""A day of one device in bounded memory: of every ten seconds the samples that stand out.

What is kept are samples that were really taken, at the moment they were taken: where used, plan
and KV cache were lowest and highest. A line through them touches every peak and every dip.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

ROWS = 4
"""Time, used, plan, KV."""
BUCKET_S = 10.0
_PICKED = 2 * (ROWS - 1) + 1
"""Of one bucket at most: least and greatest of each row, and one column for a gap."""
DAY_COLUMNS = 8640 * _PICKED
_MOST_OPEN = 2048


class Past:
    """A ring of picked columns, oldest first, and the bucket that is not yet full."""

    def __init__(self, capacity: int = DAY_COLUMNS) -> None:
        self._data: NDArray[np.float64] = np.full((ROWS, capacity), np.nan)
        self._capacity = capacity
        self._count = 0
        self._open: list[list[float]] = []

    def add(self, column: list[float]) -> None:
        """Take one column; columns come in order of time."""
        if self._open and (
            column[0] // BUCKET_S != self._open[0][0] // BUCKET_S or len(self._open) >= _MOST_OPEN
        ):
            self._close()
        self._open.append(column)

    def forget(self, row: int) -> None:
        """Drop a row's values."""
        self._data[row] = np.nan
        for column in self._open:
            column[row] = np.nan

    def until(self, end_s: float) -> NDArray[np.float64]:
        """What is kept of the time before ``end_s``.

        Shapes:
            Result: (4, n).
        """
        kept = min(self._count, self._capacity)
        at = self._count % self._capacity if kept == self._capacity else 0
        ring = np.concatenate([self._data[:, at:kept], self._data[:, :at]], axis=1)
        if self._open:
            ring = np.concatenate([ring, np.array(self._open).T], axis=1)
        return ring[:, : int(np.searchsorted(ring[0], end_s))]

    def _close(self) -> None:
        columns = np.array(self._open).T
        self._open = []
        picked = columns[:, picks(columns)]
        for column in picked.T:
            self._data[:, self._count % self._capacity] = column
            self._count += 1


def picks(columns: NDArray[np.float64]) -> NDArray[np.intp]:
    """Which columns of a bucket stand out, in order of time.

    Shapes:
        ``columns``: (4, n). Result: (m,), m <= 7.
    """
    found = set[int]()
    for row in columns[1:]:
        if not np.isnan(row).all():
            found |= {int(np.nanargmin(row)), int(np.nanargmax(row))}
    gaps = np.flatnonzero(np.isnan(columns[1]))
    found |= {int(at) for at in gaps[:1]}
    return np.array(sorted(found), dtype=np.intp)
