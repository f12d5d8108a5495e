"""``plimsoll size --batch``: every line is answered, whatever it is."""

from __future__ import annotations

import io
import json
import resource
import subprocess
import sys

import jsonschema
import pytest

from tests.unit.cli.conftest import LLAMA_8B, published

GOOD = {"config": LLAMA_8B, "gpu": "H100 SXM 80GB", "runtime": "vllm", "max_model_len": 8192}
PROGRAM = "import sys; from engine.cli import main; sys.exit(main(sys.argv[1:]))"


def lines(*requests: object) -> bytes:
    return b"".join(
        request if isinstance(request, bytes) else json.dumps(request).encode() + b"\n"
        for request in requests
    )


@pytest.fixture
def batch(plimsoll, tmp_path):
    def run(content: bytes):
        path = tmp_path / "requests.jsonl"
        path.write_bytes(content)
        ran = plimsoll("size", "--batch", path, "--offline")
        assert ran.status == 0
        for answer in ran.answers:
            jsonschema.validate(answer, published("budget"))
        return ran.answers

    return run


def test_that_answers_keep_the_order_and_the_id(batch):
    answers = batch(lines(GOOD | {"id": "b"}, GOOD | {"id": 2}, GOOD))
    assert [a["id"] for a in answers] == ["b", 2, None]
    assert not [a for a in answers if a["error"]]


@pytest.mark.parametrize(
    "line",
    [
        b"\n",
        b"not json\n",
        b"[1, 2]\n",
        b'"text"\n',
        b"null\n",
        b'{"model": NaN}\n',
        b'{"model": "m", "n_ctx": 1e400}\n',
        b"\x00\xff\xfe\x80 junk\n",
        b"[" * 200_000 + b"\n",
        b'{"a":' * 200_000 + b"\n",
        b'{"max_model_len": ' + b"9" * 10_000 + b', "config": {}}\n',
        b'{"config": {}, "id": {}}\n',
        b'{"config": {"model_type": "llama", "num_hidden_layers": 1000000000000}}\n',
        b'{"config": {"model_type": "llama", "num_attention_heads": 0}}\n',
        b'{"config": {}}\n',
        b'{"config": {"model_type": ["llama"]}}\n',
        b'{"model": "no/such-model-anywhere"}\n',
        b'{"model": "/no/such/file.gguf"}\n',
        b'{"config": {"model_type": "llama"}, "gpu": "Radeon 9999"}\n',
        b'{"config": {"model_type": "llama"}, "runtime": "onnx", "gpu": "RTX 4090"}\n',
    ],
)
def test_that_a_bad_line_costs_only_itself(batch, line):
    first, bad, last = batch(lines(GOOD, line, GOOD))
    assert first["error"] is None
    assert last["error"] is None
    assert bad["error"]["code"] not in {"", "internal"}
    message = bad["error"]["message"]
    assert message.endswith((".", "?"))
    assert len(message) < 400


def test_that_a_last_line_without_an_end_is_answered(batch):
    assert len(batch(lines(GOOD).rstrip(b"\n"))) == 1


@pytest.mark.parametrize("device", ["24 GB class", "A100", "Ascend NPU"])
def test_that_a_known_pool_is_answered_on_a_device_nobody_knows(batch, device):
    asked = {"config": LLAMA_8B, "gpu": device, "runtime": "vllm", "max_model_len": 8192}
    known, bare = batch(lines(asked | {"kv_pool_bytes": 4 * 2**30}, asked))
    # 16 tokens a block of 2 MiB: 4 GiB are 2,048 blocks, four requests of 8,192 tokens.
    state = known["sequence_state"]
    assert (state["num_blocks"], state["pool_tokens"]) == (2048, 32_768)
    assert state["max_concurrency"] == 4.0
    assert known["verdict"] == "unknown"
    (rank,) = known["ranks"]
    assert rank["device"] == device
    assert rank["total_bytes"] is rank["allocatable_bytes"] is rank["free_bytes"] is None
    assert any(device in line and "only the pool" in line for line in known["warnings"])
    assert bare["error"]["code"] == "unknown_device"


def test_that_a_model_known_by_its_name_alone_says_so(batch):
    asked = {"model": "unsloth/Llama-3.2-3B-Instruct", "gpu": "RTX 4090", "max_model_len": 4096}
    (answer,) = batch(lines(asked))
    assert answer["model"]["id"] == "unsloth/Llama-3.2-3B-Instruct"
    assert answer["model"]["parameters"] == 3_212_749_824
    assert any("same name, not checked" in line for line in answer["warnings"])


def test_that_an_empty_file_has_no_answers(batch):
    assert batch(b"") == []


