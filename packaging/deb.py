"""The packaged program as a Debian package: ``python packaging/deb.py``.

Needs ``dist/plimsoll`` (``packaging/build.py``) and dpkg-deb. The program lies under ``/opt``;
``/usr`` gets the command, the manual page, the desktop entry, icons and the file type.
"""

from __future__ import annotations

import gzip
import os
import re
import shutil
import subprocess
import sys

import man
from build import BUNDLE, ROOT, size_bytes

sys.path.insert(0, str(ROOT))

from typing import TYPE_CHECKING

from engine.cli.version import program_version

if TYPE_CHECKING:
    from pathlib import Path

HERE = ROOT / "packaging" / "linux"
_OWN = ("libpython", "libQt6", "libicu", "libpyside6", "libshiboken6")
_SONAME = re.compile(r"NEEDED\s+(\S+)")
_GLIBC = re.compile(r"GLIBC_(\d+)\.(\d+)")
_COMPLETIONS = {
    "bash": "bash-completion/completions/plimsoll",
    "zsh": "zsh/vendor-completions/_plimsoll",
    "fish": "fish/vendor_completions.d/plimsoll.fish",
}
# What the program opens by name at run time, so that no file says it needs it.
_BY_NAME = ("libxcb-cursor0", "libxkbcommon-x11-0", "fonts-dejavu-core | fonts-freefont-ttf")


def main() -> int:
    """Build ``dist/plimsoll_VERSION_ARCH.deb``."""
    if not BUNDLE.is_dir():
        print("dist/plimsoll is missing: run packaging/build.py first", file=sys.stderr)
        return 2
    architecture = _answer("dpkg", "--print-architecture")
    tree = ROOT / "build" / "deb"
    shutil.rmtree(tree, ignore_errors=True)
    _lay_out(tree)
    _control(tree, architecture)
    target = BUNDLE.parent / f"plimsoll_{program_version()}_{architecture}.deb"
    made = subprocess.run(
        ["dpkg-deb", "--root-owner-group", "-Zzstd", "-z12", "--build", str(tree), str(target)],
        env={**os.environ, "SOURCE_DATE_EPOCH": _epoch()}, stdout=subprocess.DEVNULL, check=False,
    )  # fmt: skip
    if made.returncode == 0:
        print(f"{target.relative_to(ROOT)}: {target.stat().st_size / 1e6:.0f} MB")
    return made.returncode


def _lay_out(tree: Path) -> None:
    shutil.copytree(BUNDLE, tree / "opt" / "plimsoll", symlinks=True)
    command = tree / "usr" / "bin" / "plimsoll"
    command.parent.mkdir(parents=True)
    command.symlink_to("../../opt/plimsoll/plimsoll")
    share = tree / "usr" / "share"
    for source, target in (
        (HERE / "plimsoll.desktop", share / "applications" / "plimsoll.desktop"),
        (HERE / "plimsoll.xml", share / "mime" / "packages" / "plimsoll.xml"),
        (ROOT / "LICENSE", share / "doc" / "plimsoll" / "copyright"),
        (ROOT / "resources" / "icons" / "app.svg", share / _icon("scalable", "svg")),
        *(
            (
                ROOT / "resources" / "icons" / f"app-{size}.png",
                share / _icon(f"{size}x{size}", "png"),
            )
            for size in (16, 32, 48, 128, 512)
        ),
    ):
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)
    _squeeze(share / "man" / "man1" / "plimsoll.1.gz", man.page())
    for shell, target in _COMPLETIONS.items():
        (share / target).parent.mkdir(parents=True)
        (share / target).write_text(_answer(str(BUNDLE / "plimsoll"), "completion", shell) + "\n")
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    _squeeze(share / "doc" / "plimsoll" / "changelog.gz", changes)
    # Whoever built it may have a strict umask; whoever installs it has to read it.
    for path in tree.rglob("*"):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)


def _icon(size: str, kind: str) -> str:
    return f"icons/hicolor/{size}/apps/plimsoll.{kind}"


def _squeeze(target: Path, text: str) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(gzip.compress(text.encode(), 9, mtime=0))


def _control(tree: Path, architecture: str) -> None:
    folder = tree / "DEBIAN"
    folder.mkdir()
    lines = [
        "Package: plimsoll",
        f"Version: {program_version()}",
        f"Architecture: {architecture}",
        "Maintainer: The Plimsoll authors <authors@plimsoll.invalid>",
        f"Installed-Size: {size_bytes(tree) // 1024}",
        f"Depends: {', '.join(_depends(tree))}",
        "Section: science",
        "Priority: optional",
        "Description: will this model fit on this machine, and where does every byte go?",
        " Sizes language models for a device and a runtime by region and rank, shows what",
        " really happens beside what was predicted, and writes it down as a PDF.",
    ]
    (folder / "control").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _depends(tree: Path) -> list[str]:
    """Debian's packages of the libraries that the program needs and does not carry."""
    inside = {path.name for path in (tree / "opt").rglob("*.so*")}
    needed: set[str] = set()
    releases: set[tuple[int, int]] = set()
    for path in (tree / "opt").rglob("*"):
        is_program = path.name == "plimsoll" and path.is_file()
        if path.is_symlink() or not (is_program or ".so" in path.name):
            continue
        headers = subprocess.run(
            ["objdump", "-p", str(path)], capture_output=True, text=True, check=False
        )
        needed |= set(_SONAME.findall(headers.stdout))
        releases |= {(int(x), int(y)) for x, y in _GLIBC.findall(headers.stdout)}
    missing = {n for n in needed - inside if not n.startswith(_OWN)}
    found = {package for name in missing if (package := _package(name))}
    major, minor = max(releases)
    return sorted(found - {"libc6"} | {f"libc6 (>= {major}.{minor})"} | set(_BY_NAME))


def _package(soname: str) -> str:
    """Who brings a library, on the system that builds; empty where nobody here does."""
    listed = subprocess.run(
        ["dpkg", "-S", f"*/{soname}"], capture_output=True, text=True, check=False
    )
    return listed.stdout.partition(":")[0].strip() if listed.returncode == 0 else ""


def _answer(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def _epoch() -> str:
    """The time of the last commit, so that the same source makes the same package."""
    try:
        return _answer("git", "-C", str(ROOT), "log", "-1", "--format=%ct")
    except (OSError, subprocess.CalledProcessError):
        return "0"


if __name__ == "__main__":
    raise SystemExit(main())
