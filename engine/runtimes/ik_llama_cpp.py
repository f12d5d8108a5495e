"""ik_llama.cpp's compute buffers, worked out from load logs of 2025; a bound where none tells.

Caches are llama.cpp's, but for the end of a quantised row: keys are rows of one head. With one
GPU and no latent attention, the logits of a micro-batch and two hidden states beside
them are the peak (one where a norm follows each block): to the last digit printed in seven logs
of Gemma 3, GLM 4, Llama 3 and Qwen 3. What ``-mla`` and ``-amb`` make of latent attention, and
what several GPUs hold, no rule of theirs or ours gives: counted by llama.cpp's.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from engine.architecture.spec import AttentionKind, Direction, Doubt, Subject
from engine.budget.model import Region
from engine.evidence import Basis, Estimate, exactly, total
from engine.formats.gguf import TYPES, row_bytes
from engine.runtimes import bounded
from engine.runtimes.llama_cpp.weights import CUDA_ALIGNMENT, CUDA_ROW_ELEMENTS
from engine.units import align_up
from engine.words import grouped, tr, tr_later

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.budget.model import Budget, RankBudget

_UNKNOWN = tr_later(
    "ik_llama.cpp lays out its compute buffers by rules of its own (-mla, -amb, several GPUs): "
    "counted by llama.cpp's"
)
_SOURCE = tr_later("seven load logs of ik_llama.cpp, 2025: the logits and one or two hidden states")
_DEVICE, _HOST = 0, 1
_NORMS_AFTER = ("post_feedforward_layernorm", "post_mlp_layernorm", "post_ffw_norm")
_INDEX_BYTES = 12
"""Id, position and place among the outputs of a token."""
_EXPERT_UNITS = 12
"""Hidden states at most that experts on the host add there (10 in a log of Qwen3-235B)."""
_ROWS_LENT = 32
"""Rows of a batch for each expert, above which products of experts go to the GPU."""
_BEYOND = 1.5
"""Where llama.cpp's figure is this many times theirs, a layer and not the logits is the peak."""


def _doubt() -> Doubt:
    return Doubt(Subject.ACTIVATIONS, tr(_UNKNOWN), Direction.EITHER)


def settled(budget: Budget) -> Budget:
    """``budget`` by ik_llama.cpp's rules where they are known, else as a bound."""
    spec, plan, buffers = budget.model.spec, budget.deployment, budget.llama_cpp
    unit = 4 * plan.n_ubatch * spec.hidden_size if plan.n_ubatch else 0
    logits = 4 * (plan.n_ubatch or 0) * spec.vocab_size
    budget = replace(budget, ranks=tuple(_padded(budget)))
    if buffers is None or len(budget.ranks) != len((_DEVICE, _HOST)) or not _is_plain(budget):
        return bounded.bound(budget, (_doubt(),))
    device, beside = (rank.regions[Region.ACTIVATIONS].estimate for rank in budget.ranks)
    host, output = beside.parts
    units = 1 if _has_norm_after(budget) else 2
    likely = logits + units * unit
    if device.likely_bytes > _BEYOND * likely and not plan.n_cpu_moe:
        return bounded.bound(budget, (_doubt(),))
    masks = 4 * (plan.n_ubatch or 0) * (plan.n_ctx or 0) * _masks(budget)
    routed = _routed_units(budget) * unit
    pinned = max(masks + unit, routed) + _INDEX_BYTES * (plan.n_ubatch or 0)
    experts = _EXPERT_UNITS * unit if plan.n_cpu_moe else 0
    work = Estimate(
        logits + unit,
        likely,
        max(device.likely_bytes, likely + unit),
        Basis.FITTED,
        tr(_SOURCE),
        tr("4 B × {n_ubatch} tokens × ({vocab_size} + {units} × {hidden_size})").format(
            n_ubatch=grouped(plan.n_ubatch or 0),
            vocab_size=grouped(spec.vocab_size),
            units=units,
            hidden_size=grouped(spec.hidden_size),
        ),
    )
    on_host = Estimate(
        min(host.low_bytes, pinned),
        pinned,
        max(host.high_bytes, pinned + experts),
        Basis.FITTED,
        tr(_SOURCE),
        label=host.label,
    )
    named = dict(zip(buffers.compute_buffers, (pinned, likely), strict=False))
    return replace(
        budget,
        ranks=tuple(_working(budget.ranks, (work, total((on_host, output))))),
        llama_cpp=replace(buffers, compute_buffers=named),
    )


