"""Attention blocks: grouped-query (with its variants) and multi-head latent attention."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.architecture.families.base import CHUNKED, SLIDING, Mixed, matrix, norm, vector
from engine.architecture.families.latent import latent_of
from engine.architecture.spec import AttentionKind, AttentionSpec, ModuleClass, Sharding
from engine.words import tr

if TYPE_CHECKING:
    from engine.architecture.families.base import Family
    from engine.architecture.spec import Tensor
    from engine.config.facts import Facts

_A = ModuleClass.ATTENTION
_WHOLE_HEADS = frozenset({
    "arcee", "cwm", "deepseek_v2", "exaone", "gemma2", "gemma3_text", "gemma3n_text", "gpt_neox",
    "internlm3", "llama", "minicpm3", "vaultgemma",
})  # fmt: skip
"""Types whose class (transformers 5.24, ``validate_architecture``) refuses a hidden size that the
heads don't divide; the others round the head width down."""
_SHARED_OUT = frozenset({
    "glm4v_text", "mllama_text_model", "qwen2_5_vl_text", "qwen2_vl_text",
})  # fmt: skip
"""Types whose class shares the hidden size out among the heads, whatever ``head_dim`` says."""
_KINDS = {SLIDING: AttentionKind.SLIDING, CHUNKED: AttentionKind.CHUNKED}


def head_counts(facts: Facts, family: Family, kind: str) -> tuple[int, int]:
    """Query and key/value heads of a layer.

    Raises:
        ConfigError: a count is missing or absurd, or the groups are uneven.
    """
    heads = family.heads(facts, kind) if family.heads else facts.integer("num_attention_heads")
    if family.kv_heads:
        kv_heads = family.kv_heads(facts, kind)
    else:
        kv_heads = facts.integer("num_key_value_heads", heads)
    if heads % kv_heads:
        wanted = tr("a divisor of num_attention_heads ({heads}) is needed").format(heads=heads)
        raise facts.bad("num_key_value_heads", kv_heads, wanted)
    return heads, kv_heads


def head_widths(facts: Facts, family: Family, kind: str, heads: int) -> tuple[int, int]:
    """Key and value head width; stated, else the hidden size shared out.

    Raises:
        ConfigError: neither is possible.
    """
    if family.head_dim:
        return family.head_dim(facts, kind)
    # A few classes say 0 for "derived"; in any other config it is a slip.
    derives = facts.defaults.values.get("head_dim") == 0
    width = facts.optional("head_dim", low=0 if derives else 1)
    if not width or facts.model_type in _SHARED_OUT:
        hidden = facts.integer("hidden_size")
        width = hidden // heads
        if hidden % heads and facts.model_type in _WHOLE_HEADS:
            wanted = tr(
                "a multiple of num_attention_heads ({heads}) is needed, or head_dim"
            ).format(heads=heads)
            raise facts.bad("hidden_size", hidden, wanted)
        facts.origins["head_dim"] = "derived"
    return width, width


def check_widths(facts: Facts, mixed: Mixed) -> None:
    """Refuse heads of no width, whichever rule shared the hidden size out among them.

    Raises:
        ConfigError: there are more heads than there is width to share out.
    """
    for spec in (mixed.attention, mixed.cross):
        if spec is not None and spec.kind is not AttentionKind.LATENT and not spec.head_dim:
            wanted = tr(
                "shared out among {num_attention_heads} heads it leaves each no width"
            ).format(num_attention_heads=spec.num_attention_heads)
            raise facts.bad("hidden_size", facts.integer("hidden_size"), wanted)


def window_of(facts: Facts, family: Family, kind: str) -> int:
    """Tokens that a layer of ``kind`` keeps; 0 for all of them.

    Raises:
        ConfigError: the window is missing or absurd.
    """
    if kind not in _KINDS:
        return 0
    if family.window:
        return family.window(facts, kind)
    return facts.integer("sliding_window" if kind == SLIDING else "attention_chunk_size")


def gqa(facts: Facts, family: Family, kind: str) -> Mixed:
    """Grouped-query attention; MHA and MQA are its ends."""
    heads, kv_heads = head_counts(facts, family, kind)
    width, v_width = head_widths(facts, family, kind, heads)
    spec = AttentionSpec(
        _KINDS.get(kind, AttentionKind.FULL), heads, kv_heads, width, v_width,
        window_of(facts, family, kind),
    )  # fmt: skip
    return Mixed(projections(facts, family, spec), spec)


def projections(facts: Facts, family: Family, spec: AttentionSpec) -> list[Tensor]:
    """The tensors of a grouped-query attention block."""
    hidden = facts.integer("hidden_size")
    names = family.names
    path = names.attention + "."
    bias = facts.says(family.q_bias)
    q_rows = spec.num_attention_heads * spec.head_dim
    k_rows = spec.num_key_value_heads * spec.head_dim
    v_rows = spec.num_key_value_heads * spec.v_head_dim
    o_columns = spec.num_attention_heads * spec.v_head_dim
    query, key, value = names.query, names.key, names.value
    if names.fused:
        query = key = value = names.fused
    gate = 2 if facts.says(family.q_gate) else 1
    kv = Sharding.KV_HEADS
    tensors = [
        *matrix(path + query, _A, (q_rows * gate, hidden), Sharding.COLUMN, bias=bias),
        *matrix(path + key, _A, (k_rows, hidden), kv, bias=bias),
    ]
    tensors += matrix(path + value, _A, (v_rows, hidden), kv, bias=bias)
    o_bias = facts.says(family.o_bias)
    tensors += matrix(path + names.output, _A, (hidden, o_columns), Sharding.ROW, bias=o_bias)
    if family.qk_norm and facts.says(family.qk_norm_if):
        tensors += _qk_norms(family, spec, path)
    if facts.says(family.sinks):
        sinks = vector(path + "sinks", _A, spec.num_attention_heads, Sharding.COLUMN)
        tensors.append(sinks)
    return tensors


def _qk_norms(family: Family, spec: AttentionSpec, path: str) -> list[Tensor]:
    if family.qk_norm == "head":
        q_width = k_width = spec.head_dim
    else:
        q_width = spec.num_attention_heads * spec.head_dim
        k_width = spec.num_key_value_heads * spec.head_dim
    bias = family.qk_norm_bias
    names = family.names
    return [
        *norm(path + names.query_norm, q_width, bias=bias),
        *norm(path + names.key_norm, k_width, bias=bias),
    ]


def mla(facts: Facts, family: Family, kind: str) -> Mixed:
    """Multi-head latent attention (DeepSeek-V2 and its descendants).

    Shapes:
        one latent vector of kv_lora_rank + qk_rope_head_dim per token stands for all heads.
    """
    if not facts.has("kv_lora_rank") or not facts.flag("use_mla", default=True):
        facts.settle("q_lora_rank", "v_head_dim", "qk_nope_head_dim", "qk_rope_head_dim")
        return gqa(facts, family, kind)
    latent = latent_of(facts, bias=facts.says(family.q_bias))
    return Mixed(latent.tensors(family.names.attention + "."), latent.spec())
