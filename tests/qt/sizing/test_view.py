"""What the room shows is what the engine said; what the user does reaches the plan."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QFontMetrics
from PySide6.QtWidgets import QApplication, QLabel
from typing_extensions import override

from engine.budget.model import Region
from engine.devices import catalogue as devices
from engine.devices.here import this_machine
from engine.fit.verdict import Fit
from engine.units import GIB, UnitSystem
from gui.kit.theme import load_theme
from gui.sizing import explain
from gui.sizing.verdict_view import ChangesRow
from gui.sizing.view import SizingView


@pytest.fixture
def view(qtbot, loaded):
    made = SizingView(loaded, load_theme("light"))
    made.strip.set_devices("RTX 4090", devices.devices())
    made.strip.show_state(loaded.state)
    made.set_low(low=False)
    qtbot.addWidget(made)
    made.resize(1144, 820)
    made.show()
    qtbot.waitExposed(made)
    return made


def _cells(view, row):
    model = view.regions.table.model()
    return [model.index(row, c).data() for c in range(model.columnCount())]


def _number(text):
    return float(text.replace(",", ""))


def test_that_one_unit_counts_for_the_screen_reader_and_for_what_drives_a_peak(view, loaded):
    loaded.set_unit(UnitSystem.DECIMAL)
    view.regions.table.select(None)
    told = [
        text for pair in view.regions.detail.labels for text in (pair[0].text(), pair[1].text())
    ]
    load = next(told[at + 1] for at, text in enumerate(told) if text.startswith("Peak in load"))
    # 8,030,261,248 parameters of 2 bytes are 16.06 GB; the buffers come on top.
    assert 16.06 <= float(load.split()[0]) < 16.2
    assert "GB of weights" in load
    assert " GB to spare" in view.picture.accessibleName()
    assert "GiB" not in view.picture.accessibleName()


def test_that_the_load_line_tells_every_default_that_was_assumed(view, loaded):
    view.regions.table.select(None)
    told = {caption.text(): text.text() for caption, text in view.regions.detail.labels}
    assumed = told["Assumed, since the plan doesn’t say"].splitlines()
    # vLLM's own defaults for a server on an RTX 4090, as its documentation gives them.
    assert any(line.startswith("gpu_memory_utilization 0.92") for line in assumed)
    assert any(line.startswith("max_num_batched_tokens 2,048") for line in assumed)
    loaded.edit("share", gpu_memory_utilization=0.5)
    told = {caption.text(): text.text() for caption, text in view.regions.detail.labels}
    assert "gpu_memory_utilization" not in told["Assumed, since the plan doesn’t say"]


def test_that_header_verdict_and_facts_say_the_state(view, loaded):
    state = loaded.state
    assert view.header.findChild(QLabel, "model title").text() == "Llama-3.1-8B-Instruct"
    assert "8.03 B parameters" in view.header.findChild(QLabel, "model facts").text()
    assert view.verdict.headline.full_text == state.sizing.verdict.headline
    assert view.verdict.detail.full_text == state.sizing.verdict.detail
    longest = f"{state.limits.max_context:,}"
    assert longest in view.verdict.longest.accessibleName()


def test_that_the_regions_add_up_to_the_load_line(view):
    model = view.regions.table.model()
    rows = [_cells(view, r) for r in range(model.rowCount())]
    assert [row[0] for row in rows] == [*(r.label for r in Region), "Load line"]
    sizes = [_number(row[1]) for row in rows[:-1] if row[1] != "\N{EN DASH}"]
    # Each of up to nine addends is rounded to 0.01.
    assert sum(sizes) == pytest.approx(_number(rows[-1][1]), abs=0.05)


def test_that_the_load_line_tells_the_peak_of_every_phase(view, loaded):
    view.regions.table.select(None)
    told = [caption.text() for caption, _ in view.regions.detail.labels]
    peaks = [text for text in told if text.startswith("Peak in ")]
    assert [text.split(",")[0].removeprefix("Peak in ") for text in peaks] == [
        "load", "prefill", "decode", "sustained",
    ]  # fmt: skip
    rank = loaded.state.sizing.budget.ranks[0]
    held = (Region.WEIGHTS, Region.RUNTIME, Region.FOREIGN)
    load = sum(rank.regions[region].estimate.likely_bytes for region in held)
    load += sum(transient.likely_bytes for transient in rank.moments.load)
    assert f"{load / 2**30:.2f} GiB" in peaks[0]


def test_that_an_absent_region_stays_with_its_reason_and_no_number(view):
    row = view.regions.table.rows.row_at(list(Region).index(Region.RECURRENT_STATE))
    assert row.is_absent
    assert row.size == "\N{EN DASH}"
    assert row.note


def test_that_where_the_pool_is_too_small_the_table_shows_what_is_needed(view, loaded):
    loaded.edit("context", max_model_len=32768)
    row = view.regions.table.rows.row_at(list(Region).index(Region.KV_CACHE))
    assert row.size == "16.00"
    assert "left for it" in row.note
    line = view.regions.table.rows.row_at(9)
    assert "less than the plan's" in line.note


def test_that_selecting_a_region_reaches_picture_and_pane_and_back(view, qtbot):
    view.regions.select(Region.WEIGHTS)
    assert view.regions.detail.accessibleName().startswith("Weights: ")
    view.picture.region_selected.emit(Region.RUNTIME)
    assert view.regions.table.current_region is Region.RUNTIME
    assert view.regions.detail.accessibleName().startswith("Runtime: ")


def test_that_the_selection_survives_an_edit_and_a_change_of_unit(view, loaded):
    view.regions.select(Region.ACTIVATIONS)
    loaded.edit("concurrency", concurrency=2)
    loaded.set_unit(UnitSystem.DECIMAL)
    assert view.regions.table.current_region is Region.ACTIVATIONS
    assert view.regions.table.model().headerData(1, Qt.Orientation.Horizontal) == "GB"


def test_that_tooltips_of_sizes_are_exact_bytes(view, loaded):
    model = view.regions.table.model()
    weights = loaded.state.sizing.budget.ranks[0].regions[Region.WEIGHTS].estimate
    tip = model.index(0, 1).data(Qt.ItemDataRole.ToolTipRole)
    assert tip == f"{weights.likely_bytes:,} bytes"


def test_that_typing_32k_changes_the_plan_and_nonsense_does_not(view, loaded, qtbot):
    field = view.strip.context
    field.setFocus()
    field.selectAll()
    qtbot.keyClicks(field, "32k")
    qtbot.keyClick(field, Qt.Key.Key_Return)
    assert loaded.state.context == 32768
    field.selectAll()
    qtbot.keyClicks(field, "much")
    qtbot.keyClick(field, Qt.Key.Key_Return)
    assert loaded.state.context == 32768
    assert view.remark.isVisible()
    assert "much" in view.remark.full_text
    qtbot.keyClick(field, Qt.Key.Key_Escape)
    assert not view.remark.isVisible()


def _lightness(part):
    """Of every second pixel of what is drawn of ``part``."""
    image = part.grab().toImage()
    return [
        image.pixelColor(x, y).lightness()
        for y in range(0, image.height(), 2)
        for x in range(0, image.width(), 2)
    ]


def test_that_an_impossible_plan_is_said_and_the_old_picture_pales(view, loaded):
    parts = (view.picture, view.regions)
    before = [_lightness(part) for part in parts]
    loaded.edit("tp", tensor_parallel_size=7)
    assert view.verdict.detail.full_text == loaded.state.problem
    for part, was in zip(parts, before, strict=True):
        now = _lightness(part)
        assert all(pale >= dark - 2 for pale, dark in zip(now, was, strict=True))
        # Black is seen at 0.35: 255 - 0.35 * 255 = 166 on white.
        assert min(was) < 60
        assert min(now) > 150
    loaded.undo_stack.undo()
    assert [_lightness(part) for part in parts] == before


def test_that_one_click_takes_a_change(view, loaded, qtbot):
    loaded.edit("context", max_model_len=131072)
    qtbot.waitUntil(lambda: bool(view.verdict.changes.buttons), timeout=20_000)
    button = view.verdict.changes.buttons[0]
    assert button.isVisible()
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    assert loaded.state.fit in (Fit.FITS, Fit.TIGHT)
    assert not view.verdict.changes.isVisible()


def test_that_a_device_is_found_by_typing_and_is_marked_as_not_here(view, loaded, qtbot):
    box = view.strip.device
    box.lineEdit().setFocus()
    box.lineEdit().selectAll()
    qtbot.keyClicks(box.lineEdit(), "L40S")
    qtbot.keyClick(box.lineEdit(), Qt.Key.Key_Return)
    assert loaded.state.plan.device == "L40S"
    assert box.toolTip() == "L40S, not this computer"
    assert not view.verdict.baseline.isVisible()
    view.set_theme(load_theme("dark"))
    assert box.lineEdit().text() == "L40S, not this computer"


def test_that_a_device_nobody_knows_is_refused_and_the_plan_stays(view, loaded, qtbot):
    box = view.strip.device
    box.lineEdit().setFocus()
    box.lineEdit().selectAll()
    qtbot.keyClicks(box.lineEdit(), "abacus")
    qtbot.keyClick(box.lineEdit(), Qt.Key.Key_Return)
    assert loaded.state.plan.device is None
    assert "abacus" in view.remark.full_text


def test_that_several_ranks_stand_side_by_side(view, loaded):
    view.resize(984, 700)
    loaded.choose_device("L40S")
    loaded.edit("tp", tensor_parallel_size=2)
    model = view.regions.table.model()
    heads = [model.headerData(c, Qt.Orientation.Horizontal) for c in range(model.columnCount())]
    assert heads[:3] == ["Region, GiB", "Rank 0", "Rank 1"]
    view.resize(984, 700)
    hidden = [c for c in range(len(heads)) if view.regions.table.isColumnHidden(c)]
    assert [heads[c] for c in hidden] == ["How it is worked out"]


def test_that_eight_ranks_leave_the_regions_their_names(view, loaded):
    view.resize(984, 700)
    loaded.choose_device("L40S")
    loaded.edit("tp", tensor_parallel_size=8)
    table = view.regions.table
    widest = max(table.fontMetrics().horizontalAdvance(r.label) for r in Region)
    # Padding of 16 and 8, a swatch of 12 and 8 after it.
    assert table.columnWidth(0) >= widest + 44
    assert table.horizontalScrollBar().maximum() > 0


def test_that_the_rank_explained_can_be_chosen_and_starts_at_the_binding_one(view, loaded):
    assert not view.rank.isVisible()
    loaded.choose_device("L40S")
    loaded.edit("pp", pipeline_parallel_size=2)
    verdict = loaded.state.sizing.verdict
    assert view.rank.isVisible()
    assert view.regions.rank == verdict.binding_rank
    view.rank.picked.emit(1)
    assert view.regions.rank == 1
    view.regions.select(Region.WEIGHTS)
    weights = loaded.state.sizing.budget.ranks[1].regions[Region.WEIGHTS].estimate
    assert f"{weights.likely_bytes:,} bytes" in view.regions.detail.accessibleName()


def test_that_every_control_has_a_name_and_a_label_with_a_buddy(view):
    strip = view.strip
    for control in (
        strip.runtime, strip.weights, strip.kv, strip.context, strip.slider,
        strip.at_once, strip.tp, strip.pp, strip.device,
    ):  # fmt: skip
        assert control.accessibleName(), control.objectName()
    buddies = {label.buddy() for label in strip.findChildren(QLabel) if label.buddy()}
    assert {
        strip.runtime,
        strip.weights,
        strip.kv,
        strip.context,
        strip.tp,
        strip.device,
    } <= buddies


@pytest.mark.parametrize("width", [844, 916, 984, 1144])
def test_that_no_control_of_the_strip_is_cut_or_overlaps(view, qtbot, width):
    view.resize(width, 700)
    strip = view.strip
    controls = [
        strip.runtime, strip.weights, strip.kv, strip.slider, strip.context,
        strip.assumed, strip.at_once, strip.tp, strip.pp, strip.device,
    ]  # fmt: skip

    def edges():
        ends = ((c.rect().topLeft(), c.rect().topRight()) for c in controls)
        pairs = zip(controls, ends, strict=True)
        return [(c.mapTo(view, a).x(), c.mapTo(view, b).x()) for c, (a, b) in pairs]

    # The layout settles when the events of the resize are through.
    qtbot.waitUntil(
        lambda: all(right < left for (_, right), (left, _) in itertools.pairwise(edges()))
    )
    qtbot.waitUntil(lambda: edges()[-1][1] <= width - 16)
    assert view.width() == width


class _CutNumbers(QObject):
    """Notes every label that is painted with less room than its text takes."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    @override
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        is_painted = event.type() == QEvent.Type.Paint and isinstance(watched, QLabel)
        if is_painted and watched.width() < watched.fontMetrics().horizontalAdvance(watched.text()):
            self.seen.append(watched.text())
        return False


