import pytest
from PySide6.QtCore import QModelIndex, Qt

from engine.fit.verdict import Fit
from engine.units import GIB, UnitSystem
from gui.browser import listing
from gui.browser.listing import Filters, Sort, Wanted
from gui.browser.rows import BADGE_ROLE, Badge, Row, RowModel, parameters_short


def row(key, **facts):
    return Row(key, key.rsplit("/", 1)[-1], key.split("/", 1)[0], lambda _token: None, **facts)


ROWS = (
    row("a/small", parameters=10**9, weight_format="BF16", context=8192, downloads=5),
    row("b/Large", parameters=70 * 10**9, weight_format="FP8", context=131072, downloads=50),
    row("c/odd", weight_format="BF16"),
)
BADGES = {
    "a/small": Badge(Fit.FITS, 3 * GIB, "", "Fits."),
    "b/Large": Badge(Fit.DOES_NOT_FIT, -120 * GIB, "", "Doesn't fit."),
    "c/odd": Badge(Fit.UNKNOWN, None, "Unknown", "Its type is not known."),
}


def keys(rows):
    return [r.key for r in rows]


@pytest.fixture
def model(qtmodeltester):
    made = RowModel()
    qtmodeltester.check(made)
    return made


def test_that_the_model_keeps_qts_rules_while_rows_come_grow_and_go(model, qtbot):
    model.set_rows(ROWS[:1], has_more=True)
    model.set_badges(BADGES, BADGES)
    with qtbot.waitSignal(model.rowsInserted):
        model.set_rows(ROWS)
    with qtbot.waitSignal(model.modelReset):
        model.set_rows(ROWS[1:])
    model.set_chosen("c/odd")
    model.set_unit(UnitSystem.DECIMAL)
    model.set_rows(())
    assert model.rowCount() == 0


def test_that_badges_repaint_only_the_rows_that_have_one(model):
    model.set_rows(ROWS)
    told = []
    model.dataChanged.connect(lambda first, last, _roles: told.append((first.row(), last.row())))
    model.set_badges(BADGES, ["a/small", "c/odd", "elsewhere"])
    assert told == [(0, 0), (2, 2)]
    assert model.index(0).data(BADGE_ROLE) is BADGES["a/small"]


def test_that_a_row_is_spoken_with_its_verdict_in_words(model):
    model.set_rows(ROWS)
    model.set_badges(BADGES, BADGES)
    spoken = [model.index(n).data(Qt.ItemDataRole.AccessibleTextRole) for n in range(3)]
    assert spoken == [
        "small, a, 1.0 B, BF16, 8k, fits, +3.0 GiB",
        "Large, b, 70.0 B, FP8, 128k, doesn't fit, \N{MINUS SIGN}120 GiB",
        "odd, c, BF16, unknown",
    ]


def test_that_the_tooltip_has_exact_bytes_and_no_steering_characters(model):
    model.set_rows((row("a/x\u202ey", parameters=8_030_261_248),))
    model.set_badges({"a/x\u202ey": BADGES["a/small"]}, ())
    tip = model.index(0).data(Qt.ItemDataRole.ToolTipRole)
    assert "8,030,261,248 parameters" in tip
    assert "3,221,225,472 bytes to spare" in tip
    assert "\u202e" not in tip


def test_that_the_end_of_a_page_asks_for_the_next_once():
    model = RowModel()
    model.set_rows(ROWS, has_more=True)
    asked = []
    model.more_wanted.connect(lambda: asked.append(1))
    assert model.canFetchMore(QModelIndex())
    model.fetchMore(QModelIndex())
    assert not model.canFetchMore(QModelIndex())
    assert asked == [1]


def test_that_a_margin_keeps_its_sign_when_it_rounds_to_nothing():
    badge = Badge(Fit.TIGHT, -1, "", "")
    assert badge.text(UnitSystem.BINARY) == "\N{MINUS SIGN}0.0 GiB"
    assert Badge(Fit.FITS, 10**9, "", "").text(UnitSystem.DECIMAL) == "+1.0 GB"


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (8_030_261_248, "8.0 B"),
        (20_914_757_184, "20.9 B"),
        (1_026_470_731_056, "1.03 T"),
        (751_632_384, "752 M"),
        (33_360, "33 k"),
    ],
)
def test_that_parameters_are_written_short(number, text):
    assert parameters_short(number) == text


