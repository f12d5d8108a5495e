"""What a record's fields say in the keys of the machine contract, and its figures in bytes."""

from __future__ import annotations

import re
from typing import Any

from record_general import file_mix, flags
from record_releases import stated_release

GIB = 2**30
MIB = 2**20
GB = 10**9

_SHARED = {
    "tp": "tensor_parallel_size",
    "pp": "pipeline_parallel_size",
    "dp": "data_parallel_size",
    "dcp": "decode_context_parallel_size",
    "max_model_len": "max_model_len",
    "max_num_seqs": "max_num_seqs",
    "max_num_batched_tokens": "max_num_batched_tokens",
    "gpu_memory_utilization": "gpu_memory_utilization",
    "mem_fraction_static": "mem_fraction_static",
    "enforce_eager": "enforce_eager",
    "chunked_prefill_size": "chunked_prefill_size",
    "max_running_requests": "max_running_requests",
}
_WEIGHTS = {
    "16-bit": "auto", "bf16/fp16": "auto", "bf16": "auto", "fp16": "fp16",
    "autoround-int4": "gptq-int4", "int4": "gptq-int4", "int8": "gptq-int8",
    "bnb-4bit": "nf4", "bnb-nf4": "nf4", "w4a16": "w4a16",
    "awq": "awq-int4-g32", "int8-w8a8": "int8", "mlx-4bit-g64": "mlx-4bit",
    "mlx-q8": "auto", "mlx-mxfp4": "mxfp4", "mxfp4/fp8": "auto", "fp4/fp8": "auto",
    "fp8/fp4": "auto", "mxfp8": "mxfp8",
}  # fmt: skip
"""What a record calls a format -> ours. Those that are ours already are not listed."""

GPUS = {
    "NVIDIA A100": "A100 40GB",
    "NVIDIA A100-80GB": "A100 80GB",
    "NVIDIA A100-SXM4-80G": "A100 80GB",
    "NVIDIA A100-SXM4-80GB": "A100 80GB",
    "NVIDIA A100-SXM4-40GB": "A100 40GB",
    "NVIDIA A100 80GB": "A100 80GB",
    "A100 80GB": "A100 80GB",
    "NVIDIA H100": "H100 SXM 80GB",
    "NVIDIA H100 80GB": "H100 SXM 80GB",
    "NVIDIA H100 NVL (Azure Standard_NC80adis_H100_v5)": "H100 NVL",
    "NVIDIA H20 96GB": "H20",
    "NVIDIA RTX 4090 (WSL2)": "RTX 4090",
    "NVIDIA RTX PRO 5000 72GB Blackwell": "RTX PRO 5000 72GB",
    "NVIDIA RTX A5000 24GB": "RTX A5000",
    "AMD Instinct MI355X 288GB": "MI355X",
    "AMD Instinct, 288 GB class (MI355X)": "MI355X",
    "AMD Instinct, 288 GB class (aiter kernels)": "MI355X",
    "AMD Instinct MI300X 192GB": "MI300X",
    "NVIDIA H200 (143771 MiB)": "H200",
    "Intel Arc Pro B70 32GB": "Arc Pro B70",
    "NVIDIA L20 48GB": "L20",
    "NVIDIA GeForce RTX 4090 24GB": "RTX 4090",
    "A10G class": "A10G",
    "V100 16GB (80 SM)": "V100 16GB",
    "NVIDIA Jetson AGX Orin 32GB": "Jetson AGX Orin 32GB",
    "NVIDIA GB10 class (111.7 GiB free at start)": "GB10 (DGX Spark)",
}
"""What a record calls a device -> its name in our catalogue, where that does not find it."""
_FAMILIAR = re.compile(
    r"NVIDIA (GeForce )?(RTX|GTX) \d{4}( Ti| D)?$|Tesla T4$|NVIDIA (L4|L40S|A10G?|RTX 3090|RTX 5090"
    r"|GB10 \(DGX Spark\)|GB300|B300|B200|H200|H20|RTX A6000|RTX 6000 Ada Generation)$"
    r"|Apple M\d.*\d+ ?GB$"
)


def served(raw: dict[str, Any]) -> dict[str, Any]:
    """The request of a record of vLLM or SGLang."""
    request: dict[str, Any] = {"runtime": raw["engine"]}
    release = stated_release(raw)
    if release is not None:
        request["runtime_version"] = release
    request |= {ours: raw[theirs] for theirs, ours in _SHARED.items() if raw.get(theirs)}
    if raw.get("enforce_eager") is False:
        request["enforce_eager"] = False
    request |= device(raw)
    ranks = (raw.get("tp") or 1) * (raw.get("pp") or 1)
    request["gpu_count"] = max(raw.get("gpu_count") or 1, ranks)
    request["weight_format"] = weight_format(raw)
    cache = (raw.get("kv_dtype") or "auto").split(" ")[0]
    request["kv_cache_dtype"] = "auto" if cache in ("auto", "16-bit") else cache
    return request | flags(raw)


