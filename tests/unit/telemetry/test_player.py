"""Playing a recording: at any speed, from any place, whatever the file holds."""

from __future__ import annotations

import json
import random
import tracemalloc
from typing import TYPE_CHECKING

import pytest

from engine.cancel import CancelToken, JobCancelledError
from engine.errors import TelemetryError
from engine.telemetry import plain, player
from engine.telemetry.markers import Marker, MarkerKind, to_dict
from engine.telemetry.player import Player, index
from engine.telemetry.record import SCHEMA, RecordingEndedError
from tests.helpers.readings import card, moment

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

HEADER = json.dumps({"schema": SCHEMA, "machine": {}}) + "\n"


class Clock:
    """Real time that passes when it is told to."""

    def __init__(self) -> None:
        self.now = 5000.0

    def __call__(self) -> float:
        return self.now


def write(path: Path, lines: Iterable[object]) -> Path:
    with path.open("w", encoding="utf-8") as file:
        file.write(HEADER)
        file.writelines(json.dumps(line) + "\n" for line in lines)
    return path


def seconds(path: Path, count: int, pace: float = 1.0) -> Path:
    """A recording of ``count`` samples whose card holds as many bytes as it is the n-th."""
    base = plain.to_dict(moment(card(processes=())))

    def lines() -> Iterable[object]:
        for n in range(count):
            base["monotonic_s"], base["wall_time_s"] = 100 + n * pace, 1.7e9 + n * pace
            base["devices"][0]["used_bytes"] = n
            yield base

    return write(path, lines())


def indexed(path: Path) -> player.Index:
    return index(path, CancelToken(), lambda _: None)


def used(snapshot) -> int:
    return snapshot.devices[0].used_bytes


def test_that_samples_come_when_they_are_due_and_sixty_times_as_fast(tmp_path):
    clock = Clock()
    playing = Player(seconds(tmp_path / "a.jsonl", 200), clock)
    assert used(playing.sample()) == 0
    clock.now += 0.4
    assert playing.sample() is None
    clock.now += 0.7
    assert used(playing.sample()) == 1
    playing.set_speed(60)
    clock.now += 1
    assert used(playing.sample()) == 61
    playing.set_paused(paused=True)
    clock.now += 100
    assert playing.sample() is None
    playing.set_paused(paused=False)
    assert playing.sample() is None  # what passed while it stood still is not made up for
    playing.close()


def test_that_the_last_sample_is_shown_before_the_end_is_told(tmp_path):
    clock = Clock()
    playing = Player(seconds(tmp_path / "a.jsonl", 5), clock)
    playing.sample()
    clock.now += 60
    assert used(playing.sample()) == 4
    with pytest.raises(RecordingEndedError, match="has ended"):
        playing.sample()
    playing.set_index(indexed(tmp_path / "a.jsonl"))
    playing.seek(101)
    assert used(playing.sample()) == 1
    playing.close()


def test_that_a_night_of_sleep_is_played_as_five_seconds(tmp_path):
    night = 8 * 3600
    moments = [plain.to_dict(moment(card(), second=s)) for s in (0, 1, night, night + 1)]
    for second, line in enumerate(moments):
        line["monotonic_s"] = 100.0 + second  # it stands still while the computer sleeps
    clock = Clock()
    playing = Player(write(tmp_path / "night.jsonl", moments), clock)
    playing.sample()
    seen = []
    for _ in range(7):
        clock.now += 1
        sample = playing.sample()
        seen.append(sample and sample.wall_time_s - 1.75e9)
    assert seen == [1, None, None, None, None, night, night + 1]
    playing.close()


