"""The other commands, and how all of them behave at the edges."""

from __future__ import annotations

import io
import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from engine.cli import main
from engine.cli.options import COMMANDS, OVERVIEW, parse
from engine.contract.fields import FIELDS
from tests.unit.cli.conftest import published

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = "import sys; from engine.cli import main; sys.exit(main(sys.argv[1:]))"


def test_that_kv_shows_formula_inputs_and_total(plimsoll, llama_8b):
    ran = plimsoll("kv", llama_8b, "--context", 8192)
    assert ran.status == 0
    assert "2 × 32 layers × 8 heads × 128 × 2 B = 131,072 B a token" in ran.output
    assert "1,073,741,824 B" in ran.output
    assert "1.00 GiB" in ran.output


def test_that_kv_answers_by_its_schema_and_halves_with_8_bits(plimsoll, llama_8b):
    whole = plimsoll("kv", llama_8b, "--context", 8192, "--json").answer
    half = plimsoll("kv", llama_8b, "-c", "8k", "--kv-dtype", "fp8", "--json").answer
    for answer in (whole, half):
        jsonschema.validate(answer, published("kv"))
    assert (whole["bytes_per_token"], whole["total_bytes"]) == (131_072, 2**30)
    assert (half["bytes_per_token"], half["total_bytes"]) == (65_536, 2**29)


def test_that_kv_names_the_layers_that_keep_an_encoders_tokens(plimsoll, tmp_path):
    # Whisper tiny: 4 layers of 6 heads of 64 in 16 bits; 1,500 tokens of sound.
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"model_type": "whisper", "dtype": "float16"}), "utf-8")
    ran = plimsoll("kv", path, "--context", 100)
    assert "4 cross layers keep the encoder's 1,500 tokens" in ran.output
    assert "4 cross-attention layers" in ran.output
    answer = plimsoll("kv", path, "--context", 100, "--json").answer
    jsonschema.validate(answer, published("kv"))
    token = 2 * 4 * 6 * 64 * 2
    assert [entry["bytes"] for entry in answer["inputs"]] == [100 * token, 1500 * token]


def test_that_kv_counts_a_window_only_as_far_as_it_reaches(plimsoll, tmp_path):
    # Mistral-7B-v0.1: 32 layers, 8 heads of 128, a window of 4,096 on every layer.
    path = tmp_path / "config.json"
    path.write_text(json.dumps({
        "model_type": "mistral", "hidden_size": 4096, "intermediate_size": 14336,
        "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
        "vocab_size": 32000, "max_position_embeddings": 32768, "sliding_window": 4096,
        "torch_dtype": "bfloat16",
    }))  # fmt: skip
    answer = plimsoll("kv", path, "--context", 32768, "--json").answer
    assert answer["total_bytes"] == 4096 * 131_072
    assert answer["bytes_per_token"] == 0


def test_that_an_unknown_kv_dtype_is_refused_by_name(plimsoll, llama_8b):
    ran = plimsoll("kv", llama_8b, "--context", 8192, "--kv-dtype", "int3")
    assert ran.status == 2
    assert "int3" in ran.complaint


def test_that_this_machine_is_described_by_its_schema(plimsoll):
    answer = plimsoll("machine", "--json").answer
    jsonschema.validate(answer, published("machine"))
    host = answer["host"]
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert 0 < host["allocatable"]["likely"] <= host["total_bytes"] <= physical
    assert host["source"]


def test_that_people_read_the_machines_capacities(plimsoll):
    ran = plimsoll("machine")
    for word in ("Total", "Allocatable", "Free now"):
        assert word in ran.output


def test_that_samples_follow_their_schema_and_stop_at_the_count(plimsoll):
    ran = plimsoll("watch", "--jsonl", "--count", 2, "--interval", 0.1)
    assert ran.status == 0
    assert len(ran.answers) == 2
    for sample in ran.answers:
        jsonschema.validate(sample, published("sample"))
    first, second = ran.answers
    assert second["monotonic_s"] > first["monotonic_s"]


def test_that_a_recording_replays_what_was_seen(plimsoll, tmp_path):
    path = tmp_path / "run.jsonl"
    seen = plimsoll("watch", "--jsonl", "--count", 2, "--interval", 0.1, "--record", path).answers
    again = plimsoll("watch", "--jsonl", "--replay", path).answers
    figures = [[d["used_bytes"] for d in sample["devices"]] for sample in seen]
    assert [[d["used_bytes"] for d in sample["devices"]] for sample in again] == figures


