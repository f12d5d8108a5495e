"""Decoders published with code of their own that are a known kind of layers, a little changed.

Source:
    The modelling files of the repositories and of vLLM; ``tests/truth/test_published_types.py``
    holds the published total of each.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from engine.architecture.families import attention, patterns
from engine.architecture.families.base import Family, Mixed, Names, matrix, state_doubt
from engine.architecture.families.classic import FALCON, GPT2, four_times_hidden, own_heads
from engine.architecture.families.dense import LLAMA, OLMO2, PHI, QWEN2, QWEN3
from engine.architecture.spec import (
    Direction,
    Doubt,
    ModuleClass,
    Sharding,
    Subject,
    Tensor,
)
from engine.words import tr

if TYPE_CHECKING:
    from engine.architecture.families.base import MixerRule
    from engine.config.facts import Facts


def diffuses(facts: Facts) -> list[Doubt]:
    """A model that fills in a text in any order: what it keeps depends on what runs it."""
    facts.settle("mask_token_id", "use_cache")
    return state_doubt(
        tr(
            "it fills in text by diffusion: its own code keeps nothing between "
            "steps, and a runtime with a cache of blocks at most the keys and "
            "values of all tokens"
        )
    )


def both_ways(facts: Facts, family: Family, kind: str) -> Mixed:
    """Attention both ways, in one pass that keeps nothing."""
    mixed = attention.gqa(facts, replace(family, attention=None), kind)
    assert mixed.attention is not None  # noqa: S101 - gqa always has one
    return replace(mixed, attention=replace(mixed.attention, keeps_cache=False))


_EMBEDS = ("pooling", "temperature")
LLAMA_ENCODER = replace(LLAMA, attention=both_ways, harmless=_EMBEDS)
QWEN3_ENCODER = replace(QWEN3, attention=both_ways, harmless=_EMBEDS)

DREAM = replace(QWEN2, bare_is_headless=False, doubts=diffuses)
ILLADA = replace(LLAMA, bare_is_headless=False, doubts=diffuses)


def _internlm(facts: Facts) -> Family:
    """Biased where the config does not say otherwise."""
    bias = facts.flag("bias", default=True)
    return replace(LLAMA, q_bias=bias, o_bias=bias)


INTERNLM = Family(by_class=_internlm)
ORION = replace(LLAMA, norm_bias=True)
SOLAR = replace(LLAMA, harmless=("bskcn_1", "bskcn_2", "bskcn_3", "bskcn_4", "bskcn_tv"))
INSTELLA = replace(OLMO2, norms=LLAMA.norms)
PHI_MSFT = replace(PHI, width=four_times_hidden, harmless=("architecture",))


def _stated_kv(facts: Facts, _kind: str) -> int:
    return facts.integer("num_key_value_heads", facts.integer("num_attention_heads"))


REFINED_WEB = replace(FALCON, kv_heads=_stated_kv, norm_rule=None, norms=("ln_attn", "ln_mlp"))


def _looped(key: str, absent: int) -> MixerRule:
    """All layers run ``key`` times, with a cache for each time."""

    def mix(facts: Facts, family: Family, kind: str) -> Mixed:
        mixed = attention.gqa(facts, replace(family, attention=None), kind)
        assert mixed.attention is not None  # noqa: S101 - gqa always has one
        loops = facts.integer(key, absent)
        return replace(mixed, attention=replace(mixed.attention, caches=loops))

    return mix


def _exit_gate(facts: Facts, _family: Family) -> list[Tensor]:
    shape = (1, facts.integer("hidden_size"))
    return matrix("model.early_exit_gate", ModuleClass.OTHER, shape, Sharding.REPLICATED, bias=True)


OURO = Family(
    attention=_looped("total_ut_steps", 4), positions=_exit_gate,
    pattern=patterns.after_max_window_layers,
    norms=(
        "input_layernorm", "input_layernorm_2", "post_attention_layernorm",
        "post_attention_layernorm_2",
    ),
)  # fmt: skip
NANBEIGE = replace(LLAMA, attention=_looped("num_loops", 1), harmless=("loop_loss_weights",))
PLAMO3 = Family(
    names=Names(attention="mixer", fused="qkv_proj", gate="gate_up_proj", output="o_proj"),
    gate_up_fused=True, qk_norm="head",
    norms=("pre_mixer_norm", "post_mixer_norm", "pre_mlp_norm", "post_mlp_norm"),
    pattern=patterns.every(8, "sliding_window_pattern"), tied=True,
    window=lambda facts, _kind: facts.integer("window_size", 2_048),
)  # fmt: skip
PHI3_SMALL = Family(
    names=Names(
        fused="query_key_value", output="dense", gate="up_proj", final_norm="model.final_layernorm"
    ),
    q_bias=True, o_bias=True, mlp_bias=True, gate_up_fused=True, norm_bias=True, tied=True,
    width=lambda f: f.integer("ff_intermediate_size"),
    harmless=(
        "blocksparse_block_size", "blocksparse_num_local_blocks", "blocksparse_vert_stride",
        "blocksparse_triton_kernel_block_size", "blocksparse_homo_head_pattern",
        "dense_attention_every_n_layers", "dummy_token_indices", "ff_dim_multiplier",
        "mup_width_multiplier", "gegelu_pad_to_256",
    ),
)  # fmt: skip


def _down_bias(facts: Facts, _family: Family, _mixer: str, _feed: str) -> list[Tensor]:
    shape = (facts.integer("hidden_size"),)
    return [Tensor("mlp.down_proj.bias", ModuleClass.MLP, shape)]


def _jais_positions(facts: Facts, _family: Family) -> list[Tensor]:
    """Learned positions, which the published models do without (ALiBi)."""
    if facts.word("position_embedding_type", "learned") == "alibi":
        return []
    shape = (facts.integer("max_position_embeddings"), facts.integer("hidden_size"))
    return [Tensor("transformer.wpe.weight", ModuleClass.EMBEDDING, shape)]


def _jais_form(facts: Facts) -> Family:
    """GPT-2's layers, whose MLP is gated where the activation says so."""
    names = replace(GPT2.names, gate="c_fc2")
    gated = facts.word("activation_function") == "swiglu"
    return replace(GPT2, names=names, gated=gated, positions=_jais_positions, by_class=None)


