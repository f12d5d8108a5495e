"""Lines of llama.cpp and of Ollama's own engine as they print them, to make logs of."""

from __future__ import annotations

BUILD = "build: 6123 (79c1160b) with cc (Debian 12.2.0-14) 12.2.0 for x86_64-linux-gnu\n"
FILE = (
    "llama_model_loader: loaded meta data with 29 key-value pairs and 292 tensors from "
    "/models/Meta-Llama-3.1-8B-Instruct-Q4_K_M.gguf (version GGUF V3 (latest))\n"
)
WEIGHTS = """\
load_tensors: offloaded 33/33 layers to GPU
load_tensors:        CUDA0 model buffer size =  4403.49 MiB
"""
CONTEXT = """\
llama_kv_cache:      CUDA0 KV buffer size =  1024.00 MiB
llama_context:      CUDA0 compute buffer size =   258.50 MiB
"""
LISTENS = "main: server is listening on http://127.0.0.1:8080 - starting the main loop\n"
LLAMA = BUILD + FILE + WEIGHTS + CONTEXT + LISTENS
CUDA_MALLOC = (
    "ggml_backend_cuda_buffer_type_alloc_buffer: allocating {} MiB on device 0: cudaMalloc failed: "
    "out of memory\n"
)
STAMP = "time=2026-04-10T21:13:54.917+09:00 level=INFO source=server.go:432 "
OLLAMA = STAMP + 'msg="Listening on 127.0.0.1:11434 (version 0.20.5)"\n'
RUNNER = STAMP + (
    'msg="starting runner" cmd="/usr/bin/ollama runner --ollama-engine --model /blobs/sha256-e8ad"'
    "\n"
)
BUFFERS = "".join(
    STAMP + line + "\n"
    for line in (
        'msg="system memory" total="31.3 GiB" free="29.5 GiB" free_swap="8.0 GiB"',
        'msg="model weights" device=CUDA0 size="6.8 GiB"',
        'msg="model weights" device=CPU size="787.5 MiB"',
        'msg="kv cache" device=CUDA0 size="1.3 GiB"',
        'msg="compute graph" device=CUDA0 size="519.5 MiB"',
        'msg="total memory" size="9.4 GiB"',
    )
)
STARTED = STAMP + 'msg="llama runner started in 5.65 seconds"\n'
