"""What the room shows of a run, as words and rows. Values only; no Qt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.fit.verdict import Fit
from engine.logs import words
from engine.logs.why import happened
from engine.units import MIB, format_gib
from engine.words import grouped, tr
from gui.kit import format as fmt

if TYPE_CHECKING:
    from engine.budget.model import Region
    from engine.logs.reconcile import RankRows, Row
    from engine.logs.remedies import Remedy
    from engine.units import UnitSystem
    from gui.log.view_model import LogState

_COLORS = {Fit.FITS: "fits", Fit.TIGHT: "tight", Fit.DOES_NOT_FIT: "over", Fit.UNKNOWN: "unknown"}
_NEAR_BYTES = 200 * MIB
"""A difference of less is not worth a sentence of its own."""


@dataclass(frozen=True, slots=True)
class RunWords:
    """The sentence over the room."""

    headline: str
    detail: str
    color: str
    icon: str


@dataclass(frozen=True, slots=True)
class RegionLine:
    """One row of the table."""

    region: Region
    stated: str
    predicted: str
    difference: str
    lines: str
    stands_out: bool
    """Whether what is stated lies outside the prediction's range, by more than a little."""
    tooltip: str
    first_line: int
    """The line of the log to go to; 0 where it states nothing."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A heading with its text."""

    heading: str
    text: str


def run_words(state: LogState) -> RunWords:
    """Headline, detail and mark."""
    run = state.run
    cause = run.cause
    if cause is None:
        color, icon = "fits", "check"
    elif cause.is_soft:
        color, icon = "tight", "triangle-alert"
    else:
        color, icon = "over", "x"
    said = happened(cause, run.reading, state.unit)
    detail = " ".join(said) or words.about(run.reading)
    return RunWords(words.headline(cause, run.reading, state.unit), detail, color, icon)


def region_lines(state: LogState) -> tuple[RegionLine, ...]:
    """The rows of the rank that is shown: every region that is stated or planned."""
    rows = _rows(state)
    if rows is None:
        return ()
    return tuple(
        _line(row, state.unit)
        for row in rows.rows
        if row.stated is not None or (row.predicted is not None and row.predicted.likely_bytes)
    )


def _rows(state: LogState) -> RankRows | None:
    found = state.run.rows
    return found[state.rank] if state.rank < len(found) else None


def _line(row: Row, unit: UnitSystem) -> RegionLine:
    stated, predicted, difference = row.stated, row.predicted, row.difference_bytes
    exact: list[str] = []
    if stated is not None:
        text = tr("Stated: {size}, rounded by {half} at most")
        size, half = fmt.exact_bytes(stated.size_bytes), fmt.exact_bytes(stated.half_bytes)
        exact.append(text.format(size=size, half=half))
    if predicted is not None:
        text = tr("Predicted: {size}, between {low} and {high}")
        low = format_gib(predicted.low_bytes, unit)
        high = format_gib(predicted.high_bytes, unit)
        size = fmt.exact_bytes(predicted.likely_bytes)
        exact.append(text.format(size=size, low=low, high=high))
    return RegionLine(
        region=row.region,
        stated=fmt.size_number(stated.size_bytes, unit) if stated else fmt.DASH,
        predicted=fmt.size_number(predicted.likely_bytes, unit) if predicted else fmt.DASH,
        difference=fmt.DASH if difference is None else _signed(difference, unit),
        lines=", ".join(grouped(n) for n in stated.lines) if stated else "",
        stands_out=row.agrees is False and abs(difference or 0) >= _NEAR_BYTES,
        tooltip="\n".join(exact),
        first_line=stated.lines[0] if stated and stated.lines else 0,
    )


def _signed(size_bytes: int, unit: UnitSystem) -> str:
    """A difference; one that rounds to nothing has no sign."""
    text = format_gib(size_bytes, unit, signed=True, unit=False)
    return text if any(c in "123456789" for c in text) else text[1:]


def rank_names(state: LogState) -> tuple[str, ...]:
    """The ranks whose rows can be shown."""
    return tuple(
        rows.name or tr("Rank {rank}").format(rank=place)
        for place, rows in enumerate(state.run.rows)
    )


def passages(state: LogState) -> tuple[Passage, ...]:
    """What stands below the table."""
    run = state.run
    found: list[Passage] = []
    said = happened(run.cause, run.reading, state.unit)
    if said:
        found.append(Passage(tr("What happened"), " ".join(said)))
    if run.plan is not None:
        found.append(Passage(tr("Where the plan was off"), _off(state)))
        model = tr("Predicted for {model}.").format(model=run.plan.model.id)
        found.append(Passage(tr("What the prediction rests on"), " ".join((model, *run.notes))))
    else:
        found.append(Passage(tr("Not predicted"), run.unplanned))
    return tuple(found)


def _off(state: LogState) -> str:
    """The regions that lie outside their range, the largest difference first."""
    rows = _rows(state)
    if rows is None or all(row.agrees is None for row in rows.rows):
        return tr("The log states no region.")
    off = [
        r for r in rows.rows if r.agrees is False and abs(r.difference_bytes or 0) >= _NEAR_BYTES
    ]
    if not off:
        most = format_gib(_NEAR_BYTES, state.unit, digits=1)
        return tr("Nowhere by more than {size}.").format(size=most)
    off.sort(key=lambda row: -abs(row.difference_bytes or 0))
    return " ".join(_sentence(row, state.unit) for row in off)


def _sentence(row: Row, unit: UnitSystem) -> str:
    difference = row.difference_bytes or 0
    text = tr("{region}: {size} above the plan.")
    if difference < 0:
        text = tr("{region}: {size} below the plan.")
    size = format_gib(abs(difference), unit)
    return text.format(region=row.region.label, size=size)


def remedy_color(remedy: Remedy) -> str:
    """The colour of a remedy's margin."""
    return _COLORS[remedy.fit or Fit.UNKNOWN]


def remedy_margin(remedy: Remedy, unit: UnitSystem) -> str:
    """``+0.8 GiB``; empty where it is not known."""
    if remedy.margin_bytes is None:
        return ""
    return format_gib(remedy.margin_bytes, unit, digits=1, signed=True)


def _helped(remedy: Remedy, unit: UnitSystem) -> str:
    margin = remedy_margin(remedy, unit)
    return f"{remedy.label} ({margin})" if margin else remedy.label


def balance(state: LogState) -> str:
    """How the device adds up at the failure."""
    return words.balance(state.run.cause, state.unit) if state.run.cause else ""


def markdown(state: LogState) -> str:
    """The run as Markdown: for an issue."""
    said = run_words(state)
    heads = (tr("Region"), tr("Stated"), tr("Predicted"), tr("Difference"), tr("Line"))
    rows = [f"| {' | '.join(heads)} |", "|---|--:|--:|--:|--:|"]
    rows += [
        f"| {r.region.label} | {r.stated} | {r.predicted} | {r.difference} | {r.lines} |"
        for r in region_lines(state)
    ]
    helped = ", ".join(_helped(one, state.unit) for one in state.run.remedies)
    parts = [
        f"**{said.headline}**",
        said.detail,
        balance(state),
        "\n".join(rows),
        f"{tr('What would have helped')}: {helped}" if helped else "",
        f"{words.about(state.run.reading)} · {state.unit.value}",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"
