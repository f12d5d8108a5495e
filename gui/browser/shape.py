"""The shape of a model in a few lines: layers, heads, what it keeps of a token, its weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.architecture.spec import AttentionKind, Subject
from engine.budget.sequence_state import (
    attention_counts,
    constant_bytes,
    layer_kinds,
    resolve_kv_dtype,
    token_growth_bytes,
)
from engine.units import UnitSystem, format_bytes
from gui.browser.badges import stored_bytes
from gui.kit.format import count, size, tokens_short

if TYPE_CHECKING:
    from engine.architecture.model import Model
    from engine.architecture.spec import ArchitectureSpec, AttentionSpec

_KINDS = {
    AttentionKind.FULL: "full",
    AttentionKind.LATENT: "latent",
    AttentionKind.CROSS: "cross-attention",
}


def shape(model: Model, unit: UnitSystem) -> tuple[tuple[str, str], ...]:
    """What a person looks for in a config, as (label, text); what a model lacks is left out."""
    spec = model.spec
    lines = [
        ("Layers", _layers(spec)),
        ("Heads", _heads(spec)),
        ("Experts", _experts(spec)),
        ("KV cache", _cache(spec, unit)),
        ("State", _state(spec, unit)),
        ("Context", _context(spec)),
        ("Vocabulary", count(spec.vocab_size) if spec.vocab_size else ""),
        ("Weights", _weights(model, unit)),
        ("In doubt", spec.doubts[0].reason if spec.doubts else ""),
    ]
    return tuple((label, text) for label, text in lines if text)


def _layers(spec: ArchitectureSpec) -> str:
    """``48; 8 full, 40 with a 1,024-token window``."""
    kinds: dict[str, int] = {}
    for layer, number in layer_kinds(spec):
        names = [_kind(layer.attention)] if layer.attention is not None else []
        names += ["recurrent"] if layer.state is not None else []
        names += ["cross-attention"] if layer.cross is not None and not names else []
        name = " and ".join(names)
        if name:
            kinds[name] = kinds.get(name, 0) + number
    whole = count(spec.num_hidden_layers)
    if len(kinds) < 2 and set(kinds) <= {"full", "latent"}:
        return whole
    rarest = sorted(kinds.items(), key=lambda kind: kind[1])
    return f"{whole}; {', '.join(f'{count(number)} {name}' for name, number in rarest)}"


def _kind(attention: AttentionSpec) -> str:
    if attention.kind in _KINDS:
        return _KINDS[attention.kind]
    noun = "chunk" if attention.kind is AttentionKind.CHUNKED else "window"
    return f"with a {count(attention.window)}-token {noun}"


def _heads(spec: ArchitectureSpec) -> str:
    """``16 query, 8 KV, 256 wide``: each kind of layer that keeps a cache, most frequent first."""
    found: dict[str, int] = {}
    for attention, number in attention_counts(spec):
        if attention.kind is AttentionKind.LATENT:
            wide = f"{attention.kv_lora_rank} + {attention.qk_rope_head_dim} wide latent"
            text = f"{attention.num_attention_heads} query, {wide}"
        else:
            text = (
                f"{attention.num_attention_heads} query, {attention.num_key_value_heads} KV, "
                f"{attention.head_dim} wide"
            )
        found[text] = found.get(text, 0) + number
    return "; ".join(sorted(found, key=lambda text: -found[text])[:2])


def _experts(spec: ArchitectureSpec) -> str:
    mixtures = {layer.moe for layer, _ in layer_kinds(spec) if layer.moe is not None}
    each = sorted({(moe.num_experts, moe.num_experts_per_tok) for moe in mixtures})
    return "; ".join(f"{count(number)}, {count(chosen)} at a time" for number, chosen in each)


def _cache(spec: ArchitectureSpec, unit: UnitSystem) -> str:
    """``384 KiB a token, 64 KiB past 1,024``: what one more token costs."""
    dtype = resolve_kv_dtype(spec, "auto", spec.dtype)
    every = range(len(spec.layers))
    first = token_growth_bytes(spec, dtype, 1, every, 1)
    kinds = [attention for attention, _ in attention_counts(spec)]
    windows = [a.window for a in kinds if a.kind is not AttentionKind.CROSS]
    if not first:
        return ""
    text = f"{format_bytes(first, unit, digits=0)} a token"
    longest = max(windows, default=0)
    if not longest:
        return text
    later = token_growth_bytes(spec, dtype, longest + 1, every, 1)
    return f"{text}, {format_bytes(later, unit, digits=0)} past {count(longest)}"


def _state(spec: ArchitectureSpec, unit: UnitSystem) -> str:
    kept = constant_bytes(spec)
    return f"{format_bytes(kept, unit, digits=1)} a request, whatever its length" if kept else ""


def _context(spec: ArchitectureSpec) -> str:
    longest = spec.max_position_embeddings
    return f"{tokens_short(longest)} tokens" if longest else ""


def _weights(model: Model, unit: UnitSystem) -> str:
    """``22.70 GiB from the shape``, with its sign where it is a bound."""
    doubt = model.spec.direction(Subject.WEIGHTS)
    sign = doubt.sign if doubt and model.stored is None else ""
    source = "from the file headers" if model.stored is not None else "from the shape"
    return f"{sign}{size(stored_bytes(model), unit)} {source}"