def test_that_no_number_beside_the_verdict_is_ever_painted_cut(view, loaded, qtbot):
    cut = _CutNumbers()
    for fact in (view.verdict.longest, view.verdict.most):
        for part in fact.findChildren(QLabel):
            part.installEventFilter(cut)
    # Painted while the limits are searched, and again as soon as they are there.
    loaded.changed.connect(lambda _: view.verdict.repaint())
    for context in (1024, 8192, 512):
        loaded.edit("context", max_model_len=context)
        qtbot.waitUntil(lambda: loaded.state.limits is not None, timeout=20_000)
    assert cut.seen == []


@pytest.mark.parametrize("width", [844, 1144])
def test_that_no_number_of_the_plan_is_cut_however_long(view, loaded, width):
    view.resize(width, 700)
    loaded.edit("context", max_model_len=100_000_000)
    loaded.edit("concurrency", concurrency=100_000)
    loaded.edit("tp", tensor_parallel_size=1024)
    strip = view.strip
    for field, text in (
        (strip.context, "100,000,000"),
        (strip.at_once, "100,000"),
        (strip.tp, "1,024"),
    ):
        edit = field.lineEdit()
        assert edit.text() == text
        QApplication.sendPostedEvents()
        assert edit.width() >= edit.fontMetrics().horizontalAdvance(text), text


