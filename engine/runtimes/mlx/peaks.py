"""What MLX holds beside the weights: caches at the end, and the peaks of reading and answering."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.architecture.spec import AttentionKind
from engine.budget.sequence_state import attention_counts, layer_kinds
from engine.evidence import Basis, Estimate
from engine.formats.dtypes import canonical, element_bytes
from engine.runtimes.mlx import cache
from engine.runtimes.mlx.layers import stack
from engine.runtimes.mlx.models import window_of
from engine.runtimes.mlx.passes import run
from engine.runtimes.mlx.reading import Pass
from engine.runtimes.mlx.rules import PROMPTS_AT_ONCE, STEP
from engine.words import grouped, tr, tr_later

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.architecture.spec import ArchitectureSpec, AttentionSpec
    from engine.runtimes.mlx.hardware import Chip
    from engine.runtimes.mlx.layers import Stack
    from engine.runtimes.mlx.passes import Outcome
    from engine.runtimes.mlx.settings import Settings

_MEASURED_STATES = frozenset({"gated_delta_net"})
_SOURCE = tr_later(
    "every allocation of one evaluation, freed when its command buffer "
    "ends (mlx 0.29 to 0.32); 37 measured peaks of 9 models: median 0.7 % "
    "of the peak, 3 % at most"
)
_UNMEASURED = tr_later("; no peak of a model with such layers was measured")
_LOGITS_BYTES = 6
"""Of one row of logits: 16 bits, and its log-probabilities in 32."""


@dataclass(frozen=True, slots=True)
class Peaks:
    """Transients of one rank, beside the weights and the caches at the end."""

    activations: Estimate
    """The larger of reading the prompt and answering."""
    decode: Estimate
    largest_bytes: int
    """The largest single buffer."""
    note: str


def kv_bytes(spec: ArchitectureSpec, settings: Settings, layers: range, tp: int) -> int:
    """Caches of one sequence at its end, in ``layers`` on one rank."""
    return sum(
        rows * each * count for rows, each, count in _cache_terms(spec, settings, layers, tp)
    )


def kv_formula(spec: ArchitectureSpec, settings: Settings, layers: range, tp: int) -> str:
    """``kv_bytes`` of all requests as a calculation."""
    parts = [
        tr("{count} layers × {rows} rows × {each} B").format(
            count=count, rows=grouped(rows), each=grouped(each)
        )
        for rows, each, count in _cache_terms(spec, settings, layers, tp)
    ]
    if not parts:
        return ""
    one = kv_bytes(spec, settings, layers, tp)
    requests = settings.requests
    many = (
        tr(" = {one} B; × {requests} requests").format(one=grouped(one), requests=grouped(requests))
        if requests > 1
        else ""
    )
    return " + ".join(parts) + many + f" = {grouped(one * requests)} B"


def growth_bytes(spec: ArchitectureSpec, settings: Settings, layers: range, tp: int) -> int:
    """What one more token costs on average: rows come 256 at a time."""
    found = 0
    for attention, count in attention_counts(spec, layers.start, layers.stop):
        window = window_of(spec, attention, settings.max_kv_size)
        if not window or settings.context < window:
            found += _row_bytes(spec, settings, attention, tp) * count
    return found


def state_bytes(spec: ArchitectureSpec, layers: range, tp: int) -> int:
    """Constant states of one sequence, in ``layers`` on one rank."""
    return sum(
        cache.state_bytes(layer.state, spec.dtype, tp) * count
        for layer, count in layer_kinds(spec, layers.start, layers.stop)
        if layer.state is not None
    )


def _cache_terms(
    spec: ArchitectureSpec, settings: Settings, layers: range, tp: int
) -> Iterator[tuple[int, int, int]]:
    """(rows at the end, bytes of a row, caches) of every kind of attention."""
    for attention, count in attention_counts(spec, layers.start, layers.stop):
        window = window_of(spec, attention, settings.max_kv_size)
        chunked = attention.kind is AttentionKind.CHUNKED and not settings.max_kv_size
        rows = cache.rows_at_end(
            window,
            chunked=chunked,
            prompt=settings.prompt,
            step=settings.step,
            tokens=settings.context,
        )
        yield rows, _row_bytes(spec, settings, attention, tp), count


def _row_bytes(
    spec: ArchitectureSpec, settings: Settings, attention: AttentionSpec, tp: int
) -> int:
    """Bytes of a row at the end; a rotating cache is never quantised."""
    width = element_bytes(canonical(spec.dtype) or "bfloat16")
    rotates = bool(window_of(spec, attention, settings.max_kv_size))
    packs = settings.packing.applies(settings.context) and not rotates
    packing = settings.packing if packs else cache.UNPACKED
    return cache.row_bytes(attention, spec.model_type, width, packing, tp)


def peaks(spec: ArchitectureSpec, settings: Settings, layers: range, tp: int, chip: Chip) -> Peaks:
    """The peaks of one rank.

    Args:
        spec: the model.
        settings: the deployment.
        layers: those that the rank runs.
        tp: tensor-parallel size.
        chip: what it runs on.
    """
    rules = settings.rules
    found = stack(spec, layers, settings.weight_format, tp, settings.max_kv_size)
    one = kv_bytes(spec, settings, layers, tp) + state_bytes(spec, layers, tp)
    fused = rules.fused_head_dims
    if chip.is_m5:
        fused |= rules.fused_on_m5
    reading = _longest(found, settings, fused, chip)
    doubtful = rules.newly_fused & fused & _widths(spec)
    unfused = _longest(found, settings, fused - doubtful, chip) if doubtful else reading
    prefill = _reading(reading, unfused, settings, one, rough=_is_rough(spec))
    answering = _answer(found, spec, settings, one, chip)
    chunk = min(settings.step, max(settings.prompt - 1, 1))
    return Peaks(
        prefill if prefill.likely_bytes >= answering.likely_bytes else answering,
        answering,
        reading.largest_bytes,
        tr("{chunk} of {prompt} prompt tokens at once").format(
            chunk=grouped(chunk), prompt=grouped(settings.prompt)
        ),
    )


def _widths(spec: ArchitectureSpec) -> set[int]:
    return {layer.attention.head_dim for layer, _ in layer_kinds(spec) if layer.attention}


def _longest(found: Stack, settings: Settings, fused: frozenset[int], chip: Chip) -> Outcome:
    """The pass over the prompt that holds most: its last full chunk, or what is left of it."""
    rules, step = settings.rules, settings.step
    if rules.materialises_mask:
        fused = frozenset()
    ends = rules.last_chunk_makes_logits
    tokens = max(settings.prompt - (0 if ends else 1), 1)
    full, rest = divmod(tokens, step)
    sizes = [(step, (full - 1) * step, ends and not rest)] if full else []
    sizes += [(rest, full * step, ends)] if rest else []
    passes = (
        Pass(
            tokens=size,
            offset=offset,
            step=step,
            fused=fused,
            masked=rules.materialises_mask,
            logits=logits,
            packing=settings.packing,
            is_small_chip=chip.is_small,
        )
        for size, offset, logits in sizes
    )
    return max((run(found, wanted) for wanted in passes), key=lambda o: o.peak_bytes)


def _reading(
    reading: Outcome, unfused: Outcome, settings: Settings, one: int, *, rough: bool
) -> Estimate:
    """The peak of the prompt, beside what one request keeps at the end.

    The range is fitted: what waits for its command buffer differs by how far the GPU is behind,
    what is in use hardly. A server may read several prompts at once.
    """
    likely = max(reading.peak_bytes - one, 0)
    waiting = min(reading.pending_bytes, likely)
    steady = likely - waiting
    under = over = waiting // 4 + steady * 3 // 100
    if settings.rules.materialises_mask:
        under = over = likely * 3 // 10
    if rough:
        under, over = likely * 2 // 5, likely * 3 // 5
    most = max(likely, unfused.peak_bytes - one)
    return Estimate(
        likely - under,
        likely,
        (most + over) * min(settings.requests, PROMPTS_AT_ONCE),
        Basis.ASSUMED if rough else Basis.FITTED,
        tr(_SOURCE) + (tr(_UNMEASURED) if rough else ""),
        tr("{steady} B in use + {waiting} B waiting for their command buffers = {likely} B").format(
            steady=grouped(steady), waiting=grouped(waiting), likely=grouped(likely)
        ),
    )


def _answer(
    found: Stack, spec: ArchitectureSpec, settings: Settings, one: int, chip: Chip
) -> Estimate:
    """A token for every request: at its worst when all caches grow, old beside new."""
    grows = settings.context > settings.prompt
    tokens = settings.context - 1
    wanted = Pass(
        1,
        tokens // STEP * STEP if grows else tokens,
        settings.step,
        settings.rules.fused_head_dims,
        packing=settings.packing,
        grows=grows,
        is_small_chip=chip.is_small,
    )
    outcome = run(found, wanted)
    logits = settings.requests * spec.vocab_size * _LOGITS_BYTES
    moving = max(outcome.peak_bytes - max(outcome.cache_bytes, one), 0) * settings.requests
    likely = moving + logits
    formula = tr("logits {logits} B").format(logits=grouped(logits))
    if grows:
        formula = tr(
            "caches that grow by {step} rows, old beside new: {moving} B; {formula}"
        ).format(step=STEP, moving=grouped(moving), formula=formula)
    return Estimate(
        logits,
        likely,
        likely + moving // 4,
        Basis.FITTED,
        tr(_SOURCE),
        formula,
        tr("one token each"),
    )


def _is_rough(spec: ArchitectureSpec) -> bool:
    """Whether some layer is of a kind whose peaks nobody has measured."""
    for layer, _ in layer_kinds(spec):
        attention = layer.attention
        if attention is not None and (
            attention.kind is AttentionKind.LATENT or attention.index_head_dim
        ):
            return True
        if layer.state is not None and layer.state.kind not in _MEASURED_STATES:
            return True
    return False
