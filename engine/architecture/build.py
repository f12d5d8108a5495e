"""From a family and a config to layers and outer tensors. Identical layers become one object."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

from engine.architecture.families import attention, feed
from engine.architecture.families.base import (
    CHUNKED,
    DENSE,
    FULL,
    KINDS,
    NONE,
    RENAMED,
    SLIDING,
    SPARSE,
    Fed,
    Mixed,
    matrix,
    norm,
)  # fmt: skip
from engine.architecture.heads import is_tied, labels_of, score_has_bias, top_of
from engine.architecture.spec import LayerSpec, ModuleClass, Sharding, Tensor
from engine.errors import ConfigError
from engine.words import tr

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engine.architecture.families.base import Family, FeedRule, MixerRule, Prediction
    from engine.architecture.spec import AttentionSpec
    from engine.config.facts import Facts

_PATTERN_KEYS = (
    "attention_chunk_size", "full_attn_idxs", "global_attn_every_n_layers", "max_window_layers",
    "hybrid_layer_pattern", "full_attention_interval",
)  # fmt: skip
_PLAIN_FEEDS: dict[str, FeedRule] = {DENSE: feed.dense, SPARSE: feed.sparse}
_ATTENTION = frozenset({FULL, SLIDING, CHUNKED})


@dataclass(frozen=True, slots=True)
class Built:
    """A model as its family describes it."""

    layers: tuple[LayerSpec, ...]
    outer: tuple[Tensor, ...]
    mtp: tuple[Tensor, ...]
    tied: bool
    mtp_attentions: tuple[AttentionSpec, ...] = ()


def build(facts: Facts, family: Family, *, root: Facts) -> Built:
    """The layers and outer tensors of the text model.

    Raises:
        ConfigError: a needed field is missing, of the wrong type or absurd.
    """
    if family.by_class:
        family = family.by_class(facts)
    layers = layers_of(facts, family)
    tied = is_tied(facts, root, otherwise=bool(family.tied))
    tied = tied if family.reads_tie else bool(family.tied)
    outer = _outer(facts, family, tied=tied)
    inner = _mtp_layers(facts, family, layers)
    attentions = tuple(a for layer, n in inner for a in (layer.attention,) * n if a is not None)
    return Built(layers, tuple(outer), _mtp(facts, family, inner), tied, attentions)


def layers_of(facts: Facts, family: Family) -> tuple[LayerSpec, ...]:
    """The layers of one stack, those of one kind as one object.

    Raises:
        ConfigError: a needed field is missing, of the wrong type or absurd.
    """
    made: dict[tuple[str, str], LayerSpec] = {}
    layers: list[LayerSpec] = []
    for key in _kinds(facts, family):
        layer = made.get(key)
        if layer is None:
            layer = made[key] = _layer(facts, family, *key)
        layers.append(layer)
    _read_unused(facts, family, made)
    return tuple(layers)


def _kinds(facts: Facts, family: Family) -> Iterable[tuple[str, str]]:
    if family.kinds:
        return family.kinds(facts)
    count = facts.integer("num_hidden_layers")
    mixers = layer_kinds(facts, family, count)
    return zip(mixers, family.feed_pattern(facts, count), strict=True)


def _read_unused(facts: Facts, family: Family, used: Iterable[tuple[str, str]]) -> None:
    """Look up what describes the kinds of layers that this model has none of: it counts nothing."""
    mixers, feeds = {mixer for mixer, _ in used}, {fed for _, fed in used}
    for kind in family.mixers.keys() - mixers:
        with suppress(ConfigError):
            family.mixers[kind](facts, family, kind)
    rules = {DENSE: feed.dense, **family.feeds}
    if family.moe:
        rules.setdefault(SPARSE, feed.sparse)
    for kind in rules.keys() - feeds:
        with suppress(ConfigError):
            rules[kind](facts, family, kind)


def layer_kinds(facts: Facts, family: Family, count: int) -> tuple[str, ...]:
    """The token mixer of each layer: ``layer_types`` where stated, else the family's pattern.

    Raises:
        ConfigError: a list of another length, or a kind the family does not have.
    """
    stated = facts.words("layer_types") if family.reads_layer_types else None
    if stated is None:
        return family.pattern(facts, count)
    # The list wins over the keys that older configs describe the pattern with.
    facts.settle("sliding_window", "sliding_window_pattern", *_PATTERN_KEYS)
    stated = tuple(RENAMED.get(kind, kind) for kind in stated)
    if len(stated) != count:
        wanted = tr("one entry for each of the {count} layers is needed, not {stated}").format(
            count=count, stated=len(stated)
        )
        raise facts.bad("layer_types", stated, wanted)
    for kind in set(stated):
        if kind not in _ATTENTION and kind not in family.mixers:
            raise UnknownKindError(kind)
    return stated


def check_kinds(facts: Facts, family: Family) -> None:
    """Look for layers that were built for another kind than the config states.

    Raises:
        UnknownKindError: no class of transformers has the kind, nor has the family.
    """
    for key in ("layer_types", "layers_block_type"):
        stated = facts.stated.get(key)
        kinds = cast("list[object]", stated) if isinstance(stated, list) else []
        for kind in {kind for kind in kinds if isinstance(kind, str)}:
            if kind not in KINDS and kind not in family.mixers:
                raise UnknownKindError(kind)


class UnknownKindError(Exception):
    """A layer kind that the family has no rule for: the model can only be bounded."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind


