"""What lies on a rank beside the tensors of its weights once they are loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from engine.architecture.spec import AttentionKind
from engine.budget.sequence_state import attention_kinds, layer_kinds
from engine.devices.device import Vendor
from engine.evidence import Basis, Estimate, exactly
from engine.units import MIB, ceil_div
from engine.words import grouped, tr, tr_later

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.architecture.model import Model
    from engine.architecture.spec import ArchitectureSpec
    from engine.runtimes.sglang.loading import Split

_NO_ROTARY = ("gpt2", "gpt_bigcode", "opt", "bloom", "mpt", "xglm", "biogpt", "falcon_mamba")
_PARTLY_ROTARY = (
    "phi_", "gpt_neox", "stablelm", "glm", "chatglm", "minimax", "qwen3_next", "qwen3_5",
    "nemotron", "persimmon", "gptj", "codegen",
)  # fmt: skip
"""Types that turn a part of each head only; the part is not in the architecture."""
_TWO_BASES = ("gemma3", "gemma4")
"""Types whose sliding and full layers turn by different bases: two tables."""
_UNTURNED = ("nope", "absolute", "alibi", "learned")
_NOPE_TYPES = ("granitemoehybrid",)
"""Types whose hybrids are published with ``position_embedding_type`` "nope"."""
_ROTARY_BYTES = 4
"""SGLang keeps cosines and sines in 32 bits on CUDA (``rotary_embedding/base.py``)."""
_LEFT = {
    Vendor.NVIDIA: (
        0,
        15,
        110,
        tr_later("thirteen starts: 0 to 0.09 GiB more than segments and tables"),
    ),
    Vendor.AMD: (
        -100,
        60,
        300,
        tr_later("starts on MI355X: -0.07 to 0.25 GiB beside segments and tables"),
    ),
}
_LEFT_ELSEWHERE = (
    0,
    30,
    300,
    tr_later("one start on Intel: 0.01 GiB more than tensors and tables"),
)


def rotary_tables(model: Model, split: Split) -> Estimate | None:
    """Cosines and sines of every position, once for the whole model.

    Llama-3.1-8B prints 15.02 GiB: 16,060,522,496 B of tensors and 131,072 × 128 × 4 B.
    """
    spec = model.spec
    attention = next(iter(attention_kinds(spec)), None)
    if attention is None or not spec.max_position_embeddings or _is_unturned(model):
        return None
    width = attention.qk_rope_head_dim or attention.head_dim
    positions = spec.max_position_embeddings
    if spec.model_type.startswith(_TWO_BASES):
        positions *= 2
    each = _ROTARY_BYTES if split.vendor is Vendor.NVIDIA else split.element_bytes
    size = positions * width * each
    formula = tr("{positions} positions × {width} × {each} B").format(
        positions=grouped(positions), width=width, each=each
    )
    source, label = "SGLang layers/rotary_embedding/base.py", tr("rotary table")
    if f"{spec.model_type}_".startswith(_PARTLY_ROTARY):
        return Estimate(
            0,
            size // 2,
            size,
            Basis.ASSUMED,
            source,
            tr("up to {formula}").format(formula=formula),
            label,
        )
    return exactly(size, Basis.EXACT, source, formula, label)


def _is_unturned(model: Model) -> bool:
    spec = model.spec
    if spec.model_type.startswith(_NO_ROTARY):
        return True
    config: Mapping[str, Any] = model.config or {}
    text = config.get("text_config")
    stated = cast("Mapping[str, Any]", text) if isinstance(text, dict) else config
    if stated.get("position_embedding_type") in _UNTURNED:
        return True
    hybrid = any(layer.state is not None for layer, _ in layer_kinds(spec))
    return hybrid and spec.model_type.startswith(_NOPE_TYPES)


def absorbed(
    spec: ArchitectureSpec, layers: range, split: Split, weight_format: str
) -> Estimate | None:
    """MLA's up-projections, copied into the order in which decoding multiplies by them.

    In 16 bits, whatever the weights are in; FP8 blocks stay 8 bits only off CUDA.

    Source:
        SGLang ``deepseek_common/deepseek_weight_loader.py``: ``w_kc`` and ``w_vc``.
    """
    size = 0
    for layer, count in layer_kinds(spec, layers.start, layers.stop):
        a = layer.attention
        if a is not None and a.kind is AttentionKind.LATENT:
            heads = ceil_div(a.num_attention_heads, split.attention_tp)
            size += a.kv_lora_rank * heads * (a.qk_nope_head_dim + a.v_head_dim) * count
    if not size:
        return None
    in_8_bits = weight_format.startswith("fp8") and split.vendor is Vendor.AMD
    likely = size if in_8_bits else 2 * size
    source = "SGLang deepseek_weight_loader.py: w_kc and w_vc"
    return Estimate(size, likely, 2 * size, Basis.FITTED, source, "", tr("absorbed projections"))


def group_indices(
    spec: ArchitectureSpec, layers: range, split: Split, weight_format: str
) -> Estimate | None:
    """Where the columns of experts packed in groups belong: kept by ROCm's kernels.

    Marlin's drop them where columns are in order; Kimi-K2.5 on eight MI355X holds 1.3 GiB of them.

    Source:
        SGLang ``compressed_tensors_wNa16_moe.py :: CompressedTensorsWNA16TritonMoE``.
    """
    size = index_bytes(spec, layers, split)
    if split.vendor is not Vendor.AMD or not weight_format.startswith("w4a16") or not size:
        return None
    source = "SGLang compressed_tensors_wNa16_moe.py: g_idx and g_idx_sort_indices"
    return exactly(size, Basis.EXACT, source, "", tr("group indices"))


def index_bytes(spec: ArchitectureSpec, layers: range, split: Split) -> int:
    """Two 32-bit tables of every expert's inputs, for each of its two products, on one rank."""
    size, ranks = 0, split.tensor_parallel_size
    for layer, count in layer_kinds(spec, layers.start, layers.stop):
        moe = layer.moe
        if moe is not None:
            experts, inner = moe.num_experts, ceil_div(moe.moe_intermediate_size, ranks)
            if split.enable_expert_parallel:
                experts, inner = ceil_div(experts, ranks), moe.moe_intermediate_size
            size += 2 * 4 * experts * (spec.hidden_size + inner) * count
    return size


