"""The tab "Fit map": what it shows is what plans say, and the point on it moves the plan."""

from __future__ import annotations

from dataclasses import replace
from math import isnan

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QAbstractButton, QCheckBox, QLabel, QTableView, QToolButton, QWidget

from engine.architecture.spec import Direction, Doubt, Subject
from engine.budget.model import Region
from engine.devices import catalogue as devices
from engine.fit import solve
from engine.fit.margin_classes import edges_bytes, margin_class
from engine.fit.verdict import Fit
from engine.units import GIB, UnitSystem
from gui.kit.charts.fit_picture import CurvePicture, FitMapPicture
from gui.kit.theme import SCHEMES, load_theme
from gui.sizing.view import SizingView


@pytest.fixture
def view(qtbot, loaded):
    made = SizingView(loaded, load_theme("light"))
    made.strip.set_devices("RTX 4090", devices.devices())
    made.set_low(low=False)
    qtbot.addWidget(made)
    made.resize(1144, 820)
    made.show()
    qtbot.waitExposed(made)
    made.tabs.open_page(made.fit_map)
    _settle(qtbot, made)
    return made


def _settle(qtbot, view):
    model = view.fit_map._model
    qtbot.waitUntil(lambda: model.is_settled and model.answer is not None, timeout=20_000)


def _picture(view) -> FitMapPicture:
    return view.findChild(FitMapPicture, "fit map")


def _choose(qtbot, view, text):
    button = next(b for b in view.fit_map.choice.buttons if b.text() == text)
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    _settle(qtbot, view)


def _figures(view) -> dict[str, str]:
    texts = view.fit_map.panel.figures.texts
    return dict(text.split(": ", 1) for text in texts)


def _longest(found) -> dict[float, float]:
    """The longest context of each row of a map's limit."""
    return {requests: tokens for tokens, requests in found.limit}


def _drag(qtbot, picture, places, modifier=Qt.KeyboardModifier.NoModifier):
    points = [QPoint(round(p.x()), round(p.y())) for p in places]
    qtbot.mousePress(picture, Qt.MouseButton.LeftButton, pos=points[0])
    for point in points[1:]:
        qtbot.mouseMove(picture, point)
    qtbot.mouseRelease(picture, Qt.MouseButton.LeftButton, modifier, points[-1])


def test_that_it_stands_next_to_the_regions_and_has_a_shortcut_of_its_own(view):
    titles = [view.tabs.tabs.tabText(i) for i in range(view.tabs.tabs.count())]
    assert titles[:2] == ["Regions", "Fit map"]


def test_that_the_panel_says_what_the_verdict_says(view, loaded):
    verdict, budget = loaded.state.sizing.verdict, loaded.state.sizing.budget
    figures = _figures(view)
    assert figures["KV cache needed"] == "4.00 GiB"
    held = budget.sequence_state.pool_bytes
    assert figures["KV cache reserved"] == f"{held / GIB:.2f} GiB"
    assert figures["To spare"] == f"{verdict.margin_bytes / GIB:.2f} GiB"
    assert figures["Limited by"] == "KV cache"


def test_that_over_is_called_over(view, loaded):
    loaded.edit("context", max_model_len=65_536)
    assert _figures(view)["Over"] == f"{-loaded.state.sizing.verdict.margin_bytes / GIB:.2f} GiB"


def test_that_the_limit_drawn_is_the_longest_context_of_the_verdict(view, loaded):
    line = _longest(_picture(view).scene.map)
    assert line[4] == loaded.state.limits.max_context


def test_that_the_cell_under_the_pointer_is_told_as_its_own_plan(view, loaded):
    words = _picture(view).tip(16_384, 2)
    deployment = loaded.state.plan.deployment.with_(max_model_len=16_384, concurrency=2)
    margin = solve.margin_bytes(loaded.state.model, deployment, loaded.state.machine)
    assert words.startswith("16,384 tokens × 2 at once")
    assert f"{margin:,} bytes" in words


