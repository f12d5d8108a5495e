"""The answer for several models on one machine: each in turn, then what the devices hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.cli import size_text
from engine.cli.look import fitted
from engine.fit import solve
from engine.units import format_gib

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.cli.look import Look
    from engine.contract.answer import Notes
    from engine.together import Together

_NAME, _NUMBER = 28, 10


def describe(found: Together, notes: Notes, look: Look) -> Iterator[str]:
    """The lines of the answer, models in their order of start."""
    for placed in found.placed:
        tenant, machine = placed.tenant, placed.sizing.budget.machine
        limits = solve.limits(tenant.model, tenant.deployment, machine)
        yield from size_text.describe(placed.sizing, limits, notes, look)
        yield ""
    title = f"Together: {len(found.placed)} models on {found.machine.name}"
    yield look.strong(look.line(title))
    heads = ("held", "load line", "left") if notes.capacity_known else ("held",)
    name = min(_NAME, look.width - 2 - len(heads) * _NUMBER)
    yield look.faint("  " + fitted("GiB", name) + "".join(_right(head) for head in heads))
    for index, slot in enumerate(found.machine.slots):
        held = slot.foreign.likely_bytes
        line = slot.device.allocatable.likely_bytes
        sizes = (held, line, line - held) if notes.capacity_known else (held,)
        figures = "".join(_right(format_gib(size, unit=False)) for size in sizes)
        yield "  " + fitted(f"{index} · {slot.device.name}", name) + figures
    for placed in found.placed:
        verdict, where = placed.sizing.verdict, ", ".join(map(str, placed.devices))
        text = f"{placed.tenant.model.id} on {where}: {verdict.headline}"
        yield look.verdict(look.line(text, look.width - 2), verdict.outcome)


def _right(text: str) -> str:
    return fitted(text, _NUMBER, right=True)
