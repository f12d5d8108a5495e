"""Several models on one machine: what the others hold is taken, and each edit is one step."""

from __future__ import annotations

from dataclasses import replace

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QToolButton

from engine.budget.model import Region
from engine.fit.verdict import Fit
from engine.sizing import size
from engine.units import GIB, UnitSystem, format_gib
from gui.kit import format as fmt
from gui.kit.charts.scene import scene_for
from gui.kit.theme import load_theme
from gui.sizing import beside, comparison, present
from gui.sizing.beside_row import BesideRow
from gui.sizing.compare_view_model import CompareViewModel
from gui.sizing.comparison import names
from gui.sizing.markdown import markdown
from tests.qt.sizing.conftest import model_named

OUTSIDE = (Region.HEADROOM, Region.FOREIGN)


@pytest.fixture(scope="module")
def qwen():
    return model_named("Qwen/Qwen2.5-3B")


@pytest.fixture
def both(loaded, qwen):
    """Llama 3.1 8B in 4 bits with llama.cpp, and Qwen2.5 3B beside it."""
    loaded.choose_runtime("llama.cpp", None)
    loaded.edit("weights", weight_format="Q4_K_M")
    loaded.add_beside(qwen)
    return loaded


@pytest.fixture
def row(qtbot, both):
    made = BesideRow(both)
    made.set_theme(load_theme("light"))
    made.resize(1144, 40)
    both.changed.connect(made.show_state)
    made.show_state(both.state)
    qtbot.addWidget(made)
    made.show()
    return made


def _held(model, deployment, machine):
    rank = size(model, deployment, machine).budget.ranks[0]
    return sum(
        entry.estimate.likely_bytes
        for region, entry in rank.regions.items()
        if region not in OUTSIDE
    )


def _others(room):
    return room.state.sizing.budget.ranks[0].regions[Region.FOREIGN].estimate.likely_bytes


def _buttons(row, name):
    return [b for b in row.findChildren(QToolButton, name) if b.isVisible()]


def test_that_what_the_other_holds_is_taken_from_the_plan(both, here, qwen):
    plan = both.state.plan.beside[0].deployment
    assert plan.runtime == "llama.cpp"
    alone = _held(qwen, plan, here)
    # The machine's others held 0.5 GiB before.
    assert _others(both) == GIB // 2 + alone
    assert both.state.beside[0].held_bytes == alone
    own = _held(both.state.model, both.state.plan.deployment, here)
    line = here.slots[0].device.allocatable.likely_bytes
    assert both.state.sizing.verdict.margin_bytes == line - own - alone - GIB // 2


def test_that_each_change_is_one_step_of_undo(both, llama, qwen):
    steps, alone = both.undo_stack.count(), both.state.plan.with_(beside=())
    both.add_beside(qwen)
    both.remove_beside(0)
    both.swap_beside(0)
    assert both.undo_stack.count() == steps + 3
    assert both.undo_stack.undoText() == "change to a model beside it"
    assert both.state.model is qwen
    assert [other.model for other in both.state.plan.beside] == [llama]
    both.undo_stack.undo()
    assert both.state.model is llama
    assert [other.model for other in both.state.plan.beside] == [qwen]
    both.undo_stack.undo()
    assert len(both.state.plan.beside) == 2
    both.undo_stack.undo()
    both.undo_stack.undo()
    assert both.state.plan == alone
    assert both.state.beside == ()
    for _ in range(4):
        both.undo_stack.redo()
    assert both.state.model is qwen


def test_that_swapping_there_and_back_loses_nothing(both):
    both.edit("context", max_model_len=12_345)
    before, margin = both.state.plan.deployment, both.state.sizing.verdict.margin_bytes
    both.swap_beside(0)
    assert both.state.plan.beside[0].deployment == before
    both.edit("context", max_model_len=2048)
    both.undo_stack.undo()
    both.swap_beside(0)
    assert both.state.plan.deployment == before
    assert both.state.sizing.verdict.margin_bytes == margin


def test_that_the_verdict_says_beside_what(both):
    held = format_gib(both.state.beside[0].held_bytes, digits=1)
    words = present.verdict(both.state)
    assert words.headline.startswith("Fits")
    assert words.detail.startswith(f"Qwen2.5-3B beside it holds {held}. llama.cpp takes ")
    both.edit("weights", weight_format="bf16")
    words = present.verdict(both.state)
    assert both.state.fit is Fit.DOES_NOT_FIT
    assert words.headline.startswith("Doesn’t fit: ")
    assert words.detail.startswith(f"Qwen2.5-3B beside it holds {held}. ")


def refused_beside(both):
    """Qwen on one card, and on the other Llama with more than vLLM has room for."""
    both.choose_device("2 x RTX 4090")
    both.swap_beside(0)
    both.choose_runtime("llama.cpp", None)
    both.swap_beside(0)
    both.choose_runtime("vllm", None)
    both.edit("context", max_model_len=131_072, concurrency=8)
    both.swap_beside(0)


