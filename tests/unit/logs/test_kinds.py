"""Every kind of failure in the words of every runtime, as they print them."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from engine.budget.model import Region
from engine.logs import words
from engine.logs.diagnosis import Kind, diagnose
from engine.logs.why import happened
from engine.units import UnitSystem
from tests.helpers import logs
from tests.helpers.logs import GIB, MIB, explained, frame, reading, torch_oom

SERVED = logs.VLLM_HEAD + logs.VLLM_LOADED + logs.VLLM_POOL + logs.VLLM_UP
LLAMA = """\
build: 6123 (79c1160b) with cc (Debian 12.2.0-14) 12.2.0 for x86_64-linux-gnu
llama_model_load_from_file_impl: using device CUDA0 (NVIDIA GeForce RTX 4090) - 23886 MiB free
llama_model_loader: loaded meta data with 29 key-value pairs and 292 tensors from \
/models/Meta-Llama-3.1-8B-Instruct-Q4_K_M.gguf (version GGUF V3 (latest))
load_tensors: offloaded 33/33 layers to GPU
load_tensors:        CUDA0 model buffer size =  4403.49 MiB
llama_context: n_ctx         = 8192
llama_kv_cache:      CUDA0 KV buffer size =  1024.00 MiB
llama_context:      CUDA0 compute buffer size =   258.50 MiB
"""
UP = "main: server is listening on http://127.0.0.1:8080\n"
GENERATE = frame("transformers/generation/utils.py", "_sample")
CONTAINER = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {asked}. GPU 0 has a total "
    "capacity of 23.64 GiB of which {free} is free. Process 912 has {mine} memory in use. Of the "
    "allocated memory 22.80 GiB is allocated by PyTorch, and 12.50 MiB is reserved by PyTorch but "
    "unallocated.\n"
)
"""A container hides which process is one's own, so that it is named as any other."""


@dataclass(frozen=True)
class Case:
    text: str
    kind: Kind
    region: Region | None
    runtime: str = ""
    short_bytes: int | None = None
    is_soft: bool = False


