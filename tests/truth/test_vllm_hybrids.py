"""vLLM's pool for models with recurrent layers: state pages, blocks and tokens as logged."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from engine.architecture.read import read
from engine.deployment.spec import Deployment
from engine.sizing import size
from engine.source.raw import RawModel
from tests.helpers.published import GIB, gpu, machine

if TYPE_CHECKING:
    from engine.architecture.model import Model

SHARED = Path(__file__).resolve().parents[2].parent / "shared"
RECORDS_FILE = SHARED / "truth" / "runtime-logs" / "records.jsonl"

pytestmark = pytest.mark.skipif(
    not RECORDS_FILE.exists(), reason="the measured records are not beside this checkout"
)

# Since 0.28 prefixes are cached where nothing is asked for. These starts name no release, and one
# block of state a request and group shows that theirs were not.
OFF: dict[str, Any] = {"enable_prefix_caching": False}
# Record -> published config of the same shape, and settings that the record tells in words.
RECORDS: dict[str, tuple[str, dict[str, Any]]] = {
    "club3090-165-qwen36-27b-nvfp4-2x5090": (
        "nvidia/Qwen3.6-27B-NVFP4",
        {"speculative_tokens": 3, "kv_cache_dtype": "fp8", "runtime_version": "0.25.1"},
    ),
    "club3090-612-qwen36-35b-nvfp4-5090": (
        "nvidia/Qwen3.6-35B-A3B-NVFP4",
        {"enable_prefix_caching": True, "kv_cache_dtype": "fp8", "runtime_version": "0.24.0"},
    ),
    "club3090-642-qwen36-27b-2x3090": (
        "nvidia/Qwen3.6-27B-NVFP4",
        {
            "speculative_tokens": 3,
            "enable_prefix_caching": True,
            "kv_cache_dtype": "fp8_e5m2",
            "runtime_version": "0.24.0",
        },
    ),
    "fi-qwen36-35b-nvfp4-gb10": (
        "nvidia/Qwen3.6-35B-A3B-NVFP4",
        {
            "speculative_tokens": 2,
            "enable_prefix_caching": True,
            "kv_cache_dtype": "fp8",
            "runtime_version": "0.20.2",
        },
    ),
    "fi-27b-fp8-l40s-882": ("Qwen/Qwen3.5-27B", OFF),
    "fi-27b-fp8-l40s-975": ("Qwen/Qwen3.5-27B", OFF),
    "fi-qwen36-27b-24gb-seqs4": ("Qwen/Qwen3.5-27B", OFF | {"kv_cache_dtype": "fp8"}),
    "fi-qwen36-27b-24gb-seqs8": ("Qwen/Qwen3.5-27B", OFF | {"kv_cache_dtype": "fp8"}),
    "fi-qwen35-08b-12gb": ("Qwen/Qwen3.5-0.8B", OFF),
}


@cache
def records() -> dict[str, dict[str, Any]]:
    lines = RECORDS_FILE.read_text(encoding="utf-8").splitlines()
    return {record["id"]: record for record in map(json.loads, lines)}


@cache
def published(name: str) -> Model:
    lines = (SHARED / "configs" / "index.jsonl").read_text(encoding="utf-8").splitlines()
    files = {entry["id"]: Path(entry["file"]).name for entry in map(json.loads, lines)}
    text = (SHARED / "configs" / "configs" / files[name]).read_text(encoding="utf-8")
    return read(RawModel(id=name, source="published config", config=json.loads(text)))


@pytest.mark.parametrize("name", sorted(RECORDS))
def test_that_the_pool_of_a_hybrid_is_cut_as_the_log_says(name: str) -> None:
    if name not in records():
        pytest.skip(f"{name} is not among the records beside this checkout")
    record, (config, stated) = records()[name], RECORDS[name]
    reported = record["reported"]
    chosen = Deployment(
        max_model_len=record["max_model_len"],
        tensor_parallel_size=record.get("tp", 1),
        max_num_batched_tokens=record.get("max_num_batched_tokens"),
        kv_pool_bytes=int(reported["kv_available_gib"] * GIB),
        **stated,
    )
    state = size(published(config), chosen, machine(gpu(90.0), chosen.ranks)).budget.sequence_state
    # The pool is printed in hundredths of a GiB, which is worth less than one block.
    slack = 0.006 / reported["kv_available_gib"]
    assert state.max_concurrency == pytest.approx(reported["max_concurrency"], rel=slack + 0.004)
    assert state.pool_tokens == pytest.approx(reported["kv_tokens"], rel=slack + 0.0025)