def generated(raw: dict[str, Any]) -> dict[str, Any]:
    """The request of a record of Transformers."""
    request: dict[str, Any] = {"runtime": "transformers", "weight_format": weight_format(raw)}
    release = re.search(r"transformers (\d+\.\d+\.\d+)", raw.get("engine_version") or "")
    if release:
        request["runtime_version"] = release[1]
    elif (raw.get("engine_version") or "").startswith("2023"):
        request["runtime_version"] = "4.36.0"  # The oldest whose rules are known, of that year.
    if re.search(r"-(FP8|AWQ|GPTQ-Int\d)$", raw.get("model") or ""):
        request["weight_format"] = "auto"  # The checkpoint says it.
    request |= device(raw)
    if request.get("gpu") == "T4" and request["weight_format"] == "auto":
        request["weight_format"] = "fp16"  # The card has no BF16.
    length = (raw.get("prompt_tokens") or 0) + (raw.get("generated_tokens") or 0)
    if length:
        request["max_model_len"] = length
        request["prompt_len"] = raw.get("prompt_tokens")
        request["batch_size"] = raw.get("batch_size") or 1
    request["attn_implementation"] = raw.get("attn_implementation")
    return request


def on_apple(raw: dict[str, Any]) -> dict[str, Any]:
    """The request of a record of MLX."""
    request: dict[str, Any] = {"runtime": "mlx", "weight_format": weight_format(raw)}
    # What MLX itself counts does not depend on the Mac, where none is named.
    request |= {"gpu": "M3 Ultra 512 GB"} | device(raw)
    release = re.search(r"mlx-lm (\d+\.\d+\.\d+)", raw.get("engine_version") or "")
    if release:
        request["runtime_version"] = release[1]
    prompt, answer = raw.get("prompt_tokens"), raw.get("generated_tokens")
    if prompt:
        request |= {"max_model_len": prompt + (answer or 1), "prompt_len": prompt}
    request["prefill_step_size"] = raw.get("prefill_step_size")
    request["kv_bits"] = raw.get("kv_bits")
    return request


def of_files(raw: dict[str, Any]) -> dict[str, Any]:
    """The request of a record of llama.cpp or Ollama."""
    request: dict[str, Any] = {"runtime": raw["engine"], "weight_format": file_mix(raw)}
    stated = re.match(r"b\d{4,5}\b|\d+\.\d+\.\d+\b", raw.get("engine_version") or "")
    if stated:
        request["runtime_version"] = stated[0]
    request |= device(raw)
    for theirs, ours in (
        ("n_ctx", "n_ctx"),
        ("n_batch", "n_batch"),
        ("n_ubatch", "n_ubatch"),
        ("n_seq_max", "n_parallel"),
        ("type_k", "cache_type_k"),
        ("type_v", "cache_type_v"),
        ("n_gpu_layers", "n_gpu_layers"),
    ):
        if raw.get(theirs) is not None:
            request[ours] = raw[theirs]
    attention = str(raw.get("flash_attn", "")).lower()
    if attention in ("true", "1", "on", "enabled"):
        request["flash_attn"] = "on"
    elif attention in ("false", "0", "off", "disabled"):
        request["flash_attn"] = "off"
    return request


NOT_PLANNED = "a program that is not planned"
REQUEST_OF = {
    "vllm": served,
    "sglang": served,
    "transformers": generated,
    "mlx-lm": on_apple,
    "mlx-vlm": on_apple,
    "llama.cpp": of_files,
    "ollama": of_files,
    "ik_llama.cpp": of_files,
}


def device(raw: dict[str, Any]) -> dict[str, Any]:
    """The keys that name the device: its name where our catalogue has it, its size if printed."""
    found: dict[str, Any] = {}
    name = raw.get("gpu") or ""
    if name in GPUS:
        found["gpu"] = GPUS[name]
    elif _FAMILIAR.fullmatch(name):
        found["gpu"] = name.removeprefix("NVIDIA ").removeprefix("Tesla ").removeprefix("Apple ")
    if raw.get("gpu_total_gib") and not name.startswith("Apple"):
        found["gpu_total_bytes"] = int(raw["gpu_total_gib"] * GIB)
    return found