def test_that_dragging_the_point_moves_the_plan_in_one_step_of_undo(view, loaded, qtbot):
    picture, before = _picture(view), loaded.state.plan
    steps = loaded.undo_stack.count()
    places = [
        picture.place_of(*plan) for plan in ((8192, 4), (10_000, 5), (12_000, 8), (16_384, 8))
    ]
    _drag(qtbot, picture, places)
    deployment = loaded.state.plan.deployment
    assert (deployment.max_model_len, deployment.concurrency) == (16_384, 8)
    assert view.strip.context.value == 16_384
    assert view.strip.at_once.value == 8
    assert loaded.undo_stack.count() == steps + 1
    loaded.undo_stack.undo()
    assert loaded.state.plan == before
    assert (picture.scene.point.context, picture.scene.point.requests) == (8192, 4)


def test_that_a_press_elsewhere_moves_nothing(view, loaded, qtbot):
    picture, before = _picture(view), loaded.state.plan
    _drag(qtbot, picture, [picture.place_of(2048, 16), picture.place_of(4096, 16)])
    assert loaded.state.plan == before


@pytest.mark.parametrize(
    ("key", "modifier", "plan"),
    [
        (Qt.Key.Key_Right, Qt.KeyboardModifier.NoModifier, (9728, 4)),
        (Qt.Key.Key_Left, Qt.KeyboardModifier.NoModifier, (6912, 4)),
        (Qt.Key.Key_Up, Qt.KeyboardModifier.NoModifier, (8192, 5)),
        (Qt.Key.Key_Down, Qt.KeyboardModifier.NoModifier, (8192, 3)),
        # vLLM's blocks are of 16 tokens.
        (Qt.Key.Key_Right, Qt.KeyboardModifier.ShiftModifier, (8208, 4)),
        (Qt.Key.Key_Left, Qt.KeyboardModifier.ShiftModifier, (8176, 4)),
        (Qt.Key.Key_Up, Qt.KeyboardModifier.ShiftModifier, (8192, 5)),
    ],
)
def test_that_arrow_keys_move_the_plan(view, loaded, qtbot, key, modifier, plan):
    picture = _picture(view)
    picture.setFocus()
    qtbot.keyClick(picture, key, modifier)
    deployment = loaded.state.plan.deployment
    assert (deployment.max_model_len, deployment.concurrency) == plan
    loaded.undo_stack.undo()
    assert loaded.state.plan.deployment.max_model_len == 8192


def test_that_the_point_stays_on_the_map(view, loaded, qtbot):
    picture = _picture(view)
    loaded.edit("context", max_model_len=131_072, concurrency=1)
    for key in (Qt.Key.Key_Right, Qt.Key.Key_Down):
        qtbot.keyClick(picture, key)
    deployment = loaded.state.plan.deployment
    assert (deployment.max_model_len, deployment.concurrency) == (131_072, 1)


def test_that_moving_the_plan_keeps_the_map_and_another_format_asks_for_a_new_one(
    view, loaded, qtbot
):
    picture = _picture(view)
    found = picture.scene.map
    loaded.edit("context", max_model_len=20_000)
    assert picture.scene.map is found
    assert not picture.is_pale
    loaded.edit("kv", kv_cache_dtype="fp8")
    assert picture.scene.map is found
    assert picture.is_pale
    _settle(qtbot, view)
    assert picture.scene.map is not found
    assert not picture.is_pale
    longest = _longest(picture.scene.map)
    older = _longest(found)
    # FP8 takes half the bytes: twice the tokens, to a block.
    assert longest[4] == pytest.approx(2 * older[4], abs=64)


def test_that_a_newer_plan_silences_the_one_that_was_asked_about(view, loaded, qtbot):
    loaded.edit("kv", kv_cache_dtype="fp8")
    loaded.choose_device("L40S")
    loaded.choose_device("H100 SXM 80GB")
    _settle(qtbot, view)
    name = view.fit_map._model.answer.question.machine.slots[0].device.name
    assert name == "H100 SXM 80GB"


