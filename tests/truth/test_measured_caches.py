"""Parameters and caches of tiny models, measured by running transformers.

Source:
    ``configs/tiny_cache.jsonl`` beside the checkout: every causal, image-text, speech and
    encoder-decoder type of transformers 5.24.0 in a tiny shape, with the bytes of every tensor
    of its cache after 7, 40 and 41 tokens in bfloat16 (torch 2.13.0, CPU).
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from engine.architecture.read import specify
from engine.architecture.spec import ArchitectureSpec, Direction, Subject
from engine.errors import UnknownArchitectureError
from engine.runtimes.transformers.cache import layer_bytes

CONFIGS = Path(__file__).resolve().parents[2].parent / "shared" / "configs"
ROWS, LONG = CONFIGS / "tiny_cache.jsonl", CONFIGS / "tiny_cache_long.jsonl"
pytestmark = pytest.mark.skipif(
    not ROWS.is_file(), reason="the measured caches are not beside this checkout"
)


@cache
def measured(rows: Path = ROWS) -> list[tuple[dict[str, Any], ArchitectureSpec]]:
    found: list[tuple[dict[str, Any], ArchitectureSpec]] = []
    for line in rows.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if row["status"] != "ok":
            continue
        config = {"model_type": row["measured_config_type"], **row["config"]}
        try:
            found.append((row, specify(config | {"architectures": [row["model_class"]]})))
        except UnknownArchitectureError:
            continue
    return found


def cache_bytes(spec: ArchitectureSpec, tokens: int, dtype: str) -> int:
    return sum(layer_bytes(layer, tokens, dtype) for layer in spec.layers)


def is_doubted(spec: ArchitectureSpec, subject: Subject) -> bool:
    return any(doubt.subject is subject for doubt in spec.doubts)


def test_that_a_measured_cache_is_exact_or_marked_as_doubtful() -> None:
    silent: dict[str, Any] = {}
    exact = 0
    for row, spec in measured():
        ours = {n: cache_bytes(spec, int(n), row["dtype"]) for n in row["runs"]}
        theirs = {n: run["total_bytes"] for n, run in row["runs"].items()}
        exact += ours == theirs
        if ours != theirs and not is_doubted(spec, Subject.SEQUENCE_STATE):
            silent[row["model_type"]] = (ours, theirs)
    assert not silent, silent
    assert exact >= 225


def test_that_a_cache_that_is_no_straight_line_is_exact_at_every_length() -> None:
    for row, spec in measured(LONG):
        ours = {n: cache_bytes(spec, int(n), row["dtype"]) for n in row["runs"]}
        assert ours == {n: run["total_bytes"] for n, run in row["runs"].items()}, row["model_type"]


_SHORTEST = 40
"""Tokens from which the bounds hold: below, a block or window that is not full costs more."""


def test_that_a_bound_lies_on_its_side_of_what_was_measured() -> None:
    wrong: dict[str, Any] = {}
    for row, spec in measured():
        pairs = [(Subject.WEIGHTS, spec.parameters, row["params"])]
        pairs += [
            (Subject.SEQUENCE_STATE, cache_bytes(spec, int(n), row["dtype"]), run["total_bytes"])
            for n, run in row["runs"].items()
            if int(n) >= _SHORTEST
        ]
        for subject, ours, theirs in pairs:
            direction = spec.direction(subject)
            too_low = direction is Direction.UPPER and ours < theirs
            too_high = direction is Direction.LOWER and ours > theirs
            if too_low or too_high:
                wrong[row["model_type"]] = (subject, direction, ours, theirs)
    assert not wrong, wrong


def test_that_a_tiny_model_is_counted_exactly_or_marked_as_doubtful() -> None:
    silent: dict[str, Any] = {}
    exact = 0
    for row, spec in measured():
        exact += spec.parameters == row["params"]
        if spec.parameters != row["params"] and not is_doubted(spec, Subject.WEIGHTS):
            silent[row["model_type"]] = (spec.parameters, row["params"])
    assert not silent, silent
    assert exact >= 167