def test_that_unknown_rows_stay_when_only_fitting_ones_are_wanted():
    assert keys(listing.arranged(ROWS, BADGES, "", Wanted())) == ["a/small", "c/odd"]
    everything = Wanted(Filters(fits_here=False))
    assert keys(listing.arranged(ROWS, BADGES, "", everything)) == ["b/Large", "a/small", "c/odd"]


def test_that_the_model_in_the_window_stays_in_the_list():
    assert "b/Large" in keys(listing.arranged(ROWS, BADGES, "", Wanted(chosen="b/Large")))


def test_that_a_row_not_yet_worked_out_is_not_hidden():
    assert len(listing.arranged(ROWS, {}, "", Wanted())) == 3


@pytest.mark.parametrize(
    ("sort", "descending", "order"),
    [
        (Sort.POPULAR, True, "b a c"),
        (Sort.POPULAR, False, "a b c"),
        (Sort.NAME, False, "b c a"),
        (Sort.NAME, True, "a c b"),
        (Sort.PARAMETERS, True, "b a c"),
        (Sort.PARAMETERS, False, "a b c"),
        (Sort.MARGIN, True, "a b c"),
        (Sort.MARGIN, False, "b a c"),
    ],
)
def test_that_what_is_unknown_comes_last_whatever_the_order(sort, descending, order):
    wanted = Wanted(Filters(fits_here=False), sort, descending)
    found = listing.arranged(ROWS, BADGES, "", wanted)
    assert " ".join(r.key[0] for r in found) == order


def test_that_all_words_of_the_query_have_to_be_there_in_any_order():
    everything = Wanted(Filters(fits_here=False))
    assert keys(listing.arranged(ROWS, BADGES, "LARGE b/", everything)) == ["b/Large"]
    assert listing.arranged(ROWS, BADGES, "large small", everything) == ()


def test_that_size_and_format_leave_the_unknown_in():
    sizes = Filters(fits_here=False, sizes=frozenset({"Up to 4 B"}))
    assert keys(listing.arranged(ROWS, BADGES, "", Wanted(sizes))) == ["a/small", "c/odd"]
    formats = Filters(fits_here=False, formats=frozenset({"FP8"}))
    assert keys(listing.arranged(ROWS, BADGES, "", Wanted(formats))) == ["b/Large"]


def test_that_a_list_without_a_fit_names_the_nearest():
    over = {"b/Large": BADGES["b/Large"], "a/small": Badge(Fit.DOES_NOT_FIT, -GIB // 2, "", "")}
    title, detail = listing.nothing_fits(ROWS, over, Filters(), UnitSystem.BINARY)
    assert title == "None of 3 fits"
    assert detail == "Nearest: small, 0.5 GiB over"


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("llama 8b", False),
        ("meta-llama/Llama-3.1-8B", False),
        ("gpt2", False),
        ("org/name:Q4_K_M", True),
        ("org/name@v1", True),
        ("https://huggingface.co/org/name", True),
        ("https://example.org/x", True),
        ("hf.co/org/name", True),
        ("~/models/config.json", True),
        ("./here", True),
        ('{"model_type": "llama"}', True),
    ],
)
def test_that_words_are_told_from_what_names_one_model(text, answer):
    assert listing.is_reference(text, "https://huggingface.co") is answer


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (999_885_952, "1.0 B"),
        (999_499_999, "999 M"),
        (8_030_261_248, "8.0 B"),
        (999_960_000_000, "1.00 T"),
        (752_393_024, "752 M"),
        (70_000, "70 k"),
    ],
)
def test_that_parameters_never_read_as_a_thousand_of_the_smaller_unit(number, text):
    assert parameters_short(number) == text
