"""The picture in print without colour: what touches differs in hatch or in tone."""

from __future__ import annotations

import re
from itertools import combinations, pairwise

import pytest

from engine.budget.model import STACK_ORDER, Region
from engine.report import inks as page_inks
from gui.kit.charts import inks
from gui.kit.theme import load_theme

_PATH = re.compile(r'<path d="([^"]*)"')
TOLD_APART = 15.0
"""Of 100 steps of lightness (CIE L*), two greys side by side on an office printer."""


def lightness(color: str) -> float:
    """L* of ``#RRGGBB``, after CIE 15 and IEC 61966-2-1."""
    parts = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    return 116 * luminance ** (1 / 3) - 16 if luminance > 216 / 24389 else luminance * 24389 / 27


def test_that_the_scale_of_lightness_is_the_standards() -> None:
    assert lightness("#000000") == pytest.approx(0)
    assert lightness("#FFFFFF") == pytest.approx(100)
    assert lightness("#777777") == pytest.approx(50.0, abs=0.5)  # the middle grey of sRGB


PAPER = load_theme("light", is_paper=True)
ON_PAPER = {region: inks.ink(PAPER, region, patterns=True) for region in STACK_ORDER}


@pytest.mark.parametrize("pair", list(combinations(STACK_ORDER, 2)), ids=str)
def test_that_no_two_regions_that_may_touch_print_alike(pair: tuple[Region, Region]) -> None:
    """Any region may be absent, so any two may touch."""
    one, other = (ON_PAPER[region] for region in pair)
    grounds = abs(lightness(one.ground.name()) - lightness(other.ground.name()))
    assert one.hatch != other.hatch or grounds >= TOLD_APART


@pytest.mark.parametrize("region", STACK_ORDER)
def test_that_a_hatch_is_seen_on_its_ground(region: Region) -> None:
    ink = ON_PAPER[region]
    if ink.hatch != "solid":
        assert abs(lightness(ink.line.name()) - lightness(ink.ground.name())) >= TOLD_APART


def test_that_only_the_weights_are_plain() -> None:
    assert [region for region, ink in ON_PAPER.items() if ink.hatch == "solid"] == [Region.WEIGHTS]


def test_that_what_the_pool_has_to_spare_is_the_inverse_of_what_is_needed() -> None:
    needed = ON_PAPER[Region.KV_CACHE]
    spare = inks.ink(PAPER, Region.KV_CACHE, is_spare=True, patterns=True)
    assert needed.hatch == spare.hatch
    assert lightness(spare.ground.name()) - lightness(needed.ground.name()) >= TOLD_APART


def test_that_a_web_page_hatches_every_region_its_own_way() -> None:
    drawn = page_inks.patterns().split("<pattern ")[1:]
    strokes = [found[1] if (found := _PATH.search(each)) else "" for each in drawn]
    assert len(set(strokes)) == len(strokes) == len(Region)
    assert strokes.count("") == 1  # the weights


def test_that_the_map_of_plans_darkens_away_from_its_limit() -> None:
    for side in ("fit", "over"):
        tones = [lightness(PAPER.color(f"map.{side}{step}").name()) for step in (1, 2, 3)]
        assert all(near - far >= 5 for near, far in pairwise(tones)), side
