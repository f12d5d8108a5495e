"""Make the packaged program in ``dist/plimsoll``: ``python packaging/build.py``."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUNDLE = ROOT / "dist" / "plimsoll"


def main() -> int:
    """Build, strip what may be stripped, and say what came out."""
    command = [
        sys.executable, "-m", "PyInstaller", str(ROOT / "packaging" / "plimsoll.spec"),
        "--noconfirm", "--clean", "--log-level", "WARN",
        "--distpath", str(BUNDLE.parent), "--workpath", str(ROOT / "build" / "pyinstaller"),
    ]  # fmt: skip
    done = subprocess.run(command, cwd=ROOT, check=False)
    if done.returncode:
        return done.returncode
    _strip_python()
    shutil.copytree(ROOT / "resources" / "licences", BUNDLE / "licences", dirs_exist_ok=True)
    _collect_licences(BUNDLE / "licences" / "python")
    print(f"{BUNDLE.relative_to(ROOT)}: {size_bytes(BUNDLE) / 1e6:.0f} MB")
    return 0


def size_bytes(folder: Path) -> int:
    """Bytes of all files below ``folder``, links not followed."""
    return sum(f.lstat().st_size for f in folder.rglob("*") if not f.is_dir())


def _strip_python() -> None:
    """Python's own library carries its symbols in some builds; nothing else may be stripped."""
    strip = shutil.which("strip")
    if strip is None:
        return
    for library in (BUNDLE / "_internal").glob("libpython3*.so*"):
        if not library.is_symlink():
            subprocess.run([strip, "--strip-unneeded", str(library)], check=False)


def _collect_licences(target: Path) -> None:
    """The licence texts of every Python package that is inside."""
    packages = {path.name.lower().replace("-", "_") for path in (BUNDLE / "_internal").iterdir()}
    packages |= _archived()
    site = next(Path(sys.prefix).glob("lib/python3*/site-packages"), Path(sys.prefix, "Lib"))
    for info in site.glob("*.dist-info"):
        name = info.name.split("-")[0].lower()
        if not packages & {name, *_top_level(info)}:
            continue
        for text in [
            *info.glob("LICEN[CS]E*"),
            *info.glob("licenses/**/*"),
            *info.glob("COPYING*"),
        ]:
            if text.is_file():
                (target / name).mkdir(parents=True, exist_ok=True)
                shutil.copy(text, target / name / text.name)


def _archived() -> set[str]:
    """Top-level names in the program's archive of Python modules."""
    listing = next((ROOT / "build" / "pyinstaller").rglob("PYZ-00.toc"), None)
    if listing is None:
        return set()
    lines = listing.read_text(encoding="utf-8").splitlines()
    return {x.strip(" [('").split("'")[0].split(".")[0].lower() for x in lines if "('" in x}


def _top_level(info: Path) -> set[str]:
    names = info / "top_level.txt"
    if not names.exists():
        return set()
    return {name.strip().lower() for name in names.read_text(encoding="utf-8").splitlines()}


if __name__ == "__main__":
    raise SystemExit(main())
