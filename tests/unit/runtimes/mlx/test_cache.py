"""Rows of mlx-lm's caches: by hand, and as mlx-lm itself made them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from engine.architecture.read import read
from engine.deployment.spec import Deployment
from engine.runtimes.mlx import cache, peaks
from engine.runtimes.mlx.settings import settle
from engine.source.raw import RawModel
from tests.helpers.published import gpu, machine

EVIDENCE = Path(__file__).resolve().parents[3] / "evidence"


def lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(x) for x in (EVIDENCE / name).read_text(encoding="utf-8").splitlines()]


CONFIGS = {row["type"]: row["base"] for row in reversed(lines("architectures.jsonl"))}
MEASURED = lines("mlx_caches.jsonl")


@pytest.mark.parametrize("row", MEASURED, ids=[row["type"] for row in MEASURED])
def test_that_every_cache_is_as_large_as_mlx_lm_makes_it(row: dict[str, Any]):
    """Tiny models in 32 bits, read 128 tokens at a time, ten more tokens answered."""
    config = CONFIGS[row["type"]] | {"model_type": row["type"], "dtype": "float32"}
    model = read(RawModel(id=row["type"], source="tiny", config=config))
    plan = Deployment(
        runtime="mlx",
        max_model_len=row["tokens"],
        prompt_len=row["prompt"],
        prefill_step_size=row["step"],
    )
    settings = settle(model, plan, machine(gpu(24.0)))
    layers = range(len(model.spec.layers))
    found = peaks.kv_bytes(model.spec, settings, layers, 1)
    found += peaks.state_bytes(model.spec, layers, 1)
    wanted = 0
    for _, *shapes in row["caches"]:
        for shape in shapes:
            elements = 4
            for side in shape:
                elements *= side
            wanted += elements
    assert found == wanted


@pytest.mark.parametrize(
    ("tokens", "step", "rows"),
    [
        (0, 2048, 0),
        (1, 2048, 256),
        (1023, 2048, 1024),
        (2047, 2048, 2048),
        # Behind 2,048 tokens a rest of 100 finds no room and adds 256 rows.
        (2148, 2048, 2304),
        # Steps of 128: two of them fit into the rows of the first.
        (299, 128, 512),
        (256, 128, 256),
        # Steps of 300 take 512 rows, and the next one starts behind token 300.
        (600, 300, 812),
    ],
)
def test_that_a_prompt_takes_rows_by_its_chunks(tokens: int, step: int, rows: int):
    assert cache.prompt_rows(tokens, step) == rows


def test_that_an_answer_adds_rows_256_at_a_time():
    assert cache.grown_rows(1024, 1024) == 1024
    assert cache.grown_rows(1024, 1025) == 1280
    assert cache.grown_rows(812, 1000) == 1068


def rows(window: int, prompt: int, tokens: int, *, chunked: bool = False) -> int:
    return cache.rows_at_end(window, chunked=chunked, prompt=prompt, step=2048, tokens=tokens)


def test_that_a_rotating_cache_keeps_a_short_prompt_as_it_is_and_grows_to_its_window():
    assert rows(4096, 101, 101) == 356
    assert rows(4096, 4000, 4095) == 4096
    assert rows(1024, 20_000, 20_001) == 1024


def test_that_a_chunked_cache_keeps_a_chunk_and_room_to_grow():
    assert rows(8192, 20_000, 20_001, chunked=True) == 8192 + 256
    assert rows(8192, 1000, 1001, chunked=True) == 1024


def test_that_a_window_holds_the_chunk_that_is_read_too():
    # W - 1 of the tokens before and the chunk itself.
    assert cache.prompt_window_rows(1024, 18_432, 2048) == 3071
    assert cache.prompt_window_rows(1024, 0, 2048) == 2048


def test_that_bits_stated_with_a_decimal_point_make_whole_bytes():
    # 8 bits, and 32 for scale and bias of 64 values: 34 / 64 of the 16 bits that a value had.
    config = CONFIGS["llama"] | {"model_type": "llama", "dtype": "bfloat16", "head_dim": 64}
    model = read(RawModel(id="llama", source="tiny", config=config))
    sizes = []
    for bits in (None, 8.0):
        plan = Deployment(
            runtime="mlx", max_model_len=8192, prompt_len=8191, kv_bits=bits, quantized_kv_start=0
        )
        settings = settle(model, plan, machine(gpu(24.0)))
        sizes.append(peaks.kv_bytes(model.spec, settings, range(len(model.spec.layers)), 1))
    plain, packed = sizes
    assert isinstance(packed, int)
    assert packed * 64 == plain * 34
