"""``plimsoll``: a terminal command, or the window. Imports nothing heavy before it knows which."""

from __future__ import annotations

import gc
import os
import sys

try:
    from typing import TYPE_CHECKING

    from engine.cli import main as run_command
    from engine.cli.options import COMMANDS, parse_window
    from engine.cli.streams import complain, open_streams
    from engine.errors import PlimsollError
except KeyboardInterrupt:
    # Ctrl+C before a command runs leaves as quietly as one during it.
    raise SystemExit(130) from None

if TYPE_CHECKING:
    from argparse import Namespace
    from pathlib import Path

    from engine.report.document import ReportDocument

_FOR_THE_TERMINAL = {*COMMANDS, "-h", "--help", "--version"}
_WORKSPACE = ".plimsoll"


def main(argv: list[str] | None = None) -> int:
    """Run the command that the arguments name, or open the window when they name none."""
    arguments = sys.argv[1:] if argv is None else argv
    if arguments and _is_for_the_terminal(arguments[0]):
        return run_command(arguments, write_pdf=_write_pdf)
    open_streams()
    try:
        options = parse_window(arguments)
        return _open_window(options) if _has_display() else _answer_without_window(options)
    except PlimsollError as error:
        complain(error)
        return 2
    except KeyboardInterrupt:
        return 130


def _is_for_the_terminal(first: str) -> bool:
    is_option = first.startswith("-") or first.lower().endswith(_WORKSPACE)
    return first in _FOR_THE_TERMINAL or not is_option


def _has_display() -> bool:
    """Whether a window can be shown: always, but on Linux without a display server."""
    if not sys.platform.startswith("linux"):
        return True
    if any(os.environ.get(name) for name in ("WAYLAND_DISPLAY", "QT_QPA_PLATFORM")):
        return True
    return _answers(os.environ.get("DISPLAY", ""))


def _answers(display: str) -> bool:
    """Whether an X server listens at ``display``; Qt would abort the program if none did."""
    host, _, numbers = display.rpartition(":")
    number = numbers.split(".")[0]
    if not number.isdecimal():
        return False
    import socket  # noqa: PLC0415 - only here

    local = f"/tmp/.X11-unix/X{number}"  # noqa: S108 - where X servers listen
    places: list[tuple[int, str | tuple[str, int]]]
    if host in {"", "unix"}:
        places = [(socket.AF_UNIX, local), (socket.AF_UNIX, f"\0{local}")]
    else:
        places = [(socket.AF_INET, (host, 6000 + int(number)))]
    for family, place in places:
        with socket.socket(family) as probe:
            probe.settimeout(2)
            try:
                probe.connect(place)
            except OSError:
                continue
            return True
    return False


def _answer_without_window(options: Namespace) -> int:
    """The workspace or the first worked example in the terminal, and the way to a window."""
    if options.file:
        return run_command(["size", options.file])
    from engine.cancel import CancelToken  # noqa: PLC0415 - only here
    from engine.devices.here import this_machine  # noqa: PLC0415 - only here
    from gui import example  # noqa: PLC0415 - only here
    from gui.sizing.plan import FIRST_CONCURRENCY, FIRST_CONTEXT  # noqa: PLC0415 - only here

    model = example.fetch(this_machine(), CancelToken()).id
    plan = [f"--context={FIRST_CONTEXT}", f"--concurrency={FIRST_CONCURRENCY}"]
    status = run_command(["size", model, "--offline", *plan])
    sys.stdout.write(
        "\nThere is no display here, so this is the window's first example in the terminal.\n"
        "To see the window, start plimsoll from a desktop session, or from ssh -X; plimsoll\n"
        "--help shows the rest.\n"
    )
    return 0 if status in {0, 1, 3} else status


def _open_window(options: Namespace) -> int:
    # Nothing that is read and made on the way is garbage; gui.kit.collector goes on from here.
    gc.disable()
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
