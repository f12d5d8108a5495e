"""The pool of DeepSeek-V4: windows, compressed entries, index keys and what waits for entries.

Source:
    vLLM 0.33 ``models/deepseek_v4`` (pages) and ``v1/core/kv_cache_planning.py`` (packing); the
    packing until 0.28 reproduces a logged start of 0.22, see ``tests/truth``.
"""

from __future__ import annotations

from collections import Counter
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
    pages: Mapping[int, int]
    """Bytes of a page -> layers with such pages."""

    @property
    def is_balanced(self) -> bool:
        """Whether there are as many layers of each size."""
        return len(set(self.pages.values())) == 1

    @property
    def sets(self) -> int:
        """Layers of the most frequent size."""
        return max(self.pages.values())

    def set_bytes(self, sets: int) -> int:
        """Bytes of ``sets`` layers of each size."""
        return sum(size * min(sets, count) for size, count in self.pages.items())

    def groups(self, number: int) -> list[Group]:
        """The bucket dealt out to ``number`` groups, one after the other."""
        kind = self.kind
        found: Counter[int] = Counter()
        for index in range(number):
            layers = {s: len(range(index, n, number)) for s, n in self.pages.items()}
            found[sum(size * count for size, count in layers.items())] += 1
        first = next(iter(self.pages))
        page = LayerPage(kind.keeps, kind.block_tokens, first, kind.window)
        return [Group(page, count, size) for size, count in found.items()]


def compressed_layout(attentions: Mapping[AttentionSpec, int], rule: PoolRule) -> PoolLayout:
    """The pool layout of layers that keep compressed entries.

    Args:
        attentions: the attentions of a rank's layers, with their numbers.
        rule: the rest that decides.
    """
    buckets = _buckets(attentions, rule)
    return _in_sets(buckets) if rule.pads_tuples else _packed(buckets)


def _buckets(attentions: Mapping[AttentionSpec, int], rule: PoolRule) -> list[_Bucket]:
    """Entries and index keys in one, then the windows, then what waits, by ratio."""
    pages: list[tuple[_Kind, int, int]] = []
    for attention, layers in attentions.items():
        pages += [(kind, size, layers) for kind, size in _entries(attention, rule.kv_dtype)]
    windows = list(attentions.items())
    if rule.with_mtp:
        windows.append((windows[-1][0], 1))
    for attention, layers in windows:
        kind = _Kind(Keeps.WINDOW, _WINDOW_BLOCK, attention.window)
        pages.append((kind, _WINDOW_BLOCK * token_bytes(attention, rule.kv_dtype), layers))
    for attention, layers in attentions.items():
        if attention.compression is not None:
            pages += [(kind, size, layers) for kind, size in _waiting(attention.compression)]
    alignment = 576 if rule.kv_dtype == "fp8_ds_mla" else 512
    found: dict[_Kind, Counter[int]] = {}
    for kind, size, layers in pages:
        found.setdefault(kind, Counter())[align_up(size, alignment)] += layers
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


def _packed(buckets: list[_Bucket]) -> PoolLayout:
    """Pages of several sizes side by side; a block is as large as the largest group."""
    mixed = [b.sets for b in buckets if b.is_balanced and len(b.pages) > 1]
    each = 0
    if mixed:
        each = _least_padding([b.sets for b in buckets if b.is_balanced], max(mixed))

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
            wanted = max(wanted, ceil_div(sum(bucket.pages.values()), fits))
        groups += bucket.groups(wanted)
    size = max(group.size_bytes for group in groups)
    return PoolLayout(tuple(groups), size, groups[0].page.block_tokens)


def _in_sets(buckets: list[_Bucket]) -> PoolLayout:
    """Every group padded to as many sets of one page of each size of the first bucket."""
    first, *others = buckets
    each = _least_padding([b.sets for b in buckets], first.sets)
    groups = first.groups(1)
    for bucket in others:
        padded: Counter[int] = Counter()
        for size, layers in bucket.pages.items():
            padded[min(s for s in first.pages if s >= size)] += layers
        groups += _Bucket(bucket.kind, padded).groups(ceil_div(bucket.sets, each))
    sets = max(first.sets, *(ceil_div(b.sets, ceil_div(b.sets, each)) for b in others))
    return PoolLayout(
        tuple(groups), sets * sum(first.pages), groups[0].page.block_tokens, prints_bytes=True
    )


def _least_padding(counts: list[int], lowest: int) -> int:
    """The size of sets, ``lowest`` or more, that pads all counts least; the larger of two."""
    sizes = range(lowest, max(counts) + 1) or (lowest,)
    return min(sizes, key=lambda size: (sum(-count % size for count in counts), -size))
