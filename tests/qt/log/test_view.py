"""The room of a run: text, table and words, each with the figures of the log."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QTextCursor
from PySide6.QtWidgets import QLabel, QPlainTextEdit, QPushButton, QTableView

from engine import words
from engine.budget.model import Region
from engine.logs.remedies import Remedy
from engine.units import UnitSystem
from gui.kit.tasks import TaskRunner
from gui.kit.theme import load_theme
from gui.log import present
from gui.log.run_verdict import RunVerdict
from gui.log.view import LogView
from gui.log.view_model import LogViewModel
from tests.helpers import logs
from tests.helpers.logs import explained

STATED, PREDICTED, DIFFERENCE, LINE = 1, 2, 3, 4


@pytest.fixture
def model(qtbot):
    runner = TaskRunner()
    made = LogViewModel(runner)
    yield made
    assert runner.shutdown(5_000)


@pytest.fixture
def view(qtbot, model) -> LogView:
    made = LogView(model)
    qtbot.addWidget(made)
    made.set_theme(load_theme("light"))
    made.resize(1144, 560)
    made.show()
    return made


@pytest.fixture
def open_log(qtbot, model, view):
    def opened(text: str) -> LogView:
        with qtbot.waitSignal(model.opened, timeout=20_000):
            model.read_text(text)
        return view

    return opened


def cells(view: LogView, column: int) -> dict[str, str]:
    table = view.findChild(QTableView, "run regions")
    rows = table.model()
    return {
        rows.index(row, 0).data(): rows.index(row, column).data() for row in range(rows.rowCount())
    }


def said(view: LogView) -> str:
    return "\n".join(found.text() for found in view.findChildren(QLabel) if found.isVisible())


def editor(view: LogView) -> QPlainTextEdit:
    return view.findChild(QPlainTextEdit, "log text")


def button(view: LogView, name: str) -> QPushButton:
    return view.findChild(QPushButton, name)


def test_that_before_a_log_is_open_the_ways_to_one_are_shown(qtbot, view):
    assert "Drop a log anywhere, or paste it" in said(view)
    for name, signal in (
        ("paste a log first", view.paste_wanted),
        ("open a log first", view.open_wanted),
    ):
        with qtbot.waitSignal(signal):
            qtbot.mouseClick(button(view, name), Qt.MouseButton.LeftButton)


def test_that_stated_stands_beside_predicted_with_its_line(open_log):
    view = open_log(logs.TAKEN)
    assert cells(view, STATED)["Weights"] == "14.99"
    assert cells(view, PREDICTED)["Weights"] == "14.99"
    assert cells(view, DIFFERENCE)["Weights"] == "0.00"
    assert cells(view, LINE)["Weights"] == "4"
    assert cells(view, STATED)["KV cache"] == "5.31"
    # 23.64 − 21.59 − 0.01 GiB, all of it more than planned.
    assert cells(view, STATED)["Others"] == "2.04"
    assert cells(view, DIFFERENCE)["Others"] == "+2.04"
    assert cells(view, LINE)["Others"] == "9"


def test_that_what_happened_is_told_below_the_table(qtbot, open_log):
    view = open_log(logs.TAKEN)
    qtbot.waitUntil(lambda: "What happened" in said(view))
    text = said(view)
    assert "At the failure: this process 21.59 + others 2.04 + free 0.01 = 23.64 GiB" in text
    assert "Another process took memory that the run had counted on." in text
    assert "Others: 2.04 GiB above the plan." in text
    assert "Predicted for meta-llama/Llama-3.1-8B-Instruct." in text
    assert "vLLM 0.33.0, 9 lines, 9 understood" in text


def test_that_a_region_leads_to_its_line(open_log):
    view = open_log(logs.TAKEN)
    table = view.findChild(QTableView, "run regions")
    row = list(cells(view, STATED)).index("KV cache")
    table.selectRow(row)
    assert editor(view).textCursor().blockNumber() + 1 == int(cells(view, LINE)["KV cache"])
    marked = {m.cursor.blockNumber() + 1 for m in editor(view).extraSelections()}
    # Size, tokens and how many requests they are.
    assert marked == {5, 6, 7}


def test_that_a_line_leads_to_its_region(qtbot, model, open_log):
    view = open_log(logs.TAKEN)
    assert model.state.region is Region.FOREIGN
    text = editor(view)
    block = text.document().findBlockByNumber(3)
    place = text.cursorRect(QTextCursor(block)).center()
    qtbot.mouseClick(text.viewport(), Qt.MouseButton.LeftButton, pos=place)
    assert model.state.region is Region.WEIGHTS
    table = view.findChild(QTableView, "run regions")
    assert table.currentIndex().siblingAtColumn(0).data() == "Weights"


def test_that_lines_are_reached_with_the_keyboard(qtbot, model, open_log):
    view = open_log(logs.TAKEN)
    view.text.go_to(5)
    qtbot.keyClick(editor(view), Qt.Key.Key_Down)
    assert editor(view).textCursor().blockNumber() + 1 == 6
    assert model.state.region is Region.KV_CACHE


def test_that_the_text_is_the_logs_own_and_cannot_be_changed(qtbot, open_log):
    text = editor(open_log(logs.TAKEN))
    assert text.toPlainText() == logs.TAKEN.rstrip("\n")
    qtbot.keyClicks(text, "x")
    assert text.toPlainText() == logs.TAKEN.rstrip("\n")


def test_that_the_failing_line_stands_out_and_each_other_has_its_regions_edge(open_log):
    view = open_log(logs.TAKEN)
    theme = load_theme("light")
    block = editor(view).document().findBlockByNumber(8)
    assert block.blockFormat().background().color() == theme.color("over.soft")
    view.text.go_to(1)
    picture = view.text._margin.grab().toImage()
    edge = {picture.pixelColor(1, y).name() for y in range(picture.height())}
    for name in ("region.weights", "region.kv", "over"):
        assert theme.color(name).name() in edge


def test_that_another_rank_can_be_shown(qtbot, model, open_log):
    view = open_log(logs.RANK)
    assert view.rank.isVisible()
    # The one that failed comes first.
    assert view.rank.currentText() == "TP1"
    assert cells(view, STATED)["Weights"] == "10.80"
    view.rank.picked.emit(0)
    assert cells(view, STATED)["Weights"] == "10.30"


def test_that_sizes_follow_the_unit(model, open_log):
    view = open_log(logs.TAKEN)
    model.set_unit(UnitSystem.DECIMAL)
    # 5.31 GiB.
    assert cells(view, STATED)["KV cache"] == "5.70"
    table = view.findChild(QTableView, "run regions").model()
    assert table.headerData(0, Qt.Orientation.Horizontal) == "Region, GB"


def test_that_a_log_without_a_model_can_be_predicted_for_the_windows(qtbot, model, open_log):
    view = open_log(logs.RANK)
    view.offer_model("Qwen/Qwen3-8B")
    assert cells(view, PREDICTED)["Weights"] == "–"
    ask = button(view, "predict the run")
    assert ask.text() == "Predict for Qwen3-8B"
    with qtbot.waitSignal(view.predict_wanted):
        qtbot.mouseClick(ask, Qt.MouseButton.LeftButton)
    with qtbot.waitSignal(model.opened, timeout=20_000):
        model.predict({"model": "Qwen/Qwen3-8B", "tensor_parallel_size": 2})
    # 8,190,735,360 parameters in BF16 over two ranks, and what each keeps whole.
    assert cells(view, PREDICTED)["Weights"].startswith("7.6")
    assert not ask.isVisible()


def test_that_text_of_no_runtime_costs_one_sentence_and_leaves_the_open_log(qtbot, model, open_log):
    view = open_log(logs.TAKEN)
    with qtbot.waitSignal(model.failed, timeout=20_000) as caught:
        model.read_text("hello\nworld\n")
    assert caught.args[0].message.startswith("No line of Pasted log is known. Known are start-up")
    assert editor(view).toPlainText() == logs.TAKEN.rstrip("\n")


def test_that_a_metrics_page_is_told_in_words(qtbot, open_log):
    page = (
        'vllm:kv_cache_usage_perc{engine="0",model_name="X/Y"} 0.25\n'
        'vllm:num_requests_running{engine="0",model_name="X/Y"} 3.0\n'
        'vllm:num_requests_waiting{engine="0",model_name="X/Y"} 0.0\n'
    )
    view = open_log(page)
    qtbot.waitUntil(lambda: "What happened" in said(view))
    shown = said(view)
    assert "25 % of the KV cache is in use. 3 requests run, 0 wait." in shown
    assert "vLLM" in shown


def test_that_a_change_without_a_known_margin_is_copied_without_one(model, open_log):
    open_log(logs.FRAGMENTATION)
    with_card = explained(logs.FRAGMENTATION, gpu_total_bytes=24 * 2**30)
    text = present.markdown(replace(model.state, run=with_card))
    assert "expandable_segments:True" in text
    assert "()" not in text


def test_that_a_closed_log_leaves_nothing(model, open_log):
    view = open_log(logs.TAKEN)
    assert model.close()
    assert not model.close()
    assert "Drop a log anywhere" in said(view)
    assert editor(view).toPlainText() == ""


def test_that_a_file_that_is_not_there_is_a_failure(qtbot, model, tmp_path):
    with qtbot.waitSignal(model.failed, timeout=20_000) as caught:
        model.read_file(Path(tmp_path / "no.log"))
    assert caught.args[0].message.endswith("no.log.")


def test_that_a_pipe_is_refused_and_not_waited_for(qtbot, model, tmp_path):
    os.mkfifo(tmp_path / "pipe.log")
    with qtbot.waitSignal(model.failed, timeout=20_000) as caught:
        model.read_file(tmp_path / "pipe.log")
    assert caught.args[0].message.endswith("pipe.log is not a file.")
    assert not model.is_busy


def test_that_the_verdict_is_of_the_run_and_offers_what_would_have_helped(qtbot, model, open_log):
    open_log(logs.TAKEN)
    verdict = RunVerdict()
    qtbot.addWidget(verdict)
    verdict.set_theme(load_theme("light"))
    verdict.resize(1144, 120)
    verdict.show_state(model.state)
    verdict.show()
    assert verdict.headline.full_text.startswith("This run ran out: 18 MiB short")
    labels = [b.text() for b in verdict.buttons]
    assert labels[0] == "Without the others"
    # What another program holds is nothing that a plan can be asked for.
    assert not verdict.buttons[0].isEnabled()
    with qtbot.waitSignal(verdict.chosen) as caught:
        qtbot.mouseClick(verdict.buttons[1], Qt.MouseButton.LeftButton)
    assert caught.args[0].deployment.gpu_memory_utilization < 0.92
    with qtbot.waitSignal(verdict.close_wanted):
        qtbot.mouseClick(verdict.close_button, Qt.MouseButton.LeftButton)


def test_that_a_margin_has_the_separators_of_its_language(request):
    request.addfinalizer(lambda: words.choose("en"))
    words.choose("de")
    # 4.5 GiB.
    remedy = Remedy("Without the others", 4_831_838_208)
    assert present.remedy_margin(remedy, UnitSystem.BINARY) == "+4,5 GiB"