def adapters(spec: ArchitectureSpec, layers: range, split: Split) -> Estimate | None:
    """Slots of LoRA adapters."""
    if not split.loras:
        return None
    sizes = sum(
        (ceil_div(t.shape[0], split.tensor_parallel_size) + t.shape[1]) * t.copies * count
        for layer, count in layer_kinds(spec, layers.start, layers.stop)
        for t in layer.tensors
        if t.linear and len(t.shape) == 2
    )
    size = 2 * split.lora_rank * sizes * split.loras
    source = tr("2 × rank × (rows + columns) of every linear layer × slots")
    return Estimate(size // 2, size, size * 13 // 10, Basis.ASSUMED, source, "", tr("LoRA slots"))


def left_behind(split: Split) -> Estimate:
    """What loading leaves on the device beside all that: kernels and handles."""
    low, likely, high, source = _LEFT.get(split.vendor, _LEFT_ELSEWHERE)
    return Estimate(
        low * MIB, likely * MIB, high * MIB, Basis.FITTED, tr(source), f"{likely} MiB",
        tr("left by loading"),
    )  # fmt: skip


def misread(split: Split) -> Estimate | None:
    """What the host's own memory adds or hides where the device shares it.

    Source:
        SGLang 0.5.4 ``utils/common.py :: get_available_gpu_memory``: psutil's available memory on
        Orin, Thor and Spark.
    """
    if not split.shares_host:
        return None
    source = tr("two starts on GB10: 0.48 GiB less and 0.78 GiB more than what was allocated")
    low, likely, high = (size * MIB for size in (-700, 150, 1000))
    return Estimate(low, likely, high, Basis.FITTED, source, "150 MiB", tr("the host's own memory"))
