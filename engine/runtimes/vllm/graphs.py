"""CUDA graphs of one rank: how many vLLM captures, and what they take.

Every captured size costs the driver's nodes of each layer; all sizes share one pool, as large as
the largest of them needs: its activations, and on Hopper what FlashAttention 3 sums up in parts.

Source:
    vLLM ``config/vllm.py :: _set_cudagraph_sizes`` (0.8 to 0.33) and ``profile_cudagraph_memory``
    (0.20, 0.33). The shares per layer and of the pool are fitted to 27 dense starts of 0.19 on H100
    (llm-d-planner, accuracy report), which they meet within 12 %; others are named at their law.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from engine.architecture.spec import AttentionKind
from engine.budget.sequence_state import CACHED, layer_kinds
from engine.evidence import Basis, Estimate, exactly
from engine.runtimes.overheads import has_fast_links
from engine.runtimes.vllm.rules import Since
from engine.runtimes.vllm.runner import Runner
from engine.units import GIB, MIB, ceil_div
from engine.words import figures, tr, tr_later

if TYPE_CHECKING:
    from engine.architecture.spec import ArchitectureSpec
    from engine.devices.device import Device
    from engine.runtimes.vllm.activations import Step
    from engine.runtimes.vllm.rules import Version


class Captures(NamedTuple):
    """Sizes of batches for which graphs are captured."""

    pieces: int
    """Sizes captured piece by piece between attentions."""
    whole: int
    """Sizes captured whole: batches that only decode."""
    largest: int
    """Tokens of the largest."""
    largest_whole: int

    @property
    def graphs(self) -> int:
        """Sizes, each counted once for every way it is captured in."""
        return self.pieces + self.whole


class _Law(NamedTuple):
    constant: float
    """GiB at 102 graphs."""
    layer: float
    """MiB of one size in one layer."""
    parallel: float
    """The same in addition where layers are split."""
    pool: float
    """Times the pool of the largest size."""
    experts: float
    """GiB at 102 graphs where there are experts."""
    states: float
    """Times for layers with states."""
    low: float
    high: float
    source: str
    experts_low: float = 0.6
    """Of the experts' part, the least: +0.36, +0.52 and +0.92 GiB in three starts of 0.19."""


_LAWS = Since[_Law](
    ((0,), _Law(0.3, 0.6, 0.4, 1.15, 0.6, 1.0, 0.3, 2.0, tr_later("captured: one start of 0.5"))),
    ((0, 6), _Law(0.15, 0.15, 0.02, 1.15, 0.6, 1.0, 0.5, 2, tr_later(
"captured: seven starts of "
"0.6, 0.7"
))),
    (
        (0, 8),
        _Law(0.1, 0.15, 0.02, 1.15, 0.6, 1.0, 0.25, 3.0, tr_later(
"captured: eight starts of "
"0.8 to 0.10"
)),
    ),
    (
        (0, 11),
        _Law(
            0.1, 0.138, 0.021, 1.146, 0.6, 1.0, 0.0, 1.6,
            tr_later(
"captured: ten starts of 0.11 to 0.16, of which five read less "
"than nothing: what the profile run left in PyTorch's hands is "
"given back meanwhile"
), 0.0,
        ),
    ),
    (
        (0, 17),
        _Law(0.1, 0.138, 0.021, 1.146, 0.6, 1.0, 0.77, 1.18, tr_later(
"captured: 41 starts of 0.19 "
"on H100"
)),
    ),
    (
        (0, 20),
        _Law(
            0.05, 0.132, 0.042, 1.2, 0.4, 1.5, 0.4, 1.5,
            tr_later("estimated by vLLM itself: 41 starts of 0.19, seven since"),
        ),
    ),
)  # fmt: skip
"""Until 0.19 what was captured; since 0.20 vLLM's own estimate, which it takes out of the budget
before the pool. What is captured then is 0.3 to 1.0 of it."""
_EXPERTS_HIGH = 1.6
"""The most of the experts' part."""
_WIDER = (0.35, 1.5)
"""Ranges for models with experts or states, and under model runner 2: few have been read."""
_SPREAD = 3.0
"""Most times with experts spread over ranks, whose exchange is captured too: vLLM estimated
4.99 GiB for a large one under TP 4, of which 4.13 were captured."""
_LORA, _ADAPTERS_TWICE = 2.3, (0, 11)
"""Times for layers with adapters (seven notebooks of 0.7 to 0.11); since 0.11 sizes are captured
with and without them."""
_ONLY_PIECES = 2.2
"""Times for runner V1 before it captured whole batches, whatever its weights are: 0.38 to
2.24 GiB in four starts of 0.8 to 0.10."""
_UNPACKED_BY_KERNELS = ("nf4", "int8")
_UNPACKED = 2.5
"""Times for bitsandbytes (four notebooks of 0.7 and 0.8)."""
_SPLITS = 32
"""Parts in which FlashAttention 3 sums while it is captured, 4 bytes each."""
_WHOLE_SINCE, _FITTED_GRAPHS = (0, 11), 102

_ALL_BY_EIGHT = Since[bool](((0,), True), ((0, 11, 1), False))
"""Whether sizes go up in steps of 8 all the way (later: of 16 from 256 on)."""
_TWICE_THE_ROWS = Since[bool](((0,), False), ((0, 10, 1), True))
"""Whether the largest size is at most twice ``max_num_seqs``; before, 512 whatever the rows."""
_PER_DRAFT = Since[bool](((0,), False), ((0, 13), True))
_LARGER_ON_BLACKWELL = (0, 33)


