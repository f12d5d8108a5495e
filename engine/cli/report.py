"""``plimsoll report``: the answer as a PDF. The page itself is drawn by whoever hands it in."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from engine.cancel import CancelToken
from engine.cli import streams
from engine.cli.hub import opener
from engine.cli.version import program_version
from engine.cli.workspace import earlier
from engine.contract.desk import Desk
from engine.contract.request import parse
from engine.errors import UsageError
from engine.fit import solve
from engine.report.compose import About, compose
from engine.sizing import size
from engine.telemetry.record import Replay

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from engine.report.document import ReportDocument
    from engine.telemetry.snapshot import TelemetrySnapshot

_PDF = b"%PDF-"
_PAGES = {"a4": "A4", "letter": "Letter"}


def run(options: argparse.Namespace) -> int:
    """Size the model, compose the report and have it drawn."""
    write_pdf: Callable[[ReportDocument, Path, str], None] | None = options.write_pdf
    if write_pdf is None:
        message = "This installation has no window part, which draws the PDF: use size instead."
        raise UsageError(message)
    path = _target(options.output)
    desk = Desk(CancelToken(), opener(options))
    plan = desk.plan(parse(options.given), earlier(options))
    sizing = size(plan.model, plan.deployment, plan.machine)
    limits = solve.limits(plan.model, plan.deployment, plan.machine)
    about = About(
        on=datetime.now().astimezone().date(),
        plan=plan.deployment,
        version=program_version(),
        assumptions=plan.notes.assumptions,
        warnings=plan.notes.warnings,
    )
    recording = _recorded(options.recording) if options.recording else None
    write_pdf(compose(sizing, limits, about, recording), path, _PAGES[options.page])
    streams.notice(f"wrote {path}: {sizing.verdict.headline}.")
    return 0


def _target(name: str) -> Path:
    path = Path(name)
    if path.is_dir():
        message = f"{name} is a folder: name the PDF to write."
        raise UsageError(message, field="output")
    if path.exists() and not path.is_file():
        # A finished report takes the place of what was there: never that of a device.
        message = f"{name} is no file: name the PDF to write."
        raise UsageError(message, field="output")
    if not _may_be_replaced(path):
        message = f"{name} is there and is no PDF, so it is not overwritten: name another file."
        raise UsageError(message, field="output")
    if not path.absolute().parent.is_dir():
        message = f"There is no folder {path.absolute().parent} to write the report to."
        raise UsageError(message, field="output")
    return path


def _may_be_replaced(path: Path) -> bool:
    """Whether nothing is lost there but an older report: never a model or a recording."""
    if not path.exists():
        return True
    with path.open("rb") as file:
        return file.read(len(_PDF)) in {b"", _PDF}


def _recorded(name: str) -> tuple[TelemetrySnapshot, ...]:
    replay = Replay(Path(name))
    try:
        return tuple(replay.snapshots())
    finally:
        replay.close()
