"""The report on the plan in force, written as any kind of file."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from engine.fit.solve import limits
from engine.report import files
from engine.report.files import Kind
from engine.words import tr
from gui.kit.about import own_version
from gui.sizing import present
from gui.sizing.beside import sentences
from gui.sizing.comparison import names

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from engine.report.compared import Compared
    from engine.report.document import ReportDocument
    from engine.report.measured import Snapshot
    from engine.report.seen import Observed
    from engine.sizing import Sizing
    from gui.sizing.comparison import Entry
    from gui.sizing.view_model import State


@dataclass(frozen=True, slots=True, eq=False)
class Subject:
    """What the report is on."""

    state: State
    """The plan in force."""
    entries: Sequence[Entry]
    """The plans that are compared."""
    recorded: Iterable[Snapshot] | None
    """Telemetry of a run, if there was one."""
    observed: Observed
    """What was seen of the plan's run, and the steps of sizing."""


def write(subject: Subject, path: Path, paper: str) -> None:
    """Write the report on ``subject`` to ``path``, whose suffix says as what.

    Args:
        subject: its plan has an answer, else nothing is written.
        path: the file.
        paper: ``A4`` or ``Letter``, for a PDF.

    Raises:
        PlimsollError: no report ends like this, or the file cannot be written.
        OSError: the same, from the disk.
    """
    kind = files.kind_of(path)
    state = subject.state
    if state.sizing is None:
        return
    match kind:
        case Kind.CSV:
            # Composer and writers are needed by no one who doesn't report.
            from engine.report.csv_rows import csv_text  # noqa: PLC0415

            files.write(path, csv_text(state.sizing).encode())
        case Kind.JSON:
            files.write(path, f"{_answer(state, state.sizing)}\n".encode())
        case Kind.PDF:
            from gui.report.pdf import write_pdf  # noqa: PLC0415 - see above

            write_pdf(_composed(subject, state.sizing), path, paper)
        case Kind.HTML | Kind.MARKDOWN:
            document = _composed(subject, state.sizing)
            files.write(path, files.text(kind, document).encode())


def _composed(subject: Subject, sizing: Sizing) -> ReportDocument:
    from engine.report.compose import About, compose  # noqa: PLC0415 - see above

    state, budget = subject.state, sizing.budget
    deployment = state.plan.deployment
    about = About(
        on=datetime.now(tz=UTC).astimezone().date(),
        plan=deployment,
        unit=state.unit,
        version=own_version(),
        assumptions=_about_others(state),
        headline=present.headline_of(sizing, state.beside, state.unit),
        compared=_compared(subject.entries),
        observed=subject.observed,
    )
    found = state.limits or limits(budget.model, deployment, budget.machine)
    return compose(sizing, found, about, subject.recorded)


def _compared(entries: Sequence[Entry]) -> tuple[Compared, ...]:
    """Two plans or more; one alone is compared with nothing."""
    from engine.report.compared import Compared  # noqa: PLC0415 - see above

    if len(entries) < 2:
        return ()
    named = ["; ".join(", ".join(w.text for w in part) for part in n) for n in names(entries)]
    return tuple(
        Compared(name, entry.sizing, entry.problem, entry.limits)
        for name, entry in zip(named, entries, strict=True)
    )


def _answer(state: State, sizing: Sizing) -> str:
    """The answer of the machine contract."""
    from engine.cli.encode import encode  # noqa: PLC0415 - see above
    from engine.contract.answer import Notes, answer  # noqa: PLC0415 - see above

    budget, deployment = sizing.budget, state.plan.deployment
    found = state.limits or limits(budget.model, deployment, budget.machine)
    return encode(answer(None, sizing, found, Notes()))


def _about_others(state: State) -> tuple[str, ...]:
    """What runs beside the plan, which the report's command does not say."""
    others = sentences(state.beside, state.unit)
    return (*others, tr("The command below is that of this model alone.")) if others else ()