def weight_format(raw: dict[str, Any]) -> str | None:
    """Our name of a record's format; None where it says nothing."""
    text = (raw.get("weight_format") or "").split(" ")[0]
    if text.startswith("gguf"):
        return file_mix(raw)
    if text == "bnb-int8":
        return "int8"
    if "native" in (raw.get("weight_format") or ""):
        return "auto"  # The checkpoint says it.
    return _WEIGHTS.get(text, text) or None


Printed = list[float]


def _gib(value: float) -> Printed:
    decimals = len(repr(value).partition(".")[2]) if isinstance(value, float) else 0
    unit = 10**-decimals if decimals > 2 else 0.01
    return [round(value * GIB), round((unit if isinstance(value, float) else 1) / 2 * GIB)]


def _mib(value: float) -> Printed:
    return [round(value * MIB), round(0.005 * MIB if value != int(value) else 0.5 * MIB)]


def _gb(value: float) -> Printed:
    decimals = len(repr(value).partition(".")[2])
    return [round(value * GB), round(10**-decimals / 2 * GB)]


_IN_GIB = {
    "weights_gib": "weights",
    "activation_peak_gib": "activations",
    "non_torch_gib": "non_torch",
    "consumed_gib": "consumed",
    "graph_gib": "graphs",
    "graph_estimated_gib": "graphs_estimated",
    "kv_available_gib": "kv_pool",
    "kv_k_gib": "kv_keys",
    "kv_v_gib": "kv_values",
    "peak_gib": "peak",
    "reserved_after_load_gib": "load",
    "draft_weights_gib": "draft_weights",
    "mamba_conv_gib": "state_conv",
    "mamba_ssm_gib": "state_ssm",
    "mamba_ssm_state_gib": "state_ssm",
    "free_before_load_gib": "free_before_load",
    "free_after_load_gib": "free_after_load",
    "free_after_pool_gib": "free_after_pool",
    "process_gib": "process",
    "outside_allocator_gib": "outside_allocator",
    "actual_vram_gib": "card",
    "device_used_gib": "card",
    "full_pool_gib": "kv_pool_full",
    "swa_pool_gib": "kv_pool_sliding",
}
_IN_MIB = {
    "nvidia_smi_used_mib": "card",
    "allocated_mib": "end",
    "device_overhead_mib": "overhead",
    "device_delta_mib": "card",
    "mmproj_estimate_mib": "encoders",
    "unavailable_mib": "unavailable",
    "used_before_allocation_mib": "unavailable",
}
_COUNTS = {
    "kv_tokens": "kv_tokens",
    "kv_blocks": "kv_blocks",
    "max_concurrency": "max_concurrency",
    "est_max_len": "longest",
    "swa_tokens": "kv_tokens_sliding",
    "mamba_slots": "state_slots",
}
_IN_GB = {
    "peak_gb": "peak",
    "active_gb": "active",
    "kv_gb": "kv",
}


def figures_of(raw: dict[str, Any]) -> dict[str, Any]:
    """Figure -> [value, half a unit of its last digit]; bytes, or a count."""
    reported = raw["reported"]
    found: dict[str, Any] = {}
    for names, convert in ((_IN_GIB, _gib), (_IN_MIB, _mib), (_IN_GB, _gb)):
        for theirs, ours in names.items():
            value = reported.get(theirs)
            if isinstance(value, int | float):
                found[ours] = convert(value)
    for theirs, ours in _COUNTS.items():
        if isinstance(reported.get(theirs), int | float):
            found[ours] = [reported[theirs], 0.005 if ours == "max_concurrency" else 0]
    if "kv_pool" in found and "kv_keys" in found:
        # The pool is the sum of two printed sizes.
        found["kv_pool"][1] = 2 * found["kv_keys"][1]
    return found | _of_several_parts(reported)


def _of_several_parts(reported: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    needed = reported.get("kv_needed_gib_for_len")
    if needed:
        found["need"] = [*_gib(float(needed["gib"])), needed["len"]]
    if "peak_gb_as_printed" in reported:
        # Its GB are GiB: 72 B parameters and their cache are more than 144.69 decimal GB.
        found["peak"] = _gib(float(reported["peak_gb_as_printed"]))
    for kind in ("buffers_mib", "breakdown_mib"):
        if kind in reported:
            found[kind.removesuffix("_mib")] = reported[kind]
    return found


def whole_reason(raw: dict[str, Any], model: str | None) -> str | None:
    """Why a record as a whole is not scored; None where it is."""
    if raw.get("figure_kind"):
        return "a planner's estimate, not an allocation"
    if raw.get("confidence") == "low":
        return "low confidence, as the corpus says"
    if raw.get("check_status") == "diff" and raw["engine"] == "transformers":
        return "the run stopped early, as the corpus says"
    if raw["engine"] not in REQUEST_OF:
        return NOT_PLANNED
    if not model:
        return "no model is named"
    return None
