"""What vLLM takes beside weights and pool: activations, CUDA graphs, buffers outside PyTorch."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from engine.architecture.spec import AttentionKind, ModuleClass
from engine.budget.sequence_state import CACHED, layer_kinds
from engine.evidence import Basis, Estimate, exactly, total
from engine.runtimes.vllm import rules
from engine.units import GIB, MIB, ceil_div

if TYPE_CHECKING:
    from engine.architecture.spec import ArchitectureSpec, LayerSpec
    from engine.devices.device import Device
    from engine.runtimes.vllm.rules import Span, Version

_PENALTIES = "vLLM 0.33 v1/worker/gpu/sample/penalties.py"
_VISION = {"gemma3": (160, 200, 300)}
_VISION_OTHER = (50, 200, 2100)
_PACKED_EXPERTS_IN_PLACE = frozenset({"mxfp4"})
"""Formats whose expert kernels keep no workspace of their own (gpt-oss on H100)."""


@dataclass(frozen=True, slots=True)
class Step:
    """The largest step of one rank, and how the model is split."""

    version: Version
    tokens: int
    rows: int
    element_bytes: int
    """Of an activation."""
    tensor_parallel_size: int
    weight_format: str
    first_stage: bool
    last_stage: bool
    passes_on: bool
    """Whether hidden states go to another stage."""


@lru_cache(maxsize=CACHED)
def activations(spec: ArchitectureSpec, step: Step) -> Estimate:
    """Peak of the profile run on one rank: forward pass or sampler, whichever is larger."""
    law = rules.ACTIVATIONS.at(step.version)
    hidden = step.tokens * spec.hidden_size * step.element_bytes
    forward = _forward_width(spec, step.tensor_parallel_size)
    forward_bytes = step.tokens * step.element_bytes * forward
    forward_bytes += round(law.forward_hidden * hidden)
    if step.passes_on:
        forward_bytes += 2 * hidden + law.constant_bytes
    sampler = law_low = law_high = 0
    if step.last_stage:
        rest = round(law.hidden * hidden) + law.constant_bytes
        extra = step.element_bytes - 2
        cells = step.rows * spec.vocab_size
        sampler = round((law.logit_bytes + extra) * cells) + rest
        law_low = round((law.logit_bytes_low + extra) * cells) + rest
        law_high = round((law.logit_bytes_high + extra) * cells) + rest
    likely = max(forward_bytes, sampler)
    spread = likely // 20
    peak = Estimate(
        max(max(forward_bytes, law_low) - spread, 0),
        likely,
        max(forward_bytes, law_high) + spread,
        Basis.FITTED,
        law.source,
        _formula(spec, step, law, forward_bytes, sampler),
        "peak of forward pass and sampler",
    )
    parts = [peak, *_expert_workspace(spec, step), *_vision(spec, step)]
    formula = " + ".join(f"{p.label}: {p.formula}" if p is not peak else p.formula for p in parts)
    return total(parts, formula=formula)


def _formula(
    spec: ArchitectureSpec, step: Step, law: rules.ActivationLaw, forward: int, sampler: int
) -> str:
    if sampler >= forward:
        return (
            f"sampler: {law.logit_bytes + step.element_bytes - 2:g} B × {step.rows:,} rows × "
            f"{spec.vocab_size:,} + {law.hidden} × {step.tokens:,} × {spec.hidden_size:,} × "
            f"{step.element_bytes} B + {law.constant_bytes // MIB} MiB"
        )
    width = _forward_width(spec, step.tensor_parallel_size)
    return (
        f"forward pass: {step.tokens:,} tokens × ({width:,} + {law.forward_hidden:g} × "
        f"{spec.hidden_size:,}) × {step.element_bytes} B"
    )


@lru_cache(maxsize=CACHED)
def _forward_width(spec: ArchitectureSpec, tp: int) -> int:
    """Elements per token at the widest point of a layer."""
    return max(
        (_layer_width(spec.hidden_size, layer, tp) for layer, _ in layer_kinds(spec)),
        default=3 * spec.hidden_size,
    )


def _layer_width(hidden: int, layer: LayerSpec, tp: int) -> int:
    shared = layer.moe.shared_intermediate_size if layer.moe else 0
    dense = (3 if layer.gated_mlp else 2) * ceil_div(max(layer.intermediate_size, shared), tp)
    attention = layer.attention
    if attention is None:
        return 3 * hidden + dense
    heads = ceil_div(attention.num_attention_heads, tp)
    if attention.kind is AttentionKind.LATENT:
        latent = attention.kv_lora_rank + attention.qk_rope_head_dim
        widths = 2 * attention.head_dim + attention.v_head_dim
        return 3 * hidden + max(dense, attention.q_lora_rank + latent + heads * widths)
    query = heads * attention.head_dim
    pair = max(1, attention.num_key_value_heads // tp) * (attention.head_dim + attention.v_head_dim)
    return 3 * hidden + max(dense, 3 * query + 2 * pair)


def _expert_workspace(spec: ArchitectureSpec, step: Step) -> list[Estimate]:
    """The two buffers that fused expert kernels keep from one layer to the next."""
    moe = next((layer.moe for layer, _ in layer_kinds(spec) if layer.moe), None)
    if moe is None:
        return []
    if step.weight_format in _PACKED_EXPERTS_IN_PLACE:
        return []
    width = ceil_div(moe.moe_intermediate_size, step.tensor_parallel_size)
    columns = max(width, spec.hidden_size) + max(2 * width, spec.hidden_size)
    size = step.tokens * moe.num_experts_per_tok * columns * step.element_bytes
    plain = step.weight_format in ("bf16", "fp16")
    formula = (
        f"{step.tokens:,} tokens × {moe.num_experts_per_tok} experts × {columns:,} × "
        f"{step.element_bytes} B"
    )
    source = "vLLM fused_moe; +0.50, +0.43 and +0.29 GiB read on three MoE models"
    low = size * 19 // 20 if plain else 0
    return [Estimate(low, size, size * 21 // 20, Basis.FITTED, source, formula, "expert workspace")]


def _vision(spec: ArchitectureSpec, step: Step) -> list[Estimate]:
    has_tower = any(t.module in (ModuleClass.VISION, ModuleClass.AUDIO) for t in spec.outer)
    if not (has_tower and step.first_stage):
        return []
    family = next((f for f in _VISION if spec.model_type.startswith(f)), "")
    low, likely, high = (size * MIB for size in _VISION.get(family, _VISION_OTHER))
    source = "Gemma 3 holds 0.18 to 0.26 GiB more, Qwen2.5-VL 2 GiB more than text alone"
    basis = Basis.FITTED if family else Basis.ASSUMED
    formula = f"{likely // MIB} MiB"
    return [Estimate(low, likely, high, basis, source, formula, "vision or audio encoder")]


@lru_cache(maxsize=CACHED)
def _has_experts(spec: ArchitectureSpec) -> bool:
    return any(layer.moe for layer, _ in layer_kinds(spec))


@lru_cache(maxsize=CACHED)
def cuda_graphs(
    spec: ArchitectureSpec, layers: int, sizes: int, tp: int, version: Version
) -> Estimate:
    """Graphs of ``sizes`` batch sizes over ``layers`` layers of one stage."""
    law = rules.GRAPHS.at(version)
    terms = {
        f"{law.constant}": law.constant,
        f"{law.layer} × {layers} layers": law.layer * layers,
        f"{law.width} × {layers} layers × {spec.hidden_size:,} / 4,096": (
            law.width * layers * spec.hidden_size / 4096
        ),
        f"{law.experts} for experts": law.experts if _has_experts(spec) else 0.0,
        f"{law.parallel} for parallel ranks": law.parallel if tp > 1 else 0.0,
    }
    gib = sum(terms.values())
    formula = "(" + " + ".join(text for text, value in terms.items() if value)
    likely = gib * sizes / 51 * GIB
    return Estimate(
        round(likely * law.low),
        round(likely),
        round(likely * law.high),
        Basis.FITTED,
        law.source,
        f"{formula}) GiB × {sizes} / 51 sizes",
    )


def not_decoding(graphs: Estimate) -> Estimate:
    """The same for a model that keeps no cache: fewer graphs or none, but nobody has measured."""
    source = "no start of an encoder is on record: at most as much as a decoder's"
    return Estimate(0, graphs.likely_bytes, graphs.high_bytes, Basis.ASSUMED, source)


def inside(device: Device, version: Version, tp: int, pp: int) -> Estimate:
    """Growth outside PyTorch that vLLM charges to its budget."""
    return _inside(version, tp, pp, _is_large(device))


def _is_large(device: Device) -> bool:
    """Hopper and data-centre Blackwell; without a name, the size tells."""
    capability = device.compute_capability
    return 9 <= capability < 12 or (not capability and device.total_bytes >= 70 * GIB)


@lru_cache(maxsize=256)
def _inside(version: Version, tp: int, pp: int, large: bool) -> Estimate:  # noqa: FBT001 - cache key
    if tp > 1:
        span = rules.INSIDE_TENSOR_PARALLEL.at(version)
        if not large:
            span = rules.Span(120 * MIB, 360 * MIB, span.high)
    elif pp > 1:
        span = rules.INSIDE_PIPELINE
    else:
        span = rules.INSIDE_SINGLE.at(version)
    source = "“non-torch memory” of logged starts, by version"
    return _spanned(span, source, "workspaces" if tp * pp == 1 else "collectives, workspaces")


def collectives(device: Device, ranks: int) -> tuple[Estimate, ...]:
    """NCCL's own context, taken before the budget starts; nothing for a single rank."""
    return () if ranks == 1 else (_collectives(_is_large(device)),)


