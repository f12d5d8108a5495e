import json
from itertools import pairwise

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QMenu, QToolButton

from engine.architecture.read import read
from engine.cancel import CancelToken
from engine.deployment.spec import Deployment
from engine.devices import catalogue as devices
from engine.fit.verdict import Fit
from engine.sizing import size
from engine.source import catalogue
from engine.units import UnitSystem
from gui.browser.filters import ALL
from gui.browser.rows import BADGE_ROLE, CHOSEN_ROLE, ROW_ROLE, Source
from gui.kit.theme import load_theme, style_sheet
from tests.helpers.browser import settle, shown, words
from tests.helpers.fake_hub import Repo

LLAMA = "meta-llama/Llama-3.1-8B-Instruct"
PLAN = Deployment(runtime="vllm", max_model_len=8192, concurrency=4)
CONFIG = {
    "model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 64,
    "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "vocab_size": 1000, "max_position_embeddings": 16384,
    "torch_dtype": "bfloat16", "head_dim": 16,
}  # fmt: skip


def to_hub(qtbot, view, query=""):
    view.model.set_source(Source.HUB)
    qtbot.keyClicks(view.search, query)
    settle(qtbot, view)


def test_that_the_catalogue_is_there_at_once_and_nothing_is_sent(open_browser, hub):
    view = open_browser()
    assert len(shown(view)) == len(catalogue.entries())
    assert hub.requests == []


def test_that_each_row_carries_the_engines_own_verdict(open_browser, qtbot, card):
    view = open_browser()
    view.set_plan(PLAN, card)
    settle(qtbot, view)
    place = shown(view).index(LLAMA)
    badge = view.list.model().index(place).data(BADGE_ROLE)
    verdict = size(read(catalogue.raw(catalogue.find(LLAMA))), PLAN, card).verdict
    assert (badge.fit, badge.margin_bytes) == (verdict.fit, verdict.margin_bytes)


def test_that_only_rows_that_dont_fit_are_hidden_and_the_line_counts_the_others(
    open_browser, qtbot, card
):
    view = open_browser()
    view.set_plan(PLAN, card)
    settle(qtbot, view)
    badges = view.model.badges
    good = sum(1 for b in badges.values() if b.fit in {Fit.FITS, Fit.TIGHT})
    bad = {key for key, b in badges.items() if b.fit is Fit.DOES_NOT_FIT}
    assert bad
    assert set(shown(view)) == {e.id for e in catalogue.entries()} - bad
    summary = view.model.state.summary
    assert summary == f"{good} of {len(badges)} fit 8,192 \N{MULTIPLICATION SIGN} 4 on RTX 4090"


def test_that_the_newest_plan_wins(open_browser, qtbot, card):
    view = open_browser()
    view.set_plan(PLAN, card)
    view.set_plan(PLAN.with_(concurrency=1), card)
    settle(qtbot, view)
    wanted = size(
        read(catalogue.raw(catalogue.find(LLAMA))), PLAN.with_(concurrency=1), card
    ).verdict
    assert view.model.badges[LLAMA].margin_bytes == wanted.margin_bytes


def test_that_a_context_beyond_the_model_is_said_and_not_counted_as_a_no(open_browser, qtbot, card):
    view = open_browser()
    view.set_plan(PLAN.with_(max_model_len=2**30), card)
    settle(qtbot, view)
    badge = view.model.badges[LLAMA]
    assert (badge.fit, badge.word) == (Fit.UNKNOWN, "Context 128k")


def test_that_typing_narrows_the_list(open_browser, qtbot):
    view = open_browser()
    qtbot.keyClicks(view.search, "llama-3.1 8b instruct")
    settle(qtbot, view)
    assert LLAMA in shown(view)
    assert all("8b" in key.casefold() for key in shown(view))


def test_that_a_row_is_opened_by_click_and_by_enter(open_browser, qtbot):
    view = open_browser()
    qtbot.keyClicks(view.search, LLAMA)
    settle(qtbot, view)
    picked = []
    view.chosen.connect(picked.append)
    place = view.list.visualRect(view.list.model().index(0)).center()
    qtbot.mouseClick(view.list.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(place))
    qtbot.keyClick(view.search, Qt.Key.Key_Down)
    qtbot.keyClick(view.list, Qt.Key.Key_Return)
    qtbot.keyClick(view.search, Qt.Key.Key_Return)
    assert [choice.label for choice in picked] == [LLAMA] * 3
    raw = view.fetcher(picked[0])(CancelToken())
    assert raw is catalogue.raw(catalogue.find(LLAMA))


def test_that_walking_through_the_list_opens_nothing(open_browser, qtbot):
    view = open_browser()
    picked = []
    view.chosen.connect(picked.append)
    qtbot.keyClick(view.search, Qt.Key.Key_Down)
    for _ in range(3):
        qtbot.keyClick(view.list, Qt.Key.Key_Down)
    assert view.list.currentIndex().row() == 3
    assert picked == []


