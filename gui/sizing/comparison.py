"""Plans side by side: what each is called, what differs from the first, and its figures. No Qt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.budget.drawn import drawn_bytes, needed_bytes
from engine.budget.model import Region
from engine.fit.verdict import Fit
from engine.runtimes import registry
from engine.runtimes.loading import loaded
from engine.units import UnitSystem
from engine.words import tr, tr_count, tr_later
from gui.kit import format as fmt
from gui.kit.charts.captions import bound_sign, drawn_sign, is_open
from gui.sizing import beside, present
from gui.sizing.markdown import escaped
from gui.sizing.plan import format_label, short_version

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from engine.architecture.model import Model
    from engine.budget.model import Budget, RankBudget
    from engine.fit.solve import Limits
    from engine.sizing import Sizing
    from engine.together import Placed
    from gui.sizing.plan import Plan

MOST = 6
"""Plans that can be compared at once."""
_LETTERS = "ABCDEF"
_COLUMNS = (
    (tr_later("State"), Region.RECURRENT_STATE),
    (tr_later("Activations"), Region.ACTIVATIONS),
    (tr_later("Graphs"), Region.CUDA_GRAPHS),
    (tr_later("Runtime"), Region.RUNTIME),
    (tr_later("Slack"), Region.ALLOCATOR),
    (tr_later("Headroom"), Region.HEADROOM),
    (tr_later("Others"), Region.FOREIGN),
)


@dataclass(frozen=True, slots=True)
class Pinned:
    """A plan that was put aside."""

    model: Model
    plan: Plan


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """A plan with its answer on the machine as it is now."""

    pinned: Pinned
    sizing: Sizing | None
    problem: str = ""
    """Why there is no answer."""
    limits: Limits | None = None
    """None while they are searched."""
    beside: tuple[Placed, ...] = ()
    """The other models of the machine, where they came to lie."""

    @property
    def outcome(self) -> Fit | None:
        """The verdict on all models of the machine; None where there is no answer."""
        return None if self.sizing is None else beside.outcome(self.sizing, self.beside)

    def verdict(self, unit: UnitSystem) -> str:
        """The verdict in words, or why there is none."""
        if self.sizing is None:
            return self.problem
        return present.headline_of(self.sizing, self.beside, unit)

    @property
    def rank(self) -> RankBudget | None:
        """The rank that binds: the one to look at."""
        if self.sizing is None:
            return None
        bound = self.sizing.verdict.binding_rank
        return next((r for r in self.sizing.budget.ranks if r.rank == bound), None)


@dataclass(frozen=True, slots=True)
class Word:
    """A part of a plan's name, and whether it differs from the first plan's."""

    text: str
    differs: bool


@dataclass(frozen=True, slots=True)
class Line:
    """One row of the table of figures."""

    letter: str
    cells: tuple[Word, ...]


def letter(index: int) -> str:
    """``A`` for the first plan."""
    return _LETTERS[index]


def names(entries: Sequence[Entry]) -> list[tuple[tuple[Word, ...], ...]]:
    """Three lines a plan: model; formats and load; runtime and device."""
    told = [_parts(entry) for entry in entries]
    loads = {(entry.pinned.plan.deployment.concurrency, _context(entry)) for entry in entries}
    shown: list[tuple[tuple[Word, ...], ...]] = []
    for parts in told:
        model, weights, cache, load, runtime, device = (
            Word(text, text != first) for text, first in zip(parts, told[0], strict=True)
        )
        second = (weights, cache) if len(loads) == 1 else (weights, cache, load)
        shown.append(((model,), second, (runtime, device)))
    return shown


def _parts(entry: Entry) -> tuple[str, ...]:
    """Model, weights, cache, load, runtime, device."""
    model, plan = entry.pinned.model, entry.pinned.plan
    asked = plan.deployment
    runtime = registry.get(asked.runtime)
    settled = entry.sizing.budget.deployment if entry.sizing else asked
    weights = asked.weight_format
    if weights == "auto":
        weights = loaded(model, asked.runtime).name
    cache = settled.cache_type_k or settled.kv_cache_dtype
    if cache == "auto":
        cache = model.spec.kv_cache_dtype or model.spec.dtype
    version = short_version(asked.runtime_version or runtime.versions[0])
    context = _context(entry)
    tokens = fmt.count(context) if context else tr("its own context")
    return (
        model.id.rsplit("/", 1)[-1],
        format_label(weights),
        f"KV {format_label(cache)}",
        f"{tokens} {fmt.TIMES} {fmt.count(asked.concurrency)}",
        f"{runtime.label} {version}",
        _device(entry),
    )


def _context(entry: Entry) -> int | None:
    chosen = entry.pinned.plan.deployment.max_model_len
    if chosen is None and entry.sizing:
        return entry.sizing.budget.deployment.max_model_len
    return chosen


def _device(entry: Entry) -> str:
    others = len(entry.pinned.plan.beside)
    words = tr_count(", beside {count} model", ", beside {count} models", others)
    return _machine(entry) + (words.format(count=others) if others else "")


def _machine(entry: Entry) -> str:
    plan, count = entry.pinned.plan, entry.pinned.plan.deployment.ranks
    if plan.device is not None:
        shown = entry.sizing.budget.machine.name if entry.sizing else plan.device
        if plan.host_total_bytes is None:
            return shown
        ram = fmt.size(plan.host_total_bytes, UnitSystem.BINARY, digits=0)
        return tr("{device}, {size} RAM").format(device=shown, size=ram)
    name = entry.sizing.budget.machine.slots[0].device.name if entry.sizing else tr("this computer")
    shown = f"{count} {fmt.TIMES} {name}" if count > 1 else name
    if entry.sizing and entry.sizing.budget.machine.is_corrected:
        shown = tr("{device} (corrected)").format(device=shown)
    return tr("{device}, emptied").format(device=shown) if plan.emptied else shown


def load_words(entries: Sequence[Entry]) -> str:
    """Whose figures these are and what all plans share, for the line below the table."""
    words = [tr("Bold: differs from plan A.")]
    if any(entry.pinned.plan.deployment.ranks > 1 for entry in entries):
        words.append(tr("Of several devices: the fullest."))
    loads = {(_context(entry), entry.pinned.plan.deployment.concurrency) for entry in entries}
    if len(loads) == 1:
        context, concurrency = loads.pop()
        tokens = tr("their own context")
        if context:
            tokens = tr("{count} tokens").format(count=fmt.count(context))
        told = tr("All plans: {tokens}, {concurrency} at once.")
        words.append(told.format(tokens=tokens, concurrency=fmt.count(concurrency)))
    return " ".join(words)


def headings(entries: Sequence[Entry], unit: UnitSystem) -> tuple[str, ...]:
    """The table's columns."""
    columns = [tr(name) for name, _ in _columns(entries)]
    return (
        tr("Plan, {unit}").format(unit=unit.value),
        tr("Weights"),
        tr("KV needed"),
        tr("KV reserved"),
        *columns,
        tr("Load line"),
    )


