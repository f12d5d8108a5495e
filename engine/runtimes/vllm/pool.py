"""vLLM's KV pool: groups of layers, page unification, blocks. Integers, exact.

Source:
    vLLM 0.33 ``v1/core/kv_cache_utils.py`` and ``v1/kv_cache_interface.py``; reproduced on the
    logged starts of ``tests/truth``.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import lru_cache
from math import lcm
from typing import TYPE_CHECKING, NamedTuple

from engine.architecture.spec import AttentionKind
from engine.budget.sequence_state import (
    CACHED,
    attention_counts,
    attention_kinds,
    constant_state_bytes,
    layer_kinds,
    token_bytes,
)
from engine.formats.kv import indexer_bytes
from engine.runtimes.vllm.compressed import compressed_layout, least_padding
from engine.runtimes.vllm.layout import Group, Keeps, LayerPage, PoolLayout, PoolRule
from engine.units import align_up, ceil_div

if TYPE_CHECKING:
    from engine.architecture.spec import ArchitectureSpec, AttentionSpec, StateSpec

_WHOLE_HEADS = frozenset({"minicpm3"})
"""Types with latent vectors that vLLM keeps as keys and values of every head, values padded to
the width of keys (``models/minicpm3.py``)."""
_PADDED_HEAD = 256
"""Width to which heads were padded before latent vectors were kept as they are."""
_LATENT_ALIGNMENT = 128
"""Tokens that a block of latents beside states is a multiple of (read in the source of 0.33)."""


@lru_cache(maxsize=CACHED)
def pool_layout(spec: ArchitectureSpec, first: int, stop: int, rule: PoolRule) -> PoolLayout | None:
    """The pool layout of one rank that holds layers ``first`` to ``stop``; None without cache."""
    last = len(spec.layers)
    if any(attention.compression for attention in attention_kinds(spec)):
        layers = [_attentions(spec, i, i + 1, rule) for i in range(last)]
        return compressed_layout(layers, range(first, stop), rule)
    blocks = _blocks(spec, rule)
    here = _pages(spec, first, stop, blocks, rule)
    if not here:
        return None
    pages = here if (first, stop) == (0, last) else _pages(spec, 0, last, blocks, rule)
    kinds = list(pages)
    alike = {(p.keeps, p.block_tokens, p.window) for p in kinds}
    if len(kinds) == 1 or (len(alike) == 1 and kinds[0].keeps is not Keeps.STATE):
        # Every layer needs the same number of token slots: one group, pages side by side.
        bytes_per_block = sum(p.page_bytes * n for p, n in here.items())
        groups = (Group(kinds[0], 1),)
        return PoolLayout(groups, bytes_per_block, kinds[0].block_tokens)
    layout = _unified(pages, rule)
    if pages is here:
        return layout
    by_layer = [_pages(spec, i, i + 1, blocks, rule) for i in range(last)]
    return _share(layout, by_layer, range(first, stop))


def _unified(pages: dict[LayerPage, int], rule: PoolRule) -> PoolLayout:
    """Equal pages for all, then groups of equal size."""
    largest = max(p.page_bytes for p in pages)
    buckets: Counter[LayerPage] = Counter()
    for page, layers in pages.items():
        buckets[_grown(page, largest)] += layers
    fewest, most = min(buckets.values()), max(buckets.values())
    size = most if most < rule.group_slack * fewest else fewest
    if rule.pads_least and any(page.keeps is Keeps.WINDOW for page in buckets):
        size = least_padding(list(buckets.values()), fewest)
    groups = tuple(Group(page, ceil_div(n, size)) for page, n in buckets.items())
    padding = sum(group.count * size for group in groups) - sum(buckets.values())
    return PoolLayout(groups, size * largest, groups[0].page.block_tokens, padding)


def _share(layout: PoolLayout, by_layer: list[dict[LayerPage, int]], stage: range) -> PoolLayout:
    """One stage's share: groups are those of the whole model, their layers dealt out in turn."""
    largest = layout.groups[0].page.page_bytes
    most = 0
    for group in layout.groups:
        layers = [
            index
            for index, pages in enumerate(by_layer)
            for page, count in pages.items()
            for _ in range(count)
            if _grown(page, largest) == group.page
        ]
        for turn in range(group.count):
            most = max(most, sum(index in stage for index in layers[turn :: group.count]))
    return layout._replace(bytes_per_block=most * largest)


def _grown(page: LayerPage, largest: int) -> LayerPage:
    if page.keeps is not Keeps.STATE and largest % page.page_bytes == 0:
        factor = largest // page.page_bytes
        return page._replace(page_bytes=largest, block_tokens=page.block_tokens * factor)
    return page._replace(page_bytes=largest)


def _attentions(
    spec: ArchitectureSpec, first: int, stop: int, rule: PoolRule
) -> dict[AttentionSpec, int]:
    """The attentions as vLLM keeps them, with their numbers."""
    found: dict[AttentionSpec, int] = {}
    for attention, count in attention_counts(spec, first, stop):
        kept = _as_kept(attention, spec.model_type, rule)
        found[kept] = found.get(kept, 0) + count
    return found


