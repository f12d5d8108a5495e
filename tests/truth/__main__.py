"""The scoreboard: ``python -m tests.truth [--runtime NAME] [--worst N]``."""

from __future__ import annotations

import argparse
import sys

from tests.truth.scoring.board import board
from tests.truth.scoring.report import left_out, table, worst


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m tests.truth", description=__doc__)
    parser.add_argument("--runtime", action="append", default=[])
    parser.add_argument("--worst", type=int, default=10)
    arguments = parser.parse_args()
    found = board(arguments.runtime)
    lines = [*table(found), *worst(found, arguments.worst), *left_out(found)]
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
