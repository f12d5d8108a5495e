"""What any record says of itself, without a reading: names, flags, what was free at the start."""

from __future__ import annotations

import re
from typing import Any

GIB = 2**30
NO_DRAFT = "its draft model is not described"
PACKED = "a packing of the cache that is not planned"
SHORT = "lengths of the prompts are not stated"
OWN_PLATFORM = "a platform whose pool follows a rule of its own, which is not planned"
FROM_POOL = (
    "kv_pool", "concurrency from scratch", "tokens from scratch", "kv_blocks from a known pool",
    "kv_tokens from a known pool", "max_concurrency from a known pool", "need of one request",
    "longest",
)  # fmt: skip
"""Figures that a draft's cache decides too."""
_MIX = re.compile(r"[-. ](?:UD-|i1-)?(I?Q\d\w*|F16|BF16)$")
_NAMED_MIX = re.compile(r"\b(I?Q\d\w*|F16|BF16)(?: - (Small|Medium|Large))?\)?$")
_SIZED = {"Q3_K", "Q4_K", "Q5_K"}
"""Mixes that come in sizes; publishers made up more of them."""
_PACKED = re.compile(r"(?:-MLX)?[- ](?:\d-?bit|bf16)(?:-MTP-MLX)?$", re.IGNORECASE)
_FILES = ("llama.cpp", "ik_llama.cpp", "ollama")
_OF_FILES = re.compile(r"([- ](qat|0\d{3}|128k|gguf))+$", re.IGNORECASE)
"""What names of files add to the model's: how it was trained further, and when it was made."""
_PLAIN_CACHES = (None, "none", "auto", "bf16", "fp16")
_PLATFORMS = re.compile(r"Gaudi|Ascend|TPU|XPU")
TOTALS = "its log prints totals over all chips"
_BLOCKS_OF_128 = re.compile(r"Gaudi|Ascend")
_DRAFTED = re.compile(r"draft|eagle|dflash|dspark|nextn|(?<!no )speculative", re.IGNORECASE)
_FLAGS: tuple[tuple[str, str, Any], ...] = (
    (r"mamba-ssm-cache-dtype (\w+)", "mamba_ssm_cache_dtype", str),
    (r"max[-_]total[-_]tokens (\d+)", "max_total_tokens", int),
    (r"kv-cache-memory-bytes (\d+)", "kv_cache_memory_bytes", int),
    (r"LAYER_PARTITION=([\d,]+)", "pp_layer_partition", lambda text: [*map(int, text.split(","))]),
    (r"(?:speculative|MTP).*?n=(\d+)", "speculative_tokens", int),
)
"""How a flag is written, the key of the contract that it sets, and what makes its value."""
_CARDS = (
    (16, "RTX 4060 Ti 16GB"), (24, "RTX 4090"), (48, "L40S"), (80, "H100 SXM 80GB"),
    (141, "H200"), (180, "B200"), (288, "MI355X"),
)  # fmt: skip
"""A card for every size, where a record states what was free and not on which card."""


def model_name(raw: dict[str, Any]) -> str | None:
    """The model, without remarks and without the mix of its file.

    Where none is stated, the one that the corpus infers from the geometry.
    """
    text = raw.get("model") or raw.get("model_inferred") or ""
    name = re.sub(r"\s+\(.*$|[ -]class\b.*$", "", text).strip()
    if raw["engine"] in _FILES:
        name = _OF_FILES.sub("", _MIX.sub("", name).replace("_", "-"))
    if raw["engine"].startswith("mlx"):
        name = _PACKED.sub("", name.removeprefix("mlx-community/"))
    return _MIX.sub("", name) or None


def file_mix(raw: dict[str, Any]) -> str | None:
    """The mix of a GGUF file: as its name ends, or as the runtime described it."""
    named = _MIX.search(raw.get("model") or "")
    said = _NAMED_MIX.search(raw.get("weight_format") or "")
    if named:
        start, _, size = named[1].rpartition("_")
        if size not in ("XL", "XXL"):
            return named[1]
        return f"{start}_M" if start in _SIZED else start
    if said is None or said[1] not in _SIZED:
        return said[1] if said else None
    return f"{said[1]}_{(said[2] or 'Medium')[0]}"


def flags(raw: dict[str, Any]) -> dict[str, Any]:
    """The keys that ``other_flags`` sets."""
    text = " ".join(raw.get("other_flags") or [])
    found: dict[str, Any] = {}
    for pattern, key, made in _FLAGS:
        stated = re.search(pattern, text)
        if stated:
            found[key] = made(stated[1])
    if re.search("enable[_-]prefix[_-]caching", text):
        found["enable_prefix_caching"] = True
    for flag in ("enable_expert_parallel", "enable_dp_attention"):
        if flag.replace("_", "-") in text:
            found[flag] = True
    rank = re.search(r"max_lora_rank (\d+)", text)
    if rank:
        found |= {"max_loras": 1, "max_lora_rank": int(rank[1])}
    if _BLOCKS_OF_128.search(_platform(raw)):
        found["block_size"] = 128
    return found


def free_before(raw: dict[str, Any]) -> dict[str, Any]:
    """What a start of SGLang had free: as printed, or what it left and its weights together."""
    reported = raw["reported"]
    free = reported.get("free_before_load_gib")
    if free is None and {"free_after_load_gib", "weights_gib"} <= reported.keys():
        free = reported["free_after_load_gib"] + reported["weights_gib"]
    is_stated = raw["engine"] == "sglang" and isinstance(free, int | float)
    return {"free_before_bytes": round(free * GIB)} if is_stated else {}


def whole_need(raw: dict[str, Any]) -> dict[str, Any]:
    """Whether a refusal of a pipeline counted all stages together, as vLLM's do."""
    is_refused = "kv_needed_gib_for_len" in raw["reported"] and (raw.get("pp") or 1) > 1
    return {"whole_need": True} if is_refused else {}


def card_for(free_bytes: int) -> str:
    """A card with so much room."""
    return next((name for size, name in _CARDS if size * GIB >= free_bytes), _CARDS[-1][1])


def unread(raw: dict[str, Any], request: dict[str, Any]) -> dict[str, str]:
    """Figures of a record without a reading that cannot be compared, and why."""
    found: dict[str, str] = {}
    if raw["engine"].startswith("mlx") and not raw.get("prompt_tokens"):
        found |= dict.fromkeys(("peak", "kv"), SHORT)
    if raw["engine"].startswith("mlx") and raw.get("kv_dtype") not in _PLAIN_CACHES:
        found |= dict.fromkeys(("peak", "kv"), PACKED)
    drafted = _DRAFTED.search(" ".join([raw.get("model") or "", *(raw.get("other_flags") or [])]))
    if drafted and "speculative_tokens" not in request:
        found |= dict.fromkeys((*FROM_POOL, "weights"), NO_DRAFT)
    if raw["engine"] == "vllm" and _PLATFORMS.search(_platform(raw)):
        found |= dict.fromkeys(("kv_pool", "concurrency from scratch", "activations"), OWN_PLATFORM)
    if raw.get("per_rank") is False:
        found |= dict.fromkeys((*FROM_POOL, "weights"), TOTALS)
    return found


def _platform(raw: dict[str, Any]) -> str:
    return f"{raw.get('gpu') or ''} {raw.get('engine_version') or ''}"
