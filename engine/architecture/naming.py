"""What a tensor's name in a checkpoint says: its layer, its part of the model, its sharding."""

from __future__ import annotations

import re
from dataclasses import dataclass

from engine.architecture.spec import ModuleClass, Sharding


@dataclass(frozen=True, slots=True)
class Named:
    """What follows from a name alone; numbers in it do not matter."""

    module: ModuleClass
    sharding: Sharding
    is_layered: bool
    """Whether the first number is that of a decoder layer."""
    holds: str
    """``weight``, ``packed`` (several values per element), or ``other`` (no parameter)."""
    role: str
    """The module's name without its suffix: ``q_proj``."""


_NUMBER = re.compile(r"(?<=\.)\d+(?=\.|$)")
_BESIDE_VISION = re.compile(
    r"(^|\.)(vision\w*|visual\w*|vpm|image_\w+|embed_vision|multi_modal_projector|mm_projector"
    r"|projector|connector|aligner|resampler\w*|merger|patch_merge\w*|vit_\w+)(\.|$)"
)
_BESIDE_AUDIO = re.compile(
    r"(^|\.)(audio\w*|embed_audio|speech(?!t5\.)\w*|acoustic\w*|semantic_\w+)(\.|$)"
)
_MTP = re.compile(r"(^|\.)(mtp|nextn|mtp_layers|mtp_block)(\.|$)")
_LAYERED = re.compile(r"(^|\.)(layers|h|blocks|block|layer)\.#\.")
# Scales, zero points, group indices and shapes of packed formats; tables that are no parameters.
_OTHER = re.compile(
    r"((weight|input|output|activation|pre_quant|proj|k|v|q|prob|global)_(global_)?scale(_inv|_2)?|\.scales|_scales"
    r"|(?<!router)\.scale|qzeros|g_idx|weight_shape|zero_point|absmax|quant_map|quant_state\.\w+|SCB|weight_format"
    r"|inv_freq|masked_bias|attn\.masked_bias|position_ids|token_type_ids|e_score_correction_bias"
    r"|\.zero|nbits|\.(group_size|shape|axis|packing|optimize|round_zero|offload_meta|channel_wise)"
    r"|\.(quant_(scale|zero)|encoded_state_dict|stores_quant_config|view_as_float|\w+_dtype)"
    r"|rotary_emb\.\w+|rope_freqs\.weight|std_bias|std_scale|layer_scalar)$"
)
_PACKED = re.compile(r"(qweight|weight_packed|W_q|_blocks)$")
_SUFFIX = re.compile(
    r"\.(weight|bias|qweight|qzeros|scales|g_idx|weight_packed|weight_scale\w*|weight_shape|biases"
    r"|input_scale|(weight\.)?(absmax|nested_absmax|quant_map|nested_quant_map|quant_state\.\w+)"
    r"|SCB|W_q|zero)$"
)
_ROLES = {
    Sharding.KV_HEADS: {"k_proj", "v_proj", "key", "value"},
    Sharding.COLUMN: {
        "q_proj", "gate_proj", "up_proj", "gate_up_proj", "w1", "w3", "fc1", "c_fc", "c_fc_0",
        "c_fc_1", "c_attn", "qkv_proj", "query_key_value", "Wqkv", "W_pack", "wqkv", "fc_in",
        "dense_h_to_4h", "q_b_proj", "kv_b_proj", "in_proj", "in_proj_qkv", "in_proj_qkvz",
        "in_proj_z", "in_proj_ba", "in_proj_a", "in_proj_b", "conv1d", "A_log", "D", "dt_bias",
        "sinks", "g_proj", "wq_b",
    },
    Sharding.ROW: {
        "o_proj", "out_proj", "down_proj", "w2", "fc2", "c_proj", "dense", "fc_out",
        "dense_4h_to_h", "wo", "wo_b",
    },
}  # fmt: skip
_SHARDING = {role: sharding for sharding, roles in _ROLES.items() for role in roles}
_EXPERT = {
    Sharding.COLUMN: Sharding.EXPERT_COLUMN,
    Sharding.ROW: Sharding.EXPERT_ROW,
    Sharding.REPLICATED: Sharding.EXPERT_COLUMN,
}


