"""What records of llama.cpp and Ollama say in words: the model, the file's mix, the device."""

from __future__ import annotations

from typing import Any

from record_general import file_mix, model_name

MIB = 2**20
_STRIX = {"gpu": "Ryzen AI Max+ 395 128 GB", "gpu_count": 1, "n_parallel": 1}
UNKNOWN_MIX = "the mix of its file is not stated"
APART = "its inputs were in a buffer of their own then"
BLAS = "a build with BLAS, whose buffers are not planned"

STRIX_MODELS = {
    "strix-shisa-v2-llama3-1-8b": ("meta-llama/Llama-3.1-8B", "Q4_K_M"),
    "strix-shisa-v2-llama3-3-70b": ("meta-llama/Llama-3.3-70B-Instruct", "Q4_K_M"),
    "strix-mistral-small-3-1-24b": ("mistralai/Mistral-Small-24B-Instruct-2501", "Q4_K_M"),
    "strix-gemma-3-27b": ("google/gemma-3-27b-it", "Q4_K_M"),
    "strix-hunyuan-a13b": ("tencent/Hunyuan-A13B-Instruct", "Q6_K"),
    "strix-qwen3-235b-a22b": ("Qwen/Qwen3-235B-A22B-Instruct-2507", "Q3_K_M"),
    "strix-dots-llm1": ("rednote-hilab/dots.llm1.inst", "Q4_K_M"),
}
"""Start of a record's name -> model and mix. Published files have mixes of their own: the size of
the file is a fact of the record, and takes the place of our count of its tensors."""


def strix(raw: dict[str, Any]) -> dict[str, Any]:
    """The reading of a run on Strix Halo, whose driver counted what the device held."""
    known = (m for start, m in STRIX_MODELS.items() if raw["id"].startswith(start))
    model, mix = next(known, (model_name(raw), file_mix(raw)))
    backend = "vulkan" if "vulkan" in raw["backend"].lower() else "rocm"
    request = _STRIX | {"weight_format": mix, "backend": backend, "n_gpu_layers": -2}
    request |= {"n_outputs_max": 0, "mmap": False, "language_model_only": True}
    facts = {"file_bytes": raw["reported"]["model_size_bytes"], "counter": backend}
    if "-pp" in raw["id"]:
        facts["reads_prompt"] = True
    return {"model": model, "request": request, "facts": facts, "left_out": {}}


def _as(model: str, mix: str, **request: Any) -> dict[str, Any]:
    return {"model": model, "request": {"weight_format": mix, **request}}


def _but(reading: dict[str, Any], reason: str, *figures: str) -> dict[str, Any]:
    return reading | {"left_out": dict.fromkeys(figures, reason)}


MODEL = "printed model buffers"
COMPUTE = "printed compute buffers"
CACHE = "printed cache and state buffers"


_OPEN_LLAMA_3B: dict[str, Any] = {
    "model_type": "llama", "vocab_size": 32000, "hidden_size": 3200, "intermediate_size": 8640,
    "num_hidden_layers": 26, "num_attention_heads": 32, "max_position_embeddings": 2048,
    "tie_word_embeddings": False, "torch_dtype": "float16",
}  # fmt: skip
"""26 layers, 3,200 wide, as many heads of keys: as the log's own figures have it."""


def _with_blas(**request: Any) -> dict[str, Any]:
    """A file of 6.57 bits in four parts.

    A "CPU" buffer beside the pinned one tells of BLAS, which takes the logits of a whole batch.
    """
    found = _as(
        "Qwen/Qwen3-235B-A22B", "Q6_K", n_parallel=1, gpu_count=1, runtime_version="b5250",
        **request,
    )  # fmt: skip
    return found | {"left_out": {MODEL: UNKNOWN_MIX, COMPUTE: BLAS}}


