"""What holds for every command alike: JSON by its schema, any terminal, nothing loaded in vain."""

from __future__ import annotations

import io
import shlex
import subprocess
import sys

import jsonschema
import pytest

from engine import lessons
from engine.cli import main
from engine.cli.look import cells
from engine.cli.options import COMMANDS
from engine.cli.pages import PAGES
from engine.devices import catalogue, here
from tests.helpers import logs
from tests.helpers.other_python import TENSORS, answering, built
from tests.unit.cli.conftest import published

LLAMA = ("meta-llama/Llama-3.1-8B", "--offline")
CARD = ("--gpu", "RTX 4090", "--context", "8k")
REPORT = ("report", *LLAMA, *CARD, "-o", "plan.md")
VERIFY = ("verify", "config.json", "--python", "./python-with-torch")
UP = logs.VLLM_HEAD + logs.VLLM_LOADED + logs.VLLM_POOL + logs.VLLM_UP
RUNS = {
    "size": (*LLAMA, *CARD),
    "launch": (*LLAMA, *CARD),
    "kv": (*LLAMA, "--context", "8k"),
    "machine": ("--runtimes",),
    "watch": ("--simulate", "--count", "1"),
    "report": REPORT[1:],
    "verify": VERIFY[1:],
    "parse-log": ("serve.log",),
    "learned": (),
    "completion": ("zsh",),
}
"""Arguments of each command with which it answers at once."""
SCHEMAS = {
    "size": "budget", "launch": "launch", "kv": "kv", "machine": "machine", "watch": "sample",
    "report": "budget", "verify": "verify", "parse-log": "log", "learned": "learned",
}  # fmt: skip
"""By which published schema each answers; the script of a shell is no answer in JSON."""


@pytest.fixture(autouse=True)
def _desk(tmp_path, monkeypatch, llama_8b):
    """A folder with a log of a run that was learned from, and a Python that builds models."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "serve.log").write_text(UP)
    answering(tmp_path, built(TENSORS))


def test_that_every_command_is_tried_here():
    assert set(RUNS) == set(COMMANDS)
    assert set(SCHEMAS) == set(COMMANDS) - {"completion"}


@pytest.mark.parametrize("command", SCHEMAS)
def test_that_every_answer_in_json_is_of_its_published_schema(plimsoll, monkeypatch, command):
    if command == "learned":
        card = catalogue.machine(catalogue.find("RTX 4090"))
        monkeypatch.setattr(here, "this_machine", lambda **_: card)
        assert plimsoll("parse-log", "serve.log", "--learn").status == 0
        assert lessons.default_file().exists()
    ran = plimsoll(command, *RUNS[command], "--json")
    assert ran.status == 0, ran.complaint
    (answer,) = ran.answers
    jsonschema.validate(answer, published(SCHEMAS[command]))
    assert ran.output.isascii()


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp437"])
@pytest.mark.parametrize("command", RUNS)
def test_that_a_terminal_of_any_encoding_takes_answers_and_help(monkeypatch, command, encoding):
    for words in (RUNS[command], ("--help",)):
        stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
        complaints = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
        monkeypatch.setattr("sys.stdout", stream)
        monkeypatch.setattr("sys.stderr", complaints)
        status = _status([command, *words])
        stream.flush()
        complaints.flush()
        assert status == 0, complaints.buffer.getvalue()
        assert b"fault in Plimsoll" not in complaints.buffer.getvalue()
        assert command == "report" or stream.buffer.getvalue()


def test_that_signs_which_a_terminal_lacks_are_spelt_in_near_ones(monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr("sys.stdout", stream)
    assert _status(["launch", *LLAMA, *CARD]) == 0
    stream.flush()
    # The typographic apostrophe of "vLLM’s own" becomes a plain one, and no line an escape.
    assert b"vLLM's own" in stream.buffer.getvalue()
    assert b"\\u" not in stream.buffer.getvalue()


class _Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("width", [40, 60, 80])
@pytest.mark.parametrize("command", sorted(set(RUNS) - {"launch", "completion"}))
def test_that_no_line_is_wider_than_the_terminal(monkeypatch, command, width):
    # A start command is to be copied whole, and so is a script.
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("NO_COLOR", "1")
    stream = _Terminal()
    monkeypatch.setattr("sys.stdout", stream)
    assert _status([command, *RUNS[command]]) == 0
    assert [x for x in stream.getvalue().splitlines() if cells(x) > width] == []
    assert "\x1b" not in stream.getvalue()


@pytest.mark.parametrize(
    "more",
    [
        ("--runtime", "llama.cpp"),
        ("--with", "Qwen/Qwen3-8B --context 4096"),
        ("--concurrency", "64"),
        ("--inverse",),
    ],
)
def test_that_no_further_table_of_size_is_wider_than_a_narrow_terminal(monkeypatch, more):
    monkeypatch.setenv("COLUMNS", "40")
    stream = _Terminal()
    monkeypatch.setattr("sys.stdout", stream)
    assert _status(["size", *LLAMA, *CARD, *more]) in {0, 1}
    plain = stream.getvalue().split("\x1b[")
    text = plain[0] + "".join(part.split("m", 1)[1] for part in plain[1:])
    assert [x for x in text.splitlines() if cells(x) > 40] == []


HEAVY = ("PySide6", "pyqtgraph", "transformers", "torch", "numpy", "huggingface_hub", "pydantic")
LOADED = """
import sys
from gui.__main__ import main
try:
    status = main(sys.argv[1:])