@lru_cache(maxsize=2)
def _collectives(large: bool) -> Estimate:  # noqa: FBT001 - cache key
    span = rules.COLLECTIVES_LARGE if large else rules.COLLECTIVES
    return _spanned(span, "free memory at the start of 2 and 4 ranks", "NCCL")


def libraries(room_bytes: int) -> Estimate:
    """Library handles and the first request's workspaces, as far as there is room for them."""
    span = rules.LIBRARIES
    likely = min(span.likely, room_bytes)
    source = "whole-card readings beyond vLLM's own terms"
    formula = f"{likely // MIB} MiB"
    return Estimate(0, likely, span.high, Basis.ASSUMED, source, formula, "libraries")


@lru_cache(maxsize=CACHED)
def sampler_buffers(vocab_size: int, rows: int, tables: int) -> Estimate:
    """Penalty counters, prompt masks and block tables of model runner 2.

    Args:
        vocab_size: entries of the vocabulary.
        rows: ``max_num_seqs``.
        tables: block-table entries of one sequence, all groups.
    """
    counters, masks = rows * vocab_size * 4, rows * ceil_div(vocab_size, 32) * 4
    size = counters + masks + rows * tables * 4
    formula = (
        f"{rows:,} rows × (4 × {vocab_size:,} + 4 × {ceil_div(vocab_size, 32):,} "
        f"+ 4 × {tables:,}) B"
    )
    return exactly(size, Basis.EXACT, _PENALTIES, formula, "sampler buffers")


def slack(room_bytes: int) -> Estimate:
    """What the caching allocator holds without using it, as far as there is room for it."""
    likely = min(rules.SLACK.likely, room_bytes)
    source = "whole-card readings beyond context and libraries: 350 to 1,000 MiB in all"
    return Estimate(0, likely, rules.SLACK.high, Basis.ASSUMED, source, f"{likely // MIB} MiB")


@cache
def nothing(reason: str) -> Estimate:
    """Exactly nothing, for a stated reason."""
    return exactly(0, Basis.EXACT, reason)


def _spanned(span: Span, source: str, label: str) -> Estimate:
    return Estimate(
        span.low, span.likely, span.high, Basis.FITTED, source, f"{span.likely // MIB} MiB", label
    )
