"""The report on the plan in force, written as any kind of file."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from engine.fit.solve import limits
from engine.report import files
from engine.report.files import Kind
from engine.words import tr
from gui.kit.about import own_version
from gui.sizing import present
from gui.sizing.beside import sentences

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from engine.report.document import ReportDocument
    from engine.report.measured import Snapshot
    from engine.sizing import Sizing
    from gui.sizing.view_model import State


def write(state: State, path: Path, paper: str, recorded: Iterable[Snapshot] | None) -> None:
    """Write the report on ``state`` to ``path``, whose suffix says as what.

    Args:
        state: with an answer.
        path: the file.
        paper: ``A4`` or ``Letter``, for a PDF.
        recorded: telemetry of a run, if there was one.

    Raises:
        PlimsollError: no report ends like this, or the file cannot be written.
        OSError: the same, from the disk.
    """
    kind = files.kind_of(path)
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

            write_pdf(_composed(state, state.sizing, recorded), path, paper)
        case Kind.HTML | Kind.MARKDOWN:
            document = _composed(state, state.sizing, recorded)
            files.write(path, files.text(kind, document).encode())


def _composed(state: State, sizing: Sizing, recorded: Iterable[Snapshot] | None) -> ReportDocument:
    from engine.report.compose import About, compose  # noqa: PLC0415 - see above

    budget, deployment = sizing.budget, state.plan.deployment
    about = About(
        on=datetime.now(tz=UTC).astimezone().date(),
        plan=deployment,
        unit=state.unit,
        version=own_version(),
        assumptions=_about_others(state),
        headline=present.headline_of(sizing, state.beside, state.unit),
    )
    found = state.limits or limits(budget.model, deployment, budget.machine)
    return compose(sizing, found, about, recorded)


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
