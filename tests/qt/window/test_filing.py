"""Files in and out through the window's own dialogs, which never block it."""

from __future__ import annotations

import json

import pytest
from pypdf import PdfReader
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QDialog, QFileDialog

from gui.kit.about import AboutDialog
from tests.helpers import logs


def _dialog(app) -> QFileDialog:
    dialog = next(d for d in app.window.findChildren(QFileDialog) if d.isVisible())
    assert dialog.windowModality()
    return dialog


def _choose(app, path) -> None:
    dialog = _dialog(app)
    dialog.fileSelected.emit(str(path))
    dialog.done(QDialog.DialogCode.Accepted)


def test_that_a_report_is_written_where_the_dialog_said(app, qtbot, tmp_path):
    app.window.commands["report"].trigger()
    _dialog(app).selectNameFilter("PDF, Letter (*.pdf)")
    _choose(app, tmp_path / "a.pdf")
    qtbot.waitUntil(lambda: "a.pdf" in app.note.line.text(), timeout=20_000)
    assert (tmp_path / "a.pdf").read_bytes().startswith(b"%PDF")
    assert app.settings.page == "Letter"
    assert app.settings.last_folder == str(tmp_path)
    assert "a.pdf" in app.note.line.text()


@pytest.mark.parametrize(
    ("kind", "suffix", "begins"),
    [
        ("Markdown (*.md)", ".md", "<!-- Plimsoll report -->"),
        ("Web page (*.html)", ".html", "<!DOCTYPE html>"),
        ("Table of bytes (*.csv)", ".csv", "rank,device,part,name,low (bytes)"),
        ("JSON, as the terminal answers (*.json)", ".json", '{"schema":"plimsoll.budget/1"'),
    ],
)
def test_that_a_report_is_of_the_kind_that_was_chosen(app, qtbot, tmp_path, kind, suffix, begins):
    app.window.commands["report"].trigger()
    dialog = _dialog(app)
    dialog.setDirectory(str(tmp_path))
    dialog.selectNameFilter(kind)
    dialog.filterSelected.emit(kind)
    assert dialog.defaultSuffix() == suffix[1:]
    (suggested,) = dialog.selectedFiles()
    assert suggested.endswith(suffix)
    _choose(app, suggested)
    qtbot.waitUntil(lambda: suffix in app.note.line.text(), timeout=20_000)
    assert (tmp_path / suggested).read_text().startswith(begins)


def test_that_the_report_has_the_plans_of_the_comparison(app, tmp_path):
    path = tmp_path / "plan.md"
    app.compare.add(app.model.state)
    app.filing.write_report(path)
    assert "Plans side by side" not in path.read_text()  # one alone is compared with nothing
    app.model.choose_device("H100 SXM 80GB")
    app.compare.add(app.model.state)
    app.filing.write_report(path)
    text = path.read_text()
    assert "## Plans side by side" in text
    (second,) = [line for line in text.splitlines() if line.startswith("| B | ")]
    assert "H100 SXM 80GB" in second
    assert app.compare.entries[1].sizing.verdict.headline in second


def test_that_a_report_is_on_the_plan_at_the_click_whatever_follows(app, qtbot, tmp_path):
    path = tmp_path / "a.pdf"
    headline = app.model.state.sizing.verdict.headline
    app.window.commands["report"].trigger()
    _choose(app, path)
    app.model.choose_device("H100 SXM 80GB")
    assert app.model.state.sizing.verdict.headline != headline
    qtbot.waitUntil(lambda: "a.pdf" in app.note.line.text(), timeout=20_000)
    assert headline in PdfReader(path).pages[0].extract_text()


def test_that_a_report_of_no_kind_is_a_sentence(app, qtbot, tmp_path):
    app.window.commands["report"].trigger()
    _choose(app, tmp_path / "a.docx")
    qtbot.waitUntil(app.trouble.isVisible, timeout=20_000)
    assert ".pdf, .html, .md, .csv, .json" in app.trouble.line.text()
    assert not (tmp_path / "a.docx").exists()


def test_that_a_report_that_cannot_be_written_is_a_sentence(app, qtbot, tmp_path):
    app.window.commands["report"].trigger()
    _choose(app, tmp_path / "no" / "such" / "a.pdf")
    qtbot.waitUntil(app.trouble.isVisible, timeout=20_000)
    assert "inside Plimsoll" not in app.trouble.line.text()


def test_that_a_model_is_opened_through_the_dialog(app, qtbot, tmp_path):
    config = {
        "model_type": "llama",
        "hidden_size": 256,
        "intermediate_size": 512,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "vocab_size": 1000,
        "torch_dtype": "float16",
    }
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config))
    app.window.commands["open"].trigger()
    _choose(app, path)
    qtbot.waitUntil(lambda: app.model.state.model.spec.hidden_size == 256, timeout=20_000)


def test_that_recording_starts_after_the_dialog_and_ends_by_the_same_command(app, tmp_path):
    record = app.window.commands["record"]
    record.trigger()
    assert not record.isChecked()
    _choose(app, tmp_path / "m.jsonl")
    assert record.isChecked()
    record.trigger()
    assert not record.isChecked()
    assert (tmp_path / "m.jsonl").read_text().startswith('{"schema"')
    assert "m.jsonl" in app.note.line.text()


def test_that_a_cancelled_dialog_changes_nothing(app):
    app.window.commands["record"].trigger()
    _dialog(app).reject()
    assert not app.watch.is_recording


def test_that_the_answer_is_copied_as_markdown(app):
    app.window.commands["copy"].trigger()
    assert app.model.state.sizing.verdict.headline in QApplication.clipboard().text()


def test_that_about_names_the_licences_of_what_is_bundled(app):
    app.window.commands["about"].trigger()
    dialog = app.window.findChild(AboutDialog)
    text = dialog.findChildren(object, "")
    words = " ".join(w.toPlainText() for w in text if hasattr(w, "toPlainText"))
    assert "SIL OPEN FONT LICENSE" in words
    assert "ISC License" in words
    dialog.reject()


@pytest.mark.parametrize("tab", ["regions", "map", "compare", "holds", "checklist", "log"])
def test_that_one_key_copies_the_plan_from_every_tab(app, qtbot, tab):
    assert app.window.commands["copy"].shortcut().toString() == "Ctrl+Shift+C"
    QApplication.clipboard().clear()
    app.window.commands[f"tab {tab}"].trigger()
    both = Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier
    qtbot.keyClick(app.window.focusWidget() or app.window, Qt.Key.Key_C, both)
    assert app.model.state.sizing.verdict.headline in QApplication.clipboard().text()


def test_that_the_open_log_of_the_plan_stands_in_its_report(app, qtbot, tmp_path):
    path = tmp_path / "plan.md"
    app.diagnosing.read(logs.TAKEN)
    qtbot.waitUntil(lambda: app.diagnosing.model.state is not None, timeout=20_000)
    app.filing.write_report(path)  # a log of another model says nothing of this plan
    assert "Stated by the log" not in path.read_text()
    app.window.commands["plan log"].trigger()
    qtbot.waitUntil(lambda: "8B" in app.model.state.model.id, timeout=20_000)
    qtbot.waitUntil(lambda: app.model.is_settled, timeout=20_000)
    app.filing.write_report(path)
    text = path.read_text()
    assert "### Stated by the log" in text
    assert "This run ran out: 18 MiB short while capturing graphs." in text
