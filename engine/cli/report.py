"""``plimsoll report``: the answer as a file. A PDF is drawn by whoever hands its writer in."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from engine.cancel import CancelToken
from engine.cli import streams
from engine.cli.encode import encode
from engine.cli.hub import opener
from engine.cli.parse_log import read_log
from engine.cli.version import program_version
from engine.cli.workspace import earlier
from engine.contract.desk import Desk
from engine.contract.request import parse
from engine.contract.respond import respond
from engine.contract.run import explain
from engine.contract.run_plan import NoPlanError, says_device
from engine.errors import UsageError
from engine.fit import solve
from engine.logs.regions import sizes_by_rank
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
    from engine.contract.run import Run
    from engine.report.document import ReportDocument
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
    _check_evidence(options, kind)
    desk = Desk(CancelToken(), opener(options))
    log = _explained(options, desk) if options.log else None
    plan = (log.plan if log else None) or desk.plan(parse(options.given), earlier(options))
    sizing = size(plan.model, plan.deployment, plan.machine)
    answer = ""
    if options.json or kind is files.Kind.JSON:
        answer = encode(respond(desk, options.given, options.before)[0]) + "\n"
    match kind:
        case files.Kind.JSON:
            files.write(path, answer.encode())
        case files.Kind.CSV:
            files.write(path, csv_text(sizing).encode())
        case _:
            document = _composed(options, plan, sizing, log)
            if kind is files.Kind.PDF:
                options.write_pdf(document, path, _PAGES[options.page])
            else:
                files.write(path, files.text(kind, document).encode())
    if options.json:
        streams.output().write(answer)
    streams.notice(f"wrote {path}: {sizing.verdict.headline}.")
    return 0


def _check_evidence(options: argparse.Namespace, kind: files.Kind) -> None:
    """Whether what was measured has a place in this kind of report."""
    given = [f"--{name}" for name in ("log", "recording") if getattr(options, name)]
    if given and kind in {files.Kind.CSV, files.Kind.JSON}:
        message = (
            f"{given[0]} has no place in a .{kind}, which holds the plan alone: "
            "let the name end in .pdf, .html or .md."
        )
        raise UsageError(message, field="output")
    if options.log and options.before:
        message = "A log is of one model, and this workspace starts several: name the model."
        raise UsageError(message, field="log")


def _explained(options: argparse.Namespace, desk: Desk) -> Run:
    """The run of the log, with its own plan under the options that are stated too."""
    reading = read_log(options.log, CancelToken())
    if not reading.understood:
        message = f"No line of {options.log} is known: is it the log of a runtime?"
        raise UsageError(message, field="log")
    if not says_device(reading, options.given):
        message = (
            "The log does not say how much memory its device has: say which it is, "
            "such as --gpu 'RTX 4090'."
        )
        raise UsageError(message, field="gpu")
    log = explain(reading, desk, options.given)
    if log.plan is None:
        raise NoPlanError(log.unplanned)
    return log


def _composed(
    options: argparse.Namespace, plan: Plan, sizing: Sizing, log: Run | None
) -> ReportDocument:
    recording = _recorded(options.recording) if options.recording else ()
    evidence = Evidence(
        overlay=played(sizing, recording),
        stated=sizes_by_rank(log.reading) if log and not log.has_failed else {},
        release=log.reading.version if log else "",
        kernel=log.reading.kernel if log else "",
    )
    about = About(
        on=datetime.now().astimezone().date(),
        plan=plan.deployment,
        version=program_version(),
        assumptions=log.notes if log else plan.notes.assumptions,
        warnings=plan.notes.warnings,
        observed=observed(sizing, evidence, UnitSystem.BINARY, log),
    )
    limits = solve.limits(plan.model, plan.deployment, plan.machine)
    return compose(sizing, limits, about, recording)


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