def test_that_ten_hours_are_sought_through_in_a_few_reads_and_little_memory(tmp_path):
    path = seconds(tmp_path / "long.jsonl", 36_000)
    tracemalloc.start()
    found = indexed(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4 * 2**20 < path.stat().st_size
    assert (found.start_s, found.end_s, found.samples) == (100.0, 36_099.0, 36_000)
    assert found.stride == 4  # 36,000 samples in 16,384 places at most
    playing = Player(path)
    playing.set_index(found)
    reads = []
    lines = playing._lines
    taken = lines.next_raw
    lines.next_raw = lambda: reads.append(1) or taken()
    for at in random.Random(7).choices(range(36_000), k=200):
        reads.clear()
        playing.seek(100 + at + 0.5)
        assert used(playing.sample()) == at
        assert len(reads) <= found.stride + 1
    playing.close()


def test_that_stepping_goes_to_the_neighbour_also_backwards(tmp_path, monkeypatch):
    monkeypatch.setattr(player, "_MOST_PLACES", 8)
    path = seconds(tmp_path / "a.jsonl", 100, pace=0.1)
    found = indexed(path)
    assert found.stride == 16
    playing = Player(path)
    playing.set_index(found)
    playing.set_paused(paused=True)
    playing.seek(104.95)
    assert used(playing.sample()) == 49
    for steps, expected in ((1, 50), (-1, 49), (-1, 48), (-20, 28), (3, 31), (-99, 0), (-1, 0)):
        playing.step(steps)
        assert used(playing.sample()) == expected
    playing.close()


def test_that_beyond_either_end_is_the_first_or_last_sample(tmp_path):
    path = seconds(tmp_path / "a.jsonl", 50)
    playing = Player(path)
    playing.set_index(indexed(path))
    playing.seek(-1e9)
    assert used(playing.sample()) == 0
    playing.seek(1e9)
    assert used(playing.sample()) == 49
    playing.close()


def test_that_markers_have_their_place_also_where_they_were_written_later(tmp_path):
    sleep = 600
    lines = [
        plain.to_dict(moment(card(), second=0)),
        plain.to_dict(moment(card(), second=1)),
        to_dict(Marker(MarkerKind.LOAD, 100.5, 1.75e9, "", "GPU-0", 5)),
        {**plain.to_dict(moment(card(), second=2)), "wall_time_s": 1.75e9 + 2 + sleep},
        to_dict(Marker(MarkerKind.NOTE, 102.25, 0.0, "begun")),
    ]
    found = indexed(write(tmp_path / "m.jsonl", lines))
    kinds = [(place, m.kind) for place, m in found.markers]
    # The last sample lies after the sleep; what was noted after it stands at the end.
    assert kinds == [(100.5, MarkerKind.LOAD), (102.0 + sleep, MarkerKind.NOTE)]


def test_that_cancelling_ends_the_reading(tmp_path):
    path = seconds(tmp_path / "a.jsonl", 2000)
    token, told = CancelToken(), []

    def progress(share: float) -> None:
        told.append(share)
        if share > 0.2:
            token.cancel()

    with pytest.raises(JobCancelledError):
        index(path, token, progress)
    assert told == sorted(told)
    assert told[-1] < 0.9


def test_that_what_comes_before_the_damage_can_be_played(tmp_path):
    path = seconds(tmp_path / "a.jsonl", 20)
    with path.open("a") as file:
        file.write("garbage\n")
        file.write(json.dumps(plain.to_dict(moment(card()))) + "\n")
    found = indexed(path)
    assert found.samples == 20
    assert found.damage == "The recording 'a.jsonl' is damaged in line 22: it is not JSON."


@pytest.mark.parametrize(
    "line",
    [
        "{}", '{"monotonic_s": "1", "wall_time_s": 2}', '{"monotonic_s": 1e300, "wall_time_s": 0}',
        '{"marker": 5}', '{"marker": {"kind": "party"}}', '{"marker": {"kind": "note", "text": 3}}',
        '{"marker": {"kind": "note", "monotonic_s": "x"}}', "[1]", '{"monotonic_s": NaN}',
        '{"marker": {"kind": "load", "change_bytes": 1e40}}', "[" * 50_000, "\x00\x00",
    ],
)  # fmt: skip
def test_that_a_hostile_line_is_a_sentence_and_never_a_crash(tmp_path, line):
    path = seconds(tmp_path / "a.jsonl", 3)
    with path.open("a") as file:
        file.write(line + "\n")
    found = index(path, CancelToken(), lambda _: None, lambda *_: None)
    clock = Clock()
    playing = Player(path, clock)
    playing.set_index(found)
    playing.sample()
    clock.now += 1
    assert used(playing.sample()) == 1
    told = ""
    for _ in range(9):
        clock.now += 1
        try:
            playing.sample()
        except TelemetryError as error:
            told = error.message
            break
    playing.close()
    assert told.startswith("The recording 'a.jsonl' ")
    assert found.samples == 3 or not found.damage


def test_that_clocks_that_run_back_never_turn_the_axis_round(tmp_path):
    lines = [plain.to_dict(moment(card(), second=s)) for s in (5, 6, 1, 2, 900, 3)]
    places = []
    index(
        write(tmp_path / "back.jsonl", lines), CancelToken(), lambda _: None,
        lambda place, broke, _: places.append((place, broke)),
    )  # fmt: skip
    assert [p for p, _ in places] == [105, 106, 106, 107, 1005, 1005]
    assert [b for _, b in places] == [False, False, True, False, False, True]


def test_that_a_recording_without_samples_cannot_be_played(tmp_path):
    path = write(tmp_path / "none.jsonl", [])
    with pytest.raises(TelemetryError, match="holds no samples"):
        indexed(path)