def test_that_the_keyboards_place_stays_with_its_model_when_the_order_changes(open_browser, qtbot):
    view = open_browser()
    view.list.setCurrentIndex(view.list.model().index(5))
    key = view.list.currentIndex().data(ROW_ROLE).key
    view.model.set_sort(view.model.state.wanted.sort)
    assert view.list.currentIndex().data(ROW_ROLE).key == key
    assert view.list.currentIndex().row() > 5


def test_that_the_search_field_opens_what_names_one_model(open_browser, qtbot, tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(CONFIG))
    view = open_browser()
    picked = []
    view.chosen.connect(picked.append)
    for text in (str(path), json.dumps(CONFIG)):
        view.search.setText(text)
        qtbot.keyClick(view.search, Qt.Key.Key_Return)
    assert [view.fetcher(c)(CancelToken()).config for c in picked] == [CONFIG, CONFIG]
    view.open(path)
    assert view.fetcher(picked[-1])(CancelToken()).config == CONFIG


def test_that_an_unknown_name_shows_the_nearest_and_offers_the_hub(open_browser, qtbot, hub):
    view = open_browser()
    qtbot.keyClicks(view.search, "Llama-3.1-8B-Instrukt")
    settle(qtbot, view)
    assert words(view).startswith("No model of this name | Nearest: Llama-3.1-8B-Instruct")
    assert view.message.isVisible()
    view.message.button.click()
    settle(qtbot, view)
    assert view.model.state.source is Source.ALL
    assert len([p for p in hub.paths() if p.startswith("GET /api/models?")]) == 1


def test_that_the_hub_is_asked_for_what_is_typed_once_the_typing_pauses(open_browser, qtbot, hub):
    view = open_browser()
    view.model.set_source(Source.HUB)
    settle(qtbot, view)
    assert hub.requests == []
    assert "Nothing is sent" in words(view)
    first = next(iter(hub.repos))
    qtbot.keyClicks(view.search, first)
    settle(qtbot, view)
    assert first in shown(view)
    assert len(hub.requests) == 1


def test_that_the_end_of_the_list_brings_the_next_page(open_browser, qtbot, hub):
    view = open_browser()
    view.model.set_filters(ALL)
    view.model.set_source(Source.HUB)
    view.model.search_hub()
    settle(qtbot, view)
    assert len(shown(view)) >= 50
    assert "more below" in view.model.state.summary
    for _ in range(3):
        view.list.scrollToBottom()
        settle(qtbot, view)
    qtbot.waitUntil(lambda: len(shown(view)) == 120, timeout=10_000)
    assert view.model.state.summary == "120 loaded"
    assert len(set(shown(view))) == 120


def test_that_an_old_answer_never_replaces_a_newer_one(open_browser, qtbot, hub):
    view = open_browser()
    view.model.set_source(Source.HUB)
    hub.trouble = "stall"
    view.model.set_query("qwen")
    view.model.submit()
    qtbot.waitUntil(lambda: bool(hub.requests), timeout=5000)
    hub.trouble = ""
    view.model.set_query("bge")
    view.model.submit()
    settle(qtbot, view)
    hub.release.set()
    settle(qtbot, view)
    assert all("bge" in key.casefold() for key in shown(view))


@pytest.mark.parametrize(
    ("trouble", "said"),
    [
        ("limited", "try again in 55 s"),
        ("503", "trouble of its own"),
        ("stall", "did not answer in time"),
        ("drop", "broke off"),
        ("html", "makes no sense"),
    ],
)
def test_that_trouble_with_the_hub_is_said_and_can_be_tried_again(
    open_browser, qtbot, hub, trouble, said
):
    view = open_browser(timeout_s=0.5)
    hub.trouble = trouble
    to_hub(qtbot, view, "-")
    assert said in words(view)
    hub.trouble = ""
    view.message.button.click()
    settle(qtbot, view)
    assert shown(view)


def test_that_off_line_says_how_many_models_there_are_all_the_same(open_browser, qtbot, hub):
    view = open_browser(offline=True)
    to_hub(qtbot, view, "llama")
    assert words(view).startswith(f"Off-line, catalogue of {len(catalogue.entries())}")
    assert hub.requests == []


