"""Start the packaged program and see that it works: ``python packaging/smoke.py [FOLDER]``.

In a virtual display where Xvfb is here, else without one. ``--smoke`` opens every room, sizes
a model, writes a PDF and leaves; fatal words in its output fail it whatever its exit status.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FATAL = ("Traceback", "Fatal Python error", "qt.qpa.plugin", "cannot open shared object", "Aborted")


def main(arguments: list[str]) -> int:
    """Run the smoke test against the limits; print what was measured."""
    folder = Path(arguments[0]) if arguments else ROOT / "dist" / "plimsoll"
    limits = tomllib.loads((ROOT / "packaging" / "limits.toml").read_text(encoding="utf-8"))
    size_mb = sum(f.lstat().st_size for f in folder.rglob("*") if not f.is_dir()) / 1e6
    seconds, output, status = _run([str(folder / "plimsoll"), "--smoke"], limits)
    print(f"size {size_mb:.0f} MB of {limits['bundle']['size_mb']}, smoke {seconds:.1f} s")
    faults = [word for word in FATAL if word in output]
    if status or faults:
        print(output[-4000:])
        print(f"exit {status}, fatal words: {faults}")
        return 1
    if size_mb > limits["bundle"]["size_mb"]:
        print("The bundle is too large.")
        return 1
    return 0


def _run(command: list[str], limits: dict[str, dict[str, int]]) -> tuple[float, str, int]:
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "LD_"))}
    display = shutil.which("xvfb-run")
    if display is not None:
        environment.pop("QT_QPA_PLATFORM", None)
        command = [display, "-a", "-s", "-screen 0 1440x900x24", *command]
    else:
        environment["QT_QPA_PLATFORM"] = "offscreen"
    started = time.monotonic()
    try:
        done = subprocess.run(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, errors="replace", check=False,
            timeout=limits["start"]["smoke_seconds"],
        )  # fmt: skip
    except subprocess.TimeoutExpired as late:
        text = late.stdout.decode("utf-8", "replace") if isinstance(late.stdout, bytes) else ""
        return time.monotonic() - started, text, 124
    return time.monotonic() - started, done.stdout, done.returncode


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
