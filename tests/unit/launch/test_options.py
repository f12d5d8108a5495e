"""Every command is one that its runtime's own parser takes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.launch import dialects
from engine.runtimes import registry
from tests.helpers.commands import written
from tests.helpers.llama_arguments import parsed

RECORDS = [
    json.loads(line)
    for line in (Path(__file__).parents[2] / "evidence" / "launch_options.jsonl")
    .read_text(encoding="utf-8")
    .splitlines()
]
"""Options of releases, from their source or their --help (packaging/data/launch_options.py)."""
_RELEASED = [r for r in RECORDS if not r["runtime"].startswith("mlx")]
_ALL = {
    "vllm": {
        "max_model_len": 8192, "tensor_parallel_size": 2, "pipeline_parallel_size": 2,
        "data_parallel_size": 2, "enable_expert_parallel": True, "max_num_seqs": 8,
        "decode_context_parallel_size": 2, "max_num_batched_tokens": 4096,
        "gpu_memory_utilization": 0.9, "kv_cache_memory_bytes": 2**30, "block_size": 32,
        "num_gpu_blocks_override": 100, "enforce_eager": True, "language_model_only": True,
        "enable_prefix_caching": True, "speculative_tokens": 3, "max_loras": 2,
        "max_lora_rank": 32, "weight_format": "fp16",
    },
    "sglang": {
        "max_model_len": 8192, "tensor_parallel_size": 4, "pipeline_parallel_size": 2,
        "data_parallel_size": 4, "enable_dp_attention": True, "enable_expert_parallel": True,
        "mem_fraction_static": 0.8, "chunked_prefill_size": 4096, "max_running_requests": 8,
        "max_total_tokens": 10_000, "cuda_graph_max_bs": 8, "page_size": 16,
        "swa_full_tokens_ratio": 0.5, "max_mamba_cache_size": 8, "mamba_full_memory_ratio": 0.5,
        "enforce_eager": True, "enable_prefix_caching": False, "speculative_tokens": 3,
        "max_loras": 2, "weight_format": "fp16",
    },
    "llama.cpp": {
        "max_model_len": 8192, "concurrency": 8, "kv_unified": True, "n_batch": 1024,
        "n_ubatch": 256, "cache_type_k": "q8_0", "cache_type_v": "q8_0", "flash_attn": "on",
        "swa_full": True, "n_gpu_layers": 20, "n_cpu_moe": 3, "split_mode": "layer",
        "tensor_split": (3.0, 1.0), "mmap": False, "repack": False, "offload_kqv": False,
        "op_offload": False, "language_model_only": True, "cache_ram_bytes": 0,
        "speculative_tokens": 2,
    },
}  # fmt: skip


def _options(words):
    """Flags among ``words``, and the value of each."""
    pairs = zip(words, [*words[1:], ""], strict=True)
    return {word: value for word, value in pairs if word.startswith("-") and not word[1].isdigit()}


@pytest.mark.parametrize("record", _RELEASED, ids=lambda r: f"{r['runtime']} {r['release']}")
def test_that_a_release_is_given_only_options_that_it_takes(record):
    runtime = record["runtime"]
    launch = written(runtime, runtime_version=record["release"], **_ALL[runtime])
    options = record["options"]
    said = _options(launch.words)
    if runtime == "sglang":
        said.pop("-m")  # of Python
    # BooleanOptionalAction makes the opposite of each of vLLM's switches.
    named = {name: f"--{name.removeprefix('--no-')}" for name in said if name not in options}
    assert set(named.values()) <= set(options)
    for name, value in said.items():
        choices = options.get(name)
        assert not choices or value in map(str, choices), name
    assert len(said) >= 8


@pytest.mark.parametrize("record", _RELEASED, ids=lambda r: f"{r['runtime']} {r['release']}")
def test_that_a_release_is_given_only_cache_types_that_it_takes(record):
    runtime = record["runtime"]
    flag = "--kv-cache-dtype" if runtime != "llama.cpp" else "-ctk"
    taken = record["options"][flag] or registry.get("llama.cpp").kv_cache_dtypes
    for kind in registry.get(runtime).kv_cache_dtypes:
        launch = written(runtime, runtime_version=record["release"], kv_cache_dtype=kind)
        said = _options(launch.words).get(flag)
        assert said in (*taken, None)
        assert said or kind == "auto" or "kv_cache_dtype" in launch.unsaid


@pytest.mark.parametrize(
    "record", [r for r in RECORDS if r["runtime"].startswith("mlx")],
    ids=lambda r: f"{r['runtime']} {r['release']}",
)  # fmt: skip
def test_that_mlx_is_given_only_options_of_the_program_that_is_named(record):
    settings = {"prefill_step_size": 512, "kv_bits": 8.0, "kv_group_size": 64, "concurrency": 2}
    if record["runtime"] == "mlx_lm.generate":
        settings |= {"max_kv_size": 4096}
    launch = written("mlx", runtime_version=record["release"], gpu="M4 Pro 48 GB", **settings)
    if launch.words[0] == record["runtime"]:
        assert set(_options(launch.words)) <= set(record["options"])
    else:
        assert record["runtime"] == "mlx_lm.server"
        assert "--kv-bits" not in record["options"]


def test_that_llama_servers_own_parser_reads_the_plan_from_the_command():
    launch = written("llama.cpp", **_ALL["llama.cpp"])
    found = parsed(*launch.words[1:])
    assert found == {
        "plimsoll": 1,
        "n_ctx": 8 * 8192,
        "n_parallel": 8,
        "kv_unified": True,
        "n_batch": 1024,
        "n_ubatch": 256,
        "n_gpu_layers": 20,
        "swa_full": True,
        "cache_ram_mib": 0,
        "no_kv_offload": True,
        "no_op_offload": True,
        "no_extra_bufts": True,
        "no_mmproj": True,
        "cache_type_k": "GGML_TYPE_Q8_0",
        "cache_type_v": "GGML_TYPE_Q8_0",
        "flash_attn_type": "LLAMA_FLASH_ATTN_TYPE_ENABLED",
        "split_mode": "LLAMA_SPLIT_MODE_LAYER",
        "load_mode": "LLAMA_LOAD_MODE_NONE",
        "model": "Qwen3-8B-BF16.gguf",
        "tensor_split": [3.0, 1.0],
    }


def test_that_the_parser_would_have_refused_a_wrong_command():
    # What b11549 no longer takes: the test above can fail.
    assert parsed("-m", "x.gguf", "--no-mmap") is None
    assert parsed("-m", "x.gguf", "-fa", "perhaps") is None


@pytest.mark.parametrize(
    ("settings", "cells", "slots", "unified"),
    [
        ({"max_model_len": 8192}, 8192, -1, False),
        ({"max_model_len": 8192, "concurrency": 4}, 4 * 8192, -1, False),
        ({"max_model_len": 8192, "concurrency": 6}, 6 * 8192, 6, False),
        ({"max_model_len": 8192, "kv_unified": False}, 4 * 8192, 4, False),
        ({"n_ctx": 0}, 0, -1, False),
        ({"n_ctx": 40_000, "n_parallel": 3, "kv_unified": True}, 40_000, 3, True),
    ],
)
def test_that_context_and_slots_reach_llama_server(settings, cells, slots, unified):
    # -1 slots: llama-server makes four that share one cache (server.cpp).
    found = parsed(*written("llama.cpp", **settings).words[1:])
    assert (found["n_ctx"], found["n_parallel"], found["kv_unified"]) == (cells, slots, unified)


def test_that_harmless_flags_are_flags_of_no_table():
    for runtime in ("vllm", "sglang", "llama.cpp", "mlx"):
        dialect = dialects.of(runtime)
        names = {name for flag in dialect.flags for name in (*flag.names, *flag.opposite)}
        assert not names & set(dialect.harmless)