def test_that_a_row_of_the_hub_without_known_files_offers_to_size_it(
    open_browser, qtbot, hub, card
):
    hub.add(Repo("nobody/new-model", facts={"downloads": 10**9}))
    stored = {"parameters": {"BF16": 70 * 10**9}}
    hub.add(Repo("nobody/huge-model", facts={"downloads": 10**9, "safetensors": stored}))
    hub.add(Repo(LLAMA, facts={"downloads": 10**8}, gated="manual"))
    view = open_browser()
    view.set_plan(PLAN, card)
    to_hub(qtbot, view, "-")
    badges = view.model.badges
    assert (badges["nobody/new-model"].fit, badges["nobody/new-model"].word) == (None, "Size it")
    assert badges[LLAMA].margin_bytes is not None
    # 140 GB of stored weights can't be on a card of 24 GB; how far over isn't known.
    huge = badges["nobody/huge-model"]
    assert (huge.fit, huge.margin_bytes, huge.word) == (Fit.DOES_NOT_FIT, None, "Too large")


def test_that_a_gated_model_is_sized_by_the_catalogue(open_browser, qtbot, hub):
    hub.add(Repo(LLAMA, {"config.json": b"{}"}, facts={"downloads": 10**8}, gated="manual"))
    view = open_browser()
    picked = []
    view.chosen.connect(picked.append)
    to_hub(qtbot, view, LLAMA)
    view.model.choose(LLAMA)
    raw = view.fetcher(picked[0])(CancelToken())
    assert raw.source == "bundled catalogue"
    assert "gated" in raw.notes[-1]


def test_that_files_of_one_name_are_a_model_each_wherever_they_lie(open_browser, qtbot, home):
    folders = [home / "models" / name for name in ("first", "second", "third")]
    for folder in folders:
        folder.mkdir(parents=True)
        (folder / "ggml-model-q4_0.gguf").write_bytes(b"GGUF")
    view = open_browser()
    shelf = view.model.state.shelf.with_folder(str(home / "models"), kept=True)
    view.model.set_shelf(shelf)
    view.model.set_source(Source.LOCAL)
    settle(qtbot, view)
    listed = {row.path for row in view.model.state.rows}
    assert listed == {str(folder / "ggml-model-q4_0.gguf") for folder in folders}


def test_that_models_of_this_computer_are_listed_with_their_fit(open_browser, qtbot, home, card):
    folder = home / "hub" / "models--org--tiny" / "snapshots" / "abc"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(CONFIG))
    broken = home / ".cache" / "llama.cpp"
    broken.mkdir(parents=True)
    (broken / "broken.gguf").write_bytes(b"GGUF" + b"\xff" * 100)
    view = open_browser()
    view.set_plan(PLAN, card)
    view.model.set_source(Source.LOCAL)
    settle(qtbot, view)
    badges = view.model.badges
    assert badges["org/tiny"].fit in {Fit.FITS, Fit.TIGHT}
    assert badges["broken"].fit is Fit.UNKNOWN
    assert "broken.gguf" in badges["broken"].reason
    assert set(shown(view)) == {"org/tiny", "broken"}
    assert view.model.state.counts[Source.LOCAL] == 2
    texts = [b.text() for b in view.sources.findChildren(QToolButton)]
    assert "This computer 2" in texts


def test_that_a_computer_without_models_says_where_it_looked(open_browser, qtbot):
    view = open_browser()
    view.model.set_source(Source.LOCAL)
    settle(qtbot, view)
    assert words(view).startswith("No models found on this computer | Looked in")


def test_that_a_unit_changes_every_margin(open_browser, qtbot, card):
    view = open_browser()
    view.set_plan(PLAN, card)
    settle(qtbot, view)
    view.set_unit(UnitSystem.DECIMAL)
    index = view.list.model().index(shown(view).index(LLAMA))
    assert index.data(Qt.ItemDataRole.AccessibleTextRole).endswith(" GB")


def test_that_the_room_fits_its_narrowest_width_and_paints_in_every_scheme(
    open_browser, qtbot, card, qapp
):
    view = open_browser()
    view.set_plan(PLAN, card)
    settle(qtbot, view)
    before = qapp.font()
    try:
        qapp.setStyleSheet(style_sheet(load_theme("light")))
        qapp.setFont(load_theme("light").font("body"))
        assert view.minimumSizeHint().width() <= 296
    finally:
        qapp.setStyleSheet("")
        qapp.setFont(before)
    pictures = []
    for scheme in ("light", "dark", "contrast-light", "contrast-dark"):
        view.set_theme(load_theme(scheme))
        pictures.append(view.list.grab().toImage())
    assert all(a != b for a, b in pairwise(pictures))


@pytest.mark.parametrize("loaded", [LLAMA, f"{LLAMA}:model-Q4_K_M.gguf"])
def test_that_the_model_in_the_window_is_marked_whatever_opened_it(open_browser, loaded):
    view = open_browser()
    view.set_chosen(loaded)
    model = view.list.model()
    marked = [n for n in range(model.rowCount()) if model.index(n).data(CHOSEN_ROLE)]
    assert [shown(view)[n] for n in marked] == [LLAMA]


