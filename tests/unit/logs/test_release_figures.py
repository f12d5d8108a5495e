"""What releases state of their memory in their own words, figure by figure."""

from __future__ import annotations

import pytest

from engine.budget.model import Region
from engine.logs.diagnosis import Kind, diagnose
from tests.helpers import logs
from tests.helpers.log_lines import (
    BUFFERS,
    BUILD,
    CONTEXT,
    FILE,
    LLAMA,
    OLLAMA,
    RUNNER,
    STAMP,
    STARTED,
)
from tests.helpers.logs import GIB, MIB, frame, reading, torch_oom


def test_that_ollamas_own_engine_states_each_device() -> None:
    found = reading(OLLAMA + RUNNER + BUFFERS + STARTED)
    cuda, host = (next(r for r in found.ranks if r.name == name) for name in ("CUDA0", "CPU"))
    assert cuda.bytes_of("weights") == round(6.8 * GIB)
    assert cuda.bytes_of("kv_pool") == round(1.3 * GIB)
    assert cuda.bytes_of("compute") == round(519.5 * MIB)
    assert host.bytes_of("weights") == round(787.5 * MIB)


def test_that_a_further_load_is_of_the_same_release_and_device() -> None:
    device = STAMP + (
        'msg="inference compute" id=GPU-c7 library=CUDA compute=8.9 name=CUDA0 description="NVIDIA '
        'GeForce RTX 4070" type=discrete total="12.0 GiB" available="10.9 GiB"\n'
    )
    found = reading(OLLAMA + device + RUNNER + BUFFERS + STARTED + RUNNER + BUFFERS)
    assert (found.version, found.runs) == ("0.20.5", 2)
    (cuda,) = (rank for rank in found.ranks if rank.name == "CUDA0")
    assert cuda.bytes_of("total") == 12 * GIB


def test_that_tensorrt_llms_profile_is_read_region_by_region() -> None:
    stamp = "[12/20/2025-04:21:50] [TRT-LLM] [I] "
    found = reading(
        f"{stamp}Memory used after loading model weights (inside torch) in memory usage profiling: "
        f"15.32 GiB\n{stamp}Memory used after loading model weights (outside torch) in memory usage"
        f" profiling: 0.78 GiB\n{stamp}Memory dynamically allocated during inference (inside torch)"
        f" in memory usage profiling: 0.85 GiB\n{stamp}Memory used outside torch (e.g., NCCL and "
        f"CUDA graphs) in memory usage profiling: 1.28 GiB\n{stamp}Peak memory during memory usage "
        "profiling (torch + non-torch): 17.45 GiB, available KV cache memory when calculating max "
        "tokens: 5.95 GiB, fraction is set 0.89, kv size is 73728. device total memory 23.70 GiB\n"
    )
    (rank,) = found.ranks
    stated = {
        name: rank.bytes_of(name) for name in ("weights", "activations", "non_torch", "total")
    }
    gib = {"weights": 15.32, "activations": 0.85, "non_torch": 1.28, "total": 23.70}
    assert stated == {name: round(size * GIB) for name, size in gib.items()}


def test_that_spaces_of_a_web_page_part_no_figure_from_its_unit() -> None:
    text = logs.VLLM_HEAD + torch_oom(asked="640.00 MiB").replace(" MiB", "\u00a0MiB")
    failure = reading(text.replace(" GiB", "\u202fGiB")).failure
    assert failure is not None
    assert failure.bytes_of("requested") == 640 * MIB
    assert failure.bytes_of("total") == round(23.64 * GIB)


def test_that_thousands_are_not_taken_for_a_decimal_comma() -> None:
    found = reading(logs.VLLM_POOL)
    tokens = found.stated("kv_tokens")
    assert tokens is not None
    assert tokens.size_bytes == 43_488


def test_that_the_everyday_rest_of_an_allocator_is_not_called_fragmentation() -> None:
    # 10.86 − 10.80 GiB lie unused: half a hundredth of the device.
    found = reading(
        frame("transformers/models/gpt2/modeling_gpt2.py", "forward")
        + "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 11.17 GiB total "
        "capacity; 10.80 GiB already allocated; 5.31 MiB free; 10.86 GiB reserved in total by "
        "PyTorch)\n"
    )
    cause = diagnose(found)
    assert cause is not None
    assert (cause.kind, cause.region) == (Kind.PREFILL, Region.ACTIVATIONS)


