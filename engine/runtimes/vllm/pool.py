"""vLLM's KV pool: groups of layers, page unification, blocks. Integers, exact.

Source:
    vLLM 0.33 ``v1/core/kv_cache_utils.py`` and ``v1/kv_cache_interface.py``; reproduced on the
    logged starts of ``tests/truth``.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING

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
from engine.units import align_up, ceil_div

if TYPE_CHECKING:
    from engine.architecture.spec import ArchitectureSpec, AttentionSpec


class Keeps(StrEnum):
    """What a layer keeps in the pool."""

    ALL = "all"
    SOURCE = "source"
    """The encoder's tokens, whatever the answer's length."""
    WINDOW = "window"
    STATE = "state"


@dataclass(frozen=True, slots=True)
class LayerPage:
    """What vLLM calls a KV cache spec: layers of the same one share groups."""

    keeps: Keeps
    block_tokens: int
    page_bytes: int
    window: int = 0
    """Tokens of the window, or of the encoder; 0 where the encoder's are as many as the input."""


@dataclass(frozen=True, slots=True)
class Group:
    """Layers whose blocks are given out together."""

    page: LayerPage
    count: int
    """Groups of this kind."""


@dataclass(frozen=True, slots=True)
class PoolLayout:
    """How the pool of one rank is cut."""

    groups: tuple[Group, ...]
    bytes_per_block: int
    block_size: int
    """Tokens of a block of the first group."""
    padding_layers: int = 0

    @property
    def num_groups(self) -> int:
        """Groups of all kinds."""
        return sum(group.count for group in self.groups)

    @property
    def has_state(self) -> bool:
        """Whether some blocks hold constant state."""
        return any(group.page.keeps is Keeps.STATE for group in self.groups)

    def blocks_per_request(self, tokens: int, request: RequestRule) -> int:
        """Blocks that one request of ``tokens`` may hold at once."""
        return sum(g.count * _blocks(g.page, tokens, request) for g in self.groups)


@dataclass(frozen=True, slots=True)
class RequestRule:
    """What, besides its length, decides how many blocks a request takes."""

    tokens_in_flight: int
    """Tokens of the steps that may be under way: ``max_num_batched_tokens`` × batches."""
    state_blocks: int = 1
    """Blocks of constant state: one, more with prefix caching or speculation."""
    context_parallel: int = 1


def _blocks(page: LayerPage, tokens: int, request: RequestRule) -> int:
    if page.keeps is Keeps.STATE:
        return request.state_blocks
    if page.keeps is Keeps.WINDOW:
        held = min(page.window - 1 + request.tokens_in_flight, tokens)
        return ceil_div(held, page.block_tokens) + 1
    if page.keeps is Keeps.SOURCE:
        return ceil_div(page.window or tokens, page.block_tokens)
    return ceil_div(ceil_div(tokens, request.context_parallel), page.block_tokens)


@dataclass(frozen=True, slots=True)
class PoolRule:
    """All that the layout of the pool depends on, besides the model."""

    kv_dtype: str
    tensor_parallel_size: int = 1
    block_size: int = 16
    hybrid_groups: bool = True
    group_slack: float = 1.5
    speculative_tokens: int = 0
    with_mtp: bool = False


@lru_cache(maxsize=CACHED)
def pool_layout(spec: ArchitectureSpec, first: int, stop: int, rule: PoolRule) -> PoolLayout | None:
    """The pool layout of one rank that holds layers ``first`` to ``stop``; None without cache."""
    pages = _pages(spec, first, stop, rule)
    if not pages:
        return None
    kinds = list(pages)
    if all(p.keeps is Keeps.ALL for p in kinds) or len(kinds) == 1:
        # Every layer needs the same number of token slots: one group, pages side by side.
        bytes_per_block = sum(p.page_bytes * n for p, n in pages.items())
        groups = (Group(kinds[0], 1),)
        return PoolLayout(groups, bytes_per_block, kinds[0].block_tokens)
    return _unified(pages, rule.group_slack)


