"""What records of MLX, Transformers and SGLang say in words."""

from __future__ import annotations

from typing import Any

NO_CONFIG = "the config of its model is not at hand"
ANY_MAC = {"gpu": "M3 Ultra 512 GB"}
"""Where the Mac is not named: the peak of MLX does not depend on it."""
SHORT = "lengths of the prompts are not stated"
NO_KEY = "a packing of the cache that is not planned"
LAST_LAYER = "mlx-vlm packs all but the last layer of it, and mlx-lm packs no cache with windows"
SHORTER = "its prompt is called 128k, and its cache is one of 125,000 tokens"
NO_ADAPTER = "the size of its adapter is not stated"
HABANA = "optimum-habana's classes on Gaudi, whose graphs keep several shapes alive, not planned"
AUTOAWQ = "AutoAWQ's own classes, which take their caches up front, are not planned"
IMAGE_FIRST = "its notebook answers a question about an image first, whose size is not stated"
OWN_WIDTHS = "unsloth widens part of it to 32 bits on a card without BF16, which is not stated"
OWN_CHECKPOINT = (
    "unsloth loads a 4-bit checkpoint of its own there; which modules it keeps in 16 bits is not "
    "stated"
)


def _as(model: str, **request: Any) -> dict[str, Any]:
    return {"model": model, "request": request}


def _card(model: str, weight_format: str, **request: Any) -> dict[str, Any]:
    found = _as(model, weight_format=weight_format, **request)
    return found | {"left_out": {"peak": SHORT}}


_Q8 = {"bits": 8, "group_size": 64}
_GPT_OSS_20B_Q8: dict[str, Any] = {
    "model_type": "gpt_oss", "vocab_size": 201088, "hidden_size": 2880, "intermediate_size": 2880,
    "num_hidden_layers": 24, "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 64,
    "num_local_experts": 32, "num_experts_per_tok": 4, "sliding_window": 128,
    "max_position_embeddings": 131072, "tie_word_embeddings": False, "torch_dtype": "bfloat16",
    "quantization": {
        "mode": "mxfp4", "bits": 4, "group_size": 32, "lm_head": _Q8, "model.embed_tokens": _Q8,
        **{
            f"model.layers.{layer}.{module}": _Q8
            for layer in range(24)
            for module in (
                "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj",
                "mlp.router",
            )
        },
    },
}  # fmt: skip
"""What the name says: experts as OpenAI packed them, all else in 8 bits."""