finally:
    print("loaded", *sorted({name.split(".")[0] for name in sys.modules}), file=sys.stderr)
"""


@pytest.mark.parametrize("command", RUNS)
def test_that_no_command_loads_the_window_or_a_model_library(command):
    ran = subprocess.run(
        [sys.executable, "-c", LOADED, command, *RUNS[command]],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    loaded = ran.stderr.partition("loaded ")[2].split()
    assert "engine" in loaded
    assert not set(HEAVY) & set(loaded)


def _status(argv: list[str]) -> int | str | None:
    try:
        return main(argv)
    except SystemExit as left:
        return left.code


NEEDS = {"verify": "PyTorch", "report": "the window part", "watch": "a server"}
"""Commands whose examples want more than a terminal, and what."""


@pytest.mark.parametrize("command", COMMANDS)
def test_that_help_teaches_by_examples_that_run_and_says_how_it_ends(capsys, monkeypatch, command):
    assert _status([command, "--help"]) == 0
    shown = capsys.readouterr().out
    for line in PAGES[command].examples.split("\n"):
        # As it stands in a terminal of 80 columns and in the manual, which has margins.
        assert f"  {line}\n" in shown
        assert len(line) <= 74
        fed, _, words = line.rpartition(" | ")
        argv = shlex.split(words)
        assert argv.pop(0) == "plimsoll"
        if "YOUR" in line or (command in NEEDS and not {"--simulate", "plan.md"} & {*argv}):
            continue
        stdin = shlex.split(fed)[1].encode() if fed else b""
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        status = _status([*argv, *(["--offline"] if "--offline" in shown else [])])
        assert str(status) in PAGES[command].status, capsys.readouterr().err
        assert status != 2
    assert "Exit status:" in shown
    for number in ("0", "2"):
        assert number in PAGES[command].status


def test_that_a_form_that_a_plan_has_not_is_refused_in_json_too(plimsoll):
    plan = ("launch", *LLAMA, *CARD, "--json")
    assert list(plimsoll(*plan, "--form", "docker").answer["forms"]) == ["docker"]
    assert len(plimsoll(*plan).answer["forms"]) > 1
    ran = plimsoll(*plan, "--form", "modelfile")
    assert (ran.status, ran.output) == (2, "")
    assert "modelfile" in ran.complaint


def test_that_progress_is_told_to_who_watches_and_to_no_file(plimsoll, monkeypatch):
    assert plimsoll(*VERIFY).complaint == ""
    watched = _Terminal()
    monkeypatch.setattr("sys.stderr", watched)
    assert main(list(VERIFY)) == 0
    assert "Building the model" in watched.getvalue()


def test_that_a_strange_device_is_quoted_with_its_escapes_once(plimsoll):
    ran = plimsoll("size", *LLAMA, "--gpu", "\u202eevil\x1b[31m")
    assert r"'\u202eevil\x1b[31m'" in ran.complaint


def test_that_a_report_answers_in_json_as_size_does(plimsoll):
    plan = (*LLAMA, *CARD)
    ran = plimsoll("report", *plan, "-o", "plan.csv", "--json")
    assert ran.answer == plimsoll("size", *plan, "--json").answer
    # 15.0 GiB of weights and 1.0 of cache on a card of 24 GB.
    assert ran.answer["verdict"] == "fits"
