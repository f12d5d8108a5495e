"""BART and the encoder-decoders built like it: separate keys per stack, layer norms, plain MLPs.

Source:
    transformers 5.24.0, the modelling file of each type.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from engine.architecture.families import attention, feed
from engine.architecture.families.base import (
    DENSE,
    SPARSE,
    Family,
    Fed,
    Mixed,
    Moe,
    Names,
    matrix,
    norm,
)
from engine.architecture.families.seq2seq import (
    DECODER,
    ENCODER,
    Keys,
    named,
    own_tables,
    reading,
    seq2seq,
    stack,
    table,
)
from engine.architecture.heads import whole_class
from engine.architecture.spec import Direction, Doubt, ModuleClass, Sharding, Subject, Tensor
from engine.words import tr

if TYPE_CHECKING:
    from engine.architecture.families.base import Flag, OuterRule, PatternRule
    from engine.config.facts import Facts

_A, _E = ModuleClass.ATTENTION, ModuleClass.EMBEDDING
NAMES = Names(
    output="out_proj", mlp="", up="fc1", down="fc2", embedding="model.shared", final_norm=""
)  # fmt: skip
CROSS = replace(NAMES, attention="encoder_attn")
NORMS = ("self_attn_layer_norm", "final_layer_norm")
PLAIN = Family(
    names=NAMES, q_bias=True, o_bias=True, mlp_bias=True, gated=False, norms=NORMS,
    norm_bias=True, tied=True,
)  # fmt: skip


_NO_LONGER_READ = (
    "add_bias_logits", "add_final_layer_norm", "do_blenderbot_90_layernorm", "extra_layer_norm",
    "extra_pos_embeddings", "layernorm_variant", "normalize_before", "normalize_embedding",
    "static_position_embeddings",
)  # fmt: skip
"""Keys of the first releases, when one class was all of these types: now each has its own."""


def positions(
    side: str,
    key: str = "max_position_embeddings",
    *,
    extra: int = 0,
    learned: bool = True,
    normed: bool = False,
) -> OuterRule:
    """The table of positions of one stack, and the norm after the embeddings.

    Args:
        side: where the stack is.
        key: the number of positions.
        extra: rows in front of them.
        learned: whether the class makes the table a parameter (of sinusoids too).
        normed: whether the embeddings are normed.
    """

    def tensors(facts: Facts, _family: Family) -> list[Tensor]:
        hidden = facts.integer("hidden_size")
        facts.settle(*_NO_LONGER_READ)
        found: list[Tensor] = []
        if learned:
            rows = facts.integer(key) + extra
            found.append(Tensor(f"{side}.embed_positions.weight", _E, (rows, hidden)))
        if normed:
            found += norm(f"{side}.layernorm_embedding", hidden, bias=True)
        return found

    return tensors


def sides(
    base: Family = PLAIN,
    *,
    extra: int = 0,
    learned: bool = True,
    normed: bool = False,
    closed: bool = False,
) -> tuple[Family, Family]:
    """Decoder and encoder of ``base``; ``closed`` where both end with a norm."""
    made: list[Family] = []
    for side, keys in (("model.decoder", DECODER), ("model.encoder", ENCODER)):
        last = f"{side}.layer_norm" if closed else ""
        own = positions(side, extra=extra, learned=learned, normed=normed)
        made.append(
            replace(stack(base, keys), names=replace(base.names, final_norm=last), positions=own)
        )
    decoder, encoder = made
    return replace(decoder, norms=(*base.norms, "encoder_attn_layer_norm")), encoder


def _bart(
    base: Family = PLAIN,
    *,
    extra: int = 0,
    learned: bool = True,
    normed: bool = False,
    closed: bool = False,
) -> Family:
    decoder, encoder = sides(base, extra=extra, learned=learned, normed=normed, closed=closed)
    return seq2seq(decoder, encoder, named(CROSS))


BART = _bart(extra=2, normed=True)
MBART = _bart(extra=2, normed=True, closed=True)
BLENDERBOT = _bart(closed=True)
BLENDERBOT_SMALL = _bart(normed=True)
M2M = _bart(learned=False, closed=True)


def _prompts(facts: Facts, _family: Family) -> list[Tensor]:
    """MVP's prompts of every decoder layer, made from one table by two linear layers.

    The encoder, which could have them too, is built without (transformers 5.24.0,
    ``mvp/modeling_mvp.py :: MvpModel``).
    """
    tensors = own_tables(facts, PLAIN)
    length, inner = facts.integer("prompt_length"), facts.integer("prompt_mid_dim")
    if not facts.flag("use_prompt"):
        return tensors
    hidden, whole = facts.integer("hidden_size"), Sharding.REPLICATED
    rows = facts.integer("decoder_layers") * 2 * hidden
    for path in ("decoder.self_attn_prompt", "decoder.cross_attn_prompt"):
        tensors += [
            Tensor(f"{path}.prompt_embedding.weight", _E, (length, hidden)),
            *matrix(f"{path}.prompt_trans.0", _A, (inner, hidden), whole, bias=True),
            *matrix(f"{path}.prompt_trans.2", _A, (rows, inner), whole, bias=True),
        ]
    return tensors


def _mvp() -> Family:
    decoder, encoder = sides(extra=2, normed=True)
    return seq2seq(decoder, encoder, named(CROSS), beside=_prompts)


def _big_bird() -> Family:
    bias: Flag = "use_bias"
    decoder, encoder = sides(replace(PLAIN, q_bias=bias, o_bias=bias), normed=True)
    alone = replace(decoder, tied=False, reads_tie=False)
    return seq2seq(decoder, encoder, named(CROSS), alone=alone)


def _pegasus_x() -> Family:
    decoder, encoder = sides(replace(PLAIN, q_bias=False, o_bias=False), learned=False, closed=True)

    def tokens(facts: Facts, _family: Family) -> list[Tensor]:
        shape = facts.integer("num_global_tokens"), facts.integer("hidden_size")
        return [Tensor("model.encoder.embed_global.weight", _E, shape)]

    encoder = replace(
        encoder, norms=(*NORMS, "global_self_attn_layer_norm"), positions=tokens
    )  # fmt: skip
    return seq2seq(decoder, encoder, named(CROSS))


def _target_words(facts: Facts) -> int:
    return facts.count("decoder_vocab_size") or facts.integer("vocab_size")


def _marian_tables(facts: Facts, _family: Family) -> list[Tensor]:
    """Marian's tables beside the first, which is the source's where the two sides share none."""
    hidden, vocab = facts.integer("hidden_size"), facts.integer("vocab_size")
    target = table("model.decoder.embed_tokens", _target_words(facts), hidden)
    if not facts.flag("share_encoder_decoder_embeddings", default=True):
        return [target]
    if facts.flag("tie_word_embeddings", default=True):
        return []
    return [target, table("model.encoder.embed_tokens", vocab, hidden)]


def _marian_doubts(facts: Facts) -> list[Doubt]:
    shares = facts.flag("share_encoder_decoder_embeddings", default=True)
    tied = facts.flag("tie_word_embeddings", default=True)
    more = _target_words(facts) - facts.integer("vocab_size")
    alone = whole_class(facts).endswith("ForCausalLM")
    if (alone and more >= 0) or (not alone and (shares or tied or not more)):
        return []
    reason = tr("a head and a table of different vocabularies are counted over the larger")
    return [Doubt(Subject.WEIGHTS, reason, Direction.EITHER)]


def _marian() -> Family:
    decoder, encoder = sides()

    def target_only(facts: Facts, family: Family) -> list[Tensor]:
        # The head has the source's vocabulary, the table the target's.
        rows = _target_words(facts) - facts.integer("vocab_size")
        tensors = positions("model.decoder")(facts, family)
        if rows > 0:
            tensors.append(table("model.decoder.embed_tokens", rows, facts.integer("hidden_size")))
        return tensors

    alone = replace(decoder, positions=target_only)
    decoder = replace(decoder, doubts=_marian_doubts)
    return seq2seq(decoder, encoder, named(CROSS), beside=_marian_tables, alone=alone)


def _fsmt() -> Family:
    """Two vocabularies; the head is one with the target's table where the model ties them."""
    decoder, encoder = sides()

    def tokens(facts: Facts, family: Family) -> list[Tensor]:
        del family
        if facts.flag("tie_word_embeddings"):
            return []
        rows, hidden = facts.integer("src_vocab_size"), facts.integer("hidden_size")
        return [table("model.encoder.embed_tokens", rows, hidden)]

    def places(side: str) -> OuterRule:
        def tensors(facts: Facts, _family: Family) -> list[Tensor]:
            rows = facts.integer("max_position_embeddings")
            rows += facts.integer("pad_token_id", 1, low=0) + 1
            hidden = facts.integer("hidden_size")
            return [Tensor(f"{side}.embed_positions.weight", _E, (rows, hidden))]

        return tensors

    return seq2seq(
        replace(decoder, positions=places("model.decoder"), tied=False),
        replace(encoder, positions=places("model.encoder")),
        named(CROSS),
        beside=tokens,
    )


