import pytest
from PySide6.QtCore import QModelIndex, Qt

from engine.deployment.spec import Deployment
from engine.devices import catalogue as devices
from engine.fit.verdict import Fit
from engine.source import catalogue
from engine.units import GIB, UnitSystem
from gui.browser import listing
from gui.browser.badges import badge_for
from gui.browser.columns import Columns
from gui.browser.filters import ALL, FORMATS, Filters, Group, Span, format_class
from gui.browser.listing import Sort, Wanted
from gui.browser.quants import quant_name
from gui.browser.rows import BADGE_ROLE, Badge, Row, RowModel, parameters_short
from gui.browser.sources import catalogue_row


def row(key, **facts):
    return Row(key, key.rsplit("/", 1)[-1], key.split("/", 1)[0], lambda _token: None, **facts)


ROWS = (
    row(
        "a/small", parameters=10**9, weight_format="BF16", context=8192, downloads=5, gated=False,
        stored_bytes=60 * GIB, takes=("Text",), licence="mit", updated="2025-03-21T09:30:00.000Z",
    ),
    row(
        "b/Large", parameters=70 * 10**9, weight_format="FP8", context=131072, downloads=50,
        stored_bytes=2 * GIB, takes=("Text", "Images"), licence="gemma", gated=True,
    ),
    row("c/odd", updated="2024-12-01T00:00:00.000Z"),
)  # fmt: skip
BADGES = {
    "a/small": Badge(Fit.FITS, 3 * GIB, "", "Fits."),
    "b/Large": Badge(Fit.DOES_NOT_FIT, -120 * GIB, "", "Doesn't fit."),
    "c/odd": Badge(Fit.UNKNOWN, None, "Unknown", "Its type is not known."),
}


def columns(rows=ROWS, badges=BADGES):
    made = Columns(rows)
    made.set_badges(badges)
    return made


def shown(*rows):
    return Columns(rows).arranged("", Wanted(ALL))


def arranged(query="", wanted=None, badges=BADGES):
    return columns(badges=badges).arranged(query, wanted or Wanted())


def keys(rows):
    return [r.key for r in rows]


@pytest.fixture
def model(qtmodeltester):
    made = RowModel()
    qtmodeltester.check(made)
    return made


def test_that_the_model_keeps_qts_rules_while_rows_come_grow_and_go(model, qtbot):
    known = Columns(ROWS[:1])
    model.set_rows(known.arranged("", Wanted(ALL)), has_more=True)
    model.set_badges(BADGES, BADGES)
    known.extend(ROWS[2:])
    with qtbot.waitSignal(model.rowsInserted):
        model.set_rows(known.arranged("", Wanted(ALL)))
    with qtbot.waitSignal(model.modelReset):
        model.set_rows(known.arranged("odd", Wanted(ALL)))
    model.set_chosen("c/odd")
    model.set_unit(UnitSystem.DECIMAL)
    model.set_rows(shown())
    assert model.rowCount() == 0


def test_that_badges_repaint_only_the_rows_that_have_one(model):
    model.set_rows(columns().arranged("", Wanted(ALL, Sort.MARGIN)))
    told = []
    model.dataChanged.connect(lambda first, last, _roles: told.append((first.row(), last.row())))
    model.set_badges(BADGES, ["a/small", "c/odd", "elsewhere"])
    assert told == [(0, 0), (2, 2)]
    assert model.index(0).data(BADGE_ROLE) is BADGES["a/small"]


def test_that_a_row_is_spoken_with_its_verdict_in_words(model):
    model.set_rows(columns().arranged("", Wanted(ALL, Sort.MARGIN)))
    model.set_badges(BADGES, BADGES)
    spoken = [model.index(n).data(Qt.ItemDataRole.AccessibleTextRole) for n in range(3)]
    assert spoken == [
        "small, a, 1.0 B, BF16, 8k, fits, +3.0 GiB",
        "Large, b, 70.0 B, FP8, 128k, doesn't fit, \N{MINUS SIGN}120 GiB",
        "odd, c, unknown",
    ]


def test_that_the_tooltip_has_exact_bytes_and_no_steering_characters(model):
    model.set_rows(shown(row("a/x\u202ey", parameters=8_030_261_248)))
    model.set_badges({"a/x\u202ey": BADGES["a/small"]}, ())
    tip = model.index(0).data(Qt.ItemDataRole.ToolTipRole)
    assert "8,030,261,248 parameters" in tip
    assert "3,221,225,472 bytes to spare" in tip
    assert "\u202e" not in tip


def test_that_the_end_of_a_page_asks_for_the_next_once():
    model = RowModel()
    model.set_rows(shown(*ROWS), has_more=True)
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
    assert keys(arranged()) == ["a/small", "c/odd"]
    assert keys(arranged(wanted=Wanted(ALL))) == ["b/Large", "a/small", "c/odd"]


