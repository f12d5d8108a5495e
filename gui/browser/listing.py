"""Which rows are shown and in what order. Pure Python over tuples, no Qt: 5,000 rows in ms."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from engine.errors import SourceError
from engine.fit.verdict import Fit
from engine.source.reference import HubReference, parse
from gui.browser.rows import Source
from gui.kit.format import TIMES, count, margin

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from engine.deployment.spec import Deployment
    from engine.devices.device import Machine
    from engine.units import UnitSystem
    from gui.browser.rows import Badge, Row

_GOOD = {Fit.FITS, Fit.TIGHT}


class Sort(StrEnum):
    """Orders of the list, as the button names them."""

    POPULAR = "Popular"
    NAME = "Name"
    PARAMETERS = "Parameters"
    MARGIN = "To spare"


SIZES: tuple[tuple[str, int, int], ...] = (
    ("Up to 4 B", 0, 4 * 10**9),
    ("4 to 15 B", 4 * 10**9, 15 * 10**9),
    ("15 to 40 B", 15 * 10**9, 40 * 10**9),
    ("40 to 130 B", 40 * 10**9, 130 * 10**9),
    ("Over 130 B", 130 * 10**9, 10**18),
)
"""Labels and bounds in parameters, the upper one excluded."""


@dataclass(frozen=True, slots=True)
class Filters:
    """What a row has to be. Unknown passes: it is not a no."""

    fits_here: bool = True
    sizes: frozenset[str] = frozenset()
    """Labels of ``SIZES``; empty for all."""
    formats: frozenset[str] = frozenset()
    """Weight formats as shown; empty for all."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What decides about rows besides the query."""

    filters: Filters = Filters()
    sort: Sort = Sort.POPULAR
    descending: bool = True
    chosen: str = ""
    """Key of the model in the window, which stays in the list whatever the filters say."""


def is_reference(text: str, endpoint: str) -> bool:
    """Whether ``text`` names one model by its form (path, link, ``org/repo:quant``, a config)."""
    if text.startswith("{") or "://" in text:
        return True
    try:
        found = parse(text, endpoint)
    except SourceError:
        return False
    if isinstance(found, HubReference):
        return bool(found.file or found.revision) or "." in text.split("/", 1)[0]
    return found is not None


def arranged(
    rows: Sequence[Row], badges: Mapping[str, Badge], query: str, wanted: Wanted
) -> tuple[Row, ...]:
    """``rows`` that answer to ``query`` and the filters, in order; the chosen one always."""
    words = query.casefold().split()
    kept = [
        row
        for row in rows
        if all(word in row.key.casefold() for word in words)
        and (_passes(row, badges.get(row.key), wanted.filters) or row.key == wanted.chosen)
    ]
    kept.sort(key=_key(wanted.sort, badges, descending=wanted.descending))
    return tuple(kept)


def _passes(row: Row, badge: Badge | None, filters: Filters) -> bool:
    if filters.fits_here and badge is not None and badge.fit is Fit.DOES_NOT_FIT:
        return False
    if filters.formats and row.weight_format and row.weight_format not in filters.formats:
        return False
    if not filters.sizes or row.parameters is None:
        return True
    number = row.parameters
    return any(low <= number < high for text, low, high in SIZES if text in filters.sizes)


def _key(
    sort: Sort, badges: Mapping[str, Badge], *, descending: bool
) -> Callable[[Row], tuple[bool, float | str, str]]:
    """A key that keeps what is unknown at the end, whatever the direction."""
    sign = -1 if descending else 1

    def number(value: int | None, row: Row) -> tuple[bool, float | str, str]:
        return value is None, sign * value if value is not None else 0, row.key.casefold()

    def spare(row: Row) -> tuple[bool, float | str, str]:
        badge = badges.get(row.key)
        return number(badge.margin_bytes if badge else None, row)

    if sort is Sort.NAME:
        return _by_name(descending=descending)
    if sort is Sort.MARGIN:
        return spare
    if sort is Sort.PARAMETERS:
        return lambda row: number(row.parameters, row)
    return lambda row: number(row.downloads, row)


def _by_name(*, descending: bool) -> Callable[[Row], tuple[bool, float | str, str]]:
    def backwards(text: str) -> str:
        return "".join(chr(0x10FFFF - ord(c)) for c in text)

    def key(row: Row) -> tuple[bool, float | str, str]:
        name = row.name.casefold()
        return False, backwards(name) if descending else name, row.key

    return key


def summary(
    rows: Sequence[Row],
    badges: Mapping[str, Badge],
    source: Source,
    plan: tuple[Deployment, Machine] | None,
    has_more: bool,  # noqa: FBT001 - passed on from the state
) -> str:
    """``41 of 96 fit 8,192 x 4 on RTX 4090``; for the Hub how many are here."""
    if not rows:
        return ""
    if source is Source.HUB:
        return f"{count(len(rows))} loaded{', more below' if has_more else ''}"
    known = [badges[row.key] for row in rows if row.key in badges]
    if plan is None or not known:
        return f"{count(len(rows))} models"
    good = sum(1 for badge in known if badge.fit in _GOOD)
    deployment, machine = plan
    if deployment.max_model_len is None:
        what = "this plan"
    else:
        what = f"{count(deployment.max_model_len)} {TIMES} {deployment.concurrency}"
    return f"{count(good)} of {count(len(rows))} fit {what} on {place(machine, deployment.ranks)}"


def place(machine: Machine, ranks: int) -> str:
    """Short name of where the plan runs: ``RTX 4090``, ``2 x RTX 4090`` for two ranks."""
    if not machine.slots:
        return machine.name
    name = machine.slots[0].device.name
    return f"{ranks} {TIMES} {name}" if ranks > 1 else name


def nothing_fits(
    rows: Sequence[Row], badges: Mapping[str, Badge], filters: Filters, unit: UnitSystem
) -> tuple[str, str]:
    """Title and detail for a list that the filters leave empty."""
    title = f"None of {count(len(rows))} fits"
    over = [
        (badge.margin_bytes, row.name)
        for row in rows
        if (badge := badges.get(row.key)) is not None and badge.margin_bytes is not None
    ]
    if not filters.fits_here or not over:
        return "Nothing passes the filters", "Show all to see every model."
    most, name = max(over)
    if most >= 0:
        return "Nothing passes the filters", "Show all to see every model."
    return title, f"Nearest: {name}, {margin(-most, unit).removeprefix('+')} over"


_WORDS = {"bf16": "BF16", "fp16": "F16", "fp32": "F32"}
_OF_ONE_WIDTH = frozenset({"fp8", "int8", "nvfp4"})
"""Formats whose layouts of scales a row doesn't tell apart."""


def format_label(name: str) -> str:
    """A weight format as a row writes it: ``BF16``, ``FP8``, ``MXFP4``, ``AWQ int4``."""
    if name in _WORDS:
        return _WORDS[name]
    head, _, tail = name.partition("-")
    if head in _OF_ONE_WIDTH:
        return head.upper()
    return f"{head.upper()} {tail}".strip() if tail else (name if "_" in name else name.upper())
