"""Encoders that embed and classify text: layers like BERT's and Llama's that keep nothing.

Source:
    transformers 5.24.0, ``distilbert``, ``mpnet``, ``nomic_bert``, ``gte``, ``modernbert``,
    ``jina_embeddings_v3``, ``eurobert``, ``deberta_v2`` and ``convbert``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from engine.architecture.families.base import (
    DENSE,
    FULL,
    SPARSE,
    Family,
    Fed,
    Mixed,
    Moe,
    Names,
    matrix,
    norm,
    vector,
)
from engine.architecture.families.dense import LLAMA
from engine.architecture.families.masked import (
    BERT,
    CLASSES,
    LANGUAGE,
    TAGS,
    Masked,
    use_of,
)
from engine.architecture.families.published import both_ways
from engine.architecture.heads import first_class, labels_of
from engine.architecture.spec import ModuleClass, Sharding, Tensor

if TYPE_CHECKING:
    from engine.config.facts import Facts

_A, _E, _MLP, _TOP = (
    ModuleClass.ATTENTION, ModuleClass.EMBEDDING, ModuleClass.MLP, ModuleClass.OTHER,
)  # fmt: skip
_HEAD, _WHOLE = ModuleClass.LM_HEAD, Sharding.REPLICATED


def _like_bert(masked: Masked, names: Names) -> Family:
    return replace(BERT, names=names, positions=masked.tensors, embedding_width=masked.width)


def _hidden_dim(facts: Facts) -> int:
    return facts.integer("hidden_dim")


DISTILBERT = replace(
    _like_bert(
        Masked(kinds=False, pools=(), own_bias=False),
        Names(
            attention="attention", query="q_lin", key="k_lin", value="v_lin", output="out_lin",
            mlp="ffn", up="lin1", down="lin2", embedding="embeddings.word_embeddings",
            final_norm="",
        ),
    ),
    norms=("sa_layer_norm", "output_layer_norm"), width=_hidden_dim,
)  # fmt: skip


def _distances(facts: Facts) -> list[Tensor]:
    """MPNet's bias for each distance and head."""
    rows = facts.integer("relative_attention_num_buckets", 32)
    shape = (rows, facts.integer("num_attention_heads"))
    return [Tensor("encoder.relative_attention_bias.weight", _E, shape)]


DPR = _like_bert(Masked(head="cls.predictions", pools=()), BERT.names)
MPNET = _like_bert(
    Masked(kinds=False, further=_distances),
    replace(BERT.names, query="attn.q", key="attn.k", value="attn.v", output="attn.o"),
)
_ROTATED = Names(embedding="embeddings.word_embeddings", final_norm="")
_AFTER = ("post_attention_layernorm", "post_mlp_layernorm")


def _jina_adapters(facts: Facts) -> list[Tensor]:
    """Adapters of low rank that the first files store for each task, on every matrix."""
    tasks = len(facts.words("lora_adaptations") or ())
    if not tasks:
        return []
    hidden, width = facts.integer("hidden_size"), facts.integer("intermediate_size")
    layers, rank = facts.integer("num_hidden_layers"), facts.integer("lora_rank")
    matrices = (
        ("embeddings.word_embeddings", facts.integer("vocab_size"), hidden, 1),
        ("embeddings.token_type_embeddings", facts.integer("type_vocab_size"), hidden, 1),
        ("layers.*.mixer.Wqkv", 3 * hidden, hidden, layers),
        ("layers.*.mixer.out_proj", hidden, hidden, layers),
        ("layers.*.mlp.fc1", width, hidden, layers),
        ("layers.*.mlp.fc2", hidden, width, layers),
        ("pooler.dense", hidden, hidden, 1),
    )
    return [
        Tensor(f"{name}.lora_{side}", _TOP, (size, rank), tasks * copies)
        for name, rows, columns, copies in matrices
        for side, size in (("A", columns), ("B", rows))
    ]


JINA_V3 = replace(
    _like_bert(
        Masked(positions=False, further=_jina_adapters), replace(_ROTATED, up="fc1", down="fc2")
    ),
    norms=_AFTER, harmless=("matryoshka_dimensions", "task_instructions", "truncate_dim"),
)  # fmt: skip