def _as_kept(attention: AttentionSpec, model_type: str, rule: PoolRule) -> AttentionSpec:
    if attention.kind is not AttentionKind.LATENT:
        return attention
    if rule.keeps_latents and model_type not in _WHOLE_HEADS:
        return attention
    width = attention.head_dim if model_type in _WHOLE_HEADS else _PADDED_HEAD
    return replace(
        attention,
        kind=AttentionKind.FULL,
        num_key_value_heads=attention.num_attention_heads,
        head_dim=width,
        v_head_dim=width,
        index_head_dim=0,
    )


def _states(spec: ArchitectureSpec, first: int, stop: int, rule: PoolRule) -> Counter[int]:
    """Bytes of one layer's state -> layers."""
    found: Counter[int] = Counter()
    for layer, count in layer_kinds(spec, first, stop):
        if layer.state is not None:
            kept = _state_as_kept(layer.state, spec.model_type, rule)
            # Mamba's first form is not made ready for speculation.
            extra = 0 if kept.kind == "mamba" else rule.speculative_tokens
            size = constant_state_bytes(kept, rule.dtype, rule.tensor_parallel_size, extra)
            found[size] += count
    return found


def _state_as_kept(state: StateSpec, model_type: str, rule: PoolRule) -> StateSpec:
    if model_type == "nemotron_h" and not rule.states_as_stated:
        return replace(state, state_dtype=None)
    # Qwen3-Next's states have the model's dtype, whatever its config says.
    return replace(state, state_dtype=None) if model_type == "qwen3_next" else state


class _Blocks(NamedTuple):
    """What the whole model decides about blocks, whichever layers a rank holds."""

    tokens: int
    page_bytes: int
    """The largest page of an attention."""


def _blocks(spec: ArchitectureSpec, rule: PoolRule) -> _Blocks:
    last = len(spec.layers)
    attentions = _with_draft(spec, 0, last, rule)
    states = _states(spec, 0, last, rule)
    tokens = rule.block_size
    if states and attentions:
        tokens = _hybrid_block(max(states), attentions, rule)
    sizes = [p.page_bytes for a in attentions for p in _attention_pages(a, tokens, rule)]
    return _Blocks(tokens, max(sizes, default=0))


def _with_draft(
    spec: ArchitectureSpec, first: int, stop: int, rule: PoolRule
) -> dict[AttentionSpec, int]:
    """The attentions, and those of the prediction blocks behind the last layer."""
    attentions = _attentions(spec, first, stop, rule)
    if rule.with_mtp and stop == len(spec.layers) and attention_kinds(spec):
        for attention in spec.mtp_attentions or (_mtp_attention(spec),):
            draft = _as_kept(attention, spec.model_type, rule)
            attentions[draft] = attentions.get(draft, 0) + 1
    return attentions


def _pages(
    spec: ArchitectureSpec, first: int, stop: int, blocks: _Blocks, rule: PoolRule
) -> dict[LayerPage, int]:
    pages: Counter[LayerPage] = Counter()
    kept = list(_with_draft(spec, first, stop, rule).items())
    if rule.draft is not None and stop == len(spec.layers):
        kept += _attentions(rule.draft, 0, len(rule.draft.layers), rule).items()
    for attention, layers in kept:
        for page in _attention_pages(attention, blocks.tokens, rule):
            pages[page] += layers
    for size, layers in _states(spec, first, stop, rule).items():
        padded = max(size, blocks.page_bytes)
        pages[LayerPage(Keeps.STATE, blocks.tokens, padded)] += layers
    return dict(pages)


def _mtp_attention(spec: ArchitectureSpec) -> AttentionSpec:
    """A prediction block attends in full, with the heads of the model's full layers.

    Where layers share an index, it has one of its own (``models/deepseek_v2.py``).
    """
    full = [a for a in attention_kinds(spec) if not a.window] or list(attention_kinds(spec)[-1:])
    return next((a for a in full if a.index_head_dim), full[-1])


def _attention_pages(attention: AttentionSpec, block: int, rule: PoolRule) -> list[LayerPage]:
    per_token = token_bytes(attention, rule.kv_dtype, rule.tensor_parallel_size)
    if attention.kind is AttentionKind.CROSS:
        return [LayerPage(Keeps.SOURCE, block, block * per_token, attention.window)]
    # vLLM leaves the hybrid manager off for chunked attention: those layers are kept in full.
    slides = attention.kind in (AttentionKind.SLIDING, AttentionKind.LATENT) and attention.window
    if slides and rule.hybrid_groups:
        return [LayerPage(Keeps.WINDOW, block, block * per_token, attention.window)]
    if attention.kind is AttentionKind.LATENT and attention.index_head_dim:
        index = indexer_bytes(attention.index_head_dim)
        # A layer may keep the index's keys alone.
        sizes = [size for size in (per_token - index, index) if size]
        return [LayerPage(Keeps.ALL, block, block * size) for size in sizes]
    return [LayerPage(Keeps.ALL, block, block * per_token)]


def _hybrid_block(state_bytes: int, attentions: dict[AttentionSpec, int], rule: PoolRule) -> int:
    """Tokens of an attention block that is at least as large as a state page.

    Source:
        vLLM ``Platform._align_hybrid_block_size``.
    """
    per_token = max(token_bytes(a, rule.kv_dtype, rule.tensor_parallel_size) for a in attentions)
    latent = any(a.kind is AttentionKind.LATENT for a in attentions)
    least = max(rule.block_size, _LATENT_ALIGNMENT if latent else 16)
    return align_up(ceil_div(state_bytes, per_token), lcm(least, rule.state_tokens))