def test_that_the_verdict_names_another_that_does_not_fit(both, llama):
    refused_beside(both)
    # 8 x 131,072 tokens of 131,072 bytes are 128 GiB: no room on its card, which is not Qwen's.
    refused = both.state.beside[0]
    assert refused.tenant.model is llama
    assert both.state.own_fit is Fit.FITS
    assert both.state.fit is Fit.DOES_NOT_FIT
    over = -refused.sizing.verdict.margin_bytes
    words = present.verdict(both.state)
    shown = format_gib(over, digits=1)
    assert words.headline == f"Doesn’t fit: {shown} over for Llama-3.1-8B-Instruct"
    assert words.tooltip == f"Llama-3.1-8B-Instruct: {over:,} bytes over"
    assert words.color == "over"
    both.set_unit(UnitSystem.DECIMAL)
    shown = format_gib(over, UnitSystem.DECIMAL, digits=1)
    assert present.verdict(both.state).headline.startswith(f"Doesn’t fit: {shown} over for ")


@pytest.mark.parametrize("unit", UnitSystem)
def test_that_a_comparison_keeps_the_verdict_of_another_that_does_not_fit(
    both, llama, runner, here, unit
):
    refused_beside(both)
    compare = CompareViewModel(runner, here)
    compare.add(both.state)
    (entry,) = compare.entries
    over = -both.state.beside[0].sizing.verdict.margin_bytes
    assert both.state.own_fit in (Fit.FITS, Fit.TIGHT)
    assert entry.outcome is Fit.DOES_NOT_FIT
    assert comparison.margin_words(entry, unit) == fmt.margin(-over, unit)
    shown = f"Doesn’t fit: {format_gib(over, unit, digits=1)} over for Llama-3.1-8B-Instruct"
    assert shown in comparison.markdown(compare.entries, unit)
    assert shown in comparison.sentence(entry, names(compare.entries)[0], 0, unit)


def test_that_a_verdict_is_the_worst_of_all_and_the_plans_own_where_they_are_alike(both):
    fits = both.state.sizing
    placed = both.state.beside[0]

    def other(fit, margin_bytes=0):
        verdict = replace(placed.sizing.verdict, fit=fit, margin_bytes=margin_bytes)
        return replace(placed, sizing=replace(placed.sizing, verdict=verdict))

    unknown, tight = other(Fit.UNKNOWN), other(Fit.TIGHT)
    worst, bad = other(Fit.DOES_NOT_FIT, -2), other(Fit.DOES_NOT_FIT, -1)
    assert beside.outcome(fits, [tight, unknown]) is Fit.UNKNOWN
    assert beside.deciding(fits, [tight, unknown]) is unknown
    assert beside.deciding(fits, [bad, worst, unknown]) is worst
    assert beside.deciding(worst.sizing, [bad]) is None
    assert beside.deciding(fits, []) is None


def impossible(room):
    """vLLM can't split 32 heads, nor 16, among three."""
    room.choose_runtime("vllm", None)
    room.edit("tp", tensor_parallel_size=3)


def test_that_beside_a_problem_the_chips_are_the_plans_and_claim_nothing(qtbot, both, row, llama):
    both.add_beside(llama)
    qtbot.waitUntil(lambda: len(_buttons(row, "plan it")) == 2)
    impossible(both)
    assert both.state.problem
    assert both.state.beside == ()
    chips = _buttons(row, "plan it")
    told = [chip.accessibleName() for chip in chips]
    assert told == ["Qwen2.5-3B: plan this one", "Llama-3.1-8B-Instruct: plan this one"]
    assert not any("GiB" in chip.text() for chip in chips)
    both.remove_beside(0)
    (chip,) = _buttons(row, "plan it")
    assert chip.accessibleName() == "Llama-3.1-8B-Instruct: plan this one"
    both.undo_stack.undo()
    qtbot.waitUntil(lambda: len(_buttons(row, "plan it")) == 2)
    assert [chip.accessibleName() for chip in _buttons(row, "plan it")] == told


def test_that_another_models_picture_does_not_stay_beside_a_problem(both):
    impossible(both)
    assert both.state.problem
    assert both.state.sizing.budget.model is both.state.model
    both.swap_beside(0)
    assert both.state.problem
    assert both.state.sizing is None


def test_that_what_is_to_be_known_of_a_model_outlasts_an_edit(loaded, llama):
    told = "Its base was not looked for."
    loaded.load(replace(llama, notes=(told,)))
    assert told in present.remarks(loaded.state)
    loaded.edit("context", max_model_len=4096)
    assert told in present.remarks(loaded.state)
    impossible(loaded)
    assert loaded.state.problem
    assert told in present.remarks(loaded.state)


