"""The expanded browser through its real widgets, by name and label."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QLabel,
    QMenu,
    QPushButton,
    QSlider,
    QToolButton,
    QWidget,
)

from engine.architecture.read import read
from engine.deployment.spec import Deployment
from engine.devices import catalogue as devices
from engine.fit.verdict import Fit
from engine.source import catalogue
from engine.source.hub import HubClient
from engine.units import UnitSystem
from gui.browser.expanded import ExpandedBrowser
from gui.browser.filters import ALL
from gui.browser.rows import ROW_ROLE, Source
from gui.browser.shape import shape
from gui.browser.table import ModelTable
from gui.browser.view_model import BrowserViewModel
from gui.kit.tasks import TaskRunner
from gui.kit.theme import load_theme, style_sheet
from tests.helpers import fake_hub
from tests.helpers.fake_hub import Repo

GEMMA = "google/gemma-3-12b-it"
PLAN = Deployment(runtime="vllm", max_model_len=8192, concurrency=4)
APOSTROPHE = "\N{RIGHT SINGLE QUOTATION MARK}"


@pytest.fixture
def runner(qapp):
    made = TaskRunner()
    yield made
    assert made.shutdown(5000)


@pytest.fixture
def hub():
    with fake_hub.serving() as running:
        fake_hub.fill(running, 120)
        yield running


@pytest.fixture
def view(qtbot, runner, hub, tmp_path, monkeypatch):
    """At a plan for an RTX 4090, everything shown."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    model = BrowserViewModel(runner, HubClient(hub.url, timeout_s=5))
    made = ExpandedBrowser(model, load_theme("light"))
    qtbot.addWidget(made)
    made.resize(1440, 840)
    made.show()
    model.set_plan(PLAN, devices.machine(devices.find("RTX 4090"), 1))
    model.set_filters(ALL)
    qtbot.waitUntil(lambda: model.is_settled, timeout=20_000)
    yield made
    model.setParent(made)


@pytest.fixture
def dressed(qapp):
    """The application in the house's fonts and style."""
    before = qapp.font()
    qapp.setFont(load_theme("light").font("body"))
    qapp.setStyleSheet(style_sheet(load_theme("light")))
    yield
    qapp.setStyleSheet("")
    qapp.setFont(before)


def settle(qtbot, view):
    qtbot.waitUntil(lambda: view.model.is_settled, timeout=20_000)


def shown(view):
    rows = view.table.model()
    return [rows.index(n, 0).data(ROW_ROLE).key for n in range(rows.rowCount())]


def cells(view, key, role=Qt.ItemDataRole.DisplayRole):
    rows = view.table.model()
    place = shown(view).index(key)
    return [rows.index(place, n).data(role) for n in range(rows.columnCount())]


def box(view, name):
    return view.findChild(QCheckBox, name)


def number(view, name):
    """What stands beside a check box."""
    return int(box(view, name).parentWidget().findChild(QLabel).text().replace(",", ""))


def click(qtbot, widget):
    qtbot.mouseClick(widget, Qt.MouseButton.LeftButton)


def toggle(view, name):
    box(view, name).click()


def pick(view, name, words):
    combo = view.findChild(QComboBox, name)
    place = next(n for n in range(combo.count()) if combo.itemText(n).startswith(words))
    combo.setCurrentIndex(place)
    combo.activated.emit(place)


def text(view, name):
    return view.findChild(QLabel, name).text()


def test_that_a_row_shows_its_figures_in_columns(view):
    assert cells(view, GEMMA)[:6] == ["gemma-3-12b-it", "google", "12.2 B", "BF16", "22.70", "128k"]
    badge = view.model.badges[GEMMA]
    assert cells(view, GEMMA)[6] == badge.text(UnitSystem.BINARY)
    assert badge.fit is Fit.DOES_NOT_FIT
    heads = [
        view.table.model().headerData(n, Qt.Orientation.Horizontal)
        for n in range(view.table.model().columnCount())
    ]
    assert heads == [
        "Name", "Author", "Parameters", "Format", "Stored GiB", "Context", "To spare",
    ]  # fmt: skip


