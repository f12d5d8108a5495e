"""Encoder-decoders: a decoder whose layers also read an encoder's tokens, and that encoder.

The encoder runs once for each input and keeps nothing of its own: its layers are outer tensors.
Which of the two a model has is decided by its class: ``BartForConditionalGeneration`` has both,
``BartForCausalLM`` the decoder (with the weights of its cross-attention, which it never runs),
``T5EncoderModel`` the encoder.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from engine.architecture.build import layers_of
from engine.architecture.families import attention
from engine.architecture.families.base import FULL, Family, Mixed, matrix, norm
from engine.architecture.families.sources import image_tokens, source_doubts
from engine.architecture.heads import first_class, labels_of, whole_class
from engine.architecture.spec import (
    AttentionKind,
    Direction,
    Doubt,
    ModuleClass,
    Sharding,
    Subject,
    Tensor,
)
from engine.words import tr

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from engine.architecture.families.base import MixerRule, Names, OuterRule
    from engine.architecture.spec import LayerSpec
    from engine.config.facts import Facts

_ENCODERS = ("EncoderModel", "ForTokenClassification")
_ENCODERS_KEY = re.compile(r"^(num_)?encoder_")
_DECODERS_KEY = re.compile(r"^(num_)?(sparse_)?decoder_")


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """The config keys of one of the two stacks."""

    layers: str
    heads: str
    width: str


DECODER = Keys(
    layers="decoder_layers", heads="decoder_attention_heads", width="decoder_ffn_dim"
)  # fmt: skip
ENCODER = Keys(
    layers="encoder_layers", heads="encoder_attention_heads", width="encoder_ffn_dim"
)  # fmt: skip


def stack(family: Family, keys: Keys) -> Family:
    """``family`` with the layers, heads and width of ``keys``; all heads have their own keys."""

    def heads(facts: Facts, _kind: str) -> int:
        count, hidden = facts.integer(keys.heads), facts.integer("hidden_size")
        if hidden % count:
            raise facts.bad(
                keys.heads,
                count,
                tr("a divisor of the hidden size ({hidden}) is needed").format(hidden=hidden),
            )
        return count

    def widths(facts: Facts, kind: str) -> tuple[int, int]:
        width = facts.integer("hidden_size") // heads(facts, kind)
        return width, width

    def kinds(facts: Facts) -> tuple[tuple[str, str], ...]:
        count = facts.integer(keys.layers)
        return tuple(zip((FULL,) * count, family.feed_pattern(facts, count), strict=True))

    def width(facts: Facts) -> int:
        return facts.integer(keys.width)

    return replace(
        family, heads=heads, kv_heads=heads, head_dim=widths, kinds=kinds, width=width
    )  # fmt: skip


def named(names: Names, rule: MixerRule = attention.gqa, source: str = "") -> MixerRule:
    """The block of ``rule`` under other names: cross-attention as a family has it.

    ``source`` is the key of the encoder's tokens where their number is fixed.
    """

    def block(facts: Facts, family: Family, _kind: str) -> Mixed:
        mixed = rule(facts, replace(family, names=names), FULL)
        if mixed.attention is None or not source:
            return mixed
        return replace(mixed, attention=replace(mixed.attention, window=facts.integer(source)))

    return block


def reading(width: int, mixed: Mixed) -> Mixed:
    """``mixed`` with keys and values made of vectors of ``width``."""
    return replace(
        mixed,
        tensors=[
            replace(t, shape=(t.shape[0], width))
            if t.linear and t.sharding is Sharding.KV_HEADS
            else t
            for t in mixed.tensors
        ],
    )


def crossing(own: MixerRule, cross: MixerRule) -> MixerRule:
    """Self-attention by ``own`` and cross-attention by ``cross``, where that has any."""

    def block(facts: Facts, family: Family, kind: str) -> Mixed:
        mixed, other = own(facts, family, kind), cross(facts, family, kind)
        if other.attention is None:
            return mixed
        window = other.attention.window or image_tokens(facts)
        spec = replace(other.attention, kind=AttentionKind.CROSS, window=window)
        return replace(mixed, tensors=[*mixed.tensors, *other.tensors], cross=spec)

    return block


def _uncached(rule: MixerRule, *, cross_only: bool) -> MixerRule:
    def block(facts: Facts, family: Family, kind: str) -> Mixed:
        mixed = rule(facts, family, kind)
        assert mixed.attention is not None  # noqa: S101 - both stacks attend in every layer
        if cross_only:
            return replace(mixed, cross=None)
        return replace(mixed, attention=replace(mixed.attention, keeps_cache=False))

    return block


def repeated(layers: Iterable[LayerSpec], path: str) -> list[Tensor]:
    """The tensors of ``layers`` with their number as copies."""
    counts: dict[int, int] = {}
    found: dict[int, LayerSpec] = {}
    for layer in layers:
        counts[id(layer)] = counts.get(id(layer), 0) + 1
        found[id(layer)] = layer
    return [
        replace(tensor, name=f"{path}layers.*.{tensor.name}", copies=tensor.copies * counts[key])
        for key, layer in found.items()
        for tensor in layer.tensors
    ]


def encoded(facts: Facts, encoder: Family, path: str = "encoder.") -> list[Tensor]:
    """All that an encoder has beside a table of tokens that it shares."""
    tensors = encoder.positions(facts, encoder) if encoder.positions else []
    if encoder.names.final_norm:
        hidden, bias = facts.integer("hidden_size"), facts.says(encoder.norm_bias)
        tensors += norm(encoder.names.final_norm, hidden, bias=bias)
    return tensors + repeated(layers_of(facts, encoder), path)


def own_tables(facts: Facts, _family: Family) -> list[Tensor]:
    """The tables of tokens of both stacks, which are the shared one unless the model unties them.

    Source:
        transformers 5.24.0, ``bart/modeling_bart.py :: BartModel._tied_weights_keys``.
    """
    if facts.flag("tie_word_embeddings", default=True):
        return []
    shape = facts.integer("vocab_size"), facts.integer("hidden_size")
    return [table(f"{side}.embed_tokens", *shape) for side in ("encoder", "decoder")]


def table(name: str, rows: int, width: int) -> Tensor:
    """An embedding of tokens."""
    return Tensor(f"{name}.weight", ModuleClass.EMBEDDING, (rows, width), 1, Sharding.VOCAB)


def seq2seq(
    decoder: Family,
    encoder: Family | None,
    cross: MixerRule,
    *,
    beside: OuterRule | None = own_tables,
    alone: Family | None = None,
) -> Family:
    """The family of ``decoder`` and ``encoder``, in the form that the class asks for.

    Args:
        decoder: its layers without cross-attention, and what the whole has outside them.
        encoder: its layers, positions and last norm; None where ``beside`` or a tower has it.
        cross: the cross-attention of a decoder layer.
        beside: what else the two together have: tables of tokens beside the shared one.
        alone: the decoder as ``ForCausalLM`` builds it, where not like ``decoder``.
    """
    own = decoder.attention or attention.gqa

    def outer(facts: Facts, family: Family) -> list[Tensor]:
        found = decoder.positions(facts, family) if decoder.positions else []
        found += beside(facts, family) if beside else []
        return found + (encoded(facts, encoder) if encoder else [])

    def doubts(facts: Facts) -> list[Doubt]:
        if encoder is not None and whole_class(facts).endswith(_ENCODERS):
            return []
        found = decoder.doubts(facts) if decoder.doubts else []
        if not first_class(facts.stated).endswith("ForCausalLM") or facts.above is not None:
            found += source_doubts(facts)
        return found + (_too_much(facts) if encoder is None else [])

    rule = crossing(own, cross)
    whole = replace(decoder, attention=rule, positions=outer, doubts=doubts)
    reader = replace(alone or decoder, attention=rule)
    solo = replace(reader, attention=_uncached(rule, cross_only=True))

    def by_class(facts: Facts) -> Family:
        name = whole_class(facts)
        facts.settle("is_encoder_decoder")
        if first_class(facts.stated).endswith("ForCausalLM"):
            facts.settle(*(key for key in facts.stated if _ENCODERS_KEY.search(key)))
            # Inside another model it reads that one's encoder.
            return solo if facts.above is None else reader
        if encoder is not None and name.endswith(_ENCODERS):
            facts.settle(*(key for key in facts.stated if _DECODERS_KEY.search(key)))
            own_rule = _uncached(encoder.attention or attention.gqa, cross_only=False)
            return _topped(replace(encoder, attention=own_rule, has_head=False), name)
        return _topped(whole, name)

    return replace(whole, by_class=by_class)


def _too_much(facts: Facts) -> list[Doubt]:
    """Doubts of a class that is the encoder alone, where that is not built apart."""
    name = whole_class(facts)
    if not name.endswith((*_ENCODERS, "ForAudioClassification")):
        return []
    reason = tr("{name} is an encoder: it is counted with a decoder that it doesn't have").format(
        name=name[:60]
    )
    subjects = (Subject.WEIGHTS, Subject.SEQUENCE_STATE)
    return [Doubt(subject, reason, Direction.UPPER) for subject in subjects]


def _labels(facts: Facts) -> int:
    """Classes of a sequence; BART has three where the config doesn't say."""
    if facts.model_type == "bart" and not facts.has("id2label"):
        return facts.integer("num_labels", 3)
    return labels_of(facts)


def _start_and_end(_facts: Facts) -> int:
    return 2


def _topped(family: Family, name: str) -> Family:
    """``family`` with the head that a class other than a language model's puts on top."""
    labels: Callable[[Facts], int]
    if name.endswith("ForSequenceClassification"):
        labels, inner = _labels, True
    elif name.endswith("ForTokenClassification"):
        labels, inner = _labels, False
    elif name.endswith("ForQuestionAnswering"):
        labels, inner = _start_and_end, False
    else:
        return family

    def outer(facts: Facts, own: Family) -> list[Tensor]:
        tensors = family.positions(facts, own) if family.positions else []
        hidden, whole = facts.integer("hidden_size"), Sharding.REPLICATED
        top = ModuleClass.OTHER
        if inner:
            tensors += matrix("head.dense", top, (hidden, hidden), whole, bias=True)
        return tensors + matrix("head.out_proj", top, (labels(facts), hidden), whole, bias=True)

    return replace(family, positions=outer, has_head=False)
