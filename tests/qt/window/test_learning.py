"""Learning from a run in the window: from its log to plans that follow it, and back."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QFileDialog, QPushButton, QTableWidget

from engine import lessons
from engine.budget.model import Region
from engine.evidence import Basis
from gui.sizing.plan import Plan

MIB = 2**20
ON_CPU = """\
build: 6123 (79c1160b) with cc (Debian 12.2.0-14) 12.2.0 for x86_64-linux-gnu
llama_model_loader: loaded meta data with 29 key-value pairs and 292 tensors from \
/models/Meta-Llama-3.1-8B-Instruct-Q4_K_M.gguf (version GGUF V3 (latest))
print_info: file type   = Q4_K - Medium
load_tensors: offloaded 0/33 layers to GPU
load_tensors:   CPU_Mapped model buffer size =  4685.30 MiB
llama_context: n_seq_max     = 1
llama_context: n_ctx         = 8192
llama_context: n_batch       = 2048
llama_context: n_ubatch      = 512
llama_kv_cache:        CPU KV buffer size =  1024.00 MiB
llama_context:        CPU compute buffer size =   558.50 MiB
main: server is listening on http://127.0.0.1:8080
"""


@pytest.fixture
def read_log(app, qtbot):
    app.diagnosing.read(ON_CPU)
    qtbot.waitUntil(lambda: app.diagnosing.model.state is not None, timeout=20_000)
    return app


def button(parent, name: str) -> QPushButton:
    return next(b for b in parent.findChildren(QPushButton) if name in (b.objectName(), b.text()))


def learn(app, qtbot) -> None:
    button(app.diagnosing.view, "learn from this run").click()
    qtbot.waitUntil(lambda: len(app.learning.kept.lessons) == 1, timeout=20_000)


def activations(app):
    return app.model.state.sizing.budget.ranks[0].regions[Region.ACTIVATIONS].estimate


def test_that_a_plan_follows_the_run_it_was_learned_from_until_it_is_forgotten(read_log, qtbot):
    app = read_log
    learn(app, qtbot)
    (lesson,) = app.learning.kept.lessons
    measured = {region: one.size_bytes for region, one in lesson.ranks[0].items()}
    assert measured["kv_cache"] == 1024 * MIB
    assert measured["activations"] == round(558.5 * MIB)
    app.model.open(
        app.diagnosing.model.state.run.plan.model,
        Plan(app.diagnosing.model.state.run.plan.deployment),
    )
    qtbot.waitUntil(lambda: app.model.state.sizing is not None, timeout=20_000)
    assert activations(app).basis is Basis.LEARNED
    assert activations(app).likely_bytes == round(558.5 * MIB)
    app.learning.page.forget.click()
    qtbot.waitUntil(lambda: not app.learning.kept.lessons, timeout=20_000)
    assert activations(app).basis is not Basis.LEARNED
    app.learning.page.undo.click()
    qtbot.waitUntil(lambda: len(app.learning.kept.lessons) == 1, timeout=20_000)
    assert activations(app).basis is Basis.LEARNED


def test_that_what_was_learned_is_there_at_the_next_start_and_in_the_settings(
    read_log, qtbot, start, tmp_path
):
    learn(read_log, qtbot)
    again = start()
    qtbot.waitUntil(lambda: len(again.learning.kept.lessons) == 1, timeout=20_000)
    again.preferring.dialog.open_page("Learned runs")
    table = again.preferring.dialog.findChild(QTableWidget, "learned runs")
    qtbot.waitUntil(table.isVisible, timeout=20_000)
    assert table.item(0, 2).text() == "llama.cpp b6123"
    assert "1.00 GiB measured" in again.learning.page.details.text()


def test_that_the_runs_are_written_to_a_file_that_reads_back(read_log, qtbot, tmp_path):
    learn(read_log, qtbot)
    read_log.learning.page.export.click()
    target = tmp_path / "runs.jsonl"
    read_log.window.findChild(QFileDialog).fileSelected.emit(str(target))
    qtbot.waitUntil(target.exists, timeout=20_000)
    qtbot.waitUntil(lambda: bool(lessons.read(target).lessons), timeout=20_000)
    assert lessons.read(target).lessons == read_log.learning.kept.lessons


def test_that_a_file_of_a_later_version_is_told_and_left(start, qtbot, tmp_path):
    folder = tmp_path / "settings"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / lessons.FILE_NAME).write_text('{"schema": "plimsoll.learned/9"}\n')
    app = start()
    qtbot.waitUntil(lambda: "learned.jsonl" in app.trouble.line.text(), timeout=20_000)
    assert (folder / lessons.FILE_NAME).read_text() == '{"schema": "plimsoll.learned/9"}\n'


def test_that_a_log_teaches_nothing_while_another_machine_is_watched(read_log, qtbot):
    app = read_log
    app.window.commands["simulated"].trigger()
    button(app.diagnosing.view, "learn from this run").click()
    assert "go back to this computer first" in app.trouble.line.text()
    app.window.commands["simulated"].trigger()
    learn(app, qtbot)
    (lesson,) = app.learning.kept.lessons
    assert not any("Simulated" in device for device in lesson.key.devices)
