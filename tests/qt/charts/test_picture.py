"""The picture as a widget: keyboard, pointer, accessibility, and rest when nothing happens."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from PySide6.QtCore import QCoreApplication, QEvent, QPoint, QPointF, QRectF, Qt
from PySide6.QtGui import QMouseEvent, QWheelEvent
from PySide6.QtTest import QTest

from engine.budget.model import Region
from engine.telemetry.markers import Marker, MarkerKind
from engine.telemetry.snapshot import (
    DeviceReading,
    Missing,
    PoolKind,
    ProcessReading,
    TelemetrySnapshot,
)
from gui.kit.charts import axis, tips
from gui.kit.charts.picture import MemoryPicture
from gui.kit.charts.scene import scene_for
from gui.kit.charts.series import runs
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
    held = picture.window_now()
    picture.append(_snapshot(60, gib(3)))
    assert picture.window_now() == held
    assert len(picture.series["GPU-0"]) == 2
    QTest.keyClick(picture, Qt.Key.Key_Space)
    assert picture.window_now() != held


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


def _measured(picture: MemoryPicture, seconds: int = 7200) -> None:
    for second in range(0, seconds, 10):
        picture.append(_snapshot(second, gib(3)))


def _turn(picture: MemoryPicture, place: QPoint, notches: int, *, shift: bool = False) -> None:
    modifiers = Qt.KeyboardModifier.ShiftModifier if shift else Qt.KeyboardModifier.NoModifier
    turned = QPoint(0, 120 * notches)
    event = QWheelEvent(
        QPointF(place), QPointF(picture.mapToGlobal(place)), QPoint(), turned,
        Qt.MouseButton.NoButton, modifiers, Qt.ScrollPhase.NoScrollPhase, False,
    )  # fmt: skip
    QCoreApplication.sendEvent(picture, event)


def _chart(picture: MemoryPicture) -> QRectF:
    places = picture._places
    assert places is not None
    return places.panels[0].time


def test_that_keys_step_from_a_minute_to_a_day_and_no_further(picture) -> None:
    _measured(picture)
    for _ in range(12):
        QTest.keyClick(picture, Qt.Key.Key_Plus)
    assert picture.span_s == 60
    spans = []
    for _ in range(9):
        QTest.keyClick(picture, Qt.Key.Key_Minus)
        spans.append(picture.span_s)
    assert spans == [120, 300, 900, 3600, 14_400, 43_200, 86_400, 86_400, 86_400]


def test_that_the_wheel_zooms_over_the_time_chart_alone(picture) -> None:
    _measured(picture)
    middle = _chart(picture).center().toPoint()
    _turn(picture, middle, -4)
    assert picture.span_s == pytest.approx(120 * 1.25**4)
    assert picture.window_now().end_s == 1000 + 7190  # it still follows the newest
    _turn(picture, middle, 4)
    assert picture.span_s == pytest.approx(120)
    _turn(picture, QPoint(20, 100), -4)  # over the labels the window scrolls
    assert picture.span_s == pytest.approx(120)


def test_that_a_held_picture_keeps_what_is_under_the_pointer(picture) -> None:
    _measured(picture)
    picture.set_window_seconds(3600)
    QTest.keyClick(picture, Qt.Key.Key_Space)
    rect = _chart(picture)
    third = QPoint(round(rect.left() + rect.width() / 3), round(rect.center().y()))
    before = picture.window_now().time_at(third.x(), rect)
    _turn(picture, third, 5)
    window = picture.window_now()
    assert window.time_at(third.x(), rect) == pytest.approx(before)
    assert window.end_s - window.start_s == pytest.approx(3600 / 1.25**5)


def test_that_panning_holds_and_the_newest_is_followed_again(picture, qtbot) -> None:
    _measured(picture)
    told: list[bool] = []
    picture.held.connect(told.append)
    QTest.keyClick(picture, Qt.Key.Key_Left, Qt.KeyboardModifier.ControlModifier)
    assert picture.window_now().end_s == 8190 - 30
    picture.append(_snapshot(7200, gib(3)))
    assert picture.window_now().end_s == 8190 - 30
    QTest.keyClick(picture, Qt.Key.Key_Home)
    assert picture.window_now().start_s == 1000
    QTest.keyClick(picture, Qt.Key.Key_End)
    assert picture.window_now().end_s == 8200
    _turn(picture, _chart(picture).center().toPoint(), 2, shift=True)
    assert picture.window_now().end_s < 8200
    assert told == [True, False, True]


def test_that_dragging_moves_the_moment_that_was_taken(picture) -> None:
    _measured(picture)
    rect = _chart(picture)
    start, end = rect.center().toPoint(), rect.center().toPoint() + QPoint(100, 0)
    taken = picture.window_now().time_at(start.x(), rect)
    QTest.mousePress(picture, Qt.MouseButton.LeftButton, pos=start)
    move = QMouseEvent(
        QEvent.Type.MouseMove, QPointF(end), QPointF(picture.mapToGlobal(end)),
        Qt.MouseButton.NoButton, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier,
    )  # fmt: skip
    QCoreApplication.sendEvent(picture, move)
    QTest.mouseRelease(picture, Qt.MouseButton.LeftButton, pos=end)
    assert picture.window_now().time_at(end.x(), rect) == pytest.approx(taken)


def test_that_the_axis_of_a_held_picture_is_of_times_of_day(picture) -> None:
    _measured(picture)
    words = [text for _, text in axis._time_ticks(picture.window_now(), 500)]
    assert words == ["\u22122 min", "\u22121 min", "now"]
    QTest.keyClick(picture, Qt.Key.Key_Left, Qt.KeyboardModifier.ControlModifier)
    ticks = axis._time_ticks(picture.window_now(), 500)
    # Second 1000 was 1.7e9 by the wall clock.
    for moment, text in ticks:
        assert text == time.strftime("%H:%M:%S", time.localtime(moment - 1000 + 1.7e9))
        assert text.endswith(("00", "30"))
    assert len(ticks) == 4


def test_that_the_cursor_steps_and_says_what_it_stands_on(picture, monkeypatch) -> None:
    said: list[str] = []
    monkeypatch.setattr("gui.kit.charts.picture.announce", lambda _, words: said.append(words))
    for second in range(120):
        picture.append(_snapshot(second, gib(2) if second < 110 else gib(5)))
    QTest.keyClick(picture, Qt.Key.Key_Left)
    assert said[-1].endswith("5.00 GiB in use.")
    for _ in range(5):
        QTest.keyClick(picture, Qt.Key.Key_Left)
    clock = time.strftime("%H:%M:%S", time.localtime(1.7e9 + 119 - 12))
    assert said[-1] == f"{clock}, 2.00 GiB in use."
    QTest.keyClick(picture, Qt.Key.Key_Escape)
    assert picture.cursor_words() == ""


def test_that_least_average_and_most_are_counted_from_a_reset(picture) -> None:
    for second, used in enumerate((2, 4, 9)):
        picture.append(_snapshot(second, gib(used)))
    extent = picture.kept.extents["GPU-0"]
    assert (extent.least_bytes, extent.average_bytes, extent.most_bytes) == (
        gib(2), gib(5), gib(9),
    )  # fmt: skip
    picture.kept.reset_extents()
    picture.append(_snapshot(3, gib(3)))
    picture.append(_snapshot(4, Missing("late")))
    extent = picture.kept.extents["GPU-0"]
    assert (extent.least_bytes, extent.most_bytes, extent.since_s) == (gib(3), gib(3), 1003)


def test_that_sleep_is_a_gap_as_long_as_it_was(picture) -> None:
    picture.append(_snapshot(0, gib(3)))
    awake = _snapshot(1, gib(3))
    picture.append(replace(awake, wall_time_s=awake.wall_time_s + 3600))
    values = picture.series["GPU-0"].window(0, 1e9)
    assert values[0][-1] - values[0][0] == 3601
    assert runs(values[1]) == [(0, 1), (2, 3)]


def test_that_a_marker_stands_on_the_chart_and_says_what_it_is(picture) -> None:
    _measured(picture, 120)
    blank = picture.grab().toImage()
    marker = Marker(MarkerKind.LOAD, 1060, 0, "", "GPU-0", gib(14))
    picture.mark(marker)
    picture.mark(Marker(MarkerKind.NOTE, 1030, 0, "other card", "GPU-9"))
    assert picture.grab().toImage() != blank
    rect = _chart(picture)
    x = picture.window_now().x(1060, rect)
    told = [
        tips.at(picture._scene, picture._places, picture.seen, QPointF(place, rect.bottom() - 15))
        for place in (x + 3, x + 30, picture.window_now().x(1030, rect))
    ]
    assert told[0] == marker.words()
    assert marker.words() not in told[1:]
    assert not any("other card" in words for words in told)


def test_that_a_machine_of_a_thousand_devices_takes_no_thousand_histories(picture) -> None:
    many = _snapshot(0, gib(1)).devices[0]
    readings = tuple(replace(many, uuid=f"GPU-{n}") for n in range(1000))
    picture.append(TelemetrySnapshot(1000.0, 1.7e9, readings))
    assert len(picture.series) == 64