def test_that_a_model_in_several_files_is_held_whole() -> None:
    # Qwen3 235B in three files: one line a file, one after the other, beside the GPU's.
    found = reading(
        BUILD + FILE + "load_tensors: offloaded 95/95 layers to GPU\n"
        "load_tensors: CUDA0 model buffer size = 15191.95 MiB\n"
        "load_tensors: CPU_Mapped model buffer size = 46604.38 MiB\n"
        "load_tensors: CPU_Mapped model buffer size = 47377.52 MiB\n"
        "load_tensors: CPU_Mapped model buffer size = 42166.10 MiB\n" + CONTEXT
    )
    stated = {rank.name: rank.bytes_of("weights") for rank in found.ranks}
    assert stated == {
        "CUDA0": round(15191.95 * MIB),
        "CPU": round(46604.38 * MIB) + round(47377.52 * MIB) + round(42166.10 * MIB),
    }


@pytest.mark.parametrize("beside", [728, None])
@pytest.mark.parametrize(
    "name", ["Vulkan0 (AMD Radeon RX 6800 (RADV NAVI21))", "MTL0 (Apple M3 Max)"]
)
def test_that_a_breakdown_is_read_whatever_its_device_is_called(
    name: str, beside: int | None
) -> None:
    rest = "" if beside is None else f" +         {beside}"
    row = f"llama_memory_breakdown_print: |   - {name} | 16368 = 15507 + ( 133 =    60 +      54 +"
    (rank,) = reading(f"{row}      19){rest} |\n").ranks
    assert rank.bytes_of("weights") == 60 * MIB
    assert rank.bytes_of("total") == 16368 * MIB
    assert rank.bytes_of("unaccounted") == (None if beside is None else beside * MIB)


@pytest.mark.parametrize(
    "line",
    [
        "INFO Graph capturing finished in 3 secs, took -0.22 GiB\n",
        "INFO Estimated CUDA graph memory: -0.90 GiB total\n",
        "[2026-09-12 00:22:48] Init torch distributed ends. mem usage=-0.10 GB\n",
    ],
)
def test_that_no_region_is_stated_to_hold_less_than_nothing(line: str) -> None:
    found = reading(line)
    assert found.understood == 1
    assert all(not rank.facts for rank in found.ranks)


def test_that_blocks_are_counted_however_they_are_written() -> None:
    for line in ("# CUDA blocks: 406, # CPU blocks: 655", "# GPU blocks: 406"):
        blocks = reading(f"INFO 02-10 12:00:00 executor_base.py:1] {line}\n").stated("kv_blocks")
        assert blocks is not None
        assert blocks.size_bytes == 406


def test_that_the_profile_of_an_early_vllm_is_read() -> None:
    (rank,) = reading(
        "INFO 11-20 12:00:00 worker.py:232] Memory profiling results: total_gpu_memory=23.58GiB "
        "initial_memory_usage=15.34GiB peak_torch_memory=17.06GiB "
        "memory_usage_post_profile=15.35GiB non_torch_memory=0.35GiB kv_cache_size=3.81GiB "
        "gpu_memory_utilization=0.90\n"
    ).ranks
    assert rank.bytes_of("kv_pool") == round(3.81 * GIB)
    assert rank.bytes_of("non_torch") == round(0.35 * GIB)
    assert rank.bytes_of("total") == round(23.58 * GIB)


def test_that_ollamas_first_offload_lines_are_read() -> None:
    found = reading(
        'time=2024-05-01T10:00:00.000Z level=INFO source=memory.go:133 msg="offload to cuda" '
        'layers.model=29 layers.offload=29 memory.available="[78.6 GiB]" '
        'memory.required.full="3.7 GiB" memory.required.kv="896.0 MiB" '
        'memory.weights.total="2.4 GiB" memory.graph.full="424.0 MiB"\n'
    )
    (rank,) = found.ranks
    assert rank.bytes_of("weights") == round(2.4 * GIB)
    assert rank.bytes_of("kv_pool") == 896 * MIB
    assert found.whole["offloaded"].size_bytes == 29


def test_that_an_engine_of_tensorrt_states_its_weights_and_its_cache() -> None:
    (rank,) = reading(
        "[TensorRT-LLM][INFO] Loaded engine size: 6670 MiB\n"
        "[TensorRT-LLM][INFO] [MemUsageChange] TensorRT-managed allocation in IExecutionContext "
        "creation: CPU +0, GPU +16, now: CPU 0, GPU 6683 (MiB)\n"
        "[TensorRT-LLM][INFO] Allocate 69524783104 bytes for k/v cache.\n"
    ).ranks
    facts = {name: rank.bytes_of(name) for name in ("weights", "activations", "kv_pool")}
    assert facts == {
        "weights": 6670 * MIB,
        "activations": 16 * MIB,
        "kv_pool": 69_524_783_104,
    }