CASES = {
    # Load.
    "Transformers, warm-up of a load": Case(
        frame("transformers/modeling_utils.py", "_load_pretrained_model")
        + frame("transformers/modeling_utils.py", "caching_allocator_warmup")
        + torch_oom(asked="13.91 GiB", free="1.00 GiB"),
        Kind.LOAD, Region.WEIGHTS, "transformers", round(13.91 * GIB) - GIB,
    ),
    "llama.cpp on Vulkan, weights": Case(
        LLAMA.split("load_tensors: off", maxsplit=1)[0].replace("CUDA", "Vulkan")
        + "ggml_vulkan: Device memory allocation of size 4617396224 failed.\n"
        "ggml_vulkan: vk::Device::allocateMemory: ErrorOutOfDeviceMemory\n"
        "llama_model_load: error loading model: unable to allocate Vulkan0 buffer\n",
        Kind.LOAD, Region.WEIGHTS, "llama.cpp", 4_617_396_224,
    ),
    "llama.cpp, projector": Case(
        LLAMA
        + "clip_model_loader: model name:   Gemma\nclip_ctx: CLIP using CUDA0 backend\n"
        "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 921.60 MiB on device 0: cudaMalloc "
        "failed: out of memory\n"
        "alloc_tensor_range: failed to allocate CUDA0 buffer of size 966367642\n"
        "srv    load_model: failed to load multimodal model, 'mmproj.gguf'\n",
        Kind.LOAD, Region.WEIGHTS, "llama.cpp", round(921.6 * MIB),
    ),
    # A long prefill.
    "Transformers, a step": Case(
        GENERATE
        + frame("transformers/models/llama/modeling_llama.py", "forward")
        + torch_oom(asked="3.91 GiB", free="1.00 GiB"),
        Kind.PREFILL, Region.ACTIVATIONS, "transformers", round(3.91 * GIB) - GIB,
    ),
    "Transformers, logits": Case(
        GENERATE
        + "    logits = self.lm_head(hidden_states[:, slice_indices, :])\n"
        + torch_oom(asked="3.91 GiB", free="1.00 GiB"),
        Kind.PREFILL, Region.ACTIVATIONS, "transformers", round(3.91 * GIB) - GIB,
    ),
    "vLLM, CUDA's own words while it serves": Case(
        SERVED + "torch.AcceleratorError: CUDA error: out of memory\n",
        Kind.PREFILL, Region.ACTIVATIONS, "vllm",
    ),
    "llama.cpp, its pool grows while it serves": Case(
        LLAMA + UP + "CUDA error: out of memory\n"
        "  current device: 0, in function alloc at /src/ggml/src/ggml-cuda/ggml-cuda.cu:450\n"
        "  cuMemCreate(&handle, reserve_size, &prop, 0)\n",
        Kind.PREFILL, Region.ACTIVATIONS, "llama.cpp",
    ),
    "llama.cpp on Metal, a step": Case(
        LLAMA.replace("CUDA0", "MTL0") + UP
        + "ggml_metal_graph_compute: command buffer 1 failed with status 5\n"
        "error: Insufficient Memory (00000008:kIOGPUCommandBufferCallbackErrorOutOfMemory)\n",
        Kind.PREFILL, Region.ACTIVATIONS, "llama.cpp",
    ),
    "MLX, one buffer": Case(
        "libc++abi: terminating due to uncaught exception of type std::runtime_error: "
        "[metal::malloc] Attempting to allocate 27487790694 bytes which is greater than the "
        "maximum allowed buffer size of 22613000192 bytes.\n",
        Kind.PREFILL, Region.ACTIVATIONS, "mlx",
    ),
    # Concurrency.
    "Transformers, the cache grows": Case(
        GENERATE
        + frame("transformers/cache_utils.py", "update")
        + torch_oom(asked="3.91 GiB", free="1.00 GiB"),
        Kind.CONCURRENCY, Region.KV_CACHE, "transformers", round(3.91 * GIB) - GIB,
    ),
    "llama.cpp on Metal, the cache": Case(
        "ggml_backend_metal_buffer_type_alloc_buffer: error: failed to allocate buffer, size = "
        "18432.00 MiB\nllama_kv_cache_init: failed to allocate buffer for kv cache\n",
        Kind.CONCURRENCY, Region.KV_CACHE, "llama.cpp", 18 * GIB,
    ),
    "vLLM, preempted": Case(
        "WARNING 05-09 00:49:33 scheduler.py:1057 Sequence group 0 is preempted by "
        "PreemptionMode.RECOMPUTE mode because there is not enough KV cache space.\n",
        Kind.CONCURRENCY, Region.KV_CACHE, "vllm", is_soft=True,
    ),
    # Memory is free, and yet.
    "an older PyTorch, in pieces": Case(
        # 22.28 − 14.05 GiB are reserved and unused.
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 23.69 "
        "GiB total capacity; 14.05 GiB already allocated; 61.81 MiB free; 22.28 GiB reserved in "
        "total by PyTorch) If reserved memory is >> allocated memory try setting max_split_size_mb "
        "to avoid fragmentation.\n",
        Kind.FRAGMENTATION, Region.ALLOCATOR,
    ),
    # Graphs.
    "SGLang, graphs in a container": Case(
        "[2026-01-01 10:00:00] server_args=ServerArgs(model_path='Qwen/Qwen3-8B', tp_size=1)\n"
        "[2026-01-01 10:00:09] Capture cuda graph begin. avail mem=1.20 GB\n"
        "Exception: Capture cuda graph failed: "
        + CONTAINER.format(asked="512.00 MiB", free="100.00 MiB", mine="23.50 GiB"),
        Kind.GRAPHS, Region.CUDA_GRAPHS, "sglang", 412 * MIB,
    ),
    # Taken: 5 GiB more than this process can hold.
    "another process in a container": Case(
        SERVED + CONTAINER.format(asked="512.00 MiB", free="100.00 MiB", mine="28.90 GiB"),
        Kind.TAKEN, Region.FOREIGN, "vllm", 412 * MIB,
    ),
    "vLLM, others moved": Case(
        "AssertionError: Error in memory profiling. Initial free memory 77.36 GiB, current free "
        "memory 78.90 GiB. This happens when other processes sharing the same container release "
        "GPU memory while vLLM is profiling during initialization.\n",
        Kind.TAKEN, Region.FOREIGN, "vllm",
    ),
    # Refused.
    "LM Studio, not a number": Case(
        "Error: Model loading was stopped due to insufficient system resources. Under the current "
        "settings, this model requires approximately NaN undefined of memory, and continuing to "
        "load it would likely overload your system and cause it to freeze.\n",
        Kind.REFUSED, None, "lmstudio",
    ),
    "SGLang, the cache in system memory": Case(
        # It leaves 10 GiB alone: 40 GB + 10 GiB − 44.87 GB.
        "ValueError: Not enough host memory available. Requesting 40.00 GB but only have 44.87 GB "
        "free. Please reduce the size of the hierarchical cache.\n",
        Kind.REFUSED, None, "sglang", 40 * 10**9 + 10 * GIB - 44_870_000_000,
    ),
    "the driver was updated": Case(
        "Failed to initialize NVML: Driver/library version mismatch\n", Kind.REFUSED, None
    ),
    "vLLM, less than nothing": Case(
        logs.VLLM_HEAD + logs.VLLM_LOADED
        + "INFO 10-08 10:41:41 [gpu_worker.py:298] Available KV cache memory: -3.25 GiB\n",
        Kind.REFUSED, Region.WEIGHTS, "vllm", round(3.25 * GIB),
    ),
    # The computer's own memory.
    "PyTorch on the CPU": Case(
        "RuntimeError: [enforce fail at alloc_cpu.cpp:116] err == 0. DefaultCPUAllocator: can't "
        "allocate memory: you tried to allocate 524288000 bytes. Error code 12 (Cannot allocate "
        "memory)\n",
        Kind.HOST, None, "", 524_288_000,
    ),
    "llama.cpp on the CPU": Case(
        "ggml_backend_cpu_buffer_type_alloc_buffer: failed to allocate buffer of size 34359738368\n"
        "llama_kv_cache_init: failed to allocate buffer for kv cache\n",
        Kind.HOST, None, "llama.cpp", 32 * GIB,
    ),
    "Python": Case('  File "x.py", line 3\nMemoryError\n', Kind.HOST, None),
    # Spilled.
    "Ollama's table": Case(
        "NAME      ID            SIZE        PROCESSOR         UNTIL\n"
        "x:latest  671ad04c21ce  24.4 GiB    7%/93% CPU/GPU    Forever\n",
        Kind.SPILLED, Region.WEIGHTS, "ollama", is_soft=True,
    ),
    "Ollama's answer": Case(
        '{"models":[{"name":"x","size":5137025024,"digest":"2a","size_vram":4137025024}]}',
        Kind.SPILLED, Region.WEIGHTS, "ollama", is_soft=True,
    ),
    # Killed.
    "a container of Kubernetes": Case(
        "    Last State:     Terminated\n      Reason:       OOMKilled\n      Exit Code:    137\n",
        Kind.KILLED, None,
    ),
    "a shell": Case("./start.sh: line 12:  4211 Killed          serve X\n", Kind.KILLED, None),
    "a shell's own line": Case("Killed\n", Kind.KILLED, None),
    "systemd": Case(
        "ollama.service: A process of this unit has been killed by the OOM killer.\n"
        "ollama.service: Main process exited, code=killed, status=9/KILL\n",
        Kind.KILLED, None,
    ),
    "Ollama's runner": Case(
        'time=2025-06-05T12:36:11.709Z level=ERROR source=sched.go msg="error loading llama '
        'server" error="llama runner process has terminated: signal: killed"\n',
        Kind.KILLED, None, "ollama",
    ),
    "TGI's shard": Case(
        "2024-01-01T00:00:00.000Z ERROR shard-manager: text_generation_launcher: Shard process was "
        "signaled to shutdown with signal 9 rank=0\n",
        Kind.KILLED, None, "tgi",
    ),
    # Libraries.
    "NCCL": Case(
        "RuntimeError: NCCL error, unhandled cuda error\nCuda failure 2 'out of memory'\n",
        Kind.RUNTIME, Region.RUNTIME,
    ),
    # It ended, and nobody says why.
    "vLLM's core": Case(
        "RuntimeError: Engine core initialization failed. See root cause above. Failed core "
        "proc(s): {}\n",
        Kind.DIED, None, "vllm",
    ),
    # Other makers' words for the same; nothing says what it was doing.
    "XPU": Case(
        "torch.OutOfMemoryError: XPU out of memory. Tried to allocate 16.00 MiB. GPU 0 has a total "
        "capacity of 7.73 GiB. Of the allocated memory 7.20 GiB is allocated by PyTorch, and 11.00 "
        "MiB is reserved by PyTorch but unallocated.\n",
        Kind.UNKNOWN, None, "", 16 * MIB,
    ),
    "NPU": Case(
        "RuntimeError: NPU out of memory. Tried to allocate 2.00 GiB (NPU 0; 60.97 GiB total "
        "capacity; 58.11 GiB already allocated; 58.11 GiB current active; 1.02 GiB free; 58.40 GiB "
        "reserved in total by PyTorch)\n",
        Kind.UNKNOWN, None, "", 2 * GIB,
    ),
    "MPS": Case(
        "RuntimeError: MPS backend out of memory (MPS allocated: 8.96 GB, other allocations: 7.53 "
        "MB, max allowed: 9.07 GB). Tried to allocate 160.00 MB on private pool.\n",
        Kind.UNKNOWN, None, "", 160_000_000,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_that_a_failure_is_of_its_kind_whoever_tells_of_it(case: Case) -> None:
    found = reading(case.text)
    cause = diagnose(found)
    assert cause is not None
    assert (cause.kind, cause.region, cause.is_soft) == (case.kind, case.region, case.is_soft)
    assert found.runtime == case.runtime
    if case.short_bytes is None:
        assert cause.short_bytes is None
    else:
        assert cause.short_bytes is not None
        assert abs(cause.short_bytes - case.short_bytes) <= 8


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_that_what_is_said_of_it_is_whole_and_holds_no_nothing(case: Case) -> None:
    found = reading(case.text)
    cause = diagnose(found)
    said = (
        words.headline(cause, found, UnitSystem.BINARY),
        *happened(cause, found, UnitSystem.BINARY),
    )
    assert len(said) > 1
    for sentence in said:
        assert sentence.strip()
        for slip in ("NaN", "nan ", "None", "inf ", "undefined", "{", "  "):
            assert slip not in sentence


def test_that_the_projector_is_named_and_the_model_is_not_called_broken() -> None:
    found = reading(CASES["llama.cpp, projector"].text)
    cause = diagnose(found)
    assert words.headline(cause, found, UnitSystem.BINARY) == (
        "This run ran out: 0.9 GiB short while loading the projector of images"
    )
    (said,) = happened(cause, found, UnitSystem.BINARY)
    assert "projector" in said
    assert "corrupt" not in said


def test_that_a_warning_that_a_limit_is_near_is_no_failure() -> None:
    text = LLAMA + (
        "ggml_metal_add_buffer: warning: current allocated size is greater than the recommended "
        "max working set size\n"
    )
    found = reading(text + UP)
    cause = diagnose(found)
    assert cause is not None
    assert cause.is_soft
    assert words.headline(cause, found, UnitSystem.BINARY) == (
        "This run came to the limit of its memory, and went on"
    )


@pytest.mark.parametrize(
    "log", ["mlock failed: Cannot allocate memory", "Killed by request", "x137"]
)
def test_that_a_word_alone_tells_of_no_failure(log: str) -> None:
    assert diagnose(reading(f"warning: {log}\n")) is None


def test_that_a_start_after_a_crash_that_was_cut_off_explains_the_crash() -> None:
    found = reading(logs.GRAPHS + logs.VLLM_HEAD)
    cause = diagnose(found)
    assert cause is not None
    assert (cause.kind, found.runs) == (Kind.GRAPHS, 2)
    assert found.stated("weights") is not None


def test_that_pieces_get_a_joining_allocator_and_room_beside_the_pool() -> None:
    run = explained(logs.FRAGMENTATION, gpu_total_bytes=round(23.64 * GIB))
    first, *others = run.remedies
    assert first.label == "expandable_segments:True"
    assert first.deployment is None
    assert others
    assert run.sizing is not None
    before = run.sizing.budget.ranks[0].regions[Region.HEADROOM].estimate.likely_bytes
    share = next(one for one in others if one.label.startswith("Utilisation"))
    # 512 MiB were asked for in one piece: 0.03 of 23.64 GiB are the first hundredths above it.
    assert share.deployment is not None
    assert share.deployment.gpu_memory_utilization == pytest.approx(0.89)
    assert share.margin_bytes is None
    assert before >= 0


def test_that_fewer_sequences_come_first_where_tokens_were_chosen() -> None:
    text = logs.VLLM_HEAD + (
        "RuntimeError: CUDA out of memory occurred when warming up sampler with 256 dummy "
        "requests. Please try lowering `max_num_seqs` or `gpu_memory_utilization`.\n"
    )
    labels = [one.label for one in explained(text, gpu="RTX 4090").remedies]
    assert labels[0].startswith("max_num_seqs ")
    # How much was short nobody says: one step of each setting, and no margin.
    assert sum(label.startswith("max_num_seqs") for label in labels) == 1


def test_that_what_was_killed_off_the_gpu_is_put_on_it_where_there_is_room() -> None:
    text = logs.SPILLED.replace("main: server is listening on http://127.0.0.1:8080\n", "Killed\n")
    run = explained(text, gpu="RTX 4090")
    assert run.cause is not None
    assert run.cause.kind is Kind.KILLED
    first = run.remedies[0]
    assert first.label == "All layers on the GPU"
    assert first.deployment is not None
    assert first.deployment.n_gpu_layers == -2
