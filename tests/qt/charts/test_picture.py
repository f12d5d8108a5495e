"""The picture as a widget: keyboard, pointer, accessibility, and rest when nothing happens."""

from __future__ import annotations

from dataclasses import replace

import pytest
from PySide6.QtCore import QCoreApplication, QPoint, Qt
from PySide6.QtTest import QTest

from engine.budget.model import Region
from engine.telemetry.snapshot import (
    DeviceReading,
    Missing,
    PoolKind,
    ProcessReading,
    TelemetrySnapshot,
)
from gui.kit.charts.picture import MemoryPicture
from gui.kit.charts.scene import scene_for
from gui.kit.theme import load_theme
from tests.helpers import sizings
from tests.helpers.sizings import gib


class Counted(MemoryPicture):
    """Counts its repaints."""

    repaints = 0

    def paintEvent(self, event) -> None:
        self.repaints += 1
        super().paintEvent(event)


def _snapshot(second: float, used: int | Missing, uuid: str = "GPU-0") -> TelemetrySnapshot:
    reading = DeviceReading(
        uuid, "RTX 4090", PoolKind.VRAM, gib(24), used, gib(1), 0, (), "a test's card"
    )
    return TelemetrySnapshot(1000 + second, 1.7e9 + second, (reading,))


@pytest.fixture
def picture(qtbot):
    made = Counted(load_theme("light"))
    qtbot.addWidget(made)
    made.resize(1144, 329)
    made.set_scene(scene_for(sizings.sizing()))
    with qtbot.waitExposed(made):
        made.show()
    made.grab()
    return made


def test_that_it_says_verdict_and_regions_to_those_who_hear_it(picture: MemoryPicture) -> None:
    assert picture.accessibleName() == "Fits, with 1.3 GiB to spare"
    assert "KV cache 5.32" in picture.accessibleDescription()


def test_that_a_click_on_a_region_selects_it(picture: MemoryPicture, qtbot) -> None:
    with qtbot.waitSignal(picture.region_selected) as caught:
        QTest.mouseClick(picture, Qt.MouseButton.LeftButton, pos=QPoint(218, 220))
    assert caught.args == [Region.WEIGHTS]


def test_that_a_click_on_a_label_or_in_the_lens_selects_too(picture, qtbot) -> None:
    with qtbot.waitSignal(picture.region_selected) as caught:
        QTest.mouseClick(picture, Qt.MouseButton.LeftButton, pos=QPoint(90, 214))
    assert caught.args == [Region.WEIGHTS]
    with qtbot.waitSignal(picture.region_selected) as caught:
        QTest.mouseClick(picture, Qt.MouseButton.LeftButton, pos=QPoint(1000, 205))
    assert caught.args == [Region.CUDA_GRAPHS]


def test_that_arrow_keys_walk_through_the_stack_and_escape_lets_go(picture, qtbot) -> None:
    seen: list[object] = []
    picture.region_selected.connect(seen.append)
    for key in (Qt.Key.Key_Up, Qt.Key.Key_Up, Qt.Key.Key_Down, Qt.Key.Key_Escape):
        QTest.keyClick(picture, key)
    assert seen == [Region.FOREIGN, Region.WEIGHTS, Region.FOREIGN, None]


def test_that_nothing_is_repainted_while_nothing_happens(picture, qtbot) -> None:
    qtbot.waitUntil(lambda: not picture._later.isActive())
    before = picture.repaints
    for _ in range(50):
        QCoreApplication.processEvents()
    assert picture.repaints == before


def test_that_samples_of_another_device_repaint_nothing(picture, qtbot) -> None:
    before = picture.repaints
    for second in range(20):
        picture.append(_snapshot(second, gib(1), uuid="GPU-other"))
        QCoreApplication.processEvents()
    assert picture.repaints == before


def test_that_many_samples_at_once_repaint_once_and_once_more_later(picture, qtbot) -> None:
    before = picture.repaints
    for second in range(100):
        picture.append(_snapshot(second, gib(1)))
        QCoreApplication.processEvents()
    assert picture.repaints - before <= 2
    qtbot.waitUntil(lambda: picture.repaints > before)