def _mixer(family: Family, kind: str) -> MixerRule | None:
    if kind == NONE:
        return None
    return family.mixers.get(kind) or family.attention or attention.gqa


def _feed(family: Family, kind: str) -> FeedRule | None:
    if kind == NONE:
        return None
    return family.feeds.get(kind) or _PLAIN_FEEDS.get(kind) or family.feed


def _layer(facts: Facts, family: Family, mixer_kind: str, feed_kind: str) -> LayerSpec:
    mixer, feeder = _mixer(family, mixer_kind), _feed(family, feed_kind)
    mixed = mixer(facts, family, mixer_kind) if mixer else Mixed([])
    attention.check_widths(facts, mixed)
    fed = feeder(facts, family, feed_kind) if feeder else Fed([])
    tensors = [*mixed.tensors, *fed.tensors, *norms(facts, family)]
    if family.layer_extra:
        tensors += family.layer_extra(facts, family, mixer_kind, feed_kind)
    return LayerSpec(
        tuple(tensors),
        mixed.attention,
        mixed.state,
        fed.moe,
        fed.intermediate_size,
        facts.says(family.gated),
        mixed.cross,
    )


def norms(facts: Facts, family: Family) -> list[Tensor]:
    """The norms of a layer that belong neither to its mixer nor to its feed-forward block."""
    if not family.norm_weight:
        return []
    hidden = facts.integer("hidden_size")
    bias = facts.says(family.norm_bias)
    names = family.norm_rule(facts) if family.norm_rule else family.norms
    return [tensor for name in names for tensor in norm(name, hidden, bias=bias)]


def _outer(facts: Facts, family: Family, *, tied: bool) -> list[Tensor]:
    hidden = facts.integer("hidden_size")
    vocab = facts.integer("vocab_size")
    names = family.names
    width = facts.integer(family.embedding_width, hidden)
    embedding = ModuleClass.EMBEDDING
    more = family.embedding_extra
    extra = facts.integer(more, 0, 0) if isinstance(more, str) else more
    shape = (vocab + extra, width)
    tensors: list[Tensor] = []
    if names.embedding:
        tensors.append(Tensor(f"{names.embedding}.weight", embedding, shape, 1, Sharding.VOCAB))
    if family.positions:
        tensors += family.positions(facts, family)
    if family.norm_weight and names.final_norm:
        tensors += norm(names.final_norm, hidden, bias=facts.says(family.norm_bias))
    rows = facts.integer(family.head_rows, vocab) if family.head_rows else vocab
    tensors += _head(facts, family, (rows, width), tied=tied)
    return tensors


