"""Logs of any origin: long, broken, coloured, interleaved, or no logs at all."""

from __future__ import annotations

import io
import json
import random
import re
import textwrap
import tracemalloc
from re import _constants as constants  # pyright: ignore[reportAttributeAccessIssue]
from re import _parser as parser  # pyright: ignore[reportAttributeAccessIssue]

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.cancel import CancelToken, JobCancelledError
from engine.logs import settings as log_settings
from engine.logs.diagnosis import diagnose
from engine.logs.lines import LONGEST, blocks
from engine.logs.patterns import patterns
from engine.logs.read import read
from tests.helpers.logs import GIB, TAKEN, VLLM_HEAD, VLLM_LOADED, VLLM_POOL, reading

LINE = "INFO 10-08 [gpu_worker.py:298] Available KV cache memory: 5.31 GiB"


def pool(data: bytes) -> int | None:
    found = reading(data).stated("kv_pool")
    return found.size_bytes if found else None


@pytest.mark.parametrize(
    "data",
    [
        f"{LINE}\r\nnext\r\n".encode(),
        f"\x1b[36m(EngineCore pid=1)\x1b[0;0m {LINE}\x1b[0m".encode(),
        f"Loading: 10%\rLoading: 100%\r{LINE}\n".encode(),
        LINE.encode("utf-16"),
        LINE.encode("utf-16-le"),
        LINE.encode("utf-16-be"),
        json.dumps({"log": f"\x1b[32m{LINE}\x1b[0m\n", "stream": "stderr", "time": "x"}).encode(),
        f"2026-01-01T00:00:00.000000000Z stderr F {LINE}\n".encode(),
        f"[pod/vllm-0/server] {LINE}\n".encode(),
        b"\xff\xfe\xfa binary \x00\x00\n" + LINE.encode() + b"\n\x80\x81",
        b"\x00" * 70_000 + b"\n" + LINE.encode(),
        f"Nov 30 12:36:11 host vllm[25973]: {LINE}\n".encode(),
        f"server-1  | {LINE}\n".encode(),
        b"x" * 1_000_000 + b"\n" + LINE.encode(),
    ],
    ids=[
        "crlf",
        "colours",
        "progress",
        "utf-16",
        "utf-16-le",
        "utf-16-be",
        "docker's file",
        "kubernetes",
        "kubectl",
        "bytes",
        "zeros",
        "journal",
        "docker",
        "long",
    ],
)
def test_that_a_line_is_found_in_whatever_it_comes_in(data: bytes) -> None:
    assert pool(data) == round(5.31 * GIB)


def test_that_a_log_cut_short_gives_what_it_has() -> None:
    found = reading(TAKEN[:-250])
    assert found.stated("kv_pool") is not None
    assert found.failure is not None


def test_that_ranks_that_write_between_each_other_are_kept_apart() -> None:
    text = "".join(
        f"(Worker_TP{n % 4} pid={n % 4 + 100}) INFO Model loading took {10 + n % 4}.00 GiB\n"
        for n in range(40)
    )
    found = reading(text)
    assert {r.name: r.bytes_of("weights") for r in found.ranks} == {
        f"TP{n}": (10 + n) * GIB for n in range(4)
    }
    assert [r.index for r in found.ranks] == [0, 1, 2, 3]


@pytest.mark.parametrize("width", [60, 80, 100, 120, 200])
@pytest.mark.parametrize("by_words", [True, False])
def test_that_a_sentence_that_a_terminal_broke_is_read_whole(width: int, by_words: bool) -> None:
    start, sentence = (
        TAKEN.rpartition("torch.Out")[0],
        "torch.Out" + TAKEN.rpartition("torch.Out")[2],
    )
    parts = textwrap.wrap(sentence, width)
    if not by_words:
        whole = sentence.rstrip("\n")
        parts = [whole[n : n + width] for n in range(0, len(whole), width)]
    found, expected = reading(start + "\n".join(parts) + "\n"), reading(TAKEN)
    assert found.failure is not None
    assert expected.failure is not None
    assert {n: f.value for n, f in found.failure.facts.items()} == {
        n: f.value for n, f in expected.failure.facts.items()
    }
    assert diagnose(found).kind is diagnose(expected).kind


