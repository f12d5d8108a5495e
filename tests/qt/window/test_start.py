"""What a start costs and touches."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
SLOW = ("transformers", "torch", "huggingface_hub", "httpx2", "keyring", "pydantic", "tokenizers")
"""Each of these costs a start between 0.2 and 3 seconds."""

START = """
import sys, pathlib
sys.path.insert(0, {root!r})
from PySide6.QtCore import QTimer
from gui import app as gui_app
application = gui_app.make_application(["plimsoll"])
app = gui_app.App(application, gui_app.Options(settings_folder=pathlib.Path({folder!r})))
app.start()
def look():
    if app.model.state.fit is None:
        return
    print("loaded:", sorted(set({slow!r}) & set(sys.modules)))
    app.window.close()
timer = QTimer()
timer.timeout.connect(look)
timer.start(20)
sys.exit(application.exec())
"""


def test_that_a_window_with_its_first_answer_has_loaded_nothing_slow(tmp_path):
    code = START.format(root=str(ROOT), folder=str(tmp_path), slow=SLOW)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "loaded: []" in done.stdout


def test_that_the_smoke_walk_passes_without_standard_streams(tmp_path):
    code = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r}); sys.stdout = None; sys.stderr = None\n"
        "from gui.__main__ import main\n"
        "sys.exit(main(['--smoke', '--offline', '--reset']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=90, check=False
    )
    assert done.returncode == 0


def test_that_the_smoke_walk_says_what_it_did(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "gui", "--smoke", "--offline", "--reset"],
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    assert "a report written" in done.stdout


def test_that_a_recording_that_is_none_ends_with_a_sentence(tmp_path):
    (tmp_path / "no.jsonl").write_text("nothing")
    done = subprocess.run(
        [sys.executable, "-m", "gui", "--replay", str(tmp_path / "no.jsonl")],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=ROOT,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("plimsoll: ")
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="Xvfb is for Linux")
def test_that_a_real_window_comes_up_under_a_display_server(tmp_path):
    environment = {k: v for k, v in os.environ.items() if k != "QT_QPA_PLATFORM"}
    if not environment.get("DISPLAY"):
        pytest.skip("no display server")
    done = subprocess.run(
        [sys.executable, "-m", "gui", "--smoke", "--offline", "--reset"],
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
        cwd=ROOT,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
