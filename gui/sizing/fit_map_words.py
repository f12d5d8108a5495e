"""The fit map and the curve in words and numbers, ready to show. Pure functions."""

from __future__ import annotations

from dataclasses import dataclass
from math import isnan
from typing import TYPE_CHECKING

from engine.budget.drawn import drawn_bytes
from engine.budget.model import STACK_ORDER, Region
from engine.fit.fit_map import octaves
from engine.fit.margin_classes import CLASSES
from engine.fit.verdict import Fit
from engine.words import figures, tr, tr_later
from gui.kit import format as fmt
from gui.kit.charts.captions import bound_sign, drawn_sign
from gui.sizing.plan import format_label

if TYPE_CHECKING:
    from engine.budget.model import RankBudget
    from engine.fit.curve import Curve
    from engine.fit.fit_map import FitMap, MarginTable
    from engine.sizing import Sizing
    from engine.units import UnitSystem
    from gui.sizing.view_model import State

DRAG_HINT = tr_later("Drag the point, or use the arrow keys. Both change the plan above.")
CURVE_HINT = tr_later("Everything else stays as it is in the plan above.")


@dataclass(frozen=True, slots=True)
class Row:
    """A name and its figure; ``color`` or ``region`` gives it a swatch."""

    name: str
    value: str = ""
    tooltip: str = ""
    is_strong: bool = False
    color: str = ""
    region: Region | None = None


@dataclass(frozen=True, slots=True)
class Grid:
    """A table: headings, and texts row by row."""

    corner: str
    columns: tuple[str, ...]
    rows: tuple[str, ...]
    texts: tuple[tuple[str, ...], ...]
    tooltips: tuple[tuple[str, ...], ...]


def point_text(state: State) -> str:
    """``8,192 × 4: +1.3 GiB``."""
    requests = fmt.count(state.plan.deployment.concurrency)
    where = f"{fmt.count(state.context or 0)} {fmt.TIMES} {requests}"
    return f"{where}: {_margin(state)}" if state.sizing else where


def _margin(state: State) -> str:
    assert state.sizing is not None  # noqa: S101 - asked only where there is an answer
    found = state.sizing.verdict
    if found.refusals:
        return tr("refused")
    if found.fit is Fit.UNKNOWN:
        return tr("unknown")
    return fmt.margin(found.margin_bytes, state.unit)


def plan_words(context: int, requests: int, margin_bytes: int | None, unit: UnitSystem) -> str:
    """What a tooltip says of a plan on the map."""
    where = _where(context, requests)
    if margin_bytes is None:
        return tr("{where}: unknown, or not offered").format(where=where)
    text = tr("{where}: {size} over ({bytes})")
    if margin_bytes >= 0:
        text = tr("{where}: {size} to spare ({bytes})")
    size = fmt.size(abs(margin_bytes), unit)
    return text.format(where=where, size=size, bytes=fmt.exact_bytes(abs(margin_bytes)))


def _where(context: int, requests: int) -> str:
    return tr("{context} tokens × {requests} at once").format(
        context=fmt.count(context), requests=fmt.count(requests)
    )


def point_rows(sizing: Sizing, unit: UnitSystem) -> tuple[Row, ...]:
    """What is needed and held at the plan point, on the rank that decides."""
    verdict, budget = sizing.verdict, sizing.budget
    rank = budget.ranks[verdict.binding_rank]
    held = rank.regions[Region.KV_CACHE].estimate
    sign = bound_sign(budget, Region.KV_CACHE, rank.needed)
    rows = [_size(tr("KV cache needed"), rank.needed.likely_bytes, unit, sign)]
    if rank.has_pool:
        rows.append(_size(tr("KV cache reserved"), held.likely_bytes, unit))
    if verdict.fit is Fit.UNKNOWN:
        rows.append(Row(tr("To spare"), tr("unknown"), verdict.detail, is_strong=True))
    else:
        margin = verdict.margin_bytes
        name = tr("To spare") if margin >= 0 else tr("Over")
        rows.append(_size(name, abs(margin), unit, is_strong=True))
    rows.append(Row(tr("Limited by"), verdict.binding_region.label, verdict.detail))
    return tuple(rows)