def test_that_no_number_of_the_table_is_cut_however_large(view, loaded):
    loaded.choose_runtime("llama.cpp", None)
    loaded.choose_device("RTX 3060 12GB + RTX 4090")
    table = view.regions.table
    for context in (8192, 50_000_000):
        loaded.edit("context", max_model_len=context)
        rows = table.model()
        for row, column in itertools.product(
            range(rows.rowCount()), range(1, rows.columnCount() - 2)
        ):
            index = rows.index(row, column)
            text = index.data() or ""
            font = index.data(Qt.ItemDataRole.FontRole)
            # Eight pixels at either side.
            assert table.columnWidth(column) >= QFontMetrics(font).horizontalAdvance(text) + 16, (
                text
            )
    assert any(len(_cells(view, row)[1]) >= len("1,000.00") for row in range(rows.rowCount()))


def test_that_what_the_runtime_makes_of_the_plan_is_said_below_it(view, loaded):
    assert not view.remark.isVisible()
    loaded.choose_runtime("llama.cpp", None)
    loaded.edit("context", max_model_len=200_000)
    loaded.edit("tp", tensor_parallel_size=4)
    # Trained on 131,072 tokens, as its config.json says; llama.cpp knows no tensor parallelism.
    said = view.remark.full_text
    assert "200,000 tokens are more than the 131,072 that the model was trained on." in said
    assert "llama.cpp has no tensor or pipeline parallel sizes" in said
    assert view.remark.isVisible()
    assert view.remark.text() == said


