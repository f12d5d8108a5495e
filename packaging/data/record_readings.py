"""What a record of the corpora says in words: the model it means, settings, what to leave out.

Models are given by the names of our catalogue. Where a record states the geometry and not the
name, the model is the one that has it, as the corpus infers.
"""

from __future__ import annotations

from typing import Any

from record_readings_files import FILES, FILES_LEFT_OUT
from record_readings_more import (
    MLX,
    MLX_LEFT_OUT,
    SGLANG,
    SGLANG_LEFT_OUT,
    TRANSFORMERS,
    TRANSFORMERS_LEFT_OUT,
)

LORA_32 = {"max_loras": 1, "max_lora_rank": 32}
OFF = {"enable_prefix_caching": False}
# Since 0.28 prefixes are cached where nothing is asked for. These starts name no release, and
# one block of state a request and group shows that theirs were not.
ON = {"enable_prefix_caching": True}
NO_DRAFT = "its draft model is not described"
NO_CONFIG = "the config of its model is not at hand"
OWN_PLATFORM = "a platform whose pool follows a rule of its own, which is not planned"
UNSTATED = "settings that decide it are not stated"
PATCHED = "a patched build with a draft model"
FORMAT = "the format of its weights is not stated"


def _as(model: str, **request: Any) -> dict[str, Any]:
    return {"model": model, "request": request}


def _but(
    reading: dict[str, Any], reason: str, *figures: str, facts: dict[str, Any] | None = None
) -> dict[str, Any]:
    """``reading`` with figures that are left out."""
    found = reading | {"left_out": reading.get("left_out", {}) | dict.fromkeys(figures, reason)}
    return found | ({"facts": facts} if facts else {})


SCRATCH = ("kv_pool", "concurrency from scratch")
KNOWN = (
    "kv_blocks from a known pool", "kv_tokens from a known pool",
    "max_concurrency from a known pool",
)  # fmt: skip
_GPTQ = {"weight_format": "gptq-int4-no-order"}
_LLAMA = "meta-llama/Llama-3.1-8B-Instruct"
_QWEN_27B: dict[str, Any] = {
    "model_type": "qwen3_5_text", "vocab_size": 248320, "hidden_size": 5120,
    "intermediate_size": 17408, "num_hidden_layers": 64, "num_attention_heads": 24,
    "num_key_value_heads": 4, "head_dim": 256, "linear_num_value_heads": 48,
    "linear_num_key_heads": 16, "linear_value_head_dim": 128, "linear_key_head_dim": 128,
    "linear_conv_kernel_dim": 4, "mamba_ssm_dtype": "float16",
    "layer_types": [*["linear_attention"] * 3, "full_attention"] * 16,
    "max_position_embeddings": 262144, "tie_word_embeddings": False, "torch_dtype": "bfloat16",
}  # fmt: skip
_DFLASH: dict[str, Any] = {
    "architectures": ["DFlash2DraftModel"], "model_type": "qwen3", "num_target_layers": 64,
    "block_size": 16, "hidden_size": 5120, "num_hidden_layers": 5, "num_attention_heads": 32,
    "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 17408, "vocab_size": 248320,
    "tie_word_embeddings": False, "torch_dtype": "bfloat16", "sliding_window": 2048,
    "use_sliding_window": True, "layer_types": ["sliding_attention"] * 5,
    "dflash_config": {
        "mask_token_id": 1, "target_layer_ids": [0, 1, 2, 3, 4], "conv_kernel_size": 2,
        "conv_group_size": 16, "selector_rank": 256, "selector_top_k": 16,
    },
}  # fmt: skip
"""The published draft of Qwen3.8-27B; its window and what a step held follow from 6.37 GiB."""


