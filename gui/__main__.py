"""``plimsoll``: a terminal command, or the window. Imports nothing heavy before it knows which."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from engine.cli import main as run_command
from engine.cli.options import COMMANDS

if TYPE_CHECKING:
    from pathlib import Path

    from engine.report.document import ReportDocument

_FOR_THE_TERMINAL = {*COMMANDS, "-h", "--help", "--version"}


def main(argv: list[str] | None = None) -> int:
    """Run the command that the arguments name, or open the window when they name none."""
    arguments = sys.argv[1:] if argv is None else argv
    if arguments and (arguments[0] in _FOR_THE_TERMINAL or not arguments[0].startswith("-")):
        return run_command(arguments, write_pdf=_write_pdf)
    options = _window_options(arguments)
    if not _has_display():
        return _answer_without_window()
    return _open_window(options)


def _window_options(arguments: list[str]) -> Namespace:
    parser = ArgumentParser(prog="plimsoll", add_help=False, allow_abbrev=False)
    parser.add_argument("--offline", action="store_true")
    parser.add_argument("--endpoint", metavar="URL")
    parser.add_argument("--replay", metavar="FILE")
    parser.add_argument("--reset", action="store_true")
    parser.add_argument("--smoke", action="store_true")
    return parser.parse_args(arguments)


def _has_display() -> bool:
    """Whether a window can be shown: always, but on Linux without a display server."""
    names = ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")
    return not sys.platform.startswith("linux") or any(os.environ.get(name) for name in names)


def _answer_without_window() -> int:
    """The window's own worked example, in the terminal, and how to see the window."""
    from engine.cancel import CancelToken  # noqa: PLC0415 - only here
    from engine.devices.here import this_machine  # noqa: PLC0415 - only here
    from gui import example  # noqa: PLC0415 - only here

    model = example.fetch(this_machine(), CancelToken()).id
    status = run_command(["size", model, "--offline"])
    sys.stdout.write(
        "\nThere is no display here, so this is the answer in the terminal. To see the window,\n"
        "start plimsoll from a desktop session, or from ssh -X; plimsoll --help shows the rest.\n"
    )
    return 0 if status in {0, 1, 3} else status


def _open_window(options: Namespace) -> int:
    try:
        from gui.app import run  # noqa: PLC0415 - Qt, and only when a window is wanted
    except ImportError as error:
        sys.stderr.write(f"plimsoll: the window's libraries could not be loaded: {error}.\n")
        return 2
    return run(options)


def _write_pdf(document: ReportDocument, path: Path, page: str) -> None:
    from gui.report.pdf import write_pdf  # noqa: PLC0415 - Qt, and only for a PDF

    write_pdf(document, path, page)


if __name__ == "__main__":
    raise SystemExit(main())