# Where a record states a day or a month and no build, the build is the one of that day.
FILES: dict[str, dict[str, Any]] = {
    "lc-llama4-scout-vulkan-2xd700-256k": _but(
        _as(
            "meta-llama/Llama-4-Scout-17B-16E-Instruct", "Q2_K", n_gpu_layers=11,
            offload_kqv=False, backend="vulkan", gpu_total_bytes=6 * 2**30, gpu_count=2,
            flash_attn="off", n_parallel=1, runtime_version="b5100",
            language_model_only=True,
        ),
        UNKNOWN_MIX, MODEL, COMPUTE,
    ),
    "lc-mistral-nemo-class-rocm-cpuonly": _as(
        "Qwen/Qwen3-14B", "Q8_0", n_gpu_layers=0, gpu="RX 7900 XTX", gpu_count=1, n_parallel=1,
        runtime_version="b5850",
    ),
    "lc-pythia14b-m4": _as(
        "EleutherAI/pythia-1.4b", "F16", n_gpu_layers=-2, gpu="M4 16 GB", n_parallel=1,
        runtime_version="b4300",
    ),
    "lc-qwen25-7b-class-m1pro-ub128": _as(
        "meta-llama/Llama-3.2-3B", "Q4_K_M", n_gpu_layers=-2, gpu="M1 Pro 16 GB", n_parallel=1,
        # Its lines are of 2026; a mask in f32 was handed over until June.
        runtime_version="b8300",
    ),
    "ik-030-qwen3-235b-a22b-128k": _with_blas(n_gpu_layers=0),
    "ik-031-qwen3-235b-a22b-128k": _with_blas(n_gpu_layers=-2, n_cpu_moe=94),
    "ik-044-meta-llama-3-1-8b-instruct": _as(
        "meta-llama/Llama-3.1-8B-Instruct", "Q4_0", n_gpu_layers=-2, backend="vulkan", n_parallel=1,
        runtime_version="b5770",
    ),
    "lc-6122-command-r-2gpu": _as(
        # "Q4": of all mixes, both of its cards fit one.
        "CohereForAI/c4ai-command-r-v01", "Q4_K_S", n_gpu_layers=-2, tensor_split=[12, 29],
        gpu="RTX 4070 Ti + RTX 3090 Ti", n_parallel=1, flash_attn="off", runtime_version="b2400",
    ),
    "lc-12728-dsv2-vulkan-4k": _as(
        "deepseek-ai/DeepSeek-V2", "Q4_K_M", n_gpu_layers=-2, gpu_total_bytes=2**39, gpu_count=1,
        backend="vulkan", n_parallel=1, runtime_version="b5040",
    ),
    "lc-deepseek671b-rocm8-8k": _as(
        "deepseek-ai/DeepSeek-R1", "Q4_K_M", n_gpu_layers=-2, gpu_total_bytes=64 * 2**30,
        gpu_count=8, n_parallel=4, sched_spread=True, flash_attn="off", n_batch=512,
        # Ollama hands on how many layers each takes.
        tensor_split=[8] * 6 + [7] * 2, runtime_version="0.5.11",
    ),
    "lc-ollama-phi2-7900xtx-2k": {
        "request": {
            "config": _OPEN_LLAMA_3B, "weight_format": "Q4_0", "gpu": "RX 7900 XTX",
            "gpu_count": 1, "n_gpu_layers": -2, "n_parallel": 1, "flash_attn": "off",
        },
        "left_out": {COMPUTE: APART},
    },
    "lc-17482-qwen38-27b-3090-breakdown": _but(
        _as("Qwen/Qwen3.8-27B", "Q4_K_M", n_gpu_layers=-2, gpu="RTX 3090", max_model_len=4096),
        "its context and its file's mix are not stated", "breakdown",
    ),
    "lc2-qwen3-30b-partial-30of49": _as(
        "Qwen/Qwen3-30B-A3B", "Q4_K_M", n_gpu_layers=30, gpu_total_bytes=24 * 2**30, gpu_count=1
    ),
    "ol-10114-embed-32k-fa0": _as(
        "BAAI/bge-m3", "F16", gpu_total_bytes=24 * 2**30, gpu_count=1, n_gpu_layers=-2
    ),
    "ol-7745-llama32-vision-90b": _but(
        _as("meta-llama/Llama-3.2-90B-Vision-Instruct", "Q4_K_M", gpu_total_bytes=24 * 2**30,
            gpu_count=4, n_gpu_layers=-2, n_parallel=1),
        UNKNOWN_MIX, MODEL,
    ),
}  # fmt: skip

