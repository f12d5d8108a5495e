"""Another machine is watched by its address, or one that isn't there; and then this one again."""

from __future__ import annotations

import threading

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QPushButton

from gui.live.elsewhere_dialog import ElsewhereDialog
from tests.helpers.exporter import serving as exporting
from tests.helpers.runtime_server import serving

MIB, GIB = 2**20, 2**30

# One card as DCGM's exporter writes it, in MiB: 20,000 used, 61,037 free, 883 kept by the driver.
LABELS = 'gpu="0",UUID="GPU-far",modelName="NVIDIA A100-SXM4-80GB",Hostname="gpu-box"'
PAGE = f"""
# TYPE DCGM_FI_DEV_FB_USED gauge
DCGM_FI_DEV_FB_USED{{{LABELS}}} 20000
DCGM_FI_DEV_FB_FREE{{{LABELS}}} 61037
DCGM_FI_DEV_FB_RESERVED{{{LABELS}}} 883
"""


def dialog_of(app, qtbot) -> ElsewhereDialog:
    app.window.commands["elsewhere"].trigger()
    found = app.window.findChildren(ElsewhereDialog)[-1]
    qtbot.waitUntil(found.isVisible)
    return found


def type_in(app, qtbot, address: str) -> ElsewhereDialog:
    dialog = dialog_of(app, qtbot)
    dialog.address.clear()
    qtbot.keyClicks(dialog.address, address)
    qtbot.mouseClick(dialog.watch, Qt.MouseButton.LeftButton)
    return dialog


@pytest.fixture
def far(start, qtbot):
    """The window, which may ask the network: here that is the loopback alone."""
    app = start()
    app.window.resize(1440, 900)
    qtbot.waitUntil(lambda: app.model.state.fit is not None, timeout=20_000)
    return app


def test_that_a_typed_exporter_is_watched_planned_on_and_left_again(far, qtbot):
    with exporting() as exporter:
        exporter.page(PAGE)
        dialog = type_in(far, qtbot, exporter.address)
        assert dialog.told.text().startswith("Asking ")
        qtbot.waitUntil(lambda: far.watch.elsewhere is not None, timeout=20_000)
        card = far.watch.last.devices[0]
        assert card.used_bytes == 20_000 * MIB
        assert card.free_bytes == 61_037 * MIB
        assert card.total_bytes == (20_000 + 61_037 + 883) * MIB == 80 * GIB
        device = far.model.state.machine.slots[0].device
        assert device.total_bytes == 80 * GIB
        assert far.elsewhere.notice.isVisible()
        assert exporter.address.removeprefix("http://") in far.elsewhere.notice.line.text()
        qtbot.waitUntil(lambda: "A100" in far.window.windowTitle(), timeout=20_000)
        back = next(
            b
            for b in far.elsewhere.notice.findChildren(QPushButton)
            if b.text() == "Back to this computer"
        )
        qtbot.mouseClick(back, Qt.MouseButton.LeftButton)
    assert far.watch.is_here
    assert not far.elsewhere.notice.isVisible()
    assert far.watch.last.devices[-1].source.startswith("psutil")


def test_that_what_was_typed_is_offered_the_next_time(far, qtbot):
    with exporting() as exporter:
        exporter.page(PAGE)
        type_in(far, qtbot, exporter.address)
        qtbot.waitUntil(lambda: far.watch.elsewhere is not None, timeout=20_000)
        dialog = dialog_of(far, qtbot)
        assert exporter.address.removeprefix("http://") in dialog.address.text()
        dialog.reject()


@pytest.mark.parametrize("typed", ["not an address", "ftp://gpu-box", "http://a b:1"])
def test_that_no_address_can_be_watched_and_says_so(far, qtbot, typed):
    dialog = dialog_of(far, qtbot)
    dialog.address.clear()
    qtbot.keyClicks(dialog.address, typed)
    assert not dialog.watch.isEnabled()
    assert dialog.told.text()
    dialog.reject()
    assert far.watch.is_here


