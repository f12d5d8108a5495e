"""The file of runs: written, damaged, of another version, hostile."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from engine import lessons
from engine.errors import LessonError
from engine.lessons import Kept, Key, Lesson, Measured

if TYPE_CHECKING:
    from pathlib import Path

KEY = Key(
    devices=("RTX 4090 · 25757220864",),
    runtime="vllm",
    runtime_version="0.27.0",
    model="meta-llama/llama-3.1-8b",
    parameters=8030261248,
    settings=(("gpu_memory_utilization", "0.9"), ("max_model_len", "8192")),
)
RUN = Lesson(
    "a", 1796058000.5, KEY, ({"activations": Measured(1200, 5, 900, 1000, 1500)},), "log a.log"
)


def figure(size: float, rule: list[int]) -> dict[str, object]:
    return {"activations": {"measured_bytes": size, "half_bytes": 0, "rule_bytes": rule}}


def saved(folder: Path, *lines: str) -> Path:
    path = folder / lessons.FILE_NAME
    path.write_text("\n".join([json.dumps({"schema": lessons.SCHEMA}), *lines]) + "\n")
    return path


def test_that_a_run_survives_as_a_line(tmp_path: Path):
    path = tmp_path / "learned.jsonl"
    path.write_text(lessons.written(Kept((RUN,))))
    assert lessons.read(path) == Kept((RUN,))


def test_that_no_file_is_no_run(tmp_path: Path):
    assert lessons.read(tmp_path / "none.jsonl") == Kept()


def test_that_a_damaged_line_is_kept_as_it_is_and_costs_no_other(tmp_path: Path):
    good = json.dumps(lessons.to_dict(RUN))
    path = saved(tmp_path, good[: len(good) // 2], good, '{"id": "later", "of": "a version"}')
    kept = lessons.read(path)
    assert kept.lessons == (RUN,)
    assert len(kept.unread_lines) == 2
    assert lessons.written(kept).splitlines()[2:] == list(kept.unread_lines)


def test_that_a_file_of_another_version_is_refused_and_left(tmp_path: Path):
    path = tmp_path / "learned.jsonl"
    path.write_text('{"schema": "plimsoll.learned/9"}\n{}\n')
    with pytest.raises(LessonError, match="left as it is"):
        lessons.read(path)


@pytest.mark.parametrize(
    "change",
    [
        {"learned_at_s": float("nan")},
        {"learned_at_s": True},
        {"parameters": -1},
        {"parameters": 2**70},
        {"devices": "RTX 4090"},
        {"devices": ["x"] * 10_000},
        {"model": "x" * 10_000},
        {"settings": []},
        {"ranks": [figure(1, [3, 2, 1])]},
        {"ranks": [figure(1.5, [1, 1, 1])]},
    ],
)
def test_that_a_field_out_of_bounds_makes_no_run(tmp_path: Path, change: dict[str, object]):
    path = saved(tmp_path, json.dumps(lessons.to_dict(RUN) | change))
    kept = lessons.read(path)
    assert kept.lessons == ()
    assert len(kept.unread_lines) == 1


def test_that_the_later_of_two_lines_of_one_run_counts():
    later = replace(RUN, source="log b.log")
    kept = lessons.with_(Kept((RUN,)), [later])
    assert kept.lessons == (later,)


def test_that_runs_leave_the_file_one_by_one():
    other = replace(RUN, id="b")
    assert lessons.without(Kept((RUN, other)), ["a"]).lessons == (other,)


def test_that_the_oldest_leave_beyond_five_thousand():
    many = [replace(RUN, id=str(i), learned_at_s=float(i)) for i in range(5_003)]
    kept = lessons.with_(Kept(), many)
    assert [kept.lessons[0].id, len(kept.lessons)] == ["3", 5_000]


def test_that_text_in_the_file_cannot_steer_a_terminal(tmp_path: Path):
    path = saved(tmp_path, json.dumps(lessons.to_dict(replace(RUN, source="\x1b[31mred"))))
    assert "\x1b" not in lessons.read(path).lessons[0].source
