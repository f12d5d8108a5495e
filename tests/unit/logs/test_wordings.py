"""Failures and successes in the words of many releases, and of what prints around them.

The wordings are those of the programs' own sources: vLLM's engines V0 and V1, SGLang's
model_runner, llama.cpp's common and ggml, Ollama's llm and ml, TGI's cache manager, TensorRT-LLM's
py_executor_creator and its profiler, mlx-lm's generate, Linux' oom_kill and systemd-oomd, Ray.
"""

from __future__ import annotations

from typing import NamedTuple

import pytest

from engine.budget.model import Region
from engine.logs import words
from engine.logs.diagnosis import Kind, diagnose
from engine.logs.why import happened
from engine.units import UnitSystem
from tests.helpers import logs
from tests.helpers.log_lines import (
    BUFFERS,
    BUILD,
    CONTEXT,
    CUDA_MALLOC,
    FILE,
    LISTENS,
    LLAMA,
    OLLAMA,
    RUNNER,
    STAMP,
    STARTED,
    WEIGHTS,
)
from tests.helpers.logs import GIB, MIB, frame, reading, torch_oom

VLLM = logs.VLLM_HEAD + logs.VLLM_LOADED
UP = VLLM + logs.VLLM_POOL + logs.VLLM_UP
SGLANG = (
    "[2026-09-12 00:22:40] server_args=ServerArgs(model_path='Qwen/Qwen3-8B', tp_size=2, "
    "mem_fraction_static=0.88)\n"
)
EXECUTOR = (
    "[TRT-LLM] [E] Executor creation failed due to insufficient GPU memory.\n\n"
    "The following component could not be created: {}\nTotal GPU memory (GiB): 23.70\n"
    "Free GPU memory before component creation attempt (GiB): 5.10\n"
)
SWAPPED = (
    "ValueError: Too large swap space. 64.00 GiB out of the 62.50 GiB total CPU memory is "
    "allocated for the swap space.\n"
)
RAY = (
    "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.\n"
    "Memory on the node (IP: 10.0.62.231, ID: e5) where the task (pid=11362, memory used=81.25GB) "
    "was running was 240.71GB / 251.80GB (0.955962), which exceeds the memory usage threshold of "
    "0.95. Ray killed this worker\n"
)
UNBALANCED = SGLANG + (
    "[2026-09-12 00:22:43 TP1] Scheduler hit an exception: Traceback (most recent call last):\n"
    "RuntimeError: The memory capacity is unbalanced. Some GPUs may be occupied by other processes."
    " pre_model_load_memory=19.2269287109375, local_gpu_memory=30.54656982421875, local_gpu_memory "
    "* 0.9=27.491912841796875\n"
    "[2026-09-12 00:22:43] Received sigquit from a child process. It usually means the child "
    "failed.\n"
)
PANIC = (
    OLLAMA
    + RUNNER
    + (
        "panic: insufficient memory - required allocations: {InputWeights:550502400A CPU:{Name:CPU "
        "Weights:[0U] Cache:[0U] Graph:0A} GPUs:[{Name:CUDA0 Weights:[213911552A] "
        "Cache:[33554432A] Graph:1212612608F}]}\n"
    )
)
OOMD = (
    "Nov 02 10:41:06 host systemd-oomd[700]: Killed /user.slice/app-llama.scope due to memory "
    "pressure for /user.slice being 62.00% > 50.00% for > 20s with reclaim activity\n"
)
NEAR = (
    "[WARNING] Generating with a model that requires 60000 MB which is close to the maximum "
    "recommended size of 65536 MB. This can be slow.\n"
)
OLD_KERNEL = (
    "[ 111.2] Out of memory: Kill process 4211 (python3) score 900 or sacrifice child\n"
    "[ 111.2] Killed process 4211 (python3) total-vm:98123456kB, anon-rss:31457280kB\n"
)
GROUP = "[ 111.2] Memory cgroup out of memory: Kill process 4211 (python3) score 900\n"
TO_CUDA = (
    frame("transformers/modeling_utils.py", "to")
    + frame("torch/nn/modules/module.py", "convert")
    + torch_oom(asked="136.00 MiB", free="100.00 MiB")
)
WINDOWS = (
    r'  File "C:\venv\Lib\site-packages\transformers\models\llama\modeling_llama.py", line 3, '
    "in forward\r\n" + torch_oom(asked="2.00 GiB", free="1.00 GiB").replace("\n", "\r\n")
)
POOLS = UP + torch_oom(asked="512.00 MiB", free="100.00 MiB", unused="1.50 GiB").replace(
    "by PyTorch, and",
    "by PyTorch, with 84.00 MiB allocated in private pools (e.g., CUDA Graphs), and",
)


