"""``plimsoll report``: the answer as a file. A PDF is drawn by whoever hands its writer in."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from engine.cancel import CancelToken
from engine.cli import streams
from engine.cli.encode import encode
from engine.cli.hub import opener
from engine.cli.version import program_version
from engine.cli.workspace import earlier
from engine.contract.desk import Desk
from engine.contract.request import parse
from engine.contract.respond import respond
from engine.errors import UsageError
from engine.fit import solve
from engine.observed import observed, played
from engine.overlay.steps import Evidence
from engine.report import files
from engine.report.compose import About, compose
from engine.report.csv_rows import csv_text
from engine.sizing import size
from engine.telemetry.record import Replay
from engine.units import UnitSystem

if TYPE_CHECKING:
    import argparse

    from engine.contract.desk import Plan
    from engine.sizing import Sizing
    from engine.telemetry.snapshot import TelemetrySnapshot

_PAGES = {"a4": "A4", "letter": "Letter"}


def run(options: argparse.Namespace) -> int:
    """Size the model and write the report as the kind that the file's name asks for."""
    path = _target(options.output)
    kind = files.kind_of(path)
    if kind is files.Kind.PDF and options.write_pdf is None:
        message = (
            "This installation has no window part, which draws the PDF: "
            "let the name end in .html, .md, .csv or .json."
        )
        raise UsageError(message)
    desk = Desk(CancelToken(), opener(options))
    plan = desk.plan(parse(options.given), earlier(options))
    sizing = size(plan.model, plan.deployment, plan.machine)
    match kind:
        case files.Kind.JSON:
            found, _ = respond(desk, options.given)
            files.write(path, f"{encode(found)}\n".encode())
        case files.Kind.CSV:
            files.write(path, csv_text(sizing).encode())
        case _:
            _written(options, plan, sizing, path, kind)
    streams.notice(f"wrote {path}: {sizing.verdict.headline}.")
    return 0


def _written(
    options: argparse.Namespace, plan: Plan, sizing: Sizing, path: Path, kind: files.Kind
) -> None:
    """Compose the document and set it on pages, or write it as text."""
    recording = _recorded(options.recording) if options.recording else ()
    evidence = Evidence(overlay=played(sizing, recording))
    about = About(
        on=datetime.now().astimezone().date(),
        plan=plan.deployment,
        version=program_version(),
        assumptions=plan.notes.assumptions,
        warnings=plan.notes.warnings,
        observed=observed(sizing, evidence, UnitSystem.BINARY),
    )
    limits = solve.limits(plan.model, plan.deployment, plan.machine)
    document = compose(sizing, limits, about, recording)
    if kind is files.Kind.PDF:
        options.write_pdf(document, path, _PAGES[options.page])
    else:
        files.write(path, files.text(kind, document).encode())


def _target(name: str) -> Path:
    path = Path(name)
    if path.is_dir():
        message = f"{name} is a folder: name the file to write."
        raise UsageError(message, field="output")
    if path.exists() and not path.is_file():
        # A finished report takes the place of what was there: never that of a device.
        message = f"{name} is no file: name the file to write."
        raise UsageError(message, field="output")
    if not files.may_be_replaced(path):
        message = (
            f"{name} is there and is no report of this kind, so it is not overwritten: "
            "name another file."
        )
        raise UsageError(message, field="output")
    if not path.absolute().parent.is_dir():
        message = f"There is no folder {path.absolute().parent} to write the report to."
        raise UsageError(message, field="output")
    return path


def _recorded(name: str) -> tuple[TelemetrySnapshot, ...]:
    replay = Replay(Path(name))
    try:
        return tuple(replay.snapshots())
    finally:
        replay.close()
