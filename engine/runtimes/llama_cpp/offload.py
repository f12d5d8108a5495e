"""Compute buffers by device: one GPU, several, some layers or experts on the host.

Where the graph is split, the terms beyond the one-device rule were worked out from measured
runs: 4 copies of the inputs under pipeline parallelism (``GGML_SCHED_MAX_COPIES``), and room
for host weights and caches that are copied over for large batches (``--op-offload``). What is
lent was held against 630 more runs of b11549 with a stand-in GPU: 98 % inside the range.
"""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING

from engine.runtimes.llama_cpp.buffers import groups, kv_layer
from engine.runtimes.llama_cpp.placement import HOST
from engine.runtimes.llama_cpp.settings import LEAST_LENT
from engine.runtimes.llama_cpp.shape import CacheKind
from engine.runtimes.llama_cpp.weights import CUDA_ALIGNMENT

if TYPE_CHECKING:
    from engine.runtimes.llama_cpp.compute import Graph
    from engine.runtimes.llama_cpp.placement import Placement

_PIPELINE_COPIES = 4
_FIRST_UNITS, _INNER_UNITS, _LOGIT_UNITS = 12, 7, 5
"""Hidden states that a stage of the pipeline holds beyond the one-device rule."""

_HANDED_UNITS = 2
"""Hidden states that a part of a split graph is handed by the part before, and need not hold."""

_DENSE_ROWS = 6
"""Bytes of an inner row's element beside a copied matrix: 4, or 8 where no hole is found."""

_LENT_UNITS = 4
"""Hidden states alive while a copied cache is attended to."""


def compute_buffers(graph: Graph, placement: Placement, *, cuda: bool) -> dict[int, int]:
    """Compute buffer bytes by device index (``HOST`` for the CPU)."""
    held = dict.fromkeys((HOST, *range(placement.devices)), 0)
    if not placement.devices or (placement.on_host_only and not graph.settings.lends):
        return held | {HOST: graph.on_host()}
    if placement.on_host_only:
        return held | {HOST: graph.pinned(), 0: _borrowed_output(graph, placement, cuda=cuda)}
    used = sorted({d for d in (*placement.blocks, placement.output) if d != HOST})
    if placement.is_full and graph.settings.offload_kqv:
        if len(used) == 1:
            return held | {HOST: graph.pinned(), used[0]: graph.on_one_gpu(cuda=cuda)}
        if cuda:
            return held | _pipeline(graph, used)
    if placement.is_full and not graph.settings.offload_kqv:
        return held | _cache_on_host(graph, placement, used, cuda=cuda)
    return held | _split(graph, placement, used, cuda=cuda)


def _borrowed_output(graph: Graph, placement: Placement, *, cuda: bool) -> int:
    """No layer on the GPU, but large batches borrow it, for a matrix or a cache at a time."""
    copied = max(_copied_weights(graph, placement), _copied_cache(graph, placement))
    layers = graph.inputs(CUDA_ALIGNMENT) + graph.cast_masks()
    layers += max(graph.layers(cuda=cuda), copied)
    if graph.settings.outputs < LEAST_LENT:
        return layers
    logits = graph.logits(cuda=cuda) or graph.layers(cuda=cuda)
    return max(layers, logits + graph.shape.weights.output_matrix_bytes)


def _pipeline(graph: Graph, used: list[int]) -> dict[int, int]:
    inputs = graph.inputs(CUDA_ALIGNMENT)
    copies = _PIPELINE_COPIES * inputs + graph.per_layer_inputs()
    if not graph.settings.build.keeps_inputs:
        return _older_pipeline(graph, used, copies)
    layers, unit, shape = graph.layers(cuda=True), graph.unit, graph.shape
    kind = shape.ssm.kind if shape.ssm else ""
    inner = (_INNER_UNITS - (kind == "gated_delta_net")) * unit
    first = inner + (_FIRST_UNITS - _INNER_UNITS) * unit
    if shape.mla is not None and shape.mla.has_q_rank:
        first += 4 * graph.settings.tokens * shape.n_head * shape.mla.rope
    held = {HOST: graph.pinned() + (_PIPELINE_COPIES - 1) * graph.inputs() + 6 * unit}
    for device in used:
        held[device] = copies + layers + inner
    held[used[0]] = copies + layers + first
    logits = graph.logits(cuda=True) + (_LOGIT_UNITS + 2 * (kind == "mamba2")) * unit
    last = max(layers + inner, logits)
    held[used[-1]] = copies + last
    return held


