"""What vLLM takes beside weights, activations and graphs: buffers, workspaces, libraries."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from engine.budget.sequence_state import CACHED
from engine.devices.device import Vendor
from engine.evidence import Basis, Estimate, exactly
from engine.runtimes.overheads import has_fast_links
from engine.runtimes.vllm import rules
from engine.units import MIB, ceil_div
from engine.words import grouped, tr, tr_later

if TYPE_CHECKING:
    from engine.devices.device import Device
    from engine.runtimes.vllm.rules import Span, Version

_PENALTIES = tr_later(
    "vLLM 0.33 v1/worker/gpu/sample: penalties, logit_bias, bad_words, block tables"
)
_LISTED_TOKENS = 2 * 1024 + 128 + 1024 + 129
"""Entries of a row for allowed and biased tokens, stop tokens, bad words and their offsets."""


def inside(device: Device, version: Version, tp: int, pp: int, *, eager: bool) -> Estimate:
    """Growth outside PyTorch that vLLM charges to its budget."""
    if device.vendor is Vendor.AMD:
        span = rules.PARALLEL_ON_ROCM if tp > 1 else rules.INSIDE_ON_ROCM
        return _spanned(span, tr("starts on MI300X and MI355X"), _label(tp, pp))
    hopper = int(device.compute_capability) in (0, 9)
    return _inside(version, tp, pp, has_fast_links(device), hopper, eager)


@lru_cache(maxsize=256)
def _inside(
    version: Version,
    tp: int,
    pp: int,
    fast: bool,  # noqa: FBT001
    hopper: bool,  # noqa: FBT001
    eager: bool,  # noqa: FBT001
) -> Estimate:
    known: Span | None = None
    if tp > 1:
        span = rules.INSIDE_TENSOR_PARALLEL.at(version)
        known = rules.PARALLEL_EAGER.at(version) if eager else None
        known = known or rules.PARALLEL_ON_HOPPER.at(version)
        if not fast:
            span = rules.PARALLEL_WITHOUT_LINKS.at(version) or span
    elif pp > 1:
        span = rules.INSIDE_PIPELINE
    else:
        span = rules.INSIDE_SINGLE.at(version)
        known = rules.INSIDE_ON_HOPPER.at(version)
    if known is not None and fast and hopper:
        span = known
    source = tr("“non-torch memory” of logged starts, by version")
    return _spanned(span, source, _label(tp, pp))


def _label(tp: int, pp: int) -> str:
    return tr("workspaces") if tp * pp == 1 else tr("collectives, workspaces")


def libraries(room_bytes: int) -> Estimate:
    """Library handles and the first request's workspaces, as far as there is room for them."""
    return _libraries(min(rules.LIBRARIES.likely, room_bytes))


@lru_cache(maxsize=256)
def _libraries(likely: int) -> Estimate:
    source = tr("whole-card readings beyond vLLM's own terms")
    formula = f"{likely // MIB} MiB"
    high = rules.LIBRARIES.high
    return Estimate(0, likely, high, Basis.ASSUMED, source, formula, tr("libraries"))


@lru_cache(maxsize=CACHED)
def sampler_buffers(vocab_size: int, rows: int, tables: int) -> Estimate:
    """Penalty counters, prompt masks, lists of tokens and block tables of model runner 2.

    Args:
        vocab_size: entries of the vocabulary.
        rows: ``max_num_seqs``.
        tables: block-table entries of one sequence, all groups.
    """
    counters, masks = rows * vocab_size * 4, rows * ceil_div(vocab_size, 32) * 4
    size = counters + masks + rows * (tables + _LISTED_TOKENS) * 4
    formula = tr("{rows} rows × (4 × {vocab_size} + 4 × {ceil_div} + 4 × {tables}) B").format(
        rows=grouped(rows),
        vocab_size=grouped(vocab_size),
        ceil_div=grouped(ceil_div(vocab_size, 32)),
        tables=grouped(tables + _LISTED_TOKENS),
    )
    return exactly(size, Basis.EXACT, tr(_PENALTIES), formula, tr("sampler buffers"))


def slack(room_bytes: int) -> Estimate:
    """What the caching allocator holds without using it, as far as there is room for it."""
    return _slack(min(rules.SLACK.likely, room_bytes))


@lru_cache(maxsize=256)
def _slack(likely: int) -> Estimate:
    source = tr("whole-card readings beyond context and libraries: 350 to 1,000 MiB in all")
    return Estimate(0, likely, rules.SLACK.high, Basis.ASSUMED, source, f"{likely // MIB} MiB")


def _spanned(span: Span, source: str, label: str) -> Estimate:
    return Estimate(
        span.low, span.likely, span.high, Basis.FITTED, source, f"{span.likely // MIB} MiB", label
    )
