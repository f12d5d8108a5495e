"""The tab "What holds it"."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QComboBox, QLabel, QTableView

from engine.telemetry.snapshot import Missing, ProcessReading
from engine.units import UnitSystem
from gui.kit.theme import load_theme
from gui.live import holds_model
from gui.live.view import HoldsView
from tests.helpers.readings import DESKTOP, ENGINE, GIB, USED, card, host, moment

COLUMNS = tuple(column.key for column in holds_model.COLUMNS)
SIZE, SHARE = COLUMNS.index("size"), COLUMNS.index("share")


@pytest.fixture
def view(qtbot) -> HoldsView:
    made = HoldsView()
    qtbot.addWidget(made)
    made.set_theme(load_theme("light"))
    made.resize(1144, 280)
    made.show()
    return made


def cells(view: HoldsView, column: str) -> list[str]:
    model = table(view).model()
    at = COLUMNS.index(column)
    return [model.index(row, at).data() for row in range(model.rowCount())]


def table(view: HoldsView) -> QTableView:
    found = view.findChild(QTableView, "holders")
    assert found is not None
    return found


def words(view: HoldsView) -> str:
    return "\n".join(found.text() for found in view.findChildren(QLabel) if found.isVisible())


def test_that_the_table_shows_who_holds_the_card(view: HoldsView):
    view.show_snapshot(moment(card()), "GPU-0")
    assert cells(view, "process")[0] == "vLLM, engine core"
    assert cells(view, "pid")[:4] == ["4211", "1820", "2044", "9310"]
    assert cells(view, "size") == ["22.83", "0.22", "0.13", "0.06", "0.40", "0.35", "23.99"]
    heading = table(view).model().headerData(SHARE, Qt.Orientation.Horizontal)
    assert heading == "Share of 23.99 GiB"


def test_that_each_rounded_size_has_its_exact_bytes_in_the_tooltip(view: HoldsView):
    view.show_snapshot(moment(card()), "GPU-0")
    tip = table(view).model().index(0, SIZE).data(Qt.ItemDataRole.ToolTipRole)
    assert tip.startswith(f"{ENGINE.used_bytes:,} bytes")


def test_that_before_the_first_sample_it_says_so(view: HoldsView):
    assert "Nothing was measured yet." in words(view)
    view.show_snapshot(moment(card()), "GPU-0")
    assert "Nothing was measured yet." not in words(view)


def test_that_this_program_is_none_of_the_others(view: HoldsView):
    ours = ProcessReading(os.getpid(), "plimsoll", GIB // 4)
    view.show_snapshot(moment(card(used_bytes=GIB, processes=(*DESKTOP, ours))), "GPU-0")
    assert "Others hold 0.75 GiB now" in words(view)


def test_that_what_others_held_before_the_run_is_kept_while_it_runs(view: HoldsView):
    idle = card(used_bytes=round(0.41 * GIB), processes=DESKTOP)
    view.show_snapshot(moment(idle), "GPU-0")
    assert "Others hold 0.41 GiB now" in words(view)
    view.show_snapshot(moment(card(), second=1), "GPU-0")
    assert "Before this run" in words(view)
    assert "Others held 0.41 GiB. “Emptied” in the plan takes them as 0." in words(view)


def test_that_a_run_there_from_the_start_leaves_the_rest_as_others(view: HoldsView):
    view.show_snapshot(moment(card()), "GPU-0")
    assert "Others held 0.41 GiB" in words(view)


def test_that_a_recording_does_not_inherit_what_was_held_live(view: HoldsView):
    idle = card(used_bytes=round(0.41 * GIB), processes=DESKTOP)
    view.show_snapshot(moment(idle), "GPU-0")
    played = card(source="recording run.jsonl, NVML 580.126.09", processes=(ENGINE,))
    view.show_snapshot(moment(played, second=1), "GPU-0")
    assert f"Others held {(USED - ENGINE.used_bytes) / GIB:.2f} GiB" in words(view)


def test_that_the_selected_process_stays_selected_when_rows_move(view: HoldsView):
    view.show_snapshot(moment(card()), "GPU-0")
    table(view).selectRow(1)  # Xorg
    grown = replace(DESKTOP[2], used_bytes=round(0.5 * GIB))
    fewer = card(processes=(ENGINE, DESKTOP[0], grown))
    view.show_snapshot(moment(fewer, second=1), "GPU-0")
    assert cells(view, "process")[table(view).currentIndex().row()] == "Xorg"
    view.show_snapshot(moment(card(processes=(ENGINE,)), second=2), "GPU-0")
    assert not table(view).selectionModel().hasSelection()


def test_that_a_selected_process_can_be_planned_instead_of(view: HoldsView, qtbot):
    view.show_snapshot(moment(card()), "GPU-0")
    button = view.pane.instead
    assert not button.isVisible()
    table(view).selectRow(0)
    assert button.isVisible()
    assert button.text() == "Plan instead of vLLM, engine core"
    with qtbot.waitSignal(view.instead_wanted) as wanted:
        button.click()
    assert wanted.args[0].pid == 4211
    free = cells(view, "process").index("Free, below the load line")
    table(view).selectRow(free)
    assert not button.isVisible()


def test_that_a_selector_appears_with_the_second_device_and_holds_its_choice(view: HoldsView):
    box = view.findChild(QComboBox, "device shown")
    assert box is not None
    view.show_snapshot(moment(card()), "GPU-0")
    assert not box.isVisible()
    both = moment(card(), host())
    view.show_snapshot(both, "GPU-0")
    assert box.isVisible()
    box.activated.emit(1)
    assert cells(view, "process")[-1] == "Computer"
    view.show_snapshot(both, "GPU-0")
    assert cells(view, "process")[-1] == "Computer"
    view.show_snapshot(both, "host")
    view.show_snapshot(both, "GPU-0")
    assert cells(view, "process")[-1] == "Card"


def test_that_two_cards_of_one_name_are_told_apart(view: HoldsView):
    twin = card(uuid="GPU-1")
    view.show_snapshot(moment(card(), twin), "GPU-0")
    assert [d.label for d in view.view_model.devices] == [
        "NVIDIA GeForce RTX 4090, 1",
        "NVIDIA GeForce RTX 4090, 2",
    ]


def test_that_a_device_that_is_gone_gives_way_to_the_first(view: HoldsView):
    view.show_snapshot(moment(host()), "GPU-9")
    assert cells(view, "process")[-1] == "Computer"


def test_that_a_lost_card_keeps_its_place_without_numbers(view: HoldsView):
    view.show_snapshot(moment(card()), "GPU-0")
    gone = Missing("the GPU fell off the bus")
    lost = card(total_bytes=gone, used_bytes=gone, free_bytes=gone, processes=gone)
    view.show_snapshot(moment(lost, second=1), "GPU-0")
    assert cells(view, "size") == ["–"]
    assert "The GPU fell off the bus" in words(view)
    spoken = table(view).model().index(0, SIZE).data(Qt.ItemDataRole.AccessibleTextRole)
    assert spoken == "not known: the GPU fell off the bus"


def test_that_the_unit_changes_every_number(view: HoldsView):
    view.show_snapshot(moment(card()), "GPU-0")
    view.set_unit(UnitSystem.DECIMAL)
    assert cells(view, "size")[-1] == "25.76"
    heads = [table(view).model().headerData(i, Qt.Orientation.Horizontal) for i in (SIZE, SHARE)]
    assert heads == ["GB", "Share of 25.76 GB"]


def test_that_count_and_balance_are_told_to_the_window(view: HoldsView):
    counts: list[str] = []
    balances: list[str] = []
    view.count_changed.connect(counts.append)
    view.balance_changed.connect(balances.append)
    view.show_snapshot(moment(card()), "GPU-0")
    assert counts == ["4"]
    assert balances == ["23.24 used + 0.40 free + 0.35 driver = 23.99 GiB"]


def test_that_a_plan_for_elsewhere_shows_nothing_of_this_computer(view: HoldsView):
    view.show_snapshot(moment(card()), "GPU-0")
    view.show_nothing("The plan's device is not this computer.")
    assert "The plan's device is not this computer." in words(view)
    assert table(view).model().rowCount() == 0


@pytest.mark.parametrize("scheme", ["light", "dark", "contrast-light", "contrast-dark"])
def test_that_it_paints_in_every_scheme_with_the_bar_in_the_measured_colour(
    view: HoldsView, scheme: str
):
    theme = load_theme(scheme)
    view.set_theme(theme)
    view.show_snapshot(moment(card()), "GPU-0")
    bar = table(view).visualRect(table(view).model().index(0, SHARE))
    picture = table(view).viewport().grab().toImage()
    assert picture.pixelColor(bar.left() + 12, bar.center().y()) == theme.color("chart.measured")


def test_that_numbers_have_room_in_the_smallest_window(view: HoldsView):
    view.resize(916, 240)
    view.show_snapshot(moment(card()), "GPU-0")
    metrics = table(view).fontMetrics()
    assert table(view).columnWidth(SIZE) >= metrics.horizontalAdvance("1,234.56") + 16
    assert not table(view).horizontalScrollBar().isVisible()


def test_that_the_item_model_keeps_qts_rules(qtmodeltester, view: HoldsView):
    view.show_snapshot(moment(card()), "GPU-0")
    qtmodeltester.check(table(view).model())
