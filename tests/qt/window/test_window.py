"""The one window: it starts useful, keeps its shape at every size, and leaves in order."""

from __future__ import annotations

import json
import threading

import pytest
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QDropEvent
from PySide6.QtWidgets import QApplication, QLabel, QPushButton, QToolButton

from engine.errors import TelemetryError
from engine.units import UnitSystem
from gui.browser.listing import Sort
from gui.kit.actions import COMMANDS
from gui.kit.settings import FILE_NAME, Settings


def _drop(window, mime):
    event = QDropEvent(
        QPointF(400, 400),
        Qt.DropAction.CopyAction,
        mime,
        Qt.MouseButton.LeftButton,
        Qt.KeyboardModifier.NoModifier,
    )
    window.dropEvent(event)


def _drop_path(window, path):
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile(str(path))])
    _drop(window, mime)


def test_that_the_first_second_is_useful_without_network(app):
    state = app.model.state
    assert state.model is not None
    assert state.machine.is_here
    assert app.window.windowTitle().startswith(state.model.id.rsplit("/", 1)[-1])
    assert app.welcome.isVisible()
    assert "Nothing has been sent" in app.welcome.second.text()
    assert "Off-line" in app.window.status_line.hub.words.full_text


def test_that_samples_arrive_and_add_up_in_the_status_line(app, qtbot):
    qtbot.waitUntil(lambda: bool(app.watch.recorded), timeout=5000)
    assert "psutil" in app.window.status_line.sampling.words.full_text
    text = app.window.status_line.balance.full_text
    left, right = text.split(" = ")
    parts = [float(part.split()[0].replace(",", "")) for part in left.split(" + ")]
    assert sum(parts) == pytest.approx(float(right.split()[0].replace(",", "")), abs=0.02)


def test_that_a_choice_in_the_browser_is_loaded(app, qtbot):
    row = next(r for r in app.browser.model.state.rows if r.key != app.model.state.model.id)
    app.browser.model.choose(row.key)
    qtbot.waitUntil(lambda: app.model.state.model.id == row.key, timeout=20_000)
    assert not app.trouble.isVisible()


def _outside(app, size):
    """The parts that reach beyond the window, with their lower right corners."""
    parts = (app.view.strip, app.view.verdict, app.view.picture, app.window.status_line)
    corners = ((p.objectName(), p.mapTo(app.window, p.rect().bottomRight())) for p in parts)
    return [(name, at.toTuple()) for name, at in corners if at.x() >= size[0] or at.y() >= size[1]]


@pytest.mark.parametrize(
    ("size", "rail", "folded"),
    [((1440, 900), False, False), ((1280, 800), False, False), ((960, 600), True, True)],
)
def test_that_plan_verdict_and_picture_are_whole_at_every_size(app, qtbot, size, rail, folded):
    app.welcome.dismiss()
    app.window.resize(*size)
    qtbot.waitUntil(lambda: app.window.size().toTuple() == size)
    assert app.window.rail.isVisible() is rail
    assert app.browser.isVisible() is not rail
    assert app.view.tabs.is_folded is folded
    # What takes part in the strip depends on its width, and is laid out in turn.
    qtbot.waitUntil(lambda: not _outside(app, size))
    assert app.view.picture.height() >= 200


def test_that_the_buttons_give_up_their_words_before_they_take_a_second_row(app, qtbot):
    header = app.view.header
    buttons = [b for b in header.findChildren(QPushButton) if b.isVisible()]
    seen = set()
    for width in range(header.width(), 560, -9):
        header.resize(width, header.height())
        header.layout().activate()
        has_words = all(button.text() for button in buttons)
        if has_words:
            assert len({button.geometry().center().y() for button in buttons}) == 1, width
        seen.add(has_words)
    assert seen == {True, False}


@pytest.mark.parametrize("page", ["holds", "checklist", "regions"])
def test_that_a_page_over_the_picture_leaves_of_it_what_can_be_read_or_nothing(app, qtbot, page):
    app.welcome.dismiss()
    for height in range(600, 900, 25):
        app.window.resize(960, height)
        qtbot.waitUntil(lambda height=height: app.window.height() == height)
        app.window.commands[f"tab {page}"].trigger()
        left = (
            app.view.tabs.stack.mapTo(app.view, QPoint()).y()
            - app.view.picture.mapTo(app.view, QPoint()).y()
        )
        assert left <= 1 or left >= 120, height  # 1: the line between them


