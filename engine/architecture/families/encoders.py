"""Encoders: layers that attend both ways and keep nothing, unless the class decodes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from engine.architecture.families import attention, feed
from engine.architecture.families.base import NONE, Family, Mixed, Names, matrix, norm
from engine.architecture.heads import first_class, labels_of
from engine.architecture.spec import ModuleClass, Sharding, Tensor

if TYPE_CHECKING:
    from engine.config.facts import Facts

_E, _HEAD, _TOP = ModuleClass.EMBEDDING, ModuleClass.LM_HEAD, ModuleClass.OTHER
_WHOLE = Sharding.REPLICATED
_DECODERS = ("LMHeadModel", "ForCausalLM")


def _encode(facts: Facts, family: Family, kind: str) -> Mixed:
    mixed = attention.gqa(facts, replace(family, attention=None), kind)
    assert mixed.attention is not None  # noqa: S101 - gqa always has one
    decodes = facts.flag("is_decoder") or first_class(facts.stated).endswith(_DECODERS)
    return Mixed(mixed.tensors, replace(mixed.attention, keeps_cache=decodes))


def _tables(facts: Facts, width: int) -> list[Tensor]:
    positions = facts.integer("max_position_embeddings")
    kinds = facts.integer("type_vocab_size")
    return [
        Tensor("embeddings.position_embeddings.weight", _E, (positions, width)),
        Tensor("embeddings.token_type_embeddings.weight", _E, (kinds, width)),
        *norm("embeddings.LayerNorm", width, bias=True),
    ]


def _bert(facts: Facts, _family: Family) -> list[Tensor]:
    hidden, vocab = facts.integer("hidden_size"), facts.integer("vocab_size")
    name = first_class(facts.stated)
    tensors = _tables(facts, hidden)
    pooler = matrix("pooler.dense", _TOP, (hidden, hidden), _WHOLE, bias=True)
    if name.endswith(("ForMaskedLM", "LMHeadModel")):
        return [*tensors, *_transform("cls.predictions", hidden, vocab)]
    if name.endswith("ForSequenceClassification"):
        labels = (labels_of(facts), hidden)
        return [*tensors, *pooler, *matrix("classifier", _TOP, labels, _WHOLE, bias=True)]
    return tensors + pooler


def _roberta(facts: Facts, _family: Family) -> list[Tensor]:
    hidden, vocab = facts.integer("hidden_size"), facts.integer("vocab_size")
    name = first_class(facts.stated)
    tensors = _tables(facts, hidden)
    dense = matrix("classifier.dense", _TOP, (hidden, hidden), _WHOLE, bias=True)
    if name.endswith(("ForMaskedLM", "ForCausalLM")):
        return [*tensors, *_transform("lm_head", hidden, vocab)]
    if name.endswith("ForSequenceClassification"):
        labels = (labels_of(facts), hidden)
        return [*tensors, *dense, *matrix("classifier.out_proj", _TOP, labels, _WHOLE, bias=True)]
    return tensors + matrix("pooler.dense", _TOP, (hidden, hidden), _WHOLE, bias=True)


def _transform(path: str, hidden: int, vocab: int) -> list[Tensor]:
    """The head of a masked language model; its matrix is the embedding."""
    return [
        *matrix(f"{path}.dense", _HEAD, (hidden, hidden), _WHOLE, bias=True),
        *norm(f"{path}.layer_norm", hidden, bias=True),
        Tensor(f"{path}.bias", _HEAD, (vocab,), 1, Sharding.VOCAB),
    ]


_NAMES = Names(
    attention="attention", query="self.query", key="self.key", value="self.value",
    output="output.dense", mlp="", up="intermediate.dense", down="output.dense",
    embedding="embeddings.word_embeddings", final_norm="",
)  # fmt: skip
BERT = Family(
    names=_NAMES, attention=_encode, q_bias=True, o_bias=True, mlp_bias=True, gated=False,
    norms=("attention.output.LayerNorm", "output.LayerNorm"), norm_bias=True, has_head=False,
    positions=_bert, tied=True,
)  # fmt: skip
ROBERTA = replace(BERT, positions=_roberta)

_SHARED = "shared weights"


def _albert_kinds(facts: Facts) -> tuple[tuple[str, str], ...]:
    return ((_SHARED, NONE),) * facts.integer("num_hidden_layers")


def _without_weights(facts: Facts, family: Family, kind: str) -> Mixed:
    return Mixed([], _encode(facts, family, kind).attention)


def _albert(facts: Facts, family: Family) -> list[Tensor]:
    """The groups of layers, stored once however many layers run them, and the head."""
    hidden, vocab = facts.integer("hidden_size"), facts.integer("vocab_size")
    width = facts.integer("embedding_size")
    groups = facts.integer("num_hidden_groups", 1) * facts.integer("inner_group_num", 1)
    own = replace(family, norm_weight=True)
    layer = [
        *_encode(facts, own, "").tensors,
        *feed.mlp_tensors(facts, own, facts.integer("intermediate_size")),
        *norm("attention.LayerNorm", hidden, bias=True),
        *norm("full_layer_layer_norm", hidden, bias=True),
    ]
    tensors = [
        *_tables(facts, width),
        *matrix("encoder.mapping_in", ModuleClass.OTHER, (hidden, width), _WHOLE, bias=True),
        *(replace(tensor, copies=groups) for tensor in layer),
    ]
    if first_class(facts.stated).endswith("ForMaskedLM"):
        return [
            *tensors,
            *matrix("predictions.dense", _HEAD, (width, hidden), _WHOLE, bias=True),
            *norm("predictions.LayerNorm", width, bias=True),
            Tensor("predictions.bias", _HEAD, (vocab,), 1, Sharding.VOCAB),
        ]
    return tensors + matrix("pooler", _TOP, (hidden, hidden), _WHOLE, bias=True)


ALBERT = replace(
    BERT, kinds=_albert_kinds, mixers={_SHARED: _without_weights}, positions=_albert,
    embedding_width="embedding_size", norm_weight=False,
)  # fmt: skip

FAMILIES = {
    "bert": BERT, "roberta": ROBERTA, "xlm-roberta": ROBERTA, "camembert": ROBERTA,
    "albert": ALBERT,
}  # fmt: skip