def test_that_a_share_of_the_whole_card_is_refused_beside_another(loaded, qwen):
    # vLLM's default asks for 0.92 of the card, whatever the others leave.
    loaded.add_beside(qwen)
    assert loaded.state.plan.beside[0].deployment.runtime == "vllm"
    assert loaded.state.fit is Fit.DOES_NOT_FIT
    assert "others hold" in present.verdict(loaded.state).detail


def test_that_the_picture_divides_the_others_and_names_each(both, qwen):
    panel = scene_for(both.state.sizing).panels[0]
    others = panel.segment(Region.FOREIGN)
    held = both.state.beside[0].held_bytes
    assert others.edges == (GIB // 2,)
    assert others.top_bytes == GIB // 2 + held
    caption = next(c for c in panel.captions if "Qwen2.5-3B" in c.texts[0])
    assert (caption.bottom_bytes, caption.top_bytes) == (GIB // 2, GIB // 2 + held)
    assert caption.texts[0] == f"Qwen2.5-3B beside it: {format_gib(held)}"


def test_that_limits_and_changes_are_those_beside_the_others(qtbot, both):
    qtbot.waitUntil(lambda: both.state.limits is not None, timeout=20_000)
    beside = both.state.limits.max_context
    both.edit("context", max_model_len=beside)
    assert both.state.fit in (Fit.FITS, Fit.TIGHT)
    both.remove_beside(0)
    qtbot.waitUntil(lambda: both.state.limits is not None, timeout=20_000)
    assert both.state.limits.max_context > beside


def test_that_several_devices_are_shared(both):
    both.choose_device("2 x RTX 4090")
    both.edit("weights", weight_format="bf16")
    # 16.1 and 6.2 GB of weights, and a cache beside them: a card each.
    assert both.state.beside[0].devices != ()
    assert both.state.fit is Fit.FITS
    assert _others(both) == 0
    assert "(device 1)" in both.state.machine.name


def test_that_an_impossible_plan_beside_it_is_named(both):
    both.swap_beside(0)
    both.choose_runtime("vllm", None)
    both.edit("tp", tensor_parallel_size=7)
    problem = both.state.problem
    assert problem
    both.swap_beside(0)
    assert both.state.problem.startswith("Qwen/Qwen2.5-3B: ")


def test_that_a_chip_says_name_size_and_margin_and_a_click_plans_it(both, row, qtbot, qwen, llama):
    (chip,) = _buttons(row, "plan it")
    held = format_gib(both.state.beside[0].held_bytes)
    margin = format_gib(both.state.beside[0].sizing.verdict.margin_bytes, digits=1, signed=True)
    qtbot.waitUntil(lambda: chip.text() == f"Qwen2.5-3B  {held}  {margin}")
    assert "Qwen2.5-3B" in chip.accessibleName()
    qtbot.mouseClick(chip, Qt.MouseButton.LeftButton)
    assert both.state.model is qwen
    assert both.state.plan.beside[0].model is llama
    (chip,) = _buttons(row, "plan it")
    assert "Llama-3.1-8B-Instruct" in chip.accessibleName()


def test_that_the_cross_takes_a_model_off_and_the_row_goes_with_the_last(both, row, qtbot):
    (cross,) = _buttons(row, "take off")
    assert cross.accessibleName() == "Take Qwen2.5-3B off this machine"
    qtbot.mouseClick(cross, Qt.MouseButton.LeftButton)
    assert both.state.plan.beside == ()
    assert not row.isVisible()


def test_that_figures_of_a_narrow_row_stay_whole(both, row, qtbot, llama):
    for _ in range(3):
        both.add_beside(llama)
    row.resize(900, 40)
    figures = [format_gib(placed.held_bytes) for placed in both.state.beside]
    qtbot.waitUntil(lambda: len(_buttons(row, "plan it")) == 4)
    for chip, held in zip(_buttons(row, "plan it"), figures, strict=True):
        assert held in chip.text()


def test_that_a_compared_plan_keeps_its_neighbours(both, runner, here):
    compare = CompareViewModel(runner, here)
    assert compare.add(both.state)
    kept = compare.entries[0]
    assert kept.sizing.verdict.margin_bytes == both.state.sizing.verdict.margin_bytes
    device = names(compare.entries)[0][2][1].text
    assert device == "RTX 4090, beside 1 model"


def test_that_markdown_tells_who_runs_beside(both):
    held = format_gib(both.state.beside[0].held_bytes)
    line = next(t for t in markdown(both.state).splitlines() if t.startswith("Beside it"))
    assert line.startswith(
        f"Beside it: Qwen/Qwen2.5-3B with llama.cpp, 4 × 8,192 tokens; it holds {held}. Fits"
    )


def test_that_the_unit_reaches_the_others(both, row, qtbot):
    both.set_unit(UnitSystem.DECIMAL)
    held = format_gib(both.state.beside[0].held_bytes, UnitSystem.DECIMAL)
    (chip,) = _buttons(row, "plan it")
    qtbot.waitUntil(lambda: held in chip.text())
    assert held.endswith(" GB")