def captures(step: Step) -> Captures:
    """The sizes that are captured for ``step``."""
    if not step.captures_graphs:
        return Captures(0, 0, 0, 0)
    version, rows = step.version, step.rows or 1
    per_request = 1 + step.drafts if _PER_DRAFT.at(version) else 1
    if step.runner is Runner.V0:
        most = rows if version >= (0, 6) else min(rows, 256)
        largest = most if most <= 4 else ceil_div(most, 8) * 8
        count = _count(largest, version)
        return Captures(0, count, largest, largest)
    most = 1024 if version >= _LARGER_ON_BLACKWELL and int(step.capability) == 10 else 512
    if _TWICE_THE_ROWS.at(version):
        most = min(2 * rows * per_request, most)
    largest = max(min(most, step.tokens), 1)
    if version < _WHOLE_SINCE:
        return Captures(_count(largest, version), 0, largest, 0)
    whole = min(rows * per_request, largest)
    pieces = _count(largest, version)
    if any(layer.cross for layer, _ in layer_kinds(step.spec)):
        # An encoder-decoder is captured where it decodes only.
        pieces, largest = 0, whole
    return Captures(pieces, _count(whole, version), largest, whole)


def _count(largest: int, version: Version) -> int:
    """1, 2, 4, then steps of 8, and of 16 from 256 on."""
    small = sum(1 for size in (1, 2, 4) if size <= largest)
    if _ALL_BY_EIGHT.at(version):
        return small + largest // 8
    sixteens = max(0, (largest - 256) // 16 + 1) if largest >= 256 else 0
    return small + min(largest, 248) // 8 + sixteens


def memory(step: Step, sizes: Captures, device: Device) -> Estimate:
    """Graphs of ``sizes`` over the layers of the stage."""
    if not sizes.graphs:
        return exactly(0, Basis.EXACT, tr("enforce_eager captures no graphs"))
    law = _LAWS.at(step.version)
    spec, tp = step.spec, step.tensor_parallel_size
    graphs = sizes.graphs * (2 if step.adapters and step.version >= _ADAPTERS_TWICE else 1)
    each = (law.layer + (law.parallel if tp > 1 else 0)) * _times(step, sizes)
    kinds = layer_kinds(spec, step.layers.start, step.layers.stop)
    weight = sum(count * (law.states if layer.state else 1.0) for layer, count in kinds)
    if step.last_stage:
        weight += step.draft_layers
    nodes = each * weight * graphs * MIB
    pool = law.pool * _pool_bytes(step, sizes, device)
    constant = law.constant * GIB * graphs / _FITTED_GRAPHS
    firm = constant + nodes + pool
    experts = 0.0
    if any(layer.moe for layer, _ in kinds):
        experts = law.experts * GIB * graphs / _FITTED_GRAPHS
    formula = tr(
        "{constant} GiB + {each} MiB × {weight} layers × "
        "{graphs} sizes + {pool} MiB for the largest"
    ).format(
        constant=figures(format(constant / GIB, ".2f")),
        each=figures(format(each, ".3g")),
        weight=figures(format(weight, ",.0f")),
        graphs=graphs,
        pool=figures(format(pool / MIB, ",.0f")),
    )
    if experts:
        formula += tr(" + {experts} GiB for experts").format(
            experts=figures(format(experts / GIB, ".2f"))
        )
    lowest, highest = law.low, law.high
    if experts or step.runner is Runner.V2 or any(layer.state for layer, _ in kinds):
        lowest, highest = min(lowest, _WIDER[0]), max(highest, _WIDER[1])
    if experts and step.expert_parallel:
        highest = max(highest, _SPREAD)
    low, likely = round(lowest * firm + law.experts_low * experts), round(firm + experts)
    high = round(highest * firm + _EXPERTS_HIGH * experts)
    basis, source = Basis.FITTED, tr(law.source)
    if not step.keeps_cache:
        low, basis = 0, Basis.ASSUMED
        source = tr("no start of an encoder is on record: at most as much as a decoder's")
    return Estimate(low, likely, high, basis, source, formula)


def _times(step: Step, sizes: Captures) -> float:
    """How many times as much as of plain layers a size takes."""
    if step.version < _WHOLE_SINCE and not sizes.whole:
        return _ONLY_PIECES
    times = _LORA if step.adapters else 1.0
    return times * (_UNPACKED if step.weight_format in _UNPACKED_BY_KERNELS else 1.0)


def _pool_bytes(step: Step, sizes: Captures, device: Device) -> int:
    spec, tp = step.spec, step.tensor_parallel_size
    width = max(
        ((3 if la.gated_mlp else 2) * la.intermediate_size for la, _ in layer_kinds(spec)),
        default=0,
    )
    activations = sizes.largest * step.element_bytes
    activations *= 3 * spec.hidden_size + ceil_div(width, tp)
    sums_in_parts = sizes.largest_whole and has_fast_links(device)
    if not sums_in_parts or int(device.compute_capability or 9) != 9:
        return activations
    heads = max(_sum_width(spec, tp), 0)
    return activations + _SPLITS * sizes.largest_whole * heads * 4


@lru_cache(maxsize=CACHED)
def _sum_width(spec: ArchitectureSpec, tp: int) -> int:
    """Elements per token that attention sums up, at the widest layer."""
    return max(
        (
            ceil_div(layer.attention.num_attention_heads, tp) * layer.attention.v_head_dim
            for layer, _ in layer_kinds(spec)
            if layer.attention is not None and layer.attention.kind is not AttentionKind.LATENT
        ),
        default=0,
    )
