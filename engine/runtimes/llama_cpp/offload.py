"""Compute buffers by device: one GPU, several, some layers or experts on the host.

Where the graph is split, the terms beyond the one-device rule were worked out from measured
runs: 4 copies of the inputs under pipeline parallelism (``GGML_SCHED_MAX_COPIES``), and room
for host weights that are copied over for large batches (``--op-offload``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.runtimes.llama_cpp.buffers import kv_layer
from engine.runtimes.llama_cpp.placement import HOST
from engine.runtimes.llama_cpp.weights import CUDA_ALIGNMENT

if TYPE_CHECKING:
    from engine.runtimes.llama_cpp.compute import Graph
    from engine.runtimes.llama_cpp.placement import Placement

_PIPELINE_COPIES = 4
_FIRST_UNITS, _INNER_UNITS, _LOGIT_UNITS = 12, 7, 5
"""Hidden states that a stage of the pipeline holds beyond the one-device rule."""

_LEAST_BORROWED = 32
"""Rows of a product from which on a GPU is lent the host's weights for it."""

_ATTENTION_UNITS = 13
"""Hidden states alive while a copied cache is attended to."""


def compute_buffers(graph: Graph, placement: Placement, *, cuda: bool) -> dict[int, int]:
    """Compute buffer bytes by device index (``HOST`` for the CPU)."""
    held = dict.fromkeys((HOST, *range(placement.devices)), 0)
    if not placement.devices or (placement.on_host_only and not graph.settings.op_offload):
        return held | {HOST: graph.on_host()}
    if placement.on_host_only:
        return held | {HOST: graph.pinned(), 0: _borrowed_output(graph, cuda=cuda)}
    used = sorted({d for d in (*placement.blocks, placement.output) if d != HOST})
    if placement.is_full and graph.settings.offload_kqv:
        if len(used) == 1:
            return held | {HOST: graph.pinned(), used[0]: graph.on_one_gpu(cuda=cuda)}
        if cuda:
            return held | _pipeline(graph, used)
    if placement.is_full and not graph.settings.offload_kqv:
        return held | _cache_on_host(graph, used, cuda=cuda)
    return held | _split(graph, placement, used, cuda=cuda)


def _borrowed_output(graph: Graph, *, cuda: bool) -> int:
    """No layer on the GPU, but large batches borrow it: a layer's matrix, or that of the logits."""
    layers = graph.inputs(CUDA_ALIGNMENT) + graph.cast_masks()
    layers += max(graph.layers(cuda=cuda), _copied_weights(graph))
    if graph.settings.outputs < _LEAST_BORROWED:
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


def _cache_on_host(graph: Graph, used: list[int], *, cuda: bool) -> dict[int, int]:
    """All layers on GPUs, all caches on the host (``--no-kv-offload``)."""
    inputs = graph.device_inputs()
    peak = max(graph.logits(cuda=cuda), inputs + graph.device_layers(cuda=cuda))
    held = peak + graph.per_layer_inputs()
    return {HOST: graph.pinned() + graph.scores(), **dict.fromkeys(used, held)}


def _split(graph: Graph, placement: Placement, used: list[int], *, cuda: bool) -> dict[int, int]:
    settings = graph.settings
    logits = graph.logits(cuda=cuda) if placement.output != HOST else 0
    if not settings.op_offload:
        host = graph.token_ids() + graph.inputs() + graph.layers(cuda=False) + graph.unit
        held = {HOST: host}
        for device in used:
            held[device] = graph.device_layers(cuda=cuda)
        if logits:
            held[placement.output] = max(held[placement.output], logits - 3 * graph.unit)
        return held
    held = {HOST: graph.pinned() + graph.scores()}
    inputs = graph.device_inputs()
    for device in used:
        held[device] = inputs + graph.device_layers(cuda=cuda)
    first = used[0]
    copied = max(_copied_weights(graph), _copied_cache(graph, placement))
    held[first] = max(held[first], inputs - graph.cast_masks() + copied)
    if logits:
        alone = len(used) == 1
        held[placement.output] = max(
            held[placement.output], logits - (0 if alone else 3 * graph.unit)
        )
    return held


def _copied_weights(graph: Graph) -> int:
    """The last projection of a layer whose weights are on the host, copied for a large batch."""
    shape, tokens, unit = graph.shape, graph.settings.tokens, graph.unit
    weights = shape.weights.largest_down_bytes
    if shape.moe is None:
        return weights + 4 * tokens * shape.dense_width + 5 * unit
    per_token = shape.moe.num_experts_per_tok
    routed = 4 * tokens * per_token * shape.moe.width
    if shape.is_hybrid:
        return 2 * weights + routed + 4 * unit
    return weights + routed + (per_token + graph.settings.build.layer_units) * unit


def _copied_cache(graph: Graph, placement: Placement) -> int:
    """K and V of a layer whose cache is on the host, copied for the GPU's attention."""
    shape = graph.shape
    if shape.is_hybrid or shape.mla is not None or graph.attends_on_host:
        return 0
    on_host = {b for b, d in zip(shape.blocks, placement.blocks, strict=True) if d == HOST}
    largest = max(
        (kv_layer(shape, graph.settings, b, cuda=False).size_bytes for b in on_host), default=0
    )
    return largest + _ATTENTION_UNITS * graph.unit if largest else 0
