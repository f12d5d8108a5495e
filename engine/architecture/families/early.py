"""Decoders of 2018 to 2022 that are neither GPT-2 nor Llama, and what they keep of a sequence.

Source:
    transformers 5.24.0, the modelling file of each type.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from engine.architecture.families import attention
from engine.architecture.families.base import (
    DENSE,
    FULL,
    Family,
    Mixed,
    Names,
    matrix,
    norm,
    state_doubt,
    vector,
)
from engine.architecture.families.classic import GPT2, XGLM, own_heads
from engine.architecture.families.crossed import whole_heads
from engine.architecture.heads import first_class, head_of
from engine.architecture.spec import (
    AttentionKind,
    AttentionSpec,
    Direction,
    Doubt,
    ModuleClass,
    Sharding,
    Subject,
    Tensor,
)
from engine.words import tr

if TYPE_CHECKING:
    from engine.config.facts import Facts

_A, _E, _HEAD = ModuleClass.ATTENTION, ModuleClass.EMBEDDING, ModuleClass.LM_HEAD
_WHOLE, _COLUMN, _ROW = Sharding.REPLICATED, Sharding.COLUMN, Sharding.ROW
_KNOWN = ("Model", "WithLMHead", "ForCausalLM", "ForMaskedLM")


def _top_doubts(facts: Facts) -> list[Doubt]:
    """A class that puts something else than a language model's head on top."""
    name = first_class(facts.stated)
    if not name or name.endswith(_KNOWN):
        return []
    reason = tr("what {name} has on top of its layers is not known and not counted").format(
        name=name[:80]
    )
    return [Doubt(Subject.WEIGHTS, reason, Direction.LOWER)]


def _four_times(facts: Facts) -> int:
    return 4 * facts.integer("hidden_size")


def _offset_positions(facts: Facts, _family: Family) -> list[Tensor]:
    shape = (facts.integer("max_position_embeddings") + 2, facts.integer("hidden_size"))
    return [Tensor("biogpt.embed_positions.weight", _E, shape)]


BIOGPT = replace(
    XGLM, positions=_offset_positions, attention=None, width=None,
    names=replace(XGLM.names, embedding="biogpt.embed_tokens", final_norm="biogpt.layer_norm"),
)  # fmt: skip
CTRL = Family(
    names=Names(
        attention="multi_head_attention", query="Wq", key="Wk", value="Wv", output="dense",
        mlp="ffn", up="0", down="2", embedding="transformer.w", final_norm="transformer.layernorm",
    ),
    q_bias=True, o_bias=True, mlp_bias=True, gated=False, norms=("layernorm1", "layernorm2"),
    norm_bias=True, head_bias=True, width=lambda facts: facts.integer("dff"), kv_heads=own_heads,
    head_dim=whole_heads, tied=True,
)  # fmt: skip


def _uncached(facts: Facts, family: Family, kind: str) -> Mixed:
    """GPT reads the whole text again for each token."""
    mixed = attention.gqa(facts, replace(family, attention=None), kind)
    assert mixed.attention is not None  # noqa: S101 - gqa always has one
    return replace(mixed, attention=replace(mixed.attention, keeps_cache=False))


OPENAI_GPT = replace(
    GPT2, names=replace(GPT2.names, embedding="transformer.tokens_embed", final_norm=""),
    attention=_uncached, width=_four_times,
)  # fmt: skip

_LAST = "last"


def _japanese_kinds(facts: Facts) -> tuple[tuple[str, str], ...]:
    layers = facts.integer("num_hidden_layers")
    return ((FULL, DENSE),) * (layers - 1) + ((_LAST, DENSE),)


def _with_bias(facts: Facts, family: Family, kind: str) -> Mixed:
    mixed = attention.gqa(facts, family, kind)
    bias = vector("attention.dense_bias", _A, facts.integer("hidden_size"), _WHOLE)
    return replace(mixed, tensors=[*mixed.tensors, bias])


GPT_NEOX_JAPANESE = Family(
    names=Names(
        attention="attention", fused="query_key_value", output="dense", up="dense_h_to_4h",
        down="dense_4h_to_h", embedding="gpt_neox_japanese.embed_in",
        final_norm="gpt_neox_japanese.final_layer_norm",
    ),
    kinds=_japanese_kinds, mixers={_LAST: _with_bias}, gated=False, norm_bias=True, tied=True,
    kv_heads=own_heads, head_dim=whole_heads,
    width=lambda facts: facts.integer("intermediate_multiple_size") * facts.integer("hidden_size"),
)  # fmt: skip


def _xlm_outer(facts: Facts, _family: Family) -> list[Tensor]:
    hidden, languages = facts.integer("hidden_size"), facts.integer("n_langs")
    rows = facts.integer("max_position_embeddings")
    facts.settle("lang2id", "id2lang", "mask_index", "unk_index", "bos_index", "eos_index")
    facts.settle("lang_id")
    tensors = [Tensor("transformer.position_embeddings.weight", _E, (rows, hidden))]
    if languages > 1 and facts.flag("use_lang_emb", default=True):
        tensors.append(Tensor("transformer.lang_embeddings.weight", _E, (languages, hidden)))
    return tensors + norm("transformer.layer_norm_emb", hidden, bias=True)


