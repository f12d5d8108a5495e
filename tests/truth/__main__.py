"""The scoreboard: ``python -m tests.truth [--runtime NAME] [--worst N]``.

``--write`` writes the same tables to ``docs/accuracy.md`` and today's figures to the baseline;
figures that got worse are written only with ``--because``, which says why.
"""

from __future__ import annotations

import argparse
import sys

from tests.truth.scoring import baseline
from tests.truth.scoring.board import board
from tests.truth.scoring.page import GLANCE_FILE, PAGE, glance_data, page
from tests.truth.scoring.report import bars, fits, left_out, table, worst


def main() -> int:
    """Print the tables, or write them."""
    parser = argparse.ArgumentParser(prog="python -m tests.truth", description=__doc__)
    parser.add_argument("--runtime", action="append", default=[])
    parser.add_argument("--worst", type=int, default=10)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--because", default="")
    arguments = parser.parse_args()
    if len(arguments.because) > baseline.LONGEST_NOTE:
        parser.error(f"--because takes up to {baseline.LONGEST_NOTE} letters")
    found = board(() if arguments.write else arguments.runtime)
    if arguments.write:
        text = page(found)
        PAGE.write_text(text, encoding="utf-8")
        GLANCE_FILE.write_text(glance_data(text), encoding="utf-8")
        refused = baseline.write(found, arguments.because)
        sys.stdout.writelines(f"worse, say why with --because: {key}\n" for key in refused)
        return int(bool(refused))
    parts = (table(found), bars(found), fits(found), worst(found, arguments.worst))
    for part in (*parts, left_out(found)):
        sys.stdout.writelines(f"{line}\n" for line in part)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