def test_that_no_label_of_the_window_is_cut(app, qtbot):
    for size in ((1440, 900), (1280, 800), (960, 600)):
        app.window.resize(*size)
        qtbot.waitUntil(lambda size=size: app.window.size().toTuple() == size)
        for label in app.window.findChildren(QLabel):
            if not label.isVisible() or label.wordWrap() or not label.text():
                continue
            wide = label.fontMetrics().horizontalAdvance(label.text())
            assert wide <= label.width() + 1, (size, label.text(), label.objectName())


def test_that_the_rail_opens_the_browser_over_the_centre_and_escape_closes_it(app, qtbot):
    app.window.resize(960, 600)
    width = app.view.width()
    app.window.commands["search"].trigger()
    assert app.browser.isVisible()
    assert app.view.width() == width
    qtbot.keyClick(app.window, Qt.Key.Key_Escape)
    assert not app.browser.isVisible()


def test_that_the_toggle_changes_every_place(app):
    app.window.commands["unit GB"].trigger()
    assert app.model.state.unit is UnitSystem.DECIMAL
    head = app.view.regions.table.model().headerData(1, Qt.Orientation.Horizontal)
    assert head == "GB"
    assert app.browser.model.state.unit is UnitSystem.DECIMAL
    assert app.window.status_line.balance.full_text.endswith(" GB")
    shown = [
        label.text()
        for label in app.view.findChildren(QLabel)
        if label.isVisible() and "GiB" in label.text() and label.property("role") != "formula"
    ]
    assert shown == []


def test_that_a_dropped_config_is_sized(app, qtbot, tmp_path):
    config = {
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
        "hidden_size": 512,
        "intermediate_size": 1024,
        "num_hidden_layers": 4,
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "vocab_size": 1000,
        "max_position_embeddings": 16384,
        "torch_dtype": "bfloat16",
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    _drop_path(app.window, tmp_path / "config.json")
    # Embedding and head 2 x 1,000 x 512; a layer: q and o 2 x 512 x 512, k and v 2 x 256 x 512,
    # three MLP matrices 3 x 1,024 x 512, two norms; the last norm.
    expected = 2 * 512_000 + 4 * (524_288 + 262_144 + 1_572_864 + 1_024) + 512
    qtbot.waitUntil(lambda: app.model.state.model.parameters == expected, timeout=20_000)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("config.json", b"not json"),
        ("config.json", b"[]"),
        ("model.safetensors", b"\xff" * 64),
        ("model.gguf", b"GGUF"),
        ("notes.txt", b"hello"),
        ("recording.jsonl", b"{}"),
    ],
)
def test_that_a_wrong_file_gets_one_sentence_and_loses_nothing(app, qtbot, tmp_path, name, content):
    before = app.model.state.sizing
    (tmp_path / name).write_bytes(content)
    _drop_path(app.window, tmp_path / name)
    qtbot.waitUntil(app.trouble.isVisible, timeout=20_000)
    sentence = app.trouble.line.text()
    assert sentence.endswith(".")
    assert "Traceback" not in sentence
    assert "inside Plimsoll" not in sentence
    assert app.model.state.sizing is before
    buttons = app.trouble.findChildren(QPushButton)
    next(b for b in buttons if b.text().startswith("Copy")).click()
    assert sentence in QApplication.clipboard().text()
    qtbot.keyClick(app.window, Qt.Key.Key_Escape)
    assert not app.trouble.isVisible()


def test_that_a_fault_is_a_strip_and_the_window_lives(app, qtbot):
    def fail():
        raise RuntimeError("planted")

    with qtbot.captureExceptions():
        import sys

        app.faults.install()
        sys.excepthook(RuntimeError, RuntimeError("planted"), None)
    qtbot.waitUntil(app.trouble.isVisible)
    assert "RuntimeError" in app.trouble.line.text()
    app.model.scale_context(1)
    assert app.model.state.sizing is not None


def test_that_trouble_with_a_device_leaves_with_the_trouble(app):
    error = TelemetryError("The card cannot be read.")
    app.watch.failed.emit(error)
    assert app.trouble.isVisible()
    app.watch.regained.emit(TelemetryError("Another card cannot be read."))
    assert app.trouble.isVisible()
    app.watch.regained.emit(error)
    assert not app.trouble.isVisible()


