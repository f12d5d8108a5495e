"""What is wanted of the list, and the sentences about it. No Qt."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from engine.errors import SourceError
from engine.fit.verdict import Fit
from engine.runtimes import registry
from engine.source.reference import HubReference, parse
from engine.units import format_bytes
from engine.words import tr, tr_count, tr_later
from gui.browser.filters import Filters, Group
from gui.browser.rows import Source, parameters_short
from gui.kit.format import TIMES, count, margin, tokens_short

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from engine.deployment.spec import Deployment
    from engine.devices.device import Machine
    from engine.units import UnitSystem
    from gui.browser.columns import Arranged
    from gui.browser.rows import Badge, Row

_GOOD = {Fit.FITS, Fit.TIGHT}
_BY_RANKS = frozenset({"vllm", "sglang"})
"""Runtimes that take as many devices as the parallel sizes say; the others take every one."""


class Sort(StrEnum):
    """Orders of the list, as the button names them."""

    POPULAR = tr_later("Popular")
    LIKES = tr_later("Likes")
    NAME = tr_later("Name")
    PARAMETERS = tr_later("Parameters")
    WEIGHTS = tr_later("Stored size")
    CONTEXT = tr_later("Context")
    UPDATED = tr_later("Updated")
    MARGIN = tr_later("To spare")

    @property
    def is_descending_first(self) -> bool:
        """Whether the most comes first until the order is turned round."""
        return self is not Sort.NAME


class Orders:
    """Which of the orders the user turned round; each keeps its direction."""

    def __init__(self) -> None:
        self._turned: set[Sort] = set()

    @property
    def turned(self) -> tuple[str, ...]:
        """Those turned round, to be remembered."""
        return tuple(sort.value for sort in Sort if sort in self._turned)

    def restore(self, turned: Collection[str]) -> None:
        """Take over what was remembered."""
        self._turned = {known for known in Sort if known.value in turned}

    def turn(self, sort: Sort) -> None:
        """Turn ``sort`` round."""
        self._turned ^= {sort}

    def descends(self, sort: Sort) -> bool:
        """Whether the most comes first in ``sort``."""
        return sort.is_descending_first ^ (sort in self._turned)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What decides about rows besides the query."""

    filters: Filters = field(default_factory=Filters)
    sort: Sort = Sort.POPULAR
    descending: bool = True
    chosen: str = ""
    """Key of the model in the window, which stays in the list whether it fits or not."""

    @property
    def arrow(self) -> str:
        """Which way the order goes."""
        return "\N{DOWNWARDS ARROW}" if self.descending else "\N{UPWARDS ARROW}"


def is_reference(text: str, endpoint: str) -> bool:
    """Whether ``text`` names one model by its form (path, link, tag, a config)."""
    if text.startswith("{") or "://" in text:
        return True
    try:
        found = parse(text, endpoint)
    except SourceError:
        return False
    if isinstance(found, HubReference):
        return bool(found.file or found.revision) or "." in text.split("/", 1)[0]
    return found is not None


def summary(
    rows: Sequence[Row],
    badges: Mapping[str, Badge],
    plan: tuple[Deployment, Machine] | None,
) -> str:
    """``41 of 96 fit 8,192 x 4 on RTX 4090``."""
    if not rows:
        return ""
    known = [badges[row.key] for row in rows if row.key in badges]
    if plan is None or not known:
        return tr_count("{number} model", "{number} models", len(rows)).format(
            number=count(len(rows))
        )
    good = sum(1 for badge in known if badge.fit in _GOOD)
    deployment, machine = plan
    return tr("{fitting} of {number} fit {what} on {place}").format(
        fitting=count(good),
        number=count(len(rows)),
        what=_asked(deployment) or tr("this plan"),
        place=place(deployment, machine),
    )