@pytest.mark.parametrize(
    ("prefix", "names"),
    [
        ("(VllmWorker rank={n} pid=13{n})", ["TP0", "TP1"]),
        ("(VllmWorker TP{n} pid=13{n})", ["TP0", "TP1"]),
        ("(Worker_DP0_TP{n}_EP{n} pid=13{n})", ["DP0 TP0 EP0", "DP0 TP1 EP1"]),
        ("(RayWorkerWrapper pid=13{n}, ip=10.0.0.1)", ["pid 130", "pid 131"]),
        ("[rank{n}]:", ["TP0", "TP1"]),
        ("server-1  | [2025-10-16 09:06:09 TP{n}]", ["TP0", "TP1"]),
        ("[2025-10-16 09:06:09 DP0 PP{n}]", ["DP0 PP0", "DP0 PP1"]),
    ],
)
def test_that_a_rank_is_known_by_every_prefix(prefix: str, names: list[str]) -> None:
    text = "".join(f"{prefix.format(n=n)} Model loading took {n + 1}.0 GiB\n" for n in range(2))
    assert [(r.name, r.index) for r in reading(text).ranks] == [
        (name, place) for place, name in enumerate(names)
    ]


def test_that_line_numbers_count_every_line_wherever_blocks_end() -> None:
    filler = "".join(f"{n} {'y' * (n % 211)}\n" for n in range(9_000))
    found = reading(filler + LINE)
    fact = found.stated("kv_pool")
    assert fact is not None
    assert fact.line == 9_001
    assert found.line_count == 9_001
    assert found.lines[-1].number == 9_001
    assert not found.is_whole


def test_that_a_short_log_is_kept_as_it_is() -> None:
    text = VLLM_HEAD + VLLM_LOADED + "noise\n" + VLLM_POOL
    found = reading(text)
    assert found.is_whole
    assert [line.text for line in found.lines] == text.splitlines()
    assert [line.number for line in found.lines if not line.is_understood] == [5]


def test_that_what_is_shown_steers_no_terminal_and_tells_no_secret() -> None:
    text = "hf_abcdefghijklmnop \x07 \u202eevil /home/somebody/models/x\n"
    (line,) = reading(text).lines
    assert "hf_abc" not in line.text
    assert "somebody" not in line.text
    assert "\u202e" not in line.text
    assert "\x07" not in line.text


@pytest.mark.parametrize(
    "text",
    [
        "vllm serve X/Y --api-key pa55word",
        "vllm serve X/Y --api-key \\\n  pa55word\n",
        "env:\n- name: HF_TOKEN\n  value: pa55word\n",
        "non-default args: {'api_key': ['pa55word', 'pa55word'], 'model': 'X/Y'}",
        "curl -H 'Authorization: Bearer pa55word' http://x",
    ],
)
def test_that_no_line_that_is_shown_holds_a_secret_of_a_command(text: str) -> None:
    lines = reading(text).lines
    assert len(lines) == len(text.splitlines())
    assert not any("pa55word" in line.text for line in lines)


class _Endless(io.RawIOBase):
    """A log of ``blocks`` times the same bytes, which are nowhere as a whole."""

    def __init__(self, block: bytes, count: int) -> None:
        self._block = block
        self._left = count

    def read(self, size: int = -1) -> bytes:
        del size
        self._left -= 1
        return self._block if self._left >= 0 else b""


@pytest.mark.parametrize(
    "block",
    [b"GET /v1/completions 200 OK\n" * 8_000, b"z" * 200_000, b"\x00\xff" * 100_000],
    ids=["requests", "one line", "bytes"],
)
def test_that_the_length_of_a_log_does_not_matter_to_memory(block: bytes) -> None:
    def most(count: int) -> int:
        tracemalloc.start()
        read(_Endless(block, count), CancelToken())  # pyright: ignore[reportArgumentType]
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return peak

    once = most(8)
    assert most(80) < 2 * once + 2**20


def test_that_a_log_of_many_understood_lines_keeps_the_last_of_them() -> None:
    found = reading((LINE + "\n") * 20_000)
    assert found.understood == 20_000
    assert len(found.lines) == 8_000
    assert found.lines[-1].number == 20_000


def test_that_a_million_ranks_are_not_kept() -> None:
    text = "".join(f"(Worker_TP{n} pid=1) Model loading took 1.0 GiB\n" for n in range(3_000))
    assert len(reading(text).ranks) == 1024


def test_that_reading_stops_when_asked() -> None:
    token = CancelToken()
    token.cancel()
    with pytest.raises(JobCancelledError):
        read(io.BytesIO(b"x\n" * 10), token)