def test_that_what_was_found_here_leaves_when_another_machine_is_planned_for(app):
    assert app.welcome.isVisible()
    app.model.choose_device("RTX 4090")
    assert not app.welcome.isVisible()
    assert not app.settings.welcome_closed


def test_that_a_tab_makes_room_for_its_count(app):
    tabs, page = app.view.tabs, app.compare_view
    place = tabs.stack.indexOf(page)
    width = tabs.tabs.tabRect(place).width()
    tabs.set_count(page, "12")
    assert tabs.tabs.tabRect(place).width() > width


def test_that_a_fault_in_a_thread_is_told_on_the_gui_thread(app, qtbot):
    threads = []
    app.faults.happened.connect(lambda _error: threads.append(threading.get_ident()))
    thread = threading.Thread(target=lambda: 1 / 0)
    thread.start()
    thread.join()
    qtbot.waitUntil(app.trouble.isVisible)
    assert "ZeroDivisionError" in app.trouble.line.text()


def test_that_shortcuts_reach_their_place(app, qtbot):
    window = app.window
    window.activateWindow()
    context = app.model.state.context
    qtbot.keyClick(window, Qt.Key.Key_BracketRight)
    assert app.model.state.context == 2 * context
    qtbot.keyClick(window, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    assert app.model.state.context == context
    qtbot.keyClick(window, Qt.Key.Key_4, Qt.KeyboardModifier.ControlModifier)
    assert app.holds.isVisible()
    qtbot.keyClick(window, Qt.Key.Key_D, Qt.KeyboardModifier.ControlModifier)
    qtbot.keyClick(window, Qt.Key.Key_3, Qt.KeyboardModifier.ControlModifier)
    assert app.compare_view.isVisible()
    assert app.view.picture.isHidden()
    assert len(app.compare.entries) == 1
    qtbot.keyClick(window, Qt.Key.Key_1, Qt.KeyboardModifier.ControlModifier)
    assert app.view.picture.isVisible()
    qtbot.keyClick(window, Qt.Key.Key_L, Qt.KeyboardModifier.ControlModifier)
    assert app.view.strip.context.hasFocus()


def test_that_f6_goes_round_the_areas(app, qtbot):
    seen = set()
    for _ in range(5):
        app.window.commands["next area"].trigger()
        focus = QApplication.focusWidget()
        seen.add(
            next(i for i, a in enumerate(app.window.areas) if a is focus or a.isAncestorOf(focus))
        )
    assert seen == {0, 1, 2, 3, 4}


def test_that_no_two_commands_share_a_shortcut():
    keys = [c.shortcut for c in COMMANDS if c.shortcut] + ["Ctrl+Z", "Ctrl+Y"]
    assert len(keys) == len(set(keys))


def test_that_every_button_without_words_has_a_name(app):
    for button in app.window.findChildren(QToolButton):
        reachable = button.focusPolicy() != Qt.FocusPolicy.NoFocus
        if reachable and button.isVisible() and not button.text():
            assert button.accessibleName(), button.objectName()


def test_that_a_recording_is_written_and_played_back(app, qtbot, tmp_path):
    path = tmp_path / "run.jsonl"
    app.watch.record(path)
    assert app.window.commands["record"].isChecked()
    count = len(app.watch.recorded)
    qtbot.waitUntil(lambda: len(app.watch.recorded) >= count + 2, timeout=10_000)
    assert app.watch.stop_recording() == path
    assert not app.window.commands["record"].isChecked()
    _drop_path(app.window, path)
    assert app.watch.replay == path
    qtbot.waitUntil(
        lambda: "run.jsonl" in app.window.status_line.sampling.words.full_text, timeout=5000
    )
    app.window.commands["measure"].trigger()
    assert app.watch.replay is None


def test_that_a_report_is_written(app, tmp_path):
    path = tmp_path / "report.pdf"
    app.filing.write_report(path)
    assert path.read_bytes().startswith(b"%PDF")


def test_that_settings_are_kept_and_restored(start, qtbot, tmp_path):
    first = start()
    first.window.resize(1200, 760)
    first.window.commands["scheme dark"].trigger()
    first.window.commands["unit GB"].trigger()
    first.welcome.dismiss()
    assert first.themes.current.is_dark
    first.window.close()
    second = start()
    assert second.themes.current.is_dark
    assert second.model.state.unit is UnitSystem.DECIMAL
    assert not second.welcome.isVisible()
    # The offscreen screen is 800 pixels wide, and a window is kept within its screen.
    assert second.window.height() == 760


def test_that_broken_settings_do_not_keep_the_window_from_opening(start, tmp_path):
    folder = tmp_path / "settings"
    folder.mkdir()
    (folder / FILE_NAME).write_bytes(
        b'{"schema_version": 1, "geometry": "AAAA", "splitters": {"browser and centre": "AAAA"}}'
    )
    app = start()
    assert app.window.isVisible()
    assert app.settings.scheme == Settings().scheme


def test_that_closing_leaves_no_thread_and_no_job(app):
    app.window.close()
    names = {t.name for t in threading.enumerate()}
    assert not any("telemetry" in name for name in names)
    assert app.model.is_settled or app.runner.shutdown(0)


def test_that_a_click_beside_the_open_browser_closes_it(app, qtbot):
    app.window.resize(960, 600)
    app.window.show_browser()
    qtbot.mouseClick(app.view.picture, Qt.MouseButton.LeftButton, pos=QPoint(600, 100))
    assert not app.browser.isVisible()


def test_that_of_several_files_the_one_that_may_be_a_model_is_taken(app, tmp_path):
    opened = []
    app.window.dropped.connect(opened.append)
    mime = QMimeData()
    names = ("a.txt", "b.png", "model.gguf", "z.md")
    mime.setUrls([QUrl.fromLocalFile(str(tmp_path / name)) for name in names])
    _drop(app.window, mime)
    assert opened == [tmp_path / "model.gguf"]


def test_that_the_notes_of_the_first_start_go_at_the_first_change_of_the_plan(app):
    assert app.view.picture.is_explaining
    app.model.edit("context", max_model_len=4096)
    assert not app.view.picture.is_explaining


def test_that_the_lists_order_and_direction_are_there_again_at_the_next_start(app, start, qtbot):
    for _ in range(2):
        app.browser.model.set_sort(Sort.PARAMETERS)
    app.window.close()
    again = start()
    again.window.show_browser()
    assert (
        again.browser.findChild(QToolButton, "order")
        .text()
        .startswith("Parameters \N{UPWARDS ARROW}")
    )


def test_that_more_opens_the_browser_over_the_plan_and_a_model_leads_back(app, qtbot):
    qtbot.mouseClick(app.browser.findChild(QToolButton, "more"), Qt.MouseButton.LeftButton)
    expanded = app.expanding.view
    assert expanded.isVisible()
    assert not app.view.isVisible()
    assert app.window.windowTitle() == "Models"
    qtbot.keyClicks(expanded.search, "Llama-3.1-8B-Instruct")
    expanded.search.left_downwards.emit()
    qtbot.keyClick(expanded.table, Qt.Key.Key_Return)
    wanted = app.browser.model.state.wanted.chosen
    qtbot.waitUntil(lambda: app.model.state.model.id == wanted, timeout=20_000)
    assert app.view.isVisible()
    assert app.browser.search.text() == "Llama-3.1-8B-Instruct"
    assert app.window.windowTitle().startswith("Llama-3.1-8B-Instruct")


@pytest.mark.parametrize("size", [(1440, 900), (960, 600)])
def test_that_escape_the_button_and_the_command_lead_back_to_the_plan(app, qtbot, size):
    app.window.resize(*size)
    command = app.window.commands["all models"]
    command.trigger()
    expanded = app.expanding.view
    assert expanded.isVisible()
    assert command.isChecked()
    qtbot.keyClick(app.window, Qt.Key.Key_Escape)
    assert not expanded.isVisible()
    assert not command.isChecked()
    command.trigger()
    app.window.commands["search"].trigger()
    assert expanded.search.isVisible()
    expanded.back.click()
    assert app.view.isVisible()


def test_that_a_window_of_a_screen_that_is_gone_comes_back_on_one_that_is_there(start, qtbot):
    first = start()
    first.window.setGeometry(9000, 5000, 1100, 700)
    first.window.close()
    assert first.store.load().geometry
    again = start()
    free = again.window.screen().availableGeometry()
    assert free.contains(again.window.frameGeometry().topLeft())
