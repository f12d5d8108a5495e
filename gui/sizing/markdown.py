"""The answer as Markdown, for an issue or a chat."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.words import tr
from gui.kit import format as fmt
from gui.sizing import present
from gui.sizing.beside import sentences

if TYPE_CHECKING:
    from gui.sizing.view_model import State


def markdown(state: State) -> str:
    """Verdict, plan and one table per rank; empty where there is no answer."""
    if state.sizing is None or state.model is None or state.is_stale:
        return ""
    budget = state.sizing.budget
    words = present.verdict(state)
    plan = budget.deployment
    where = tr("{model} on {device}").format(
        model=escaped(state.model.id), device=present.where(state)
    )
    runtime = f"{plan.runtime} {plan.runtime_version or ''}".strip()
    tokens = tr("{count} × {context} tokens").format(
        count=fmt.count(plan.concurrency), context=fmt.count(state.context or 0)
    )
    lines = [f"**{words.headline}**", "", f"{where}; {runtime}, {tokens}. {words.detail}"]
    lines += [escaped(told) for told in sentences(state.beside, state.unit)]
    for rank in range(len(budget.ranks)):
        title = state.unit.value
        if len(budget.ranks) > 1:
            title = tr("Rank {rank}, {unit}").format(rank=rank, unit=title)
        heads = (
            tr("Region"),
            title,
            tr("Low – high"),
            tr("Least"),
            tr("Basis"),
            tr("How it is worked out"),
        )
        lines += ["", f"| {' | '.join(heads)} |"]
        lines.append("|---|---:|---:|---:|---|---|")
        for row in present.region_rows(budget, rank, state.unit, side_by_side=False):
            cells = (row.label, row.size, row.span, row.least, row.basis, row.note)
            lines.append(f"| {' | '.join(escaped(cell) for cell in cells)} |")
    return "\n".join(lines) + "\n"


def escaped(text: str) -> str:
    """``text`` as one cell of a table."""
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ")