def _older_pipeline(graph: Graph, used: list[int], copies: int) -> dict[int, int]:
    """Until b11063: every stage holds 4 hidden states more, the last one may hold the logits.

    Which rows have logits only the last one is told.
    """
    casts = graph.cast_masks()
    told = _PIPELINE_COPIES * graph.output_ids(CUDA_ALIGNMENT)
    stage = copies + casts + graph.layers(cuda=True) + 4 * graph.unit
    inner = stage - (5 * graph.unit if casts else 0)
    held = {HOST: graph.pinned() + (_PIPELINE_COPIES - 1) * graph.inputs()}
    held |= dict.fromkeys(used, inner - told) | {used[0]: stage - told}
    held[used[-1]] = max(held[used[-1]] + told, copies + graph.logits(cuda=True))
    return held


def _cache_on_host(
    graph: Graph, placement: Placement, used: list[int], *, cuda: bool
) -> dict[int, int]:
    """All layers on GPUs, all caches on the host (``--no-kv-offload``)."""
    inputs = graph.device_inputs()
    layers = max(graph.device_layers(cuda=cuda), _copied_cache(graph, placement))
    held = max(graph.logits(cuda=cuda), inputs + layers) + graph.per_layer_inputs()
    return {HOST: graph.pinned() + graph.scores(), **dict.fromkeys(used, held)}


def _split(graph: Graph, placement: Placement, used: list[int], *, cuda: bool) -> dict[int, int]:
    settings = graph.settings
    logits = graph.logits(cuda=cuda) if placement.output != HOST else 0
    if not settings.lends:
        held = {HOST: graph.token_ids() + graph.inputs()}
        on_gpu = graph.device_inputs()
        if HOST in placement.blocks:
            held[HOST] += graph.layers(cuda=False) + graph.unit
            on_gpu += graph.device_layers(cuda=cuda) - _HANDED_UNITS * graph.unit
        else:
            routed = placement.cpu_experts < graph.shape.num_layers
            held[HOST] += _routed_on_host(graph)
            on_gpu += graph.device_layers(cuda=cuda, routed=routed)
        held |= dict.fromkeys(used, on_gpu)
        if logits:
            held[placement.output] = max(held[placement.output], logits - 3 * graph.unit)
        return held
    held = {HOST: graph.pinned() + graph.scores()}
    if HOST in placement.blocks and graph.shape.ssm and graph.shape.ssm.kind == "mamba2":
        # The scan of a layer on the host runs there.
        held[HOST] = max(held[HOST], graph.inputs() + graph.recurrent() - graph.unit)
    inputs = graph.device_inputs()
    layers = inputs + graph.device_layers(cuda=cuda)
    handed = _HANDED_UNITS - (graph.shape.mla is not None)
    held |= dict.fromkeys(used, layers - handed * graph.unit)
    first = used[0]
    held[first] = layers
    copied = max(_copied_weights(graph, placement), _copied_cache(graph, placement))
    held[first] = max(held[first], inputs - graph.cast_masks() + copied)
    if logits:
        alone = len(used) == 1
        held[placement.output] = max(
            held[placement.output], logits - (0 if alone else 3 * graph.unit)
        )
    return held


def _routed_on_host(graph: Graph) -> int:
    """Experts alone on the host: their rows, or one and what comes out for each expert."""
    moe = graph.shape.moe
    if moe is None:
        return 0
    rows = 4 * graph.settings.tokens * moe.num_experts_per_tok * moe.width
    return max(3 * rows, rows + moe.num_experts_per_tok * graph.unit) + 2 * graph.unit


