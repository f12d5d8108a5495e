"""``plimsoll completion``: what makes a shell complete the commands and their options."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.cli import streams
from engine.cli.options import whole

if TYPE_CHECKING:
    import argparse


def run(options: argparse.Namespace) -> int:
    """Print the script of the shell that was named."""
    import shtab

    streams.output().write(shtab.complete(whole(), options.shell).rstrip() + "\n")
    return 0
