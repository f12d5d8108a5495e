"""Refresh the locked requirements: ``python packaging/lock.py [--upgrade]``.

Writes ``packaging/locks/{build,app,dev}.txt`` from ``pyproject.toml``. Each file pins every
package with the hashes of all its files, and names no index: pip takes them from wherever
the machine is set up to look.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCKS = ROOT / "packaging" / "locks"
QUIET = (
    "--quiet",
    "--generate-hashes",
    "--allow-unsafe",
    "--strip-extras",
    "--no-annotate",
    "--no-header",
    "--no-emit-index-url",
    "--no-emit-find-links",
    "--no-emit-trusted-host",
    "--no-emit-options",
)
# Windows and macOS need a few packages that a compile on Linux does not see, and the reverse;
# the locks are for the launcher, which serves Linux, and for continuous integration.
HEADER = "# Made by packaging/lock.py from pyproject.toml; do not edit.\n"
# 6.12.0 loses references on Python 3.11 and aborts after some thousand repaints.
PINNED = ("PySide6-Essentials==6.11.3",)


def main() -> int:
    """Compile the three files, app first: the others must agree with it."""
    upgrade = "--upgrade" in sys.argv[1:]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    app = [*project["project"]["dependencies"], *PINNED]
    dev = project["dependency-groups"]["dev"]
    # An editable install asks its build backend for one package more.
    build = [*project["build-system"]["requires"], "editables>=0.5"]
    LOCKS.mkdir(exist_ok=True)
    _compile("app", app, upgrade=upgrade)
    _compile("build", build, upgrade=upgrade, agree_with=("app",))
    _compile("dev", [*app, *build, *dev], upgrade=upgrade, agree_with=("app", "build"))
    return 0


def _compile(
    name: str, requirements: list[str], *, upgrade: bool, agree_with: tuple[str, ...] = ()
) -> None:
    target = LOCKS / f"{name}.txt"
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "requirements.in"
        constraints = [f"-c {_pins(LOCKS / f'{other}.txt', Path(folder))}" for other in agree_with]
        source.write_text("\n".join([*requirements, *constraints]) + "\n", encoding="utf-8")
        output = Path(folder) / "locked.txt"
        if target.exists() and not upgrade:
            output.write_bytes(target.read_bytes())
        command = [sys.executable, "-m", "piptools", "compile", *QUIET, "-o", str(output)]
        subprocess.run([*command, str(source)], check=True)
        text = re.sub(r"(?m)^#.*\n", "", output.read_text(encoding="utf-8"))
    if re.search(r"https?://|--(extra-)?index-url|--find-links", text):
        raise SystemExit(f"{target.name} would name an index; nothing was written.")
    target.write_text(HEADER + text, encoding="utf-8")
    print(f"{target.relative_to(ROOT)}: {len(re.findall(r'==', text))} packages")


def _pins(locked: Path, folder: Path) -> Path:
    """The versions of ``locked`` without hashes: constraints may not carry any."""
    pins = re.findall(r"(?m)^([A-Za-z0-9._-]+==[^\s\\;]+)", locked.read_text(encoding="utf-8"))
    target = folder / f"pins-{locked.name}"
    target.write_text("\n".join(pins) + "\n", encoding="utf-8")
    return target


if __name__ == "__main__":
    raise SystemExit(main())
