"""The answer of ``plimsoll size`` for people: verdict, picture in one line, table, limits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.budget.drawn import drawn_bytes, drawn_estimate
from engine.budget.model import STACK_ORDER, RankBudget, Region
from engine.budget.phases import peaks
from engine.cli.look import Look, fitted, wrapped
from engine.evidence import Basis
from engine.fit.judge import rank_margin
from engine.runtimes import unpacking
from engine.runtimes.loading import in_words, loaded
from engine.runtimes.registry import RUNTIMES
from engine.units import format_gib

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from engine.architecture.spec import Direction
    from engine.budget.model import Budget, LlamaCppBuffers
    from engine.contract.answer import Notes
    from engine.fit.changes import Change
    from engine.fit.inverse import Answer
    from engine.fit.solve import Limits
    from engine.sizing import Sizing

_NAME, _NUMBER, _RANGE, _BASIS = 17, 9, 19, 9
_TABLE = 2 + _NAME + _NUMBER + 2 + _RANGE + 2 + _NUMBER + 2 + _BASIS
_WITH_RANGE = 2 + _NAME + _NUMBER + 2 + _RANGE + 2 + _BASIS
_BUFFERS = 2 + 24 + 4 * 12
_MOST_RANKS = 8


def describe(
    sizing: Sizing,
    limits: Limits,
    notes: Notes,
    look: Look,
    ways: Sequence[Change] = (),
    inverse: Sequence[Answer] = (),
) -> Iterator[str]:
    """The lines of the answer.

    Args:
        sizing: budget and verdict.
        limits: how far the plan could go.
        notes: what the request left open.
        look: of the terminal.
        ways: the changes that would make it fit.
        inverse: answers to the inverse questions, where they were asked.
    """
    budget = sizing.budget
    yield from _heading(budget, look)
    yield ""
    yield from _verdict(sizing, notes, look)
    yield from _would_fit(ways, look)
    for ranks in _alike(budget.ranks)[:_MOST_RANKS]:
        yield ""
        yield from _rank(budget, ranks, notes, look)
    if budget.llama_cpp is not None:
        yield ""
        yield from _buffers(budget.llama_cpp, look)
    yield ""
    yield from _paragraph("KV", [budget.sequence_state.formula], look)
    yield from _paragraph("Limits", [_limits(limits)] if notes.capacity_known else [], look)
    yield from _inverse(inverse, look)
    yield from _paragraph("Assumed", [*notes.assumptions, *budget.assumptions], look)
    yield from _paragraph("Careful", _cautions(budget, notes), look)


def _heading(budget: Budget, look: Look) -> Iterator[str]:
    model, plan = budget.model, budget.deployment
    revision = f" at {model.revision[:12]}" if model.revision else ""
    parameters = f"{model.parameters:,} parameters"
    yield look.strong(look.line(f"{model.id} · {parameters}"))
    yield look.faint(look.line(f"from {model.source}{revision}"))
    version = f" {plan.runtime_version}" if plan.runtime_version else ""
    length = plan.max_model_len
    context = f"{length:,} token{'s' if length > 1 else ''}" if length else "its default context"
    at_once = "1 request" if plan.concurrency == 1 else f"{plan.concurrency:,} requests"
    parts = [
        f"{RUNTIMES[plan.runtime].label}{version} on {_place(budget)}",
        f"{at_once} × {context}",
        f"weights {_format(budget)}",
        f"KV {plan.kv_cache_dtype}",
    ]
    yield from wrapped(" · ".join(parts), look.width, first="", rest="  ")


def _place(budget: Budget) -> str:
    """The machine, and how many of its devices are used where some are not."""
    machine = budget.machine
    there = sum(slot is not machine.host for slot in machine.slots)
    used = sum(rank.slot is not machine.host for rank in budget.ranks)
    if not 0 < used < there:
        return machine.name
    if machine.name.startswith(f"{there} × "):
        return f"{used} of {machine.name}"
    return f"{used} of the {there} GPUs of {machine.name}"


def _format(budget: Budget) -> str:
    chosen = budget.deployment.weight_format
    unpacked = unpacking.in_words(budget)
    if chosen != "auto":
        return chosen + unpacked
    found = loaded(budget.model, budget.deployment.runtime)
    if found.is_stored:
        return f"as stored ({found.name}){unpacked}"
    return in_words(found, found.name)


def _verdict(sizing: Sizing, notes: Notes, look: Look) -> Iterator[str]:
    verdict = sizing.verdict
    if not notes.capacity_known:
        yield look.strong("? Unknown: the device is not known")
        return
    yield look.verdict(look.line(verdict.headline, look.width - 2), verdict.outcome)
    if verdict.detail:
        yield from wrapped(verdict.detail, look.width, first="  ", rest="  ")


def _would_fit(ways: Sequence[Change], look: Look) -> Iterator[str]:
    if not ways:
        return
    yield ""
    yield look.strong("What would fit")
    room = max(len(way.label) for way in ways)
    for way in ways:
        yield look.line(f"  {way.label:<{room}}  {way.verdict.headline}")


def _alike(ranks: Sequence[RankBudget]) -> list[tuple[RankBudget, ...]]:
    """Neighbouring ranks with the same figures on the same device, shown once."""
    groups: list[list[RankBudget]] = []
    for rank in ranks:
        if groups and _figures(groups[-1][0]) == _figures(rank):
            groups[-1].append(rank)
        else:
            groups.append([rank])
    return [tuple(group) for group in groups]


def _figures(rank: RankBudget) -> object:
    estimates = [rank.regions[region].estimate for region in Region]
    return rank.slot.device.name, [(e.low_bytes, e.likely_bytes, e.high_bytes) for e in estimates]


def _rank(budget: Budget, ranks: tuple[RankBudget, ...], notes: Notes, look: Look) -> Iterator[str]:
    rank = ranks[0]
    device = rank.slot.device
    if len(ranks) == 1:
        title = f"Rank {rank.rank} · {device.name}"
    else:
        title = f"Ranks {rank.rank}–{ranks[-1].rank}, each · {device.name}"
    how = "  How" if look.width > _TABLE + 24 else ""
    least = fitted("least", _NUMBER, right=True) + "  " if look.width >= _TABLE else ""
    head = (
        fitted("GiB", _NUMBER, right=True) + "  " + _span("low – high", look)
        + least + fitted("Basis", _BASIS) + how
    )  # fmt: skip
    yield look.strong(title)
    if look.unicode and notes.capacity_known:
        yield _bar(rank, look)
    yield look.faint(" " * (2 + _NAME) + head)
    for region in Region:
        yield _row(rank, region, budget.direction(region), look)
    yield look.faint("  " + "─" * (_NAME + _NUMBER))
    planned = sum(drawn_bytes(rank, region) for region in Region)
    yield _sum("Planned", planned, _least(rank) if least else "")
    if notes.capacity_known:
        yield _sum("Load line", device.allocatable.likely_bytes)
        left = rank.free_bytes - _missing_bytes(rank)
        if rank.has_pool and left >= 0:
            yield _sum("Spare in the pool", rank_margin(rank).likely_bytes - rank.unmatched_bytes)
        else:
            yield _sum("Left" if left >= 0 else "Over", abs(left))
    yield from _phases(rank, look)


def _phases(rank: RankBudget, look: Look) -> Iterator[str]:
    """The peak of every phase and what drives it."""
    found = peaks(rank)
    most = max(found, key=lambda peak: peak.estimate.likely_bytes)
    yield look.faint(f"  {fitted('Peaks', _NAME)}")
    for peak in found:
        estimate = peak.estimate
        low, high = _gib(estimate.low_bytes), _gib(estimate.high_bytes)
        figure = fitted(_gib(estimate.likely_bytes), _NUMBER, right=True)
        span = _span("" if estimate.is_point else f"{low} – {high}", look)
        head = f"  {fitted(peak.phase.label, _NAME)}{figure}  {span}"
        line = head + look.faint(look.line(peak.driver, max(look.width - len(head), 8)))
        yield look.strong(line) if peak is most else line


def _missing_bytes(rank: RankBudget) -> int:
    """What the plan needs beyond the pool that the runtime reserves; 0 where there is none."""
    if not rank.has_pool:
        return 0
    held = (
        rank.regions[r].estimate.likely_bytes for r in (Region.KV_CACHE, Region.RECURRENT_STATE)
    )
    return max(0, rank.needed.likely_bytes - sum(held))


def _row(rank: RankBudget, region: Region, direction: Direction | None, look: Look) -> str:
    entry, estimate = rank.regions[region], drawn_estimate(rank, region)
    drawn, note = drawn_bytes(rank, region), entry.note
    if estimate is not entry.estimate:
        note = f"Needed by the plan; {_gib(entry.estimate.likely_bytes)} GiB are left"
    sign = direction.sign if direction and estimate.basis is Basis.BOUND else ""
    if estimate.is_point:
        span = ""
    else:
        low, high = _gib(estimate.low_bytes), _gib(estimate.high_bytes)
        span = f"{low} – {high}"
    least = "" if entry.least_bytes is None else _gib(entry.least_bytes)
    least = fitted(least, _NUMBER, right=True) + "  " if look.width >= _TABLE else ""
    figures = (
        fitted(sign + _gib(drawn), _NUMBER, right=True) + "  "
        + _span(span, look) + least + fitted(estimate.basis.word, _BASIS)
    )  # fmt: skip
    name = fitted(entry.region.label, _NAME)
    left = look.width - _TABLE - 2
    how = "  " + look.line(note, left) if left >= 22 and note else ""
    if not estimate.high_bytes:
        return look.faint(f"  {name}{figures}{how}")
    return look.region("■ ", entry.region) + name + figures + look.faint(how)


def _span(text: str, look: Look) -> str:
    """The column of a range; none where the terminal is too narrow for it."""
    return fitted(text, _RANGE, right=True) + "  " if look.width >= _WITH_RANGE else ""


def _sum(name: str, size_bytes: int, least: str = "") -> str:
    row = f"  {fitted(name, _NAME)}{fitted(_gib(size_bytes), _NUMBER, right=True)}"
    return row + " " * (_RANGE + 4) + fitted(least, _NUMBER, right=True) if least else row


def _least(rank: RankBudget) -> str:
    """The sum of what is known to be least; empty where nothing is."""
    known = sum(entry.least_bytes or 0 for entry in rank.regions.values())
    return _gib(known) if known else ""


def _gib(size_bytes: int) -> str:
    return format_gib(size_bytes, unit=False)


def _bar(rank: RankBudget, look: Look) -> str:
    """The one picture in one line: the stack on an axis that ends at the device's total."""
    over = " over the load line"
    width = min(look.width - 3 - len(over), _TABLE)
    line = rank.slot.device.allocatable.likely_bytes
    top = max(rank.slot.device.total_bytes, sum(drawn_bytes(rank, r) for r in STACK_ORDER))
    blocks = ""
    done, reached = 0, 0
    for region in STACK_ORDER:
        reached += drawn_bytes(rank, region)
        end = reached * width // top
        fill = "░" if region is Region.HEADROOM else "█"
        blocks += look.region(fill * (end - done), region)
        done = end
    mark = min(line * width // top, width - 1)
    if done <= mark:
        return f"  {blocks}{' ' * (mark - done)}{look.strong('│')}"
    return f"  {blocks}{look.strong(over)}" if line < reached else f"  {blocks}"


def _buffers(buffers: LlamaCppBuffers, look: Look) -> Iterator[str]:
    tables = {
        "model": buffers.model_buffers,
        "cache": buffers.kv_buffers,
        "state": buffers.rs_buffers,
        "compute": buffers.compute_buffers,
    }
    names = list(dict.fromkeys(name for table in tables.values() for name in table))
    title, output = look.strong("llama.cpp's buffers, MiB"), _mib(buffers.output_buffer)
    if look.width < _BUFFERS:
        yield title
        for name in names:
            held = (
                f"{kind} {_mib(table[name])}" for kind, table in tables.items() if name in table
            )
            text = f"{name}: {' · '.join(held)}"
            yield from wrapped(text, look.width, first="  ", rest="    ")
        yield f"  output: {output}"
        return
    yield title + look.faint("        model       cache       state     compute")
    for name in names:
        row = (fitted(_mib(table.get(name)), 12, right=True) for table in tables.values())
        yield f"  {fitted(name, 24)}{''.join(row)}"
    yield f"  {fitted('output', 24)}{fitted(output, 12, right=True)}"


def _mib(size_bytes: int | None) -> str:
    return "" if size_bytes is None else f"{size_bytes / 2**20:,.2f}"


def _cautions(budget: Budget, notes: Notes) -> list[str]:
    told = (*notes.warnings, *budget.warnings)
    return [*budget.refusals, *budget.bounds, *budget.model.notes, *told]


def _limits(limits: Limits) -> str:
    if limits.max_context is None and limits.max_concurrency is None:
        return "not known"
    unknown = "not known"
    context = f"{limits.max_context:,} tokens" if limits.max_context else "none"
    context = unknown if limits.max_context is None else context
    requests = f"{limits.max_concurrency:,}" if limits.max_concurrency else "none"
    requests = unknown if limits.max_concurrency is None else requests
    best = limits.best_weight_format or "none"
    return f"largest context {context} · most requests {requests} · best weight format {best}"


_QUESTIONS = {
    "max_context": "Largest context",
    "max_concurrency": "Most requests at once",
    "max_num_batched_tokens": "Most tokens a step",
    "best_weight_format": "Best weight format",
    "best_kv_cache_dtype": "Best KV type",
    "fewest_devices": "Fewest devices",
    "smallest_device": "Smallest device",
    "best_placement": "Most on the GPUs",
}


def _inverse(answers: Sequence[Answer], look: Look) -> Iterator[str]:
    """A line for each question: the answer, what to set, what binds beyond it."""
    if not answers:
        return
    yield look.strong("How far")
    for found in answers:
        value = f"{found.value:,}" if isinstance(found.value, int) else found.value or "none"
        where = f" (rank {found.rank})" if found.rank else ""
        head = f"  {fitted(_QUESTIONS[found.question], 23)}{value:<16} "
        # A setting that is the answer itself need not be said again, unless it is one of several.
        said = list(found.settings.items())
        alone = len(said) == 1 or isinstance(found.value, str)
        spread = [f"{k} {v}" for k, v in said if v != found.value or not alone]
        # Where there is no answer, the reason is about the least that was tried.
        till = "beyond" if found.value else "even the least"
        beyond = f"{till}: {found.reason}{where}" if found.region else found.reason
        text = " · ".join([*spread, beyond])
        if look.width < _WITH_RANGE:
            short = f"{_QUESTIONS[found.question]}: {value} · {text}"
            yield from wrapped(short, look.width, first="  ", rest="    ")
            continue
        lines = wrapped(text, look.width, first=" " * len(head), rest=" " * 27)
        yield head + lines[0][len(head) :]
        yield from lines[1:]


def _paragraph(title: str, items: Sequence[str], look: Look) -> Iterator[str]:
    margin = " " * 10
    for index, item in enumerate(i for i in items if i):
        first = look.strong(title) + " " * (10 - len(title)) if not index else margin
        lines = wrapped(item, look.width, first=margin, rest=margin + "  ")
        yield first + lines[0][len(margin) :]
        yield from lines[1:]
