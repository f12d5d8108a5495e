"""What a runtime keeps of a sequence that no record and no source of it shows: its own doubts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.architecture.spec import Direction, Doubt, Subject
from engine.budget.sequence_state import attention_kinds, layer_kinds

if TYPE_CHECKING:
    from engine.architecture.spec import ArchitectureSpec

_STATES = {
    "vLLM": frozenset({"gated_delta_net", "kda", "mamba", "mamba2", "short_conv", "lightning"}),
    "llama.cpp": frozenset({"gated_delta_net", "kda", "mamba", "mamba2", "short_conv"}),
}
"""Kinds of state whose form is known: vLLM ``mamba_utils.py``, llama.cpp ``llama-memory``."""
_INDEXED = {
    "vLLM": frozenset({"deepseek_v32", "glm_moe_dsa", "minimax_m3_vl_text"}),
}
"""Types whose selecting keys have pages that are known, in runtimes that keep them apart."""


def doubts_in(
    spec: ArchitectureSpec, runtime: str, *, packs_entries: bool = False
) -> tuple[Doubt, ...]:
    """The model's doubts, and those about what ``runtime`` keeps of it.

    Args:
        spec: the model.
        runtime: ``vLLM`` or ``llama.cpp``.
        packs_entries: whether it is known how the runtime packs compressed entries.
    """
    reasons: list[str] = []
    kinds = attention_kinds(spec)
    if any(a.compression for a in kinds) and not packs_entries:
        reasons.append(
            f"{runtime} keeps compressed entries in a form of its own: "
            "counted as keys of every token"
        )
    indexed = _INDEXED.get(runtime)
    if (
        indexed is not None
        and spec.model_type not in indexed
        and any(a.index_head_dim for a in kinds)
    ):
        reasons.append(
            f"how {runtime} keeps the keys that select tokens is not known for this model"
        )
    states = {layer.state for layer, _ in layer_kinds(spec) if layer.state is not None}
    known = _STATES[runtime]
    if any(s.kind not in known or s.conv_dtype or s.further_elements for s in states):
        reasons.append(f"how {runtime} keeps this model's recurrent state is not known")
    found = [Doubt(Subject.SEQUENCE_STATE, reason, Direction.EITHER) for reason in reasons]
    if spec.draft and runtime == "llama.cpp":
        reason = "how a draft model is written to a GGUF file is not known"
        found.append(Doubt(Subject.WEIGHTS, reason, Direction.EITHER))
    return (*spec.doubts, *found)
