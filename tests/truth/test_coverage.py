"""The page of what is understood is what the code makes of the evidence today."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_that_the_page_is_current() -> None:
    # Refresh with: python packaging/coverage.py
    done = subprocess.run(
        [sys.executable, "packaging/coverage.py", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:]
