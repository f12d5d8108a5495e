"""A plan that is written as a command and read back is the same plan, or its loss is told."""

from __future__ import annotations

from dataclasses import fields

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.deployment.spec import Deployment
from engine.launch.read import read
from engine.runtimes import registry
from engine.runtimes.llama_cpp.builds import build_of
from engine.runtimes.llama_cpp.settings import chosen_cells
from engine.units import MIB
from tests.helpers.commands import text, written

COUNT = st.integers(1, 2**20)
SMALL = st.integers(1, 8)
SHARE = st.floats(0.01, 1, allow_nan=False)
MAYBE = st.sampled_from([True, False])
YES = st.just(True)

VLLM = {
    "max_model_len": st.one_of(COUNT, st.just(-1)),
    "tensor_parallel_size": SMALL,
    "pipeline_parallel_size": SMALL,
    "data_parallel_size": SMALL,
    "decode_context_parallel_size": SMALL,
    "pp_layer_partition": st.lists(COUNT, min_size=2, max_size=4).map(tuple),
    "enable_expert_parallel": YES,
    "max_num_seqs": COUNT,
    "max_num_batched_tokens": COUNT,
    "gpu_memory_utilization": SHARE,
    "kv_cache_memory_bytes": COUNT,
    "num_gpu_blocks_override": COUNT,
    "block_size": COUNT,
    "enforce_eager": YES,
    "language_model_only": YES,
    "enable_prefix_caching": MAYBE,
    "speculative_tokens": SMALL,
    "max_loras": SMALL,
    "kv_cache_dtype": st.sampled_from(registry.get("vllm").kv_cache_dtypes),
    "weight_format": st.sampled_from(["fp16", "fp32", "fp8", "fp8-block", "fp8-channel", "nf4"]),
}
SGLANG = {
    "max_model_len": COUNT,
    "tensor_parallel_size": st.sampled_from([4, 8]),
    "pipeline_parallel_size": SMALL,
    "mem_fraction_static": SHARE,
    "chunked_prefill_size": st.one_of(COUNT, st.just(-1)),
    "max_running_requests": COUNT,
    "max_total_tokens": COUNT,
    "cuda_graph_max_bs": COUNT,
    "page_size": COUNT,
    "enable_expert_parallel": YES,
    "swa_full_tokens_ratio": SHARE,
    "max_mamba_cache_size": COUNT,
    "mamba_full_memory_ratio": SHARE,
    "enforce_eager": YES,
    "enable_prefix_caching": st.just(False),
    "speculative_tokens": SMALL,
    "max_loras": SMALL,
    "kv_cache_dtype": st.sampled_from(registry.get("sglang").kv_cache_dtypes),
    "weight_format": st.sampled_from(["fp16", "fp8", "mxfp8"]),
}
LLAMA_CPP = {
    "max_model_len": st.integers(1, 2**18),
    "n_ctx": st.integers(0, 2**20),
    "concurrency": st.integers(1, 64),
    "n_parallel": st.integers(1, 64),
    "kv_unified": MAYBE,
    "n_batch": COUNT,
    "n_ubatch": COUNT,
    "cache_type_k": st.sampled_from(["f16", "q8_0", "q4_0"]),
    "cache_type_v": st.sampled_from(["f16", "q8_0", "q4_0"]),
    "flash_attn": st.sampled_from(["on", "off"]),
    "swa_full": YES,
    "n_gpu_layers": st.integers(-2, 99),
    "n_cpu_moe": SMALL,
    "split_mode": st.sampled_from(["layer", "none", "tensor"]),
    "tensor_split": st.lists(SHARE, min_size=2, max_size=4).map(tuple),
    "mmap": st.just(False),
    "repack": st.just(False),
    "offload_kqv": st.just(False),
    "op_offload": st.just(False),
    "language_model_only": YES,
    "cache_ram_bytes": st.integers(0, 10_000).map(lambda n: n * MIB),
    "speculative_tokens": SMALL,
}
OLLAMA = {
    "max_model_len": COUNT,
    "n_parallel": SMALL,
    "n_batch": COUNT,
    "n_ubatch": COUNT,
    "kv_cache_dtype": st.sampled_from(["f16", "q8_0", "q4_0"]),
    "flash_attn": st.sampled_from(["on", "off"]),
    "gpu_overhead_bytes": COUNT,
    "sched_spread": YES,
    "n_gpu_layers": st.integers(0, 99),
    "n_cpu_moe": SMALL,
    "cache_ram_bytes": st.integers(0, 10_000).map(lambda n: n * MIB),
}
MLX = {
    "prefill_step_size": COUNT,
    "kv_bits": st.sampled_from([2.0, 4.0, 8.0]),
    "kv_group_size": st.sampled_from([32, 64, 128]),
    "quantized_kv_start": COUNT,
    "max_kv_size": COUNT,
}
TRANSFORMERS = {
    "max_model_len": COUNT,
    "concurrency": st.integers(2, 64),
    "attn_implementation": st.sampled_from(["sdpa", "eager", "flash_attention_2"]),
    "cache_implementation": st.sampled_from(["dynamic", "static", "offloaded"]),
    "num_beams": SMALL,
    "prefill_chunk_size": COUNT,
    "device_map": st.sampled_from(["auto", "balanced", "sequential", "none"]),
    "weight_format": st.sampled_from(["fp16", "fp32", "nf4", "nf4-plain", "int8"]),
}
_TOTALS = {"max_model_len", "n_ctx", "n_parallel", "kv_unified", "concurrency"}
"""Fields of llama.cpp that say one thing in several ways."""


