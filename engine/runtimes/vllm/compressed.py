"""The pool of DeepSeek-V4: windows, compressed entries, index keys and what waits for entries.

Source:
    vLLM 0.33 ``models/deepseek_v4`` (pages) and ``v1/core/kv_cache_planning.py`` (packing); the
    packing until 0.28 reproduces a logged start of 0.22, see ``tests/truth``.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from engine.budget.sequence_state import token_bytes
from engine.formats.kv import compressed_bytes, indexer_bytes
from engine.runtimes.vllm.layout import Group, Keeps, LayerPage, PoolLayout
from engine.units import align_up, ceil_div

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from engine.architecture.spec import AttentionSpec, Compression
    from engine.runtimes.vllm.layout import PoolRule

_BLOCK_TOKENS = 256
_WINDOW_BLOCK = 64
_WAITING_BLOCKS = {4: 4}
_WAITING_BLOCK = 8
_F32_BYTES = 4


class _Kind(NamedTuple):
    """Layers that need the same number of slots for their tokens, whatever their pages' size."""

    keeps: Keeps
    block_tokens: int
    window: int


class _Bucket(NamedTuple):
    kind: _Kind
    pages: Mapping[int, list[int]]
    """Bytes of a page -> the numbers of the layers with such pages."""

    @property
    def is_balanced(self) -> bool:
        """Whether there are as many layers of each size."""
        return len({len(layers) for layers in self.pages.values()}) == 1

    @property
    def sets(self) -> int:
        """Layers of the most frequent size."""
        return max(len(layers) for layers in self.pages.values())

    def set_bytes(self, sets: int) -> int:
        """Bytes of ``sets`` layers of each size."""
        return sum(size * min(sets, len(layers)) for size, layers in self.pages.items())

    def groups(self, number: int, stage: range) -> list[Group]:
        """The bucket dealt out to ``number`` groups in turn, with the bytes that ``stage`` has."""
        kind = self.kind
        page = LayerPage(kind.keeps, kind.block_tokens, next(iter(self.pages)), kind.window)
        found: Counter[int] = Counter()
        for turn in range(number):
            dealt = {s: layers[turn::number] for s, layers in self.pages.items()}
            found[sum(s * sum(i in stage for i in layers) for s, layers in dealt.items())] += 1
        return [Group(page, count, size) for size, count in found.items()]


def compressed_layout(
    by_layer: list[dict[AttentionSpec, int]], stage: range, rule: PoolRule
) -> PoolLayout:
    """The pool layout of layers that keep compressed entries.

    Args:
        by_layer: the attentions of each layer of the model, with their numbers.
        stage: the layers that a rank holds.
        rule: the rest that decides.
    """
    if rule.with_mtp:
        draft = next(a for layer in reversed(by_layer) for a in layer)
        by_layer = [*by_layer, {replace(draft, compression=None): 1}]
        stage = range(stage.start, stage.stop + int(stage.stop == len(by_layer) - 1))
    buckets = _buckets(by_layer, rule)
    return _in_sets(buckets, stage) if rule.pads_tuples else _packed(buckets, stage)


def _buckets(by_layer: list[dict[AttentionSpec, int]], rule: PoolRule) -> list[_Bucket]:
    """Entries and index keys in one, then the windows, then what waits, by ratio."""
    layers = [(i, a) for i, layer in enumerate(by_layer) for a in layer]
    pages: list[tuple[_Kind, int, int]] = []
    for index, attention in layers:
        pages += [(kind, size, index) for kind, size in _entries(attention, rule.kv_dtype)]
    for index, attention in layers:
        kind = _Kind(Keeps.WINDOW, _WINDOW_BLOCK, attention.window)
        pages.append((kind, _WINDOW_BLOCK * token_bytes(attention, rule.kv_dtype), index))
    for index, attention in layers:
        if attention.compression is not None:
            pages += [(kind, size, index) for kind, size in _waiting(attention.compression)]
    alignment = 576 if rule.kv_dtype == "fp8_ds_mla" else 512
    found: dict[_Kind, dict[int, list[int]]] = {}
    for kind, size, index in pages:
        found.setdefault(kind, {}).setdefault(align_up(size, alignment), []).append(index)
    return [_Bucket(kind, sizes) for kind, sizes in found.items()]


