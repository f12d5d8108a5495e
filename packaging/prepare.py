"""Make the checkout ready to run: ``python3 packaging/prepare.py terminal|pages|window|tests``.

Called by the launcher on the first start and after an update; needs Python's standard
library alone. Creates ``.venv``, installs the locked packages, and looks for the system
libraries that the asked-for part needs: as root on Debian it installs what is missing,
otherwise it names it and stops.
"""

from __future__ import annotations

import ctypes
import fcntl
import importlib.util
import os
import shutil
import subprocess
import sys
import venv
from collections import deque
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
LOCKS = ROOT / "packaging" / "locks"

# What pip's PySide6 needs beyond a minimal Debian 12: library file -> package.
PAGES = {
    "libGL.so.1": "libgl1",
    "libEGL.so.1": "libegl1",
    "libdbus-1.so.3": "libdbus-1-3",
    "libfontconfig.so.1": "libfontconfig1",
    "libglib-2.0.so.0": "libglib2.0-0",
    "libxkbcommon.so.0": "libxkbcommon0",
}
WINDOW = {
    **PAGES,
    "libxkbcommon-x11.so.0": "libxkbcommon-x11-0",
    "libxcb-cursor.so.0": "libxcb-cursor0",
    "libxcb-icccm.so.4": "libxcb-icccm4",
    "libxcb-keysyms.so.1": "libxcb-keysyms1",
    "libxcb-shape.so.0": "libxcb-shape0",
}
# Programs that tests start: an X server, a C compiler, readers of PDF and ELF files.
TOOLS = {
    "Xvfb": "xvfb",
    "xauth": "xauth",
    "gcc": "gcc",
    "pdftotext": "poppler-utils",
    "objdump": "binutils",
}
LIBRARIES = {"terminal": {}, "pages": PAGES, "window": WINDOW, "tests": WINDOW}


class UnreadyError(Exception):
    """One sentence: what is missing and what to do."""


def main(need: str) -> int:
    """Bring everything up to date for ``need`` and leave the stamp that says so."""
    with Path(__file__).open("rb") as guard:
        fcntl.flock(guard, fcntl.LOCK_EX)  # a second start waits here for the first
        try:
            _system(need)
            _environment()
            _packages("dev" if need == "tests" else "app")
        except UnreadyError as error:
            print(f"plimsoll: {error}", file=sys.stderr)
            return 2
        except KeyboardInterrupt:
            return 130
        _stamp(need)
    return 0


def say(text: str) -> None:
    """A progress line, kept away from a command's own output."""
    print(f"plimsoll: {text}", file=sys.stderr, flush=True)


def _stamp(need: str) -> None:
    signature = _signature("dev" if need == "tests" else "app")
    (VENV / f"ready-{need}").write_text(signature, encoding="utf-8")


def _signature(lock: str) -> str:
    """Place and contents: what the launcher compares, too."""
    return f"{ROOT}\n" + (LOCKS / f"{lock}.txt").read_text(encoding="utf-8")


def _system(need: str) -> None:
    if sys.platform != "linux":
        return
    missing = [p for name, p in LIBRARIES[need].items() if not _loads(name)]
    if need == "tests":
        missing += [package for name, package in TOOLS.items() if not shutil.which(name)]
        if not Path("/usr/include/stdio.h").exists():
            missing.append("libc6-dev")
    if importlib.util.find_spec("ensurepip") is None and not _healthy():
        missing.append(f"python{sys.version_info[0]}.{sys.version_info[1]}-venv")
    if missing:
        _install(missing)


def _loads(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def _install(packages: list[str]) -> None:
    names = " ".join(packages)
    if shutil.which("apt-get") is None:
        message = f"system packages are missing, on Debian called {names}; install them first."
        raise UnreadyError(message)
    if os.geteuid() != 0:
        message = f"system packages are missing; install them with: sudo apt-get install {names}"
        raise UnreadyError(message)
    say(f"installing system packages: {names}")
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    install = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages]
    for command in (["apt-get", "update", "-qq"], install):
        done = subprocess.run(
            command, env=quiet, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
    if done.returncode:
        last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
        message = f"apt-get could not install {names}: {' '.join(last)}"
        raise UnreadyError(message)


def _healthy() -> bool:
    """Whether the environment's interpreter still starts and has pip."""
    python = VENV / "bin" / "python"
    if not python.exists():
        return False
    probe = subprocess.run([python, "-c", "import pip"], capture_output=True, check=False)
    return probe.returncode == 0


def _environment() -> None:
    if _healthy():
        return
    say("creating the environment in .venv")
    try:
        # A child of a virtual environment would point back at it: start from the base.
        if sys.prefix == sys.base_prefix:
            venv.create(VENV, clear=True, with_pip=True, symlinks=True)
        else:
            base = Path(sys.base_prefix) / "bin" / "python3"
            subprocess.run([base, "-m", "venv", "--clear", VENV], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        message = f"the environment {VENV} could not be made: {error}"
        raise UnreadyError(message) from error


def _packages(lock: str) -> None:
    """Install what ``lock`` pins, unless the environment holds it; ``dev`` holds ``app``."""
    note = VENV / "packages"
    held = note.read_text(encoding="utf-8") if note.exists() else ""
    if held in {_signature(name) for name in (lock, "dev")}:
        return
    for stamp in (note, *VENV.glob("ready-*")):
        stamp.unlink(missing_ok=True)
    files = [LOCKS / f"{lock}.txt", *([LOCKS / "build.txt"] if lock == "app" else [])]
    wanted = [line.split(" ")[0] for f in files for line in _pins(f)]
    say(f"installing {len(wanted)} packages (the first time takes about a minute)")
    requirements = [argument for f in files for argument in ("-r", str(f))]
    _pip(["--require-hashes", "--only-binary=:all:", *requirements], len(wanted))
    _pip(["--no-deps", "--no-build-isolation", "--editable", str(ROOT)], 0)
    note.write_text(_signature(lock), encoding="utf-8")
    say("ready")


def _pins(lock: Path) -> list[str]:
    return [x for x in lock.read_text(encoding="utf-8").splitlines() if x[:1].isalnum()]


def _pip(arguments: list[str], count: int) -> None:
    """Run pip; show one line a package where someone watches, and its last words on failure."""
    command = [
        VENV / "bin" / "python", "-m", "pip", "install", "--no-input", "--progress-bar", "off",
        "--disable-pip-version-check", *arguments,
    ]  # fmt: skip
    tail: deque[str] = deque(maxlen=8)
    seen = 0
    step = 1 if sys.stderr.isatty() else 20
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, errors="replace",
    ) as process:  # fmt: skip
        for line in process.stdout or ():
            tail.append(line.rstrip())
            if line.startswith("Collecting ") and count:
                seen += 1
                if seen % step == 0:
                    say(f"  {seen} of {count}: {line.split()[1]}")
            elif line.startswith("Installing collected"):
                say("  unpacking")
    if process.returncode:
        print("\n".join(tail), file=sys.stderr)
        message = "pip could not install the packages; its last lines are above."
        raise UnreadyError(message)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1]))