def answer_summary(rows: Arranged, source: Source, *, has_more: bool) -> str:
    """``12 here, 50 from the Hub, more below``: how many answer, whatever the filters say."""
    found = rows.only_on_the_hub
    if source is Source.HUB:
        words = tr("{number} loaded").format(number=count(rows.answering))
    else:
        words = tr("{here} here, {found} from the Hub").format(
            here=count(rows.answering - found), found=count(found)
        )
    return tr("{number}, more below").format(number=words) if has_more else words


def plan_words(deployment: Deployment, machine: Machine) -> str:
    """``RTX 4090, 8,192 x 4, vLLM``."""
    runtime = registry.get(deployment.runtime).label
    parts = (place(deployment, machine), _asked(deployment), runtime)
    return ", ".join(part for part in parts if part)


def _asked(deployment: Deployment) -> str:
    """``8,192 x 4``; empty where the runtime decides the context."""
    if deployment.max_model_len is None:
        return ""
    return f"{count(deployment.max_model_len)} {TIMES} {deployment.concurrency}"


def is_told_apart(before: Deployment, now: Deployment) -> bool:
    """Whether the count line says of which of two plans on one machine it is."""
    said = before.with_(max_model_len=now.max_model_len, concurrency=now.concurrency)
    return said == now or before.ranks != now.ranks


def place(deployment: Deployment, machine: Machine) -> str:
    """Short name of where the plan runs: ``RTX 4090``, ``2 x RTX 4090`` for two ranks."""
    names = {slot.device.name for slot in machine.slots}
    by_ranks = registry.family(deployment.runtime) in _BY_RANKS
    if not names or (len(names) > 1 and not by_ranks):
        return tr(machine.name)
    devices = deployment.ranks if by_ranks else len(machine.slots)
    name = tr(machine.slots[0].device.name)
    return f"{devices} {TIMES} {name}" if devices > 1 else name


def nothing_left(
    arranged: Arranged, badges: Mapping[str, Badge], filters: Filters, unit: UnitSystem
) -> tuple[str, str, Group | None]:
    """Title and detail for a list that the filters leave empty, and the filter to loosen.

    None where no single one would bring a model back.
    """
    whole = count(arranged.answering)
    loosened = arranged.loosened(filters)
    passes = tr("None of {whole} passes the filters").format(whole=whole)
    if loosened is None:
        return passes, tr("It takes more than one to let any in."), None
    group, row = loosened
    if group is not Group.FIT:
        far = _far(group, row, unit)
        detail = (
            tr("Nearest: {name}, {far}. Kept out by: {filter}")
            if far
            else tr("Nearest: {name}. Kept out by: {filter}")
        )
        return passes, detail.format(name=row.name, far=far, filter=tr(group.value)), group
    badge = badges.get(row.key)
    if badge is None or badge.margin_bytes is None or badge.margin_bytes >= 0:
        return passes, tr("Nearest: {name}").format(name=row.name), group
    over = margin(-badge.margin_bytes, unit).removeprefix("+")
    detail = tr("Nearest: {name}, {over} over").format(name=row.name, over=over)
    return tr("None of {whole} fits").format(whole=whole), detail, group


def _far(group: Group, row: Row, unit: UnitSystem) -> str:
    """What the row has of what ``group`` asks for."""
    words = {
        Group.PARAMETERS: parameters_short(row.parameters) if row.parameters else "",
        Group.WEIGHTS: format_bytes(row.weight_bytes, unit, digits=1) if row.weight_bytes else "",
        Group.CONTEXT: tr("{tokens} context").format(tokens=tokens_short(row.context))
        if row.context
        else "",
        Group.FORMAT: row.weight_format,
        Group.QUANT: row.weight_format,
        Group.AUTHOR: row.owner,
        Group.LICENCE: row.licence,
        Group.ACCESS: tr("gated") if row.gated else "",
        Group.UPDATED: tr("updated {day}").format(day=row.updated[:10]) if row.updated else "",
    }
    return words.get(group, "")


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