def _xlm_doubts(facts: Facts) -> list[Doubt]:
    if not facts.flag("asm") or head_of(facts.stated) != "lm":
        return _top_doubts(facts)
    reason = tr(
        "the head of several sizes that asm stands for is not known: counted as a plain one"
    )
    return [Doubt(Subject.WEIGHTS, reason, Direction.EITHER)]


XLM = Family(
    names=Names(
        attention="attention", query="q_lin", key="k_lin", value="v_lin", output="out_lin",
        mlp="ffn", up="lin1", down="lin2", embedding="transformer.embeddings", final_norm="",
    ),
    q_bias=True, o_bias=True, mlp_bias=True, gated=False, norms=("layer_norm1", "layer_norm2"),
    norm_bias=True, head_bias=True, width=_four_times, kv_heads=own_heads, positions=_xlm_outer,
    head_dim=whole_heads, doubts=_xlm_doubts, tied=True,
)  # fmt: skip


def _cpm_attention(facts: Facts, family: Family, kind: str) -> Mixed:
    """Its prompt of learned tokens stands in front of every sequence."""
    mixed = attention.gqa(facts, replace(family, attention=None), kind)
    assert mixed.attention is not None  # noqa: S101 - gqa always has one
    learned = facts.integer("prompt_length")
    return replace(mixed, attention=replace(mixed.attention, prefix_tokens=learned))


def _cpm_outer(facts: Facts, _family: Family) -> list[Tensor]:
    hidden, kinds = facts.integer("hidden_size"), facts.integer("segment_types")
    prompts = facts.integer("prompt_types") * facts.integer("prompt_length")
    buckets = facts.integer("position_bias_num_buckets")
    heads = facts.integer("num_attention_heads")
    facts.settle("position_bias_max_distance")
    return [
        Tensor("cpmant.input_embedding.prompts", _E, (prompts, hidden)),
        Tensor("cpmant.segment_embedding.weight", _E, (kinds, hidden)),
        Tensor("cpmant.position_bias.relative_attention_bias", _A, (kinds**2 + buckets, heads)),
    ]


def _cpm_widths(facts: Facts, _kind: str) -> tuple[int, int]:
    width = facts.integer("dim_head")
    return width, width


CPMANT = Family(
    names=Names(
        attention="self_att.self_attention", query="project_q", key="project_k", value="project_v",
        output="attention_out", mlp="ffn.ffn", gate="w_in.w_0", up="w_in.w_1", down="w_out",
        embedding="cpmant.input_embedding", final_norm="cpmant.encoder.output_layernorm",
    ),
    attention=_cpm_attention, head_dim=_cpm_widths, kv_heads=own_heads, positions=_cpm_outer,
    norms=("self_att.layernorm_before_attention", "ffn.layernorm_before_ffn"), tied=False,
    width=lambda facts: facts.integer("dim_ff"), reads_tie=False,
)  # fmt: skip


def _xlnet_attention(facts: Facts, _family: Family, _kind: str) -> Mixed:
    """It keeps the hidden state of a token, not its keys and values.

    Raises:
        ConfigError: the heads do not divide the hidden size.
    """
    hidden, heads = facts.integer("hidden_size"), facts.integer("num_attention_heads")
    if hidden % heads:
        raise facts.bad(
            "n_head",
            heads,
            tr("a divisor of the hidden size ({hidden}) is needed").format(hidden=hidden),
        )
    width = hidden // heads
    facts.settle("d_head")
    tensors = [Tensor(f"rel_attn.{name}", _A, (hidden, heads, width)) for name in "qkvor"]
    tensors += [Tensor(f"rel_attn.r_{name}_bias", _A, (heads, width)) for name in "rsw"]
    tensors.append(Tensor("rel_attn.seg_embed", _A, (2, heads, width)))
    last = facts.count("mem_len")
    kind = AttentionKind.SLIDING if last else AttentionKind.FULL
    kept = facts.flag("use_mems_eval", default=True)
    # A window holds one token less than it is wide: mem_len does not count the newest.
    window = last + 1 if last else 0
    spec = AttentionSpec(kind, heads, heads, width, 0, window, keeps_cache=kept)
    return Mixed(tensors, spec)


def _xlnet_outer(facts: Facts, _family: Family) -> list[Tensor]:
    return [Tensor("transformer.mask_emb", _E, (1, 1, facts.integer("hidden_size")))]


def _xlnet_doubts(facts: Facts) -> list[Doubt]:
    found = _top_doubts(facts)
    if facts.count("reuse_len"):
        found += state_doubt(tr("with reuse_len it keeps only the first tokens of each part"))
    return found