def _kinds_if_any(facts: Facts) -> list[Tensor]:
    rows = facts.integer("type_vocab_size", low=0)
    if not rows:
        return []
    shape = (rows, facts.integer("hidden_size"))
    return [Tensor("embeddings.token_type_embeddings.weight", _E, shape)]


def _down_bias(facts: Facts, _family: Family, _mixer: str, _feed: str) -> list[Tensor]:
    return [vector("mlp.down_proj.bias", _MLP, facts.integer("hidden_size"), _WHOLE)]


_POOLS_CLASSES = Masked(
    positions=False, kinds=False, further=_kinds_if_any, pools=(CLASSES,), dense_classifier=False
)
GTE = replace(
    _like_bert(replace(_POOLS_CLASSES, own_bias=False), _ROTATED), gated=True, mlp_bias=False,
    norms=_AFTER, layer_extra=_down_bias,
)  # fmt: skip
_NOMIC = replace(_POOLS_CLASSES, head="cls.predictions", own_bias=False)


def _nomic_feeds(facts: Facts, layers: int) -> tuple[str, ...]:
    """Experts in every second layer or so, where the model has any."""
    step = facts.count("moe_every_n_layers")
    if not step or not facts.count("num_experts"):
        return (DENSE,) * layers
    return tuple(SPARSE if i % step == 1 else DENSE for i in range(layers))


def _one_bias(facts: Facts, _family: Family) -> list[Tensor]:
    return [vector("mlp.experts.bias", ModuleClass.EXPERTS, facts.integer("hidden_size"), _WHOLE)]


def _nomic_form(facts: Facts) -> Family:
    """Gated where its own code or transformers' has the gate, with the biases that are stated."""
    facts.settle("mlp_fc2_bias", "max_trained_positions", "num_shared_experts", "ffn_div")
    gated = facts.word("activation_function", "swiglu") in ("swiglu", "geglu", "glu")
    return replace(
        _like_bert(_NOMIC, _ROTATED), gated=gated, q_bias="qkv_proj_bias", o_bias="qkv_proj_bias",
        mlp_bias="mlp_fc1_bias", norms=_AFTER, feed_pattern=_nomic_feeds, head_dim=None,
        moe=Moe(
            active="moe_top_k", width="intermediate_size", container="mlp.experts.mlp",
            router="mlp.router.layer", gated=False, further=_one_bias,
        ),
    )  # fmt: skip


NOMIC_BERT = Family(by_class=_nomic_form)
_UNNORMED = "attention without a norm"


def _modern_kinds(facts: Facts) -> tuple[tuple[str, str], ...]:
    """The embedding's norm serves the first layer. Windows matter to nothing that is kept."""
    facts.settle("layer_types", "local_attention", "global_attn_every_n_layers", "sliding_window")
    layers = facts.integer("num_hidden_layers")
    return ((_UNNORMED, DENSE), *(((FULL, DENSE),) * (layers - 1)))


def _modern_norm(facts: Facts, _family: Family, mixer: str, _feed: str) -> list[Tensor]:
    if mixer == _UNNORMED:
        return []
    return norm("attn_norm", facts.integer("hidden_size"), bias=facts.flag("norm_bias"))


def _modern_outer(facts: Facts, _family: Family) -> list[Tensor]:
    """The embedding's norm, and the head: a dense layer and a norm before words or classes."""
    hidden, use = facts.integer("hidden_size"), use_of(facts)
    biased = facts.flag("norm_bias")
    found = norm("embeddings.norm", hidden, bias=biased)
    if use not in (LANGUAGE, CLASSES, TAGS):
        return found
    bias = facts.flag("classifier_bias")
    found += matrix("head.dense", _TOP, (hidden, hidden), _WHOLE, bias=bias)
    found += norm("head.norm", hidden, bias=biased)
    if use != LANGUAGE:
        return found + matrix("classifier", _TOP, (labels_of(facts), hidden), _WHOLE, bias=True)
    vocab = facts.integer("vocab_size")
    if facts.flag("decoder_bias", default=True):
        found.append(Tensor("decoder.bias", _HEAD, (vocab,), 1, Sharding.VOCAB))
    if not facts.flag("tie_word_embeddings", default=True):
        found += matrix("decoder", _HEAD, (vocab, hidden), Sharding.VOCAB)
    return found