def _longformer(facts: Facts, family: Family, kind: str) -> Mixed:
    """The encoder of LED: the global tokens have a query, key and value projection of their own."""
    mixed = attention.gqa(facts, family, kind)
    hidden = facts.integer("hidden_size")
    shape = hidden, hidden
    path = "self_attn.longformer_self_attn."
    return replace(
        mixed,
        tensors=[
            *mixed.tensors,
            *matrix(path + "query_global", _A, shape, Sharding.COLUMN, bias=True),
            *matrix(path + "key_global", _A, shape, Sharding.KV_HEADS, bias=True),
            *matrix(path + "value_global", _A, shape, Sharding.KV_HEADS, bias=True),
        ],
    )


def _led() -> Family:
    decoder, encoder = sides(normed=True)
    lengths = "max_decoder_position_embeddings", "max_encoder_position_embeddings"

    def settled(facts: Facts, family: Family) -> list[Tensor]:
        # The window of the encoder's local attention: no tensor has its width.
        facts.settle("attention_window")
        return own_tables(facts, family)

    return seq2seq(
        replace(decoder, positions=positions("led.decoder", lengths[0], normed=True)),
        replace(
            encoder,
            positions=positions("led.encoder", lengths[1], normed=True),
            attention=_longformer,
        ),
        named(CROSS),
        beside=settled,
    )


