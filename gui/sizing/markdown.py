"""The answer as Markdown, for an issue or a chat."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
    where = f"{escaped(state.model.id)} on {present.where(state)}"
    runtime = f"{plan.runtime} {plan.runtime_version or ''}".strip()
    tokens = f"{plan.concurrency} × {state.context or 0:,} tokens"
    lines = [f"**{words.headline}**", "", f"{where}; {runtime}, {tokens}. {words.detail}"]
    lines += [escaped(told) for told in sentences(state.beside, state.unit)]
    for rank in range(len(budget.ranks)):
        title = f"Rank {rank}, {state.unit.value}" if len(budget.ranks) > 1 else state.unit.value
        lines += ["", f"| Region | {title} | Low – high | Least | Basis | How it is worked out |"]
        lines.append("|---|---:|---:|---:|---|---|")
        for row in present.region_rows(budget, rank, state.unit, side_by_side=False):
            cells = (row.label, row.size, row.span, row.least, row.basis, row.note)
            lines.append(f"| {' | '.join(escaped(cell) for cell in cells)} |")
    return "\n".join(lines) + "\n"


def escaped(text: str) -> str:
    """``text`` as one cell of a table."""
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ")
