"""Encoders: layers that attend both ways and keep nothing, unless the class decodes.

Source:
    transformers 5.24.0, ``bert``, ``roberta`` and the types made after them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from engine.architecture.families import attention, feed
from engine.architecture.families.base import NONE, Family, Mixed, Names, matrix, norm
from engine.architecture.families.classic import own_heads
from engine.architecture.families.crossed import crossed, reading_doubts, whole_heads
from engine.architecture.heads import first_class, labels_of
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
    from collections.abc import Callable

    from engine.config.facts import Facts

_E, _HEAD, _TOP = ModuleClass.EMBEDDING, ModuleClass.LM_HEAD, ModuleClass.OTHER
_WHOLE = Sharding.REPLICATED
_DECODERS = ("LMHeadModel", "ForCausalLM", "GenerationDecoder")
BARE, LANGUAGE, CLASSES, TAGS = "bare", "language", "classes", "tags"
_CROSS = Names(
    attention="crossattention", query="self.query", key="self.key", value="self.value",
    output="output.dense",
)  # fmt: skip


def use_of(facts: Facts) -> str:
    """What the class does with the layers; empty where that is not known.

    Where no class is stated it is the language model, as for decoders. Below a root the class is
    the root's choice, whatever the part was published with.
    """
    name = first_class(facts.stated)
    if facts.path:
        is_language = name == "AutoModelForCausalLM" or facts.flag("is_decoder")
        return LANGUAGE if is_language else BARE
    if not name or name.endswith(("ForMaskedLM", *_DECODERS)):
        return LANGUAGE
    if name.endswith("ForSequenceClassification"):
        return CLASSES
    if name.endswith("ForTokenClassification"):
        return TAGS
    return BARE if name.endswith(("Model", "Encoder")) else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Masked:
    """What an encoder has around its layers. The defaults are RoBERTa's."""

    width: str = "hidden_size"
    """Key of the width of the embeddings."""
    positions: bool = True
    kinds: bool = True
    """Whether it has an embedding of token types."""
    embedding_norm: bool = True
    further: Callable[[Facts], list[Tensor]] | None = None
    """Further tensors outside the layers."""
    head: str = "lm_head"
    """Module of the language model's head."""
    head_width: str = "hidden_size"
    """Key of the width that the head's matrix reads."""
    transforms: bool = True
    """Whether a dense layer and a norm come before the head's matrix."""
    own_bias: bool = True
    """Whether head and matrix name one bias each, which tied weights make one."""
    ties: bool = True
    pools: tuple[str, ...] = (BARE,)
    """Uses in which it pools the first token."""
    dense_classifier: bool = True
    """Whether a dense layer comes before the classes."""

    def tensors(self, facts: Facts, _family: Family) -> list[Tensor]:
        """All that is outside the layers, but the word embeddings."""
        hidden = facts.integer("hidden_size")
        use = use_of(facts)
        found = _tables(facts, self)
        if self.further:
            found += self.further(facts)
        if use in self.pools:
            found += matrix("pooler.dense", _TOP, (hidden, hidden), _WHOLE, bias=True)
        if use == LANGUAGE:
            return found + self._language(facts)
        if use in (CLASSES, TAGS):
            dense = self.dense_classifier and use == CLASSES
            if dense:
                found += matrix("classifier.dense", _TOP, (hidden, hidden), _WHOLE, bias=True)
            out = "classifier.out_proj" if dense else "classifier"
            found += matrix(out, _TOP, (labels_of(facts), hidden), _WHOLE, bias=True)
        return found

    def _language(self, facts: Facts) -> list[Tensor]:
        hidden, vocab = facts.integer("hidden_size"), facts.integer("vocab_size")
        width = facts.integer(self.head_width, hidden)
        found: list[Tensor] = []
        if self.transforms:
            found += matrix(f"{self.head}.dense", _HEAD, (width, hidden), _WHOLE, bias=True)
            found += norm(f"{self.head}.layer_norm", width, bias=True)
        tied = self.ties and facts.flag("tie_word_embeddings", default=True)
        biases = ("bias", "decoder.bias") if self.own_bias and not tied else ("bias",)
        found += [Tensor(f"{self.head}.{b}", _HEAD, (vocab,), 1, Sharding.VOCAB) for b in biases]
        if not tied:
            found += matrix(f"{self.head}.decoder", _HEAD, (vocab, width), Sharding.VOCAB)
        return found


