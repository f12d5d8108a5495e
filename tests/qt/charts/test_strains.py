"""Memory that ran short, in the picture: bands with a pattern, words with a time, and evidence."""

from __future__ import annotations

from dataclasses import replace

import pytest
from PySide6.QtCore import QPointF, QRectF

from engine.budget.model import Region
from engine.telemetry.snapshot import Pressure
from gui.kit.charts import tips
from gui.kit.charts.axis import TimeWindow
from gui.kit.charts.layout import Style, lay_out
from gui.kit.charts.picture import MemoryPicture
from gui.kit.charts.scene import scene_for
from gui.kit.theme import SCHEMES, load_theme
from tests.helpers import sizings
from tests.helpers.readings import GIB, card, host, moment
from tests.helpers.sizings import gib
from tests.qt.charts.drawing import SIZES, draw, running, strained

pytestmark = pytest.mark.usefixtures("qapp")
SPILLS = "2.1 GiB runs from system RAM since 14:02"
SCARCE = "System RAM is scarce, 0.9 GiB left since 14:03"


def said(live, sizing=None, size=SIZES[0], scale=1.0) -> list[str]:
    _, _, words = draw(sizing or sizings.sizing(), size, live=live, text_scale=scale)
    return [text for _, text in words]


@pytest.mark.parametrize("size", SIZES, ids=lambda s: f"{s[0]}x{s[1]}")
@pytest.mark.parametrize("scale", [1.0, 1.5])
def test_that_the_picture_says_how_much_and_since_when(size, scale) -> None:
    words = said(strained(), size=size, scale=scale)
    assert {SPILLS, SCARCE} <= set(words)
    assert not {SPILLS, SCARCE} & set(said(running(), size=size, scale=scale))


def test_that_narrow_charts_say_it_shortly() -> None:
    words = said(strained(), sizings.many_ranks(4), SIZES[1])
    assert "2.1 GiB in RAM" in words


@pytest.mark.parametrize("scheme", SCHEMES)
def test_that_the_bands_are_told_apart_without_colour(scheme) -> None:
    image, places, _ = draw(sizings.sizing(), scheme=scheme, live=strained())
    time, theme = places.panels[0].time, load_theme(scheme)
    bottom = round(places.panels[0].scale.bottom)
    rows = {}
    for name, y in (("over", bottom - 4), ("tight", bottom - 11)):
        # Both run through the last fifth; within a band of five minutes' hatch both inks are seen.
        xs = range(round(time.right() - time.width() / 6), round(time.right()) - 4)
        seen = [image.pixelColor(x, y) for x in xs]
        ground = theme.color(f"{name}.soft")
        assert ground in seen
        assert any(color != ground for color in seen)
        rows[name] = [color == ground for color in seen]
    # One rises, the other stands: a line of pixels lower the first is elsewhere.
    lower = [image.pixelColor(x, bottom - 12) == theme.color("tight.soft") for x in xs]
    assert lower == rows["tight"]
    lower = [image.pixelColor(x, bottom - 5) == theme.color("over.soft") for x in xs]
    assert lower != rows["over"]


def test_that_a_time_that_is_over_says_from_when_to_when_and_the_most() -> None:
    spill, want = strained().strains
    over = (
        replace(spill, until_s=240.0, is_over=True),
        replace(want, until_s=299.0, is_over=True, size_bytes=None, worst_bytes=None),
    )
    words = said(replace(strained(), strains=over))
    assert "Up to 2.4 GiB ran from system RAM, 14:02 to 14:03" in words
    assert "Memory pressure, 14:03 to 14:03" in words


def test_that_of_an_earlier_time_nothing_is_said_that_came_later() -> None:
    early = replace(strained(), window=TimeWindow(0, 170))
    assert not any("RAM" in text for text in said(early))
    # A recording that is looked at in the middle of an episode knows the most, not the now.
    middle = said(replace(strained(), window=TimeWindow(0, 200)))
    assert "Up to 2.4 GiB ran from system RAM, 14:02 to 14:04" in middle


def test_that_critical_pressure_is_called_so() -> None:
    _, want = strained().strains
    pressed = replace(want, size_bytes=None, pressure=Pressure.CRITICAL)
    assert "Memory pressure, critical since 14:03" in said(replace(strained(), strains=(pressed,)))


def test_that_the_spill_of_another_device_is_not_shown() -> None:
    spill, _ = strained().strains
    other = replace(strained(), strains=(replace(spill, uuid="GPU-9"),))
    assert not any("RAM" in text for text in said(other))


def test_that_a_band_tells_its_evidence_and_the_rest_of_the_picture_its_own() -> None:
    scene, live = scene_for(sizings.sizing()), strained()
    style = Style(load_theme("light"))
    places = lay_out(scene, QRectF(0, 0, *SIZES[0]), style)
    panel = places.panels[0]
    foot = QPointF(panel.time.right() - 20, panel.scale.bottom - 4)
    lines = tips.at(scene, places, live, foot).splitlines()
    assert lines[0] == f"{SPILLS}."
    assert f"{gib(2.4):,}" in lines[1]
    assert lines[2:4] == ["llama-server: 2.00 GiB there", "Read from NVML, Windows counters."]
    above = tips.at(scene, places, live, foot - QPointF(0, 7))
    assert above.startswith(f"{SCARCE}.")
    weights = panel.panel.segment(Region.WEIGHTS)
    assert weights is not None
    assert tips.at(scene, places, live, foot - QPointF(0, 60)) == weights.tooltip


def test_that_those_who_hear_the_picture_are_told_while_it_lasts(qtbot) -> None:
    picture = MemoryPicture(load_theme("light"))
    qtbot.addWidget(picture)
    picture.set_scene(scene_for(sizings.sizing()))
    planned = picture.accessibleDescription()
    short = host(available_bytes=GIB)
    for second in range(3):
        picture.append(moment(card(spill_bytes=2 * GIB), short, second=second))
    heard = picture.accessibleDescription()
    assert heard.startswith(planned)
    assert "NVIDIA GeForce RTX 4090: 2.0 GiB runs from system RAM since " in heard
    assert "System RAM is scarce, 1.0 GiB left since " in heard
    picture.append(moment(card(spill_bytes=0), host(), second=3))
    assert picture.accessibleDescription() == planned