def _every(key: str) -> PatternRule:
    def kinds(facts: Facts, layers: int) -> tuple[str, ...]:
        step = facts.count(key)
        return tuple(SPARSE if step and (i + 1) % step == 0 else DENSE for i in range(layers))

    return kinds


def _two_experts(facts: Facts, family: Family, kind: str) -> Fed:
    fed = feed.sparse(facts, family, kind)
    assert fed.moe is not None  # noqa: S101 - a sparse block always says so
    return replace(fed, moe=replace(fed.moe, num_experts_per_tok=2))


def _nllb_moe() -> Family:
    """M2M-100 with a mixture of experts in every few layers."""
    made: list[Family] = []
    for side, keys in (("encoder", ENCODER), ("decoder", DECODER)):
        experts = Moe(
            container="ffn.experts", router="ffn.router.classifier",
            router_bias="router_bias", expert_bias=True, gated=False,
            width_rule=lambda facts, key=keys.width: facts.integer(key),
        )  # fmt: skip
        base = replace(
            PLAIN, names=replace(NAMES, mlp="ffn", final_norm=f"model.{side}.layer_norm"),
            norms=("self_attn_layer_norm", "ff_layer_norm"), moe=experts,
            feed_pattern=_every(f"{side}_sparse_step"), feeds={SPARSE: _two_experts},
        )  # fmt: skip
        made.append(stack(base, keys))
    encoder, decoder = made
    cross = replace(NAMES, attention="cross_attention")
    decoder = replace(decoder, norms=(*decoder.norms, "cross_attention_layer_norm"))
    return seq2seq(decoder, encoder, named(cross))


_PROPHET_NAMES = Names(
    query="query_proj", key="key_proj", value="value_proj", output="out_proj",
    mlp="feed_forward", up="intermediate", down="output",
    embedding="prophetnet.word_embeddings", final_norm="",
)  # fmt: skip
_PROPHET_NORMS = ("self_attn_layer_norm", "feed_forward_layer_norm")


