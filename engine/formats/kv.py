"""KV cache dtypes: exact bytes of one head and token, and of one latent vector (MLA).

Contents per dtype as in vLLM ``v1/attention/backends/*.customize_spec`` and
``mla_attention.py``; llama.cpp cache types are GGUF blocks, which run over a layer's heads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.formats.gguf import TYPES, row_bytes
from engine.units import align_up, ceil_div
from engine.words import tr

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
}
_SCALE_BYTES = 4
_SCALED_WHOLE = ("fp8_per_token_head", "int8_per_token_head")
_SCALED_HALF = "int4_per_token_head"
_BLOCK_SCALED = ("nvfp4", "nvfp4_4over6")
PACKED_LATENTS = ("fp8_ds_mla", "nvfp4_ds_mla")
"""Layouts of a whole latent vector; no key or value has them."""

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
    "nvfp4_4over6",
    "nvfp4_ds_mla",
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


def layer_bytes(dtype: str, heads: int, head_dim: int, v_head_dim: int) -> int:
    """Bytes of the keys and values of one token in a layer of ``heads`` KV heads.

    Args:
        dtype: a resolved KV dtype (never ``auto``).
        heads: KV heads that are kept.
        head_dim: elements of a key.
        v_head_dim: elements of a value.

    Raises:
        ValueError: the dtype is not known, or is a latent vector's.
    """
    if dtype in LLAMA_CPP_KV_DTYPES:
        # llama.cpp keeps the heads of a layer in one row.
        return side_bytes(dtype, heads * head_dim) + side_bytes(dtype, heads * v_head_dim)
    return heads * head_bytes(dtype, head_dim, v_head_dim)


def head_bytes(dtype: str, head_dim: int, v_head_dim: int) -> int:
    """Bytes of key and value of one head and one token.

    Args:
        dtype: a resolved KV dtype (never ``auto``).
        head_dim: elements of a key.
        v_head_dim: elements of a value.

    Raises:
        ValueError: the dtype is not known, or is a latent vector's.
    """
    return side_bytes(dtype, head_dim) + side_bytes(dtype, v_head_dim)


def side_bytes(dtype: str, elements: int) -> int:
    """Bytes of a key, or a value, of one head and one token; none where there are no elements.

    Raises:
        ValueError: the dtype is not known, or is a latent vector's.
    """
    if dtype in _PLAIN:
        return elements * _PLAIN[dtype]
    if dtype in LLAMA_CPP_KV_DTYPES:
        block = TYPES[dtype.upper()]
        return row_bytes(dtype.upper(), ceil_div(elements, block.elements) * block.elements)
    if dtype in _SCALED_WHOLE:
        return elements + (_SCALE_BYTES if elements else 0)
    if dtype == _SCALED_HALF:
        return elements // 2 + (_SCALE_BYTES if elements else 0)
    if dtype in _BLOCK_SCALED:
        return elements // 2 + elements // 16
    message = tr("{dtype!r} is not a known KV cache dtype of keys and values.").format(dtype=dtype)
    raise ValueError(message)


def latent_bytes(dtype: str, kv_lora_rank: int, rope_dim: int) -> int:
    """Bytes of one token's compressed vector under MLA, in one layer.

    ``fp8_ds_mla`` keeps the latent part in FP8 with one fp32 scale per 128 elements and the
    rotary part in BF16: 656 bytes at 512 + 64. ``nvfp4_ds_mla`` keeps the latent part in FP4 with
    an FP8 scale per 16 and the rotary part in FP8: 352 bytes. A scale per token has its place
    twice, as if there were values (vLLM ``mla_attention.py``, ``flashmla_sparse.py``).

    Raises:
        ValueError: the dtype is not known.
    """
    if not kv_lora_rank:
        return 0
    if dtype == "fp8_ds_mla":
        return kv_lora_rank + _SCALE_BYTES * ceil_div(kv_lora_rank, 128) + 2 * rope_dim
    if dtype == "nvfp4_ds_mla":
        return kv_lora_rank // 2 + kv_lora_rank // 16 + rope_dim
    second = _SCALE_BYTES if dtype in _SCALED_WHOLE or dtype == _SCALED_HALF else 0
    return side_bytes(dtype, kv_lora_rank + rope_dim) + second


def compressed_bytes(dtype: str, width: int, rope_dim: int) -> int:
    """Bytes of one key of DeepSeek-V4, which is the value too, or of one compressed entry.

    ``fp8_ds_mla`` keeps what is not rotated in FP8 with one 8-bit scale per 64 elements, in a
    multiple of 8 bytes, and the rotary part in BF16: 584 bytes at 448 + 64 (vLLM
    ``models/deepseek_v4/attention.py``).

    Raises:
        ValueError: the dtype is not known.
    """
    if dtype == "fp8_ds_mla":
        plain = width - rope_dim
        return plain + 2 * rope_dim + align_up(ceil_div(plain, 64), 8)
    return side_bytes(dtype, width)


def indexer_bytes(index_head_dim: int) -> int:
    """Bytes of one token's sparse-indexer key in one layer: FP8 and an fp32 scale per 128."""
    return index_head_dim + _SCALE_BYTES * ceil_div(index_head_dim, 128)