def _tables(facts: Facts, masked: Masked) -> list[Tensor]:
    width = facts.integer(masked.width, facts.integer("hidden_size"))
    found: list[Tensor] = []
    if masked.positions:
        rows = facts.integer("max_position_embeddings")
        found.append(Tensor("embeddings.position_embeddings.weight", _E, (rows, width)))
    if masked.kinds:
        kinds = facts.integer("type_vocab_size", low=0)
        found.append(Tensor("embeddings.token_type_embeddings.weight", _E, (kinds, width)))
    if masked.embedding_norm:
        found += norm("embeddings.LayerNorm", width, bias=True)
    return found


def _encode(facts: Facts, family: Family, kind: str) -> Mixed:
    """Self-attention and, in a decoder that asks for it, attention over an encoder's tokens.

    Raises:
        ConfigError: an encoder with cross-attention, which the classes refuse.
    """
    own = replace(family, attention=None)
    mixed = attention.gqa(facts, own, kind)
    assert mixed.attention is not None  # noqa: S101 - gqa always has one
    is_decoder = facts.flag("is_decoder")
    decodes = is_decoder or first_class(facts.stated).endswith(_DECODERS)
    kept = replace(mixed, attention=replace(mixed.attention, keeps_cache=decodes))
    if facts.flag("add_cross_attention") and not is_decoder:
        raise facts.bad(
            "add_cross_attention", value=True, wanted=tr("is_decoder has to be true too")
        )
    return crossed(facts, own, kept, _CROSS, "crossattention.output.LayerNorm")


_NAMES = Names(
    attention="attention", query="self.query", key="self.key", value="self.value",
    output="output.dense", mlp="", up="intermediate.dense", down="output.dense",
    embedding="embeddings.word_embeddings", final_norm="",
)  # fmt: skip


def _doubts(facts: Facts) -> list[Doubt]:
    """A class whose head has no rule: the head is small, and not counted."""
    if use_of(facts):
        return reading_doubts(facts)
    name = first_class(facts.stated)[:80]
    reason = tr("what {name} has on top of its layers is not known and not counted").format(
        name=name
    )
    return [Doubt(Subject.WEIGHTS, reason, Direction.LOWER)]


def _family(masked: Masked) -> Family:
    return Family(
        names=_NAMES, attention=_encode, q_bias=True, o_bias=True, mlp_bias=True, gated=False,
        norms=("attention.output.LayerNorm", "output.LayerNorm"), norm_bias=True, has_head=False,
        head_dim=whole_heads, kv_heads=own_heads,
        embedding_width=masked.width, positions=masked.tensors, tied=True, doubts=_doubts,
    )  # fmt: skip


def _final_norm(facts: Facts) -> list[Tensor]:
    return norm("encoder.LayerNorm", facts.integer("hidden_size"), bias=True)


def _tasks(facts: Facts) -> list[Tensor]:
    """ERNIE's embedding of tasks."""
    rows = facts.integer("task_type_vocab_size")
    if not facts.flag("use_task_id"):
        return []
    shape = (rows, facts.integer("hidden_size"))
    return [Tensor("embeddings.task_type_embeddings.weight", _E, shape)]


def _sounds_and_shapes(facts: Facts) -> list[Tensor]:
    """RoCBert's embeddings of how a character sounds and looks, made into one vector."""
    hidden = facts.integer("hidden_size")
    width = hidden
    found: list[Tensor] = []
    for name, flag in (("pronunciation", "enable_pronunciation"), ("shape", "enable_shape")):
        rows, own = facts.integer(f"{name}_vocab_size"), facts.integer(f"{name}_embed_dim")
        found.append(Tensor(f"embeddings.{name}_embed.weight", _E, (rows, own)))
        width += own if facts.flag(flag) else 0
    if facts.flag("concat_input"):
        found += matrix("embeddings.map_inputs_layer", _E, (hidden, width), _WHOLE, bias=True)
    return found


def _projected(key: str, *, always: bool = False) -> Callable[[Facts], list[Tensor]]:
    """The matrix from embeddings of their own width to the layers."""

    def tensors(facts: Facts) -> list[Tensor]:
        hidden = facts.integer("hidden_size")
        width = facts.integer(key, hidden)
        if width == hidden and not always:
            return []
        return matrix("embeddings_project", _TOP, (hidden, width), _WHOLE, bias=True)

    return tensors


