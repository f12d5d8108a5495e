"""Work areas that layers share: of fused expert kernels, and of indexers that select tokens.

Since 0.13 one area, as large as the largest wants it, stays from one layer to the next.

Source:
    vLLM ``fused_moe/*.py :: workspace_shapes``, ``sparse_attn_indexer.py`` and
    ``v1/worker/workspace.py`` (0.12, 0.19, 0.33). +0.50, +0.43 and +0.29 GiB were read on three
    models with experts under 0.19, +0.65 GiB on a fourth.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.budget.sequence_state import layer_kinds
from engine.devices.device import Vendor
from engine.evidence import Basis, Estimate
from engine.formats.kv import indexer_bytes
from engine.runtimes.vllm.rules import Since
from engine.units import MIB, align_up, ceil_div
from engine.words import grouped, tr, tr_later

if TYPE_CHECKING:
    from engine.architecture.spec import MoeSpec
    from engine.devices.device import Device
    from engine.runtimes.vllm.activations import Step

_KEPT_SINCE = (0, 13)
_CHUNK = Since[int](((0,), 32_768), ((0, 12), 16_384), ((0, 17), 1 << 30))
"""Tokens that a kernel takes at once (``VLLM_FUSED_MOE_CHUNK_SIZE``)."""
_PLAIN = ("bf16", "fp16")
_OWN_SCRATCH = ("mxfp4",)
"""Formats whose kernels on Hopper and later keep no buffer here (gpt-oss on H100)."""
_WITHIN_FLASHINFER = ("fp8", "nvfp4", "mxfp8")
"""Formats that FlashInfer's kernels for data-centre Blackwell hold in a workspace of their own."""
_ROW_TILE = 128
_SOURCE = tr_later("vLLM fused_moe workspace_shapes; four models of 0.19 within 0.02 GiB")
_INDEXED_CONTEXTS, _INDEXED_SINCE = 40, (0, 19)
"""Longest contexts whose keys an indexer gathers at once ("a magic number", ``mla/indexer.py``)."""
_INDEX_LOGITS = 512 * MIB
"""``VLLM_SPARSE_INDEXER_MAX_LOGITS_MB``, tried in the profile run since 0.19."""


def kept(step: Step, device: Device) -> list[Estimate]:
    """The area that stays allocated beside whatever peaks."""
    if step.version < _KEPT_SINCE:
        return []
    areas = [area for area in (_of_experts(step, device), _of_indexer(step)) if area is not None]
    return [max(areas, key=lambda area: area.likely_bytes)] if areas else []


def index_logits_bytes(step: Step) -> int:
    """Bytes of an indexer's logits that the profile run makes room for."""
    return _INDEX_LOGITS if index_width(step) and step.version >= _INDEXED_SINCE else 0


def index_width(step: Step) -> int:
    """Width of the keys that select tokens; 0 where none do."""
    kinds = (layer.attention for layer, _ in layer_kinds(step.spec))
    latents = (a for a in kinds if a is not None and a.compression is None)
    return max((a.index_head_dim for a in latents), default=0)


def _of_indexer(step: Step) -> Estimate | None:
    width = index_width(step)
    if not width or step.version < _INDEXED_SINCE:
        return None
    keys = _INDEXED_CONTEXTS * step.gathered
    size = keys * indexer_bytes(width)
    formula = tr("{indexed_contexts} × {gathered} keys × {indexer_bytes} B").format(
        indexed_contexts=_INDEXED_CONTEXTS,
        gathered=grouped(step.gathered),
        indexer_bytes=indexer_bytes(width),
    )
    source = "vLLM sparse_attn_indexer.py, mla/indexer.py (0.19, 0.33)"
    return Estimate(size // 2, size, size, Basis.FITTED, source, formula, tr("index workspace"))


def _of_experts(step: Step, device: Device) -> Estimate | None:
    moe = _experts(step)
    if moe is None:
        return None
    fmt, generation = step.weight_format, int(device.compute_capability)
    if fmt.startswith(_OWN_SCRATCH) and generation not in (7, 8):
        return None
    rows = _rows(step, step.tokens)
    if fmt == "fp8-block" and generation == 9:
        # DeepGEMM starts the rows of each expert on a tile.
        local = ceil_div(moe.num_experts, step.tensor_parallel_size) if step.expert_parallel else 0
        rows = align_up(rows + (local or moe.num_experts) * (_ROW_TILE - 1), _ROW_TILE)
    columns = sum(_columns(step, moe))
    size = rows * columns * step.element_bytes
    formula = tr("{rows} rows × {columns} × {element_bytes} B").format(
        rows=grouped(rows), columns=grouped(columns), element_bytes=step.element_bytes
    )
    low, high = size * 19 // 20, size * 21 // 20
    likely = size
    if fmt.startswith(_WITHIN_FLASHINFER) and generation == 10:
        low, likely, formula = (
            0,
            0,
            tr("none beside FlashInfer's own; at most {formula}").format(formula=formula),
        )
    elif fmt not in _PLAIN or device.vendor is not Vendor.NVIDIA:
        low = 0
    return Estimate(low, likely, high, Basis.FITTED, tr(_SOURCE), formula, tr("expert workspace"))


def passing_bytes(step: Step) -> int:
    """Bytes of the buffers where they last for one layer only: until 0.12."""
    moe = _experts(step)
    if moe is None or step.version >= _KEPT_SINCE or step.weight_format.startswith(_OWN_SCRATCH):
        return 0
    rows = _rows(step, min(step.tokens, _CHUNK.at(step.version)))
    return rows * sum(_columns(step, moe)) * step.element_bytes


def _rows(step: Step, tokens: int) -> int:
    moe = _experts(step)
    # Replicas that share experts out gather the tokens of all of them.
    return tokens * step.data_parallel_size * (moe.num_experts_per_tok if moe else 0)


def _columns(step: Step, moe: MoeSpec) -> tuple[int, int]:
    hidden = step.spec.hidden_size
    width = moe.moe_intermediate_size
    if not step.expert_parallel:
        width = ceil_div(width, step.tensor_parallel_size)
    return max(width, hidden), max(2 * width, hidden)


def _experts(step: Step) -> MoeSpec | None:
    return next((layer.moe for layer, _ in layer_kinds(step.spec) if layer.moe), None)
