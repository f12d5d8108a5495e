"""KV cache dtypes: exact bytes of one head and token, and of one latent vector (MLA).

Contents per dtype as in vLLM ``v1/attention/backends/*.customize_spec`` and
``mla_attention.py``; llama.cpp cache types are GGUF blocks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.formats.gguf import TYPES, row_bytes
from engine.units import ceil_div

if TYPE_CHECKING:
    from collections.abc import Mapping

_PLAIN: Mapping[str, int] = {
    "bf16": 2,
    "bfloat16": 2,
    "fp16": 2,
    "float16": 2,
    "fp32": 4,
    "float32": 4,
    "fp8": 1,
    "fp8_e4m3": 1,
    "fp8_e5m2": 1,
    "fp8_ds_mla": 1,
}
_PER_HEAD_SCALE_BYTES = 4

KV_DTYPES: tuple[str, ...] = (
    "auto",
    "bf16",
    "fp16",
    "fp8",
    "fp8_e4m3",
    "fp8_e5m2",
    "fp8_ds_mla",
    "fp8_per_token_head",
    "int8_per_token_head",
    "int4_per_token_head",
    "nvfp4",
)
"""vLLM's choices, ``auto`` (the model's own dtype) first."""

LLAMA_CPP_KV_DTYPES: tuple[str, ...] = (
    "f16",
    "bf16",
    "q8_0",
    "q5_1",
    "q5_0",
    "q4_1",
    "q4_0",
    "iq4_nl",
    "f32",
)
"""What llama.cpp's ``-ctk`` and ``-ctv`` take."""


def is_known(dtype: str) -> bool:
    """Whether ``head_bytes`` can answer for ``dtype`` (``auto`` has to be resolved first)."""
    return dtype in _PLAIN or dtype in KV_DTYPES[1:] or dtype in LLAMA_CPP_KV_DTYPES


def head_bytes(dtype: str, head_dim: int, v_head_dim: int) -> int:
    """Bytes of key and value of one head and one token.

    Args:
        dtype: a resolved KV dtype (never ``auto``).
        head_dim: elements of a key.
        v_head_dim: elements of a value.

    Raises:
        ValueError: the dtype is not known.
    """
    return side_bytes(dtype, head_dim) + side_bytes(dtype, v_head_dim)


def side_bytes(dtype: str, elements: int) -> int:
    """Bytes of a key, or a value, of one head and one token.

    Raises:
        ValueError: the dtype is not known.
    """
    if dtype in _PLAIN:
        return elements * _PLAIN[dtype]
    if dtype in ("fp8_per_token_head", "int8_per_token_head"):
        return elements + _PER_HEAD_SCALE_BYTES
    if dtype == "int4_per_token_head":
        return ceil_div(elements, 2) + _PER_HEAD_SCALE_BYTES
    if dtype == "nvfp4":
        return ceil_div(elements, 2) + ceil_div(elements, 16)
    if dtype in LLAMA_CPP_KV_DTYPES:
        block = TYPES[dtype.upper()]
        return row_bytes(dtype.upper(), ceil_div(elements, block.elements) * block.elements)
    message = f"{dtype!r} is not a known KV cache dtype."
    raise ValueError(message)


def latent_bytes(dtype: str, kv_lora_rank: int, rope_dim: int) -> int:
    """Bytes of one token's compressed vector under MLA, in one layer.

    ``fp8_ds_mla`` keeps the latent part in FP8 with one fp32 scale per 128 elements and the
    rotary part in BF16: 656 bytes at 512 + 64 (vLLM ``mla_attention.py``).

    Raises:
        ValueError: the dtype is not known.
    """
    if dtype == "fp8_ds_mla":
        return kv_lora_rank + 4 * ceil_div(kv_lora_rank, 128) + 2 * rope_dim
    return side_bytes(dtype, kv_lora_rank + rope_dim)


def indexer_bytes(index_head_dim: int) -> int:
    """Bytes of one token's sparse-indexer key in one layer: FP8 and an fp32 scale per 128."""
    return index_head_dim + 4 * ceil_div(index_head_dim, 128)