_CARDS = "rapidmlx-card-"
MLX: dict[str, dict[str, Any]] = {
    f"{_CARDS}devstral-small-2-4bit": _card(
        "mistralai/Mistral-Small-3.2-24B-Instruct-2506", "mlx-4bit"
    ),
    f"{_CARDS}glm-4.5-air-4bit": _card("zai-org/GLM-4.5-Air", "mlx-4bit"),
    f"{_CARDS}glm-4.7-flash-8bit": _card("zai-org/GLM-4.7-Flash", "mlx-8bit"),
    f"{_CARDS}gpt-oss-20b-mxfp4-q8": _card(
        "mlx-community/gpt-oss-20b-MXFP4-Q8", "auto", config=_GPT_OSS_20B_Q8
    ),
    f"{_CARDS}hermes-3-llama-3.1-8b-4bit": _card("NousResearch/Hermes-3-Llama-3.1-8B", "mlx-4bit"),
    f"{_CARDS}minimax-m2.5-4bit": _card("MiniMaxAI/MiniMax-M2.5", "mlx-4bit"),
    f"{_CARDS}mistral-small-3.2-4bit": _card(
        "mistralai/Mistral-Small-3.2-24B-Instruct-2506", "mlx-4bit"
    ),
    f"{_CARDS}qwen3-0.6b-4bit": _card("Qwen/Qwen3-0.6B", "mlx-4bit"),
    f"{_CARDS}qwen3-coder-next-4bit": _card("Qwen/Qwen3-Coder-Next", "mlx-4bit"),
    f"{_CARDS}qwen3-coder-next-6bit": _card("Qwen/Qwen3-Coder-Next", "mlx-6bit"),
    f"{_CARDS}qwen3.5-122b-a10b-8bit": _card("Qwen/Qwen3.5-122B-A10B", "mlx-8bit"),
    f"{_CARDS}qwen3.5-122b-a10b-mxfp4": _card(
        "mlx-community/Qwen3.5-122B-A10B-mxfp4", "auto"
    ),
    f"{_CARDS}qwen3.5-27b-4bit": _card("Qwen/Qwen3.5-27B", "mlx-4bit"),
    f"{_CARDS}qwen3.5-35b-a3b-4bit": _card("Qwen/Qwen3.5-35B-A3B", "mlx-4bit"),
    f"{_CARDS}qwen3.5-35b-a3b-8bit": _card("Qwen/Qwen3.5-35B-A3B", "mlx-8bit"),
    f"{_CARDS}qwen3.5-4b-4bit": _card("Qwen/Qwen3.5-4B", "mlx-4bit"),
    f"{_CARDS}qwen3.5-9b-4bit": _card("Qwen/Qwen3.5-9B", "mlx-4bit"),
    **{
        f"rapidmlx-qwen35-4b-4bit-16384-step{step}": _as("Qwen/Qwen3.5-4B")
        for step in (4096, 8192, 16384)
    },
    "rapidmlx-gemma4-26b-a4b-4-bit-1024": _as("google/gemma-4-26B-A4B-it"),
    "rapidmlx-gemma4-26b-a4b-4-bit-4096": _as("google/gemma-4-26B-A4B-it"),
    "rapidmlx-qwen3.8-27b-4bit-mtp-mlx-1024": _as("Qwen/Qwen3.8-27B"),
    "rapidmlx-qwen3.8-27b-4bit-mtp-mlx-4096": _as("Qwen/Qwen3.8-27B"),
    "mlxvlm-gemma-4-31b-it-128k-none": _as("google/gemma-4-31B-it", **ANY_MAC),
    "mlxvlm-gemma4-26b-20k-none": _as("google/gemma-4-26B-A4B-it", **ANY_MAC),
    **{
        f"mlx-granite42-3b-4bit-{prompt}": _as("ibm-granite/granite-4.2-3b", **ANY_MAC)
        for prompt in (102, 281, 653)
    },
    "mlx-pr40-mistral7b-after": _as(
        "mistralai/Mistral-7B-Instruct-v0.3", runtime_version="0.22.2", gpu="M2 Ultra 192 GB"
    ),
    "mlx-pr40-mistral7b-before": _as(
        "mistralai/Mistral-7B-Instruct-v0.3", runtime_version="0.22.1", gpu="M2 Ultra 192 GB"
    ),
    "mlx-1029-llama31-8b-32k": _as(
        "meta-llama/Llama-3.1-8B-Instruct", runtime_version="0.21.4", gpu="M4 Pro 64 GB"
    ),
}  # fmt: skip
MLX_LEFT_OUT: dict[str, str] = {
    "mlxvlm-qwen3.5-4b-4bit-128k-turboquant": NO_KEY,
    "mlxvlm-gemma-4-31b-it-128k-turboquant": NO_KEY,
    "mlxvlm-gemma4-26b-20k-turboquant-3.5": NO_KEY,
    "mlxvlm-gemma4-26b-20k-uniform-8bit": LAST_LAYER,
    "mlxvlm-qwen3.5-4b-4bit-128k-none": SHORTER,
    "mlxvlm-gemma4-26b-bf16-peak": SHORT,
    "mlxvlm-diffusiongemma-bf16": NO_CONFIG,
}

_NOTEBOOK = "unsloth-res-"
_NOTEBOOK_MODELS: dict[str, str] = {
    "gemma4-31b-vision": "google/gemma-4-31B-it",
    "gemma4-12b-text": "google/gemma-4-12B-it",
    "gemma4-e4b-vision": "google/gemma-4-E4B-it",
    "qwen2-5-vl-7b-vision": "Qwen/Qwen2.5-VL-7B-Instruct",
    "qwen2-vl-7b-vision": "Qwen/Qwen2-VL-7B-Instruct",
    "qwen3-5-0-8b-vision": "Qwen/Qwen3.5-0.8B",
    "qwen3-vl-8b-vision": "Qwen/Qwen3-VL-8B-Instruct",
    "gemma3-270m": "google/gemma-3-270m-it",
    "magistral-24b-reasoning-conversational": "mistralai/Magistral-Small-2509",
    "lfm2-5-vl-1-6b-vision": "LiquidAI/LFM2.5-VL-1.6B",
    "bge-m3": "BAAI/bge-m3",
}
"""End of a notebook's name -> model, where its own name does not find it."""
_OF_2023 = {"runtime_version": "4.36.0"}
"""No release is stated: the oldest whose rules are known, of the same year."""
_SHORT_PROMPT = _OF_2023 | {"prompt_len": 30, "max_model_len": 90, "batch_size": 1}
# Earlier revisions of the same page say of these figures that 2,048 tokens were read and one made.
_READ_2048 = _OF_2023 | {"prompt_len": 2048, "max_model_len": 2049}
_QWEN_1 = "qwen1-{}-{}-gen2048"
TRANSFORMERS: dict[str, dict[str, Any]] = {
    **{_NOTEBOOK + end: _as(model) for end, model in _NOTEBOOK_MODELS.items()},
    **{
        _QWEN_1.format(size, form): {"request": _READ_2048 if size in ("7b", "14b") else _OF_2023}
        for size in ("1.8b", "7b", "14b", "72b")
        for form in ("bf16", "int8", "int4")
    },
    "tf-octocoder-int8": _as("bigcode/octocoder", **_SHORT_PROMPT),
    # Scales are packed again only where it is asked for.
    "tf-octocoder-nf4": _as("bigcode/octocoder", weight_format="nf4-plain", **_SHORT_PROMPT),
}
TRANSFORMERS_LEFT_OUT: dict[str, str] = {
    "tf-octocoder-bf16-long-eager": "the length of its prompt is not stated",
    "unsloth-res-gemma3n-4b-vision": NO_CONFIG,
    "unsloth-res-pixtral-12b-vision": NO_CONFIG,
    "unsloth-res-modernbert": NO_CONFIG,
    "unsloth-res-gemma4-e2b-vision": "a stale output of its notebook, as the corpus says",
    "unsloth-res-lfm2-5-1-2b-text-completion": "a stale output of its notebook, as the corpus says",
}


