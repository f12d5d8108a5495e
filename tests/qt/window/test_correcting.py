"""Hardware that detection gets wrong is corrected in the window, marked there, and put back."""

from __future__ import annotations

import json

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QLineEdit, QPushButton

from engine.devices import plain
from engine.evidence import Basis
from engine.telemetry.record import Recorder
from gui.kit.settings import FILE_NAME
from gui.sizing.hardware_dialog import HardwareDialog
from tests.helpers import readings
from tests.helpers.hardware_report import machine_of
from tests.unit.telemetry.conftest import gpus, nvml_library

__all__ = ["gpus", "nvml_library"]
GIB, MIB = 2**30, 2**20


@pytest.fixture
def here(gpus, start, qtbot):
    """The window on a computer with an RTX 4090 and an RTX 3060."""
    gpus.rtx4090(used=420 * MIB, uuid="GPU-first")
    gpus.card(1, name="NVIDIA GeForce RTX 3060", uuid="GPU-second", total=12288 * MIB,
              reserved=200 * MIB, used=0, cc=86, cores=3584)  # fmt: skip
    app = start()
    app.window.resize(1440, 900)
    qtbot.waitUntil(lambda: app.model.state.fit is not None, timeout=20_000)
    qtbot.waitUntil(lambda: app.model.is_settled, timeout=20_000)
    return app


def _button(parent, text):
    return next(b for b in parent.findChildren(QPushButton) if b.text() == text)


def _edit(app) -> HardwareDialog:
    _button(app.welcome, "That’s wrong…").click()
    return next(d for d in app.window.findChildren(HardwareDialog) if d.isVisible())


def _type(dialog, name, text) -> None:
    field = dialog.findChild(QLineEdit, name)
    assert field.accessibleName()
    field.setText(text)


def test_that_the_first_strip_lists_every_device_with_source_and_doubt(here):
    first, second = here.welcome.line.text().splitlines()
    assert first == (
        "Found: RTX 4090, 23.99 GiB by the driver, 23.63 GiB for programs, 0.41 GiB in use."
    )
    assert second.startswith("RTX 3060 12GB, 12.00 GiB by the driver, 11.80 GiB for programs")
    assert "Host memory" in second
    words = here.welcome.second.text()
    # The driver states 370 MiB, of which what a framework sees may differ by 64 MiB.
    assert "RTX 4090 NVML 580.126.09, 23.56 – 23.63 GiB for programs, measured" in words
    assert "Nothing has been sent" in words


def test_that_a_computer_without_a_driver_says_why(app):
    assert app.welcome.line.text().startswith("No GPU found")
    assert "NVIDIA devices cannot be read: no NVIDIA driver here" in app.welcome.second.text()


def test_that_a_correction_is_planned_with_marked_everywhere_and_kept(here, start):
    dialog = _edit(here)
    _type(dialog, "total of GPU-first", "48")
    assert dialog.words.text().startswith("RTX 4090, 48.00 GiB by your word, 47.64 GiB")
    dialog.confirm.click()
    state = here.model.state
    device = state.machine.slots[0].device
    assert device.total_bytes == 48 * GIB
    assert device.allocatable.likely_bytes == 48 * GIB - 370 * MIB
    assert device.allocatable.basis is Basis.SETTING
    assert here.correcting.notice.isVisible()
    assert not here.welcome.isVisible()
    words = "This computer, corrected by you: RTX 4090 48.00 GiB, RTX 3060 12GB 12.00 GiB, host"
    assert here.correcting.notice.line.text().startswith(words)
    assert "As detected: RTX 4090 23.99 GiB" in here.correcting.notice.second.text()
    assert here.view.strip.device.itemText(0) == "RTX 4090 (corrected), this computer"
    assert here.view.strip.device.toolTip() == "RTX 4090 (corrected), this computer"
    assert here.window.windowTitle().endswith("RTX 4090, corrected")
    assert "your correction" in here.window.status_line.device.words.full_text
    here.window.close()
    again = start()
    assert again.model.state.here.slots[0].device.total_bytes == 48 * GIB
    assert again.correcting.notice.isVisible()
    assert not again.welcome.isVisible()


def test_that_one_click_leads_back_to_what_was_detected(here):
    before = here.model.state.here
    here.correcting.use(())
    dialog = _edit(here)
    _type(dialog, "line of GPU-first", "20 GiB")
    dialog.confirm.click()
    assert here.model.state.machine.slots[0].device.allocatable.likely_bytes == 20 * GIB
    _button(here.correcting.notice, "As detected").click()
    assert here.model.state.here.slots[0].device == before.slots[0].device
    assert not here.correcting.notice.isVisible()
    assert here.settings.corrections == ()