def test_that_the_formula_column_goes_into_the_pane_on_narrow_windows(view):
    last = view.regions.table.model().columnCount() - 1
    assert not view.regions.table.isColumnHidden(last)
    view.resize(984, 700)
    assert view.regions.table.isColumnHidden(last)


def test_that_floating_tabs_start_folded_and_open_over_the_picture(view, qtbot):
    view.resize(916, 520)
    view.set_low(low=True)
    assert view.tabs.is_folded
    height = view.picture.height()
    view.tabs.open(0)
    assert view.regions.isVisible()
    assert view.picture.height() == height
    assert view.close_floating()
    assert not view.close_floating()


def test_that_the_model_is_sound(view, qtmodeltester):
    qtmodeltester.check(view.regions.table.model())


def test_that_the_detail_of_kv_shows_the_equation_and_exact_bytes(loaded):
    budget = loaded.state.sizing.budget
    found = explain.detail(budget, budget.ranks[0], Region.KV_CACHE, UnitSystem.BINARY)
    text = "\n".join(f"{p.caption}\n{p.text}" for p in found.passages)
    assert "131,072" in text
    assert found.exact.endswith(" bytes")
    assert "4.00 GiB (4,294,967,296 bytes)" in text
    assert 4 * GIB == 4_294_967_296


