"""What SGLang keeps of a token: the pool's bytes a token, and a pool apart for sliding layers.

Source:
    SGLang 0.5.23 ``model_executor/pool_configurator.py``; older releases
    ``model_runner.py :: profile_max_num_token``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from engine.architecture.drafts import DFLASH
from engine.architecture.spec import AttentionKind, Direction, Doubt, Subject
from engine.budget.sequence_state import CACHED, attention_kinds, layer_kinds, token_bytes
from engine.runtimes.kept import doubts_in
from engine.runtimes.sglang import rules
from engine.runtimes.sglang.compressed import Steps, parts_of
from engine.runtimes.sglang.kv_dtypes import FOUR_BITS
from engine.runtimes.sglang.vision import doubts_of
from engine.units import align_up, ceil_div
from engine.words import tr

if TYPE_CHECKING:
    from engine.architecture.spec import ArchitectureSpec, AttentionSpec
    from engine.runtimes.sglang.rules import Version


@dataclass(frozen=True, slots=True)
class CacheRule:
    """What of a deployment decides the bytes of a token."""

    kv_dtype: str
    attention_tp: int
    page: int
    version: Version
    sliding_ratio: float | None
    """``swa_full_tokens_ratio`` where it was given."""
    with_drafts: bool
    """Whether the model's own prediction blocks draft."""
    draft: ArchitectureSpec | None = None
    """A draft model of its own."""
    steps: Steps | None = None
    """Of a model whose compressed entries are known."""