def _unified(pages: dict[LayerPage, int], slack: float) -> PoolLayout:
    """Equal pages for all, then groups of equal size."""
    largest = max(p.page_bytes for p in pages)
    buckets: Counter[LayerPage] = Counter()
    for page, layers in pages.items():
        buckets[_grown(page, largest)] += layers
    fewest, most = min(buckets.values()), max(buckets.values())
    size = most if most < slack * fewest else fewest
    groups = tuple(Group(page, ceil_div(n, size)) for page, n in buckets.items())
    padding = sum(group.count * size for group in groups) - sum(buckets.values())
    return PoolLayout(groups, size * largest, groups[0].page.block_tokens, padding)


def _grown(page: LayerPage, largest: int) -> LayerPage:
    if page.keeps is not Keeps.STATE and largest % page.page_bytes == 0:
        factor = largest // page.page_bytes
        return replace(page, page_bytes=largest, block_tokens=page.block_tokens * factor)
    return replace(page, page_bytes=largest)


def _pages(spec: ArchitectureSpec, first: int, stop: int, rule: PoolRule) -> dict[LayerPage, int]:
    tp = rule.tensor_parallel_size
    attentions = dict(attention_counts(spec, first, stop))
    states: Counter[int] = Counter()
    for layer, count in layer_kinds(spec, first, stop):
        if layer.state is not None:
            extra = rule.speculative_tokens
            states[constant_state_bytes(layer.state, spec.dtype, tp, extra)] += count
    if rule.with_mtp and stop == len(spec.layers) and attentions:
        draft = _mtp_attention(spec)
        attentions[draft] = attentions.get(draft, 0) + 1
    block = rule.block_size
    if states and attentions:
        block = _hybrid_block(max(states), attentions, rule)
    pages: Counter[LayerPage] = Counter()
    for attention, layers in attentions.items():
        for page in _attention_pages(attention, block, rule):
            pages[page] += layers
    for size, layers in states.items():
        padded = max((p.page_bytes for p in pages), default=size)
        pages[LayerPage(Keeps.STATE, block, max(size, padded))] += layers
    return dict(pages)


def _mtp_attention(spec: ArchitectureSpec) -> AttentionSpec:
    """A prediction block attends in full, with the heads of the model's full layers."""
    kinds = attention_kinds(spec)
    return next((a for a in reversed(kinds) if not a.window), kinds[-1])


def _attention_pages(attention: AttentionSpec, block: int, rule: PoolRule) -> list[LayerPage]:
    per_token = token_bytes(attention, rule.kv_dtype, rule.tensor_parallel_size)
    if attention.kind is AttentionKind.CROSS:
        return [LayerPage(Keeps.SOURCE, block, block * per_token, attention.window)]
    # vLLM leaves the hybrid manager off for chunked attention: those layers are kept in full.
    if attention.kind is AttentionKind.SLIDING and rule.hybrid_groups:
        return [LayerPage(Keeps.WINDOW, block, block * per_token, attention.window)]
    if attention.kind is AttentionKind.LATENT and attention.index_head_dim:
        index = indexer_bytes(attention.index_head_dim)
        main = LayerPage(Keeps.ALL, block, block * (per_token - index))
        return [main, LayerPage(Keeps.ALL, block, block * index)]
    return [LayerPage(Keeps.ALL, block, block * per_token)]


def _hybrid_block(state_bytes: int, attentions: dict[AttentionSpec, int], rule: PoolRule) -> int:
    """Tokens of an attention block that is at least as large as a state page.

    Source:
        vLLM ``Platform._align_hybrid_block_size``.
    """
    per_token = max(token_bytes(a, rule.kv_dtype, rule.tensor_parallel_size) for a in attentions)
    return align_up(ceil_div(state_bytes, per_token), max(rule.block_size, 16))
