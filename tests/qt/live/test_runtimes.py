"""Runtimes in the room: their figures in the rows, all of it in words, and the way to a plan."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QLineEdit, QListWidget, QPushButton, QTableView

from engine.seen.model import Known, ModelSeen, PoolSeen, Reach
from engine.telemetry.address import Address
from engine.telemetry.snapshot import Missing, Quality
from engine.units import UnitSystem
from gui.kit.theme import load_theme
from gui.live import holds_model, told
from gui.live.address_dialog import AddressDialog
from gui.live.view import HoldsView
from tests.helpers.readings import GIB, card, moment
from tests.helpers.seen import ollama, vllm

KEYS = [column.key for column in holds_model.COLUMNS]
BINARY, DECIMAL = UnitSystem.BINARY, UnitSystem.DECIMAL


@pytest.fixture
def view(qtbot):
    made = HoldsView()
    qtbot.addWidget(made)
    made.set_theme(load_theme("light"))
    made.resize(1440, 300)
    made.show()
    made.show_snapshot(moment(card()), "GPU-0")
    return made


def table(view: HoldsView) -> QTableView:
    return view.findChild(QTableView, "holders")


def cell(view: HoldsView, row: int, key: str) -> str:
    return table(view).model().index(row, KEYS.index(key)).data()


def words(view: HoldsView) -> str:
    return "\n".join(found.text() for found in view.findChildren(QLabel) if found.isVisible())


def button(view: HoldsView, name: str) -> QPushButton:
    return view.findChild(QPushButton, name)


def test_that_the_row_of_the_engine_has_its_figures(view):
    assert table(view).isColumnHidden(KEYS.index("pool"))
    view.show_runtimes((vllm(waiting=2),))
    assert cell(view, 0, "runtime") == "vLLM 0.33.0, Llama-3.1-8B-Instruct"
    assert (cell(view, 0, "pool"), cell(view, 0, "requests")) == ("52%", "3 + 2")
    assert cell(view, 0, "stated") == "–"
    assert cell(view, 1, "pool") == ""  # Xorg
    assert not table(view).isColumnHidden(KEYS.index("pool"))


def test_that_each_figure_says_what_it_is_or_why_there_is_none(view):
    view.show_runtimes((vllm(running=Missing("it was not asked")),))
    tips = {
        key: table(view).model().index(0, KEYS.index(key)).data(Qt.ItemDataRole.ToolTipRole)
        for key in ("pool", "requests", "stated")
    }
    assert tips["pool"] == "KV pool: 20,800 of 40,000 tokens."
    assert tips["requests"] == "it was not asked"
    assert tips["stated"].startswith("The engine states no bytes; the driver attributes 22.83 GiB")
    spoken = table(view).model().index(0, KEYS.index("requests"))
    assert spoken.data(Qt.ItemDataRole.AccessibleTextRole) == "it was not asked"


def test_that_ollamas_countdown_is_told():
    model = ModelSeen("m", 4096, expires="2026-11-30T14:38:31.83753+00:00")
    at = datetime(2026, 11, 30, 14, 38, tzinfo=UTC).astimezone()
    text = told.passage(ollama(model=model), BINARY).text
    assert f"It is unloaded at {at:%H:%M} unless it is asked again." in text
    text = told.passage(ollama(model=ModelSeen("m", expires="never")), BINARY).text
    assert "It stays loaded until it is unloaded by hand." in text
    told.passage(ollama(model=ModelSeen("m", expires="tomorrow")), BINARY)


def test_that_rows_still_add_up_to_the_card(view):
    view.show_runtimes((vllm(), ollama(held=(), pids=())))
    rows = table(view).model().rowCount()
    assert cell(view, rows - 1, "size") == "23.99"
    sizes = [cell(view, row, "size") for row in range(rows - 1)]
    assert round(sum(float(size) for size in sizes if size != "–"), 2) == 23.99


def test_that_a_runtime_without_processes_here_has_a_row_without_bytes(view):
    elsewhere = ollama(held=(), pids=(), address=Address("10.0.0.5", 11434))
    view.show_runtimes((elsewhere,))
    at = next(
        r for r in range(table(view).model().rowCount()) if cell(view, r, "process") == "Ollama"
    )
    assert (cell(view, at, "size"), cell(view, at, "stated")) == ("–", "11.18")


def test_that_the_only_runtime_is_told_without_a_click(view):
    view.show_runtimes((vllm(),))
    text = words(view)
    assert "Context of 8,192 tokens." in text
    assert "KV pool: 20,800 of 40,000 tokens." in text
    assert "3 requests run, 0 wait." in text
    assert "The engine states no bytes; the driver attributes 22.83 GiB to it (exact)." in text


def test_that_two_clicks_lead_from_a_process_to_its_plan(view, qtbot):
    view.show_runtimes((vllm(), ollama(held=(), pids=())))
    assert not button(view, "match").isVisible()
    table(view).selectRow(0)
    assert button(view, "match").text() == "Match with a plan"
    with qtbot.waitSignal(view.match_wanted) as wanted:
        button(view, "match").click()
    assert wanted.args[0].runtime == "vllm"


def test_that_a_process_of_nobody_offers_no_plan(view):
    view.show_runtimes((vllm(),))
    table(view).selectRow(1)
    assert not button(view, "match").isVisible()


def test_that_one_that_wants_a_key_asks_for_it(view):
    view.show_runtimes((vllm(reach=Reach.WANTS_KEY, why="http://127.0.0.1:8000 wants a key."),))
    assert button(view, "match").text() == "Enter its key…"
    assert "Not asked further: http://127.0.0.1:8000 wants a key." in words(view)


def test_that_no_room_hides_what_is_stated_and_the_pane_still_tells_it(view, qtbot):
    view.show_runtimes((vllm(),))
    view.resize(900, 300)
    assert table(view).isColumnHidden(KEYS.index("stated"))
    assert not table(view).horizontalScrollBar().isVisible()
    assert "KV pool: 20,800 of 40,000 tokens." in words(view)


def test_that_12_gb_stated_and_88_gib_held_stand_side_by_side_with_the_reason():
    text = told.passage(ollama(), BINARY).text
    assert "The engine states 11.18 GiB; the driver attributes 88.00 GiB to it (exact)." in text
    assert "The engine’s figure is incomplete" in text
    assert "12.00 GB" in told.passage(ollama(), DECIMAL).text


def test_that_a_pool_says_where_its_bytes_come_from():
    pool = PoolSeen(tokens=1000, size_bytes=2 * GIB, size_known=Known.MODELLED)
    assert (
        "2.00 GiB by what the model keeps for a token" in told.passage(vllm(pool=pool), BINARY).text
    )
    pool = PoolSeen(tokens=1000, size_bytes=2 * GIB, evictable_tokens=300, used_tokens=400)
    text = told.passage(vllm(pool=pool), BINARY).text
    assert (
        "KV pool: 400 of 1,000 tokens, 300 of them given up on demand, 2.00 GiB as stated." in text
    )


def test_that_what_is_not_known_is_said_with_its_reason():
    seen = vllm(
        model=ModelSeen("m", Missing("this release doesn’t state the context")),
        pool=PoolSeen(tokens=Missing("no blocks")), running=Missing("x"), held=(),
    )  # fmt: skip
    text = told.passage(seen, BINARY).text
    assert "Context not known: this release doesn’t state the context." in text
    assert "Size of the KV pool not known: no blocks." in text
    assert "what its processes hold is not known" in text
    assert told.requests(seen) == "–"


@pytest.mark.parametrize("quality", list(Quality))
def test_that_every_mark_has_words(quality):
    assert told.MARKS[quality]


def test_that_slots_are_told_where_there_are_several():
    text = told.passage(vllm(model=ModelSeen("m", 4096, 4)), BINARY).text
    assert "Context of 4,096 tokens in each of 4 slots." in text


# --- addresses


@pytest.fixture
def dialog(qtbot, view):
    made = AddressDialog((Address("localhost", 9000),), view)
    qtbot.addWidget(made)
    made.show()
    return made


def test_that_an_address_says_whether_it_leaves_this_computer(dialog):
    field = dialog.findChild(QLineEdit, "address")
    add = next(b for b in dialog.findChildren(QPushButton) if b.text() == "Add")
    told_label = dialog.findChild(QLabel, "address told")
    assert not add.isEnabled()
    field.setText("8080")
    assert told_label.text() == "http://localhost:8080 is on this computer."
    field.setText("http://10.0.0.5:8000")
    assert "sends requests over the network" in told_label.text()
    assert "https:// hides it" in told_label.text()
    assert add.isEnabled()
    field.setText("ftp://x")
    assert "This is no address" in told_label.text()
    assert not add.isEnabled()


def test_that_addresses_are_added_with_a_key_and_removed(dialog, qtbot):
    field, key = (dialog.findChild(QLineEdit, name) for name in ("address", "key"))
    field.setText("localhost:8080")
    key.setText("secret")
    with qtbot.waitSignal(dialog.added) as added:
        dialog.add.click()
    assert added.args == [Address("localhost", 8080), "secret"]
    assert (field.text(), key.text()) == ("", "")
    known = dialog.findChild(QListWidget, "known addresses")
    assert [known.item(i).text() for i in range(known.count())] == [
        "http://localhost:9000", "http://localhost:8080",
    ]  # fmt: skip
    assert not dialog.remove.isEnabled()
    known.setCurrentRow(0)
    with qtbot.waitSignal(dialog.removed) as removed:
        dialog.remove.click()
    assert removed.args == [Address("localhost", 9000)]
    assert known.count() == 1


def test_that_a_key_is_not_shown(dialog):
    assert dialog.findChild(QLineEdit, "key").echoMode() is QLineEdit.EchoMode.Password