@dataclass(frozen=True, slots=True)
class PoolLayout:
    """The pool of one stage on one rank."""

    full_cell: int
    """Bytes of a token in all layers that keep every token."""
    sliding_cell: int
    """The same in the layers that have a pool of their own; 0 where none have."""
    ratio: float
    """Tokens of that pool for one of the other."""
    window: int
    page: int
    counted_cell: float | None = None
    """What SGLang divides the room by, where it is not what a token really takes."""
    fixed_bytes: int = 0
    """Held beside the tokens, however many they are."""

    @property
    def cell(self) -> float:
        """Bytes that a token takes."""
        if not self.full_cell:
            return self.sliding_cell
        return self.full_cell + self.ratio * self.sliding_cell

    def tokens(self, pool_bytes: int) -> int:
        """Tokens that a pool holds, in whole pages."""
        room = max(pool_bytes - self.fixed_bytes, 0)
        return int(room // self.cell) // self.page * self.page

    def tokens_for(self, room_bytes: int) -> int:
        """Tokens that SGLang makes a pool for in that much room, in whole pages."""
        counted = self.cell if self.counted_cell is None else self.counted_cell
        room = max(room_bytes - self.fixed_bytes, 0)
        return int(room // counted) // self.page * self.page

    def sliding_tokens(self, tokens: int) -> int:
        """Tokens of the sliding layers' pool beside ``tokens`` of the other."""
        return int(tokens * self.ratio) // self.page * self.page

    def size_bytes(self, tokens: int) -> int:
        """Bytes that are held for ``tokens``, and for the page that is never given out."""
        whole = tokens + self.page
        held = whole * self.full_cell + self.fixed_bytes
        if not self.sliding_cell:
            return held
        beside = self.sliding_tokens(tokens) if self.full_cell else tokens
        return held + (beside + self.page) * self.sliding_cell

    def needed_tokens(self, requests: int, each: int, chunk: int) -> int:
        """Tokens of the pool that ``requests`` of ``each`` tokens take."""
        own = align_up(each, self.page)
        found = requests * own
        if not self.sliding_cell or not self.full_cell:
            return found
        kept = min(own, align_up(self.window + self.page, self.page))
        beside = requests * kept + min(own - kept, align_up(chunk, self.page))
        return max(found, align_up(ceil_div(round(beside * 1000), round(self.ratio * 1000)), 1))

    def request_bytes(self, each: int) -> int:
        """What one request of ``each`` tokens holds."""
        own = align_up(each, self.page)
        kept = min(own, align_up(self.window + self.page, self.page))
        return own * self.full_cell + kept * self.sliding_cell


@lru_cache(maxsize=CACHED)
def pool_layout(
    spec: ArchitectureSpec, first: int, stop: int, rule: CacheRule
) -> PoolLayout | None:
    """The pool of layers ``first`` to ``stop``; None where none of them keeps a cache.

    Beside recurrent layers only those with attention count. In all other models every layer
    counts like the widest, also one that reads another's cache (Gemma 4: all 42 of 42).
    """
    if rule.steps is not None:
        return _of_entries(spec, first, stop, rule, rule.steps)
    kinds = _counted(spec, first, stop)
    if not kinds:
        return None
    apart = _has_two_pools(spec, rule.version)
    alike = not apart and not _has_state(spec)
    sizes = [_token_bytes(a, rule) - _index_bytes(a) for a, _ in kinds]
    widest = max(sizes)
    full = sliding = window = 0
    layers = _Layers()
    for (attention, count), size in zip(kinds, sizes, strict=True):
        if apart and attention.kind in (AttentionKind.SLIDING, AttentionKind.CHUNKED):
            sliding += size * count
            layers.sliding += count
            window = max(window, attention.window)
        else:
            full += (widest if alike else size) * count + _index_bytes(attention) * count
            layers.full += count
    found = PoolLayout(full, sliding, _ratio(spec, rule) if sliding else 0.0, window, rule.page)
    twice = sliding and rules.covers(rules.SLIDING_COUNTED_TWICE, spec.model_type, rule.version)
    counted = _counted_twice(found, layers) if twice else _counted_less(kinds, rule, found)
    drafts = _drafts(spec, rule) if stop == len(spec.layers) else ()
    if drafts:
        counted += _counted_drafts(counted, found, layers, drafts, rule)
        found = replace(found, full_cell=full + sum(drafts))
    return found if counted == found.cell else replace(found, counted_cell=counted)


def _of_entries(
    spec: ArchitectureSpec, first: int, stop: int, rule: CacheRule, steps: Steps
) -> PoolLayout:
    """The pools of compressed entries: the windows' follows the requests, or the other's tokens."""
    own = parts_of(spec, first, stop, rule.version, rule.page, steps)
    entries = round(own.entries)
    if own.window_tokens is not None and rule.sliding_ratio is None:
        beside = own.state_bytes + round(own.window_tokens * own.counted_window)
        return PoolLayout(entries, 0, 0.0, 0, rule.page, own.counted_entries, beside)
    ratio, window = _ratio(spec, rule), spec.layers[first].attention
    return PoolLayout(
        entries,
        round(own.window),
        ratio,
        0 if window is None else window.window,
        rule.page,
        own.counted_entries + ratio * own.counted_window,
        own.state_bytes,
    )


def _drafts(spec: ArchitectureSpec, rule: CacheRule) -> tuple[int, ...]:
    """Bytes of a token in each layer that drafts."""
    if rule.draft is not None:
        kinds = layer_kinds(rule.draft)
        own = [(layer.attention, count) for layer, count in kinds if layer.attention is not None]
        return tuple(_token_bytes(a, rule) for a, count in own for _ in range(count))
    return tuple(_token_bytes(a, rule) for a in spec.mtp_attentions) if rule.with_drafts else ()


def _counted_drafts(
    counted: float, found: PoolLayout, layers: _Layers, drafts: tuple[int, ...], rule: CacheRule
) -> float:
    """What the layers that draft add to ``counted`` when the pool is sized."""
    in_blocks = rule.draft is not None and rule.draft.draft == DFLASH
    if in_blocks and rules.BLOCK_DRAFTS_AS_HELD.at(rule.version):
        return sum(drafts)
    since = rules.BLOCK_DRAFTS_COUNTED if in_blocks else rules.DRAFTS_COUNTED
    if layers.sliding and layers.full:
        is_counted = rules.DRAFTS_COUNTED_BESIDE_WINDOWS.at(rule.version)
        return found.full_cell // layers.full * len(drafts) if is_counted else 0
    each = counted / max(layers.full + layers.sliding, 1)
    return int(each * len(drafts)) if since.at(rule.version) else 0


@dataclass(slots=True)
class _Layers:
    full: int = 0
    sliding: int = 0


def _counted_less(
    kinds: tuple[tuple[AttentionSpec, int], ...], rule: CacheRule, found: PoolLayout
) -> float:
    """What a token counts, beside an index mostly less than all of it.

    Latents packed with scales counted as plain ones until 0.5.17, the index not at all until
    0.5.4.
    """
    if not any(a.index_head_dim for a, _ in kinds):
        return found.cell
    less = 0
    for attention, count in kinds:
        if rule.kv_dtype == "fp8_ds_mla" and not rules.PACKED_COUNTED.at(rule.version):
            plain = token_bytes(attention, "fp8_e4m3", rule.attention_tp)
            less += (_token_bytes(attention, rule) - plain) * count
        if not rules.INDEX_COUNTED.at(rule.version):
            less += _index_bytes(attention) * count
    return found.cell - less


def _counted_twice(found: PoolLayout, layers: _Layers) -> float:
    """A full layer's bytes for every layer, and the sliding layers' once more.

    Source:
        SGLang 0.5.8 ``model_runner_kv_cache_mixin.py :: get_cell_size_per_token``,
        ``set_num_tokens_hybrid_swa``; mended by pull request 18039.
    """
    count = layers.full + layers.sliding
    every = found.full_cell // max(layers.full, 1) * count + found.sliding_cell
    return every * (found.ratio * layers.sliding + layers.full) / count


def _counted(
    spec: ArchitectureSpec, first: int, stop: int
) -> tuple[tuple[AttentionSpec, int], ...]:
    """The attentions that count, with their numbers."""
    found: list[tuple[AttentionSpec, int]] = []
    others = 0
    for layer, count in layer_kinds(spec, first, stop):
        if layer.attention is not None:
            found.append((layer.attention, count * layer.attention.caches))
        elif layer.state is None:
            others += count
    if found and others and not _has_state(spec):
        # Layers without attention count too: SGLang multiplies by the number of all layers.
        found.append((found[0][0], others))
    return tuple(found)


def _has_state(spec: ArchitectureSpec) -> bool:
    return any(layer.state is not None for layer, _ in layer_kinds(spec))


def _token_bytes(attention: AttentionSpec, rule: CacheRule) -> int:
    """Bytes of one token in one layer on one rank."""
    dtype, tp = rule.kv_dtype, rule.attention_tp
    if dtype == "mxfp8":
        size = token_bytes(attention, "fp8", tp)
        return size + size // 32
    if attention.kind is AttentionKind.LATENT and dtype in FOUR_BITS:
        width = attention.kv_lora_rank + attention.qk_rope_head_dim
        return width // 2 + width // 16 + _index_bytes(attention)
    return token_bytes(attention, "nvfp4" if dtype in FOUR_BITS else dtype, tp)


def _index_bytes(attention: AttentionSpec) -> int:
    """Of that, the key of a sparse indexer."""
    if not attention.index_head_dim:
        return 0
    whole = token_bytes(attention, "bf16")
    return whole - token_bytes(replace(attention, index_head_dim=0), "bf16")


def _has_two_pools(spec: ArchitectureSpec, version: Version) -> bool:
    since = rules.starts_with(spec.model_type, rules.TWO_POOLS)
    return since is not None and since <= version


def _ratio(spec: ArchitectureSpec, rule: CacheRule) -> float:
    if rule.sliding_ratio is not None:
        return rule.sliding_ratio
    until = rules.starts_with(spec.model_type, rules.SLIDING_AS_FULL)
    if until is not None and rule.version < until:
        return 1.0
    return rules.starts_with(spec.model_type, rules.SLIDING_RATIOS) or rules.SLIDING_RATIO


@lru_cache(maxsize=CACHED)
def cache_doubts(
    spec: ArchitectureSpec, version: Version, *, drafting: bool = False, packs_entries: bool = False
) -> tuple[Doubt, ...]:
    """The model's doubts, and those about what SGLang keeps of it.

    Args:
        spec: the model.
        version: the release.
        drafting: whether prediction blocks are loaded.
        packs_entries: whether it is known how compressed entries are kept.
    """
    known = doubts_in(spec, "SGLang", packs_entries=packs_entries)
    settled = set(spec.doubts).difference(doubts_of(spec))
    found = tuple(doubt for doubt in known if doubt not in settled)
    if drafting and spec.uncounted_mtp:
        reason = tr(
            "speculation loads prediction blocks of a layout that is not known: not counted"
        )
        subjects = (Subject.WEIGHTS, Subject.SEQUENCE_STATE)
        found = (*found, *(Doubt(subject, reason, Direction.LOWER) for subject in subjects))
    widths = {
        (a.num_key_value_heads, a.head_dim, a.v_head_dim, a.kv_lora_rank)
        for a in attention_kinds(spec)
        if a.kind is not AttentionKind.CROSS
    }
    if len(widths) > 1 and not (_has_two_pools(spec, version) or _has_state(spec)):
        reason = tr(
            "SGLang counts every layer alike, and this model's are not: counted as the widest"
        )
        found = (*found, Doubt(Subject.SEQUENCE_STATE, reason, Direction.EITHER))
    return found