_ADAPTERS = {"unsloth-res-bge-m3": 24 * 32 * (4 * 2 * 1024 + 2 * (1024 + 4096))}
"""Parameters by a notebook's own settings: rank 32 on every linear layer of 24 blocks."""


def adapter(raw: dict[str, Any]) -> dict[str, Any]:
    """The parameters of the adapters that a notebook had put on its model by then."""
    count = _ADAPTERS.get(raw["id"], raw.get("trainable_parameters"))
    is_loaded = "reserved_after_load_gib" in raw["reported"]
    return {"adapter_parameters": count} if count and is_loaded else {}


def after_loading(raw: dict[str, Any]) -> str | None:
    """Why what a notebook reserved, or other classes took, isn't compared; None where it is."""
    if "reserved_after_load_gib" in raw["reported"]:
        if raw["weight_format"] == "bnb-nf4":
            return OWN_CHECKPOINT
        if raw["id"].endswith("-vision"):
            return IMAGE_FIRST
        if raw.get("gpu") == "Tesla T4" and "gemma3" in raw["id"]:
            return OWN_WIDTHS
        if not adapter(raw):
            return NO_ADAPTER
    release = (raw.get("engine_version") or "").lower()
    if "autoawq" in release and "transformers" not in release:
        return AUTOAWQ
    return HABANA if "habana" in release else None


def _free(model: str, free_gib: float, gpu: str, **request: Any) -> dict[str, Any]:
    """A start that prints what was free before it loaded anything."""
    found = _as(model, gpu=gpu, **request)
    return found | {"facts": {"free_before_bytes": round(free_gib * 2**30)}}


def _gib(size: float, within: float = 0.005) -> list[int]:
    """A printed size: bytes, and half a unit of its last digit."""
    return [round(size * 2**30), round(within * 2**30)]


