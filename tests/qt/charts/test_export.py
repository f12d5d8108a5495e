"""What the picture shows, as files: figures with their units, a picture of pixels or of lines."""

from __future__ import annotations

import csv
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest
from PySide6.QtGui import QImage
from PySide6.QtSvg import QSvgRenderer

from engine.errors import UsageError
from engine.telemetry.markers import Marker, MarkerKind
from engine.telemetry.snapshot import DeviceReading, Missing, PoolKind, TelemetrySnapshot
from gui.kit.charts.export import Figures, write_png, write_svg
from gui.kit.charts.picture import MemoryPicture
from gui.kit.charts.scene import scene_for
from gui.kit.theme import load_theme
from tests.helpers import sizings
from tests.helpers.sizings import gib


@pytest.fixture
def picture(qtbot):
    made = MemoryPicture(load_theme("light"))
    qtbot.addWidget(made)
    made.resize(1144, 329)
    made.set_scene(scene_for(sizings.sizing()))
    for second in range(300):
        used = Missing("late") if second == 290 else gib(3) + second
        reading = DeviceReading(
            "GPU-0", "=HYPERLINK(1)", PoolKind.VRAM, gib(24), used, gib(1), 0, (), "a test's card"
        )
        made.append(TelemetrySnapshot(1000 + second, 1.7e9 + second, (reading,)))
    made.mark(Marker(MarkerKind.NOTE, 1280.5, 0.0, "+begun, at last"))
    return made


def rows(path) -> list[list[str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def test_that_the_figures_are_those_of_the_time_shown_in_bytes(picture, tmp_path):
    Figures(picture).write(tmp_path / "m.csv")
    head, *body = rows(tmp_path / "m.csv")
    assert head == [
        "time (UTC)",
        "seconds",
        "'=HYPERLINK(1) GPU-0: in use (bytes)",
        "'=HYPERLINK(1) GPU-0: held by this plan (bytes)",
        "'=HYPERLINK(1) GPU-0: KV cache in use (bytes)",
        "marker",
    ]
    # Two minutes end at second 299: 121 samples, and the marker between two of them.
    assert len(body) == 122
    assert body[0][:3] == ["2023-11-14T22:16:19.000Z", "1179.000", str(gib(3) + 179)]
    assert body[-1][2] == str(gib(3) + 299)
    (late,) = [row for row in body if row[1] == "1290.000"]
    assert late[2] == ""  # unknown is empty, and never 0
    (marked,) = [row for row in body if row[-1]]
    assert marked[1:] == ["1280.500", "", "", "", "'+begun, at last"]


def test_that_nothing_measured_is_a_sentence(qtbot):
    made = MemoryPicture(load_theme("light"))
    qtbot.addWidget(made)
    with pytest.raises(UsageError, match="Nothing was measured"):
        Figures(made)


def test_that_the_svg_is_of_lines_and_words_and_can_be_drawn_again(picture, tmp_path):
    path = tmp_path / "m.svg"
    write_svg(picture, path)
    root = ET.fromstring(path.read_text(encoding="utf-8"))
    words = "".join(root.itertext())
    assert "Load line" in words
    assert "Fits, with 1.3 GiB to spare" in words
    kinds = {element.tag.rsplit("}")[-1] for element in root.iter()}
    assert {"polyline", "text"} & kinds >= {"text"}
    assert "image" not in kinds
    assert QSvgRenderer(str(path)).isValid()


def test_that_the_png_is_twice_as_sharp(picture, tmp_path):
    path = tmp_path / "m.png"
    write_png(picture, path)
    image = QImage(str(path))
    assert (image.width(), image.height()) == (2288, 658)
    colors = {image.pixel(x, y) for x in range(0, 2288, 16) for y in range(0, 658, 16)}
    assert len(colors) > 8


def test_that_a_place_that_cannot_be_written_leaves_what_was_there(picture, tmp_path):
    for write in (write_svg, write_png, lambda _, path: Figures(picture).write(path)):
        with pytest.raises(OSError, match=r".+"):
            write(picture, tmp_path / "no" / "such.file")


def test_that_the_history_is_exported_with_its_peaks(picture, tmp_path):
    picture.set_window_seconds(86_400)
    (before,) = Figures(picture)._columns
    assert before.shape[1] == 300
    assert replace(Marker(MarkerKind.NOTE, 0, 0), text="x").words() == "x"