def _size(
    name: str, size_bytes: int, unit: UnitSystem, sign: str = "", *, is_strong: bool = False
) -> Row:
    text = f"{sign}{fmt.size(size_bytes, unit)}"
    return Row(name, text, fmt.exact_bytes(size_bytes), is_strong)


def region_rows(sizing: Sizing, rank: int, unit: UnitSystem) -> tuple[Row, ...]:
    """The plan's own stack, from the top, with the colours of the curve."""
    budget = sizing.budget
    found = budget.ranks[min(rank, len(budget.ranks) - 1)]
    rows = [
        Row(
            region.label,
            drawn_sign(budget, found, region) + fmt.size(drawn_bytes(found, region), unit),
            fmt.exact_bytes(drawn_bytes(found, region)),
            region=region,
        )
        for region in reversed(STACK_ORDER)
        if drawn_bytes(found, region)
    ]
    line = found.slot.device.allocatable.likely_bytes
    tip = fmt.exact_bytes(line)
    load = Row(tr("Load line"), fmt.size(line, unit), tip, is_strong=True, color="chart.loadline")
    return (load, *rows)


def no_figure(found: FitMap) -> tuple[str, str]:
    """A word for cells without a margin, and why there are some; both empty where all have one."""
    if found.refused:
        return tr("Refused"), found.refused
    if found.unknown:
        return tr("Unknown"), found.unknown
    has_gaps = any(isnan(margin) for row in found.margins for margin in row)
    return (
        (tr("Not offered"), tr("The runtime doesn’t take these plans.")) if has_gaps else ("", "")
    )


def legend(edges: tuple[int, ...], unit: UnitSystem, other: str) -> tuple[Row, ...]:
    """The classes of margin, most to spare first, and a word for cells that have none."""
    far, near, _, low, high = (_plain(abs(edge), unit) for edge in edges)
    words = (
        tr("more than {size} {unit} over").format(size=far, unit=unit.value),
        tr("{low} to {high} {unit} over").format(low=near, high=far, unit=unit.value),
        tr("up to {size} {unit} over").format(size=near, unit=unit.value),
        tr("{low} to {high} {unit}").format(low=0, high=low, unit=unit.value),
        tr("{low} to {high} {unit}").format(low=low, high=high, unit=unit.value),
        tr("more than {size} {unit}").format(size=high, unit=unit.value),
    )
    pairs = reversed(list(zip(words, CLASSES, strict=True)))
    rows = [Row(text, color=color) for text, color in pairs]
    if other:
        rows.append(Row(other.lower(), color="unknown"))
    return tuple(rows)


def _plain(size_bytes: int, unit: UnitSystem) -> str:
    return figures(f"{size_bytes / unit.factor:g}")


def cache_label(name: str) -> str:
    """``FP8 KV cache`` for a type as the runtime calls it."""
    kind = name.replace(" ", "-") if name.endswith("bit") else format_label(name)
    return tr("{format} KV cache").format(format=kind)


def summary(state: State, found: FitMap | None) -> tuple[str, str]:
    """The map for those who hear it: one sentence, and what lies around."""
    if state.sizing is None:
        return tr("Fit map: no plan yet"), ""
    context, requests = state.context or 0, state.plan.deployment.concurrency
    verdict = state.sizing.verdict
    name = tr("Fit map: {plan}. {headline}").format(
        plan=_where(context, requests), headline=verdict.headline
    )
    if found is None:
        return name, ""
    shown = found.axes
    sentences = [
        tr("Contexts from {least} to {most} tokens, 1 to {requests} at once.").format(
            least=fmt.count(shown.least_context),
            most=fmt.count(shown.most_context),
            requests=fmt.count(shown.most_requests),
        )
    ]
    word, reason = no_figure(found)
    if word:
        sentences.append(tr("{answer} in part: {reason}").format(answer=word, reason=reason))
    limits = state.limits
    if limits and limits.max_context is not None and limits.max_concurrency is not None:
        sentences.append(
            tr(
                "With {requests} at once up to {longest} tokens fit; at {context} tokens up to "
                "{most} at once."
            ).format(
                requests=fmt.count(requests),
                longest=fmt.count(limits.max_context),
                context=fmt.count(context),
                most=fmt.count(limits.max_concurrency),
            )
        )
    sentences.append(tr("Arrow keys move the plan."))
    return name, " ".join(sentences)