@pytest.mark.parametrize("content", [b"", b"junk\n", b'{"schema": "other"}\n', b"\x00\xff"])
def test_that_a_file_that_is_no_recording_costs_one_sentence(plimsoll, tmp_path, content):
    path = tmp_path / "run.jsonl"
    path.write_bytes(content)
    ran = plimsoll("watch", "--replay", path)
    assert (ran.status, ran.output) == (2, "")
    assert "run.jsonl" in ran.complaint
    assert ran.complaint.count("\n") == 1


@pytest.mark.parametrize(
    "argv",
    [
        [],
        ["sise", "model"],
        ["size"],
        ["size", "model", "--contxt", "8k"],
        ["size", "model", "--context", "eight"],
        ["size", "model", "--context", "0"],
        ["size", "model", "--gpu-total-bytes", "lots"],
        ["size", "model", "--gpu-memory-utilization", "2"],
        ["size", "model", "--runtime", "onnx"],
        ["size", "model", "--tensor-parallel-size", "two"],
        ["size", "/no/such/config.json"],
        ["size", "bad\x1b]0;title\x07name"],
        ["kv", "model"],
        ["kv", "/no/such/config.json", "-c", "8k"],
        ["watch", "--count", "0"],
        ["watch", "--interval", "0"],
        ["watch", "--replay", "/no/such/recording"],
        ["watch", "--record", "/no/such/folder/run.jsonl", "--count", "1"],
        ["report", "model"],
    ],
)
def test_that_bad_usage_costs_one_sentence_and_status_2(plimsoll, argv):
    ran = plimsoll(*argv)
    assert (ran.status, ran.output) == (2, "")
    assert ran.complaint.startswith("plimsoll: ")
    assert ran.complaint.count("\n") == 1
    assert len(ran.complaint) < 500
    assert "\x1b" not in ran.complaint


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_that_help_shows_how_to_use_it(capsys, command):
    with pytest.raises(SystemExit) as left:
        main([*command.split(), "--help"])
    assert left.value.code == 0
    text = capsys.readouterr().out
    assert f"plimsoll {command or 'size'}" in text


def test_that_every_key_of_the_contract_is_an_option():
    for field in FIELDS:
        if field.inline or field.name == "model":
            continue
        value = {"BOOLEAN": [], "NUMBER": ["0.5"], "SWITCH": ["on"]}.get(field.kind.name, ["1"])
        value = list(field.choices[:1]) or value
        options = parse(["size", "model", field.option, *value])
        assert field.name in options.given


def test_that_the_version_is_the_projects(plimsoll):
    assert plimsoll("--version").output == "plimsoll 0.1.0\n"


