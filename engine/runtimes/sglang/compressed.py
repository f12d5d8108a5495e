"""The pools of DeepSeek-V4: compressed entries, a window apart, and rings of what waits to be one.

Source:
    SGLang 0.5.12 to 0.5.23 ``pool_configurator.py :: DSV4PoolConfigurator`` and
    ``mem_cache/deepseek_v4_memory_pool.py``, off ROCm. A start of 0.5.12 prints 15,955.85 B a token
    for DeepSeek-V4-Flash.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.budget.sequence_state import layer_kinds
from engine.formats.kv import compressed_bytes, indexer_bytes
from engine.runtimes.sglang import rules
from engine.units import align_up, ceil_div

if TYPE_CHECKING:
    from engine.architecture.spec import ArchitectureSpec, Compression
    from engine.runtimes.sglang.rules import Version

PACKED = "fp8_ds_mla"
_OVERLAPPING, _LARGE = 4, 128
"""Tokens of an entry of either kind."""
_STATE_BYTES = 4
_BLOCK = 576
"""A page of keys is a multiple of it."""
_EVICTION = 128
"""Tokens between two evictions from the window (``SGLANG_SWA_EVICTION_INTERVAL``)."""
_TAILS = 4
"""Prefixes for a running request whose windows are kept."""


@dataclass(frozen=True, slots=True)
class Steps:
    """What of a deployment decides what is kept beside the entries."""

    requests: int
    """Of one scheduler."""
    chunk: int
    draft_tokens: int
    """Tokens that one step verifies; 0 without speculation."""
    radix: bool


@dataclass(frozen=True, slots=True)
class Parts:
    """Bytes on one rank: as held, and as counted when the pools are sized."""

    entries: float
    """Of a token in all compressed layers."""
    window: float
    """Of a token in the windows' pool."""
    counted_entries: float
    counted_window: float
    window_tokens: int | None
    """Of the windows' pool where it follows from requests; None where from the other's tokens."""
    state_bytes: int
    """Of what waits to be an entry of many tokens, by request."""


def is_known(spec: ArchitectureSpec) -> bool:
    """Whether it has compressed entries, all of a form that is known here."""
    found = [c for c, _ in _compressions(spec, 0, len(spec.layers))]
    return bool(found) and all(c.ratio in (_OVERLAPPING, _LARGE) for c in found)


def _compressions(spec: ArchitectureSpec, first: int, stop: int) -> list[tuple[Compression, int]]:
    kinds = layer_kinds(spec, first, stop)
    attentions = [(layer.attention, count) for layer, count in kinds if layer.attention]
    return [(a.compression, count) for a, count in attentions if a.compression is not None]


def parts_of(
    spec: ArchitectureSpec, first: int, stop: int, version: Version, page: int, steps: Steps
) -> Parts:
    """What layers ``first`` to ``stop`` keep."""
    attention = next(layer.attention for layer in spec.layers if layer.attention is not None)
    key = compressed_bytes(PACKED, attention.head_dim, attention.qk_rope_head_dim)
    layers, drafts = stop - first, steps.draft_tokens > 0
    by_request = rules.ENTRY_STATES_BY_REQUEST.at(version)
    entries = counted = states = 0.0
    state_bytes = 0
    for found, count in _compressions(spec, first, stop):
        index = indexer_bytes(found.index_width) if found.index_width else 0
        entries += count * (_paged(key, page // found.ratio) + index) / found.ratio
        counted += count * (key + index) / found.ratio
        ring = _ring(found.ratio, drafts=drafts)
        each = 2 * (found.width + found.index_width) * _STATE_BYTES
        if found.ratio == _OVERLAPPING:
            every = page if rules.WINDOWS_BY_REQUEST.at(version) else attention.window
            states += count * 2 * each * ring / every
        elif by_request:
            # One ring for every request, and for none; and one row.
            rows = align_up((steps.requests + 2) * ring + 1, _LARGE)
            state_bytes += count * each * rows
        else:
            states += count * each * ring / attention.window
    every_layer = layers
    if not rules.ENTRIES_BY_STAGE.at(version) and stop == len(spec.layers):
        every_layer += len(spec.mtp_attentions)
    window = _paged(key, page) * (layers + drafts) + states
    counted_window = key * every_layer + states
    if rules.WINDOWS_BY_REQUEST.at(version):
        counted, counted_window = entries, _paged(key, page) * layers + states
    grown = (every_layer + 1) / every_layer if drafts else 1
    return Parts(
        entries,
        window,
        counted * grown,
        counted_window * grown,
        _window_tokens(attention.window, version, page, steps),
        state_bytes,
    )


def _paged(key: int, page: int) -> float:
    """Bytes of a key in pages of whole blocks."""
    return align_up(key * page, _BLOCK) / page


def _ring(ratio: int, *, drafts: bool) -> int:
    ring = 8 if ratio == _OVERLAPPING else _LARGE
    return 2 * ring if drafts else ring


def _window_tokens(window: int, version: Version, page: int, steps: Steps) -> int | None:
    if steps.chunk <= 0 or not rules.WINDOWS_BY_REQUEST.at(version):
        return None
    drafts = max(steps.draft_tokens, 1)
    each = window + _EVICTION * drafts + page
    # Two steps of drafts lie ahead, in whole pages.
    each += page if not steps.draft_tokens else 2 * ceil_div(steps.draft_tokens, page) * page
    tails = _TAILS * steps.requests * (window + page) if steps.radix else 0
    return align_up(each * steps.requests + 2 * steps.chunk + page + tails, page)
