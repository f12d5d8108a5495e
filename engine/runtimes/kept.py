"""What a runtime keeps of a sequence that no record and no source of it shows: its own doubts."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from engine.architecture.spec import AttentionKind, Direction, Doubt, Subject
from engine.budget.sequence_state import CACHED, attention_kinds, layer_kinds
from engine.words import tr, tr_later

if TYPE_CHECKING:
    from engine.architecture.spec import ArchitectureSpec, AttentionSpec

_STATES = {
    "vLLM": frozenset({"gated_delta_net", "kda", "mamba", "mamba2", "short_conv", "lightning"}),
    "SGLang": frozenset({"gated_delta_net", "kda", "mamba", "mamba2", "short_conv", "lightning"}),
    "llama.cpp": frozenset({"gated_delta_net", "kda", "mamba", "mamba2", "short_conv"}),
}
"""Kinds of state whose form is known: vLLM and SGLang ``mamba_utils.py``, llama.cpp
``llama-memory``."""
_INDEXED = {
    "vLLM": frozenset({"deepseek_v32", "glm_moe_dsa", "minimax_m3_vl_text"}),
    "SGLang": frozenset({"deepseek_v32", "glm_moe_dsa", "minimax_m3_vl_text"}),
    "llama.cpp": frozenset[str](),
}
"""Types of which it is known how the keys are kept that select tokens."""
_INDEX_WORDS = {
    "vLLM": tr_later("how vLLM keeps the keys that select tokens is not known for this model"),
    "SGLang": tr_later("how SGLang keeps the keys that select tokens is not known for this model"),
    "llama.cpp": tr_later(
        "llama.cpp keeps the keys that select tokens only in builds that read by them: "
        "counted with them"
    ),
}
_INDEX_WAYS = {"vLLM": Direction.EITHER, "SGLang": Direction.EITHER, "llama.cpp": Direction.UPPER}
_READ_ANEW = frozenset({"t5", "mt5", "umt5"})
"""Encoder-decoders whose cross-attention works its keys out anew for every token in llama.cpp."""


@lru_cache(maxsize=CACHED)
def doubts_in(
    spec: ArchitectureSpec, runtime: str, *, packs_entries: bool = False
) -> tuple[Doubt, ...]:
    """The model's doubts, and those about what ``runtime`` keeps of it.

    Args:
        spec: the model.
        runtime: ``vLLM``, ``SGLang`` or ``llama.cpp``.
        packs_entries: whether it is known how the runtime packs compressed entries.
    """
    kinds = attention_kinds(spec)
    found: list[Doubt] = []
    if any(a.compression for a in kinds) and not packs_entries:
        reason = tr(
            "{runtime} keeps compressed entries in a form that changes "
            "with its releases: counted by the nearest that is known"
        ).format(runtime=runtime)
        found.append(_doubt(reason))
    if any(a.index_head_dim for a in kinds) and spec.model_type not in _INDEXED[runtime]:
        found.append(_doubt(tr(_INDEX_WORDS[runtime]), _INDEX_WAYS[runtime]))
    if runtime == "SGLang" and any(a.kind is AttentionKind.CROSS for a in kinds):
        reason = tr("what SGLang keeps of this model's encoder is not known, so not counted")
        found.append(_doubt(reason, Direction.LOWER))
    if runtime == "llama.cpp":
        found += _llama_cpp_doubts(spec, kinds)
    states = {layer.state for layer, _ in layer_kinds(spec) if layer.state is not None}
    known = _STATES[runtime]
    if any(s.kind not in known or s.conv_dtype or s.further_elements for s in states):
        found.append(
            _doubt(
                tr("how {runtime} keeps this model's recurrent state is not known").format(
                    runtime=runtime
                )
            )
        )
    return (*spec.doubts, *found)


def _llama_cpp_doubts(spec: ArchitectureSpec, kinds: tuple[AttentionSpec, ...]) -> list[Doubt]:
    found: list[Doubt] = []
    if any(a.kind is AttentionKind.CROSS for a in kinds) and spec.model_type not in _READ_ANEW:
        reason = tr("what llama.cpp keeps of this model's encoder is not known, so not counted")
        found.append(_doubt(reason, Direction.LOWER))
    if any(a.caches > 1 for a in kinds):
        found.append(_doubt(tr("how llama.cpp keeps several caches a layer is not known")))
    if any(a.prefix_tokens for a in kinds):
        reason = tr("the learned tokens before every sequence are not counted in llama.cpp's cache")
        found.append(_doubt(reason, Direction.LOWER))
    return found


def _doubt(reason: str, direction: Direction = Direction.EITHER) -> Doubt:
    return Doubt(Subject.SEQUENCE_STATE, reason, direction)
