"""Plans side by side: order, differences, figures, and the keys that work on them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from PySide6.QtCore import QMimeData, Qt
from PySide6.QtGui import QFontMetrics
from PySide6.QtWidgets import QPushButton

from engine.fit.solve import limits
from engine.units import GIB, MIB, UnitSystem
from gui.kit.theme import load_theme
from gui.sizing import comparison
from gui.sizing.compare_list import Columns
from gui.sizing.compare_view import CompareView
from gui.sizing.compare_view_model import CompareViewModel
from tests.qt.sizing.conftest import model_named


@pytest.fixture
def compare(runner, here):
    return CompareViewModel(runner, here)


@pytest.fixture
def two(qtbot, loaded, compare):
    """The plan as it is, then with an FP8 cache."""
    loaded.choose_runtime("vllm", "0.19.0")
    assert compare.add(loaded.state)
    loaded.edit("kv", kv_cache_dtype="fp8")
    assert compare.add(loaded.state)
    qtbot.waitUntil(lambda: compare.is_settled, timeout=20_000)
    return compare


@pytest.fixture
def page(qtbot, two):
    view = CompareView(two)
    qtbot.addWidget(view)
    view.set_theme(load_theme("light"))
    view.resize(1100, 600)
    view.show_entries(two.entries)
    view.show()
    return view


def test_that_only_what_differs_from_the_first_is_marked(two):
    first, second = comparison.names(two.entries)
    assert not any(word.differs for part in first for word in part)
    assert [w.text for part in second for w in part if w.differs] == ["KV FP8"]


def test_that_the_figures_are_those_of_the_plans(two):
    # Llama 3.1 8B: 128 KiB a token in 16 bits; four requests of 8,192 are 4 GiB, in FP8 half.
    heads = comparison.headings(two.entries, UnitSystem.BINARY)
    first, second = comparison.lines(two.entries, UnitSystem.BINARY)
    needed = heads.index("KV needed") - 1
    assert (first.cells[needed].text, second.cells[needed].text) == ("4.00", "2.00")
    assert second.cells[needed].differs
    assert not second.cells[0].differs
    assert first.cells[heads.index("Others") - 1].text == "0.50"


def test_that_a_plan_of_several_devices_says_whose_figures_are_shown(two):
    first, second = two.entries
    plan = second.pinned.plan
    spread = replace(plan, deployment=plan.deployment.with_(tensor_parallel_size=2))
    second = replace(second, pinned=replace(second.pinned, plan=spread))
    assert "Of several devices: the fullest." in comparison.load_words((first, second))
    assert "devices" not in comparison.load_words(two.entries)


def test_that_limits_come_from_the_search(two, loaded, qtbot):
    qtbot.waitUntil(lambda: loaded.state.limits is not None, timeout=20_000)
    assert two.entries[1].limits == loaded.state.limits


def test_that_a_plan_is_kept_once_and_six_at_most(two, loaded):
    assert not two.add(loaded.state)
    for context in range(1, 9):
        loaded.edit("context", max_model_len=context * 256)
        two.add(loaded.state)
    assert len(two.entries) == comparison.MOST
    assert two.is_full


def test_that_different_loads_are_told_in_the_names(two, loaded):
    assert "All plans: 8,192 tokens, 4 at once." in comparison.load_words(two.entries)
    loaded.edit("context", max_model_len=4096)
    two.add(loaded.state)
    assert comparison.load_words(two.entries) == "Bold: differs from plan A."
    last = comparison.names(two.entries)[2]
    assert "4,096 \N{MULTIPLICATION SIGN} 4" in [w.text for w in last[1] if w.differs]


def test_that_a_plan_that_cannot_run_says_why(two, loaded):
    loaded.edit("tp", tensor_parallel_size=3)
    two.add(loaded.state)
    entry = two.entries[2]
    assert entry.sizing is None
    assert entry.problem
    assert entry.problem in comparison.markdown(two.entries, UnitSystem.BINARY)


def test_that_what_there_is_none_of_is_no_gap_in_the_figures(two, loaded):
    # Weights of 15 GiB leave no room on a card of 8 GiB, whatever the context.
    loaded.choose_device("RTX 3060 Ti")
    loaded.edit("graphs", enforce_eager=True)
    two.add(loaded.state)
    heads = comparison.headings(two.entries, UnitSystem.BINARY)
    line = comparison.lines(two.entries, UnitSystem.BINARY)[2]
    assert line.cells[heads.index("Graphs") - 1].text == "none"
    entry = replace(two.entries[2], limits=limits(*_asked(two.entries[2])))
    assert comparison.limits_words(entry) == ("none", "none")
    assert comparison.limits_words(replace(entry, limits=None)) == ("\N{EN DASH}", "\N{EN DASH}")


def _asked(entry):
    return entry.pinned.model, entry.pinned.plan.deployment, entry.sizing.budget.machine


def test_that_a_plan_that_is_refused_has_no_margin(loaded, compare):
    # vLLM captures no graphs for more sequences than a model with states has blocks for.
    loaded.load(model_named("Qwen/Qwen3.5-9B"))
    loaded.choose_runtime("vllm", None)
    compare.add(loaded.state)
    (entry,) = compare.entries
    assert entry.sizing.verdict.refusals
    assert comparison.margin_words(entry, UnitSystem.BINARY) == "Won’t start"


def test_that_keys_open_move_and_remove(page, two, qtbot):
    first, second = two.entries
    rows = page.list
    rows.setCurrentIndex(rows.model().index(1, 0))
    with qtbot.waitSignal(page.open_wanted) as opened:
        qtbot.keyClick(rows, Qt.Key.Key_Return)
    assert opened.args == [second.pinned]
    qtbot.keyClick(rows, Qt.Key.Key_Up, Qt.KeyboardModifier.AltModifier)
    assert [entry.pinned for entry in two.entries] == [second.pinned, first.pinned]
    assert rows.currentIndex().row() == 0
    qtbot.keyClick(rows, Qt.Key.Key_Delete)
    assert [entry.pinned for entry in two.entries] == [first.pinned]


def test_that_a_dragged_plan_is_put_where_it_is_dropped(page, two):
    first, second = (entry.pinned for entry in two.entries)
    model = page.list.model()
    carried = model.mimeData([model.index(0, 0)])
    model.dropMimeData(carried, Qt.DropAction.MoveAction, 2, 0, model.index(-1, -1))
    assert [entry.pinned for entry in two.entries] == [second, first]
    model.dropMimeData(QMimeData(), Qt.DropAction.MoveAction, 0, 0, model.index(-1, -1))
    assert [entry.pinned for entry in two.entries] == [second, first]


def test_that_rows_and_table_select_the_same_plan(page):
    page.table.selectRow(1)
    assert page.list.currentIndex().row() == 1
    page.list.setCurrentIndex(page.list.model().index(0, 0))
    assert page.table.currentRow() in (0, 1)
    assert {i.row() for i in page.table.selectedIndexes()} == {0}


def test_that_every_row_can_be_heard(page, two):
    model = page.list.model()
    heard = model.index(1, 0).data(Qt.ItemDataRole.AccessibleTextRole)
    assert heard.startswith("Plan B: Llama-3.1-8B-Instruct, BF16, KV FP8, vLLM 0.19, RTX 4090.")
    assert two.entries[1].sizing.verdict.headline in heard


def test_that_the_table_is_copied_as_markdown(page, qtbot):
    with qtbot.waitSignal(page.copy_wanted) as copied:
        page.findChild(QPushButton, "copy comparison").click()
    lines = copied.args[0].splitlines()
    assert len(lines) == 4
    assert len({line.count("|") for line in lines}) == 1
    assert "| 4.00 |" in lines[2]


def test_that_units_change_everywhere(page, two):
    page.set_unit(UnitSystem.DECIMAL)
    assert page.table.horizontalHeaderItem(0).text() == "Plan, GB"
    # And the block of 16 tokens that vLLM gives to nobody.
    needed = (4 * GIB + 2 * MIB) / 10**9
    heads = [page.table.horizontalHeaderItem(i).text() for i in range(page.table.columnCount())]
    assert page.table.item(0, heads.index("KV needed")).text() == f"{needed:.2f}"


@pytest.mark.parametrize("text_scale", [1.0, 2.0, 3.0])
def test_that_a_plan_s_letter_keeps_clear_of_its_name(qtbot, text_scale):
    theme = load_theme("light", text_scale=text_scale)
    name = Columns.of(960, theme).name[0]
    metrics = QFontMetrics(theme.font("body.strong"))
    widest = max(metrics.horizontalAdvance(letter) for letter in "ABCDEF")
    assert 16 + widest + 4 <= name
