"""What is drawn stands where the bytes say, and no text touches another or leaves the picture."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from PySide6.QtCore import QRectF

from engine.budget.model import Region
from gui.kit.charts.measured import Live
from gui.kit.charts.notes import NOTES
from gui.kit.theme import SCHEMES, load_theme
from tests.helpers import sizings
from tests.helpers.sizings import gib
from tests.qt.charts.drawing import SIZES, draw, idle, running, strained

if TYPE_CHECKING:
    from collections.abc import Callable

    from PySide6.QtGui import QColor

    from engine.sizing import Sizing

pytestmark = pytest.mark.usefixtures("qapp")


def _hardly_over() -> Sizing:
    """0.15 GiB over: too little to write in."""
    over = sizings.over_the_line()
    rank = sizings.rank_budget(needed=5.47)
    return sizings.sizing(rank, verdict=over.verdict, deployment=over.budget.deployment)


PLANS: dict[str, Callable[[], Sizing]] = {
    "fits": sizings.sizing,
    "over": sizings.over_the_line,
    "hardly over": _hardly_over,
    "unified": sizings.unified,
    "four ranks": lambda: sizings.many_ranks(4),
    "eight ranks": lambda: sizings.many_ranks(8),
    "sixteen ranks": lambda: sizings.many_ranks(16),
    "beside host": sizings.beside_host,
    "weights over": sizings.weights_over_the_line,
    "unknown": sizings.unknown_cache,
    "not here": lambda: sizings.sizing(is_here=False),
}


def _clashes(words: list[tuple[QRectF, str]], size: tuple[int, int]) -> list[str]:
    """Texts that leave the picture or touch another (line spacing apart)."""
    whole = QRectF(0, 0, *size)
    found = [f"{text!r} leaves the picture" for rect, text in words if not whole.contains(rect)]
    tight = [(rect.adjusted(0, 2, 0, -2), text) for rect, text in words if text]
    for index, (rect, text) in enumerate(tight):
        found += [f"{text!r} touches {o!r}" for r, o in tight[:index] if rect.intersects(r)]
    return found


@pytest.mark.parametrize(
    "live", [Live(), idle(), running(), strained()], ids=["plan", "idle", "running", "strained"]
)
@pytest.mark.parametrize("size", SIZES, ids=lambda s: f"{s[0]}x{s[1]}")
@pytest.mark.parametrize("plan", PLANS)
def test_that_no_text_clips_or_touches_another(
    plan: str, size: tuple[int, int], live: Live
) -> None:
    _, _, words = draw(PLANS[plan](), size, live=live)
    assert not _clashes(words, size)


@pytest.mark.parametrize("plan", ["fits", "over", "unified", "four ranks"])
@pytest.mark.parametrize("scale", [1.25, 1.5, 2.0])
def test_that_large_text_stays_apart_too(plan: str, scale: float) -> None:
    for live in (idle(), strained()):
        _, _, words = draw(PLANS[plan](), SIZES[0], live=live, text_scale=scale)
        assert not _clashes(words, SIZES[0])


@pytest.mark.parametrize("scale", [1.0, 2.0])
@pytest.mark.parametrize("size", SIZES, ids=lambda s: f"{s[0]}x{s[1]}")
def test_that_no_bar_of_many_ranks_begins_within_a_name(
    size: tuple[int, int], scale: float
) -> None:
    image, _, words = draw(
        sizings.many_ranks(32, "RTX PRO 6000 Blackwell", "L40S"), size, text_scale=scale
    )
    theme = load_theme("light", scale)
    inks = {theme.color(name).rgb() for name in ("region.weights", "region.kv", "chart.loadline")}
    names = words[::2]
    assert all(text.endswith(str(rank)) for rank, (_, text) in enumerate(names))
    for rect, _ in names:
        y = round(rect.center().y())
        row = {image.pixel(x, y) for x in range(round(rect.left()), round(rect.right()) + 4)}
        assert not row & inks


@pytest.mark.parametrize("scheme", SCHEMES)
def test_that_the_load_line_lies_at_its_bytes_in_its_colour(scheme: str) -> None:
    image, places, _ = draw(sizings.sizing(), scheme=scheme)
    panel = places.panels[0]
    # 23.64 of an axis that ends at 1.025 x 23.98828125 GiB, over the height of the plot.
    share = 23.64 / (1.025 * sizings.RTX_4090_TOTAL / gib(1))
    expected = panel.scale.bottom - share * (panel.scale.bottom - panel.scale.top)
    color = load_theme(scheme).color("chart.loadline")
    x = round(panel.time_left) + 10
    rows = [y for y in range(image.height()) if image.pixelColor(x, y) == color]
    assert len(rows) == 2
    assert (rows[0] + rows[-1] + 1) / 2 == pytest.approx(expected, abs=1)


def test_that_each_segment_is_as_high_as_its_bytes() -> None:
    image, places, _ = draw(sizings.sizing())
    panel = places.panels[0]
    theme = load_theme("light")
    x = round(panel.bar.center().x())
    column = [image.pixelColor(x, y) for y in range(image.height())]
    height = panel.scale.bottom - panel.scale.top
    for name, size in (("region.weights", 14.99), ("region.kv", 4.00), ("region.graphs", 0.70)):
        rows = [y for y, color in enumerate(column) if color == theme.color(name)]
        expected = size / (1.025 * sizings.RTX_4090_TOTAL / gib(1)) * height
        # A hair of ground sets a segment apart from the next.
        assert len(rows) == pytest.approx(expected, abs=2), name


def test_that_what_does_not_fit_is_hatched_in_red_above_the_line_only() -> None:
    image, places, _ = draw(sizings.over_the_line())
    panel = places.panels[0]
    theme = load_theme("light")
    ground = theme.color("over.soft")
    x = round(panel.bands.right()) - 6
    rows = [y for y in range(image.height()) if image.pixelColor(x, y) == ground]
    assert rows
    assert min(rows) >= panel.scale.y(panel.panel.stack_bytes) - 1
    assert max(rows) <= panel.scale.y(panel.panel.load_line_bytes) + 1


@pytest.mark.parametrize("size", SIZES, ids=lambda s: f"{s[0]}x{s[1]}")
def test_that_the_load_line_never_crosses_what_is_said_of_it(size: tuple[int, int]) -> None:
    _, places, words = draw(_hardly_over(), size)
    panel = places.panels[0]
    said = next(rect for rect, text in words if text.endswith("over the load line"))
    assert said.bottom() <= panel.scale.y(panel.panel.load_line_bytes) - 1
    assert said.right() < panel.bands.right() - 10


def test_that_the_measured_line_runs_at_the_measured_bytes() -> None:
    image, places, _ = draw(sizings.sizing(), live=idle(used=8.0))
    panel = places.panels[0]
    ink = load_theme("light").color("chart.measured")
    x = round(panel.time.center().x())
    rows = [y for y in range(image.height()) if _is_near(image.pixelColor(x, y), ink)]
    assert sum(rows) / len(rows) + 0.5 == pytest.approx(panel.scale.y(gib(8.0)), abs=1)


def _is_near(color: QColor, other: QColor) -> bool:
    return abs(color.lightness() - other.lightness()) < 60


def test_that_a_device_elsewhere_has_no_time() -> None:
    _, _, words = draw(sizings.sizing(is_here=False))
    texts = [text for _, text in words]
    assert "now" not in texts
    assert not any("Measured" in text for text in texts)
    assert "32,768 tokens × 128 KiB = 4.00 GiB needed" in texts


def test_that_a_measurement_that_is_not_the_plans_says_so() -> None:
    _, _, words = draw(sizings.sizing(), live=idle())
    assert "Measured now: 0.41 GiB, nothing of this plan is running" in [t for _, t in words]
    _, _, words = draw(sizings.sizing(), live=running())
    assert not any("nothing of this plan" in text for _, text in words)


def test_that_the_lens_names_what_lies_above_the_plan() -> None:
    # 23.24 measured, 22.83 planned without headroom
    _, _, words = draw(sizings.sizing(), live=running())
    texts = [text for _, text in words]
    assert "The last minute, magnified" in texts
    assert "+0.4" in texts


def test_that_sums_give_way_to_a_measurement_that_runs_through_them() -> None:
    _, _, words = draw(sizings.sizing(), live=running())
    assert "32,768 tokens × 128 KiB = 4.00 GiB needed" not in [text for _, text in words]


def test_that_the_lens_shows_the_thin_regions_at_least_four_times_as_large() -> None:
    _, places, _ = draw(sizings.sizing())
    assert places.lens is not None
    scale = places.panels[0].scale
    assert places.lens.scale.pixels_per_byte >= 4 * scale.pixels_per_byte
    panel = places.panels[0].panel
    assert places.lens.scale.high_bytes == panel.total_bytes
    activations = panel.segment(Region.ACTIVATIONS)
    assert activations is not None
    assert places.lens.scale.low_bytes < activations.bottom_bytes


@pytest.mark.parametrize(("width", "shown"), [(1144, True), (900, True), (899, False)])
def test_that_the_lens_is_there_from_900_pixels_on(width: int, *, shown: bool) -> None:
    _, places, _ = draw(sizings.sizing(), (width, 300))
    assert (places.lens is not None) is shown


def test_that_labels_stand_at_the_first_rank_and_the_axis_at_the_last() -> None:
    _, places, _ = draw(sizings.many_ranks(4))
    assert [bool(p.labels) for p in places.panels] == [True, False, False, False]
    assert [p.has_axis for p in places.panels] == [False, False, False, True]
    assert len({p.scale.pixels_per_byte for p in places.panels}) == 1


def test_that_eight_ranks_stand_in_two_rows_and_sixteen_in_a_table() -> None:
    _, places, _ = draw(sizings.many_ranks(8))
    assert len({p.scale.top for p in places.panels}) == 2
    _, places, words = draw(sizings.many_ranks(16))
    assert places.is_table
    assert "Rank 15" in [text for _, text in words]


def test_that_a_gap_in_sampling_is_a_gap_in_the_line() -> None:
    from gui.kit.charts.axis import TimeWindow
    from gui.kit.charts.series import Sample, Series

    samples = [Sample(float(s), gib(8)) for s in range(121) if not 40 <= s <= 80]
    live = Live({"GPU-0": Series.of(samples)}, TimeWindow(0, 120))
    image, places, _ = draw(sizings.sizing(), live=live)
    panel = places.panels[0]
    ink = load_theme("light").color("chart.measured")
    y = round(panel.scale.y(gib(8)))
    near = [image.pixelColor(round(panel.time.center().x()), y + d) for d in (-1, 0, 1)]
    assert not any(_is_near(color, ink) for color in near)


def test_that_a_highlighted_band_hides_neither_range_nor_edge() -> None:
    live = Live(selected=Region.KV_CACHE)
    image, places, _ = draw(sizings.sizing(), live=live)
    panel = places.panels[0]
    plain, _, _ = draw(sizings.sizing())
    x = round(panel.bar.right()) + 7
    for picture in (plain, image):
        rows = [
            y
            for y in range(picture.height())
            if picture.pixelColor(x + 4, y).lightness() - picture.pixelColor(x, y).lightness() > 30
        ]
        # 5.89 - 4.12 = 1.77 GiB from the low end to the high one
        assert len(rows) >= 1.77 * panel.scale.pixels_per_byte * gib(1) - 3


@pytest.mark.parametrize("size", SIZES, ids=lambda s: f"{s[0]}x{s[1]}")
@pytest.mark.parametrize("plan", PLANS)
def test_that_the_notes_of_the_first_start_are_whole_or_absent(
    plan: str, size: tuple[int, int]
) -> None:
    live = replace(idle(), explains=True)
    _, places, words = draw(PLANS[plan](), size, live=live)
    heads = [head for head, _ in NOTES]
    shown = [text for _, text in words if text in heads]
    assert shown in ([], heads)
    assert not _clashes(words, size)
    for rect, text in words:
        if text in heads:
            assert places.panels[0].time.contains(rect)


def test_that_the_notes_stand_in_place_of_the_sums() -> None:
    _, _, words = draw(sizings.sizing(), SIZES[0], live=replace(idle(), explains=True))
    texts = [text for _, text in words]
    assert {head for head, _ in NOTES} <= set(texts)
    assert not any("needed" in text or "Measured now" in text for text in texts)