def _drafted(version: str) -> dict[str, Any]:
    """Qwen3.8-27B with states in 16 bits, as its blocks of 448 tokens show, and its block draft."""
    request = {
        "config": _QWEN_27B, "runtime_version": version, "speculative_tokens": 7,
        "max_num_batched_tokens": 2048,
    }  # fmt: skip
    return {
        "model": "Qwen/Qwen3.8-27B",
        "request": request,
        "printed": {"kv_pool": [6_000_000_000, 0]},
        "facts": {"draft_config": _DFLASH},
        "left_out": {"weights": FORMAT},
    }


VLLM: dict[str, dict[str, Any]] = {
    "fi-qwen38-27b-dflash-pad-028": _drafted("0.28.0"),
    "fi-qwen38-27b-dflash-pad-029": _drafted("0.29.0"),
    "hf-cookbook-qwen2-0.5b-a100": _as("Qwen/Qwen2-0.5B-Instruct", gpu="A100 80GB"),
    "kaito-2132-mistral-small-4-119b": _as(
        "mistralai/Mistral-Small-4-119B-2603", tensor_parallel_size=2
    ),
    "club3090-165-qwen36-27b-nvfp4-2x5090": _as("Qwen/Qwen3.6-27B", weight_format="nvfp4"),
    # No release is stated: the same project's others are of 0.24 and 0.25.
    "club3090-523-qwen36-35b-nvfp4-2x5090": _as(
        "Qwen/Qwen3.6-35B-A3B", weight_format="nvfp4", runtime_version="0.24.0", **ON
    ),
    "club3090-745-qwen36-27b-int8kv": _but(
        _as("Qwen/Qwen3.6-27B"), PATCHED, *SCRATCH, *KNOWN, "card"
    ),
    "club3090-745-gemma4-31b-int8kv": _but(
        _as("google/gemma-4-31B-it"), PATCHED, *SCRATCH, *KNOWN, "card"
    ),
    # Gemma 4's assistants read the cache of their target and keep none (``gemma4_mtp.py``). The
    # lines of tokens tell what a step held: 4,096 here, 8,192 of one batch below.
    "club3090-gemma4-12b-2x3090": _but(
        _as("google/gemma-4-12B-it", runtime_version="0.24.0", max_num_batched_tokens=4096),
        NO_DRAFT, *SCRATCH,
    ),
    "club3090-612-qwen36-35b-nvfp4-5090": _but(
        _as("Qwen/Qwen3.6-35B-A3B", weight_format="nvfp4"), UNSTATED, *SCRATCH
    ),
    "club3090-642-qwen36-27b-2x3090": _but(_as("Qwen/Qwen3.6-27B"), UNSTATED, *SCRATCH),
    "unsloth-nb-deepseek-r1-0528-qwen3-8b-grpo": _as(
        "deepseek-ai/DeepSeek-R1-0528-Qwen3-8B", **LORA_32
    ),
    "unsloth-nb-llama3-1-8b-grpo": _as(_LLAMA, **LORA_32),
    "unsloth-nb-llama-fp8-grpo": _as(
        "meta-llama/Llama-3.2-1B-Instruct", weight_format="fp8-block", **LORA_32
    ),
    "unsloth-nb-mistral-v0-3-7b-grpo": _as("mistralai/Mistral-7B-Instruct-v0.3", **LORA_32),
    "unsloth-nb-phi-4-14b-grpo": _as("microsoft/phi-4"),
    "recipes-kimi-k2-thinking-tp8": _as(
        "moonshotai/Kimi-K2-Thinking", weight_format="auto", runtime_version="0.11.0",
        max_model_len=131072,
    ),
    "recipes-kimi-k2-thinking-tp8-dcp8": _as(
        "moonshotai/Kimi-K2-Thinking", weight_format="auto", runtime_version="0.11.0",
        max_model_len=131072,
    ),
    "recipes-653-minimax-m3": _as(
        "MiniMaxAI/MiniMax-M3", tensor_parallel_size=8, weight_format="mxfp8"
    ),
    "vllm-21348-qwen3-235b-fp8-h100x4": _but(
        _as("Qwen/Qwen3-235B-A22B-FP8", weight_format="auto"),
        "the pool that is printed is one rank's, and the poorest decides", *KNOWN,
    ),
    "vllm-27508-gptoss120b-h100": _but(
        # 0.11 of October 2025; the printed need tells that a step held about 1,024 tokens.
        _as("openai/gpt-oss-120b", runtime_version="0.11.0", max_num_batched_tokens=1024),
        UNSTATED, *SCRATCH,
    ),
    "vllm-34076-qwen3-coder-30b-pp2": _but(
        _as("Qwen/Qwen3-Coder-30B-A3B-Instruct", weight_format="fp8-block"),
        "two unlike cards and a split that is set by hand", *SCRATCH, facts={"whole_need": True},
    ),
    "vllm-12569-llama31-70b-w8a8": _as("meta-llama/Llama-3.1-70B-Instruct", weight_format="int8"),
    "vllm-12660-idefics3-8b-2xt4": _as("HuggingFaceM4/Idefics3-8B-Llama3"),
    "vllm-17122-llama31-8b-l40s": _but(_as(_LLAMA), UNSTATED, *SCRATCH),
    "vllm-4650-deepseek-coder-v2-h100x8": _but(
        _as("deepseek-ai/DeepSeek-Coder-V2-Instruct"), "no pool is printed", *KNOWN
    ),
    "fi-glm47-nvfp4-tp4": _as(
        "zai-org/GLM-4.7", weight_format="nvfp4", kv_cache_dtype="fp8", max_model_len=32768
    ),
    "fi-qwen3-8b-fp8-24gb": _as("Qwen/Qwen3-8B-FP8", weight_format="auto"),
    "fi-kaitchup-llama31-8b-gptq-asym": _as(_LLAMA, **_GPTQ),
    "fi-kaitchup-llama31-8b-gptq-sym": _as(_LLAMA, **_GPTQ),
    "fi-kaitchup-llama31-8b-gptq": _as(_LLAMA, **_GPTQ),
    "fi-kaitchup-llama31-8b-awq": _as(_LLAMA, weight_format="awq-int4"),
    "fi-qwen36-35b-nvfp4-gb10": _but(
        _as("nvidia/Qwen3.6-35B-A3B-NVFP4", weight_format="auto", kv_cache_dtype="fp8"),
        "another publisher's packing, which is not at hand", "weights",
    ),
    "fi-minimax-m27-offload": _as("MiniMaxAI/MiniMax-M2.7"),
    "fi-glm52-nvfp4-4xgb10-dcp4": _as("nvidia/GLM-5.2-NVFP4", weight_format="auto")
    | {"printed": {"kv_pool": [1_810_000_000, 0]}},
    "fi-qwen35-2b-util50": _as("Qwen/Qwen3.5-2B", runtime_version="0.19.0"),
    # A card of 79.25 GiB.
    "fi-phi4-gptq-util15": _as("microsoft/phi-4", gpu="A100 80GB", **_GPTQ),
    "fi-llama31-8b-a10g": _but(_as(_LLAMA), UNSTATED, *SCRATCH),
    "fi-glm51-rocm-8x": _but(_as("zai-org/GLM-5.1"), FORMAT, "need of one request", "longest"),
    "fi-dsv4-flash-8xrtxpro5000": _as(
        "deepseek-ai/DeepSeek-V4-Flash", weight_format="auto", enable_expert_parallel=True
    ),
    "fi-dsv4-flash-h200-tp2": _as(
        "deepseek-ai/DeepSeek-V4-Flash", weight_format="auto", runtime_version="0.22.1"
    ),
    "fi-dsv4-flash-base-mi355-tp8": _but(
        _as("deepseek-ai/DeepSeek-V4-Flash", weight_format="fp8-block"),
        "its context is not stated", *SCRATCH, *KNOWN,
    ),
    "fi-qwen3-14b-fp8-4090": _but(
        _as("Qwen/Qwen3-14B", weight_format="fp8-block"), UNSTATED, *SCRATCH
    ),
    # "0.0 GiB for CUDAGraph memory".
    "fi-qwen25-05b-4090": _as(
        "Qwen/Qwen2.5-0.5B-Instruct", runtime_version="0.27.0", enforce_eager=True
    ),
    # Their token line is concurrency times length, as since 0.20.1; one block of state a request,
    # as until 0.27.
    "fi-27b-fp8-l40s-882": _as(
        "Qwen/Qwen3.5-27B", weight_format="fp8-block", runtime_version="0.24.0", **OFF
    ),
    "fi-27b-fp8-l40s-975": _as(
        "Qwen/Qwen3.5-27B", weight_format="fp8-block", runtime_version="0.24.0", **OFF
    ),
    "fi-48l-8kv-mi300x-tp2": _as(
        "Qwen/Qwen2.5-14B-Instruct", runtime_version="0.9.2", gpu="MI300X"
    ),
    "fi-granite4-h-1b": _as("ibm-granite/granite-4.0-h-1b"),
    # Loaded from "base" in a folder, by ``LLM`` and not a server: 8,192 tokens a step.
    "fi-qwen25-7b-32gb-v024": _as(
        "Qwen/Qwen2.5-7B-Instruct", runtime_version="0.24.0", max_num_batched_tokens=8192
    ),
    "fi-qwen36-27b-fp8kv-need": _but(_as("Qwen/Qwen3.6-27B", **OFF), FORMAT, *SCRATCH),
    "fi-qwen36-27b-24gb-seqs4": _but(_as("Qwen/Qwen3.6-27B", **OFF), FORMAT, *SCRATCH),
    "fi-qwen36-27b-24gb-seqs8": _but(_as("Qwen/Qwen3.6-27B", **OFF), FORMAT, *SCRATCH),
    "fi-gemma4-31b-2xb70": _but(
        _as("google/gemma-4-31B-it", runtime_version="0.24.0", max_num_batched_tokens=8192),
        NO_DRAFT, *SCRATCH,
    ),
    "fi-qwen3next-80b-w4a16-util92": _but(
        _as("Qwen/Qwen3-Next-80B-A3B-Instruct"), UNSTATED, *SCRATCH, *KNOWN
    ),
    "fi-qwen3next-80b-w4a16-util75": _as(
        "Qwen/Qwen3-Next-80B-A3B-Instruct", mamba_ssm_cache_dtype="float16"
    ),
    # Of 2026, before a sliding layer had to hold two batches.
    "fi-gemma4-e2b-1kvhead": _as("google/gemma-4-E2B-it", runtime_version="0.24.0"),
    "fi-qwen35-08b-12gb": _as("Qwen/Qwen3.5-0.8B", **OFF),
    "fi-llama3-8b-ascend-tp2pp2": _as("meta-llama/Meta-Llama-3-8B", block_size=128),
    "v2-gaudi2-llama31-8b-util90": _but(
        _as("meta-llama/Llama-3.1-8B", block_size=128), OWN_PLATFORM, "activations", *SCRATCH
    ),
    # "192 GB class" of AMD's.
    "fi-gemma3-27b-rocm": _as("google/gemma-3-27b-it", runtime_version="0.11.0", gpu="MI300X"),
    "v2-qwen25-05b-navi-rocm": _but(
        _as("Qwen/Qwen2.5-0.5B-Instruct", gpu="RX 9070 XT"), "the card is not named", *SCRATCH
    ),
    "v2-r1-qwen3-8b-tp4-22gb": _as("deepseek-ai/DeepSeek-R1-0528-Qwen3-8B"),
    # V0, as they say, which 0.7 is the last to take by itself. The first one's peak is of a forward
    # pass alone: fewer than 40 rows were sampled.
    "v2-llama31-8b-a10g-131072": _as(_LLAMA, runtime_version="0.7.3", max_num_seqs=32),
    "v2-lmcache433-internvl25-8b-awq": _as("OpenGVLab/InternVL2_5-8B", runtime_version="0.7.3"),
    "v2-qwen3-06b-8gib-sampler-oom": _as("Qwen/Qwen3-0.6B", runtime_version="0.19.0"),
    "v2-qwen25-05b-cmp170hx-win": _as("Qwen/Qwen2.5-0.5B-Instruct"),
    "v2-nemotron-cascade2-30b-nvfp4-h100": _as(
        "nvidia/Nemotron-Cascade-2-30B-A3B", weight_format="nvfp4", gpu="H100 NVL",
        runtime_version="0.18.0",
    ),
    "v2-nemotronh-4b-fp8-16gb": _as(
        "nvidia/NVIDIA-Nemotron-3-Nano-4B-BF16", weight_format="fp8", runtime_version="0.15.0"
    ),
    "v2-llm4b-bf16-vs-gptq-24gb": _as("Qwen/Qwen2.5-VL-7B-Instruct"),
    "v2-llm4b-gptq-24gb": _as("Qwen/Qwen2.5-VL-7B-Instruct"),
    # "Encoder cache will be initialized with a budget of 2048 tokens": those of a step.
    "v2-whisper-large-v3-16gb": _as(
        "openai/whisper-large-v3", weight_format="auto", runtime_version="0.15.0",
        max_num_batched_tokens=2048,
    ),
    "v2-lfm25-12b-metax-c500": _but(
        _as("LiquidAI/LFM2.5-1.2B-Instruct"), "no pool is printed", *KNOWN
    ),
    "v2-05b-wsl-24gb": _as("Qwen/Qwen2.5-0.5B-Instruct", runtime_version="0.27.0"),
    "v2-xpu-lunarlake-qwen36-35b": _but(
        _as("Qwen/Qwen3.6-35B-A3B", weight_format="mxfp4", **ON), OWN_PLATFORM, "card", *SCRATCH
    ),
    "v2-mistral-small4-119b-awq-2xl40s": _as(
        "mistralai/Mistral-Small-4-119B-2603", runtime_version="0.18.0"
    ),
    "v2-llama32-11b-vision-2xa10-oom": _as(
        "meta-llama/Llama-3.2-11B-Vision-Instruct", runtime_version="0.6.3"
    ),
    "v2-deepseek-v3-tp8pp4-4090": _as("deepseek-ai/DeepSeek-V3", weight_format="auto")
    | {"printed": {"weights": [round(16.9583 * 2**30), round(0.00005 * 2**30)]}},
    "v2-fp8kv-maxlen-effect": _but(
        _as("Qwen/Qwen3-30B-A3B", weight_format="fp8-block", runtime_version="0.10.2"),
        "of a start whose pool is not printed", "longest",
    ),
    "v2-minimax-m2-2xmi300x": _as("MiniMaxAI/MiniMax-M2.5", weight_format="auto"),
}  # fmt: skip

READINGS: dict[str, dict[str, Any]] = {
    **VLLM,
    **FILES,
    **MLX,
    **TRANSFORMERS,
    **SGLANG,
}
"""Record -> ``model`` and ``request`` as meant, figures ``left_out`` with the reason."""

LEFT_OUT: dict[str, str] = {
    **FILES_LEFT_OUT,
    **MLX_LEFT_OUT,
    **TRANSFORMERS_LEFT_OUT,
    **SGLANG_LEFT_OUT,
    "fi-dsv4-flash-gb10-need": NO_DRAFT,
    "fi-dsv4-flash-gb10-serve": NO_DRAFT,
    "fi-qwen38-27b-r9700-mtp": NO_DRAFT,
    "fi-qwen38-flash-next-bf16-h100": NO_CONFIG,
    "v2-nemotron3-nano-omni-nvfp4-5090": NO_CONFIG,
    "v2-qwen38-cold-compile": "no model is named",
    "oom-h200-glm5-fp8-tp8": "a process that ran out of memory at a transient, not a start",
    "v2-tpu-qwen3-06b-tp4": OWN_PLATFORM,
}
"""Record -> why none of it is scored."""