def test_that_nothing_is_worked_out_while_nobody_looks(view, loaded, qtbot):
    found = _picture(view).scene.map
    view.tabs.open_page(view.regions)
    loaded.edit("kv", kv_cache_dtype="fp8")
    model = view.fit_map._model
    qtbot.waitUntil(lambda: loaded.is_settled, timeout=20_000)
    assert model.is_settled
    assert model.answer.map is found
    view.tabs.open_page(view.fit_map)
    _settle(qtbot, view)
    assert model.answer.map is not found


def test_that_the_alternative_is_named_and_can_be_put_away(view, qtbot):
    box = view.findChild(QCheckBox, "alternative limit")
    assert box.isVisible()
    assert box.text() == "Limit with FP8 KV cache"
    assert _picture(view).scene.alternative
    box.click()
    assert not _picture(view).scene.alternative


def test_that_there_is_no_alternative_where_the_cache_is_the_smallest(view, loaded, qtbot):
    loaded.edit("kv", kv_cache_dtype="fp8")
    _settle(qtbot, view)
    assert not view.findChild(QCheckBox, "alternative limit").isVisible()


def test_that_an_impossible_plan_pales_the_map_and_says_so_above(view, loaded):
    loaded.edit("tp", tensor_parallel_size=7)
    assert _picture(view).is_pale
    loaded.undo_stack.undo()
    assert not _picture(view).is_pale


def test_that_what_is_in_doubt_is_grey_and_never_fits(view, loaded, llama, qtbot):
    doubt = Doubt(Subject.WEIGHTS, "A part is not understood.", Direction.LOWER)
    loaded.load(replace(llama, spec=replace(llama.spec, doubts=(doubt,))))
    _settle(qtbot, view)
    assert loaded.state.fit is Fit.UNKNOWN
    scene = _picture(view).scene
    assert scene.point.text.endswith(": unknown")
    cells = [margin for row in scene.map.margins for margin in row]
    assert any(isnan(margin) for margin in cells)
    assert not any(margin >= 0 for margin in cells)
    assert _figures(view)["To spare"] == "unknown"
    assert "A part is not understood." in view.findChild(QLabel, "why unknown").text()
    assert "unknown" in view.fit_map.panel.colors.texts
    assert not view.findChild(QCheckBox, "alternative limit").isVisible()


def test_that_without_a_model_the_map_says_what_to_do(qtbot, room):
    made = SizingView(room, load_theme("dark"))
    qtbot.addWidget(made)
    made.show()
    made.tabs.open_page(made.fit_map)
    label = made.findChild(QLabel, "no map")
    assert label.isVisible()
    assert "Pick a model" in label.text()


def test_that_a_map_that_fails_says_so_and_the_next_plan_gets_one(
    qtbot, loaded, monkeypatch, caplog
):
    def fail(*_):
        message = "a fault"
        raise ValueError(message)

    made = SizingView(loaded, load_theme("dark"))
    qtbot.addWidget(made)
    made.show()
    with monkeypatch.context() as patched:
        patched.setattr("gui.sizing.fit_map_model.axes", fail)
        made.tabs.open_page(made.fit_map)
        label = made.findChild(QLabel, "no map")
        qtbot.waitUntil(lambda: "can’t be worked out" in label.text(), timeout=20_000)
    assert "a fault" in caplog.text
    loaded.edit("kv", kv_cache_dtype="fp8")
    _settle(qtbot, made)
    assert _picture(made).isVisible()