def test_that_live_data_stays_the_drivers(here, qtbot, tmp_path):
    dialog = _edit(here)
    _type(dialog, "total of GPU-first", "48 GiB")
    dialog.confirm.click()
    qtbot.waitUntil(lambda: bool(here.watch.recorded), timeout=10_000)
    reading = here.watch.last.devices[0]
    assert reading.total_bytes == 24564 * MIB
    assert here.window.status_line.balance.full_text.endswith("= 23.99 GiB")
    here.watch.record(tmp_path / "a.jsonl")
    here.watch.stop_recording()
    header = json.loads((tmp_path / "a.jsonl").read_text().splitlines()[0])
    assert header["machine"]["devices"][0]["total_bytes"] == 24564 * MIB


def test_that_a_recording_is_not_corrected(here, tmp_path):
    dialog = _edit(here)
    _type(dialog, "total of GPU-first", "48 GiB")
    dialog.confirm.click()
    recorder = Recorder(tmp_path / "r.jsonl", {"name": "x"})
    recorder.write(readings.moment(readings.card(uuid="GPU-first"), readings.host()))
    recorder.close()
    here.filing.play(tmp_path / "r.jsonl")
    assert not here.model.state.here.is_corrected
    assert not here.correcting.notice.isVisible()


def test_that_a_missing_device_is_added_by_its_name(app, qtbot):
    dialog = _edit(app)
    dialog.add.click()
    assert not dialog.confirm.isEnabled() or dialog.words.text().startswith("No GPU")
    _type(dialog, "name of added", "RTX 4090")
    said = "RTX 4090, 23.99 GiB by your word, 23.63 GiB for programs, use not known."
    assert dialog.words.text().startswith(said)
    dialog.confirm.click()
    here = app.model.state.here
    assert [slot.device.name for slot in here.slots] == ["RTX 4090"]
    assert here.is_here
    assert here.slots[0].device.source.startswith("added by you")


def test_that_an_added_device_can_be_taken_out_again(app, qtbot):
    dialog = _edit(app)
    dialog.add.click()
    _type(dialog, "name of added", "RTX 4090")
    dialog.rows[-1].remove.click()
    dialog.confirm.click()
    assert not app.model.state.here.is_corrected


@pytest.mark.parametrize(
    ("field", "text", "words"),
    [
        ("total of GPU-first", "much", "Memory: “much” is not a size such as 24 GiB."),
        ("total of GPU-first", "1 B", "cannot be"),
        ("line of GPU-first", "25 GiB", "Programs can’t get 25.00 GiB of a device of 23.99 GiB."),
        ("line of GPU-first", "nan", "is not a size"),
    ],
)
def test_that_what_cannot_be_is_said_and_not_taken(here, field, text, words):
    dialog = _edit(here)
    _type(dialog, field, text)
    assert words in dialog.words.text()
    assert not dialog.confirm.isEnabled()
    _type(dialog, field, "")
    assert dialog.confirm.isEnabled()


def test_that_kept_corrections_stand_in_the_editor_and_escape_changes_nothing(here, qtbot):
    dialog = _edit(here)
    _type(dialog, "total of GPU-first", "48 GiB")
    _type(dialog, "name of GPU-second", "RTX 3090")
    dialog.confirm.click()
    here.window.commands["hardware"].trigger()
    dialog = here.window.findChildren(HardwareDialog)[-1]
    assert dialog.findChild(QLineEdit, "total of GPU-first").text() == "48 GiB"
    assert dialog.findChild(QLineEdit, "name of GPU-second").text() == "RTX 3090"
    _type(dialog, "total of GPU-first", "12 GiB")
    qtbot.keyClick(dialog, Qt.Key.Key_Escape)
    assert here.model.state.here.slots[0].device.total_bytes == 48 * GIB


def test_that_the_copied_report_is_a_fixture_for_the_same_machine(here, qtbot, tmp_path):
    QApplication.clipboard().clear()
    _button(here.welcome, "Copy hardware report").click()
    qtbot.waitUntil(lambda: bool(QApplication.clipboard().text()), timeout=20_000)
    text = QApplication.clipboard().text()
    assert "GPU-first" not in text
    report = json.loads(text)
    machine = machine_of(report, tmp_path / "root")
    assert plain.to_dict(machine) == report["machine"]
    assert [slot.device.name for slot in machine.slots] == ["RTX 4090", "RTX 3060 12GB"]
    assert here.note.line.text() == "The hardware report is copied"


def test_that_corrections_of_another_computer_change_nothing(start, tmp_path):
    folder = tmp_path / "settings"
    folder.mkdir()
    kept = [{"uuid": "GPU-x", "name": "", "total_bytes": GIB, "allocatable_bytes": 0, "count": 1}]
    (folder / FILE_NAME).write_text(json.dumps({"schema_version": 1, "corrections": kept}))
    app = start()
    assert not app.model.state.here.is_corrected
    assert app.settings.corrections[0].uuid == "GPU-x"
