"""``parse-log --learn`` and ``learned``: kept, listed, exported, forgotten."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from engine import lessons
from engine.devices import catalogue, here
from tests.helpers import logs

if TYPE_CHECKING:
    from pathlib import Path

UP = logs.VLLM_HEAD + logs.VLLM_LOADED + logs.VLLM_POOL + logs.VLLM_UP


@pytest.fixture(autouse=True)
def _own_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


@pytest.fixture
def learned(plimsoll, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A run of this machine, which has an RTX 4090 here."""
    card = catalogue.machine(catalogue.find("RTX 4090"))
    monkeypatch.setattr(here, "this_machine", lambda **_: card)
    log = tmp_path / "serve.log"
    log.write_text(UP)
    return plimsoll("parse-log", str(log), "--learn")


def test_that_a_run_is_kept_and_listed_with_what_the_rule_had_said(learned, plimsoll):
    assert learned.status == 0
    assert "Learned from this run" in learned.complaint
    listed = plimsoll("learned").output
    assert "meta-llama/llama-3.1-8b-instruct on vllm 0.33.0" in listed
    assert "weights" in listed
    assert "14.99 GiB" in listed
    answer = json.loads(plimsoll("learned", "--json").output)
    assert answer["ranks"][0]["weights"]["measured_bytes"] == round(14.9889 * 2**30)


def test_that_a_plan_without_it_and_with_it_names_the_run(learned, plimsoll):
    plan = (
        "size", "meta-llama/Llama-3.1-8B-Instruct", "--runtime", "vllm", "--runtime-version",
        "0.33.0", "--context", "8192", "--gpu-memory-utilization", "0.92",
    )  # fmt: skip
    assert "Learned from 1 run" in plimsoll(*plan).output
    plimsoll("learned", "--forget", "all")
    assert "Learned from" not in plimsoll(*plan).output


def test_that_runs_are_forgotten_by_their_number_and_a_strange_one_is_named(learned, plimsoll):
    (kept,) = lessons.read(lessons.default_file()).lessons
    ran = plimsoll("learned", "--forget", "nobody")
    assert ran.status == 2
    assert "nobody" in ran.complaint
    assert plimsoll("learned", "--forget", kept.id).status == 0
    assert lessons.read(lessons.default_file()).lessons == ()
    assert "Nothing was learned yet" in plimsoll("learned").output


def test_that_an_export_reads_back_and_replaces_nothing(learned, plimsoll, tmp_path: Path):
    target = tmp_path / "mine.jsonl"
    assert plimsoll("learned", "-o", str(target)).status == 0
    assert lessons.read(target) == lessons.read(lessons.default_file())
    before = target.read_bytes()
    assert plimsoll("learned", "-o", str(target)).status == 2
    assert target.read_bytes() == before


def test_that_a_file_of_a_later_version_stops_no_plan_and_is_told(plimsoll):
    path = lessons.default_file()
    path.parent.mkdir(parents=True)
    path.write_text('{"schema": "plimsoll.learned/9"}\n')
    ran = plimsoll("size", "Qwen/Qwen3-8B", "--runtime", "llama.cpp", "--context", "4096")
    assert ran.status in (0, 1)
    assert "learned.jsonl" in ran.output
    assert path.read_text() == '{"schema": "plimsoll.learned/9"}\n'