def pattern_of(name: str) -> str:
    """``name`` with every number replaced, so that like tensors share one pattern."""
    return _NUMBER.sub("#", name)


def layer_of(name: str) -> int:
    """The first number in ``name``."""
    match = _NUMBER.search(name)
    return int(match[0]) if match and len(match[0]) < 7 else -1


def named(pattern: str) -> Named:
    """What ``pattern`` (a name with its numbers replaced) says."""
    path = _SUFFIX.sub("", pattern)
    role = path.rpartition(".")[2]
    module = _module(pattern, path, role)
    holds = "other" if _OTHER.search(pattern) else "packed" if _PACKED.search(pattern) else "weight"
    layered = module not in (ModuleClass.VISION, ModuleClass.AUDIO, ModuleClass.MTP)
    return Named(
        module, _sharding(pattern, role, module), layered and bool(_LAYERED.search(pattern)),
        holds, role,
    )  # fmt: skip


_BESIDE = (
    (_MTP, ModuleClass.MTP),
    (_BESIDE_VISION, ModuleClass.VISION),
    (_BESIDE_AUDIO, ModuleClass.AUDIO),
)
_HEADS = frozenset({"lm_head", "embed_out", "head", "output_layer", "score", "v_head"})
_INSIDE = (
    (re.compile(r"shared_expert|shared_mlp|share_expert"), ModuleClass.SHARED_EXPERTS),
    (
        re.compile(r"(^|\.)(experts|switch_mlp|moe)\.(?!.*(router|gate$))|\.experts$"),
        ModuleClass.EXPERTS,
    ),
    (re.compile(r"router|(^|\.)(gate|gate_inp|moe_statics|expert_bias)(\.|$)"), ModuleClass.ROUTER),
    (re.compile(r"mixer\.(up_proj|down_proj|gate_proj|fc\d_latent_proj)$"), ModuleClass.MLP),
    (re.compile(r"norm|LayerNorm|(^|\.)ln_"), ModuleClass.NORM),
    (re.compile(r"attn|[aA]ttention|mixer|mamba|conv"), ModuleClass.ATTENTION),
    (
        re.compile(
            r"mlp|ffn|feed_forward|DenseReluDense|fc1|fc2|_proj|w[123]$|intermediate|output\.dense"
        ),
        ModuleClass.MLP,
    ),
)
"""Parts of a layer; the first that matches wins."""


def _module(pattern: str, path: str, role: str) -> ModuleClass:
    for expression, module in _BESIDE:
        if expression.search(path):
            return module
    if role in _HEADS:
        return ModuleClass.LM_HEAD
    if not _LAYERED.search(pattern):
        return _outer(path, role)
    found = (module for expression, module in _INSIDE if expression.search(path))
    return next(found, ModuleClass.OTHER)


def _outer(path: str, role: str) -> ModuleClass:
    if "norm" in role.lower() or role.startswith("ln_"):
        return ModuleClass.NORM
    is_table = re.search(r"embed|wte|wpe|tok_embeddings|^shared$", role)
    return ModuleClass.EMBEDDING if is_table else ModuleClass.OTHER


def _sharding(pattern: str, role: str, module: ModuleClass) -> Sharding:
    if module in (ModuleClass.EMBEDDING, ModuleClass.LM_HEAD):
        is_table = "wpe" not in role and "position" not in role
        return Sharding.VOCAB if is_table else Sharding.REPLICATED
    if module in (ModuleClass.NORM, ModuleClass.ROUTER):
        return Sharding.REPLICATED
    own = _SHARDING.get(role, Sharding.REPLICATED)
    if module is ModuleClass.EXPERTS:
        own = _SHARDING.get(re.sub(r"_(blocks|scales|bias)$", "", role), own)
        return _EXPERT.get(own, Sharding.EXPERT_COLUMN)
    if own is Sharding.ROW and pattern.endswith(".bias"):
        return Sharding.REPLICATED
    return own
