"""What the figures hold for, and how far figures of this kind have been from the truth."""

from __future__ import annotations

from typing import TYPE_CHECKING

import resources
from engine.report import words
from engine.report.document import Cell, Column, Table, Tone
from engine.runtimes import registry
from engine.text import printable
from engine.units import in_unit
from engine.words import figures, grouped, tr

if TYPE_CHECKING:
    from engine.budget.model import Budget
    from engine.deployment.spec import Deployment
    from engine.report.compose import About
    from engine.report.seen import Observed


def table(budget: Budget, asked: Deployment, about: About, ran: Observed) -> Table:
    """One row for each thing that the answer depends on, and the date.

    Args:
        budget: the plan's.
        asked: the plan before defaults, which says whether a release was stated.
        about: day, unit, and Plimsoll's own version.
        ran: what was seen of a run: its release and kernel.
    """
    model = budget.model
    source = words.source(model.source)
    stored = printable(model.stored.source, 200) if model.stored else ""
    revision = printable(model.revision, 64) if model.revision else tr("not stated by the source")
    measured = accuracy(budget.deployment.runtime, words.runtime(budget))
    told = [
        (tr("Model"), printable(model.id, 200)),
        (tr("Model revision"), revision),
        (tr("Model description"), source),
        (tr("Weights from"), stored),
        (tr("Runtime"), registry.get(budget.deployment.runtime).label),
        (tr("Runtime version"), _release(budget, asked)),
        (tr("Runtime version that ran"), printable(ran.release, 40)),
        (tr("Weights in"), words.weights(budget)),
        (tr("Cache precision"), words.kv_cache(budget)),
        (tr("Kernel"), printable(ran.kernel, 40) or _kernel(budget)),
        (tr("Accuracy"), in_unit(measured, about.unit)),
        (tr("Plimsoll"), about.version or tr("not known")),
        (tr("Date"), words.day(about.on)),
    ]
    columns = Column(tr("What"), 2.2), Column(tr("Value"), 7.8)
    rows = tuple((Cell(what, tone=Tone.QUIET), Cell(value)) for what, value in told if value)
    return Table(columns, rows, has_header=False)


def _release(budget: Budget, asked: Deployment) -> str:
    """The release whose rules are used, and that it is ours where none was stated."""
    used = words.release(budget)
    if asked.runtime_version:
        return used
    return tr("{release}: none was stated, so the newest whose rules are known").format(
        release=used
    )


def _kernel(budget: Budget) -> str:
    """The attention kernel as far as the plan says it."""
    plan = budget.deployment
    flash = plan.flash_attn
    if isinstance(flash, bool):
        flash = "on" if flash else "off"
    told = {"on": tr("flash-attn on"), "off": tr("flash-attn off")}
    chosen = plan.attn_implementation or (told.get(flash, f"flash-attn {flash}") if flash else "")
    named = printable(chosen, 40) if chosen else tr("the runtime’s own choice")
    return f"{named}, {printable(plan.backend, 40)}" if plan.backend else named


def accuracy(runtime: str, label: str) -> str:
    """How far the rules of ``runtime`` were from what was measured, from ``docs/accuracy.md``."""
    found = resources.data("accuracy").get(runtime)
    if found is None:
        return tr("no measured start of {runtime} is known").format(runtime=label)
    return tr(
        "{regions} regions of {records} measured starts: off by {median} GiB in the middle case, "
        "by no more than {p95} GiB in 95 of 100; {inside} % inside the stated range"
    ).format(
        regions=grouped(found["regions"]),
        records=grouped(found["records"]),
        median=figures(found["off_median_gib"]),
        p95=figures(found["off_p95_gib"]),
        inside=figures(found["inside_percent"]),
    )
