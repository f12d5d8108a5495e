"""Dense decoders of the Llama kind: RMS norms, rotary embedding, mostly gated MLPs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from engine.architecture.families import attention, patterns
from engine.architecture.families.base import Family, Mixed, Names, Prediction, matrix
from engine.architecture.families.crossed import whole_heads
from engine.architecture.spec import ModuleClass, Sharding

if TYPE_CHECKING:
    from engine.config.facts import Facts

AB = "attention_bias"
_SANDWICH = (
    "input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm",
    "post_feedforward_layernorm",
)  # fmt: skip
_POST = ("post_attention_layernorm", "post_feedforward_layernorm")


def nextn(facts: Facts) -> int:
    """Multi-token-prediction blocks in the checkpoint."""
    return facts.count("num_nextn_predict_layers")


LLAMA = Family(q_bias=AB, o_bias=AB, mlp_bias="mlp_bias")
CWM = replace(LLAMA, pattern=patterns.full_first(4))
MISTRAL = Family(pattern=patterns.windowed_if_stated)
QWEN2 = Family(q_bias=True, pattern=patterns.after_max_window_layers)
QWEN3 = Family(
    q_bias=AB,
    o_bias=AB,
    qk_norm="head",
    pattern=patterns.after_max_window_layers,
)
GEMMA = Family(q_bias=AB, o_bias=AB, tied=True)
GEMMA2 = Family(
    harmless=("sliding_window_size",),
    q_bias=AB,
    o_bias=AB,
    norms=_SANDWICH,
    pattern=patterns.every(2),
    tied=True,
)


def _gemma3_window(facts: Facts, _kind: str) -> int:
    """A window that looks both ways has half of it behind a token (EmbeddingGemma)."""
    window = facts.integer("sliding_window")
    return window // 2 + 1 if facts.flag("use_bidirectional_attention") else window


GEMMA3 = Family(
    q_bias=AB, o_bias=AB, norms=_SANDWICH, qk_norm="head", tied=True, window=_gemma3_window,
    pattern=patterns.every(6, "sliding_window_pattern"),
)  # fmt: skip
PHI3 = Family(
    names=Names(fused="qkv_proj", gate="gate_up_proj"), gate_up_fused=True,
    pattern=patterns.windowed_if_stated,
)  # fmt: skip
GRANITE = Family(q_bias=AB, o_bias=AB, mlp_bias="mlp_bias")
_COHERE_NORMS = ("input_layernorm",)
COHERE = Family(
    q_bias=AB,
    o_bias=AB,
    norms=_COHERE_NORMS,
    qk_norm="full",
    qk_norm_if="use_qk_norm",
    tied=True,
)
COHERE2 = Family(
    harmless=("position_embedding_type", "use_gated_activation"),
    q_bias=AB, o_bias=AB, norms=_COHERE_NORMS, tied=True,
    pattern=patterns.every(4, "sliding_window_pattern"),
)  # fmt: skip
OLMO = Family(q_bias=AB, o_bias=AB, norm_weight=False)
OLMO2 = Family(q_bias=AB, o_bias=AB, norms=_POST, qk_norm="full")
OLMO3 = Family(
    q_bias=AB,
    o_bias=AB,
    norms=_POST,
    qk_norm="full",
    pattern=patterns.every(4),
)
_GLM_NAMES = Names(gate="gate_up_proj")
GLM = Family(names=_GLM_NAMES, q_bias=AB, gate_up_fused=True)
GLM4 = Family(
    names=_GLM_NAMES, q_bias=AB, gate_up_fused=True,
    norms=(
        "input_layernorm", "post_self_attn_layernorm", "post_attention_layernorm",
        "post_mlp_layernorm",
    ),
)  # fmt: skip
GLM4V = replace(GLM4, q_bias=True)
EXAONE4 = Family(
    norms=_POST, qk_norm="head", mtp=nextn,
    prediction=Prediction(joins_once=True, join=Sharding.COLUMN),
    pattern=patterns.every(4, "sliding_window_pattern", needs_window=True),
)  # fmt: skip
SEED_OSS = Family(q_bias=AB, o_bias="attention_out_bias", mlp_bias="mlp_bias")


def _smollm3(facts: Facts, layers: int) -> tuple[str, ...]:
    """Only layers without rotary embedding slide, and only with ``use_sliding_window``."""
    facts.raw("no_rope_layers")
    if not facts.flag("use_sliding_window") or not facts.count("sliding_window"):
        return patterns.all_full(facts, layers)
    roped = facts.integers("no_rope_layers")
    if roped is None:
        step = facts.integer("no_rope_layer_interval", 4)
        roped = tuple(int((i + 1) % step != 0) for i in range(layers))
    return tuple(
        patterns.FULL if i < len(roped) and roped[i] else patterns.SLIDING for i in range(layers)
    )


SMOLLM3 = Family(q_bias=AB, o_bias=AB, mlp_bias="mlp_bias", pattern=_smollm3)


def _stablelm_norms(facts: Facts) -> tuple[str, ...]:
    parallel = facts.flag("use_parallel_residual")
    return ("input_layernorm",) if parallel else ("input_layernorm", "post_attention_layernorm")


STABLELM = Family(
    names=Names(query_norm="q_layernorm.norms", key_norm="k_layernorm.norms"),
    head_dim=whole_heads, q_bias="use_qkv_bias", norm_bias=True, qk_norm="full",
    qk_norm_if="qk_layernorm",
    norm_rule=_stablelm_norms,
)  # fmt: skip
STARCODER2 = Family(
    names=Names(up="c_fc", down="c_proj"), q_bias="use_bias", o_bias="use_bias",
    mlp_bias="use_bias", gated=False, norm_bias=True, pattern=patterns.windowed_if_stated,
)  # fmt: skip
NEMOTRON = Family(q_bias=AB, o_bias=AB, mlp_bias="mlp_bias", gated=False, norm_bias=True)
ARCEE = Family(q_bias=AB, o_bias=AB, mlp_bias="mlp_bias", gated=False)


def _helium(facts: Facts, family: Family, kind: str) -> Mixed:
    """As wide as the model after its heads, whatever these are."""
    mixed = attention.gqa(facts, replace(family, attention=None), kind)
    hidden = facts.integer("hidden_size")
    output = matrix("self_attn.o_proj", ModuleClass.ATTENTION, (hidden, hidden), Sharding.ROW)
    return replace(mixed, tensors=[*mixed.tensors[:-1], *output])


HELIUM = Family(attention=_helium, q_bias=AB, mlp_bias="mlp_bias")
ERNIE = Family(q_bias="use_bias", o_bias="use_bias", mlp_bias="use_bias")
HUNYUAN = Family(
    names=Names(query_norm="query_layernorm", key_norm="key_layernorm"),
    q_bias=AB, o_bias=AB, qk_norm="head",
)  # fmt: skip
VAULTGEMMA = Family(
    q_bias=AB, o_bias=AB, norms=("input_layernorm", "pre_feedforward_layernorm"),
    pattern=patterns.every(2), tied=True,
)  # fmt: skip
PHI = Family(
    names=Names(
        output="dense", up="fc1", down="fc2", query_norm="q_layernorm", key_norm="k_layernorm",
        final_norm="model.final_layernorm",
    ),
    q_bias=True, o_bias=True, mlp_bias=True, gated=False, norms=("input_layernorm",),
    norm_bias=True, head_bias=True, qk_norm="head", qk_norm_if="qk_layernorm", qk_norm_bias=True,
)  # fmt: skip

# Scaling of residuals and logits changes no shape; the class ties by default.
MINICPM = Family(tied=True)

FAMILIES = {
    "llama": LLAMA, "code_llama": LLAMA, "cwm": CWM, "internlm3": LLAMA,
    "mistral": MISTRAL, "ministral": MISTRAL, "ministral3": MISTRAL,
    "qwen2": QWEN2, "mimo": replace(QWEN2, mtp=nextn), "qwen3": QWEN3,
    "gemma": GEMMA, "gemma2": GEMMA2, "gemma3_text": GEMMA3, "vaultgemma": VAULTGEMMA,
    "phi": PHI, "phi3": PHI3, "granite": GRANITE,
    "cohere": COHERE, "cohere2": COHERE2, "olmo": OLMO, "olmo2": OLMO2, "olmo3": OLMO3,
    "glm": GLM, "glm4": GLM4, "glm4v_text": GLM4V, "exaone4": EXAONE4, "seed_oss": SEED_OSS,
    "smollm3": SMOLLM3, "minicpm": MINICPM,
    "stablelm": STABLELM, "starcoder2": STARCODER2, "nemotron": NEMOTRON, "arcee": ARCEE,
    "helium": HELIUM, "ernie4_5": ERNIE, "hunyuan_v1_dense": HUNYUAN,
}  # fmt: skip
