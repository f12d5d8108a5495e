"""Runs one command and turns whatever happens into an exit status and one sentence."""

from __future__ import annotations

import gc
import os
from importlib import import_module
from typing import TYPE_CHECKING

from engine.cli import streams
from engine.cli.options import COMMANDS, parse
from engine.cli.workspace import opened
from engine.errors import PlimsollError, UsageError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from engine.report.document import ReportDocument

    PdfWriter = Callable[[ReportDocument, Path, str], None]

BAD_INPUT = 2
INTERRUPTED = 130


def main(argv: Sequence[str], write_pdf: PdfWriter | None = None) -> int:
    """Run the command that ``argv`` (without the program's name) states.

    Args:
        argv: command, model and options.
        write_pdf: draws a report; handed in, since the engine knows no Qt.

    Returns:
        The exit status: of ``size`` 0 fits, 1 does not fit, 3 cannot say; 2 for bad input.
    """
    collecting = gc.isenabled()
    try:
        streams.open_streams()
        gc.disable()  # a single answer makes nothing worth a search for cycles, a tenth of its time
        options = parse(argv)
        options.write_pdf = write_pdf
        status = _run(options)
        streams.output().flush()
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - every fault becomes a sentence
        status = _explain(error)
    finally:
        if collecting:
            gc.enable()
    return status


def _explain(error: BaseException) -> int:
    """Say what went wrong in one sentence, or nothing where nobody listens; the exit status."""
    status = BAD_INPUT
    match error:
        case KeyboardInterrupt():
            status = INTERRUPTED
        case BrokenPipeError():
            streams.abandon_output()
            status = 0
        case PlimsollError():
            streams.notice(error.message)
        case OSError():
            named = error.filename or "The output cannot be written"
            streams.notice(f"{named}: {error.strerror or error}.")
        case MemoryError() | RecursionError():
            streams.notice("The input is too large or too deeply nested to be a model's.")
        case _ if os.environ.get("PLIMSOLL_DEBUG"):
            raise error
        case _:
            cause = f"{type(error).__name__}: {error}"[:200]
            streams.notice(
                f"This is a fault in Plimsoll ({cause}); please report it, with what "
                "PLIMSOLL_DEBUG=1 shows."
            )
    return status


def _run(options: argparse.Namespace) -> int:
    if options.version:
        from engine.cli.version import program_version  # noqa: PLC0415 - 30 ms, seldom needed

        streams.output().write(f"plimsoll {program_version()}\n")
        return 0
    if options.command is None:
        message = f"No command is given: say {', '.join(COMMANDS)}, or see --help."
        raise UsageError(message)
    opened(options)
    # Each command imports only what it needs: this is what keeps `size` fast.
    module = import_module(f"engine.cli.{options.command.replace('-', '_')}")
    run: Callable[[argparse.Namespace], int] = module.run
    if options.command == "watch" or getattr(options, "batch", None) is not None:
        gc.enable()
    return run(options)
