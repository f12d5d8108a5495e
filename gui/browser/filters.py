"""What a model has to be to stay in the list. Plain values, no Qt.

What isn't known passes every filter: it is not a no. Each group has a check box of its own for
it, and that alone takes it out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from engine.fit.verdict import Fit
from engine.units import GIB
from engine.words import tr_later

if TYPE_CHECKING:
    from collections.abc import Iterable


class Group(StrEnum):
    """Kinds of filters, as the headings name them."""

    FIT = tr_later("Fit")
    PARAMETERS = tr_later("Parameters")
    WEIGHTS = tr_later("Stored weights")
    FORMAT = tr_later("Weight format")
    QUANT = tr_later("Quantisation")
    CONTEXT = tr_later("Context at least")
    TAKES = tr_later("Takes in")
    ACCESS = tr_later("Access")
    UPDATED = tr_later("Updated within")
    AUTHOR = tr_later("Author")
    LICENCE = tr_later("Licence")


UNKNOWN = tr_later("Unknown")
"""The choice in every group for models of which this isn't known."""
FITS = (tr_later("Fits"), tr_later("Tight"), tr_later("Doesn’t fit"), UNKNOWN)
FIT_WORDS = dict(zip((Fit.FITS, Fit.TIGHT, Fit.DOES_NOT_FIT, Fit.UNKNOWN), FITS, strict=True))
WHOLE, EIGHT, FOUR, FP8, GGUF, OTHER = (
    "BF16, F16",
    tr_later("8-bit integers"),
    tr_later("4-bit"),
    "FP8",
    "GGUF",
    tr_later("Other"),
)
FORMATS = (WHOLE, FP8, EIGHT, FOUR, GGUF, OTHER, UNKNOWN)
TEXT, IMAGES, SOUND = TAKES = (tr_later("Text"), tr_later("Images"), tr_later("Sound"))
OPEN, GATED = tr_later("Open"), tr_later("Gated")
ACCESS = (OPEN, GATED, UNKNOWN)
CONTEXTS = tuple(2**n for n in range(12, 21))
"""Offered as the least context: 4k to 1M."""


class Span(NamedTuple):
    """From ``low`` to ``high``, both included."""

    low: int = 0
    high: int = 10**18


ANY = Span()
PARAMETER_LIMITS = Span(10**8, 2 * 10**12)
"""Ends of the slider; there it lets everything below or above through."""
WEIGHT_LIMITS = Span(GIB // 4, 2048 * GIB)
SIZES: tuple[tuple[str, Span], ...] = (
    (tr_later("Up to 4 B"), Span(0, 4 * 10**9)),
    (tr_later("4 to 15 B"), Span(4 * 10**9, 15 * 10**9)),
    (tr_later("15 to 40 B"), Span(15 * 10**9, 40 * 10**9)),
    (tr_later("40 to 130 B"), Span(40 * 10**9, 130 * 10**9)),
    (tr_later("Over 130 B"), Span(130 * 10**9, ANY.high)),
)
"""Spans of parameters that the narrow list offers."""

HIDES_WHAT_DOESNT_FIT = (Group.FIT, FITS[2])
Choice = tuple[Group, str]


@dataclass(frozen=True, slots=True)
class Filters:
    """All filters at once; the default hides what doesn't fit and nothing else."""

    hidden: frozenset[Choice] = frozenset({HIDES_WHAT_DOESNT_FIT})
    """Choices whose check box is off."""
    parameters: Span = ANY
    weights: Span = ANY
    """Bytes of the weights as stored."""
    context: int = 0
    since: int = 0
    """The day of the last change at least, as ``moment`` counts; 0 for any."""
    takes: frozenset[str] = frozenset()
    """What a model has to take in; all of it."""
    quant: str = ""
    """Name of the quantisation, as ``quant_name`` has it."""
    author: str = ""
    licence: str = ""

    def with_(self, **changes: Any) -> Filters:
        """A copy with ``changes``."""
        return replace(self, **changes)

    def hides(self, group: Group, choice: str) -> bool:
        """Whether a check box is off."""
        return (group, choice) in self.hidden

    def with_shown(self, group: Group, choice: str, *, shown: bool) -> Filters:
        """A copy in which one check box is on or off."""
        pair = {(group, choice)}
        return replace(self, hidden=self.hidden - pair if shown else self.hidden | pair)

    def with_only(self, group: Group, choices: Iterable[str], among: Iterable[str]) -> Filters:
        """A copy that lets ``choices`` of ``group`` through alone; none of them means all.

        What isn't known stays as it was: it has its own check box.
        """
        wanted = frozenset(choices)
        others = frozenset(among) - wanted - {UNKNOWN} if wanted else frozenset[str]()
        kept = {pair for pair in self.hidden if pair[0] is not group or pair[1] == UNKNOWN}
        return replace(self, hidden=frozenset(kept | {(group, other) for other in others}))

    def without(self, group: Group) -> Filters:
        """A copy in which ``group`` lets everything through."""
        kept = frozenset(pair for pair in self.hidden if pair[0] is not group)
        plain = ALL.value(group)
        field = _FIELDS.get(group)
        return replace(self, hidden=kept, **({field: plain} if field else {}))

    def value(self, group: Group) -> Any:
        """The one value of a group that has more than check boxes; None for the others."""
        return getattr(self, _FIELDS[group]) if group in _FIELDS else None

    def narrows(self, group: Group) -> bool:
        """Whether ``group`` may keep a model out."""
        chosen = self.value(group) != ALL.value(group)
        return chosen or any(pair[0] is group for pair in self.hidden)


_FIELDS = {
    Group.PARAMETERS: "parameters",
    Group.WEIGHTS: "weights",
    Group.CONTEXT: "context",
    Group.UPDATED: "since",
    Group.TAKES: "takes",
    Group.QUANT: "quant",
    Group.AUTHOR: "author",
    Group.LICENCE: "licence",
}
ALL = Filters(hidden=frozenset())
"""Filters that let everything through."""


def moment(stated: str) -> int | None:
    """``2025-03-21T09:30:00.000Z`` as 202503210930, a number that grows with time."""
    digits = "".join(c for c in stated[:16] if c.isascii() and c.isdigit())
    return int(digits.ljust(12, "0")) if len(digits) >= 8 else None


_GGUF = re.compile(r"(?:UD-)?(?:I?Q|TQ)\d|GGUF|MXFP4_MOE|MOSTLY", re.IGNORECASE)
_FOUR_BITS = re.compile(
    r"MXFP4|NVFP4|AWQ|GPTQ|W4A|NF4|INT4|BITSANDBYTES|U4|I4|(?:^|\W)4.?BIT", re.IGNORECASE
)
_EIGHT_BITS = re.compile(r"INT8|I8|U8|W8A|8.?BIT", re.IGNORECASE)
_FP8 = re.compile(r"F8|FP8|MXFP8", re.IGNORECASE)
_PLAIN = frozenset({"BF16", "F16", "FP16", "F32", "FP32", "F64"})


def format_class(label: str) -> str:
    """Which of ``FORMATS`` a row's weight format belongs to, by the word that the row shows."""
    if not label:
        return UNKNOWN
    if label.upper() in _PLAIN:
        return WHOLE
    kinds = ((_GGUF, GGUF), (_FP8, FP8), (_EIGHT_BITS, EIGHT), (_FOUR_BITS, FOUR))
    return next((kind for pattern, kind in kinds if pattern.search(label)), OTHER)