def test_that_each_cell_is_spoken_with_what_it_means(view):
    spoken = cells(view, GEMMA, Qt.ItemDataRole.AccessibleTextRole)
    assert spoken[6].startswith("doesn't fit, \N{MINUS SIGN}")
    gated = next(e.id for e in catalogue.entries() if e.gated)
    assert cells(view, gated, Qt.ItemDataRole.AccessibleTextRole)[0].endswith(", gated")


def test_that_a_unit_changes_heading_and_figures(view):
    view.model.set_unit(UnitSystem.DECIMAL)
    assert view.table.model().headerData(4, Qt.Orientation.Horizontal) == "Stored GB"
    # 12,187,325,040 parameters of 2 bytes.
    assert cells(view, GEMMA)[4] == "24.37"


def test_that_the_boxes_of_fit_count_all_models_and_hide_those_they_name(view):
    names = ("Fits", "Tight", f"Doesn{APOSTROPHE}t fit", "Unknown")
    numbers = {name: number(view, f"Fit: {name}") for name in names}
    assert sum(numbers.values()) == len(catalogue.entries()) == len(shown(view))
    assert all(box(view, f"Fit: {name}").isChecked() for name in names)
    toggle(view, f"Fit: Doesn{APOSTROPHE}t fit")
    assert len(shown(view)) == len(catalogue.entries()) - numbers[names[2]]
    assert GEMMA not in shown(view)
    toggle(view, "Fit: Unknown")
    assert len(shown(view)) == numbers["Fits"] + numbers["Tight"]
    assert number(view, f"Fit: Doesn{APOSTROPHE}t fit") == numbers[names[2]]


def test_that_formats_inputs_and_access_are_check_boxes(view):
    by_format = {"FP8": "fp8", "4-bit": "nvfp4"}
    for name, stored in by_format.items():
        assert number(view, f"Weight format: {name}") >= sum(
            e.weight_format.startswith(stored) for e in catalogue.entries()
        )
    toggle(view, "Weight format: BF16, F16")
    assert {catalogue.find(k).weight_format for k in shown(view)}.isdisjoint({"bf16", "fp16"})
    toggle(view, "Weight format: BF16, F16")
    toggle(view, "Takes in: Images")
    assert {catalogue.find(k).modality for k in shown(view)} == {"image-text"}
    toggle(view, "Access: Gated")
    assert not any(catalogue.find(k).gated for k in shown(view))


def test_that_author_licence_and_context_are_chosen_from_lists(view):
    pick(view, "author", "google")
    assert {k.split("/")[0] for k in shown(view)} == {"google"}
    pick(view, "author", "Any author")
    pick(view, "licence", "mit,")
    found = {catalogue.find(k).licence for k in shown(view)}
    assert found == {"mit", None}
    toggle(view, "Licence: Unknown")
    assert {catalogue.find(k).licence for k in shown(view)} == {"mit"}
    pick(view, "licence", "Any licence")
    pick(view, "quantisation", "MXFP4,")
    assert {catalogue.find(k).weight_format for k in shown(view)} == {"mxfp4"}
    pick(view, "quantisation", "Any quantisation")
    pick(view, "least context", "1M tokens")
    contexts = [catalogue.find(k).max_position_embeddings for k in shown(view)]
    assert contexts
    assert all(n is None or n >= 2**20 for n in contexts)


@pytest.mark.parametrize(
    ("end", "key", "limits"),
    [("Parameters from", Qt.Key.Key_PageUp, (2 * 10**8, 10**18)),
     ("Parameters to", Qt.Key.Key_PageDown, (0, 11 * 10**11))],
)  # fmt: skip
def test_that_the_ends_of_a_range_are_moved_by_keys(view, qtbot, end, key, limits):
    slider = view.findChild(QSlider, end)
    qtbot.keyClick(slider, key)
    low, high = limits
    sizes = [catalogue.find(k).parameters for k in shown(view)]
    assert len(sizes) < len(catalogue.entries())
    assert low <= min(sizes)
    assert max(sizes) <= high
    heading = text(view, "Parameters heading")
    assert heading.startswith("Parameters: from 200 M" if low else "Parameters: up to 970 B")
    assert slider.accessibleName().startswith(f"{end}, ")
    qtbot.keyClick(slider, Qt.Key.Key_Home if low else Qt.Key.Key_End)
    assert len(shown(view)) == len(catalogue.entries())


