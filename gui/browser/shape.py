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
from engine.words import tr, tr_later
from gui.browser.badges import stored_bytes
from gui.kit.format import count, size, tokens_short

if TYPE_CHECKING:
    from engine.architecture.model import Model
    from engine.architecture.spec import ArchitectureSpec, AttentionSpec

_KINDS = {
    AttentionKind.FULL: tr_later("full"),
    AttentionKind.LATENT: tr_later("latent"),
    AttentionKind.CROSS: tr_later("cross-attention"),
}


def shape(model: Model, unit: UnitSystem) -> tuple[tuple[str, str], ...]:
    """What a person looks for in a config, as (label, text); what a model lacks is left out."""
    spec = model.spec
    lines = [
        (tr("Layers"), _layers(spec)),
        (tr("Heads"), _heads(spec)),
        (tr("Experts"), _experts(spec)),
        (tr("KV cache"), _cache(spec, unit)),
        (tr("State"), _state(spec, unit)),
        (tr("Context"), _context(spec)),
        (tr("Vocabulary"), count(spec.vocab_size) if spec.vocab_size else ""),
        (tr("Weights"), _weights(model, unit)),
        (tr("In doubt"), tr(spec.doubts[0].reason) if spec.doubts else ""),
    ]
    return tuple((label, text) for label, text in lines if text)


def _layers(spec: ArchitectureSpec) -> str:
    """``48; 8 full, 40 with a 1,024-token window``."""
    kinds: dict[str, int] = {}
    for layer, number in layer_kinds(spec):
        names = [_kind(layer.attention)] if layer.attention is not None else []
        names += [tr("recurrent")] if layer.state is not None else []
        names += [tr("cross-attention")] if layer.cross is not None and not names else []
        name = tr(" and ").join(names)
        if name:
            kinds[name] = kinds.get(name, 0) + number
    whole = count(spec.num_hidden_layers)
    if len(kinds) < 2 and set(kinds) <= {tr("full"), tr("latent")}:
        return whole
    rarest = sorted(kinds.items(), key=lambda kind: kind[1])
    return f"{whole}; {', '.join(f'{count(number)} {name}' for name, number in rarest)}"


def _kind(attention: AttentionSpec) -> str:
    if attention.kind in _KINDS:
        return tr(_KINDS[attention.kind])
    is_chunk = attention.kind is AttentionKind.CHUNKED
    words = tr("with a {n}-token chunk") if is_chunk else tr("with a {n}-token window")
    return words.format(n=count(attention.window))


def _heads(spec: ArchitectureSpec) -> str:
    """``16 query, 8 KV, 256 wide``: each kind of layer that keeps a cache, most frequent first."""
    found: dict[str, int] = {}
    for attention, number in attention_counts(spec):
        if attention.kind is AttentionKind.LATENT:
            text = tr("{query} query, {rank} + {rope} wide latent").format(
                query=attention.num_attention_heads,
                rank=attention.kv_lora_rank,
                rope=attention.qk_rope_head_dim,
            )
        else:
            text = tr("{query} query, {kv} KV, {dim} wide").format(
                query=attention.num_attention_heads,
                kv=attention.num_key_value_heads,
                dim=attention.head_dim,
            )
        found[text] = found.get(text, 0) + number
    return "; ".join(sorted(found, key=lambda text: -found[text])[:2])


def _experts(spec: ArchitectureSpec) -> str:
    mixtures = {layer.moe for layer, _ in layer_kinds(spec) if layer.moe is not None}
    each = sorted({(moe.num_experts, moe.num_experts_per_tok) for moe in mixtures})
    words = tr("{number}, {chosen} at a time")
    return "; ".join(words.format(number=count(n), chosen=count(chosen)) for n, chosen in each)


def _cache(spec: ArchitectureSpec, unit: UnitSystem) -> str:
    """``384 KiB a token, 64 KiB past 1,024``: what one more token costs."""
    dtype = resolve_kv_dtype(spec, "auto", spec.dtype)
    every = range(len(spec.layers))
    first = token_growth_bytes(spec, dtype, 1, every, 1)
    kinds = [attention for attention, _ in attention_counts(spec)]
    windows = [a.window for a in kinds if a.kind is not AttentionKind.CROSS]
    if not first:
        return ""
    cost = format_bytes(first, unit, digits=0)
    longest = max(windows, default=0)
    if not longest:
        return tr("{size} a token").format(size=cost)
    later = token_growth_bytes(spec, dtype, longest + 1, every, 1)
    return tr("{size} a token, {later} past {longest}").format(
        size=cost, later=format_bytes(later, unit, digits=0), longest=count(longest)
    )


def _state(spec: ArchitectureSpec, unit: UnitSystem) -> str:
    kept = constant_bytes(spec)
    if not kept:
        return ""
    words = tr("{size} a request, whatever its length")
    return words.format(size=format_bytes(kept, unit, digits=1))


def _context(spec: ArchitectureSpec) -> str:
    longest = spec.max_position_embeddings
    return tr("{number} tokens").format(number=tokens_short(longest)) if longest else ""


def _weights(model: Model, unit: UnitSystem) -> str:
    """``22.70 GiB from the shape``, with its sign where it is a bound."""
    doubt = model.spec.direction(Subject.WEIGHTS)
    sign = doubt.sign if doubt and model.stored is None else ""
    is_read = model.stored is not None
    words = tr("{size} from the file headers") if is_read else tr("{size} from the shape")
    return words.format(size=f"{sign}{size(stored_bytes(model), unit)}")