def test_that_the_curve_shows_the_budget_of_every_context(view, loaded, qtbot):
    _choose(qtbot, view, "Curve")
    curve = view.findChild(CurvePicture, "curve")
    assert curve.isVisible()
    scene = curve.scene
    assert scene.longest == loaded.state.limits.max_context
    line = loaded.state.sizing.budget.ranks[0].slot.device.allocatable.likely_bytes
    assert scene.load_line_bytes == line
    # Below the limit vLLM takes its share whatever the context; above it the stack rises.
    tops = [stack[-1].top_bytes for stack in scene.stacks]
    fitting = [top for c, top in zip(scene.contexts, tops, strict=True) if c <= scene.longest]
    beyond = [top for c, top in zip(scene.contexts, tops, strict=True) if c > scene.longest]
    assert max(fitting) <= line < min(beyond)
    figures = _figures(view)
    assert figures["Load line"] == f"{line / GIB:.2f} GiB"
    weights = loaded.state.sizing.budget.ranks[0].regions[Region.WEIGHTS].estimate
    assert figures["Weights"] == f"{weights.likely_bytes / GIB:.2f} GiB"


def test_that_the_curve_follows_the_requests_and_its_point_the_context(view, loaded, qtbot):
    _choose(qtbot, view, "Curve")
    curve = view.findChild(CurvePicture, "curve")
    stacks = curve.scene.stacks
    place = curve.place_of(8192, 4)
    target = QPointF(place.x() + 60, place.y() + 40)
    _drag(qtbot, curve, [place, target])
    assert loaded.state.plan.deployment.max_model_len > 8192
    assert loaded.state.plan.deployment.concurrency == 4
    assert curve.scene.stacks is stacks
    loaded.edit("concurrency", concurrency=16)
    _settle(qtbot, view)
    assert curve.scene.stacks is not stacks
    assert not curve.is_pale


def test_that_the_table_holds_the_map_and_the_curve_in_figures(view, loaded, qtbot):
    button = view.findChild(QToolButton, "as table")
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    table = view.findChild(QTableView, "fit table")
    assert table.isVisible()
    cells = table.model()
    heads = [cells.headerData(c, Qt.Orientation.Horizontal) for c in range(cells.columnCount())]
    row = next(r for r in range(cells.rowCount()) if cells.index(r, 0).data() == "4")
    index = cells.index(row, heads.index("8,192"))
    margin = loaded.state.sizing.verdict.margin_bytes
    assert index.data() == f"+{margin / GIB:.1f}"
    assert f"{margin:,} bytes" in index.data(Qt.ItemDataRole.ToolTipRole)
    _choose(qtbot, view, "Curve")
    names = [cells.index(r, 0).data() for r in range(cells.rowCount())]
    assert names[0] == "Load line"
    assert names[-2:] == ["Weights", "Others"]
    weights = loaded.state.sizing.budget.ranks[0].regions[Region.WEIGHTS].estimate
    assert cells.index(len(names) - 2, 1).data() == f"{weights.likely_bytes / GIB:.2f}"


def test_that_the_tables_model_is_sound(view, qtbot, qtmodeltester):
    view.findChild(QToolButton, "as table").click()
    qtmodeltester.check(view.fit_map.table.model())


def test_that_switch_and_table_stand_in_the_strip_only_while_the_map_is_open(view):
    assert view.fit_map.tools.isVisible()
    view.tabs.open_page(view.regions)
    assert not view.fit_map.tools.isVisible()


def test_that_pictures_are_named_with_a_sentence_and_reached_by_keyboard(view, qtbot):
    picture = _picture(view)
    assert picture.accessibleName().startswith("Fit map: 8,192 tokens × 4 at once. Fits, with")
    assert "up to" in picture.accessibleDescription()
    assert picture.focusPolicy() & Qt.FocusPolicy.TabFocus
    _choose(qtbot, view, "Curve")
    curve = view.findChild(CurvePicture, "curve")
    assert "4 at once" in curve.accessibleName()
    for part in (view.fit_map, view.fit_map.tools):
        for button in (b for b in part.findChildren(QAbstractButton) if b.isVisible()):
            assert button.accessibleName() or button.text(), button.objectName()
    view.findChild(QToolButton, "as table").click()
    assert view.findChild(QTableView, "fit table").accessibleName()


