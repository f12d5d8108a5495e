"""A start that really dies leaves a trace, and the next one says so, once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication, QPushButton

from gui.kit.crashes import CrashLog
from gui.kit.settings import FILE_NAME

ROOT = Path(__file__).resolve().parents[3]

# Starts the window as the program does, and ends it in the way that is asked for.
PROGRAM = """
import ctypes, os, signal, sys
sys.path.insert(0, {root!r})
from PySide6.QtCore import QTimer
from gui import app as gui_app
from gui.__main__ import main

how, *arguments = sys.argv[1:]


class Program(gui_app.App):
    def start(self):
        if how == "raise at start":
            raise RuntimeError("planted, with token=abcdefgh in " + os.path.expanduser("~/models"))
        if how == "die at start":
            ctypes.string_at(0)
        if how == "die of the session":
            # It takes a moment to be read, and the window looks as if it stood.
            self.session.restore = lambda: QTimer.singleShot(1000, lambda: ctypes.string_at(0))
        super().start()
        timer = QTimer(self)
        timer.timeout.connect(self.look)
        timer.start(20)

    def look(self):
        if not self.crashing.has_rested:
            return
        print("safe:", self.is_safe, "| crash:", self.crashing.notice.isVisible(), "| files:",
              len(self.window.status_line.sampling.words.full_text) > 0, flush=True)
        if how == "die":
            ctypes.string_at(0)
        if how == "kill":
            os.kill(os.getpid(), signal.SIGTERM)
        self.window.close()


gui_app.App = Program
sys.exit(main(["--offline", *arguments]))
"""


@pytest.fixture
def begin(tmp_path):
    """Run the program to its end; its folders are the test's."""

    def run(how: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        folders = {
            name: str(tmp_path / name) for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "HOME")
        }
        return subprocess.run(
            [sys.executable, "-c", PROGRAM.format(root=str(ROOT)), how, *arguments],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            env=os.environ | folders,
        )

    return run


@pytest.fixture
def folder(tmp_path):
    """Where the platform's library puts logs on Linux."""
    return tmp_path / "XDG_STATE_HOME" / "plimsoll" / "log"


pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="signals and folders of Linux")


FATAL = "Fatal Python error: Aborted\n\nCurrent thread"
RESTED = "The window came to rest.\n"


def _reports(folder: Path) -> list[str]:
    return [path.read_text() for path in sorted(folder.glob("crash-*.txt"))]


def _session(folder: Path, name: str, text: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / f"session-{name}.log").write_text(f"Plimsoll\n{text}\n")


def test_that_a_segmentation_fault_is_written_down_and_told_once_at_the_next_start(begin, folder):
    died = begin("die")
    assert died.returncode == -signal.SIGSEGV, died.stderr
    told = begin("close")
    assert told.returncode == 0, told.stderr
    assert "crash: True" in told.stdout
    (text,) = _reports(folder)
    assert "Fatal Python error: Segmentation fault" in text
    assert "in look" in text
    assert "came to rest" in text
    again = begin("close")
    assert "crash: False" in again.stdout
    assert len(_reports(folder)) == 1
    assert not list(folder.glob("session-*"))


def test_that_a_kill_and_an_orderly_end_leave_nothing_to_tell(begin, folder):
    assert begin("close").returncode == 0
    assert not list(folder.glob("session-*"))
    assert begin("kill").returncode == -signal.SIGTERM
    assert "crash: False" in begin("close").stdout
    assert _reports(folder) == []


def test_that_an_error_at_start_is_one_sentence_and_a_report_without_secrets(begin, folder):
    failed = begin("raise at start")
    assert failed.returncode == 70
    # Qt's offscreen platform may have said something of its own before.
    ours = [line for line in failed.stderr.splitlines() if line.startswith("plimsoll: ")]
    assert len(ours) == 1
    assert ours[0].startswith("plimsoll: Something went wrong inside Plimsoll")
    assert "Traceback" not in failed.stderr
    assert "crash: True" in begin("close").stdout
    (text,) = _reports(folder)
    assert "RuntimeError: planted, with token=*** in ~/models" in text
    assert "in start" in text


def test_that_two_failed_starts_make_a_safe_one_and_that_one_leads_back(begin, tmp_path):
    assert "safe: False" in begin("close").stdout
    settings = tmp_path / "XDG_CONFIG_HOME" / "plimsoll" / FILE_NAME
    kept = settings.read_text()
    assert begin("die at start").returncode == -signal.SIGSEGV
    assert begin("raise at start").returncode == 70
    safe = begin("close")
    assert "safe: True" in safe.stdout
    assert settings.read_text() == kept
    assert "safe: False" in begin("close").stdout


def test_that_a_session_that_kills_the_window_is_left_aside_after_two_starts(begin):
    assert "safe: False" in begin("close").stdout
    for _ in range(2):
        assert begin("die of the session").returncode == -signal.SIGSEGV
    assert "safe: True" in begin("close").stdout


@pytest.mark.parametrize(
    ("ends", "safe"),
    [
        ((FATAL, FATAL), True),
        ((FATAL, FATAL, FATAL), True),
        ((FATAL, RESTED + FATAL), False),
        ((FATAL, FATAL, RESTED + FATAL), False),
        ((FATAL, ""), False),
        ((FATAL, "", FATAL), True),
        ((FATAL,), False),
    ],
)
def test_that_only_crashes_before_the_window_came_to_rest_are_failed_starts(tmp_path, ends, safe):
    log = CrashLog(tmp_path / "log")
    for number, end in enumerate(ends):
        _session(tmp_path / "log", str(number), end)
        os.utime(tmp_path / "log" / f"session-{number}.log", (number * 60, number * 60))
    log.collect()
    assert log.wants_safe_start is safe


