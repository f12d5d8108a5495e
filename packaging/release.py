"""Everything that is handed out for this system: ``python packaging/release.py``.

Builds the program, starts it, packs it (Linux: .deb and .tar.xz; macOS: .dmg; Windows: installer
and .zip) and writes ``dist/SHA256SUMS``. The same script runs on all three systems.
"""

from __future__ import annotations

import hashlib
import platform
import shutil
import subprocess
import sys
from pathlib import Path

from build import BUNDLE, ROOT
from marks import VERSION

HERE = ROOT / "packaging"
DIST = BUNDLE.parent


def main() -> int:
    """Run each step; the first that fails ends it."""
    steps = [[sys.executable, str(HERE / "build.py")], [sys.executable, str(HERE / "smoke.py")]]
    steps += {"linux": _linux, "darwin": _macos, "win32": _windows}[sys.platform]()
    for step in steps:
        done = subprocess.run(step, cwd=ROOT, check=False)
        if done.returncode:
            print(f"failed: {' '.join(step)}", file=sys.stderr)
            return done.returncode
    _archive()
    _sums()
    return 0


def _linux() -> list[list[str]]:
    if shutil.which("dpkg-deb") is None:
        print("no dpkg-deb here: no .deb is made", file=sys.stderr)
        return []
    return [[sys.executable, str(HERE / "deb.py")]]


def _macos() -> list[list[str]]:
    return [["bash", str(HERE / "macos" / "pack.sh"), VERSION]]


def _windows() -> list[list[str]]:
    compiler = shutil.which("iscc") or r"C:\Program Files (x86)\Inno Setup 6\ISCC.exe"
    script = HERE / "windows" / "plimsoll.iss"
    if not Path(compiler).exists():
        print("no Inno Setup here: no installer is made", file=sys.stderr)
        return []
    return [[compiler, f"/DVersion={VERSION}", str(script)]]


def _archive() -> None:
    """The folder as one file, for who wants no package."""
    name = f"plimsoll-{VERSION}-{sys.platform}-{platform.machine().lower()}"
    kind = "zip" if sys.platform == "win32" else "xztar"
    shutil.make_archive(str(DIST / name), kind, root_dir=DIST, base_dir="plimsoll")


def _sums() -> None:
    # What an earlier release left there is not of this one.
    files = sorted(f for f in DIST.glob(f"*{VERSION}*") if f.is_file())
    lines = []
    for file in files:
        with file.open("rb") as stream:
            lines.append(f"{hashlib.file_digest(stream, 'sha256').hexdigest()}  {file.name}")
    (DIST / "SHA256SUMS").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    raise SystemExit(main())
