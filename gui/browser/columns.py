"""What filters and orders look at, as arrays: 100,000 rows in milliseconds. No Qt.

Built once and grown as pages arrive. What changes in place are the badges, worked out anew with
every plan, and what a later answer adds to a row.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, cast

import numpy as np

from gui.browser import filters as f
from gui.browser.arranged import Arranged
from gui.browser.filters import ANY, UNKNOWN, Group, Span
from gui.browser.listing import Sort
from gui.browser.quants import quant_name
from gui.browser.rows import Place, Row, Source

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from gui.browser.filters import Filters
    from gui.browser.listing import Wanted
    from gui.browser.rows import Badge

    Floats = NDArray[np.float64]
    Codes = NDArray[np.int32]
    Mask = NDArray[np.bool_]
    Places = NDArray[np.intp]

_NUMBERS = ("parameters", "weights", "context", "downloads", "likes", "updated")
_WORDS: dict[Group, tuple[str, ...]] = {
    Group.FIT: f.FITS,
    Group.FORMAT: f.FORMATS,
    Group.ACCESS: f.ACCESS,
    Group.QUANT: (UNKNOWN,),
    Group.AUTHOR: (UNKNOWN,),
    Group.LICENCE: (UNKNOWN,),
}
"""Groups of which a row has one choice; those of the last three grow as they are met."""
_BITS = {word: 1 << n for n, word in enumerate(f.TAKES)}
_PLACES = {place: 1 << n for n, place in enumerate(Place)}
_SORTED_BY = {
    Sort.POPULAR: "downloads",
    Sort.LIKES: "likes",
    Sort.PARAMETERS: "parameters",
    Sort.WEIGHTS: "weights",
    Sort.CONTEXT: "context",
    Sort.UPDATED: "updated",
    Sort.MARGIN: "margin",
}
_CODED = {Group.FORMAT: "format", Group.QUANT: "quant", Group.ACCESS: "access",
          Group.AUTHOR: "author", Group.LICENCE: "licence", Group.FIT: "fit"}  # fmt: skip
_MEASURED = {
    Group.PARAMETERS: "parameters",
    Group.WEIGHTS: "weights",
    Group.CONTEXT: "context",
    Group.UPDATED: "updated",
}


class Columns:
    """Rows with the arrays that belong to them."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self.rows: tuple[Row, ...] = ()
        self.places: dict[str, int] = {}
        self._spelled: dict[str, int] = {}
        self._keys: list[str] = []
        self._names: list[str] = []
        self._by_name: list[int] = []
        self._numbers: dict[str, Floats] = {name: np.empty(0) for name in (*_NUMBERS, "margin")}
        self._codes: dict[str, Codes] = {
            name: np.empty(0, np.int32) for name in (*_CODED.values(), "takes", "places")
        }
        self._answered = np.zeros(0, np.bool_)
        self._wished = np.zeros(0, np.bool_)
        self._words: dict[Group, dict[str, int]] = {
            group: {word: n for n, word in enumerate(words)} for group, words in _WORDS.items()
        }
        self._asked: tuple[str, Mask] | None = None
        self.extend(tuple(rows))

    def __len__(self) -> int:
        return len(self.rows)

    def place(self, key: str) -> int | None:
        """Where ``key`` stands, or what differs from it by capitals alone; None for nothing."""
        place = self.places.get(key)
        return self._spelled.get(key.casefold()) if place is None else place

    def get(self, key: str) -> Row | None:
        """The row ``key``, or the one that differs from it by capitals alone; None for none."""
        place = self.place(key)
        return None if place is None else self.rows[place]

    def keep(self, keys: Iterable[str]) -> None:
        """Count the rows ``keys`` to those that are here without a word that asks for them."""
        found = (self.place(key) for key in keys)
        self._wished[[place for place in found if place is not None]] = True

    def answer(self, keys: Iterable[str]) -> None:
        """Count the rows ``keys`` to the Hub's answer: they are shown whatever they are called."""
        self._answered[[self._spelled[key.casefold()] for key in keys]] = True

    def forget_answer(self) -> None:
        """Another answer is awaited."""
        self._answered[:] = False

    @property
    def answered_keys(self) -> tuple[str, ...]:
        """The rows of the Hub's answer."""
        return tuple(self.rows[n].key for n in np.flatnonzero(self._answered))

    def extend(self, rows: Sequence[Row]) -> None:
        """Append ``rows``; those whose key is here already are left out."""
        new = tuple({r.key: r for r in rows if r.key not in self.places}.values())
        first = len(self.rows)
        self.rows += new
        self.places |= {row.key: first + n for n, row in enumerate(new)}
        keys = [row.key.casefold() for row in new]
        for n, key in enumerate(keys, first):
            self._spelled.setdefault(key, n)
        self._keys += keys
        self._names += [row.name.casefold() for row in new]
        # The old part is in order already, so that sorting again is hardly more than a merge.
        self._by_name = sorted(
            [*self._by_name, *range(first, len(self.rows))], key=self._names.__getitem__
        )
        for name, made in self._arrays(new).items():
            whole = self._numbers if made.dtype == np.float64 else self._codes
            whole[name] = np.concatenate([whole[name], made])  # pyright: ignore[reportArgumentType]  # of one dtype by the line before
        self._ranks = np.empty(len(self.rows))
        self._ranks[self._by_name] = np.arange(len(self.rows))
        self._answered = np.concatenate([self._answered, np.zeros(len(new), np.bool_)])
        self._wished = np.concatenate([self._wished, np.zeros(len(new), np.bool_)])
        self._asked = None

    def replace(self, row: Row) -> None:
        """Put ``row`` in the place of the one with its key."""
        place = self.places[row.key]
        self.rows = (*self.rows[:place], row, *self.rows[place + 1 :])
        for name, made in self._arrays((row,)).items():
            whole = self._numbers if made.dtype == np.float64 else self._codes
            whole[name][place] = made[0]

    def set_badges(self, badges: Mapping[str, Badge]) -> None:
        """Take over what was worked out of some rows."""
        fit, margin = self._codes["fit"], self._numbers["margin"]
        weights = self._numbers["weights"]
        words = self._words[Group.FIT]
        for key, badge in badges.items():
            place = self.places.get(key)
            if place is None:
                continue
            fit[place] = words[f.FIT_WORDS[badge.fit] if badge.fit else UNKNOWN]
            margin[place] = np.nan if badge.margin_bytes is None else badge.margin_bytes
            if badge.weight_bytes is not None and not self.rows[place].weight_bytes:
                weights[place] = badge.weight_bytes

    def _arrays(self, rows: Sequence[Row]) -> dict[str, NDArray[np.generic]]:
        numbers: dict[str, list[float | None]] = {
            "parameters": [r.parameters for r in rows],
            "weights": [r.weight_bytes for r in rows],
            "context": [r.context for r in rows],
            "downloads": [r.downloads for r in rows],
            "likes": [r.likes for r in rows],
            "updated": [f.moment(r.updated) for r in rows],
            "margin": [None] * len(rows),
        }
        access = {None: UNKNOWN, False: f.OPEN, True: f.GATED}
        words: dict[Group, list[str]] = {
            Group.FORMAT: [f.format_class(r.weight_format) for r in rows],
            Group.QUANT: [quant_name(r.weight_format) or UNKNOWN for r in rows],
            Group.ACCESS: [access[r.gated] for r in rows],
            Group.AUTHOR: [r.owner or UNKNOWN for r in rows],
            Group.LICENCE: [r.licence or UNKNOWN for r in rows],
            Group.FIT: [UNKNOWN] * len(rows),
        }
        made: dict[str, NDArray[np.generic]] = {
            name: np.array(values, np.float64) for name, values in numbers.items()
        }
        for group, values in words.items():
            known = self._words[group]
            codes = [known.setdefault(word, len(known)) for word in values]
            made[_CODED[group]] = np.array(codes, np.int32)
        bits = [sum(_BITS[word] for word in row.takes) for row in rows]
        made["takes"] = np.array(bits, np.int32)
        bits = [sum(_PLACES[place] for place in row.places) for row in rows]
        made["places"] = np.array(bits, np.int32)
        return made

    # --- filters

    def arranged(
        self,
        query: str,
        wanted: Wanted,
        source: Source = Source.ALL,
        after: Arranged | None = None,
        *,
        lets_in: bool = True,
    ) -> Arranged:
        """The rows of ``source`` that answer to ``query`` and the filters, in order.

        The model in the window stays whether it fits or not, but not alone: then it would stand
        for an answer that there is none.

        Args:
            query: words that a row's key has to hold, unless the Hub's answer brought it.
            wanted: filters and order.
            source: what the list is narrowed to.
            after: an earlier answer to the same; its rows keep their order, and new ones follow.
            lets_in: whether they do, or only leave.
        """
        asked = self._in_source(query, source)
        masks = {group: self._mask(group, wanted.filters) for group in Group}
        others = reduce(np.logical_and, (masks[g] for g in Group if g is not Group.FIT), asked)
        passing = others & masks[Group.FIT]
        chosen = self.place(wanted.chosen)
        if chosen is not None and others[chosen] and passing.any():
            passing[chosen] = True
        order = self._order(np.flatnonzero(passing), wanted)
        is_sorted = True
        if after is not None:
            kept = self._kept(after, passing)
            passing[kept] = False
            if not lets_in:
                order = order[~passing[order]]
                passing[:] = False
            grown = np.concatenate([kept, self._order(np.flatnonzero(passing), wanted)])
            order, is_sorted = grown, np.array_equal(order, grown)
        return Arranged(self, order, asked, masks, is_sorted=is_sorted)

    def _kept(self, after: Arranged, passing: Mask) -> Places:
        """What is still shown of ``after``, in its order."""
        order = after.order
        if after.columns is not self:
            found = (self.places.get(row.key) for row in after)
            order = np.array([place for place in found if place is not None], np.intp)
        return order[passing[order]]

    def _in_source(self, query: str, source: Source) -> Mask:
        """Which rows of ``source`` answer to ``query``.

        What only the Hub told of is no part of the list before a word asks for it.
        """
        words, places = self._answering(query), self._codes["places"]
        if not query.strip():
            words = words & ~self.is_only_on_the_hub
        match source:
            case Source.LOCAL:
                return words & ((places & _PLACES[Place.HERE]) > 0)
            case Source.HUB:
                on_hub = (places & _PLACES[Place.HUB]) > 0
                return self._answered | (words & on_hub & bool(query.strip()))
            case _:
                return words | self._answered

    def standing(self, source: Source) -> Sequence[Row]:
        """The rows of ``source`` that are there without a query."""
        places = np.flatnonzero(self._in_source("", source) & ~self.is_only_on_the_hub)
        return tuple(self.rows[int(n)] for n in places)

    @property
    def is_only_on_the_hub(self) -> Mask:
        """Which rows nothing but the Hub tells of, nor does a person keep them."""
        return (self._codes["places"] == _PLACES[Place.HUB]) & ~self._wished

    def _answering(self, query: str) -> Mask:
        if self._asked is None or self._asked[0] != query:
            keys, left = self._keys, range(len(self.rows))
            for word in query.casefold().split():
                left = [n for n in left if word in keys[n]]
            mask = np.zeros(len(self.rows), np.bool_)
            mask[left] = True
            self._asked = (query, mask)
        return self._asked[1]

    def _mask(self, group: Group, filters: Filters) -> Mask:
        """Which rows ``group`` lets through."""
        if not filters.narrows(group):
            return np.ones(len(self.rows), np.bool_)
        keeps_unknown = not filters.hides(group, UNKNOWN)
        if group in _MEASURED:
            value = filters.value(group)
            span = value if isinstance(value, Span) else Span(int(value), ANY.high)
            numbers = self._numbers[_MEASURED[group]]
            inside = (numbers >= span.low) & (numbers <= span.high)
            return inside | np.isnan(numbers) if keeps_unknown else inside
        if group is Group.TAKES:
            bits, wished = self._codes["takes"], sum(_BITS[word] for word in filters.takes)
            return np.where(bits == 0, keeps_unknown, (bits & wished) == wished)
        words, codes = self._words[group], self._codes[_CODED[group]]
        hidden = [words[word] for kind, word in filters.hidden if kind is group and word in words]
        passes = ~np.isin(codes, hidden)
        single = cast("str | None", filters.value(group))
        if single:
            passes &= (codes == words.get(single, -1)) | (codes == words[UNKNOWN])
        return passes

    def count(self, group: Group, among: Mask) -> dict[str, int]:
        """How many rows of ``among`` there are for each choice of ``group``."""
        if group in _MEASURED:
            return {UNKNOWN: int(np.isnan(self._numbers[_MEASURED[group]][among]).sum())}
        if group is Group.TAKES:
            bits = self._codes["takes"][among]
            found = {word: int(np.count_nonzero(bits & bit)) for word, bit in _BITS.items()}
            return found | {UNKNOWN: int(np.count_nonzero(bits == 0))}
        words = self._words[group]
        sums = np.bincount(self._codes[_CODED[group]][among], minlength=len(words))
        fixed = _WORDS[group]
        return {word: int(sums[n]) for word, n in words.items() if sums[n] or word in fixed}

    # --- order

    def _order(self, places: Places, wanted: Wanted) -> Places:
        """``places`` sorted; equal ones stay as the source has them, unknown ones come last."""
        if wanted.sort is Sort.NAME:
            values = self._ranks[places]
        else:
            values = self._numbers[_SORTED_BY[wanted.sort]][places]
        # NaN, which stands for the unknown, is put last by numpy whatever its sign.
        keys = -values if wanted.descending else values
        return places[np.argsort(keys, kind="stable")]

    # --- the nearest

    def nearest(self, group: Group, filters: Filters, among: Mask) -> Row | None:
        """Of the rows ``among``, which ``group`` alone keeps out, the one it comes nearest to."""
        places = np.flatnonzero(among)
        if not len(places):
            return None
        far = -self._numbers["downloads"][places]
        if group is Group.FIT:
            far = -self._numbers["margin"][places]
        elif group in {Group.CONTEXT, Group.UPDATED}:
            far = -self._numbers[_MEASURED[group]][places]
        elif group in _MEASURED:
            span = cast("Span", filters.value(group))
            numbers = np.maximum(self._numbers[_MEASURED[group]][places], 1)
            far = np.maximum(max(span.low, 1) / numbers, numbers / max(span.high, 1))
        return self.rows[places[np.argsort(far, kind="stable")[0]]]