def test_that_hostile_text_comes_back_escaped(batch):
    (answer,) = batch(lines({"model": "evil\x1b[2J\u202e\x7f/model", "id": "\u2066id"}))
    raw = json.dumps(answer)
    assert answer["id"] == "\u2066id"
    assert "\\u001b" not in raw  # the message holds it spelt out, as text
    assert "\\x1b" in answer["error"]["message"]


def test_that_output_is_plain_ascii(plimsoll, tmp_path):
    path = tmp_path / "requests.jsonl"
    path.write_bytes(lines(GOOD | {"id": "\u202e\x7f模型"}))
    ran = plimsoll("size", "--batch", path)
    assert ran.output.isascii()
    assert "\x7f" not in ran.output


def test_that_options_beside_a_batch_are_refused(plimsoll, tmp_path):
    ran = plimsoll("size", "--batch", tmp_path / "x", "--concurrency", 4)
    assert (ran.status, ran.output) == (2, "")
    assert "concurrency" in ran.complaint


@pytest.mark.parametrize("name", ["missing.jsonl", "."])
def test_that_a_file_that_cannot_be_read_is_named(plimsoll, tmp_path, name):
    ran = plimsoll("size", "--batch", tmp_path / name)
    assert (ran.status, ran.output) == (2, "")
    assert str(tmp_path) in ran.complaint


def test_that_standard_input_is_read_line_by_line(plimsoll, monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO(lines(GOOD | {"id": 7})))
    monkeypatch.setattr(sys, "stdin", stream)
    assert [a["id"] for a in plimsoll("size", "--batch", "-").answers] == [7]


def test_that_a_line_of_a_gigabyte_takes_no_gigabyte(tmp_path):
    path = tmp_path / "requests.jsonl"
    with path.open("wb") as file:
        file.truncate(2**30)
        file.seek(2**30)
        file.write(b"\n" + lines(GOOD))
    command = [sys.executable, "-c", PROGRAM, "size", "--batch", str(path)]
    limit = 700 * 2**20

    def bounded() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

    run = subprocess.run(command, capture_output=True, text=True, check=True, preexec_fn=bounded)
    huge, good = (json.loads(line) for line in run.stdout.splitlines())
    assert "longer than 32 MiB" in huge["error"]["message"]
    assert good["error"] is None


def test_that_a_device_is_refused_as_a_batch(plimsoll):
    ran = plimsoll("size", "--batch", "/dev/zero")
    assert (ran.status, ran.output) == (2, "")
    assert "is a device" in ran.complaint


def test_that_a_line_without_end_is_answered_while_it_goes_on():
    command = [sys.executable, "-c", PROGRAM, "size", "--batch", "-"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"x" * (32 * 2**20 + 2))
        process.stdin.flush()
        answer = json.loads(process.stdout.readline())
        assert "longer than 32 MiB" in answer["error"]["message"]
        process.stdin.close()
        assert process.wait(30) == 0


def test_that_numbers_which_are_none_cost_their_line_and_not_its_id(batch):
    answers = batch(
        b'{"id": "nan", "config": {"model_type": "llama", "hidden_size": NaN}}\n'
        b'{"id": "inf", "config": {}, "gpu_memory_utilization": Infinity}\n'
        b'{"id": "long", "n_ctx": ' + b"9" * 5000 + b"}\n"
    )
    assert [a["id"] for a in answers[:2]] == ["nan", "inf"]
    assert "number too long" in answers[2]["error"]["message"]
    assert "sys." not in answers[2]["error"]["message"]


def test_that_tensors_of_another_type_are_quoted_as_given(batch):
    (answer,) = batch(lines({"config": {}, "tensors": "x"}))
    assert "not 'x'" in answer["error"]["message"]


def test_that_each_line_is_answered_before_the_next_is_written():
    command = [sys.executable, "-c", PROGRAM, "size", "--batch", "-", "--offline"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for number in range(3):
            process.stdin.write(lines(GOOD | {"id": number}))
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["id"] == number
        process.stdin.close()
        assert process.wait(30) == 0


HELD = f"""
import resource
{PROGRAM.replace("sys.exit(", "status = (")}
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)
"""


def test_that_ten_thousand_lines_take_the_memory_of_a_thousand(tmp_path):
    # 40 MB in and more out; each a plan for its own, or not even JSON: nothing of them is kept.
    held_kib = []
    for count in (1_000, 10_000):
        path = tmp_path / f"{count}.jsonl"
        with path.open("wb") as file:
            for number in range(count):
                bad = {"id": number, "model": "m", "junk": "x" * 4000}
                file.write(lines(GOOD | {"max_model_len": number} if number % 100 == 9 else bad))
        command = [sys.executable, "-c", HELD, "size", "--batch", str(path), "--offline"]
        run = subprocess.run(command, capture_output=True, text=True, check=True)
        assert run.stdout.count("\n") == count
        held_kib.append(int(run.stderr))
    assert held_kib[1] < held_kib[0] * 1.1