def test_that_a_step_without_a_caption_goes_on_below_the_one_before(loaded):
    budget = loaded.state.sizing.budget
    found = explain.detail(budget, budget.ranks[0], Region.KV_CACHE, UnitSystem.BINARY)
    assert [p.caption for p in found.passages][:3] == [
        "One sequence at the least",
        "Needed",
        "Reserved",
    ]
    # 2 x 32 layers x 8 heads x 128 x 2 B a token, and 8,192 times that
    assert found.passages[0].text.split("\n")[1] == "× 8,192 tokens = 1,073,741,824 B a sequence"


def test_that_only_cells_that_read_differently_are_painted_anew(view, loaded):
    table = view.regions.table
    told = []
    table.model().dataChanged.connect(lambda first, _last: told.append(first.row()))
    loaded.edit("context", max_model_len=4096)
    kv = list(Region).index(Region.KV_CACHE)
    weights = list(Region).index(Region.WEIGHTS)
    assert kv in told
    assert weights not in told


def test_that_host_memory_beside_a_device_is_called_the_host(view, loaded):
    loaded.choose_device("RTX 4090")
    loaded.choose_runtime("llama.cpp", None)
    model = view.regions.table.model()
    heads = [model.headerData(c, Qt.Orientation.Horizontal) for c in range(model.columnCount())]
    assert heads[:3] == ["Region, GiB", "Rank 0", "Host"]


def test_that_beside_a_bound_no_longest_context_is_promised(view, loaded, here):
    assert view.verdict.longest.isVisible()
    loaded.set_here(replace(here, slots=(this_machine().host,)))
    assert loaded.state.fit is Fit.UNKNOWN
    assert not view.verdict.longest.isVisible()
    assert not view.verdict.most.isVisible()


@pytest.mark.parametrize("width", [640, 844, 984, 1144])
def test_that_no_change_is_cut_where_labels_are_long(qtbot, loaded, width):
    theme = load_theme("light")
    loaded.edit("context", max_model_len=131_072)
    qtbot.waitUntil(lambda: bool(loaded.state.changes), timeout=20_000)
    change = loaded.state.changes[0]
    labels = ("FP8 KV cache", "MXFP4_MOE, llama.cpp", "Experts of 13 layers in RAM", "2 at once")
    changes = tuple(replace(change, label=label) for label in labels)
    row = ChangesRow()
    qtbot.addWidget(row)
    row.resize(width, 32)
    row.show()
    row.show_changes(replace(loaded.state, changes=changes), theme)
    qtbot.waitUntil(lambda: row.buttons[0].x() > 0)
    shown = [button for button in row.buttons if button.isVisible()]
    assert shown
    for button in shown:
        assert button.width() >= button.sizeHint().width()
        assert button.geometry().right() < row.width()
    for left, right in itertools.pairwise(shown):
        assert left.geometry().right() < right.x()


def test_that_the_label_of_a_region_explains_it_in_a_line(view):
    model = view.regions.table.model()
    rows = {_cells(view, r)[0]: model.index(r, 0) for r in range(model.rowCount())}
    tip = rows["Headroom"].data(Qt.ItemDataRole.ToolTipRole).splitlines()
    assert tip[0] == "What you or the runtime leave free on purpose."
    # What there is none of says why in the same place.
    tip = rows["Recurrent state"].data(Qt.ItemDataRole.ToolTipRole).splitlines()
    assert len(tip) == 2


def test_that_the_caption_of_a_control_explains_it_in_a_line(view):
    captions = {label.text(): label.toolTip() for label in view.strip.findChildren(QLabel)}
    assert captions["At once"] == "Requests that are worked on at the same time."
    assert captions["Device"]