def _slopes(facts: Facts) -> list[Doubt]:
    facts.settle("embeddings_scale", "width_scale", "scale_qk_dot_by_d")
    reason = tr("its table of ALiBi slopes, one a head, is not counted")
    return [Doubt(Subject.WEIGHTS, reason, Direction.LOWER)]


def tie_unsaid(facts: Facts) -> list[Doubt]:
    """A doubt where the config leaves open whether head and embedding are one."""
    if "tie_word_embeddings" in facts.stated:
        return []
    reason = tr("whether its head is its embedding is not said: counted as a matrix of its own")
    return [Doubt(Subject.WEIGHTS, reason, Direction.UPPER)]


JAIS = Family(by_class=_jais_form, doubts=_slopes)
# Query, key and value without a bias, output and down with one.
TELECHAT = Family(
    names=Names(
        attention="self_attention", query="query", key="key_value", value="key_value",
        output="dense", embedding="transformer.word_embeddings", final_norm="transformer.ln_f",
    ),
    kv_heads=own_heads, o_bias=True, layer_extra=_down_bias, doubts=tie_unsaid,
)  # fmt: skip
_LAYERS_ALIKE = "llama"
"""``block_type`` of the layers that keep gate and up apart."""


def _olmo_kv(facts: Facts, _kind: str) -> int:
    if facts.flag("multi_query_attention"):
        return 1
    return _stated_kv(facts, "")


def _olmo_width(facts: Facts) -> int:
    """Width of the MLP: a block that is not Llama's states that of gate and up together."""
    ratio = facts.integer("mlp_ratio", 4)
    stated = facts.integer("mlp_hidden_size", ratio * facts.integer("hidden_size"))
    both = facts.word("block_type") != _LAYERS_ALIKE and _is_gated(facts)
    return stated // 2 if both else stated


def _is_gated(facts: Facts) -> bool:
    alike = facts.word("block_type") == _LAYERS_ALIKE
    return alike or facts.word("activation_type", "swiglu") == "swiglu"


def _olmo_doubts(facts: Facts) -> list[Doubt]:
    """What no published model of the class switches on."""
    keys = ("include_bias", "include_qkv_bias", "bias_for_layer_norm", "attention_layer_norm")
    stated = [key for key in keys if facts.flag(key)]
    facts.settle("block_group_size", "max_sequence_length", "alibi")
    if not stated:
        return []
    reason = tr("what {stated} adds to this type is not counted").format(stated=stated[0])
    return [Doubt(Subject.WEIGHTS, reason, Direction.LOWER)]


def _olmo_form(facts: Facts) -> Family:
    """OLMo's own code: rows of the table, gate, norms and tie are all stated in words of its own.

    Norms have a weight only where ``layer_norm_with_affine``.
    """
    vocab = facts.integer("vocab_size")
    return Family(
        names=Names(
            attention="attn", fused="att_proj", output="attn_out", mlp="", gate="ff_proj",
            up="up_proj" if _is_gated(facts) else "ff_proj", down="ff_out",
            embedding="model.transformer.wte", final_norm="model.transformer.ln_f",
        ),
        norms=("attn_norm", "ff_norm"), norm_weight=facts.flag("layer_norm_with_affine"),
        kv_heads=_olmo_kv, width=_olmo_width, gated=_is_gated(facts), bare_is_headless=False,
        embedding_extra=facts.integer("embedding_size", vocab) - vocab,
        head_rows="embedding_size", tied=facts.flag("weight_tying"), reads_tie=False,
    )  # fmt: skip


OLMO_OWN = Family(by_class=_olmo_form, doubts=_olmo_doubts)
LLADA = Family(by_class=_olmo_form, doubts=lambda f: [*_olmo_doubts(f), *diffuses(f)])

FAMILIES = {
    "bidirectional_pplx_qwen3": QWEN3_ENCODER, "Dream": DREAM, "hf_olmo": OLMO_OWN,
    "illada": ILLADA, "instella": INSTELLA, "internlm": INTERNLM, "jais": JAIS, "llada": LLADA,
    "llama_bidirec": LLAMA_ENCODER, "nanbeige": NANBEIGE, "orion": ORION, "ouro": OURO,
    "phi-msft": PHI_MSFT, "phi3small": PHI3_SMALL, "plamo3": PLAMO3, "RefinedWeb": REFINED_WEB,
    "solar": SOLAR, "telechat": TELECHAT,
}  # fmt: skip
