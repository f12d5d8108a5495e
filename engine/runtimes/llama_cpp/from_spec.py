"""The llama.cpp shape of a model that is no GGUF yet: as its converter would write it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.architecture.spec import AttentionKind
from engine.formats.mix_rules import OUTSIDE, MixFacts, Unassigned
from engine.formats.mixes import types_in_order
from engine.runtimes.kept import doubts_in
from engine.runtimes.llama_cpp.converter import file_tensors, padding_positions
from engine.runtimes.llama_cpp.shape import Block, CacheKind, Mla, Moe, Shape, Ssm
from engine.runtimes.llama_cpp.weights import FileTensor, weigh
from engine.units import ceil_div

if TYPE_CHECKING:
    from engine.architecture.model import Model
    from engine.architecture.spec import (
        ArchitectureSpec,
        AttentionSpec,
        Compression,
        LayerSpec,
    )

_ARCHITECTURES = {
    "qwen2_moe": "qwen2moe",
    "qwen3_moe": "qwen3moe",
    "qwen3_next": "qwen3next",
    "gemma3_text": "gemma3",
    "gemma3n_text": "gemma3n",
    "gemma4_text": "gemma4",
    "gpt_oss": "gpt-oss",
    "mistral": "llama",
    "mixtral": "llama",
    "llama4_text": "llama4",
    "deepseek_v2": "deepseek2",
    "deepseek_v3": "deepseek2",
    "cohere": "command-r",
    "nemotron-nas": "deci",
}
"""``model_type`` -> GGUF architecture, where they differ."""
_WINDOW_IGNORED = frozenset({"phi3", "llama", "qwen2", "qwen2moe", "qwen3", "qwen3moe"})
_ONE_COUNT_OF_HEADS = frozenset({"qwen3next", "qwen3_5", "qwen3_5_moe"})
"""Architectures whose files state the heads of attention for blocks without it as well."""
_ROW = 256


def architecture_of(model_type: str) -> str:
    """GGUF name of a ``model_type``."""
    return _ARCHITECTURES.get(model_type, model_type.removesuffix("_text"))


def shape_of(model: Model, mix: str) -> Shape:
    """The shape of ``model`` converted and quantised to ``mix``.

    Raises:
        KeyError: ``mix`` is no mix.
    """
    spec = model.spec
    architecture = architecture_of(spec.model_type)
    listed = [*_uncounted(spec), *file_tensors(spec)]
    first = _first_attention(spec, architecture)
    moe = next((layer.moe for layer in spec.layers if layer.moe), None)
    facts = MixFacts(
        architecture,
        len(spec.layers),
        first.num_attention_heads if first else 0,
        _kv_heads(first) if first else 0,
        moe.num_experts if moe else 0,
    )
    types = types_in_order(mix, listed, facts)
    attentions = [layer.attention for layer in spec.layers if layer.attention]
    blocks = tuple(_block(layer, architecture) for layer in spec.layers)
    dense = max((layer.intermediate_size for layer in spec.layers), default=0)
    return Shape(
        architecture=architecture,
        blocks=blocks,
        blocks_in_file=len(spec.layers),
        n_embd=spec.hidden_size,
        n_vocab=spec.vocab_size,
        n_head=max((a.num_attention_heads for a in attentions), default=0),
        head_dim=_width(attentions, sliding=False),
        head_dim_swa=_width(attentions, sliding=True),
        dense_width=dense,
        is_gated=all(layer.gated_mlp for layer in spec.layers),
        moe=Moe(moe.num_experts, moe.num_experts_per_tok, moe.moe_intermediate_size)
        if moe
        else None,
        mla=_mla(attentions),
        ssm=_ssm(spec),
        window=max((a.window for a in attentions if a.window), default=0),
        per_layer_embedding=0,
        context_length=max((spec.max_position_embeddings or 0) - padding_positions(spec), 0),
        weights=weigh(
            (
                FileTensor(block, name, ggml_type, shape)
                for (block, name, shape), ggml_type in zip(listed, types, strict=True)
            ),
            len(spec.layers),
        ),
        file_type=mix,
        doubts=doubts_in(spec, "llama.cpp"),
    )


def _first_attention(spec: ArchitectureSpec, architecture: str) -> AttentionSpec | None:
    """The attention by whose heads a mix chooses: the first block's; it may have none."""
    stated = spec.layers if architecture in _ONE_COUNT_OF_HEADS else spec.layers[:1]
    return next((layer.attention for layer in stated if layer.attention), None)


def _uncounted(spec: ArchitectureSpec) -> list[Unassigned]:
    """What the model is known to have beyond the tensors that are understood, as one matrix."""
    if spec.stated_parameters is None:
        return []
    listed = sum(t.parameters for t in spec.outer)
    listed += sum(t.parameters * n for layer, n in spec.layer_groups() for t in layer.tensors)
    rest = spec.parameters - listed
    if rest <= 0:
        return []
    return [Unassigned(OUTSIDE, "rest.weight", (_ROW, ceil_div(rest, _ROW)))]


def _kv_heads(attention: AttentionSpec) -> int:
    return 1 if attention.kind is AttentionKind.LATENT else attention.num_key_value_heads


def _width(attentions: list[AttentionSpec], *, sliding: bool) -> int:
    chosen = [a for a in attentions if (a.kind in _WINDOWED) is sliding] or attentions
    return max((a.head_dim for a in chosen), default=0)


def _mla(attentions: list[AttentionSpec]) -> Mla | None:
    for a in attentions:
        if a.kind is AttentionKind.LATENT:
            return Mla(
                a.kv_lora_rank,
                a.qk_rope_head_dim,
                a.qk_nope_head_dim,
                a.q_lora_rank > 0,
                a.v_head_dim,
            )
    return None


def _ssm(spec: ArchitectureSpec) -> Ssm | None:
    state = next((layer.state for layer in spec.layers if layer.state), None)
    return Ssm(state.kind) if state else None


def _block(layer: LayerSpec, architecture: str) -> Block:
    conv = recurrent = 0
    if layer.state is not None:
        conv = max(layer.state.conv_kernel - 1, 0) * layer.state.conv_dim
        recurrent = layer.state.recurrent_elements
    a = layer.attention
    # What an encoder yields is read anew for every token: cross-attention keeps nothing.
    if a is None or not a.keeps_cache or a.kind is AttentionKind.CROSS:
        return Block(CacheKind.NONE, 0, 0, conv, recurrent)
    latent = a.kind is AttentionKind.LATENT
    k = a.kv_lora_rank + a.qk_rope_head_dim if latent else a.num_key_value_heads * a.head_dim
    v = a.num_key_value_heads * a.v_head_dim if a.keeps_values and not latent else 0
    slides = a.kind in _WINDOWED or bool(latent and a.window) or a.compression is not None
    kind = CacheKind.SLIDING if slides and architecture not in _WINDOW_IGNORED else CacheKind.FULL
    k, v = (k + a.index_head_dim) * a.caches, v * a.caches
    return Block(kind, k, v, conv, recurrent, _entries(a.compression))


_WINDOWED = (AttentionKind.SLIDING, AttentionKind.CHUNKED)


def _entries(found: Compression | None) -> tuple[tuple[int, int], ...]:
    """Entries and their keys in the indexer (``llama-kv-cache-dsv4.cpp``)."""
    if found is None:
        return ()
    return tuple((found.ratio, width) for width in (found.width, found.index_width) if width)