def _predicting(facts: Facts, family: Family, kind: str) -> Mixed:
    """ProphetNet's decoder: self-attention of several future tokens, by relative positions."""
    mixed = attention.gqa(facts, family, kind)
    hidden = facts.integer("hidden_size")
    heads = facts.integer("num_decoder_attention_heads")
    facts.settle("num_attention_heads", "num_hidden_layers", "relative_max_distance")
    shape = facts.integer("num_buckets") * heads, hidden
    relative = matrix(
        "self_attn.relative_pos_embeddings", _A, shape, Sharding.COLUMN, bias=True
    )  # fmt: skip
    return replace(mixed, tensors=[*mixed.tensors, *relative])


def _prophet_tables(side: str) -> OuterRule:
    def tensors(facts: Facts, _family: Family) -> list[Tensor]:
        hidden = facts.integer("hidden_size")
        rows = facts.integer("max_position_embeddings")
        found = [Tensor(f"{side}.position_embeddings.weight", _E, (rows, hidden))]
        if side == "decoder":
            found.append(
                Tensor("decoder.ngram_embeddings.weight", _E, (facts.integer("ngram"), hidden))
            )
        return found + norm(f"{side}.embeddings_layer_norm", hidden, bias=True)

    return tensors


def _prophet_cross(facts: Facts, family: Family, kind: str) -> Mixed:
    """ProphetNet's cross-attention with its norm, which a decoder alone may be built without."""
    if not facts.flag("add_cross_attention", default=True):
        return Mixed([])
    names = replace(_PROPHET_NAMES, attention="cross_attn")
    mixed = attention.gqa(facts, replace(family, names=names), kind)
    hidden = facts.integer("hidden_size")
    return replace(
        mixed, tensors=[*mixed.tensors, *norm("cross_attn_layer_norm", hidden, bias=True)]
    )  # fmt: skip


def _prophet() -> Family:
    base = replace(PLAIN, names=_PROPHET_NAMES, norms=_PROPHET_NORMS)
    keys = (
        Keys(layers=f"num_{side}_layers", heads=f"num_{side}_attention_heads",
             width=f"{side}_ffn_dim")
        for side in ("decoder", "encoder")
    )  # fmt: skip
    decoder, encoder = (stack(base, own) for own in keys)
    decoder = replace(decoder, attention=_predicting, positions=_prophet_tables("decoder"))
    encoder = replace(encoder, positions=_prophet_tables("encoder"))

    def own_table(facts: Facts, family: Family) -> list[Tensor]:
        tables = [t for t in own_tables(facts, family) if t.name.startswith("decoder")]
        return [*_prophet_tables("decoder")(facts, family), *tables]

    alone = replace(decoder, positions=own_table)
    return seq2seq(decoder, encoder, _prophet_cross, alone=alone)


def _trocr() -> Family:
    """TrOCR's decoder, which reads the image encoder of a whole that it is a part of."""
    decoder = stack(replace(PLAIN, norms=(*NORMS, "encoder_attn_layer_norm")), DECODER)

    def cross(facts: Facts, family: Family, kind: str) -> Mixed:
        mixed = named(CROSS)(facts, family, kind)
        hidden = facts.integer("hidden_size")
        return reading(facts.integer("cross_attention_hidden_size", hidden), mixed)

    def places(facts: Facts, family: Family) -> list[Tensor]:
        rule = positions(
            "model.decoder", extra=2, learned=facts.flag("use_learned_position_embeddings"),
            normed=facts.flag("layernorm_embedding"),
        )  # fmt: skip
        return rule(facts, family)

    return seq2seq(replace(decoder, positions=places), None, cross, beside=None)


FAMILIES = {
    "trocr": _trocr(),
    "prophetnet": _prophet(),
    "bart": BART, "plbart": BART, "mbart": MBART, "mvp": _mvp(),
    "blenderbot": BLENDERBOT, "pegasus": BLENDERBOT, "blenderbot-small": BLENDERBOT_SMALL,
    "bigbird_pegasus": _big_bird(), "pegasus_x": _pegasus_x(), "marian": _marian(),
    "m2m_100": M2M, "nllb-moe": _nllb_moe(), "fsmt": _fsmt(), "led": _led(),
}  # fmt: skip