def test_that_a_row_of_the_hub_gets_its_badge_once_its_files_were_read(
    open_browser, qtbot, hub, card
):
    hub.add(
        Repo(
            "nobody/new-model",
            {"config.json": json.dumps(CONFIG).encode()},
            facts={"downloads": 10**9},
        )
    )
    view = open_browser()
    view.set_plan(PLAN, card)
    to_hub(qtbot, view, "new-model")
    picked = []
    view.chosen.connect(picked.append)
    view.model.choose("nobody/new-model")
    model = read(view.fetcher(picked[0])(CancelToken()))
    view.set_chosen(model.id)
    settle(qtbot, view)
    verdict = size(model, PLAN, card).verdict
    assert view.model.badges["nobody/new-model"].margin_bytes == verdict.margin_bytes


def test_that_a_chip_shows_what_doesnt_fit_and_hides_it_again(open_browser, qtbot, card):
    view = open_browser()
    view.set_plan(PLAN, card)
    settle(qtbot, view)
    few = len(shown(view))
    chip = view.findChild(QToolButton, "fits here")
    qtbot.mouseClick(chip, Qt.MouseButton.LeftButton)
    assert len(shown(view)) == len(catalogue.entries())
    qtbot.mouseClick(chip, Qt.MouseButton.LeftButton)
    assert len(shown(view)) == few


def test_that_check_marks_of_a_menu_narrow_the_list_and_light_their_chip(open_browser):
    view = open_browser()
    for name, words_of in (("formats", "FP8"), ("sizes", "Up to 4 B")):
        menu = view.findChild(QMenu, f"{name} menu")
        action = next(a for a in menu.actions() if a.text() == words_of)
        action.trigger()
        chip = view.findChild(QToolButton, name)
        assert chip.isChecked()
        assert 0 < len(shown(view)) < len(catalogue.entries())
        action.trigger()
        assert not chip.isChecked()
        assert len(shown(view)) == len(catalogue.entries())


def test_that_the_order_is_chosen_from_a_menu_and_turned_by_choosing_it_again(open_browser):
    view = open_browser()
    button = view.findChild(QToolButton, "order")
    actions = {a.text(): a for a in button.findChild(QMenu).actions()}
    actions["Parameters"].trigger()
    assert button.text() == "Parameters \N{DOWNWARDS ARROW}"
    most = max(e.parameters for e in catalogue.entries())
    assert catalogue.find(shown(view)[0]).parameters == most
    actions["Parameters"].trigger()
    assert button.text() == "Parameters \N{UPWARDS ARROW}"
    assert catalogue.find(shown(view)[-1]).parameters == most


def test_that_names_from_the_hub_cannot_reorder_the_text_around_them(open_browser, qtbot, hub):
    hub.add(Repo("evil/x\u202egpj", facts={"downloads": 10**9}))
    view = open_browser()
    to_hub(qtbot, view, "evil")
    assert view.list.model().index(0).data() == "x\\u202egpj"


def test_that_a_typed_path_asks_for_enter_and_not_for_a_search(open_browser):
    view = open_browser(offline=True)
    view.search.setText("/somewhere/model.gguf")
    assert view.model.state.message.title == "Press Enter to open this"


def test_that_the_count_line_names_as_many_devices_as_the_plan_takes(open_browser, qtbot):
    view = open_browser(offline=True)
    view.set_plan(PLAN, devices.machine(devices.find("RTX 4090"), 2))
    settle(qtbot, view)
    assert view.model.state.summary.endswith("on RTX 4090")
    view.set_plan(PLAN.with_(runtime="ollama"), devices.machine(devices.find("RTX 4090"), 2))
    settle(qtbot, view)
    assert view.model.state.summary.endswith("on 2 \N{MULTIPLICATION SIGN} RTX 4090")


def test_that_the_count_of_another_plan_is_not_shown_as_this_ones(open_browser, qtbot, card):
    view = open_browser(offline=True)
    view.set_plan(PLAN, card)
    settle(qtbot, view)
    counted = view.model.state.summary
    view.set_plan(PLAN.with_(max_model_len=4096), card)
    assert view.model.state.summary == counted
    view.set_plan(PLAN.with_(max_model_len=4096, runtime="sglang"), card)
    assert view.model.state.summary == f"{len(catalogue.entries())} models"


def test_that_an_opened_path_is_a_row_and_an_opened_config_says_so(open_browser):
    view = open_browser(offline=True)
    view.search.setText("/somewhere/model.gguf")
    view.model.submit()
    assert view.model.state.message.title == "Press Enter to open this"
    view.model.note_opened()
    assert shown(view) == ["/somewhere/model.gguf"]
    view.search.setText(json.dumps(CONFIG))
    view.model.submit()
    view.model.note_opened()
    assert view.model.state.message.title == "This is open in the window"
    view.search.setText("/somewhere/other.gguf")
    assert view.model.state.message.title == "Press Enter to open this"