def test_that_a_range_is_dragged_and_its_ends_never_pass_each_other(view, qtbot):
    whole = view.filters.parameters
    middle = whole.rect().center()
    qtbot.mousePress(whole, Qt.MouseButton.LeftButton, pos=middle)
    qtbot.mouseRelease(whole, Qt.MouseButton.LeftButton, pos=middle)
    span = view.model.state.wanted.filters.parameters
    # The middle of 100 million to 2 trillion on a logarithmic scale.
    ends = (span.low, span.high)
    assert min(abs(end / 14.1e9 - 1) for end in ends) < 0.2
    qtbot.keyClick(whole.low, Qt.Key.Key_End)
    assert whole.low.value() <= whole.high.value()


def test_that_a_heading_sorts_and_turns_the_order_round(view, qtbot):
    head = view.table.horizontalHeader()
    head.sectionClicked.emit(2)
    sizes = [catalogue.find(k).parameters for k in shown(view)]
    assert sizes == sorted(sizes, reverse=True)
    title = view.table.model().headerData(2, Qt.Orientation.Horizontal)
    assert title == "Parameters \N{DOWNWARDS ARROW}"
    head.sectionClicked.emit(2)
    assert [catalogue.find(k).parameters for k in shown(view)] == sizes[::-1]
    menu = view.findChild(QToolButton, "order of all").findChild(QMenu)
    next(a for a in menu.actions() if a.text() == "Stored size").trigger()
    stored = [view.model.badges[k].weight_bytes for k in shown(view)]
    assert stored == sorted(stored, reverse=True)


def test_that_the_pane_tells_of_the_row_that_is_walked_to(view, qtbot):
    view.table.look_at(GEMMA)
    assert text(view, "detail name") == "gemma-3-12b-it"
    assert "12.2 B parameters" in text(view, "detail facts")
    assert "over" in text(view, "detail verdict")
    figures = [label.text() for label in view.detail.findChildren(QLabel)]
    assert "48; 8 full, 40 with a 1,024-token window" in figures
    # 48 layers of 2 x 8 heads x 256 x 2 bytes; past the window the 8 full ones alone.
    assert "384 KiB a token, 64 KiB past 1,024" in figures
    qtbot.keyClick(view.table, Qt.Key.Key_Down)
    assert text(view, "detail name") != "gemma-3-12b-it"


def test_that_a_pages_address_and_a_choice_leave_the_room(view, qtbot):
    pages, choices = [], []
    view.page_wanted.connect(pages.append)
    view.model.chosen.connect(choices.append)
    view.table.look_at(GEMMA)
    click(qtbot, view.findChild(QPushButton, "hub page"))
    assert pages[0].endswith(f"/{GEMMA}")
    click(qtbot, view.findChild(QPushButton, "size this model"))
    qtbot.keyClick(view.table, Qt.Key.Key_Return)
    assert [choice.label for choice in choices] == [GEMMA, GEMMA]


def test_that_a_gated_model_is_said_to_be_sized_all_the_same(view):
    gated = next(e.id for e in catalogue.entries() if e.gated)
    view.table.look_at(gated)
    asked = []
    view.access_wanted.connect(lambda: asked.append(1))
    view.findChild(QPushButton, "enter a token").click()
    assert asked == [1]
    assert view.findChild(QPushButton, "open terms").isVisible()
    assert any("Sizing works already" in w.text() for w in view.detail.findChildren(QLabel))
    view.table.look_at(next(e.id for e in catalogue.entries() if e.gated is False))
    assert not view.findChild(QPushButton, "open terms").isVisible()


def test_that_filters_which_leave_nothing_name_the_one_to_loosen(view, qtbot):
    pick(view, "author", "google")
    for name in ("Fits", "Tight", f"Doesn{APOSTROPHE}t fit", "Unknown"):
        toggle(view, f"Fit: {name}")
    assert shown(view) == []
    assert view.message.title.text().startswith("None of 483 ")
    assert view.message.button.text() == f"Show what doesn{APOSTROPHE}t fit"
    click(qtbot, view.message.button)
    assert {k.split("/")[0] for k in shown(view)} == {"google"}
    click(qtbot, view.findChild(QPushButton, "show all"))
    assert len(shown(view)) == len(catalogue.entries())


