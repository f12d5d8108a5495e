"""A device that tells nothing any more: its last value, grey, with its age; the others go on."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.telemetry.lane import silent as silenced
from engine.telemetry.snapshot import PoolKind
from gui.kit.charts.kept import Kept
from gui.kit.charts.newest import age_words
from gui.kit.charts.picture import MemoryPicture
from gui.kit.charts.scene import scene_for
from gui.kit.charts.series import Sample, Series
from gui.kit.theme import SCHEMES, load_theme
from tests.helpers import sizings
from tests.helpers.readings import GIB, card, host, moment
from tests.helpers.sizings import gib
from tests.qt.charts.drawing import SIZES, draw, running, silent

pytestmark = pytest.mark.usefixtures("qapp")


def said(live, sizing=None, size=SIZES[0]) -> list[str]:
    return [text for _, text in draw(sizing or sizings.sizing(), size, live=live)[2]]


def test_that_the_last_value_is_told_with_its_age() -> None:
    words = said(silent(seconds=40))
    assert "Last known: 23.24 GiB, 40 s ago" in words
    assert "40 s" in words  # the tag, in the place of the figure
    assert "23.2" not in words


def test_that_one_late_answer_changes_nothing() -> None:
    assert "23.2" in said(silent(seconds=1))
    assert not any("ago" in text for text in said(silent(seconds=1)))
    assert "Last known: 23.24 GiB, 2 s ago" in said(silent(seconds=2))


@pytest.mark.parametrize("scheme", SCHEMES)
def test_that_a_grey_dotted_line_runs_on_from_it(scheme) -> None:
    image, places, _ = draw(sizings.unified(), scheme=scheme, live=silent("GPU-0", 100))
    place, grey = places.panels[0], load_theme(scheme).color("text.tertiary")
    y, right = round(place.scale.y(gib(23.24))), round(place.time.right())
    after = [image.pixelColor(x, y) == grey for x in range(right - 60, right - 2)]
    assert 0.2 < sum(after) / len(after) < 0.5  # two of six pixels
    image, *_ = draw(sizings.unified(), scheme=scheme, live=running())
    assert grey not in [image.pixelColor(x, y) for x in range(right - 60, right - 2)]


def test_that_the_other_ranks_go_on() -> None:
    live = running("GPU-1")
    both = replace(live, series={**live.series, **silent("GPU-0", 40).series})
    words = said(both, sizings.many_ranks(4))
    assert words.count("23.2 of 44.5 GiB, 40 s ago") == 1
    assert words.count("23.2 of 44.5 GiB") == 1


def test_that_ages_grow_in_steps_that_can_be_read() -> None:
    assert [age_words(s) for s in (2.4, 9.9, 10, 59, 60, 200)] == [
        "2 s", "9 s", "10 s", "50 s", "1 min", "3 min",
    ]  # fmt: skip


def test_that_the_last_known_sample_is_found_before_any_gap() -> None:
    series = Series.of([Sample(0, 5), Sample(1, 7), Sample(2, None), Sample(3, None)])
    assert [series.known_until(at) for at in (-1, 0.5, 1, 3)] == [
        None, Sample(0, 5), Sample(1, 7), Sample(1, 7),
    ]  # fmt: skip
    assert Series().known_until(0) is None


def test_that_a_value_of_the_long_past_is_found_too() -> None:
    series = Series(capacity=100)
    for second in range(1000):
        series.append(Sample(second, None if second == 500 else second))
    # Older than the full rate: of ten seconds the samples that stand out are left.
    assert series.known_until(505) == Sample(501, 501)


def test_that_a_device_that_is_named_no_more_is_not_shown_as_it_was() -> None:
    kept = Kept()
    kept.append(moment(card(), host()), None)
    kept.append(moment(host(), second=1), None)
    assert kept.series["GPU-0"].newest == Sample(101, None)
    assert kept.series["host"].newest == Sample(101, 19 * GIB)


def test_that_those_who_hear_the_picture_are_told_and_told_when_it_is_back(qtbot) -> None:
    picture = MemoryPicture(load_theme("light"))
    qtbot.addWidget(picture)
    picture.set_scene(scene_for(sizings.sizing()))
    planned = picture.accessibleDescription()
    other = card(uuid="GPU-1", pool=PoolKind.VRAM)
    picture.append(moment(card(), other))
    for second in range(1, 13):
        gone = silenced(card(), "the NVIDIA driver was updated under the running module")
        picture.append(moment(gone, other, second=second))
    assert picture.accessibleDescription() == f"{planned} Rank 0: last known 23.24 GiB, 10 s ago."
    picture.append(moment(card(), other, second=13))
    assert picture.accessibleDescription() == planned