def test_that_a_start_can_be_asked_to_be_safe(begin):
    assert "safe: True" in begin("close", "--safe").stdout


def test_that_no_more_than_five_reports_are_kept(tmp_path):
    for number in range(8):
        _session(tmp_path / "log", str(number), FATAL)
        os.utime(tmp_path / "log" / f"session-{number}.log", (number * 60, number * 60))
    log = CrashLog(tmp_path / "log")
    log.collect()
    minutes = sorted(int(r.at.timestamp()) // 60 for r in log.untold())
    assert minutes == [3, 4, 5, 6, 7]


HOLD = """
import pathlib, sys
sys.path.insert(0, {root!r})
from gui.kit.crashes import CrashLog
log = CrashLog(pathlib.Path({folder!r}))
log.begin()
print("open", flush=True)
sys.stdin.readline()
log.end()
"""


def test_that_a_window_that_is_open_keeps_its_file(tmp_path):
    code = HOLD.format(root=str(ROOT), folder=str(tmp_path))
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout.readline() == "open\n"
        CrashLog(tmp_path).collect()
        assert len(list(tmp_path.glob("session-*.log"))) == 1
        other.communicate("\n")
    assert not list(tmp_path.glob("session-*"))


@pytest.mark.parametrize("state", [b"", b"[]", b'{"failed_starts": "x", "told": 3}', b"\xff"])
def test_that_a_broken_state_file_is_no_state(tmp_path, state):
    (tmp_path / "state.json").write_bytes(state)
    log = CrashLog(tmp_path)
    assert not log.wants_safe_start
    assert log.untold() == ()


def _button(notice, text):
    return next(b for b in notice.findChildren(QPushButton) if b.text() == text)


def test_that_the_report_can_be_copied_and_deleted_from_the_notice(start, tmp_path):
    _session(tmp_path / "log", "a", FATAL)
    log = CrashLog(tmp_path / "log")
    log.collect()
    app = start(crashes=log)
    notice = app.crashing.notice
    assert notice.isVisible()
    assert notice.line.text().startswith("Plimsoll closed unexpectedly on ")
    assert "Nothing has been sent" in notice.second.text()
    _button(notice, "Copy report").click()
    assert "Fatal Python error: Aborted" in QApplication.clipboard().text()
    _button(notice, "Delete").click()
    assert not notice.isVisible()
    assert not list((tmp_path / "log").glob("crash-*"))


def test_that_a_safe_start_says_what_is_left_aside_and_keeps_the_hub_forbidden(start, tmp_path):
    folder = tmp_path / "settings"
    folder.mkdir()
    kept = json.dumps({"schema_version": 1, "scheme": "dark", "tabs_folded": True, "offline": True})
    (folder / FILE_NAME).write_text(kept)
    app = start(safe=True)
    assert app.crashing.safe_notice.isVisible()
    assert "close Plimsoll and start it again" in app.crashing.safe_notice.second.text()
    assert app.settings.tabs_folded is None
    assert app.settings.scheme == "dark"
    assert app.settings.offline
    assert [d.uuid for d in app.watch.last.devices] == ["host"]
    assert not app.watch.is_sampling
    assert app.window.status_line.sampling.words.full_text == "Not sampling"
    app.window.close()
    assert (folder / FILE_NAME).read_text() == kept


def test_that_a_safe_start_measures_again_when_asked_and_still_asks_no_driver(start):
    app = start(safe=True)
    before = app.watch.last
    app.window.commands["measure"].trigger()
    assert app.watch.last.monotonic_s > before.monotonic_s
    assert [d.uuid for d in app.watch.last.devices] == ["host"]
    assert app.model.state.here == app.watch.machine()
    assert not app.watch.is_sampling


@pytest.mark.parametrize("how", [{"safe": True}, {"smoke": True}])
@pytest.mark.parametrize("content", ["{", '{"schema_version": 99}'])
def test_that_settings_that_cannot_be_read_stay_where_they_are_in_a_start_that_keeps_nothing(
    start, tmp_path, how, content
):
    folder = tmp_path / "settings"
    folder.mkdir()
    (folder / FILE_NAME).write_text(content)
    app = start(**how)
    app.window.close()
    assert [path.name for path in folder.iterdir()] == [FILE_NAME]
    assert (folder / FILE_NAME).read_text() == content


def test_that_a_safe_start_after_crashes_can_set_the_last_session_aside(start, tmp_path):
    folder = tmp_path / "settings"
    folder.mkdir()
    (folder / "session.json").write_text("what killed")
    for name in ("a", "b"):
        _session(tmp_path / "log", name, FATAL)
    log = CrashLog(tmp_path / "log")
    log.collect()
    app = start(crashes=log)
    assert app.is_safe
    assert (folder / "session.json").exists()
    _button(app.crashing.safe_notice, "Set the last session aside").click()
    aside = folder / "session.unread.json"
    assert aside.read_text() == "what killed"
    assert not (folder / "session.json").exists()
    assert str(aside) in app.note.line.text()
    assert not _button(app.crashing.safe_notice, "Set the last session aside").isVisible()


def test_that_a_safe_start_by_wish_offers_no_such_thing(start):
    app = start(safe=True)
    assert app.crashing.safe_notice.isVisible()
    assert not _button(app.crashing.safe_notice, "Set the last session aside").isVisible()