def test_that_a_program_without_a_console_still_answers(llama_8b, monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr(sys, "stderr", None)
    assert main(["size", str(llama_8b), "--gpu", "RTX 4090", "--context", "1024"]) == 0


def test_that_a_reader_who_leaves_is_no_error(llama_8b):
    command = [sys.executable, "-c", PROGRAM, "watch", "--jsonl", "--interval", "0.1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(30) == 0
        assert process.stderr.read() == b""


def test_that_an_interrupt_leaves_quietly():
    command = [sys.executable, "-c", PROGRAM, "watch", "--jsonl", "--interval", "0.1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
        assert process.stderr.read() == b""


@pytest.mark.parametrize("target", ["/dev/null", ".", "/no/such/folder/plan.pdf"])
def test_that_a_report_replaces_files_and_nothing_else(llama_8b, capsys, target):
    written = []
    status = main(
        ["report", str(llama_8b), "--gpu", "RTX 4090", "-o", target],
        write_pdf=lambda *args: written.append(args),
    )
    assert (status, written) == (2, [])
    assert target in capsys.readouterr().err or target == "/no/such/folder/plan.pdf"


def test_that_a_report_is_drawn_on_the_page_that_was_asked_for(llama_8b, tmp_path, capsys):
    written = []
    path = tmp_path / "plan.pdf"
    argv = ["report", str(llama_8b), "--gpu", "RTX 4090", "-o", str(path), "--page", "letter"]
    assert main(argv, write_pdf=lambda *args: written.append(args)) == 0
    ((document, where, page),) = written
    assert (where, page) == (path, "Letter")
    assert "RTX 4090" in document.title
    assert str(path) in capsys.readouterr().err


def test_that_a_report_as_json_is_the_answer_of_size(plimsoll, llama_8b, tmp_path):
    path = tmp_path / "plan.json"
    plan = (llama_8b, "--gpu", "RTX 4090", "--context", "8k")
    for _ in range(2):  # an older one is replaced
        assert plimsoll("report", *plan, "-o", path).status == 0
    found = json.loads(path.read_text())
    jsonschema.validate(found, published("budget"))
    assert found == plimsoll("size", *plan, "--json").answer


@pytest.mark.parametrize("kind", ["html", "md", "csv", "json"])
def test_that_a_report_without_pages_needs_no_window(llama_8b, tmp_path, kind):
    argv = ["report", str(llama_8b), "--gpu", "RTX 4090", "-o", str(tmp_path / f"plan.{kind}")]
    told = "print([name for name in sys.modules if name.startswith('PySide6')])"
    program = f"import sys; from engine.cli import main; main(sys.argv[1:]); {told}"
    ran = subprocess.run(
        [sys.executable, "-c", program, *argv], capture_output=True, text=True, check=True
    )
    assert ran.stdout == "[]\n"
    assert (tmp_path / f"plan.{kind}").stat().st_size > 1000


def test_that_a_pdf_without_a_window_part_is_told_what_goes(llama_8b, tmp_path, capsys):
    argv = ["report", str(llama_8b), "--gpu", "RTX 4090", "-o", str(tmp_path / "plan.pdf")]
    assert main(argv) == 2
    assert ".html, .md, .csv or .json" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["config.json", "model.gguf", "run.jsonl"])
def test_that_a_report_never_takes_the_place_of_what_is_no_report(llama_8b, capsys, name):
    path = llama_8b.with_name(name)
    path.touch()
    kept = path.read_bytes() or b"GGUF and more"
    path.write_bytes(kept)
    written = []
    argv = ["report", str(llama_8b), "--gpu", "RTX 4090", "-o", str(path)]
    assert main(argv, write_pdf=lambda *args: written.append(args)) == 2
    assert (written, path.read_bytes()) == ([], kept)
    assert "not overwritten" in capsys.readouterr().err


@pytest.mark.parametrize("kept", [b"", b"%PDF-1.4 an older report"])
def test_that_a_report_takes_the_place_of_an_older_one(llama_8b, kept):
    path = llama_8b.with_name("plan.pdf")
    path.write_bytes(kept)
    written = []
    argv = ["report", str(llama_8b), "--gpu", "RTX 4090", "-o", str(path)]
    assert main(argv, write_pdf=lambda *args: written.append(args)) == 0
    assert len(written) == 1


@pytest.mark.parametrize("address", ["nonsense", "ftp://x", "https://", "http://[", "//host"])
def test_that_an_endpoint_that_is_no_web_address_costs_one_sentence(plimsoll, monkeypatch, address):
    ran = plimsoll("size", "org/m", "--endpoint", address)
    assert (ran.status, ran.output) == (2, "")
    assert "--endpoint" in ran.complaint
    assert "http://" in ran.complaint
    monkeypatch.setenv("HF_ENDPOINT", address)
    ran = plimsoll("size", "org/m")
    assert (ran.status, ran.output) == (2, "")
    assert "HF_ENDPOINT" in ran.complaint
    assert "fault" not in ran.complaint


def test_that_a_plan_beyond_the_machine_counts_devices_once(plimsoll, llama_8b):
    ran = plimsoll("size", llama_8b, "--gpu", "RTX 4090", "--gpu-count", 1, "--tp", 4)
    assert "takes 4 devices" in ran.complaint
    ran = plimsoll("size", llama_8b, "--gpu", "RTX 4090", "--gpu-count", 1, "--tp", 2, "--pp", 2)
    assert "takes 2 × 2 = 4 devices" in ran.complaint


def test_that_an_invisible_character_in_a_name_is_shown_once(plimsoll):
    ran = plimsoll("size", "a\u202eb", "--offline")
    assert "'a\\u202eb'" in ran.complaint


INTERRUPTED_IMPORT = """
import sys

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == {name!r}:
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupt())
from gui.__main__ import main
sys.exit(main(["size", "no-such-model", "--offline"]))
"""


@pytest.mark.parametrize(
    "name", ["typing", "engine.cli.entry", "engine.cli.options", "engine.cli.size"]
)
def test_that_an_interrupt_while_the_program_loads_leaves_quietly(name):
    program = INTERRUPTED_IMPORT.format(name=name)
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert (run.returncode, run.stdout, run.stderr) == (130, b"", b"")


def test_that_kv_names_compressed_entries_and_a_token_s_share_of_them(plimsoll, tmp_path):
    # A window of 128 keys of 512 in each of three layers, and entries for 4 and for 128 tokens.
    path = tmp_path / "config.json"
    path.write_text(json.dumps({
        "model_type": "deepseek_v4", "num_hidden_layers": 3, "head_dim": 512, "sliding_window": 128,
        "index_head_dim": 128, "compress_ratios": [0, 4, 128],
    }))  # fmt: skip
    ran = plimsoll("kv", path, "--context", 100_000)
    assert "1 sliding layers keep the last 128 tokens: 1 × 1,024 B × 128 = 131,072 B" in ran.output
    assert "keep an entry for every 4 tokens: 1 × 1,156 B × 25,000 = 28,900,000 B" in ran.output
    answer = plimsoll("kv", path, "--context", 100_000, "--json").answer
    jsonschema.validate(answer, published("kv"))
    assert answer["total_bytes"] == 3 * 128 * 1024 + 25_000 * (1024 + 132) + 781 * 1024
    assert answer["bytes_per_token"] == (1024 + 132) // 4 + 1024 // 128


def test_that_kv_names_learned_tokens_before_a_sequence(plimsoll, tmp_path):
    # CPM-Ant: 32 learned tokens in front of every sequence, in each of 48 layers.
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"model_type": "cpmant", "dtype": "float16"}))
    ran = plimsoll("kv", path, "--context", 1000)
    assert "every token and 32 before them" in ran.output
    answer = plimsoll("kv", path, "--context", 1000, "--json").answer
    assert answer["total_bytes"] == 48 * 2 * 32 * 128 * 2 * 1032