def _rotations(facts: Facts) -> list[Tensor]:
    """RoFormer's table of sines, which its checkpoints hold, and the projection."""
    hidden, rows = facts.integer("hidden_size"), facts.integer("max_position_embeddings")
    shape = (rows, hidden // facts.integer("num_attention_heads"))
    table = Tensor("encoder.embed_positions.weight", _E, shape)
    return [table, *_projected("embedding_size")(facts)]


def _adapters(facts: Facts, _family: Family, _mixer: str, _feed: str) -> list[Tensor]:
    """X-MOD's adapter for each language."""
    hidden = facts.integer("hidden_size")
    inner = hidden // facts.integer("adapter_reduction_factor")
    path, mlp = "output.adapter_modules", ModuleClass.MLP
    found: list[Tensor] = []
    for language in facts.words("languages") or ():
        found += matrix(f"{path}.{language}.dense1", mlp, (inner, hidden), _WHOLE, bias=True)
        found += matrix(f"{path}.{language}.dense2", mlp, (hidden, inner), _WHOLE, bias=True)
    facts.settle("adapter_reuse_layer_norm")
    if facts.flag("adapter_layer_norm"):
        found += norm("output.adapter_layer_norm", hidden, bias=True)
    return found


def _xmod_norm(facts: Facts) -> list[Tensor]:
    return _final_norm(facts) if facts.flag("pre_norm") else []


_POOLED = (BARE, CLASSES)
_BERT = Masked(head="cls.predictions", pools=_POOLED, dense_classifier=False)
BERT = _family(_BERT)
ROBERTA = _family(Masked())
MEGATRON = _family(replace(_BERT, embedding_norm=False, further=_final_norm))
ERNIE = _family(replace(_BERT, further=_tasks))
ROC_BERT = _family(replace(_BERT, further=_sounds_and_shapes))
BIG_BIRD = replace(
    _family(replace(_BERT, pools=(BARE, LANGUAGE, CLASSES, TAGS, ""), dense_classifier=True)),
    q_bias="use_bias",
)
BERT_GENERATION = _family(Masked(kinds=False, transforms=False, pools=()))
ROFORMER = _family(
    Masked(
        width="embedding_size", positions=False, further=_rotations, head="cls.predictions",
        head_width="embedding_size", pools=(),
    )
)  # fmt: skip
ELECTRA = _family(
    Masked(
        width="embedding_size", further=_projected("embedding_size"), own_bias=False,
        head="generator_lm_head", head_width="embedding_size", pools=(),
    )
)  # fmt: skip
REMBERT = _family(
    replace(
        _BERT, width="input_embedding_size", head_width="output_embedding_size", ties=False,
        own_bias=False, further=_projected("input_embedding_size", always=True),
    )
)  # fmt: skip
PRE_NORM = _family(Masked(further=_final_norm))
XLM_ROBERTA_XL = _family(Masked(embedding_norm=False, further=_final_norm))
XMOD = replace(_family(Masked(further=_xmod_norm)), layer_extra=_adapters)

_SHARED = "shared weights"


def _albert_kinds(facts: Facts) -> tuple[tuple[str, str], ...]:
    return ((_SHARED, NONE),) * facts.integer("num_hidden_layers")


def _without_weights(facts: Facts, family: Family, kind: str) -> Mixed:
    return Mixed([], _encode(facts, family, kind).attention)


def _albert_layers(facts: Facts) -> list[Tensor]:
    """The groups of layers, stored once however many layers run them."""
    hidden, width = facts.integer("hidden_size"), facts.integer("embedding_size")
    groups = facts.integer("num_hidden_groups", 1) * facts.integer("inner_group_num", 1)
    layer = [
        *_encode(facts, BERT, "").tensors,
        *feed.mlp_tensors(facts, BERT, facts.integer("intermediate_size")),
        *norm("attention.LayerNorm", hidden, bias=True),
        *norm("full_layer_layer_norm", hidden, bias=True),
    ]
    return [
        *matrix("encoder.mapping_in", _TOP, (hidden, width), _WHOLE, bias=True),
        *(replace(tensor, copies=groups) for tensor in layer),
    ]


ALBERT = replace(
    _family(
        Masked(
            width="embedding_size", further=_albert_layers, head="predictions",
            head_width="embedding_size", pools=_POOLED, dense_classifier=False,
        )
    ),
    kinds=_albert_kinds, mixers={_SHARED: _without_weights}, norm_weight=False,
)  # fmt: skip

FAMILIES = {
    "bert": BERT, "roberta": ROBERTA, "albert": ALBERT, "megatron-bert": MEGATRON, "ernie": ERNIE,
    "roc_bert": ROC_BERT, "big_bird": BIG_BIRD, "bert-generation": BERT_GENERATION,
    "roformer": ROFORMER, "electra": ELECTRA, "rembert": REMBERT, "roberta-prelayernorm": PRE_NORM,
    "xlm-roberta-xl": XLM_ROBERTA_XL, "xmod": XMOD,
}  # fmt: skip