def test_that_the_model_in_the_window_stays_in_the_list():
    assert "b/Large" in keys(arranged(wanted=Wanted(chosen="b/Large")))


def test_that_the_model_in_the_window_alone_is_no_answer():
    wanted = Wanted(Filters(parameters=Span(2, 3)), chosen="b/Large")
    wanted_known = Wanted(
        wanted.filters.with_shown(Group.PARAMETERS, "Unknown", shown=False), chosen="b/Large"
    )
    assert keys(arranged(wanted=wanted_known)) == []


def test_that_a_row_not_yet_worked_out_is_not_hidden():
    assert len(arranged(badges={})) == 3


@pytest.mark.parametrize(
    ("sort", "descending", "order"),
    [
        (Sort.POPULAR, True, "b a c"),
        (Sort.POPULAR, False, "a b c"),
        (Sort.NAME, False, "b c a"),
        (Sort.NAME, True, "a c b"),
        (Sort.PARAMETERS, True, "b a c"),
        (Sort.PARAMETERS, False, "a b c"),
        (Sort.WEIGHTS, True, "a b c"),
        (Sort.WEIGHTS, False, "b a c"),
        (Sort.CONTEXT, True, "b a c"),
        (Sort.UPDATED, True, "a c b"),
        (Sort.UPDATED, False, "c a b"),
        (Sort.MARGIN, True, "a b c"),
        (Sort.MARGIN, False, "b a c"),
    ],
)
def test_that_what_is_unknown_comes_last_whatever_the_order(sort, descending, order):
    found = arranged(wanted=Wanted(ALL, sort, descending))
    assert " ".join(r.key[0] for r in found) == order


def test_that_equal_rows_stay_as_their_source_has_them():
    same = [row(f"{letter}/m", parameters=7) for letter in "cab"]
    for descending in (True, False):
        found = Columns(same).arranged("", Wanted(ALL, Sort.PARAMETERS, descending))
        assert keys(found) == ["c/m", "a/m", "b/m"]


def test_that_all_words_of_the_query_have_to_be_there_in_any_order():
    assert keys(arranged("LARGE b/", Wanted(ALL))) == ["b/Large"]
    assert keys(arranged("large small", Wanted(ALL))) == []


UNKNOWN_IN = (
    (ALL.with_(parameters=Span(1, 4 * 10**9)), Group.PARAMETERS, ["a/small", "c/odd"]),
    (ALL.with_(weights=Span(1, 50 * GIB)), Group.WEIGHTS, ["b/Large", "c/odd"]),
    (ALL.with_only(Group.FORMAT, ["FP8"], FORMATS), Group.FORMAT, ["b/Large", "c/odd"]),
    (ALL.with_(quant="FP8"), Group.QUANT, ["b/Large", "c/odd"]),
    (ALL.with_(context=100_000), Group.CONTEXT, ["b/Large", "c/odd"]),
    (ALL.with_(since=202501010000), Group.UPDATED, ["a/small", "b/Large"]),
    (ALL.with_(takes=frozenset({"Images"})), Group.TAKES, ["b/Large", "c/odd"]),
    (ALL.with_shown(Group.ACCESS, "Gated", shown=False), Group.ACCESS, ["a/small", "c/odd"]),
    (ALL.with_(licence="mit"), Group.LICENCE, ["a/small", "c/odd"]),
)


@pytest.mark.parametrize(
    ("filters", "group", "left"), UNKNOWN_IN, ids=[g for _, g, _ in UNKNOWN_IN]
)
def test_that_a_filter_leaves_the_unknown_in_until_its_own_box_is_off(filters, group, left):
    assert sorted(keys(arranged(wanted=Wanted(filters)))) == left
    known = filters.with_shown(group, "Unknown", shown=False)
    assert sorted(keys(arranged(wanted=Wanted(known)))) == left[:1]
    assert len(arranged(wanted=Wanted(known.without(group)))) == 3


def test_that_an_author_is_one_of_those_in_the_list():
    assert keys(arranged(wanted=Wanted(ALL.with_(author="b")))) == ["b/Large"]
    assert keys(arranged(wanted=Wanted(ALL.with_(author="nobody")))) == []


def test_that_each_choice_is_counted_among_what_the_other_filters_leave():
    everything = arranged(wanted=Wanted(ALL))
    assert everything.counts(Group.FIT) == {
        "Fits": 1, "Tight": 0, "Doesn\N{RIGHT SINGLE QUOTATION MARK}t fit": 1, "Unknown": 1,
    }  # fmt: skip
    assert everything.counts(Group.TAKES) == {"Text": 2, "Images": 1, "Sound": 0, "Unknown": 1}
    assert everything.counts(Group.PARAMETERS) == {"Unknown": 1}
    assert everything.counts(Group.QUANT) == {"Unknown": 1, "BF16": 1, "FP8": 1}
    assert everything.counts(Group.AUTHOR) == {"Unknown": 0, "a": 1, "b": 1, "c": 1}
    # What doesn't fit is hidden, and its own count says how many that are; the gated one is it.
    fitting = arranged()
    assert fitting.counts(Group.FIT) == everything.counts(Group.FIT)
    assert fitting.counts(Group.ACCESS) == {"Open": 1, "Gated": 0, "Unknown": 1}


