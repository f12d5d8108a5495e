"""What SGLang holds for a moment: while it loads, and with the first requests.

Source:
    SGLang 0.5.23 ``model_loader/loader.py :: load_weights_and_postprocess`` (every weight is read
    before the first is laid out anew), ``layers/quantization/fp8.py``,
    ``compressed_tensors_wNa16_moe.py``, ``gptq.py``, ``awq.py``.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from engine.budget.sequence_state import CACHED, attention_kinds, layer_kinds
from engine.devices.device import Vendor
from engine.evidence import Basis, Estimate
from engine.formats.weights import FORMATS
from engine.runtimes.loading import stored_format
from engine.runtimes.sglang import buffers
from engine.runtimes.sglang.allocator import held_apart
from engine.runtimes.sglang.loading import cut_of
from engine.words import grouped, tr

if TYPE_CHECKING:
    from engine.architecture.model import Model
    from engine.architecture.spec import ArchitectureSpec
    from engine.runtimes.sglang.loading import Split

_ONLINE = ("fp8", "mxfp8")
"""Formats to which a checkpoint in 16 bits is quantised once all of it is on the device."""
_LAID_OUT_ANEW = ("gptq", "awq", "w4a16", "mxfp4", "nvfp4")
_PLAIN = ("bf16", "fp16", "fp32")


@lru_cache(maxsize=CACHED)
def while_loading(
    model: Model, layers: range, split: Split, weight_format: str
) -> tuple[Estimate, ...]:
    """Beside the weights of one rank, at the worst moment of loading them.

    Args:
        model: the model.
        layers: of the rank's stage.
        split: how the weights are cut.
        weight_format: in which they end up, ``auto`` resolved.
    """
    if weight_format not in FORMATS:
        return ()
    parts = (
        _in_16_bits(model, layers, split, weight_format),
        _laid_out(model.spec, layers, split, weight_format),
        _indices_let_go(model.spec, layers, split, weight_format),
    )
    return tuple(part for part in parts if part is not None and part.high_bytes)


def _in_16_bits(model: Model, layers: range, split: Split, name: str) -> Estimate | None:
    """The whole of a model that is quantised here, less what is left of it then."""
    if not name.startswith(_ONLINE) or stored_format(model) not in _PLAIN:
        return None
    spec, cut = model.spec, cut_of(model.spec, split)
    plain, packed = (list(held_apart(spec, layers, cut, one)) for one in ("bf16", name))
    size = sum(plain) - sum(packed) + max(packed, default=0)
    has_experts = any(layer.moe is not None for layer, _ in layer_kinds(spec))
    source = "SGLang fp8.py: create_weights in the model's dtype, quantised after the last is read"
    formula = tr("{sum} − {sum_2} B, and one matrix").format(
        sum=grouped(sum(plain)), sum_2=grouped(sum(packed))
    )
    return Estimate(
        0 if has_experts else size, size, size + max(plain, default=0), Basis.ASSUMED, source,
        formula, tr("weights in 16 bits"),
    )  # fmt: skip


def _laid_out(spec: ArchitectureSpec, layers: range, split: Split, name: str) -> Estimate | None:
    """The new form of a layer's largest matrix, or of its experts, while the old one is there."""
    if not name.startswith(_LAID_OUT_ANEW):
        return None
    size = max(held_apart(spec, layers, cut_of(spec, split), name), default=0)
    source = "SGLang marlin_utils.py and its like: process_weights_after_loading"
    return Estimate(
        0, size, 2 * size, Basis.ASSUMED, source, f"{grouped(size)} B", tr("a matrix laid out anew")
    )


def _indices_let_go(
    spec: ArchitectureSpec, layers: range, split: Split, name: str
) -> Estimate | None:
    """Tables of packed experts' columns, which Marlin's kernels drop and ROCm's keep."""
    size = buffers.index_bytes(spec, layers, split)
    if split.vendor is not Vendor.NVIDIA or not name.startswith("w4a16") or not size:
        return None
    source = "SGLang compressed_tensors_wNa16_moe.py: g_idx and g_idx_sort_indices"
    return Estimate(size, size, size, Basis.EXACT, source, "", tr("group indices"))


def index_logits(spec: ArchitectureSpec, tokens: int, context: int, live: int) -> Estimate | None:
    """Scores by which a sparse indexer selects: one for every new token and every token kept.

    GLM-5 on eight H200 asked for 9.89 GiB with some fifty requests of 10,000 tokens.
    """
    if not any(a.index_head_dim for a in attention_kinds(spec)):
        return None
    likely, high = tokens * context * 4, tokens * max(live, context) * 4
    source = tr("one out-of-memory message of GLM-5; other kernels cut the work up")
    formula = tr("{tokens} × {context} tokens × 4 B").format(
        tokens=grouped(tokens), context=grouped(context)
    )
    return Estimate(0, likely, high, Basis.ASSUMED, source, formula, tr("scores of the index"))
