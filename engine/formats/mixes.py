"""llama.cpp file types ("mixes"): which ggml type each tensor gets in Q4_K_M and the rest.

A restatement of the rules of ``llama-quant.cpp`` (b11434: ``llama_tensor_get_type_impl``,
``tensor_type_fallback``) for runs without an importance matrix. Files published by third
parties often use overrides of their own: a tensor table, where there is one, beats a mix.
"""

from __future__ import annotations

from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING

from engine.formats.gguf import TYPES
from engine.formats.mix_rules import OUTSIDE, Rules, Unassigned

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from engine.formats.mix_rules import MixFacts

Shaped = tuple[str, tuple[int, ...]]
"""GGUF tensor name and shape in ggml order."""
MIXES: Mapping[str, str] = MappingProxyType(
    {
        "F32": "F32",
        "F16": "F16",
        "BF16": "BF16",
        "Q8_0": "Q8_0",
        "Q6_K": "Q6_K",
        "Q5_K_M": "Q5_K",
        "Q5_K_S": "Q5_K",
        "Q5_1": "Q5_1",
        "Q5_0": "Q5_0",
        "Q4_K_M": "Q4_K",
        "Q4_K_S": "Q4_K",
        "Q4_1": "Q4_1",
        "Q4_0": "Q4_0",
        "IQ4_NL": "IQ4_NL",
        "IQ4_XS": "IQ4_XS",
        "MXFP4_MOE": "MXFP4",
        "Q3_K_L": "Q3_K",
        "Q3_K_M": "Q3_K",
        "Q3_K_S": "Q3_K",
        "IQ3_M": "IQ3_S",
        "IQ3_S": "IQ3_S",
        "IQ3_XS": "IQ3_S",
        "IQ3_XXS": "IQ3_XXS",
        "Q2_K": "Q2_K",
        "Q2_K_S": "Q2_K",
        "Q2_0": "Q2_0",
        "TQ2_0": "TQ2_0",
        "TQ1_0": "TQ1_0",
        "IQ2_M": "IQ2_S",
        "IQ2_S": "IQ2_XS",
        "IQ2_XS": "IQ2_XS",
        "IQ2_XXS": "IQ2_XXS",
        "IQ1_M": "IQ1_M",
        "IQ1_S": "IQ1_S",
    }
)
"""Mix name -> the type most tensors get, widest first."""
FOR_FEW_BITS = frozenset({"Q2_0", "TQ2_0", "TQ1_0"})
"""Mixes for models that were trained in so few bits; they ruin any other."""

_PLAIN = frozenset({"F32", "F16", "BF16"})
_CONVERTER_F32 = (
    "ffn_gate_inp",
    "ssm_conv1d",
    "shortconv.conv",
    "altup_correct_coef",
    "altup_predict_coef",
    "indexer.proj",
    "position_embd",
    "token_types",
)
_NEVER = (
    "_norm.weight",
    "ffn_gate_inp.weight",
    "altup",
    "laurel",
    "per_layer_model_proj",
    "ssm_conv1d",
    "shortconv.conv.weight",
    "position_embd.weight",
    "token_types.weight",
    "ffn_gate_tid2eid.weight",
    "indexer.k_proj.weight",
    "indexer.q_proj.weight",
    "time_mix_first.weight",
    *(f"time_mix_{part}.weight" for part in ("w0", "w1", "w2", "v0", "v1", "v2", "a0", "a1")),
    *(f"time_mix_{part}.weight" for part in ("a2", "g1", "g2", "decay_w1", "decay_w2")),
    "time_mix_lerp_fused.weight",
    "attn_rel_b.weight",
)
_FALLBACKS = {
    **dict.fromkeys(
        ("IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S", "IQ4_XS"), "IQ4_NL"
    ),
    **dict.fromkeys(("Q2_0", "Q2_K", "Q3_K", "TQ1_0", "TQ2_0"), "Q4_0"),
    "Q4_K": "Q5_0",
    "Q5_K": "Q5_1",
    "Q6_K": "Q8_0",
}


@lru_cache(maxsize=4096)
def converted_type(name: str, axes: int, half: str = "F16") -> str:
    """Type that the converter writes before any quantisation, for a tensor of so many axes."""
    keeps_f32 = (
        axes < 2
        or not name.endswith(".weight")
        or name.endswith("_norm.weight")
        or any(part in name for part in _CONVERTER_F32)
    )
    return "F32" if keeps_f32 else half


def requantised(
    mix: str, tensors: Mapping[str, tuple[str, tuple[int, ...]]], facts: MixFacts
) -> dict[str, str]:
    """The ggml type of every tensor of a GGUF file, quantised anew to ``mix``.

    Args:
        mix: a key of ``MIXES``.
        tensors: name -> (type, shape) of the whole file; what no mix touches keeps its type.
        facts: what the rules ask of the model.

    Raises:
        KeyError: ``mix`` is not a key of ``MIXES``.
    """
    chosen = mix_types(mix, ((name, shape) for name, (_, shape) in tensors.items()), facts)
    return {
        name: own if _is_kept(_split(name)[1], len(shape)) else chosen[name]
        for name, (own, shape) in tensors.items()
    }


def mix_types(
    mix: str, tensors: Iterable[Shaped], facts: MixFacts, half: str = "F16"
) -> dict[str, str]:
    """The ggml type of every tensor in a file of this mix.

    Args:
        mix: a key of ``MIXES``.
        tensors: names and shapes of the whole file.
        facts: what the rules ask of the model.
        half: 16-bit type of the converted file that is quantised.

    Raises:
        KeyError: ``mix`` is not a key of ``MIXES``.
    """
    named = {Unassigned(*_split(name), shape): name for name, shape in tensors}
    listed = sorted(named)
    types = types_in_order(mix, listed, facts, half)
    return {named[item]: kind for item, kind in zip(listed, types, strict=True)}


def types_in_order(
    mix: str, tensors: Sequence[Unassigned], facts: MixFacts, half: str = "F16"
) -> list[str]:
    """The ggml type of each of ``tensors``, which are sorted by block and name.

    Raises:
        KeyError: ``mix`` is not a key of ``MIXES``.
    """
    default = MIXES[mix]
    if mix == "F32":
        return ["F32"] * len(tensors)
    if mix in _PLAIN:
        return [converted_type(name, len(shape), mix) for _, name, shape in tensors]
    rules = Rules(mix, default, facts, tensors)
    return [
        converted_type(item.name, len(item.shape), half)
        if _is_kept(item.name, len(item.shape))
        else _fitting(rules.choose(item), item.shape[0])
        for item in tensors
    ]


def _split(name: str) -> tuple[int, str]:
    if name[:4] != "blk.":
        return OUTSIDE, name
    number, _, rest = name[4:].partition(".")
    return int(number), rest


@lru_cache(maxsize=4096)
def _is_kept(suffix: str, axes: int) -> bool:
    """Whether a tensor keeps the converter's type in every mix."""
    return axes < 2 or not suffix.endswith("weight") or any(part in suffix for part in _NEVER)


def _fitting(ggml_type: str, columns: int) -> str:
    if columns % TYPES[ggml_type].elements == 0:
        return ggml_type
    narrower = _FALLBACKS.get(ggml_type, ggml_type)
    return narrower if columns % TYPES[narrower].elements == 0 else "F16"