def _there_and_back(runtime, release, plan):
    """The launch, and the plan that is read of it."""
    launch = written(runtime, runtime_version=release, count=64, **plan)
    command = launch.forms[0].text
    if runtime == "ollama":
        command += "\n" + text(launch, "modelfile")
    return launch, read(command)


def _lost(plan, found, launch):
    """Fields that came back different and are not told."""
    default = Deployment()
    return {
        name: (value, getattr(found.deployment, name))
        for name, value in plan.items()
        if value != getattr(default, name)
        and getattr(found.deployment, name) != value
        and name not in launch.unsaid
    }


@pytest.mark.parametrize(
    ("runtime", "table"),
    [("vllm", VLLM), ("sglang", SGLANG), ("mlx", MLX), ("transformers", TRANSFORMERS)],
)
@settings(deadline=None)
@given(data=st.data())
def test_that_a_plan_comes_back_whole_or_its_loss_is_told(runtime, table, data):
    # Over one device there is nothing to spread, and no word for it in SGLang.
    always = {"tensor_parallel_size"} if runtime == "sglang" else set()
    needed = {name: table[name] for name in always}
    others = {name: values for name, values in table.items() if name not in always}
    plan = data.draw(st.fixed_dictionaries(needed, optional=others))
    release = data.draw(st.sampled_from(registry.get(runtime).versions))
    launch, found = _there_and_back(runtime, release, plan)
    assert found.runtime == runtime
    assert not found.strays
    lost = _lost(plan, found, launch)
    if "weight_format" in lost:
        # Which file holds a format that the release doesn't make is told in a remark.
        assert any("name the model that holds them" in note for note in launch.notes)
        lost.pop("weight_format")
    assert not lost


@settings(deadline=None)
@given(plan=st.fixed_dictionaries({}, optional=OLLAMA))
def test_that_ollamas_server_and_modelfile_say_the_plan_together(plan):
    launch = written("ollama", **plan)
    server, model = read(launch.forms[0].text), read(text(launch, "modelfile"))
    both = model.stated | server.stated
    assert {name: both[name] for name in plan} == plan
    assert not launch.unsaid


@settings(deadline=None)
@given(
    plan=st.fixed_dictionaries({}, optional=LLAMA_CPP),
    build=st.sampled_from([f"b{n}" for n in (5456, 6400, 7710, 8352, 9538, 10566, 11549)]),
)
def test_that_a_plan_for_llama_server_comes_back_whole_or_its_loss_is_told(plan, build):
    launch, found = _there_and_back("llama.cpp", build, plan)
    assert not found.strays
    own = {name: value for name, value in plan.items() if name not in _TOTALS}
    if build == "b5456" and own.get("flash_attn") == "off":
        own.pop("flash_attn")  # off is what it does where nothing is said
    if own.get("n_gpu_layers") == -1 and "n_gpu_layers" not in launch.unsaid:
        own.pop("n_gpu_layers")  # auto is what a build before b7710 does not know
    assert not _lost(own, found, launch)


@settings(deadline=None)
@given(plan=st.fixed_dictionaries({}, optional={n: LLAMA_CPP[n] for n in sorted(_TOTALS)}))
def test_that_llama_server_is_given_the_same_cells_and_slots(plan):
    asked = Deployment(runtime="llama.cpp", **plan)
    _, found = _there_and_back("llama.cpp", "b11549", plan)
    assert chosen_cells(found.deployment) == chosen_cells(asked)
    assert _slots(found.deployment) == _slots(asked)


def _slots(plan):
    """Slots, and whether they share a cache: by b11549's own rule (``server.cpp``)."""
    default = build_of("b11549").default_slots
    if plan.n_parallel is not None:
        return plan.n_parallel, bool(plan.kv_unified)
    if plan.concurrency > default:
        return plan.concurrency, bool(plan.kv_unified)
    return default, plan.kv_unified is not False


@pytest.mark.parametrize("form", ["docker", "command"])
@pytest.mark.parametrize(
    ("runtime", "plan"),
    [
        ("vllm", {"max_model_len": 4096, "tensor_parallel_size": 2, "speculative_tokens": 3,
                  "pp_layer_partition": (10, 26)}),
        ("sglang", {"max_model_len": 4096, "tensor_parallel_size": 2}),
        ("llama.cpp", {"max_model_len": 4096, "tensor_split": (3.0, 1.0), "flash_attn": "on"}),
    ],
)  # fmt: skip
def test_that_a_container_says_the_same_as_the_command(runtime, plan, form):
    launch = written(runtime, count=2, **plan)
    found = read(text(launch, form))
    assert found.runtime == runtime
    assert not found.strays
    assert {name: found.stated[name] for name in plan} == plan


def test_that_every_setting_of_a_plan_is_among_those_that_are_tried():
    # A field that is added later is thought of here, or it would be lost unseen.
    tried = set().union(VLLM, SGLANG, LLAMA_CPP, OLLAMA, MLX, TRANSFORMERS)
    elsewhere = {
        "runtime", "runtime_version", "platform", "backend", "live_tokens", "kv_pool_bytes",
        "enable_dp_attention", "max_lora_rank", "draft_model", "n_outputs_max", "batch_size",
        "prompt_len",
    }  # fmt: skip
    assert {field.name for field in fields(Deployment)} == tried | elsewhere
