"""The packaged program as an AppImage: ``python packaging/appimage.py --runtime FILE``.

The runtime is AppImage's own small program that mounts the rest (type 2, for this architecture);
it comes from the AppImage project and is given by who builds, since nothing here may fetch it.
Needs ``dist/plimsoll`` (``packaging/build.py``) and mksquashfs (squashfs-tools).
"""

from __future__ import annotations

import argparse
import platform
import shutil
import subprocess
import sys
from pathlib import Path

from build import BUNDLE, ROOT
from marks import VERSION

_ELF = b"\x7fELF"
_MAGIC_AT, _MAGIC = 8, b"AI\x02"


def main(arguments: list[str]) -> int:
    """Build ``dist/Plimsoll-VERSION-ARCH.AppImage``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runtime", type=Path, required=True, help="AppImage's type 2 runtime")
    runtime = parser.parse_args(arguments).runtime.read_bytes()
    if not runtime.startswith(_ELF) or runtime[_MAGIC_AT : _MAGIC_AT + 3] != _MAGIC:
        print("That file is no type 2 runtime of AppImage.", file=sys.stderr)
        return 2
    if not BUNDLE.is_dir() or shutil.which("mksquashfs") is None:
        print("Needs dist/plimsoll (packaging/build.py) and mksquashfs.", file=sys.stderr)
        return 2
    tree = ROOT / "build" / "AppDir"
    shutil.rmtree(tree, ignore_errors=True)
    lay_out(tree)
    packed = tree.with_suffix(".squashfs")
    packed.unlink(missing_ok=True)
    made = subprocess.run(
        [
            "mksquashfs",
            str(tree),
            str(packed),
            "-root-owned",
            "-noappend",
            "-quiet",
            "-comp",
            "zstd",
        ],
        check=False,
    )
    if made.returncode:
        return made.returncode
    target = BUNDLE.parent / f"Plimsoll-{VERSION}-{platform.machine()}.AppImage"
    with target.open("wb") as file:
        file.write(runtime)
        with packed.open("rb") as rest:
            shutil.copyfileobj(rest, file)
    target.chmod(0o755)
    print(f"{target.relative_to(ROOT)}: {target.stat().st_size / 1e6:.0f} MB")
    return 0


def lay_out(tree: Path) -> None:
    """The AppDir: the program, and at its top what starts, names and pictures it."""
    shutil.copytree(BUNDLE, tree / "opt" / "plimsoll", symlinks=True)
    (tree / "AppRun").symlink_to("opt/plimsoll/plimsoll")
    shutil.copy(ROOT / "packaging" / "linux" / "plimsoll.desktop", tree)
    shutil.copy(ROOT / "resources" / "icons" / "app.svg", tree / "plimsoll.svg")
    (tree / ".DirIcon").symlink_to("plimsoll.svg")


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
