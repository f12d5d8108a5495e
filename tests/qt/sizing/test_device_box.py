"""What is typed into the device box finds the device that is meant."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication

from engine.devices import catalogue
from gui.sizing.device_box import DeviceBox
from gui.sizing.device_search import rank, spellings

HERE = "23.5 GiB RAM"


def _words(name):
    return f"{name}, elsewhere" if name else f"{HERE}, this computer"


@pytest.fixture
def box(qtbot):
    made = DeviceBox()
    made.set_devices(HERE, catalogue.devices())
    made.show_choice(None, f"{HERE}, this computer")
    made.picked.connect(lambda name: made.show_choice(name, _words(name)))
    qtbot.addWidget(made)
    made.resize(400, 30)
    made.show()
    qtbot.waitExposed(made)
    made.activateWindow()
    return made


def _click(qtbot, box):
    qtbot.mouseClick(box.lineEdit(), Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: box.lineEdit().selectedText() == box.lineEdit().text())


def _press(qtbot, box, *keys):
    """Keys where a keyboard would send them: to the list while it is open."""
    for key in keys:
        popup = box.completer().popup()
        qtbot.keyClick(popup if popup.isVisible() else box.lineEdit(), key)
        QApplication.processEvents()


def _type(qtbot, box, text):
    for letter in text:
        popup = box.completer().popup()
        qtbot.keyClicks(popup if popup.isVisible() else box.lineEdit(), letter)


def _listed(box):
    model = box.completer().popup().model()
    return [model.index(row, 0).data() for row in range(model.rowCount())]


@pytest.fixture
def picked(box):
    names = []
    box.picked.connect(names.append)
    return names


@pytest.fixture
def refusals(box):
    said = []
    box.refused.connect(said.append)
    return said


def test_that_a_click_selects_the_whole_text_each_time(box, qtbot):
    _click(qtbot, box)
    assert box.lineEdit().selectedText() == f"{HERE}, this computer"
    _click(qtbot, box)
    assert box.lineEdit().selectedText() == f"{HERE}, this computer"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("4090", "RTX 4090"),
        ("rtx 4090", "RTX 4090"),
        ("rtx4090", "RTX 4090"),
        ("NVIDIA GeForce RTX 4090", "RTX 4090"),
        ("4090 laptop", "RTX 4090 Laptop"),
        ("h100", "H100 SXM 80GB"),
        ("h100 pcie", "H100 PCIe 80GB"),
        ("m4 pro 48", "M4 Pro 48 GB"),
        ("strix halo", "Ryzen AI Max+ 395 128 GB"),
        ("2 x H200", "2 x H200"),
        ("4 x a40", "4 x A40"),
        ("8x h100", "8x H100 SXM 80GB"),
        ("RTX 3090 + 2 × 4090", "RTX 3090 + 2 × RTX 4090"),
    ],
)
def test_that_enter_takes_what_the_text_names(box, picked, refusals, qtbot, text, name):
    _click(qtbot, box)
    _type(qtbot, box, text)
    _press(qtbot, box, Qt.Key.Key_Return)
    assert picked == [name]
    assert not any(refusals)
    assert box.lineEdit().selectedText() == f"{name}, elsewhere"


@pytest.mark.parametrize(
    ("text", "downs", "name"),
    [
        ("4090", 1, "RTX 4090"),
        ("4090", 2, "RTX 4090 D"),
        ("h100", 1, "H100 SXM 80GB"),
        ("h100", 2, "H100 NVL"),
        ("m4 pro", 2, "M4 Pro 48 GB"),
        ("2 x 4090", 1, "2 x RTX 4090"),
        ("L4 + 2 x 3060", 1, "L4 + 2 x RTX 3060 12GB"),
    ],
)
def test_that_down_and_enter_take_the_highlighted_one(box, picked, qtbot, text, downs, name):
    _click(qtbot, box)
    _type(qtbot, box, text)
    _press(qtbot, box, *[Qt.Key.Key_Down] * downs, Qt.Key.Key_Return)
    assert picked == [name]
    assert not box.completer().popup().isVisible()
    qtbot.waitUntil(lambda: box.lineEdit().selectedText() == f"{name}, elsewhere")


def test_that_the_list_holds_what_contains_the_words_and_the_best_comes_first(box, qtbot):
    _click(qtbot, box)
    _type(qtbot, box, "4090")
    assert _listed(box) == ["RTX 4090", "RTX 4090 D", "RTX 4090 Laptop"]


def test_that_the_list_keeps_the_count_and_the_cards_before(box, qtbot):
    _click(qtbot, box)
    _type(qtbot, box, "L4 + 2 x 4090")
    names = ("RTX 4090", "RTX 4090 D", "RTX 4090 Laptop")
    assert _listed(box) == [f"L4 + 2 x {name}" for name in names]


def test_that_a_count_once_typed_is_not_kept_for_the_next_choice(box, picked, qtbot):
    _click(qtbot, box)
    _type(qtbot, box, "2 x ")
    box.showPopup()
    row = box.findText("RTX 4090")
    box.hidePopup()
    box.setCurrentIndex(row)
    box.activated.emit(row)
    assert picked == ["RTX 4090"]


def test_that_several_matches_keep_the_list_open_and_the_text(box, picked, refusals, qtbot):
    _click(qtbot, box)
    _type(qtbot, box, "m4 pro")
    _press(qtbot, box, Qt.Key.Key_Return)
    assert picked == []
    assert refusals == ["Several devices match “m4 pro”: pick one from the list."]
    assert box.completer().popup().isVisible()
    assert _listed(box) == ["M4 Pro 24 GB", "M4 Pro 48 GB", "M4 Pro 64 GB"]
    _press(qtbot, box, Qt.Key.Key_Down, Qt.Key.Key_Return)
    assert picked == ["M4 Pro 24 GB"]
    assert refusals[-1] == ""


def test_that_a_closed_list_opens_again_where_several_match(box, picked, qtbot):
    _click(qtbot, box)
    _type(qtbot, box, "m4 pro")
    _press(qtbot, box, Qt.Key.Key_Escape)
    assert not box.completer().popup().isVisible()
    _press(qtbot, box, Qt.Key.Key_Return)
    qtbot.waitUntil(box.completer().popup().isVisible)
    assert box.lineEdit().text() == "m4 pro"
    assert picked == []


def test_that_down_after_an_unknown_name_chooses_nothing(box, picked, refusals, qtbot):
    _click(qtbot, box)
    _type(qtbot, box, "abacus")
    _press(qtbot, box, Qt.Key.Key_Down)
    assert picked == []
    _press(qtbot, box, Qt.Key.Key_Return)
    assert picked == []
    assert len(refusals) == 1
    assert refusals[0].startswith("No device is called “abacus”: pick one from the list, or type")
    assert box.lineEdit().text() == f"{HERE}, this computer"


@pytest.mark.parametrize("text", ["24 GB", "RTX 4090 + 2 x RTX 3060 12GB", "2 x RTX 3090"])
def test_that_memory_alone_and_lists_are_taken_as_typed(box, picked, refusals, qtbot, text):
    _click(qtbot, box)
    _type(qtbot, box, text)
    _press(qtbot, box, Qt.Key.Key_Return)
    assert picked == [text]
    assert not any(refusals)


@pytest.mark.parametrize("count", ["0", "1025", "1000000000"])
def test_that_a_count_that_cannot_be_is_said_and_not_taken(box, picked, refusals, qtbot, count):
    _click(qtbot, box)
    _type(qtbot, box, f"{count} x RTX 4090")
    _press(qtbot, box, Qt.Key.Key_Return)
    assert not picked
    said = f"A machine of {int(count):,} devices cannot be planned: give 1 to 1,024."
    assert refusals[-1] == said


def test_that_a_new_sample_leaves_what_is_being_typed_alone(box, picked, qtbot):
    _click(qtbot, box)
    _type(qtbot, box, "40")
    box.show_choice(None, f"{HERE}, this computer")
    box.show_choice(None, f"{HERE} or so, this computer")
    _type(qtbot, box, "90")
    assert box.lineEdit().text() == "4090"
    _press(qtbot, box, Qt.Key.Key_Return)
    assert picked == ["RTX 4090"]


def test_that_this_computer_is_found_by_typing(box, picked, qtbot):
    box.show_choice("L40S", "L40S, not this computer")
    _click(qtbot, box)
    _type(qtbot, box, "this")
    _press(qtbot, box, Qt.Key.Key_Return)
    assert picked == [None]


def test_that_a_name_ranks_before_a_beginning_and_a_beginning_before_the_rest():
    l40, l40s, gh200 = (spellings(catalogue.find(n)) for n in ("L40", "L40S", "GH200 96GB"))
    ranks = [rank("l40", l40), rank("l40", l40s), rank("h200", gh200)]
    assert ranks == sorted(ranks)
    assert len(set(ranks)) == 3
    assert rank("abacus", l40) is None
    assert rank("  ", l40) is None


@pytest.mark.parametrize("way", [Qt.Key.Key_Tab, Qt.Key.Key_Backtab])
def test_that_tab_takes_the_highlighted_one_and_goes_on(box, picked, qtbot, way):
    _click(qtbot, box)
    _type(qtbot, box, "4090")
    _press(qtbot, box, Qt.Key.Key_Down, Qt.Key.Key_Down, way)
    assert picked == ["RTX 4090 D"]
    assert not box.completer().popup().isVisible()
    assert box.lineEdit().text() == "RTX 4090 D, elsewhere"


def test_that_what_the_list_wrote_into_the_field_counts_after_escape(box, picked, refusals, qtbot):
    _click(qtbot, box)
    _type(qtbot, box, "rtx 3080")
    _press(qtbot, box, Qt.Key.Key_Down, Qt.Key.Key_Escape, Qt.Key.Key_Return)
    assert picked == ["RTX 3080 12GB"]
    assert not any(refusals)