def test_that_the_unit_changes_every_figure(view, loaded):
    loaded.set_unit(UnitSystem.DECIMAL)
    needed = loaded.state.sizing.budget.ranks[0].needed.likely_bytes
    assert _figures(view)["KV cache needed"] == f"{needed / 1e9:.2f} GB"
    assert "more than 4 GB" in view.fit_map.panel.colors.texts
    assert _picture(view).scene.point.text.endswith(" GB")


@pytest.mark.parametrize(
    ("gib", "edges"),
    [
        (23.99, (-16, -2, 0, 2, 4)),
        (79.65, (-40, -5, 0, 5, 10)),
        (8.0, (-4, -0.5, 0, 0.5, 1)),
        (141.0, (-80, -10, 0, 10, 20)),
    ],
)
def test_that_classes_meet_at_round_figures(gib, edges):
    found = edges_bytes(round(gib * GIB), UnitSystem.BINARY)
    assert [edge / GIB for edge in found] == pytest.approx(edges)


def test_that_an_edge_belongs_to_the_better_class():
    edges = edges_bytes(24 * GIB, UnitSystem.BINARY)
    assert [margin_class(m * GIB, edges) for m in (-17, -16, -2.1, -0.001, 0, 1.9, 2, 4)] == [
        0, 1, 1, 2, 3, 3, 4, 5,
    ]  # fmt: skip


@pytest.mark.parametrize("scheme", SCHEMES)
def test_that_cells_are_painted_in_the_colours_of_their_classes(view, scheme, qtbot):
    theme = load_theme(scheme)
    view.set_theme(theme)
    picture = _picture(view)
    image = QImage(picture.size(), QImage.Format.Format_RGB32)
    picture.render(image)
    for plan, color in (((1500, 2), "map.fit3"), ((100_000, 40), "map.over3")):
        place = picture.place_of(*plan)
        found = image.pixelColor(round(place.x()), round(place.y()))
        assert found == theme.color(color), (scheme, plan)


@pytest.mark.parametrize("size", [(1144, 820), (984, 700), (916, 520)])
def test_that_nothing_of_the_panel_is_cut(view, qtbot, size):
    view.resize(*size)
    for label in view.fit_map.panel.findChildren(QLabel):
        if label.isVisible() and not label.wordWrap():
            assert label.fontMetrics().horizontalAdvance(label.text()) <= label.width() + 1
    assert view.fit_map.width() <= size[0]


def test_that_over_the_picture_the_map_leaves_the_verdict_to_be_seen(view, qtbot):
    view.resize(916, 520)
    view.set_low(low=True)
    view.tabs.open_page(view.fit_map)
    top = view.fit_map.mapTo(view, QPoint(0, 0)).y()
    assert top >= view.verdict.mapTo(view, view.verdict.rect().bottomLeft()).y()
    assert view.close_floating()


def test_that_of_several_ranks_one_is_chosen_for_the_curve_only(view, loaded, qtbot):
    loaded.choose_device("L40S")
    loaded.edit("pp", pipeline_parallel_size=2)
    _settle(qtbot, view)
    assert not view.rank.isVisible()
    _choose(qtbot, view, "Curve")
    assert view.rank.isVisible()
    view.rank.picked.emit(1)
    second = loaded.state.sizing.budget.ranks[1].regions[Region.WEIGHTS].estimate
    assert _figures(view)["Weights"] == f"{second.likely_bytes / GIB:.2f} GiB"
    stack = view.findChild(CurvePicture, "curve").scene.stacks[0]
    weights = next(layer for layer in stack if layer.region is Region.WEIGHTS)
    assert weights.top_bytes - weights.bottom_bytes == second.likely_bytes


def test_that_the_page_is_one_widget_with_a_name(view):
    assert view.findChild(QWidget, "fit map page") is view.fit_map