def test_that_ik_llama_cpp_is_told_from_the_program_it_comes_from() -> None:
    text = LLAMA + "llama_init_from_model: attn_max_b = 512\n"
    assert reading(text).runtime == "ik_llama.cpp"
    assert reading(LLAMA).runtime == "llama.cpp"


@pytest.mark.parametrize(
    ("line", "kernel"),
    [
        ("INFO [cuda.py:221] Using Flash Attention backend on V1 engine.", "Flash Attention"),
        ("INFO [selector.py:10] Using XFormers backend.", "XFormers"),
        (
            "[cuda.py:334] Using FLASH_ATTN_MLA attention backend out of potential backends: ['A']",
            "FLASH_ATTN_MLA",
        ),
        (
            "[x] WARNING Attention backend not explicitly specified. Use fa3 backend by default.",
            "fa3",
        ),
        ("server_args=ServerArgs(model_path='a/b', attention_backend='triton')", "triton"),
        ("text_generation_launcher: Using attention flashinfer - Prefix caching 0", "flashinfer"),
        ("sched_reserve: Flash Attention was auto, set to enabled", "flash-attn on"),
        ("llama_context: flash_attn    = auto", ""),
        ("llama_context: flash_attn    = 0", "flash-attn off"),
    ],
)
def test_that_the_chosen_attention_kernel_is_read(line: str, kernel: str) -> None:
    assert reading(f"{line}\n").kernel == kernel


def test_that_the_list_of_a_computers_devices_names_no_rank_of_its_own_memory() -> None:
    found = reading(
        "0.00.1 I cmn  common_param:   - CUDA0   : NVIDIA GeForce RTX 4090 (24080 MiB, 23100 MiB "
        "free)\n0.00.1 I cmn  common_param:   - CPU     : AMD EPYC (24105 MiB, 24105 MiB free)\n"
    )
    (rank,) = found.ranks
    assert (rank.name, rank.bytes_of("total")) == ("CUDA0", 24080 * MIB)
    assert rank.bytes_of("free_at_start") == 23100 * MIB


TGI_ARGUMENTS = """\
INFO text_generation_launcher: Args {
    model_id: "mistralai/Mistral-7B-v0.1",
    revision: None,
    num_shard: Some(
        2,
    ),
    max_total_tokens: Some(
        4096,
    ),
    max_batch_prefill_tokens: Some(
        4145,
    ),
    cuda_memory_fraction: 0.9,
    cors_allow_origin: [],
}
INFO shard-manager: text_generation_launcher: Starting shard rank=0
"""


@pytest.mark.parametrize(
    "before",
    [
        "",
        "tgi-1  | ",
        "2026-11-02T10:41:05.123456789Z stderr F ",
        "Nov 02 10:41:05 host tgi[12]: ",
    ],
)
def test_that_settings_of_a_line_each_are_read_whatever_stands_before_them(before: str) -> None:
    found = reading("".join(before + line for line in TGI_ARGUMENTS.splitlines(keepends=True)))
    assert found.runtime == "tgi"
    assert found.settings == {
        "model": "mistralai/Mistral-7B-v0.1",
        "tensor_parallel_size": 2,
        "max_model_len": 4096,
        "max_num_batched_tokens": 4145,
        "gpu_memory_utilization": 0.9,
    }


def test_that_a_list_without_an_end_takes_nothing_with_it() -> None:
    head = "text_generation_launcher: Args {\n"
    found = reading(head + "    model_id: x,\n" * 400 + logs.VLLM_LOADED)
    assert found.stated("weights") is not None


def test_that_the_model_of_ollamas_own_engine_and_of_mlx_is_named() -> None:
    line = (
        'level=INFO source=ggml.go:136 msg="" architecture=qwen3 file_type=Q4_K_M name="Qwen3 8B" '
        'description="" num_tensors=399 num_key_values=28\n'
    )
    assert reading(line).whole["model"].value == "Qwen3 8B"
    command = "$ mlx_lm.server --model mlx-community/Qwen3-8B-4bit --port 8080\n"
    assert reading(command).settings["model"] == "mlx-community/Qwen3-8B-4bit"