def _entries(attention: AttentionSpec, kv_dtype: str) -> Iterator[tuple[_Kind, int]]:
    """Pages of a layer's compressed entries, and of their keys in the indexer."""
    found = attention.compression
    if found is None:
        return
    kind, slots = _Kind(Keeps.ALL, _BLOCK_TOKENS, 0), _BLOCK_TOKENS // found.ratio
    yield kind, slots * compressed_bytes(kv_dtype, found.width, attention.qk_rope_head_dim)
    if found.index_width:
        yield kind, slots * indexer_bytes(found.index_width)


def _waiting(found: Compression) -> Iterator[tuple[_Kind, int]]:
    """Pages of a value and a gate in 32 bits for each token, of both halves where they overlap."""
    block = _WAITING_BLOCKS.get(found.ratio, _WAITING_BLOCK)
    twice = 2 if found.overlaps else 1
    kind = _Kind(Keeps.WINDOW, block, found.ratio * twice)
    for width in (found.width, found.index_width):
        if width:
            yield kind, block * 2 * width * twice * _F32_BYTES


def _packed(buckets: list[_Bucket], stage: range) -> PoolLayout:
    """Pages of several sizes side by side; a block is as large as the largest group."""
    mixed = [b.sets for b in buckets if b.is_balanced and len(b.pages) > 1]
    each = 0
    if mixed:
        each = least_padding([b.sets for b in buckets if b.is_balanced], max(mixed))

    def number(bucket: _Bucket) -> int:
        return ceil_div(bucket.sets, each) if each and bucket.is_balanced else 1

    def alone(bucket: _Bucket) -> bool:
        return not each and bucket.kind.keeps is Keeps.WINDOW

    anchor = max(b.set_bytes(1 if alone(b) else ceil_div(b.sets, number(b))) for b in buckets)
    groups: list[Group] = []
    for bucket in buckets:
        wanted = number(bucket)
        if alone(bucket):
            fits = max(anchor // next(iter(bucket.pages)), 1)
            wanted = max(wanted, ceil_div(sum(map(len, bucket.pages.values())), fits))
        groups += bucket.groups(wanted, stage)
    size = max(group.size_bytes for group in groups)
    return PoolLayout(tuple(groups), size, groups[0].page.block_tokens)


def _in_sets(buckets: list[_Bucket], stage: range) -> PoolLayout:
    """Every group padded to as many sets of one page of each size of the first bucket."""
    first, *others = buckets
    each = least_padding([b.sets for b in buckets], first.sets)
    groups = first.groups(1, stage)
    for bucket in others:
        padded: dict[int, list[int]] = {}
        for size, layers in bucket.pages.items():
            padded.setdefault(min(s for s in first.pages if s >= size), []).extend(layers)
        groups += _Bucket(bucket.kind, padded).groups(ceil_div(bucket.sets, each), stage)
    sets = max(first.sets, *(ceil_div(b.sets, ceil_div(b.sets, each)) for b in others))
    return PoolLayout(
        tuple(groups), sets * sum(first.pages), groups[0].page.block_tokens, prints_bytes=True
    )


def least_padding(counts: list[int], lowest: int) -> int:
    """The size of sets, ``lowest`` or more, that pads all counts least; the larger of two.

    Source:
        vLLM ``v1/core/kv_cache_utils.py :: _approximate_gcd``.
    """
    sizes = range(lowest, max(counts) + 1) or (lowest,)
    return min(sizes, key=lambda size: (sum(-count % size for count in counts), -size))