def test_that_nobody_there_costs_a_sentence_and_nothing_else(far, qtbot):
    before = far.watch.last.devices
    with exporting() as exporter:
        gone = exporter.address
    dialog = type_in(far, qtbot, gone)
    qtbot.waitUntil(dialog.watch.isEnabled, timeout=20_000)
    assert gone.removeprefix("http://") in dialog.told.text()
    dialog.reject()
    assert far.watch.is_here
    assert [d.uuid for d in far.watch.last.devices] == [d.uuid for d in before]


def test_that_offline_another_computer_is_never_asked(far, qtbot):
    dialog = type_in(far, qtbot, "gpu-box.example:9400")
    qtbot.waitUntil(dialog.watch.isEnabled, timeout=20_000)
    assert "off" in dialog.told.text().lower()
    dialog.reject()
    assert far.watch.is_here


def test_that_a_runtime_s_page_is_listed_under_what_holds_it(far, qtbot):
    page = 'vllm:num_requests_running{model_name="m"} 2\nvllm:kv_cache_usage_perc 0.25\n'
    with serving({"/metrics": page, "/version": {"version": "0.33.0"}}) as runtime:
        type_in(far, qtbot, runtime.address.shown)
        qtbot.waitUntil(lambda: bool(far.settings.addresses), timeout=20_000)
    assert far.watch.is_here
    assert far.view.tabs.stack.currentWidget() is far.holds


def test_that_a_simulated_machine_says_everywhere_that_nothing_is_measured(far, qtbot):
    simulated = far.window.commands["simulated"]
    simulated.trigger()
    assert simulated.isChecked()
    assert len(far.watch.last.devices) >= 8
    assert far.elsewhere.notice.line.text() == "Simulated machine: nothing here is measured"
    qtbot.waitUntil(
        lambda: "Simulated" in far.window.status_line.sampling.words.full_text, timeout=10_000
    )
    simulated.trigger()
    assert far.watch.is_here
    assert not simulated.isChecked()
    assert not far.elsewhere.notice.isVisible()


def test_that_the_recording_of_a_simulated_machine_says_so_too(far, qtbot, tmp_path):
    far.window.commands["simulated"].trigger()
    path = far.watch.record(tmp_path / "made-up.jsonl")
    qtbot.waitUntil(lambda: path.read_text().count("\n") > 1, timeout=20_000)
    far.watch.stop_recording()
    far.watch.watch(path)
    assert far.watch.machine().is_simulated
    assert far.elsewhere.notice.isVisible()
    assert far.elsewhere.notice.line.text() == "Simulated machine: nothing here is measured"
    far.elsewhere.go_back()
    assert far.watch.is_here
    assert not far.elsewhere.notice.isVisible()


def test_that_cards_without_a_size_are_told_of_where_the_address_was_typed(far, qtbot):
    with exporting() as exporter:
        exporter.page('DCGM_FI_DEV_FB_FREE{gpu="0",UUID="GPU-a",Hostname="gpu-box"} 100\n')
        dialog = type_in(far, qtbot, exporter.address)
        qtbot.waitUntil(dialog.watch.isEnabled, timeout=20_000)
        place = exporter.address.removeprefix("http://")
        assert (
            dialog.told.text() == f"{place} states no size of a device or of its memory to plan on."
        )
    dialog.reject()
    assert far.watch.is_here


def test_that_an_address_that_was_given_up_holds_up_no_other(far, qtbot):
    may_answer = threading.Event()

    def late(_fields: dict[str, str]):
        may_answer.wait(20)
        return 404, "", {}

    with exporting() as silent, exporting() as exporter:
        silent.places["/api/v1/query"] = late
        dialog = type_in(far, qtbot, silent.address)
        qtbot.waitUntil(lambda: bool(silent.asked), timeout=20_000)
        dialog.reject()
        exporter.page(PAGE)
        type_in(far, qtbot, exporter.address)
        qtbot.waitUntil(lambda: bool(exporter.asked), timeout=20_000)
        qtbot.waitUntil(lambda: far.watch.elsewhere is not None, timeout=20_000)
        may_answer.set()
    assert far.watch.elsewhere.place == exporter.address.removeprefix("http://")
