"""Short logs in the words of the runtimes, one for each kind of failure, and how to read them."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from engine.cancel import CancelToken
from engine.contract.desk import Desk
from engine.contract.run import Run, explain
from engine.logs.read import read

if TYPE_CHECKING:
    from pathlib import Path

    from engine.logs.reading import LogReading

GIB = 2**30
MIB = 2**20

VLLM_HEAD = """\
INFO 10-08 10:41:05 [api_server.py:1839] vLLM API server version 0.33.0
INFO 10-08 10:41:05 [utils.py:233] non-default args: {'model': 'meta-llama/Llama-3.1-8B-Instruct', \
'max_model_len': 8192, 'gpu_memory_utilization': 0.92}
INFO 10-08 10:41:07 [gpu_model_runner.py:2338] Starting to load model \
meta-llama/Llama-3.1-8B-Instruct...
"""
VLLM_LOADED = """\
INFO 10-08 10:41:31 [gpu_model_runner.py:2392] Model loading took 14.9889 GiB and 22.41 seconds
"""
VLLM_POOL = """\
INFO 10-08 10:41:41 [gpu_worker.py:298] Available KV cache memory: 5.31 GiB
INFO 10-08 10:41:42 [kv_cache_utils.py:864] GPU KV cache size: 43,488 tokens
INFO 10-08 10:41:42 [kv_cache_utils.py:868] Maximum concurrency for 8,192 tokens per request: 5.31x
"""
VLLM_UP = "INFO:     Application startup complete.\n"


def torch_oom(
    *,
    asked: str = "32.00 MiB",
    total: str = "23.64 GiB",
    free: str = "14.44 MiB",
    mine: str = "23.21 GiB",
    allocated: str = "22.80 GiB",
    unused: str = "12.50 MiB",
    others: str = "",
) -> str:
    """PyTorch's text, in one line as it prints it."""
    named = f"Process 3120 has {others} memory in use. " if others else ""
    return (
        f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {asked}. GPU 0 has a total "
        f"capacity of {total} of which {free} is free. {named}Including non-PyTorch memory, this "
        f"process has {mine} memory in use. Of the allocated memory {allocated} is allocated by "
        f"PyTorch, and {unused} is reserved by PyTorch but unallocated.\n"
    )


def frame(where: str, function: str) -> str:
    """One frame of a traceback."""
    return f'  File "/usr/lib/python3/site-packages/{where}", line 310, in {function}\n'


LOAD = (
    VLLM_HEAD
    + frame("vllm/model_executor/layers/linear.py", "create_weights")
    + torch_oom(asked="224.00 MiB")
)
PREFILL = (
    VLLM_HEAD
    + VLLM_LOADED
    + frame("vllm/v1/worker/gpu_model_runner.py", "profile_run")
    + torch_oom(asked="896.00 MiB")
)
SGLANG_PREFILL = (
    "[2026-09-12 00:22:40] server_args=ServerArgs(model_path='Qwen/Qwen3-8B', tp_size=1, "
    "mem_fraction_static=0.88, context_length=40960, chunked_prefill_size=8192)\n"
    "[2026-09-12 00:22:50] Load weight end. elapsed=9.1 s, type=Qwen3ForCausalLM, "
    "avail mem=7.90 GB, mem usage=15.29 GB.\n"
    "[2026-09-12 00:22:51] The server is fired up and ready to roll!\n"
    + frame("sglang/srt/model_executor/model_runner.py", "forward_extend")
    + torch_oom(asked="1.20 GiB", free="310.00 MiB", mine="23.00 GiB")
)
CONCURRENCY = (
    "[2026-09-12 00:22:48] KV Cache is allocated. #tokens: 30208, K size: 2.08 GB, "
    "V size: 2.08 GB\n"
    "[2026-09-12 00:23:51] The server is fired up and ready to roll!\n"
    "[2026-09-12 00:24:02] Decode out of memory. Try to lower your batch size.\n"
)
FRAGMENTATION = VLLM_HEAD + torch_oom(asked="512.00 MiB", free="100.00 MiB", unused="1.50 GiB")
GRAPHS = (
    VLLM_HEAD
    + VLLM_LOADED
    + VLLM_POOL
    + frame("vllm/v1/worker/gpu_model_runner.py", "capture_model")
    + frame("vllm/v1/worker/gpu_model_runner.py", "_dummy_run")
    + torch_oom()
)
RANK = """\
(Worker_TP0 pid=447) INFO 08-14 14:07:02 [gpu_model_runner.py:2392] Model loading took 10.30 GiB \
and 8.1 seconds
(Worker_TP1 pid=448) INFO 08-14 14:07:02 [gpu_model_runner.py:2392] Model loading took 10.80 GiB \
and 8.2 seconds
(Worker_TP1 pid=448) """ + torch_oom(asked="640.00 MiB")
REFUSED = VLLM_HEAD + (
    "ValueError: Free memory on device (3.22/4.0 GiB) on startup is less than desired GPU memory "
    "utilization (0.9, 3.6 GiB). Decrease GPU memory utilization or reduce GPU memory used by "
    "other processes.\n"
)
TOO_LONG = (
    VLLM_HEAD.replace("8192", "131072")
    + VLLM_LOADED
    + "ValueError: To serve at least one request with the models's max seq len (131072), (16.00 "
    "GiB KV cache is needed, which is larger than the available KV cache memory (5.31 GiB). Based "
    "on the available memory, the estimated maximum model length is 43488.\n"
)
SPILLED = """\
build: 6123 (79c1160b) with cc (Debian 12.2.0-14) 12.2.0 for x86_64-linux-gnu
llama_model_loader: loaded meta data with 29 key-value pairs and 292 tensors from \
Llama-3.1-8B-Instruct-Q4_K_M.gguf (version GGUF V3 (latest))
print_info: file type   = Q4_K - Medium
load_tensors: offloaded 20/33 layers to GPU
load_tensors:   CPU_Mapped model buffer size =  2004.00 MiB
load_tensors:        CUDA0 model buffer size =  2676.36 MiB
main: server is listening on http://127.0.0.1:8080
"""
KILLED = VLLM_HEAD + (
    "[12345.678901] Out of memory: Killed process 4211 (python3) total-vm:98123456kB, "
    "anon-rss:31457280kB, file-rss:0kB, shmem-rss:0kB\n"
)
TAKEN = (
    VLLM_HEAD
    + VLLM_LOADED
    + VLLM_POOL
    + frame("vllm/v1/worker/gpu_model_runner.py", "capture_model")
    + torch_oom(mine="21.59 GiB", allocated="20.90 GiB", others="1.62 GiB")
)
LLAMA_KV = """\
llama_model_loader: loaded meta data with 29 key-value pairs and 292 tensors from m.gguf
load_tensors:        CUDA0 model buffer size =  4403.49 MiB
ggml_backend_cuda_buffer_type_alloc_buffer: allocating 16384.00 MiB on device 0: cudaMalloc \
failed: out of memory
llama_init_from_model: failed to initialize the context: failed to allocate buffer for kv cache
"""


def reading(text: str | bytes) -> LogReading:
    """What ``text`` states."""
    data = text.encode() if isinstance(text, str) else text
    return read(io.BytesIO(data), CancelToken())


def sample(folder: Path, *names: str) -> LogReading:
    """What one of the recorded logs states."""
    with folder.joinpath("live", "samples", *names).open("rb") as stream:
        return read(stream, CancelToken())


def explained(text: str, **given: object) -> Run:
    """``text`` against the plan of the same run."""
    return explain(reading(text), Desk(CancelToken()), given)