@given(st.binary(max_size=4_000))
def test_that_no_bytes_are_an_error(data: bytes) -> None:
    found = reading(data)
    assert found.line_count == len(found.lines)


@given(st.lists(st.sampled_from([p.needle for p in patterns()]), min_size=1, max_size=6))
def test_that_no_needles_without_their_figures_are_an_error(needles: list[str]) -> None:
    reading(" ".join(needles) + " 1e999 GiB = (((\n" + "\n".join(needles))


def test_that_blocks_hold_whole_lines() -> None:
    text = "".join(f"line {n} {'w' * (n % 97)}\n" for n in range(20_000))
    found = "\n".join(blocks(io.BytesIO(text.encode()), CancelToken()))
    assert found == text.rstrip("\n")


def test_that_of_an_endless_line_only_the_beginning_is_kept() -> None:
    data = b"a" * (3 * 2**20) + b"\nnext"
    found = "\n".join(blocks(io.BytesIO(data), CancelToken())).split("\n")
    assert [len(line) for line in found] == [LONGEST, 4]


EXPRESSIONS = {p.id: p.regex for p in patterns() if p.regex is not None} | {
    name: getattr(log_settings, name) for name in ("_PAIR", "_OPTION", "_BARE_MODEL")
}


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_that_no_expression_repeats_without_a_bound_what_may_stand_beside_it(name: str) -> None:
    """Bounded repeats over a bounded window: the time is a multiple of the log's length."""
    unbounded = [
        item for item in _repeats(parser.parse(EXPRESSIONS[name].pattern)) if item is not None
    ]
    assert not unbounded


def _repeats(tree: object) -> list[object]:
    found: list[object] = []
    for kind, value in tree:  # pyright: ignore[reportGeneralTypeIssues]
        if kind in (constants.MAX_REPEAT, constants.MIN_REPEAT):
            low, high, inner = value
            if high is constants.MAXREPEAT:
                found.append((low, inner))
            found += _repeats(inner)
        elif kind is constants.SUBPATTERN:
            found += _repeats(value[-1])
        elif kind is constants.BRANCH:
            for branch in value[1]:
                found += _repeats(branch)
    return found


def test_that_each_pattern_is_named_once_and_begins_at_its_needle() -> None:
    names = [pattern.id for pattern in patterns()]
    assert len(names) == len(set(names))
    for pattern in patterns():
        assert pattern.needle
        assert pattern.regex is None or isinstance(pattern.regex, re.Pattern)


def test_that_what_is_no_text_is_counted_and_what_follows_is_read() -> None:
    # Half of all bytes begin no character. Two blocks of them, and a log behind.
    noise = random.Random(1).randbytes(2 * 256 * 1024)
    found = reading(noise + b"\nModel loading took 14.98 GiB and 3 seconds\n")
    assert found.line_count == noise.count(b"\n") + 2
    assert found.understood == 1
    assert not any(line.text.strip() for line in found.lines if not line.is_understood)


@pytest.mark.parametrize(
    "said",
    [
        "INFO [logger.py:50] Generated response cmpl-1: output: '{text}', finish_reason: stop",
        "srv  update_chat_: Parsing chat message: {text}",
        "Parsing input with format Content-only: {text}",
        'Parsed message: {{"role":"assistant","content":"{text}"}}',
        'data stream, to_send: data: {{"content":"{text}"}}',
        'srv    operator(): http: streamed chunk: data: {{"delta":{{"content":"{text}"}}}}',
    ],
)
def test_that_what_a_model_says_of_failures_is_none(said: str) -> None:
    text = "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.64 GiB"
    assert reading(VLLM_HEAD + said.format(text=text) + "\n").failure is None
    assert reading(VLLM_HEAD + text + "\n").failure is not None


def test_that_lines_of_another_runtime_say_nothing_of_the_release() -> None:
    llama = "llama_kv_cache:      CUDA0 KV buffer size =  1024.00 MiB\n" * 3
    found = reading(llama + "INFO [gpu_worker.py:300] Available KV cache memory: 5.00 GiB\n")
    assert (found.runtime, found.since, found.until) == ("llama.cpp", "", "")


def test_that_no_buffer_is_less_than_nothing() -> None:
    found = reading(
        "load_tensors:        CUDA0 model buffer size =  4403.49 MiB\n"
        "llama_context:      CUDA0 compute buffer size =  -258.50 MiB\n"
    )
    assert found.ranks[0].facts.keys() == {"weights"}
