"""A line of a log costs the same at the beginning and after a million, whatever stands in it."""

from __future__ import annotations

import io
import time

import pytest

from engine.cancel import CancelToken
from engine.logs.patterns import patterns
from engine.logs.read import read
from tests.benchmarks.pace import NOISE, allowed, quietest

pytestmark = pytest.mark.benchmark

SHORT, LONG = 1_000_000, 8_000_000
"""Bytes."""
MOST_GROWTH = 1.15
SERVER_LOG_S = 8.0
"""For 50 MB of what a server prints while it serves."""
REQUEST = b'INFO:     127.0.0.1:%d - "POST /v1/chat/completions HTTP/1.1" 200 OK\n'
LOGS = {
    "requests": REQUEST * 9 % tuple(range(50_000, 50_009)),
    "facts": b"(Worker_TP0 pid=447) INFO [gpu_worker.py:563] Available KV cache memory: 6.87 GiB\n",
    "needles without figures": b" ".join(p.needle.encode() for p in patterns()) + b"\n",
    "one long line": b"KV Cache is allocated. " * 400,
    "colours": b"\x1b[32mINFO\x1b[0m 10-08 hello\n",
}


def _seconds(data: bytes) -> float:
    started = time.process_time()
    read(io.BytesIO(data), CancelToken())
    return time.process_time() - started


@pytest.mark.parametrize("name", LOGS)
def test_that_the_time_of_a_line_does_not_grow_with_the_log(name: str) -> None:
    block = LOGS[name]

    def growth() -> float:
        short, long = (_seconds(block * (size // len(block))) for size in (SHORT, LONG))
        return long / short / (LONG / SHORT)

    limit = MOST_GROWTH * NOISE
    assert quietest(growth, limit) <= limit


def test_that_fifty_megabytes_of_a_server_are_read_in_seconds() -> None:
    block = LOGS["requests"]
    data = block * (50_000_000 // len(block))
    limit = allowed(SERVER_LOG_S)
    assert quietest(lambda: _seconds(data), limit) <= limit
