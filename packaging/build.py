"""Make the packaged program in ``dist/plimsoll``: ``python packaging/build.py``."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import bill

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

ROOT = Path(__file__).resolve().parent.parent
BUNDLE = ROOT / "dist" / "plimsoll"
_PARTS_TOLD = 10


def main() -> int:
    """Build, strip what may be stripped, and say what came out."""
    command = [
        sys.executable, "-m", "PyInstaller", str(ROOT / "packaging" / "plimsoll.spec"),
        "--noconfirm", "--clean", "--log-level", "WARN",
        "--distpath", str(BUNDLE.parent), "--workpath", str(ROOT / "build" / "pyinstaller"),
    ]  # fmt: skip
    # The order of a set must not decide what a file holds.
    environment = {**os.environ, "PYTHONHASHSEED": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, check=False)
    if done.returncode:
        return done.returncode
    _strip()
    shutil.copytree(ROOT / "resources" / "licences", BUNDLE / "licences", dirs_exist_ok=True)
    packages = tuple(_packages())
    _collect_licences(BUNDLE / "licences" / "python", packages)
    bill.write(BUNDLE, packages, version("plimsoll"))
    print(f"{BUNDLE.relative_to(ROOT)}: {size_bytes(BUNDLE) / 1e6:.0f} MB, of which")
    for size, name in sorted(_parts(), reverse=True)[:_PARTS_TOLD]:
        print(f"  {size / 1e6:5.1f} MB  {name}")
    return 0


def size_bytes(folder: Path) -> int:
    """Bytes of all files below ``folder``, links not followed."""
    return sum(f.lstat().st_size for f in folder.rglob("*") if not f.is_dir())


def _parts() -> Iterator[tuple[int, str]]:
    """What each file and folder beside the program weighs."""
    for part in (BUNDLE / "_internal").iterdir():
        yield size_bytes(part) if part.is_dir() else part.lstat().st_size, part.name


def _strip() -> None:
    """Python's own library carries its symbols in some builds, cryptography's in all.

    Nothing else may be stripped: numpy's libraries would break.
    """
    strip = shutil.which("strip")
    if strip is None:
        return
    inside = BUNDLE / "_internal"
    for pattern in ("libpython3*.so*", "cryptography/hazmat/bindings/_rust*.so"):
        for library in inside.glob(pattern):
            if not library.is_symlink():
                subprocess.run([strip, "--strip-unneeded", str(library)], check=False)


def _packages() -> Iterator[Path]:
    """The ``.dist-info`` folder of every Python package that is inside."""
    inside = {path.name.lower().replace("-", "_") for path in (BUNDLE / "_internal").iterdir()}
    inside |= _archived()
    site = next(Path(sys.prefix).glob("lib/python3*/site-packages"), Path(sys.prefix, "Lib"))
    for info in sorted(site.glob("*.dist-info")):
        if inside & {_name(info), *_top_level(info)}:
            yield info


def _collect_licences(target: Path, packages: Iterable[Path]) -> None:
    """The licence texts of those packages."""
    for info in packages:
        for text in [
            *info.glob("LICEN[CS]E*"),
            *info.glob("licenses/**/*"),
            *info.glob("COPYING*"),
        ]:
            if text.is_file():
                (target / _name(info)).mkdir(parents=True, exist_ok=True)
                shutil.copy(text, target / _name(info) / text.name)


def _name(info: Path) -> str:
    return info.name.split("-")[0].lower()


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
