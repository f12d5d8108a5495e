"""``plimsoll parse-log``: the exit status, the words and the answer."""

from __future__ import annotations

import io
import json
import sys
from typing import TYPE_CHECKING

import jsonschema
import pytest

import resources
from tests.helpers import logs

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def log(tmp_path: Path):
    def write(text: str) -> str:
        path = tmp_path / "serve.log"
        path.write_text(text)
        return str(path)

    return write


def test_that_a_failure_is_told_with_its_region_and_a_way_out(plimsoll, log) -> None:
    ran = plimsoll("parse-log", log(logs.TAKEN))
    assert ran.status == 1
    assert "This run ran out: 18 MiB short while capturing graphs" in ran.output
    assert "Others held 2.04 GiB." in ran.output
    assert "Without the others" in ran.output
    assert "vLLM 0.33.0" in ran.output


@pytest.mark.parametrize(
    ("text", "status"),
    [
        (logs.TAKEN, 1),
        (logs.VLLM_HEAD + logs.VLLM_LOADED + logs.VLLM_UP, 0),
        (logs.SPILLED, 0),
        ("nothing of the kind\n", 3),
        ("", 3),
    ],
    ids=["failure", "came up", "runs on", "unknown", "empty"],
)
def test_that_the_exit_status_says_how_it_went(plimsoll, log, text: str, status: int) -> None:
    assert plimsoll("parse-log", log(text)).status == status
    assert plimsoll("parse-log", log(text), "--json").status == status


@pytest.mark.parametrize("text", [logs.TAKEN, logs.RANK, logs.SPILLED, logs.KILLED, "no log"])
def test_that_the_answer_keeps_to_its_schema(plimsoll, log, text: str) -> None:
    answer = plimsoll("parse-log", log(text), "--json").answer
    schema = json.loads(resources.path("schema", "log.schema.json").read_text())
    jsonschema.validate(answer, schema)


def test_that_the_answer_has_the_figures_of_the_log(plimsoll, log) -> None:
    answer = plimsoll("parse-log", log(logs.TAKEN), "--json").answer
    assert answer["failure"]["kind"] == "taken"
    assert answer["failure"]["region"] == "foreign"
    assert answer["settings"]["max_model_len"] == 8192
    regions = answer["ranks"][0]["regions"]
    assert regions["kv_cache"]["stated_bytes"] == round(5.31 * 2**30)
    assert regions["weights"]["predicted"]["likely"] == 16_094_076_928
    tokens = next(f for f in answer["facts"] if f["name"] == "kv_tokens")
    assert (tokens["value"], tokens["line"]) == (43_488, 6)


def test_that_a_log_can_come_through_a_pipe(plimsoll, monkeypatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(logs.REFUSED.encode())))
    ran = plimsoll("parse-log", "-", "--json")
    assert ran.answer["failure"]["kind"] == "refused"


def test_that_a_file_that_is_not_there_costs_one_sentence(plimsoll, tmp_path) -> None:
    ran = plimsoll("parse-log", str(tmp_path / "no.log"))
    assert ran.status == 2
    assert "no.log: No such file or directory." in ran.complaint


def test_that_a_wrong_model_beside_the_log_is_an_error(plimsoll, log) -> None:
    ran = plimsoll("parse-log", log(logs.RANK), "--model", "no such model", "--offline")
    assert ran.status == 2
    assert "no such model" in ran.complaint