def _routed_units(budget: Budget) -> int:
    """Hidden states of all experts of a token, as they are and weighed, where the host has them.

    A batch with rows enough for each of them is lent to the GPU instead.
    """
    plan = budget.deployment
    moe = next((layer.moe for layer in budget.model.spec.layers if layer.moe), None)
    if moe is None or not plan.n_cpu_moe:
        return 0
    rows = (plan.n_ubatch or 0) * moe.num_experts_per_tok
    return 2 * moe.num_experts_per_tok if rows <= _ROWS_LENT * moe.num_experts else 0


def _padded(budget: Budget) -> Iterator[RankBudget]:
    """The ranks, with the padding of quantised keys on a GPU."""
    spec, plan = budget.model.spec, budget.deployment
    type_k = (plan.cache_type_k or "f16").upper()
    # Without flash attention a cache is one long row, which needs no padding.
    is_padded = _is_whole(budget) and TYPES[type_k].is_quantised and bool(plan.flash_attn)
    heads = {a.head_dim for layer in spec.layers if (a := layer.attention) is not None}
    rest = CUDA_ROW_ELEMENTS - max(heads, default=0) % CUDA_ROW_ELEMENTS
    size = align_up(row_bytes(type_k, rest), CUDA_ALIGNMENT)
    caches = [rank.regions[Region.KV_CACHE].estimate for rank in budget.ranks]
    held = sum(cache.likely_bytes for cache in caches)
    for rank, cache in zip(budget.ranks, caches, strict=True):
        if not is_padded or rank is budget.ranks[-1]:
            yield rank
            continue
        layers = round(len(spec.layers) * cache.likely_bytes / held)
        more = exactly(
            layers * size,
            Basis.EXACT,
            tr(_SOURCE),
            tr("{layers} × {size} B").format(layers=layers, size=size),
            tr("padding"),
        )
        entry = replace(rank.regions[Region.KV_CACHE], estimate=total((cache, more)))
        yield replace(rank, regions={**rank.regions, Region.KV_CACHE: entry})


def _working(ranks: tuple[RankBudget, ...], work: tuple[Estimate, ...]) -> Iterator[RankBudget]:
    for rank, estimate in zip(ranks, work, strict=True):
        entry = replace(rank.regions[Region.ACTIVATIONS], estimate=estimate)
        yield replace(rank, regions={**rank.regions, Region.ACTIVATIONS: entry})


def _is_plain(budget: Budget) -> bool:
    """Whether all layers are on the GPU and attend to whole keys and values."""
    asked = budget.deployment.n_gpu_layers
    is_all = asked is None or asked < 0 or asked > len(budget.model.spec.layers)
    return _is_whole(budget) and is_all


def _is_whole(budget: Budget) -> bool:
    """Whether all layers attend to whole keys and values."""
    return all(
        layer.attention is not None
        and layer.state is None
        and layer.attention.kind in (AttentionKind.FULL, AttentionKind.SLIDING)
        for layer in budget.model.spec.layers
    )


def _has_norm_after(budget: Budget) -> bool:
    """Whether a layer ends in a norm of its own."""
    tensors = budget.model.spec.layers[-1].tensors
    return any(t.name.removesuffix(".weight").endswith(_NORMS_AFTER) for t in tensors)


def _masks(budget: Budget) -> int:
    """One for all cells, and one more where some layers attend to a window."""
    spec = budget.model.spec
    return 1 + any(layer.attention is not None and layer.attention.window for layer in spec.layers)