def lines(entries: Sequence[Entry], unit: UnitSystem) -> tuple[Line, ...]:
    """The table: the fullest rank of every plan, region by region."""
    if not entries:
        return ()
    columns = _columns(entries)
    rows = [_cells(entry, columns, unit) for entry in entries]
    return tuple(
        Line(letter(i), tuple(Word(c, c != first) for c, first in zip(row, rows[0], strict=True)))
        for i, row in enumerate(rows)
    )


def _columns(entries: Iterable[Entry]) -> list[tuple[str, Region]]:
    """Recurrent state has a column only where some plan has any."""
    ranks = [entry.rank for entry in entries]
    has_state = any(rank and drawn_bytes(rank, Region.RECURRENT_STATE) for rank in ranks)
    return [column for column in _COLUMNS if has_state or column[1] != Region.RECURRENT_STATE]


def _cells(
    entry: Entry, columns: Sequence[tuple[str, Region]], unit: UnitSystem
) -> tuple[str, ...]:
    rank = entry.rank
    if rank is None or entry.sizing is None:
        return (fmt.DASH,) * (len(columns) + 4)
    budget = entry.sizing.budget
    cache = rank.regions[Region.KV_CACHE].estimate
    needed_sign = bound_sign(budget, Region.KV_CACHE, rank.needed)
    held_sign = bound_sign(budget, Region.KV_CACHE, cache)
    return (
        _drawn(budget, rank, Region.WEIGHTS, unit),
        _size(needed_bytes(rank), unit, needed_sign),
        _size(cache.likely_bytes, unit, held_sign),
        *(_drawn(budget, rank, region, unit) for _, region in columns),
        _size(rank.slot.device.allocatable.likely_bytes, unit),
    )