MODERN_BERT = replace(
    BERT,
    names=Names(
        attention="attn", fused="Wqkv", output="Wo", gate="Wi", down="Wo",
        embedding="embeddings.tok_embeddings", final_norm="final_norm",
    ),
    kinds=_modern_kinds, mixers={_UNNORMED: both_ways}, attention=both_ways,
    layer_extra=_modern_norm, positions=_modern_outer, norms=("mlp_norm",), norm_bias="norm_bias",
    q_bias="attention_bias", o_bias="attention_bias", mlp_bias="mlp_bias", gated=True,
    gate_up_fused=True,
)  # fmt: skip


def _euro_classes(facts: Facts, _family: Family) -> list[Tensor]:
    if use_of(facts) != CLASSES:
        return []
    hidden = facts.integer("hidden_size")
    dense = matrix("dense", _TOP, (hidden, hidden), _WHOLE, bias=True)
    return [*dense, vector("classifier.bias", _TOP, labels_of(facts), _WHOLE)]


EURO_BERT = replace(LLAMA, attention=both_ways, positions=_euro_classes, head_bias="mlp_bias")


def _deberta_outer(facts: Facts) -> list[Tensor]:
    """What positions and distances have: tables, and a convolution in the large ones."""
    hidden = facts.integer("hidden_size")
    width = facts.integer("embedding_size", hidden)
    found = norm("embeddings.LayerNorm", hidden, bias=True)
    longest = facts.integer("max_position_embeddings")
    if facts.flag("position_biased_input", default=True):
        found.append(Tensor("embeddings.position_embeddings.weight", _E, (longest, width)))
    kinds = facts.integer("type_vocab_size", 0, low=0)
    if kinds:
        found.append(Tensor("embeddings.token_type_embeddings.weight", _E, (kinds, width)))
    if width != hidden:
        found += matrix("embeddings.embed_proj", _TOP, (hidden, width), _WHOLE)
    buckets = facts.integer("position_buckets", -1, low=-1)
    furthest = facts.integer("max_relative_positions", -1, low=-1)
    if facts.flag("relative_attention"):
        rows = 2 * (buckets if buckets > 0 else furthest if furthest > 0 else longest)
        found.append(Tensor("encoder.rel_embeddings.weight", _E, (rows, hidden)))
    if "layer_norm" in facts.word("norm_rel_ebd", "none"):
        found += norm("encoder.LayerNorm", hidden, bias=True)
    kernel, groups = facts.count("conv_kernel_size"), facts.integer("conv_groups", 1)
    if kernel:
        found += [
            Tensor("encoder.conv.conv.weight", _TOP, (hidden, hidden // groups, kernel)),
            vector("encoder.conv.conv.bias", _TOP, hidden, _WHOLE),
            *norm("encoder.conv.LayerNorm", hidden, bias=True),
        ]
    return found


def _of_distances(facts: Facts, _family: Family, _mixer: str, _feed: str) -> list[Tensor]:
    """Projections of the distances where queries and keys don't share theirs."""
    if not facts.flag("relative_attention") or facts.flag("share_att_key"):
        return []
    hidden, kinds = facts.integer("hidden_size"), facts.raw("pos_att_type") or ()
    found: list[Tensor] = []
    for kind, name in (("c2p", "pos_key_proj"), ("p2c", "pos_query_proj")):
        if isinstance(kinds, str | list | tuple) and kind in kinds:
            found += matrix(f"attention.self.{name}", _A, (hidden, hidden), _WHOLE, bias=True)
    return found


DEBERTA_V2 = replace(
    _like_bert(
        Masked(
            width="embedding_size", positions=False, kinds=False, embedding_norm=False,
            further=_deberta_outer, head="cls.predictions", head_width="embedding_size",
            pools=(CLASSES,), dense_classifier=False,
        ),
        replace(BERT.names, query="self.query_proj", key="self.key_proj", value="self.value_proj"),
    ),
    layer_extra=_of_distances, harmless=("pooler_hidden_size",),
)  # fmt: skip


def _conv_attention(facts: Facts, family: Family, kind: str) -> Mixed:
    """Half of the heads attend; for the others a convolution of the keys mixes the tokens."""
    mixed = both_ways(facts, family, kind)
    hidden, heads = facts.integer("hidden_size"), facts.integer("num_attention_heads")
    left = max(heads // facts.integer("head_ratio", 2), 1)
    inner, kernel = hidden // left // 2 * left, facts.integer("conv_kernel_size", 9)
    path, whole = "attention.self.", _WHOLE
    tensors = [
        tensor
        for name in ("query", "key", "value", "conv_out_layer")
        for tensor in matrix(path + name, _A, (inner, hidden), whole, bias=True)
    ]
    tensors += [
        Tensor(path + "key_conv_attn_layer.depthwise.weight", _A, (hidden, 1, kernel)),
        Tensor(path + "key_conv_attn_layer.pointwise.weight", _A, (inner, hidden, 1)),
        vector(path + "key_conv_attn_layer.bias", _A, inner, whole),
        *matrix(path + "conv_kernel_layer", _A, (left * kernel, inner), whole, bias=True),
        *matrix("attention.output.dense", _A, (hidden, hidden), whole, bias=True),
    ]
    return replace(mixed, tensors=tensors)


def _grouped(facts: Facts, _family: Family, _kind: str) -> Fed:
    """An MLP whose matrices fall into groups."""
    hidden, width = facts.integer("hidden_size"), facts.integer("intermediate_size")
    groups = facts.integer("num_groups", 1)
    tensors: list[Tensor] = []
    for name, (into, of) in (("intermediate", (width, hidden)), ("output", (hidden, width))):
        tensors += [
            Tensor(f"{name}.dense.weight", _MLP, (into, of // groups), 1, _WHOLE, linear=True),
            vector(f"{name}.dense.bias", _MLP, into, _WHOLE),
        ]
    return Fed(tensors, width)


def _conv_projected(facts: Facts) -> list[Tensor]:
    hidden, width = facts.integer("hidden_size"), facts.integer("embedding_size")
    if width == hidden:
        return []
    return matrix("embeddings_project", _TOP, (hidden, width), _WHOLE, bias=True)


CONV_BERT = replace(
    _like_bert(
        Masked(
            width="embedding_size", further=_conv_projected, own_bias=False, pools=(),
            head="generator_lm_head", head_width="embedding_size",
        ),
        BERT.names,
    ),
    attention=_conv_attention, feeds={DENSE: _grouped},
)  # fmt: skip


def _neo_width(facts: Facts) -> int:
    """Two thirds of the stated width, rounded up to a multiple of 8."""
    return -(-int(2 * facts.integer("intermediate_size") / 3) // 8) * 8


def _neo_head(facts: Facts, _family: Family) -> list[Tensor]:
    """A head of its own, with a bias, in all but the bare class."""
    facts.settle("max_length")
    if first_class(facts.stated) == "NeoBERT":
        return []
    shape = (facts.integer("vocab_size"), facts.integer("hidden_size"))
    return matrix("decoder", _HEAD, shape, Sharding.VOCAB, bias=True)


# chandar-lab/NeoBERT, modeling_neobert.py
NEO_BERT = Family(
    names=Names(
        attention="", fused="qkv", output="wo", mlp="ffn", gate="w12", down="w3",
        embedding="encoder", final_norm="layer_norm",
    ),
    attention=both_ways, gate_up_fused=True, norms=("attention_norm", "ffn_norm"),
    width=_neo_width, positions=_neo_head, has_head=False,
)  # fmt: skip

FAMILIES = {
    "distilbert": DISTILBERT, "mpnet": MPNET, "jina_embeddings_v3": JINA_V3, "gte": GTE,
    "nomic_bert": NOMIC_BERT, "modernbert": MODERN_BERT, "eurobert": EURO_BERT,
    "deberta-v2": DEBERTA_V2, "dpr": DPR, "convbert": CONV_BERT, "neobert": NEO_BERT,
}  # fmt: skip
