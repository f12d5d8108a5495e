"""The launcher and what it prepares: the right part, once, from anywhere."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# Stands in for packaging/prepare.py: notes what it was asked for and leaves the stamp.
PREPARE = """
import sys
from pathlib import Path
root = Path(__file__).resolve().parent.parent
need = sys.argv[1]
with (root / "asked").open("a") as notes:
    notes.write(need + "\\n")
lock = "dev" if need == "tests" else "app"
text = (root / "packaging" / "locks" / f"{lock}.txt").read_text()
(root / ".venv" / f"ready-{need}").write_text(f"{root}\\n{text}")
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with the real launcher, and stand-ins for all that it calls."""
    root = tmp_path / "check out"
    (root / "packaging" / "locks").mkdir(parents=True)
    (root / ".venv" / "bin").mkdir(parents=True)
    shutil.copy(ROOT / "plimsoll", root / "plimsoll")
    (root / "packaging" / "prepare.py").write_text(PREPARE)
    for lock in ("app", "dev"):
        (root / "packaging" / "locks" / f"{lock}.txt").write_text(f"{lock}==1\n")
    for name in ("plimsoll", "python"):
        stub = root / ".venv" / "bin" / name
        stub.write_text(f'#!/bin/sh\necho {name} "$@"\n')
        stub.chmod(0o755)
    return root


def start(root: Path, *arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    shown = {"DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    clean = {k: v for k, v in os.environ.items() if k not in shown} | {"PATH": path} | settings
    return subprocess.run(
        [str(root / "plimsoll"), *arguments], env=clean, capture_output=True, text=True, check=False
    )


def asked(root: Path) -> list[str]:
    notes = root / "asked"
    return notes.read_text().split() if notes.exists() else []


@pytest.mark.parametrize(
    ("arguments", "settings", "need"),
    [
        (["size", "model"], {}, "terminal"),
        (["launch", "model"], {"DISPLAY": ":0"}, "terminal"),
        (["parse-log", "-"], {"DISPLAY": ":0"}, "terminal"),
        (["--version"], {}, "terminal"),
        ([], {}, "terminal"),
        ([], {"DISPLAY": ":0"}, "window"),
        ([], {"WAYLAND_DISPLAY": "wayland-0"}, "window"),
        (["--offline"], {"DISPLAY": ":0"}, "window"),
        (["report", "model"], {}, "pages"),
        (["test"], {}, "tests"),
    ],
)
def test_that_only_the_part_that_is_asked_for_is_prepared(checkout, arguments, settings, need):
    start(checkout, *arguments, **settings)
    assert asked(checkout) == [need]


@pytest.mark.parametrize("word", ["-h", "--help"])
def test_that_help_of_the_tests_is_a_paragraph_and_installs_nothing(checkout, word):
    done = start(checkout, "test", word)
    assert done.returncode == 0
    assert done.stdout.startswith("plimsoll test runs every check")
    assert len(done.stdout.splitlines()) == 1
    assert asked(checkout) == []


def test_that_the_second_start_prepares_nothing_and_passes_its_arguments_on(checkout):
    start(checkout, "size", "a model")
    again = start(checkout, "size", "a model", "--json")
    assert asked(checkout) == ["terminal"]
    assert again.stdout == "plimsoll size a model --json\n"


def test_that_a_changed_lock_or_a_moved_checkout_is_prepared_again(checkout):
    start(checkout, "machine")
    (checkout / "packaging" / "locks" / "app.txt").write_text("app==2\n")
    start(checkout, "machine")
    assert asked(checkout) == ["terminal"] * 2
    moved = checkout.rename(checkout.with_name("elsewhere"))
    start(moved, "machine")
    assert asked(moved) == ["terminal"] * 3


def test_that_a_link_to_the_launcher_finds_its_checkout(checkout, tmp_path):
    link = tmp_path / "linked"
    link.symlink_to(checkout / "plimsoll")
    done = subprocess.run([str(link), "machine"], capture_output=True, text=True, check=False)
    assert done.stdout == "plimsoll machine\n"


def test_that_tests_get_the_arguments_meant_for_pytest(checkout):
    done = start(checkout, "test", "tests/unit", "-k", "kv cache")
    assert done.stdout.endswith("packaging/check.py tests/unit -k kv cache\n")


def test_that_a_machine_without_a_new_enough_python_is_told(checkout, tmp_path):
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("sh", "dirname", "readlink", "uname", "cat", "cmp", "echo"):
        found = shutil.which(name)
        if found:
            (tools / name).symlink_to(found)
    old = tools / "python3"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    done = start(checkout, "machine", PATH=str(tools))
    assert done.returncode == 2
    assert "Python 3.11 or newer" in done.stderr


@pytest.fixture
def prepare():
    path = ROOT / "packaging" / "prepare.py"
    spec = importlib.util.spec_from_file_location("prepare_under_test", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_that_without_root_the_missing_packages_are_named(prepare, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(shutil, "which", lambda _name: "/usr/bin/apt-get")
    with pytest.raises(prepare.UnreadyError, match="sudo apt-get install libegl1 libxcb-cursor0"):
        prepare._install(["libegl1", "libxcb-cursor0"])


def test_that_a_terminal_command_needs_no_system_package(prepare):
    assert prepare.LIBRARIES["terminal"] == {}


def test_that_the_locks_pin_everything_with_hashes_and_name_no_index():
    for name in ("app", "build", "dev"):
        text = (ROOT / "packaging" / "locks" / f"{name}.txt").read_text(encoding="utf-8")
        entries = [e for e in text.split("\n") if e[:1].isalnum()]
        assert entries
        assert all("==" in entry and entry.endswith("\\") for entry in entries)
        assert "://" not in text
        assert "--index" not in text


def test_that_the_locks_agree_and_hold_no_torch():
    pins = {
        name: dict(
            line.split(" ")[0].split("==")
            for line in (ROOT / "packaging" / "locks" / f"{name}.txt").read_text().splitlines()
            if "==" in line
        )
        for name in ("app", "build", "dev")
    }
    for name in ("app", "build"):
        assert pins[name].items() <= pins["dev"].items()
    assert pins["app"]["pyside6-essentials"] == "6.11.3"
    assert "torch" not in pins["dev"]


def run_program(*arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    shown = {"DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"}
    clean = {k: v for k, v in os.environ.items() if k not in shown} | settings
    return subprocess.run(
        [sys.executable, "-P", "-m", "gui", *arguments], env=clean | {"PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("settings", [{}, {"DISPLAY": ":63999"}, {"DISPLAY": "nonsense"}])
def test_that_without_a_display_the_answer_comes_in_the_terminal(settings):
    done = run_program(**settings)
    assert done.returncode == 0, done.stderr
    assert "GiB" in done.stdout
    assert "To see the window" in done.stdout
    # The plan of a fresh window, not the runtime's own context.
    assert "4 requests × 8,192 tokens" in " ".join(done.stdout.split())


@pytest.mark.parametrize("arguments", [["--ofline"], ["--replay"], ["--replay", "/no/such/file"]])
def test_that_a_slip_in_the_windows_options_costs_one_sentence(arguments):
    done = run_program(*arguments, QT_QPA_PLATFORM="offscreen")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("plimsoll: ")
    assert done.stderr.count("\n") == 1