class Case(NamedTuple):
    text: str
    kind: Kind
    region: Region | None
    runtime: str
    is_soft: bool = False
    short_bytes: int | None = None


W, K, A = Region.WEIGHTS, Region.KV_CACHE, Region.ACTIVATIONS
FAILURES = {
    "vLLM, swap space": Case(SWAPPED, Kind.REFUSED, None, "vllm", short_bytes=3 * GIB // 2),
    "vLLM, swap ran out": Case(
        UP + "RuntimeError: Aborted due to the lack of CPU swap space. Please increase the swap\n",
        Kind.CONCURRENCY, K, "vllm",
    ),
    "vLLM, a prompt": Case(
        UP + "WARNING Input prompt (5000 tokens) is too long and exceeds limit of 4096\n",
        Kind.CONCURRENCY, K, "vllm", is_soft=True,
    ),
    "vLLM, its sleeping allocator": Case(
        VLLM + "CUDA Error: out of memory at /workspace/csrc/cumem_allocator.cpp:119\n",
        Kind.PREFILL, A, "vllm",
    ),
    "vLLM, its core was killed": Case(
        VLLM + "RuntimeError: Engine core initialization failed. See root cause above. Failed core "
        "proc(s): {'EngineCore_DP0': -9}\n",
        Kind.KILLED, None, "vllm",
    ),
    "vLLM under Ray": Case(VLLM + RAY, Kind.KILLED, None, "vllm"),
    "vLLM, pieces beside private pools": Case(
        POOLS, Kind.FRAGMENTATION, Region.ALLOCATOR, "vllm"
    ),
    # 27.4919 − 19.2269 GiB.
    "SGLang, devices differ": Case(
        UNBALANCED, Kind.REFUSED, Region.FOREIGN, "sglang", short_bytes=round(8.26498413 * GIB)
    ),
    "llama.cpp, the state of a hybrid": Case(
        BUILD + FILE + WEIGHTS + CUDA_MALLOC.format("2048.00")
        + "llama_init_from_model: failed to initialize the context: failed to allocate buffer for "
        "rs cache\n",
        Kind.CONCURRENCY, Region.RECURRENT_STATE, "llama.cpp", short_bytes=2 * GIB,
    ),
    "llama.cpp, its context while it serves": Case(
        LLAMA + "decode: failed to find a memory slot for batch of size 512\n"
        "srv  update_slots: failed to find free space in the KV cache, retrying with smaller batch "
        "size, i = 0, n_batch = 512, ret = 1\n",
        Kind.CONCURRENCY, K, "llama.cpp", is_soft=True,
    ),
    "llama.cpp, one request": Case(
        LLAMA + "srv    send_error: task id = 3, error: request (9000 tokens) exceeds the available"
        " context size (8192 tokens), try increasing it\n",
        Kind.CONCURRENCY, K, "llama.cpp", is_soft=True,
    ),
    "llama.cpp, mapping": Case(
        BUILD + FILE + "llama_model_load: error loading model: mmap failed: Cannot allocate "
        "memory\n",
        Kind.HOST, None, "llama.cpp",
    ),
    "llama.cpp with a decimal comma": Case(
        BUILD + FILE + WEIGHTS.replace(".49", ",49") + CUDA_MALLOC.format("16384,00")
        + "llama_init_from_model: failed to initialize the context: failed to allocate buffer for "
        "kv cache\n",
        Kind.CONCURRENCY, K, "llama.cpp", short_bytes=16 * GIB,
    ),
    "llama.cpp, no layer on the GPU": Case(
        BUILD + FILE + WEIGHTS.replace("33/33", "0/33").replace("CUDA0", "CPU_Mapped") + LISTENS,
        Kind.SPILLED, W, "llama.cpp", is_soft=True,
    ),
    "Ollama, its own engine": Case(PANIC, Kind.PREFILL, A, "ollama", short_bytes=1_212_612_608),
    "Ollama, nobody says why": Case(
        "Error: model failed to load, this may be due to resource limitations or an internal "
        "error, check ollama server logs for details\n",
        Kind.DIED, None, "ollama",
    ),
    "Ollama, killed and started again": Case(
        OLLAMA + RUNNER + BUFFERS + STARTED
        + "Nov 02 10:41:05 host kernel: Out of memory: Killed process 4211 (ollama) "
        "total-vm:98123456kB, anon-rss:31457280kB\n" + OLLAMA,
        Kind.KILLED, None, "ollama",
    ),
    "vLLM, states of a hybrid": Case(
        VLLM + "ValueError: max_num_seqs (256) exceeds available Mamba cache blocks (184). Each "
        "decode request requires one Mamba cache block, so CUDA graph capture cannot proceed.\n",
        Kind.CONCURRENCY, Region.RECURRENT_STATE, "vllm",
    ),
    "TGI, its blocks": Case(
        "ERROR batch{batch_size=2}:decode: text_generation_launcher: Server error: Out of available"
        " cache blocks: asked 128, only 12 free blocks\n",
        Kind.CONCURRENCY, K, "tgi", is_soft=True,
    ),
    "Transformers, moved to the GPU": Case(
        TO_CUDA, Kind.LOAD, W, "transformers", short_bytes=36 * MIB
    ),
    "Transformers on Windows": Case(WINDOWS, Kind.PREFILL, A, "transformers", short_bytes=GIB),
    "Transformers, to disk": Case(
        "ValueError: The current `device_map` had weights offloaded to the disk. Please provide an "
        "`offload_folder` for them.\n",
        Kind.SPILLED, W, "transformers",
    ),
    "TensorRT-LLM, cache": Case(
        EXECUTOR.format("KV cache"), Kind.CONCURRENCY, K, "tensorrt-llm"
    ),
    "TensorRT-LLM, model": Case(EXECUTOR.format("Model"), Kind.LOAD, W, "tensorrt-llm"),
    "TensorRT, an engine": Case(
        "[W] [TRT] Requested amount of GPU memory (14966325248 bytes) could not be allocated. There"
        " may not be enough free memory for allocation to succeed.\n",
        Kind.LOAD, W, "tensorrt-llm", short_bytes=14_966_325_248,
    ),
    "MLX, nearly": Case(NEAR, Kind.LOAD, W, "mlx", is_soft=True),
    "MLX, many buffers": Case(
        "RuntimeError: [metal::malloc] Resource limit (499000) exceeded.\n", Kind.PREFILL, A, "mlx"
    ),
    "LM Studio": Case(
        "Error loading model.\n(Exit code: 18446744072635812000). Unknown error.\n",
        Kind.DIED, None, "lmstudio",
    ),
    "Kubernetes, an error": Case(
        "    Last State:     Terminated\n      Reason:       Error\n      Exit Code:    137\n",
        Kind.KILLED, None, "",
    ),
    "Docker": Case(
        '            "OOMKilled": false,\n            "ExitCode": 137,\n', Kind.KILLED, None, ""
    ),
    "Docker, a limit": Case('            "OOMKilled": true,\n', Kind.KILLED, None, ""),
    "an older kernel": Case(OLD_KERNEL, Kind.KILLED, None, ""),
    "an older kernel, a limit": Case(GROUP, Kind.KILLED, None, ""),
    "systemd-oomd": Case(OOMD, Kind.KILLED, None, ""),
    "earlyoom": Case(
        'earlyoom[500]: sending SIGTERM to process 4211 uid 1000 "llama-server": badness 900\n',
        Kind.KILLED, None, "",
    ),
    "Slurm": Case(
        "slurmstepd: error: Detected 1 oom_kill event in StepId=123.0. Some of the step tasks have "
        "been OOM Killed.\n",
        Kind.KILLED, None, "",
    ),
    "a cloud": Case(
        "Memory limit of 16384 MiB exceeded with 16500 MiB used. Consider increasing the memory "
        "limit.\n",
        Kind.KILLED, None, "",
    ),
    "ROCm's runtime": Case(
        UP + "HSA_STATUS_ERROR_OUT_OF_RESOURCES: The runtime failed to allocate the necessary "
        "resources.\n",
        Kind.PREFILL, A, "vllm",
    ),
    "MLX, its allocator": Case(
        "RuntimeError: [malloc] Unable to allocate 34359738368 bytes.\n",
        Kind.PREFILL, A, "mlx", short_bytes=32 * GIB,
    ),
    "a launcher": Case(
        "[ERROR] [launch.py:321] ['python', 'x.py'] exits with return code = -9\n",
        Kind.KILLED, None, "",
    ),
    "KoboldCpp": Case(
        "Welcome to KoboldCpp - Version 1.98\nllama_model_load: error loading model: unable to "
        "allocate CUDA0 buffer\n",
        Kind.LOAD, W, "koboldcpp",
    ),
    "LM Studio's own log": Case(
        "[2026-01-01 10:00:00][ERROR] [LM Studio] Failed to load model. llama.cpp error: 'error "
        "loading model: unable to allocate CUDA0 buffer'\n",
        Kind.LOAD, W, "lmstudio",
    ),
    "zsh": Case("zsh: killed     python run.py\n", Kind.KILLED, None, ""),
    "fish": Case(
        "fish: Job 1, 'python run.py' terminated by signal SIGKILL (Forced quit)\n",
        Kind.KILLED, None, "",
    ),
    "behind a progress bar": Case(
        "Loading checkpoint shards:  33%|###3      | 1/3 [00:10<00:20, 10.2s/it]Killed\n",
        Kind.KILLED, None, "",
    ),
    "Windows, the paging file": Case(
        "OSError: Die Auslagerungsdatei ist zu klein, um diesen Vorgang durchzuführen. "
        "(os error 1455)\n",
        Kind.HOST, None, "",
    ),
    "Rust": Case(
        "memory allocation of 17179869184 bytes failed\n", Kind.HOST, None, "",
        short_bytes=16 * GIB,
    ),
    "another program was killed": Case(
        UP + "[1.6] Out of memory: Killed process 999 (chrome) total-vm:98kB, anon-rss:14kB\n",
        Kind.KILLED, None, "vllm", is_soft=True,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", FAILURES.values(), ids=FAILURES)
def test_that_a_failure_is_told_in_the_words_of_its_release(case: Case) -> None:
    found = reading(case.text)
    cause = diagnose(found)
    assert cause is not None
    told = (cause.kind, cause.region, cause.is_soft, found.runtime)
    assert told == (case.kind, case.region, case.is_soft, case.runtime)
    assert abs((cause.short_bytes or 0) - (case.short_bytes or 0)) <= MIB
    said = (
        words.headline(cause, found, UnitSystem.BINARY),
        *happened(cause, found, UnitSystem.BINARY),
    )
    assert len(said) > 1
    assert all(sentence.strip() and "{" not in sentence for sentence in said)


SUCCESSES = {
    "a refusal, then a start": logs.REFUSED + UP,
    "a failed load, then another": BUILD
    + FILE
    + CUDA_MALLOC.format("4403.49")
    + "llama_model_load: error loading model: unable to allocate CUDA0 buffer\n"
    + LLAMA,
    "llama.cpp tries again with less": BUILD
    + FILE
    + WEIGHTS
    + CUDA_MALLOC.format("831.13")
    + "graph_reserve: failed to allocate compute buffers\n"
    + "sched_reserve: compute buffer allocation failed, retrying without pipeline parallelism\n"
    + CONTEXT,
    "llama.cpp, memory that is only faster": BUILD
    + FILE
    + "ggml_cuda_host_malloc: failed to allocate 1024.00 MiB of pinned memory: out of memory\n"
    + "warning: failed to mlock 295264256-byte buffer: Cannot allocate memory\n"
    + WEIGHTS
    + CONTEXT
    + LISTENS,
    "Ollama looks for a layout": OLLAMA
    + RUNNER
    + CUDA_MALLOC.format("6963.20")
    + STAMP
    + 'msg="model layout did not fit, applying backoff" backoff=0.10\n'
    + BUFFERS
    + STARTED,
    "Ollama refuses one and loads another": OLLAMA
    + STAMP
    + 'msg="Load failed" error="model requires more system memory (58.1 GiB) than is available '
    + '(29.5 GiB)"\n'
    + RUNNER
    + BUFFERS
    + STARTED,
    "a service that is stopped": OLLAMA
    + RUNNER
    + BUFFERS
    + STARTED
    + "systemd[1]: ollama.service: Main process exited, code=killed, status=15/TERM\n",
    "a container that is well": UP
    + '            "OOMKilled": false,\n            "ExitCode": 0,\n',
    "numbers that begin alike": UP + "INFO code 1370 items, status 1370, exit 1379 ms, code -95\n",
    "a prompt about such a failure": UP
    + "INFO [logger.py:39] Received request chatcmpl-1: prompt: 'CUDA out of memory. Tried to "
    + "allocate 2.00 GiB. What is exit code 137?', params: SamplingParams(n=1)\n",
}


@pytest.mark.parametrize("text", SUCCESSES.values(), ids=SUCCESSES)
def test_that_a_run_that_works_in_the_end_tells_of_no_failure(text: str) -> None:
    assert diagnose(reading(text)) is None