def open_bytes(graph: Graph, placement: Placement, device: int) -> tuple[int, int]:
    """What a device may hold less, and more, by where the allocator finds holes.

    Older builds may have to count inputs beside the logits. How copies of the host's caches split
    what is free is not known closer than by one more of them, or by the experts beside; and some
    hybrids attend on the host all the same, by where their layers stand.
    """
    is_first = device == min((d for d in placement.blocks if d != HOST), default=0)
    is_lent = (is_first and graph.settings.lends) or not graph.settings.offload_kqv
    copied = _copied_cache(graph, placement) if is_lent and device != HOST else 0
    experts, shape = _copied_experts(graph, placement), graph.shape
    if not is_lent or not copied + experts:
        return 0, graph.holes()
    if not copied:  # Hybrids hold two of their matrices, or one; where a token has one expert, too.
        twice = shape.moe is not None and shape.moe.num_experts_per_tok == 1
        less = experts if shape.is_hybrid else 0
        return less, max(experts if twice else 0, graph.holes())
    cache = _cache_on_loan(graph, placement)[1]
    more = max((2 if shape.per_layer_embedding else 1) * cache + experts, graph.holes())
    if not shape.is_hybrid:
        return experts // 2, more
    weights = _copied_weights(graph, placement) if HOST in placement.blocks else 0
    attended = max(copied - max(weights, graph.recurrent()), 0)
    return attended + graph.mask(CacheKind.FULL) + graph.unit, more


def _copied_weights(graph: Graph, placement: Placement) -> int:
    """The last projection of a layer whose weights are on the host, copied for a large batch."""
    shape, tokens, unit = graph.shape, graph.settings.tokens, graph.unit
    experts = _copied_experts(graph, placement)
    if shape.moe is None or not experts:
        return _copied_dense(graph)
    per_token = shape.moe.num_experts_per_tok
    routed = 4 * tokens * per_token * shape.moe.width
    if shape.is_hybrid and HOST in placement.blocks:
        return experts + max(graph.experts(), graph.recurrent())
    if shape.is_hybrid:
        return 2 * experts + routed + 4 * unit
    return experts + routed + (per_token + graph.settings.build.layer_units) * unit


def _copied_dense(graph: Graph) -> int:
    shape = graph.shape
    matrix = shape.weights.largest_down_bytes
    if shape.moe is not None:  # The largest are the experts: a dense layer before them has less.
        matrix = matrix * shape.dense_width // (shape.moe.num_experts * shape.moe.width)
    dense = matrix + _DENSE_ROWS * graph.settings.tokens * shape.dense_width + 5 * graph.unit
    scans = shape.ssm is not None and shape.ssm.kind == "mamba2"
    return max(dense, matrix + graph.recurrent()) if scans else dense


def _copied_experts(graph: Graph, placement: Placement) -> int:
    """The largest matrix of experts, if any are on the host: its layers are the first ones."""
    layers = max(placement.cpu_experts, placement.blocks.count(HOST))
    weights = graph.shape.weights
    on_host = weights.blocks.between(0, layers, cuda=False, experts=True)
    return weights.largest_down_bytes if on_host else 0


def _copied_cache(graph: Graph, placement: Placement) -> int:
    """K and V of a layer whose cache is on the host, copied for the GPU's attention.

    A large batch's attention runs where the products around it run: on the GPU. What the copies
    leave free is split by what comes between; rotary factors keep a third copy from fitting into
    it, and experts do not fit where they are larger than two thirds of it.
    """
    kind, cache = _cache_on_loan(graph, placement)
    if not cache or graph.attends_on_host:
        return 0
    shape = graph.shape
    lent = HOST in placement.blocks
    if shape.mla is not None:  # V is a view of K: both are copied.
        beside = _copied_weights(graph, placement) if lent else graph.layers(cuda=True)
        return beside + 2 * cache
    held = cache + (cache // 2 if shape.weights.rope_factors.host and lent else 0)
    attention = graph.attention(kind)
    experts = _copied_experts(graph, placement)
    if experts > max(cache * 2 // 3, attention):
        held += experts
    return held + _LENT_UNITS * graph.unit + attention


def _cache_on_loan(graph: Graph, placement: Placement) -> tuple[CacheKind, int]:
    """The largest cache of a layer on the host, and its kind."""
    shape, settings = graph.shape, graph.settings
    placed = groups(shape, placement, offload_kqv=settings.offload_kqv)
    sizes = [
        (kv_layer(shape, settings, block, cuda=False).size_bytes, block.cache)
        for device, block, _ in placed
        if device == HOST
    ]
    cache, kind = max(sizes, key=itemgetter(0), default=(0, CacheKind.NONE))
    return kind, cache
