"""Names in a GGUF tensor table: their module class, sharding and counterpart in a checkpoint."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from engine.architecture.naming import Named
from engine.architecture.spec import ModuleClass, Sharding

if TYPE_CHECKING:
    from engine.architecture.stored import Key
    from engine.source.raw import HeaderTensor

GGUF_MTP = ModuleClass.MTP
_BLOCK = re.compile(r"blk\.(\d{1,6})\.(.+)")
_A, _M, _E = ModuleClass.ATTENTION, ModuleClass.MLP, ModuleClass.EXPERTS
_S, _N, _R = ModuleClass.SHARED_EXPERTS, ModuleClass.NORM, ModuleClass.ROUTER
_COLUMN, _ROW, _KV = Sharding.COLUMN, Sharding.ROW, Sharding.KV_HEADS
_WHOLE = Sharding.REPLICATED
_ROLES: dict[str, tuple[str, ModuleClass, Sharding]] = {
    "attn_q": ("self_attn.q_proj", _A, _COLUMN),
    "attn_k": ("self_attn.k_proj", _A, _KV),
    "attn_v": ("self_attn.v_proj", _A, _KV),
    "attn_qkv": ("self_attn.qkv_proj", _A, _COLUMN),
    "attn_output": ("self_attn.o_proj", _A, _ROW),
    "attn_out": ("self_attn.o_proj", _A, _ROW),
    "attn_sinks": ("self_attn.sinks", _A, _COLUMN),
    "attn_gate": ("self_attn.gate_proj", _A, _COLUMN),
    "attn_q_a": ("self_attn.q_a_proj", _A, _WHOLE),
    "attn_q_b": ("self_attn.q_b_proj", _A, _COLUMN),
    "attn_kv_a_mqa": ("self_attn.kv_a_proj_with_mqa", _A, _WHOLE),
    "attn_kv_b": ("self_attn.kv_b_proj", _A, _COLUMN),
    "attn_k_b": ("self_attn.kv_b_proj.k", _A, _COLUMN),
    "attn_v_b": ("self_attn.kv_b_proj.v", _A, _COLUMN),
    "ffn_gate": ("mlp.gate_proj", _M, _COLUMN),
    "ffn_up": ("mlp.up_proj", _M, _COLUMN),
    "ffn_down": ("mlp.down_proj", _M, _ROW),
    "ffn_gate_exps": ("mlp.experts.*.gate_proj", _E, Sharding.EXPERT_COLUMN),
    "ffn_up_exps": ("mlp.experts.*.up_proj", _E, Sharding.EXPERT_COLUMN),
    "ffn_down_exps": ("mlp.experts.*.down_proj", _E, Sharding.EXPERT_ROW),
    "ffn_gate_up_exps": ("mlp.experts.*.gate_up_proj", _E, Sharding.EXPERT_COLUMN),
    "ffn_gate_shexp": ("mlp.shared_expert.gate_proj", _S, _COLUMN),
    "ffn_up_shexp": ("mlp.shared_expert.up_proj", _S, _COLUMN),
    "ffn_down_shexp": ("mlp.shared_expert.down_proj", _S, _ROW),
    "ffn_gate_inp_shexp": ("mlp.shared_expert_gate", _S, _WHOLE),
    "ffn_gate_inp": ("mlp.gate", _R, _WHOLE),
    "token_embd": ("model.embed_tokens", ModuleClass.EMBEDDING, Sharding.VOCAB),
    "per_layer_token_embd": (
        "model.embed_tokens_per_layer", ModuleClass.EMBEDDING, Sharding.VOCAB,
    ),
    "position_embd": ("model.embed_positions", ModuleClass.EMBEDDING, _WHOLE),
    "output": ("lm_head", ModuleClass.LM_HEAD, Sharding.VOCAB),
}  # fmt: skip
# Buffers that a checkpoint keeps but a built model does not count.
_TABLES = frozenset({"rope_freqs", "rope_factors_long", "rope_factors_short", "exp_probs_b"})


@lru_cache(maxsize=4_096)
def _role(inner: str) -> Named:
    """What ``attn_q.weight`` (a name without its block) says."""
    stem, _, suffix = inner.rpartition(".")
    stem = stem or inner
    holds = "other" if stem in _TABLES else "weight"
    if stem in _ROLES:
        name, module, sharding = _ROLES[stem]
    elif "norm" in stem:
        name, module, sharding = stem, _N, _WHOLE
    elif stem.startswith(("ssm", "attn", "shortconv", "time_mix", "indexer")):
        name, module, sharding = stem, _A, _WHOLE
    elif stem.startswith("nextn"):
        name, module, sharding = stem, ModuleClass.MTP, _WHOLE
    else:
        name, module, sharding = stem, ModuleClass.OTHER, _WHOLE
    if suffix == "bias" and sharding is _ROW:
        sharding = _WHOLE
    return Named(module, sharding, is_layered=True, holds=holds, role=f"{name}.{suffix}")


def role_of(name: str) -> Named:
    """What the tensor ``name`` is, its block aside."""
    match = _BLOCK.fullmatch(name)
    return _role(match[2] if match else name)


def place(tensor: HeaderTensor, layers: int) -> Key:
    """Layer, class, sharding and type of a tensor; blocks beyond ``layers`` predict ahead."""
    match = _BLOCK.fullmatch(tensor.name)
    role = _role(match[2] if match else tensor.name)
    if match is None:
        return None, role.module, role.sharding, tensor.dtype
    layer = int(match[1])
    if layer >= layers or role.module is ModuleClass.MTP:
        return None, ModuleClass.MTP, role.sharding, tensor.dtype
    return layer, role.module, role.sharding, tensor.dtype
