"""What lies outside SGLang's static share: activations, CUDA graphs, tables, the process itself."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from engine.architecture.spec import AttentionKind
from engine.budget.sequence_state import CACHED, layer_kinds
from engine.devices.device import Vendor
from engine.evidence import Basis, Estimate, total
from engine.runtimes import overheads
from engine.units import MIB, ceil_div
from engine.words import grouped, tr, tr_later

if TYPE_CHECKING:
    from engine.architecture.spec import ArchitectureSpec, LayerSpec
    from engine.devices.device import Device

_CLOSED_FORM = tr_later(
    "closed form: 3 hidden states and the widest point of a layer, as "
    "measured of vLLM; no start of SGLang states its own"
)
_EXTRA_COLUMNS = 4
"""Of a request's row beside the context (``allocation_sizing.py``)."""
_START = tr_later("free memory before loading: 0.4 to 0.7 GiB less than the device's on one rank")


@dataclass(frozen=True, slots=True)
class Step:
    """The largest steps of one rank, and how the model is split."""

    tokens: int
    """Of a prefill step."""
    rows: int
    """Of logits."""
    element_bytes: int
    tensor_parallel_size: int
    attention_tp: int
    has_tower: bool


@lru_cache(maxsize=CACHED)
def activations(spec: ArchitectureSpec, step: Step) -> Estimate:
    """Peak of the largest prefill step on one rank, or of sampling."""
    width = max((_width(spec.hidden_size, la, step) for la, _ in layer_kinds(spec)), default=0)
    width += 3 * spec.hidden_size
    forward = step.tokens * width * step.element_bytes
    sampling = step.rows * spec.vocab_size * (step.element_bytes + 4)
    likely = max(forward, sampling)
    formula = tr("{tokens} tokens × {width} × {element_bytes} B").format(
        tokens=grouped(step.tokens), width=grouped(width), element_bytes=step.element_bytes
    )
    if sampling > forward:
        formula = tr("{rows} rows × {vocab_size} × {element_bytes} B").format(
            rows=grouped(step.rows),
            vocab_size=grouped(spec.vocab_size),
            element_bytes=step.element_bytes + 4,
        )
    parts = [
        Estimate(
            likely * 3 // 5, likely, likely * 3 // 2, Basis.ASSUMED, tr(_CLOSED_FORM), formula,
            tr("largest step"),
        )
    ]  # fmt: skip
    if step.has_tower:
        source = tr("vision towers of vLLM: 0.2 to 2 GiB")
        low, likely, high = (size * MIB for size in (50, 200, 2100))
        parts.append(Estimate(low, likely, high, Basis.ASSUMED, source, "200 MiB", tr("encoder")))
    return total(parts, formula=formula)


def _width(hidden: int, layer: LayerSpec, step: Step) -> int:
    """Elements of a token at the widest point of a layer, beside three hidden states."""
    tp = step.tensor_parallel_size
    moe = layer.moe
    shared = moe.shared_intermediate_size if moe else 0
    widest = (3 if layer.gated_mlp else 2) * ceil_div(max(layer.intermediate_size, shared), tp)
    if moe is not None:
        columns = ceil_div(moe.moe_intermediate_size, tp)
        each = max(columns, hidden) + max(2 * columns, hidden)
        widest = max(widest, moe.num_experts_per_tok * each)
    a = layer.attention
    if a is None:
        return widest
    heads = ceil_div(a.num_attention_heads, step.attention_tp)
    if a.kind is AttentionKind.LATENT:
        latent = a.q_lora_rank + a.kv_lora_rank + a.qk_rope_head_dim
        return max(widest, latent + heads * (2 * a.head_dim + a.v_head_dim))
    pairs = max(1, a.num_key_value_heads // step.attention_tp) * (a.head_dim + a.v_head_dim)
    return max(widest, 3 * heads * a.head_dim + 2 * pairs)


@lru_cache(maxsize=CACHED)
def decoding(spec: ArchitectureSpec, step: Step) -> Estimate:
    """Activations while every request gets its next token: logits, and a row through a layer."""
    width = max((_width(spec.hidden_size, la, step) for la, _ in layer_kinds(spec)), default=0)
    each = (width + 3 * spec.hidden_size) * step.element_bytes
    likely = step.rows * max(each, spec.vocab_size * (step.element_bytes + 4))
    formula = tr("{rows} rows").format(rows=grouped(step.rows))
    return Estimate(
        likely // 2,
        likely,
        likely * 3 // 2,
        Basis.ASSUMED,
        tr(_CLOSED_FORM),
        formula,
        tr("one step"),
    )


def request_tables(requests: int, context: int, drafts: int) -> Estimate:
    """Where each request's tokens lie: a row of 32-bit indices for every one that may run.

    4.0 of the 4.1 GiB that Kimi-K2.5's pool takes beyond its cache at 262,144 tokens, 1.0 of 1.05
    to 1.25 GiB at 131,072.
    """
    columns = context + _EXTRA_COLUMNS + drafts
    size = (requests + 1) * columns * 4
    formula = tr("({requests} + 1) requests × {columns} × 4 B").format(
        requests=grouped(requests), columns=grouped(columns)
    )
    source = tr("SGLang memory_pool.py :: ReqToTokenPool; rest of the pool step in eight starts")
    low, high = size, size + 260 * MIB
    return Estimate(low, size + 60 * MIB, high, Basis.FITTED, source, formula, tr("request tables"))


def before_loading(device: Device, ranks: int) -> list[Estimate]:
    """What the process holds when SGLang first asks how much is free."""
    started = Estimate(0, 130 * MIB, 350 * MIB, Basis.FITTED, tr(_START), "130 MiB", tr("start"))
    parts = [overheads.torch_process(device), started]
    if device.vendor is not Vendor.NVIDIA:
        parts = parts[:1]
    if ranks > 1:
        parts.append(_collectives(device, ranks))
    return parts


def _collectives(device: Device, ranks: int) -> Estimate:
    """NCCL or RCCL, as far as it is set up before anything is loaded."""
    if device.vendor is Vendor.AMD:
        return _read("RCCL", (1000, 3600, 4900), tr("3.6 GiB less free on each of eight MI355X"))
    if not overheads.has_fast_links(device):
        source = tr("as much free before loading on four cards without NVLink as on one")
        return _read("NCCL", (0, 60, 500), source)
    if ranks >= 8:
        return _read(
            "NCCL", (1000, 1500, 2100), tr("1.2 GiB on eight H100, 1.8 to 2.0 on eight H200")
        )
    source = tr("0.9 to 1.5 GiB less free on two and four H100 than on one (vLLM)")
    return _read("NCCL", (700, 1100, 1700), source)


def _read(label: str, sizes_mib: tuple[int, int, int], source: str) -> Estimate:
    low, likely, high = (size * MIB for size in sizes_mib)
    return Estimate(low, likely, high, Basis.FITTED, source, f"{grouped(sizes_mib[1])} MiB", label)


def slack() -> Estimate:
    """What the caching allocator holds without using it."""
    source = tr("2 % of weights and activations, 100 MiB or more; not measured")
    return Estimate(0, 128 * MIB, 620 * MIB, Basis.ASSUMED, source, "128 MiB")