def test_that_a_start_command_is_asked_for_as_one_and_not_as_a_name(capsys):
    with pytest.raises(SystemExit):
        main(["size", "--help"])
    shown = capsys.readouterr().out
    assert "--from-command COMMAND" in shown
    assert "--gpu NAME" in shown


def _examples():
    """The commands of the README and of the help that a fresh clone can run as they stand."""
    text = (ROOT / "README.md").read_text("utf-8").partition("## In the terminal")[2]
    shown = text.split("```")[1].replace("\\\n", "") + OVERVIEW.partition("Try:")[2]
    lines = (line.strip() for line in shown.splitlines())
    return [line for line in lines if "plimsoll " in line and line.split()[0] in RUN_BY]


RUN_BY = {"plimsoll", "echo"}
NEEDS = {"verify": "PyTorch", "watch": "Ctrl+C", "report": "the window part"}
"""Commands that want more than a terminal, and what."""


def test_that_every_example_runs_in_a_fresh_clone_or_names_a_file_of_yours(
    capsys, monkeypatch, tmp_path
):
    examples = _examples()
    assert len(examples) >= 15
    monkeypatch.chdir(tmp_path)
    for example in examples:
        fed, _, command = example.rpartition(" | ")
        words = shlex.split(command)[1:]
        if words[0] in NEEDS:
            continue
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(_echoed(fed))))
        status = main([*words, *(["--offline"] if words[0] in {"size", "launch"} else [])])
        complaint = capsys.readouterr().err
        is_mine = any(word.startswith("YOUR-") for word in words)
        assert (status == 2) == is_mine, (example, complaint)
        assert not is_mine or "YOUR-" in complaint


def _echoed(fed):
    return shlex.split(fed)[1].encode() + b"\n" if fed else b""


def test_that_a_recording_is_never_written_over(plimsoll, tmp_path):
    path = tmp_path / "run.jsonl"
    path.write_text("mine\n")
    ran = plimsoll("watch", "--count", 1, "--record", path)
    assert ran.status == 2
    assert ran.complaint.count("\n") == 1
    assert "'run.jsonl' exists already" in ran.complaint
    assert path.read_text() == "mine\n"


def test_that_a_report_takes_the_model_from_a_start_command(plimsoll, llama_8b, tmp_path):
    path = tmp_path / "plan.md"
    command = f"vllm serve {llama_8b} --max-model-len 4096"
    ran = plimsoll("report", "--from-command", command, "--gpu", "RTX 4090", "-o", path)
    assert ran.status == 0
    assert "- Context: **4,096 tokens**" in path.read_text()
    ran = plimsoll("report", "--gpu", "RTX 4090", "-o", tmp_path / "none.md")
    assert ran.status == 2
    assert "No model is named" in ran.complaint