def test_that_a_missing_reading_is_kept_as_missing(picture: MemoryPicture) -> None:
    picture.append(_snapshot(0, Missing("the driver didn't answer")))
    newest = picture.series["GPU-0"].newest
    assert newest is not None
    assert newest.used_bytes is None


def test_that_another_plan_keeps_what_was_measured(picture: MemoryPicture) -> None:
    picture.append(_snapshot(0, gib(3)))
    picture.set_scene(scene_for(sizings.over_the_line()))
    assert len(picture.series["GPU-0"]) == 1


def test_that_space_holds_the_picture_while_samples_go_on(picture, qtbot) -> None:
    picture.append(_snapshot(0, gib(3)))
    with qtbot.waitSignal(picture.held) as caught:
        QTest.keyClick(picture, Qt.Key.Key_Space)
    assert caught.args == [True]
    held = picture._window()
    picture.append(_snapshot(60, gib(3)))
    assert picture._window() == held
    assert len(picture.series["GPU-0"]) == 2
    QTest.keyClick(picture, Qt.Key.Key_Space)
    assert picture._window() != held


def test_that_the_lens_closes_and_comes_back(picture: MemoryPicture) -> None:
    assert picture._places.lens is not None
    picture.toggle_lens()
    picture.grab()
    assert picture._places.lens is None
    picture.toggle_lens()
    picture.grab()
    assert picture._places.lens is not None


def _with_processes(*processes: ProcessReading) -> TelemetrySnapshot:
    reading = DeviceReading(
        "GPU-0", "RTX 4090", PoolKind.VRAM, gib(24), gib(3), gib(1), 0, processes, "a test's card"
    )
    return TelemetrySnapshot(1.0, 1.7e9, (reading,))


@pytest.mark.parametrize(
    ("command", "share"),
    [
        ("vllm serve meta-llama/Llama-3.1-8B-Instruct", 2.0),
        ("vllm serve /models/llama-3.1-8b", 2.0),
        ("VLLM::EngineCore", 2.0),
        ("vllm serve Qwen/Qwen3-4B", 0.0),
        ("llama-server -m Llama-3.1-8B-Instruct-Q4_K_M.gguf", 0.0),
        ("/usr/lib/xorg/Xorg", 0.0),
    ],
)
def test_that_the_plans_processes_are_known_by_runtime_and_model(
    picture: MemoryPicture, command: str, share: float
) -> None:
    name = command.split(maxsplit=1)[0]
    picture.append(
        _with_processes(
            ProcessReading(7, name, gib(2), command), ProcessReading(8, "Xorg", gib(0.5))
        )
    )
    newest = picture.series["GPU-0"].newest
    assert newest is not None
    assert newest.plan_bytes == gib(share)


def test_that_a_share_the_driver_keeps_to_itself_is_not_taken_for_nought(picture) -> None:
    hidden = Missing("the driver doesn't say")
    picture.append(_with_processes(ProcessReading(7, "VLLM::EngineCore", hidden)))
    assert picture.series["GPU-0"].newest.plan_bytes is None


def test_that_another_model_forgets_the_share_of_the_one_before(picture) -> None:
    picture.append(_with_processes(ProcessReading(7, "VLLM::EngineCore", gib(2))))
    other = sizings.sizing()
    model = replace(other.budget.model, id="Qwen/Qwen3-4B")
    picture.set_scene(scene_for(replace(other, budget=replace(other.budget, model=model))))
    assert picture.series["GPU-0"].newest.plan_bytes is None
    assert picture.series["GPU-0"].newest.used_bytes == gib(3)


def test_that_a_last_sample_grown_old_says_how_old(picture) -> None:
    picture.append(_snapshot(0, gib(3)))
    picture._silence.timeout.emit()
    assert picture._live.age == "10 s"
    picture.append(_snapshot(1, gib(3)))
    assert picture._live.age == ""


def test_that_a_picture_without_a_plan_is_an_empty_ground(qtbot) -> None:
    made = MemoryPicture(load_theme("dark"))
    qtbot.addWidget(made)
    made.resize(300, 200)
    image = made.grab().toImage()
    assert image.pixelColor(150, 100) == load_theme("dark").color("surface.base")