def _head(facts: Facts, family: Family, shape: tuple[int, int], *, tied: bool) -> list[Tensor]:
    head = ModuleClass.LM_HEAD
    kind, owner = top_of(facts)
    if not family.has_head or (kind == "none" and family.bare_is_headless):
        return []
    if kind == "score":
        labels, biased = (labels_of(owner), shape[1]), score_has_bias(owner.stated)
        return matrix("score", head, labels, Sharding.REPLICATED, bias=biased)
    bias = facts.says(family.head_bias)
    if not tied:
        return matrix("lm_head", head, shape, Sharding.VOCAB, bias=bias)
    return [Tensor("lm_head.bias", head, shape[:1], 1, Sharding.VOCAB)] if bias else []


def _predicting(layers: tuple[LayerSpec, ...]) -> LayerSpec:
    """The layer that a prediction block is like: the last, attending, and with its own index."""
    last = layers[-1]
    alike = [x for x in reversed(layers) if (x.moe is None) == (last.moe is None) and x.attention]
    indexed = (x for x in alike if x.attention and x.attention.index_head_dim)
    return next(indexed, alike[0] if alike else last)


def _mtp_layers(
    facts: Facts, family: Family, layers: tuple[LayerSpec, ...]
) -> list[tuple[LayerSpec, int]]:
    """The decoder layers of the prediction blocks, each with the number of times it occurs."""
    blocks = family.mtp(facts) if family.mtp else 0
    if not blocks:
        return []
    kinds = family.prediction.kinds
    if kinds is None:
        return [(_predicting(layers), blocks)]
    counts = Counter(kinds(facts, blocks))
    return [(_layer(facts, family, *kind), count) for kind, count in counts.items()]


def _mtp(facts: Facts, family: Family, inner: list[tuple[LayerSpec, int]]) -> tuple[Tensor, ...]:
    """The prediction blocks: their decoder layers, and what joins and ends them.

    Source:
        The published totals (``tests/truth/test_prediction_blocks.py``); vLLM ``models/*_mtp.py``.
    """
    blocks = family.mtp(facts) if family.mtp else 0
    if not blocks:
        return ()
    form = family.prediction
    found = [
        replace(tensor, copies=tensor.copies * count)
        for layer, count in inner
        for tensor in layer.tensors
    ]
    joins = 1 if form.joins_once else blocks
    found += [replace(t, copies=t.copies * joins) for t in _join(facts, form)]
    if form.further:
        found += [replace(t, copies=t.copies * blocks) for t in form.further(facts, family)]
    found += _tables(facts, form, blocks)
    # No quantiser packs a router, wherever it is.
    return tuple(
        replace(t, module=ModuleClass.MTP, linear=t.linear and t.module is not ModuleClass.ROUTER)
        for t in found
    )


def _join(facts: Facts, form: Prediction) -> list[Tensor]:
    hidden = facts.integer("hidden_size")
    shape, sharding = (hidden, 2 * hidden), form.join or Sharding.REPLICATED
    name = "fc.weight" if form.joins_once else "eh_proj.weight"
    return [
        *norm("enorm", hidden),
        *norm("hnorm", hidden),
        *norm("shared_head.norm", hidden),
        Tensor(name, ModuleClass.MTP, shape, 1, sharding, linear=form.join is not None),
    ]


def _tables(facts: Facts, form: Prediction, blocks: int) -> list[Tensor]:
    shape = facts.integer("vocab_size"), facts.integer("hidden_size")
    found: list[Tensor] = []
    for name, module, there in (
        ("embed_tokens.weight", ModuleClass.EMBEDDING, form.repeats_tables),
        ("shared_head.head.weight", ModuleClass.LM_HEAD, form.repeats_tables or form.own_head),
    ):
        if there:
            repeats = form.repeats_tables
            found.append(Tensor(name, module, shape, blocks, Sharding.VOCAB, repeats=repeats))
    return found
