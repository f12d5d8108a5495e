"""Names and layouts that llama.cpp's converter gives to a model's tensors.

By what a tensor does (class, sharding, order), since every family names its modules in its own
way: fused projections stay fused, stacked experts are split into gate and up, the latent
up-projection into keys and values. A mix then assigns the same types as to the real file.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from engine.architecture.spec import ModuleClass, Sharding
from engine.formats.mix_rules import OUTSIDE, Unassigned

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.architecture.spec import ArchitectureSpec, LayerSpec, Tensor
    from engine.formats.mixes import Shaped

_OUTSIDE = frozenset({ModuleClass.VISION, ModuleClass.AUDIO, ModuleClass.MTP})
"""Written to a file of their own (mmproj), or left out."""
_LEFT_OUT = frozenset({"pooler.dense.weight", "pooler.dense.bias"})
"""An encoder is converted for its embeddings, without what BERT puts on top of them."""
_AFTER_PADDING = frozenset({"roberta", "xlm-roberta"})
"""Models whose first positions stand for padding: the converter cuts those rows off."""
_PADDING_POSITIONS = 2
_ROLES = {
    (ModuleClass.ATTENTION, Sharding.COLUMN): ("attn_q",),
    (ModuleClass.ATTENTION, Sharding.KV_HEADS): ("attn_k", "attn_v"),
    (ModuleClass.ATTENTION, Sharding.ROW): ("attn_output",),
    (ModuleClass.MLP, Sharding.COLUMN): ("ffn_up", "ffn_gate"),
    (ModuleClass.MLP, Sharding.ROW): ("ffn_down",),
    (ModuleClass.EXPERTS, Sharding.EXPERT_COLUMN): ("ffn_up_exps", "ffn_gate_exps"),
    (ModuleClass.EXPERTS, Sharding.EXPERT_ROW): ("ffn_down_exps",),
    (ModuleClass.SHARED_EXPERTS, Sharding.COLUMN): ("ffn_up_shexp", "ffn_gate_shexp"),
    (ModuleClass.SHARED_EXPERTS, Sharding.ROW): ("ffn_down_shexp",),
    (ModuleClass.ROUTER, Sharding.REPLICATED): ("ffn_gate_inp",),
}


def file_tensors(spec: ArchitectureSpec) -> list[Unassigned]:
    """Every tensor of the converted file, in the order in which mixes assign types."""
    kept = (t for t in spec.outer if t.module not in _OUTSIDE and t.name not in _LEFT_OUT)
    outer = (_outer(t, padding_positions(spec)) for t in kept for _ in range(t.copies))
    found = [Unassigned(OUTSIDE, name, shape) for name, shape in sorted(outer)]
    known: dict[int, list[Shaped]] = {}
    for index, layer in enumerate(spec.layers):
        shaped = known.get(id(layer))
        if shaped is None:
            shaped = known[id(layer)] = sorted(_layer(layer))
        found += [Unassigned(index, name, shape) for name, shape in shaped]
    return found


def padding_positions(spec: ArchitectureSpec) -> int:
    """Positions that a file does not have: those that stand for padding."""
    return _PADDING_POSITIONS if spec.model_type in _AFTER_PADDING else 0


def _outer(tensor: Tensor, padding: int) -> Shaped:
    shape = tuple(reversed(tensor.shape))
    if len(shape) > 1 and tensor.module is ModuleClass.EMBEDDING:
        if "token_type" in tensor.name:
            return "token_types.weight", shape
        if "position" in tensor.name:
            return "position_embd.weight", (*shape[:-1], shape[-1] - padding)
        return "token_embd.weight", shape
    if tensor.name.startswith("embeddings.LayerNorm."):
        return tensor.name.replace("embeddings.LayerNorm", "token_embd_norm"), shape
    if len(shape) > 1 and tensor.module is ModuleClass.LM_HEAD:
        return "output.weight", shape
    return f"{tensor.name.removesuffix('.weight')}_norm.weight", shape


def _layer(layer: LayerSpec) -> Iterator[Shaped]:
    taken: Counter[tuple[ModuleClass, Sharding]] = Counter()
    for tensor, is_fused in _merged(layer.tensors):
        if len(tensor.shape) != 2 or not tensor.linear:
            yield _vector(tensor)
            continue
        role = (tensor.module, tensor.sharding)
        order = taken[role]
        taken[role] += 1
        names = _ROLES.get(role, ())
        name = names[order] if order < len(names) else tensor.name.removesuffix(".weight")
        if tensor.module is ModuleClass.ATTENTION and is_fused:
            name = "attn_qkv"
        elif name == "attn_output" and layer.attention is None:
            name = "ssm_out"
        yield from _matrix(tensor, name, layer)


def _merged(tensors: tuple[Tensor, ...]) -> Iterator[tuple[Tensor, bool]]:
    """Tensors with fused projections (several of one name) joined along their rows."""
    joined: dict[str, tuple[Tensor, bool]] = {}
    for tensor in tensors:
        if tensor.module in _OUTSIDE:
            continue
        if tensor.name in joined:
            before, _ = joined[tensor.name]
            rows = before.shape[0] + tensor.shape[0]
            joined[tensor.name] = replace(before, shape=(rows, *tensor.shape[1:])), True
        else:
            joined[tensor.name] = tensor, False
    yield from joined.values()


def _vector(tensor: Tensor) -> Shaped:
    # Norms, biases, sinks and convolutions stay in F32.
    shape = tuple(reversed(tensor.shape))
    name = tensor.name.removesuffix(".weight").replace(".", "_")
    return f"{name}_norm.weight", (*shape, tensor.copies) if tensor.copies > 1 else shape


def _matrix(tensor: Tensor, name: str, layer: LayerSpec) -> Iterator[Shaped]:
    rows, columns = tensor.shape
    attention, state = layer.attention, layer.state
    if rows == 1:
        yield f"{name}_norm.weight", (columns,)
    elif "kv_b_proj" in tensor.name and attention is not None and attention.kv_lora_rank:
        heads, rank = attention.num_attention_heads, attention.kv_lora_rank
        yield "attn_k_b.weight", (attention.qk_nope_head_dim, rank, heads)
        yield "attn_v_b.weight", (rank, attention.v_head_dim, heads)
    elif "in_proj_qkv" in tensor.name and state is not None:
        yield "attn_qkv.weight", (columns, min(state.conv_dim, rows))
        if rows > state.conv_dim:
            yield "attn_gate.weight", (columns, rows - state.conv_dim)
    elif "q_b_proj" in tensor.name:
        yield "attn_q_b.weight", (columns, rows)
    elif tensor.module is ModuleClass.EXPERTS and "gate_up" in tensor.name:
        yield "ffn_gate_exps.weight", (columns, rows // 2, tensor.copies)
        yield "ffn_up_exps.weight", (columns, rows // 2, tensor.copies)
    elif tensor.module is ModuleClass.EXPERTS:
        yield f"{name}.weight", (columns, rows, tensor.copies)
    else:
        yield f"{name}.weight", (columns, rows)