def _drawn(budget: Budget, rank: RankBudget, region: Region, unit: UnitSystem) -> str:
    size = drawn_bytes(rank, region)
    if not size and is_open(budget, rank, region):
        return tr("unknown")
    return _size(size, unit, drawn_sign(budget, rank, region))


def _size(size_bytes: int, unit: UnitSystem, sign: str = "") -> str:
    """The figure with the sign of a bound; a word where there is none of it."""
    return f"{sign}{fmt.size_number(size_bytes, unit)}" if size_bytes else tr("none")


def margin_words(entry: Entry, unit: UnitSystem) -> str:
    """``+1.3 GiB``: of the model that decides; where one is refused or unknown, none counts."""
    if entry.sizing is None:
        return ""
    worst = beside.deciding(entry.sizing, entry.beside)
    verdict = worst.sizing.verdict if worst is not None else entry.sizing.verdict
    if verdict.outcome is Fit.UNKNOWN:
        return tr("Unknown")
    return tr("Won’t start") if verdict.refusals else fmt.margin(verdict.margin_bytes, unit)


def limits_words(entry: Entry) -> tuple[str, str]:
    """Longest context and most at once; dashes while they are searched."""
    found = entry.limits
    most = (found.max_context, found.max_concurrency) if found else (None, None)
    longest, at_once = (
        fmt.DASH if number is None else fmt.count(number) if number else tr("none")
        for number in most
    )
    return longest, at_once


def markdown(entries: Sequence[Entry], unit: UnitSystem) -> str:
    """The comparison as one Markdown table."""
    heads = (
        unit.value,
        tr("Plan"),
        tr("Verdict"),
        tr("Longest context"),
        tr("Most at once"),
        *headings(entries, unit)[1:],
    )
    rows = [f"| {' | '.join(heads)} |", f"|{'---|' * 3}{'---:|' * (len(heads) - 3)}"]
    figures = lines(entries, unit)
    for entry, words, line in zip(entries, names(entries), figures, strict=True):
        named = "; ".join(", ".join(word.text for word in part) for part in words)
        verdict = entry.verdict(unit)
        cells = (line.letter, named, verdict, *limits_words(entry), *(w.text for w in line.cells))
        rows.append(f"| {' | '.join(escaped(cell) for cell in cells)} |")
    return "\n".join(rows) + "\n"


def sentence(
    entry: Entry, words: tuple[tuple[Word, ...], ...], index: int, unit: UnitSystem
) -> str:
    """The plan for those who hear it."""
    named = ", ".join(word.text for part in words for word in part)
    verdict = entry.verdict(unit)
    longest, most = limits_words(entry)
    return tr(
        "Plan {letter}: {named}. {verdict}. Longest context {longest}, most at once {most}."
    ).format(letter=letter(index), named=named, verdict=verdict, longest=longest, most=most)
