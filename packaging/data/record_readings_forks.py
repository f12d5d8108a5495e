"""What records of ik_llama.cpp say in words: the model, the cache's types, how layers are dealt."""

from __future__ import annotations

from typing import Any

OWN_MIX = "a mix of its own, or one that is not stated"
OWN_RULES = "a rule of its own, which is not planned"
BY_HAND = "tensors are placed by hand"
MODEL, COMPUTE = "printed model buffers", "printed compute buffers"

_QWEN = "Qwen/Qwen3-235B-A22B"
_DEEPSEEK = "deepseek-ai/DeepSeek-R1-0528"
_EXPERTS = {"n_cpu_moe": 999}
_GLM_Z1_32B: dict[str, Any] = {
    "model_type": "glm4", "vocab_size": 151552, "hidden_size": 6144, "intermediate_size": 23040,
    "num_hidden_layers": 61, "num_attention_heads": 48, "num_key_value_heads": 2,
    "head_dim": 128, "attention_bias": False, "max_position_embeddings": 32768,
    "tie_word_embeddings": False, "torch_dtype": "bfloat16",
}  # fmt: skip


def _read(
    model: str | dict[str, Any],
    context: int,
    cache: str = "f16",
    *,
    cards: int = 1,
    ubatch: int = 512,
    left_out: dict[str, str] | None = None,
    **request: Any,
) -> dict[str, Any]:
    """A start with flash attention and one kind of cache; half of a terabyte on every card."""
    found: dict[str, Any] = {
        "weight_format": "Q8_0", "n_ctx": context, "n_ubatch": ubatch,
        "n_batch": max(2048, ubatch), "cache_type_k": cache, "cache_type_v": cache,
        "flash_attn": "on", "gpu": "RTX A6000", "gpu_total_bytes": 2**39, "gpu_count": cards,
    }  # fmt: skip
    several = {COMPUTE: OWN_RULES} if cards > 1 or model == _DEEPSEEK else {}
    named = {"model": model} if isinstance(model, str) else {}
    config = {} if isinstance(model, str) else {"config": model}
    reasons = {MODEL: OWN_MIX} if left_out is None else left_out
    return named | {
        "request": found | config | request,
        "left_out": reasons | several,
    }


FORKS: dict[str, dict[str, Any]] = {
    "ik-023-gemma-3-27b-it-qat": _read(
        "google/gemma-3-27b-it", 32768, weight_format="Q4_K_M", left_out={}
    ),
    "ik-025-qwen3-235b-a22b": _read(_QWEN, 32768, "q8_0", **_EXPERTS),
    "ik-026-qwen3-235b-a22b": _read(_QWEN, 32768, left_out={MODEL: BY_HAND}, **_EXPERTS),
    "ik-028-qwen3-235b-a22b-ud-iq-quant": _read(
        _QWEN, 16384, "q8_0", n_gpu_layers=0,
        left_out={MODEL: OWN_MIX, COMPUTE: OWN_RULES},
    ),
    "ik-029-qwen3-235b-a22b-ud-iq-quant": _read(_QWEN, 16384, "q8_0", **_EXPERTS),
    "ik-032-qwen3-235b-a22b-ud-iq-quant": _read(_QWEN, 16384, "q8_0", cards=2, **_EXPERTS),
    "ik-046-meta-llama-3-1-8b-it": _read(
        "meta-llama/Llama-3.1-8B-Instruct", 1024, "iq4_nl", cache_type_v="f16",
        flash_attn="off", weight_format="Q5_K_S",
    ),
    "ik-079-qwen3-30b-a3b": _read("Qwen/Qwen3-30B-A3B", 32768, cards=2),
    "ik-084-deepseek-r1-0528": _read(_DEEPSEEK, 32768, "q8_0", cards=2, **_EXPERTS),
    "ik-087-deepseek-r1-0528": _read(_DEEPSEEK, 61440, "q8_0", cards=2, **_EXPERTS),
    "ik-096-deepseek-r1-0528": _read(_DEEPSEEK, 65536, "q8_0", cards=2, **_EXPERTS),
    "ik-099-deepseek-v3-0324": _read(_DEEPSEEK, 32768, "q8_0", **_EXPERTS),
    "ik-105-qwen3-235b-a22b": _read(_QWEN, 40960, "q8_0", ubatch=4096, **_EXPERTS),
    "ik-119-deepseek-r1-0528": _read(
        _DEEPSEEK, 16384, cards=3, tensor_split=[25, 19, 18], **_EXPERTS
    ),
    "ik-131-deepseek-r1": _read(_DEEPSEEK, 32768),
    "ik-163-glm-z1-32b-0414": _read(_GLM_Z1_32B, 32768),
    "ik-180-deepseek-v3-0324": _read(
        _DEEPSEEK, 16384, cards=4, tensor_split=[15, 12, 12, 23], **_EXPERTS
    ),
    "ik-186-deepseek-r1-0528": _read(_DEEPSEEK, 16384, cards=2, tensor_split=[32, 30]),
    "ik-188-kimi-k2-instruct": _read(
        "moonshotai/Kimi-K2-Instruct", 2048, "q8_0", cards=2, **_EXPERTS
    ),
    "ik-pr260-r1-a6000-amb1024": _read(
        _DEEPSEEK, 32768, left_out={"card": OWN_MIX}, **_EXPERTS
    ),
    "ik-pr260-r1-a6000-amb128": _read(_DEEPSEEK, 32768, left_out={"card": OWN_MIX}, **_EXPERTS),
    "ik2-qwen3-235b-2gpu": _read(_QWEN, 16384, "q8_0", cards=2, **_EXPERTS),
    "ik2-deepseek-iq1-2gpu": _read(_DEEPSEEK, 16384, cards=2, tensor_split=[32, 30]),
}  # fmt: skip

FORKS_LEFT_OUT: dict[str, str] = {
    "ik-089-qwen3-235b-a22b": BY_HAND,
    "ik-090-qwen3-235b-a22b": BY_HAND,
    "lc-deepseek-v4-ik-ncmoe40-8k": BY_HAND,
    "lc-qwen36-35b-m3max-64k": "a fork with types of cache of its own",
}
"""Records of forks -> why none of it is scored."""