def curve_summary(state: State, rank: RankBudget | None) -> tuple[str, str]:
    """The curve for those who hear it."""
    if state.sizing is None or rank is None:
        return tr("Curve: no plan yet"), ""
    requests = state.plan.deployment.concurrency
    line = fmt.size(rank.slot.device.allocatable.likely_bytes, state.unit)
    name = tr("Memory over context with {requests} at once, under the load line at {size}").format(
        requests=fmt.count(requests), size=line
    )
    longest = state.limits.max_context if state.limits else None
    sentences = [f"{state.sizing.verdict.headline}."]
    if longest:
        sentences.append(tr("Fits up to {tokens} tokens.").format(tokens=fmt.count(longest)))
    sentences.append(tr("Left and right move the plan."))
    return name, " ".join(sentences)


def margin_grid(found: MarginTable, unit: UnitSystem) -> Grid:
    """The map in figures: margins, requests down and contexts across."""
    return Grid(
        tr("At once, {unit}").format(unit=unit.value),
        tuple(fmt.count(tokens) for tokens in found.contexts),
        tuple(fmt.count(requests) for requests in found.requests),
        tuple(
            tuple(
                tr("unknown") if isnan(m) else fmt.margin(int(m), unit).rpartition(" ")[0]
                for m in row
            )
            for row in found.margins
        ),
        tuple(
            tuple(
                plan_words(tokens, requests, None if isnan(m) else int(m), unit)
                for tokens, m in zip(found.contexts, row, strict=True)
            )
            for requests, row in zip(found.requests, found.margins, strict=True)
        ),
    )


def curve_grid(found: Curve, rank: int, unit: UnitSystem) -> Grid:
    """The curve in figures: regions down and contexts across."""
    wanted = octaves(found.contexts[0], found.contexts[-1])
    indexes = sorted({_nearest(found.contexts, tokens) for tokens in wanted})
    ranks = [_rank(found, index, rank) for index in indexes]
    regions = [r for r in reversed(STACK_ORDER) if any(k and drawn_bytes(k, r) for k in ranks)]
    return Grid(
        tr("Region, {unit}").format(unit=unit.value),
        tuple(fmt.count(found.contexts[index]) for index in indexes),
        (tr("Load line"), *(region.label for region in regions)),
        (
            tuple(
                fmt.size_number(k.slot.device.allocatable.likely_bytes, unit) if k else fmt.DASH
                for k in ranks
            ),
            *(
                tuple(_drawn(found, i, k, r, unit) for i, k in zip(indexes, ranks, strict=True))
                for r in regions
            ),
        ),
        (
            tuple(
                fmt.exact_bytes(k.slot.device.allocatable.likely_bytes) if k else "" for k in ranks
            ),
            *(
                tuple(fmt.exact_bytes(drawn_bytes(k, r)) if k else "" for k in ranks)
                for r in regions
            ),
        ),
    )


def _drawn(
    found: Curve, index: int, rank: RankBudget | None, region: Region, unit: UnitSystem
) -> str:
    budget = found.budgets[index]
    if rank is None or budget is None:
        return fmt.DASH
    return drawn_sign(budget, rank, region) + fmt.size_number(drawn_bytes(rank, region), unit)


def _nearest(contexts: tuple[int, ...], tokens: int) -> int:
    return min(range(len(contexts)), key=lambda index: abs(contexts[index] - tokens))


def _rank(found: Curve, index: int, rank: int) -> RankBudget | None:
    budget = found.budgets[index]
    return budget.ranks[rank] if budget and rank < len(budget.ranks) else None
