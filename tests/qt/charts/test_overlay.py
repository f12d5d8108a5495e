"""Phases and residue in the picture: what is written, where, and when nothing is."""

from __future__ import annotations

from dataclasses import replace

import pytest
from PySide6.QtCore import QRectF
from PySide6.QtGui import QImage, QPainter

from engine.overlay.overlay import Follower, Overlay
from engine.overlay.state import Stated
from gui.kit.charts import painter as paints
from gui.kit.charts import phase_strip
from gui.kit.charts.axis import TimeWindow
from gui.kit.charts.layout import Style, lay_out
from gui.kit.charts.measured import Live
from gui.kit.charts.picture import MemoryPicture
from gui.kit.charts.scene import scene_for
from gui.kit.charts.series import Sample, Series
from gui.kit.theme import load_theme
from tests.helpers import sizings
from tests.helpers.readings import server, serving
from tests.helpers.sizings import RTX_4090_TOTAL, gib

FOREIGN = gib(0.41)
SIZE = (1144, 329)


def level(second: int, top: float) -> float:
    return 0 if second < 20 else 22.38 if second < 120 else top


def state(second: int) -> Stated:
    """Idle, then prompts at 120, 180, 240 and 300 s."""
    if second < 120:
        return Stated(second >= 24, 0, 0.0, None, 0, 0)
    return Stated(True, 3, 0.52, None, 2048 * ((second - 60) // 60), second * 40)


def live(top: float) -> tuple[Live, Overlay]:
    """Five minutes of a run that ends at ``top`` GiB, and what they show."""
    follower = Follower()
    budget = sizings.sizing().budget
    follower.follow(budget)
    samples = []
    for second in range(301):
        own = gib(level(second, top))
        ours = (server(4211, own),) if own else ()
        moment = serving(second, ("GPU-0", RTX_4090_TOTAL, ours), foreign_bytes=FOREIGN)
        follower.add(moment, state(second))
        samples.append(Sample(1000.0 + second, own + FOREIGN, own, None))
    overlay = follower.overlay(budget)
    assert overlay is not None
    window = TimeWindow(1000.0, 1300.0)
    return Live({"GPU-0": Series.of(samples)}, window, overlay=overlay), overlay


def drawn(top: float, size: tuple[int, int] = SIZE):
    """Words with their places, and the first panel."""
    seen, _ = live(top)
    style = Style(load_theme("light"), phases=True)
    scene = scene_for(sizings.sizing())
    places = lay_out(scene, QRectF(0, 0, *size), style)
    image = QImage(*size, QImage.Format.Format_RGB32)
    image.fill(style.theme.color("surface.base"))
    painter = QPainter(image)
    canvas = paints.paint(painter, scene, places, style, seen)
    painter.end()
    return canvas.words, places.panels[0], seen


def test_that_the_strip_names_the_phases_where_they_were(qapp):
    words, panel, seen = drawn(22.83)
    strip = phase_strip.rect(panel)
    names = {text: row for row, text in words if strip.contains(row.center())}
    # Five seconds of load have no room for a name.
    assert set(names) == {"Idle", "Decode", "Sustained"}
    # Idle from 24 s on, of 300 s.
    assert names["Idle"].left() == pytest.approx(
        panel.time.left() + panel.time.width() * 24 / 300 + 5, abs=4
    )
    blocks = phase_strip.blocks(panel, seen)
    assert blocks[0][1] == pytest.approx(panel.time.left() + panel.time.width() * 19 / 300, abs=1)
    assert strip.top() > panel.bands.bottom()
    assert strip.bottom() < SIZE[1] - 20


def test_that_a_tick_stands_where_a_prompt_came(qapp):
    _, overlay = live(22.83)
    assert [t - 1000 for t in overlay.ranks[0].run.prefills_s] == [119, 179, 239, 299]


def test_that_what_is_beyond_the_plan_is_named_in_a_box_that_hides_no_line(qapp):
    words, panel, seen = drawn(23.22)
    box, _ = next(
        (row, text) for row, text in words if text == "0.8 GiB more than planned: runtime"
    )
    assert panel.time.contains(box)
    series = seen.series["GPU-0"]
    assert seen.window is not None
    for x in (box.left(), box.center().x(), box.right()):
        sample = series.nearest(seen.window.time_at(x, panel.time))
        assert sample is not None
        assert sample.used_bytes is not None
        y = panel.scale.y(sample.used_bytes)
        assert not box.top() - 2 < y < box.bottom() + 2
    assert any(
        text == "Probably kernels and workspaces that came with the first prefill."
        for _, text in words
    )
    assert any(text == "runtime +0.8" for _, text in words)


def test_that_within_the_range_nothing_is_bracketed(qapp):
    words, _, _ = drawn(22.83)
    said = [text for _, text in words]
    assert not any("than planned" in text for text in said)
    assert not any(text.startswith("+0.4") or text.endswith("+0.4") for text in said)


def test_that_a_narrow_picture_keeps_the_name_before_the_reason(qapp):
    words, _, _ = drawn(23.22, (640, 240))
    said = [text for _, text in words]
    assert "0.8 GiB more than planned: runtime" in said


def test_that_the_widget_tells_and_draws_the_live_cache(qtbot):
    picture = MemoryPicture(load_theme("light"))
    qtbot.addWidget(picture)
    scene = scene_for(sizings.sizing())
    picture.set_scene(scene)
    _, overlay = live(22.83)
    picture.show_overlay(overlay, "Running as planned.")
    assert picture.accessibleDescription() == f"{scene.description} Running as planned."
    own = (server(4211, gib(22.83)),)
    picture.append(serving(301, ("GPU-0", RTX_4090_TOTAL, own), foreign_bytes=FOREIGN))
    newest = picture.series["GPU-0"].newest
    assert newest is not None
    assert newest.kv_bytes == round(0.52 * gib(5.32))
    picture.show_overlay(None)
    assert picture.accessibleDescription() == scene.description


def test_that_a_rank_which_runs_on_another_device_is_drawn_from_that_one(qapp):
    seen, overlay = live(22.83)
    moved = replace(overlay, ranks=(replace(overlay.ranks[0], uuid="GPU-7"),))
    there = Live({"GPU-7": seen.series["GPU-0"]}, seen.window, overlay=moved)
    panel = scene_for(sizings.sizing()).panels[0]
    assert there.of(panel) is seen.series["GPU-0"]


def test_that_of_several_ranks_the_one_that_is_off_says_so_in_its_title(qapp):
    made = sizings.many_ranks(4)
    follower = Follower()
    follower.follow(made.budget)
    held = (41.56, 41.44, 43.90, 41.44)
    series: dict[str, list[Sample]] = {}
    for second in range(60):
        cards = []
        for rank, size in enumerate(held):
            own = gib(size) if second > 5 else 0
            process = server(100 + rank, own, name=f"VLLM::Worker_TP{rank}")
            cards.append((f"GPU-{rank}", gib(44.99), (process,)))
            kept = series.setdefault(f"GPU-{rank}", [])
            kept.append(Sample(1000.0 + second, own + gib(0.02), own))
        follower.add(serving(second, *cards, foreign_bytes=gib(0.02)))
    overlay = follower.overlay(made.budget)
    seen = Live(
        {uuid: Series.of(kept) for uuid, kept in series.items()},
        TimeWindow(1000.0, 1060.0),
        overlay=overlay,
    )
    style = Style(load_theme("light"), phases=True)
    scene = scene_for(made)
    places = lay_out(scene, QRectF(0, 0, *SIZE), style)
    image = QImage(*SIZE, QImage.Format.Format_RGB32)
    painter = QPainter(image)
    said = [text for _, text in paints.paint(painter, scene, places, style, seen).words]
    painter.end()
    assert [text for text in said if "+2.3" in text] == ["43.9 of 44.5 GiB, +2.3"]
