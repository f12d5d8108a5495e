"""``plimsoll report --log``: what a runtime's log states, beside the plan of the same run."""

from __future__ import annotations

import io
import shlex
import sys
from typing import TYPE_CHECKING

import pytest

from tests.helpers import logs
from tests.helpers.logs import explained
from tests.unit.logs.test_against_the_plan import LLAMA_SERVER

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

CARD = ("--gpu", "RTX 4090")
SERVED = logs.VLLM_HEAD + logs.VLLM_LOADED + logs.VLLM_POOL


@pytest.fixture
def report(plimsoll, llama_8b: Path, tmp_path: Path) -> Callable[..., str]:
    """The Markdown of a report on ``text``, or the sentence that says why there is none."""

    def write(text: str, *options: str, name: str = "plan.md") -> str:
        log, path = tmp_path / "serve.log", tmp_path / name
        log.write_text(text)
        ran = plimsoll("report", llama_8b, "--log", log, "-o", path, *options)
        assert (ran.status == 0) == path.exists()
        return path.read_text() if path.exists() else ran.complaint

    return write


def _row(text: str, name: str) -> list[str]:
    """The cells of the region ``name`` in the table of what the log states."""
    table = text[text.index("### Stated by the log") :]
    line = next(line for line in table.splitlines() if line.startswith(f"| {name} "))
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_that_what_the_log_states_stands_beside_the_plan(report) -> None:
    text = report(SERVED, *CARD)
    assert "vLLM 0.33.0, 7 lines, 7 understood" in text
    # "Model loading took 14.9889 GiB" in line 4; 16,094,076,928 bytes are 14.9888 GiB.
    assert _row(text, "Weights")[1:] == ["14.99", "14.99 – 15.02", "14.99", "0.00", "4"]
    # "Available KV cache memory: 5.31 GiB" in line 5, predicted from the card and not from itself.
    planned, _, stated, off, line = _row(text, "KV cache")[1:]
    assert (stated, line) == ("5.31", "5")
    assert float(off.replace("−", "-")) == pytest.approx(5.31 - float(planned), abs=0.011)
    assert planned != "5.31"


def test_that_the_settings_of_the_log_count_where_no_other_is_given(report) -> None:
    assert "- Context: **8,192 tokens**" in report(SERVED, *CARD)
    assert "- Context: **4,096 tokens**" in report(SERVED, *CARD, "--context", "4096")


def test_that_the_command_of_the_report_gives_the_same_answer(plimsoll, report, llama_8b) -> None:
    text = report(logs.TAKEN)
    line = next(line for line in text.splitlines() if line.startswith("plimsoll size"))
    # "GPU 0 has a total capacity of 23.64 GiB", and no name.
    assert f"--gpu-total-bytes {round(23.64 * 2**30)}" in line
    _, _, _, *options = shlex.split(line)
    headline = next(line for line in text.splitlines() if line.startswith("# "))
    assert headline.removeprefix("# ") in plimsoll("size", llama_8b, *options).output


def test_that_the_model_that_is_named_is_not_said_to_be_guessed(report) -> None:
    assert explained(LLAMA_SERVER).notes[0].startswith("The model is taken for")
    assert "The model is taken for" not in report(LLAMA_SERVER)


def test_that_the_log_answers_steps_of_the_checklist(report) -> None:
    assert "| 1 | Measure the weights after loading | Known | 14.99 | Stated by the log" in report(
        SERVED, *CARD
    )


def test_that_a_failed_run_is_told_with_what_would_have_helped(report) -> None:
    text = report(logs.TAKEN)
    assert "This run ran out: 18 MiB short while capturing graphs." in text
    assert "Others held 2.04 GiB." in text
    assert "### What would have helped" in text
    assert "- Without the others: +" in text
    # A run that failed has measured nothing that a step could rest on.
    assert "Stated by the log:" not in text


@pytest.mark.parametrize(
    ("text", "name", "said"),
    [
        (SERVED, "plan.md", "say which it is, such as --gpu 'RTX 4090'"),
        ("nothing of the kind\n", "plan.md", "No line of"),
        (logs.TAKEN, "plan.json", "let the name end in .pdf, .html or .md"),
        (logs.TAKEN, "plan.csv", "let the name end in .pdf, .html or .md"),
    ],
    ids=["no device", "no log", "json", "csv"],
)
def test_that_what_cannot_be_compared_costs_one_sentence(report, text, name, said) -> None:
    complaint = report(text, name=name)
    assert said in complaint
    assert complaint.count("\n") == 1


def test_that_a_log_can_come_through_a_pipe(plimsoll, llama_8b, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(logs.TAKEN.encode())))
    path = tmp_path / "plan.md"
    assert plimsoll("report", llama_8b, "--log", "-", "-o", path).status == 0
    assert "### Stated by the log" in path.read_text()