FILES_LEFT_OUT: dict[str, str] = {
    "lc-qwen35-35b-5060ti-fit-100k": "a dry run whose context is not stated",
    "lc-yi34b-q4km-4090-2k-2023": "a build of 2023, whose rules are not planned",
    "lc-19437-qwen3-coder-next-1080ti": "one of several cards that are not named",
    "lc2-dsv4-64k-swa": "one of several caches of its model, the others are not printed",
    "ol-10740-qwen3-32b-q6-32k-3x3090": "a figure for three cards together, rounded to a GiB",
}

_PRO = "RTX PRO 6000 Blackwell"
CALIBRATED: dict[str, dict[str, Any]] = {
    "cal-pro6000-maxq": {"overhead": "context", "gpu": _PRO},
    "cal-pro6000-ws": {"overhead": "context", "gpu": _PRO},
    "cal-3090": {"overhead": "context", "gpu": "RTX 3090"},
    "cal-m1-8gb": {"overhead": "context", "gpu": "M1 8 GB"},
    "cal-m5-24gb": {"overhead": "context", "gpu": "M5 24 GB"},
    "cal2-wddm-free-1": {"overhead": "platform", "platform": "windows", "gpu": "RTX 4050 Laptop"},
    "cal2-wddm-free-2": {"overhead": "platform", "platform": "windows", "gpu": "RTX 4070 Laptop"},
    "cal2-wddm-free-3": {"overhead": "platform", "platform": "windows", "gpu": "RTX 3070 Laptop"},
    "lc-16031-2gpu-fit": {"overhead": "platform", "platform": "windows", "gpu": "RTX 5090"},
    "lc-metal-m5-mem-breakdown": {"overhead": "metal", "gpu": "M5 24 GB"},
    "lc-rtxpro6000-859gb-model": {"overhead": "cuda", "gpu": _PRO},
    "cal-9070xt-vulkan": {"overhead": "vulkan", "platform": "windows", "gpu": "RX 9070 XT"},
    "cal-9070xt-vulkan1": {"overhead": "vulkan", "platform": "windows", "gpu": "RX 9070 XT"},
    "cal-6800-vulkan": {"overhead": "vulkan", "gpu": "RX 6800"},
    "cal-m5-gptoss-a": {"overhead": "metal", "gpu": "M5 24 GB"},
    "cal-m5-b": {"overhead": "metal", "gpu": "M5 24 GB"},
    "cal-m5-c": {"overhead": "metal", "gpu": "M5 24 GB"},
    "cal-m3max-e": {"overhead": "metal", "gpu": "M3 Max 64 GB"},
    "cal-m4pro-override": {"overhead": "metal", "gpu": "M4 Pro 64 GB"},
    "oom-h100-lightx2v": {"overhead": "torch", "gpu": "H100 SXM 80GB"},
    "oom-l40s-vllm-util98": {"overhead": "torch", "gpu": "L40S", "ranks": 4},
    "oom-v100-vllm-ray": {"overhead": "torch", "gpu": "V100 16GB", "ranks": 2},
}
"""Readings without a plan: of which kind, and on which device."""


def calibrated(raw: dict[str, Any]) -> dict[str, Any]:
    """The figure of a reading without a plan."""
    reported = raw["reported"]
    found = reported.get("unavailable_mib", reported.get("used_before_allocation_mib"))
    if found is None and "outside_allocator_gib" in reported:
        return {"outside": [round(reported["outside_allocator_gib"] * 1024 * MIB), 5 * MIB]}
    if found is not None:
        return {"unavailable": [found * MIB, MIB]}
    table = reported["breakdown_mib"]
    if isinstance(table["total"], list):
        return {"unavailable": [(table["total"][0] - table["free"][0]) * MIB, MIB]}
    return {"unaccounted": [table["unaccounted"] * MIB, 2 * MIB]}