_H100, _CARD_24, _CARD_16 = "H100 SXM 80GB", "RTX 4090", "RTX 4060 Ti 16GB"
"""Cards of the class that a record names by its size."""
SCRATCH = ("kv_pool", "tokens from scratch")
_PLAIN_LLAMA = "meta-llama/Llama-3.1-8B-Instruct"
SGLANG: dict[str, dict[str, Any]] = {
    "club3090-qwen36-27b-sglang-tp2": _as("Qwen/Qwen3.6-27B")
    | {"left_out": dict.fromkeys(SCRATCH, "its draft model is not described")},
    "sglang-15909-qwen3-omni-30b-tp4": _as("Qwen/Qwen3-30B-A3B", runtime_version="0.5.7"),
    "sglang-11309-dsv32-with-indexer": _as(
        "deepseek-ai/DeepSeek-V3.2-Exp", weight_format="auto", enable_dp_attention=True,
        gpu="B200", runtime_version="0.5.4",
    ),
    "sglang-11309-dsv32-before": _as(
        "deepseek-ai/DeepSeek-V3.2-Exp", weight_format="auto", enable_dp_attention=True,
        gpu="B200", runtime_version="0.5.3",
    )
    # Printed without its index; the page states what it is with it.
    | {"printed": {"kv_pool": _gib(65.49)}},
    "sglang-4760-llama31-8b-h100": _free(_PLAIN_LLAMA, 78.59, _H100),
    "sglang-21348-qwen3-235b-fp8-h100x4": _as(  # Asked on 22 July 2025.
        "Qwen/Qwen3-235B-A22B-FP8", weight_format="auto", gpu=_H100, runtime_version="0.4.9"
    ),
    "fi-sglang-kimi-k25-tp8": _free(
        "moonshotai/Kimi-K2.5", 283.6, "MI355X", weight_format="auto", runtime_version="0.5.8"
    ),
    "fi-sglang-glm5-fp8-tp8": _free(
        "zai-org/GLM-5-FP8", 193.92 + 89.58, "MI355X", weight_format="auto",
        runtime_version="0.5.8",
    ),
    "fi-sglang-llama31-8b-24gb": _free(
        _PLAIN_LLAMA, 22.39, _CARD_24, runtime_version="0.4.9", chunked_prefill_size=2048
    ),
    "fi-sglang-qwen25-05b-80gb": _free(  # Its log is of 4 February 2026.
        "Qwen/Qwen2.5-0.5B-Instruct", 78.43, _H100, max_total_tokens=20480,
        runtime_version="0.5.8", cuda_graph_max_bs=4, max_running_requests=128,
    )
    | {"printed": {"kv_pool": _gib(0.12 + 0.12, 0.01)}},
    "fi-sglang-qwen3-32b-gke": _free(  # The deployment beside its page states these.
        "Qwen/Qwen3-32B", 17.40 + 61.07, _H100, mem_fraction_static=0.9, max_model_len=8192
    ),
    "fi-sglang-qwen3-06b-4gb": _free("Qwen/Qwen3-0.6B", 3.23, "Jetson Orin Nano 4GB"),
    "sgl-granite4-h-micro-16gb": _free(
        "ibm-granite/granite-4.0-h-micro", 15.24, _CARD_16, runtime_version="0.5.8"
    ),
    "sgl-lfm2-700m-16gb": _free("LiquidAI/LFM2-700M", 15.33, _CARD_16),
    "sgl-qwen3-14b-tp4-24gb": _free("Qwen/Qwen3-14B", 16.0 + 7.08, _CARD_24),
    "sgl-qwen2-7b-24gb-20250204": _free(
        "Qwen/Qwen2.5-7B-Instruct", 22.76, _CARD_24, runtime_version="0.4.2"
    ),
    "sgl-qwen35-4b-24gb": _free("Qwen/Qwen3.5-4B", 14.47 + 8.62, _CARD_24),
    "sgl-ornith-9b-gb10": _free(
        "Qwen/Qwen3.5-9B", 24.12 + 17.17, "GB10 (DGX Spark)", runtime_version="0.5.14"
    ),
    "sgl-nemotronh-xpu-tp4": _free(  # The page lists the flags of this start.
        "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", 7.95 + 14.76, "Arc Pro B60",
        mem_fraction_static=0.85, page_size=64, enable_prefix_caching=False,
    ),
    "sgl-qwen38-27b-eagle-v0517": _as(  # Five steps, six tokens; the pool is the draft's too.
        "Qwen/Qwen3.8-27B", speculative_tokens=5, max_running_requests=4, max_mamba_cache_size=43
    )
    | {"printed": {"kv_pool": _gib(10.44 + 0.66, 0.02)}},
    "sgl-qwen2-32b-tp4-24gb": _free(
        "Qwen/Qwen2.5-32B-Instruct", 6.09 + 15.54, _CARD_24, runtime_version="0.4.3"
    ),
    "sgl-18263-qwen3-30b-aiter": _free(
        "Qwen/Qwen3-30B-A3B-Instruct-2507", 230.2 + 56.98, "MI355X", runtime_version="0.5.15"
    ),
    "sgl-qwen3-8b-b300": _free(  # More is free than a B300 has: a GB300.
        "Qwen/Qwen3-8B", 275.75, "GB300", runtime_version="0.5.12"
    ),
    "sgl-15464-mimo-v2-flash-tp4": _as(
        "XiaomiMiMo/MiMo-V2-Flash", gpu="B200", weight_format="auto"
    ),
    "sgl-qwen35-27b-bf16-gb10": _free(  # The page states these on the line before its log.
        "Qwen/Qwen3.5-27B", 59.87 + 51.86, "GB10 (DGX Spark)", runtime_version="0.5.15",
        mem_fraction_static=0.8, enable_prefix_caching=False,
    ),
    "sgl-llama31-8b-spec-20480": _as(
        _PLAIN_LLAMA, max_total_tokens=20480, runtime_version="0.5.12"
    ),
}  # fmt: skip
SGLANG_LEFT_OUT: dict[str, str] = {
    "fi-sglang-qwen38-flash-next-gb10": NO_CONFIG,
    "sgl-dsv4-dspark-gb10-rank": "its parallel size is not stated, and it has a draft model",
    "sgl-grok1-tp8": "one of two models, which is not said",
    "sgl-bailing-v3-kda": NO_CONFIG,
    "sgl-hybrid-dummy-h20": "a model made up for a test",
}