def test_that_a_list_without_a_fit_names_the_nearest():
    over = {
        "b/Large": BADGES["b/Large"],
        "a/small": Badge(Fit.DOES_NOT_FIT, -GIB // 2, "", ""),
        "c/odd": Badge(Fit.DOES_NOT_FIT, None, "Too large", ""),
    }
    found = listing.nothing_left(arranged(badges=over), over, Filters(), UnitSystem.BINARY)
    assert found == ("None of 3 fits", "Nearest: small, 0.5 GiB over", Group.FIT)


def test_that_the_one_filter_to_loosen_is_named():
    filters = ALL.with_(context=200_000).with_shown(Group.CONTEXT, "Unknown", shown=False)
    found = listing.nothing_left(
        arranged(wanted=Wanted(filters)), BADGES, filters, UnitSystem.BINARY
    )
    assert found == (
        "None of 3 passes the filters",
        "Nearest: Large, 128k context. Kept out by: Context at least",
        Group.CONTEXT,
    )


def test_that_filters_which_only_together_keep_all_out_are_said_to_do_so():
    filters = ALL.with_(author="nobody", parameters=Span(2, 3))
    filters = filters.with_shown(Group.PARAMETERS, "Unknown", shown=False)
    found = listing.nothing_left(
        arranged(wanted=Wanted(filters)), BADGES, filters, UnitSystem.BINARY
    )
    assert found[2] is None


@pytest.mark.parametrize(
    ("label", "kind"),
    [
        ("BF16", "BF16, F16"), ("F32", "BF16, F16"), ("FP8", "FP8"), ("F8_E4M3", "FP8"),
        ("MXFP4", "4-bit"), ("NVFP4", "4-bit"), ("AWQ int4", "4-bit"), ("GPTQ", "4-bit"),
        ("Q4_K_M", "GGUF"), ("IQ2_XXS", "GGUF"), ("GGUF", "GGUF"), ("Q8_0", "GGUF"),
        ("INT8", "8-bit integers"), ("BITNET", "Other"), ("", "Unknown"),
    ],
)  # fmt: skip
def test_that_a_weight_format_is_of_one_class(label, kind):
    assert format_class(label) == kind


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("BF16", "BF16"), ("F16", "F16"), ("FP16", "F16"), ("F32", "F32"), ("FP8", "FP8"),
        ("F8_E4M3", "FP8"), ("FBGEMM_FP8", "FP8"), ("MXFP8", "MXFP8"), ("MXFP4", "MXFP4"),
        ("NVFP4", "NVFP4"), ("AWQ int4", "AWQ"), ("AWQ", "AWQ"), ("GPTQ int4-g32", "GPTQ"),
        ("NF4 plain", "bitsandbytes"), ("BITSANDBYTES", "bitsandbytes"), ("INT8", "INT8"),
        ("MLX 4bit-g32", "MLX 4 bit"), ("MLX mxfp4", "MLX MXFP4"), ("W4A16 g32", "W4A16"),
        ("COMPRESSED-TENSORS", "compressed-tensors"), ("Q4_K_M", "Q4_K_M"), ("Q8_0", "Q8_0"),
        ("IQ2_XXS", "IQ2_XXS"), ("MXFP4_MOE", "MXFP4_MOE"), ("SOMETHING-NEW", "SOMETHING-NEW"),
    ],
)  # fmt: skip
def test_that_a_quantisation_goes_by_its_usual_name(label, name):
    assert quant_name(label) == name


@pytest.mark.parametrize("label", ["", "GGUF", "I8", "I32", "U32", "MIXED"])
def test_that_what_does_not_tell_the_quantisation_is_not_taken_for_one(label):
    # Several mixes lie in one GGUF repository, and 4-bit experts in bytes that are called I8.
    assert quant_name(label) == ""


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
        ("llama3.1:8b-instruct-q4_K_M", True),
        ("ollama run llama3.1:8b", True),
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


def test_that_a_model_whose_start_is_refused_shows_no_margin():
    # vLLM captures no graphs for more sequences than a model with states has blocks for.
    entry = catalogue.find("Qwen/Qwen3.5-9B")
    assert entry is not None
    plan = Deployment(runtime="vllm", max_model_len=8192, concurrency=4)
    found = badge_for(catalogue_row(entry), plan, devices.machine(devices.find("RTX 4090")))
    assert (found.fit, found.margin_bytes, found.word) == (Fit.DOES_NOT_FIT, None, "Won’t start")
    assert "max_num_seqs" in found.reason