XLNET = Family(
    names=Names(
        mlp="ff", up="layer_1", down="layer_2", embedding="transformer.word_embedding",
        final_norm="",
    ),
    attention=_xlnet_attention, mlp_bias=True, gated=False, norm_bias=True, head_bias=True,
    norms=("rel_attn.layer_norm", "ff.layer_norm"), positions=_xlnet_outer, tied=True,
    width=lambda facts: facts.integer("d_inner"), doubts=_xlnet_doubts,
)  # fmt: skip

_LOCAL, _HASHED = "local", "lsh"


def _reformer_kinds(facts: Facts) -> tuple[tuple[str, str], ...]:
    """The kind of every layer.

    Raises:
        ConfigError: there is none, or an unknown one.
    """
    kinds = facts.words("attn_layers") or ()
    if not kinds or not set(kinds) <= {_LOCAL, _HASHED}:
        raise facts.bad("attn_layers", kinds, tr("'local' or 'lsh' for each layer is needed"))
    count = facts.integer("num_hidden_layers", len(kinds))
    if count > len(kinds):
        raise facts.bad(
            "attn_layers",
            kinds,
            tr("an entry for each of {count} layers is needed").format(count=count),
        )
    return tuple((kind, DENSE) for kind in kinds[:count])


def _reformer_attention(facts: Facts, _family: Family, kind: str) -> Mixed:
    """Both kinds keep the hidden state of a token; the hashed one has keys that are its queries."""
    hidden, heads = facts.integer("hidden_size"), facts.integer("num_attention_heads")
    rows = heads * facts.integer("attention_head_size")
    names = ("query", "key", "value") if kind == _LOCAL else ("query_key", "value")
    path = "attention.self_attention."
    tensors = [t for n in names for t in matrix(path + n, _A, (rows, hidden), _COLUMN)]
    tensors += matrix("attention.output.dense", _A, (hidden, rows), _ROW)
    facts.settle(
        "num_buckets", "chunk_size_lm_head", "lsh_attn_chunk_length", "local_attn_chunk_length",
        "lsh_num_chunks_before", "lsh_num_chunks_after", "local_num_chunks_before",
        "local_num_chunks_after", "num_hashes",
    )  # fmt: skip
    return Mixed(tensors, AttentionSpec(AttentionKind.FULL, heads, 1, hidden, 0))


def _reformer_outer(facts: Facts, _family: Family) -> list[Tensor]:
    """Positions, by axis where the config says so, and a head over both residual streams.

    Raises:
        ConfigError: the axes do not fit together.
    """
    hidden, vocab = facts.integer("hidden_size"), facts.integer("vocab_size")
    path = "reformer.embeddings.position_embeddings"
    rows = facts.integer("max_position_embeddings")
    lengths = facts.integers("axial_pos_shape", 1) or ()
    widths = facts.integers("axial_pos_embds_dim", 1) or ()
    tensors = [Tensor(f"{path}.embedding.weight", _E, (rows, hidden))]
    if facts.flag("axial_pos_embds", default=True):
        if sum(widths) != hidden or len(widths) > len(lengths):
            wanted = tr("widths that add up to {hidden}, one for each length, are needed").format(
                hidden=hidden
            )
            raise facts.bad("axial_pos_embds_dim", widths, wanted)
        tensors = [
            Tensor(f"{path}.weights.{axis}", _E, (lengths[axis], width))
            for axis, width in enumerate(widths)
        ]
    tensors += norm("reformer.encoder.layer_norm", 2 * hidden, bias=True)
    if head_of(facts.stated) != "lm":
        return tensors
    bias = Tensor("lm_head.bias", _HEAD, (vocab,), 1, Sharding.VOCAB)
    head = matrix("lm_head.decoder", _HEAD, (vocab, 2 * hidden), Sharding.VOCAB, bias=True)
    return [*tensors, bias, *head]


def _reformer_doubts(facts: Facts) -> list[Doubt]:
    found = _top_doubts(facts)
    if _HASHED in (facts.words("attn_layers") or ()):
        length = facts.count("lsh_attn_chunk_length")
        reason = tr(
            "prompts of more than {length} tokens are hashed: the hashes are not counted"
        ).format(length=length)
        found += state_doubt(reason, Direction.LOWER)
    return found


REFORMER = Family(
    names=Names(
        mlp="feed_forward", up="dense.dense", down="output.dense", final_norm="",
        embedding="reformer.embeddings.word_embeddings",
    ),
    kinds=_reformer_kinds, mixers={_LOCAL: _reformer_attention, _HASHED: _reformer_attention},
    mlp_bias=True, gated=False, norms=("attention.layer_norm", "feed_forward.layer_norm"),
    norm_bias=True, width=lambda facts: facts.integer("feed_forward_size"), has_head=False,
    positions=_reformer_outer, doubts=_reformer_doubts, tied=False, reads_tie=False,
)  # fmt: skip

FAMILIES = {
    "biogpt": BIOGPT, "ctrl": CTRL, "openai-gpt": OPENAI_GPT, "xlm": XLM, "cpmant": CPMANT,
    "gpt_neox_japanese": GPT_NEOX_JAPANESE, "xlnet": XLNET, "reformer": REFORMER,
}  # fmt: skip