def test_that_models_of_the_hub_are_told_by_the_day_of_their_last_change(view, qtbot, hub):
    now = datetime.now(UTC)
    for name, days in (("new", 3), ("middling", 200), ("old", 2000)):
        stated = (now - timedelta(days=days)).strftime("%Y-%m-%dT%H:%M:%S.000Z")
        hub.add(Repo(f"dated/{name}", facts={"downloads": 1, "lastModified": stated}))
    hub.add(Repo("dated/unknown", facts={"downloads": 1, "lastModified": None}))
    view.model.set_source(Source.HUB)
    qtbot.keyClicks(view.search, "dated")
    settle(qtbot, view)
    for words, left in (
        ("A month", {"new"}), ("A year", {"new", "middling"}),
        ("Any time", {"new", "middling", "old"}),
    ):  # fmt: skip
        pick(view, "last change", words)
        assert {k.split("/")[1] for k in shown(view)} == {*left, "unknown"}
    pick(view, "last change", "A month")
    toggle(view, "Updated within: Unknown")
    assert shown(view) == ["dated/new"]


def test_that_rows_of_the_hub_without_known_facts_say_so(view, qtbot, hub):
    view.model.set_source(Source.HUB)
    qtbot.keyClicks(view.search, "-")
    settle(qtbot, view)
    assert shown(view)
    unread = next(r for r in view.model.columns.rows if r.model is None)
    view.table.look_at(unread.key)
    assert any("headers of its files" in w.text() for w in view.detail.findChildren(QLabel))
    while view.table.model().canFetchMore(view.table.rootIndex()):
        view.table.model().fetchMore(view.table.rootIndex())
        settle(qtbot, view)
    assert len(shown(view)) == len(set(shown(view)))


@pytest.mark.parametrize("size", [(1440, 840), (1280, 740), (960, 540)])
def test_that_nothing_is_cut_or_outside_at_any_size(view, qtbot, qapp, dressed, size):
    view.resize(*size)
    qtbot.waitUntil(lambda: view.size().toTuple() == size)
    view.table.look_at(next(e.id for e in catalogue.entries() if e.gated))
    qtbot.waitUntil(view.detail.access.isVisible)
    qapp.processEvents()
    for part in view.findChildren(QWidget):
        if part.isVisible() and isinstance(part, QPushButton | QToolButton | QComboBox):
            corner = part.mapTo(view, part.rect().topRight())
            assert corner.x() <= size[0], part.objectName()
    assert view.table.columnWidth(0) >= 130
    if size[0] < 1200:
        click(qtbot, view.findChild(QPushButton, "filters button"))
        assert view.filters.isVisible()
        assert not view.detail.isVisible()
        assert view.table.columnWidth(0) >= 130


def test_that_everything_which_takes_the_keyboard_has_a_name(view):
    for part in view.findChildren(QWidget):
        if part.focusPolicy() & Qt.FocusPolicy.TabFocus and part.isVisible():
            name = part.accessibleName() or getattr(part, "text", str)() or part.toolTip()
            buddy = [w for w in view.findChildren(QLabel) if w.buddy() is part]
            assert name or buddy, part.objectName()


def test_that_it_paints_in_every_scheme(view):
    table = view.findChild(ModelTable)
    pictures = []
    for scheme in ("light", "dark", "contrast-light", "contrast-dark"):
        view.set_theme(load_theme(scheme))
        pictures.append(table.grab().toImage())
    assert all(a != b for a, b in pairwise(pictures))


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("deepseek-ai/DeepSeek-V3", {
            "Layers": "61", "Heads": "128 query, 512 + 64 wide latent",
            "Experts": "256, 8 at a time",
            # 61 layers of (512 + 64) x 2 bytes = 70,272.
            "KV cache": "69 KiB a token",
        }),
        ("Qwen/Qwen3-Next-80B-A3B-Instruct", {
            "Layers": "48; 12 full, 36 recurrent",
            # 12 layers of 2 x 2 heads x 256 x 2 bytes = 24,576.
            "KV cache": "24 KiB a token",
        }),
    ],
)  # fmt: skip
def test_that_the_shape_is_that_of_the_config(name, lines):
    found = dict(shape(read(catalogue.raw(catalogue.find(name))), UnitSystem.BINARY))
    assert lines.items() <= found.items()
