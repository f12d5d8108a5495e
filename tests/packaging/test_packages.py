"""What is handed out: the Debian package in a fresh root, the bill, the marks for other systems."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tomllib
from configparser import ConfigParser
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from resources import data

pytestmark = pytest.mark.bundle

ROOT = Path(__file__).resolve().parents[2]
PACKAGING = ROOT / "packaging"
PLANS = (
    {"runtime": "vllm", "gpu": "RTX 4090", "max_model_len": 8192, "concurrency": 16},
    {"runtime": "sglang", "gpu": "H100 SXM", "tensor_parallel_size": 2},
    {"runtime": "llama.cpp", "gpu_total_bytes": 8 * 2**30, "weight_format": "Q4_K_M"},
    {"runtime": "transformers", "gpu": "L40S", "prompt_len": 4000},
    {"runtime": "mlx", "gpu": "M4 Pro 48 GB", "weight_format": "mlx-4bit"},
)


def script(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(PACKAGING / name), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)


def clean() -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "LD_"))}
    return kept | {"QT_QPA_PLATFORM": "offscreen"}


@pytest.fixture(scope="module")
def root(bundle, tmp_path_factory) -> Path:
    """A fresh root in which the package is installed, as dpkg does it."""
    if shutil.which("dpkg-deb") is None:
        pytest.skip("no dpkg-deb here: a Debian package is made on Debian")
    done = script("deb.py")
    assert done.returncode == 0, done.stderr
    package = max((ROOT / "dist").glob("plimsoll_*.deb"), key=lambda p: p.stat().st_mtime)
    fresh = tmp_path_factory.mktemp("root")
    for folder in ("info", "updates"):
        (fresh / "var/lib/dpkg" / folder).mkdir(parents=True)
    (fresh / "var/lib/dpkg/status").touch()
    # Its dependencies are the machine's own, which this root does not list.
    install = ["dpkg", "--force-not-root", "--force-depends", "--force-script-chrootless", "--root"]
    done = subprocess.run(
        [*install, str(fresh), "--log", str(fresh / "log"), "-i", str(package)],
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return fresh


def test_that_the_installed_program_answers_two_hundred_plans_as_the_source_does(root):
    models = [entry["id"] for entry in data("catalogue")["models"][:40]]
    lines = "\n".join(
        json.dumps({"id": f"{at}-{number}", "model": model, **plan})
        for at, model in enumerate(models)
        for number, plan in enumerate(PLANS)
    )
    words = ["size", "--batch", "-", "--offline"]
    here, there = (
        subprocess.run(
            [*program, *words], env=environment, cwd=ROOT, input=lines, capture_output=True,
            text=True, check=False,
        )
        for program, environment in (
            ([sys.executable, "-m", "gui"], None),
            ([str(root / "usr/bin/plimsoll")], clean()),
        )
    )  # fmt: skip
    assert here.returncode == there.returncode == 0, there.stderr
    assert len(there.stdout.splitlines()) == 200
    assert there.stdout == here.stdout


def test_that_the_installed_program_opens_its_window(root):
    done = subprocess.run(
        [str(root / "usr/bin/plimsoll"), "--smoke"], env=clean(), stdin=subprocess.DEVNULL,
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_that_desktop_icons_type_and_manual_are_where_a_desktop_looks(root):
    share = root / "usr/share"
    entry = ConfigParser(interpolation=None)
    entry.read(share / "applications/plimsoll.desktop", encoding="utf-8")
    desktop = entry["Desktop Entry"]
    assert desktop["Exec"] == "plimsoll %f"
    assert (share / f"icons/hicolor/scalable/apps/{desktop['Icon']}.svg").is_file()
    types = ET.parse(share / "mime/packages/plimsoll.xml").getroot()
    (kind,) = types
    assert kind.attrib["type"] + ";" == desktop["MimeType"]
    assert [glob.attrib["pattern"] for glob in kind if glob.tag.endswith("glob")] == ["*.plimsoll"]
    page = gzip.decompress((share / "man/man1/plimsoll.1.gz").read_bytes()).decode()
    assert page.startswith(".TH PLIMSOLL 1")
    completion = share / "bash-completion/completions/plimsoll"
    words = f"source {completion}; COMP_WORDS=(plimsoll si); COMP_CWORD=1; _shtab_plimsoll"
    done = subprocess.run(
        ["bash", "-c", f"{words}; echo ${{COMPREPLY[@]}}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "size"
    # Every option of every command, as the program's own help has it.
    plain = page.replace("\\-", "-").replace("\\(aq", "'").replace("\\(ha", "^")
    for command in ("size", "parse-log", "learned"):
        helped = subprocess.run(
            [str(root / "usr/bin/plimsoll"), command, "--help"], env=clean(),
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        options = set(re.findall(r"(?<= )--[a-z][a-z-]+", helped.stdout))
        assert {"--help", "--json"} <= options
        assert {option for option in options if option not in plain} == set()


def test_that_the_package_names_the_libraries_it_does_not_carry(root):
    status = (root / "var/lib/dpkg/status").read_text(encoding="utf-8")
    depends = next(x for x in status.splitlines() if x.startswith("Depends:"))
    for package in ("libegl1", "libgl1", "libxcb-cursor0", "libc6 (>= 2."):
        assert package in depends
    assert "libqt6" not in depends


def test_that_the_package_weighs_less_than_its_limit(root):
    limits = tomllib.loads((PACKAGING / "limits.toml").read_text(encoding="utf-8"))
    package = max((ROOT / "dist").glob("plimsoll_*.deb"), key=lambda p: p.stat().st_mtime)
    assert package.stat().st_size < limits["package"]["size_mb"] * 10**6


def test_that_the_bill_lists_every_package_inside_with_its_version(bundle):
    bill = json.loads((bundle.parent / "bill-of-materials.json").read_text(encoding="utf-8"))
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    listed = {c["name"].lower(): c for c in bill["components"]}
    for name in ("numpy", "pyside6_essentials", "huggingface_hub", "keyring", "cryptography"):
        assert listed[name]["version"]
        assert listed[name]["purl"].startswith("pkg:pypi/")
    folders = {p.name for p in (bundle.parent / "licences" / "python").iterdir()}
    assert folders <= {name.replace("-", "_").replace(".", "_") for name in listed} | folders


def test_that_tokens_can_be_kept_by_the_desktops_own_keyring(bundle):
    inside = bundle.parent / "_internal"
    assert any(inside.glob("keyring-*.dist-info")), "keyring finds its ways through its metadata"
    assert (inside / "cryptography").is_dir(), "the Secret Service's way needs it"


def test_that_the_icons_of_other_systems_hold_the_same_pictures(tmp_path):
    sys.path.insert(0, str(PACKAGING))
    try:
        import icons
    finally:
        sys.path.remove(str(PACKAGING))
    data = icons.ico(tmp_path / "a.ico").read_bytes()
    count = struct.unpack_from("<HHH", data)[2]
    for at in range(count):
        size, offset = struct.unpack_from("<II", data, 6 + 16 * at + 8)
        assert data[offset : offset + 8] == b"\x89PNG\r\n\x1a\n"
        width = struct.unpack_from(">I", data, offset + 16)[0]
        assert width == data[6 + 16 * at]
        assert offset + size <= len(data)
    data = icons.icns(tmp_path / "a.icns").read_bytes()
    assert struct.unpack(">4sI", data[:8]) == (b"icns", len(data))


def test_that_an_appimage_refuses_a_file_that_is_no_runtime(bundle, tmp_path):
    strange = tmp_path / "runtime"
    strange.write_bytes(b"\x7fELF" + bytes(60))
    done = script("appimage.py", "--runtime", str(strange))
    assert done.returncode == 2
    assert "no type 2 runtime" in done.stderr


def test_that_an_appimage_is_the_runtime_with_the_program_behind_it(bundle, tmp_path):
    if shutil.which("mksquashfs") is None:
        pytest.skip("no mksquashfs here")
    runtime = tmp_path / "runtime"
    runtime.write_bytes(b"\x7fELF\0\0\0\0AI\x02" + bytes(53))
    done = script("appimage.py", "--runtime", str(runtime))
    assert done.returncode == 0, done.stderr
    made = next((ROOT / "dist").glob("*.AppImage"))
    with made.open("rb") as file:
        assert file.read(64) == runtime.read_bytes()
        assert file.read(4) == b"hsqs"
