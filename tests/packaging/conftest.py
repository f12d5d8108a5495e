"""The packaged program, built once for all tests that start it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUNDLE = ROOT / "dist" / "plimsoll"
PROGRAM = BUNDLE / "plimsoll"
SOURCES = ("engine", "gui", "resources", "packaging")


@pytest.fixture(scope="session")
def bundle() -> Path:
    """The packaged program, built when there is none or it is older than what it is made of."""
    pytest.importorskip("PyInstaller")
    newest = max(
        file.stat().st_mtime
        for folder in SOURCES
        for file in (ROOT / folder).rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    )
    if not PROGRAM.exists() or PROGRAM.stat().st_mtime < newest:
        build = [sys.executable, str(ROOT / "packaging" / "build.py")]
        done = subprocess.run(build, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    return PROGRAM
