"""T5 and the encoder-decoders built like it: RMS norms, no biases, positions as learned biases.

Source:
    transformers 5.24.0, the modelling file of each type.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from engine.architecture.families.base import DENSE, FULL, SPARSE, Family, Moe, Names, norm
from engine.architecture.families.seq2seq import named, own_tables, seq2seq
from engine.architecture.heads import first_class
from engine.architecture.spec import Direction, Doubt, ModuleClass, Subject, Tensor
from engine.config.facts import is_mapping
from engine.words import tr

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.architecture.families.base import OuterRule
    from engine.config.facts import Facts

_A, _E = ModuleClass.ATTENTION, ModuleClass.EMBEDDING
_FIRST = "first layer"
_NAMES = Names(
    attention="SelfAttention", query="q", key="k", value="v", output="o", mlp="DenseReluDense",
    gate="wi_0", up="wi_1", down="wo", embedding="shared", final_norm="final_layer_norm",
)  # fmt: skip
_CROSS = replace(_NAMES, attention="EncDecAttention")
_NORMS = ("layer.0.layer_norm", "layer.1.layer_norm")


_UDOP_BIASES = ("1d", "horizontal", "vertical")


def _heads(facts: Facts, _kind: str) -> int:
    return facts.integer("num_heads")


def _head_dim(facts: Facts, _kind: str) -> tuple[int, int]:
    width = facts.integer("d_kv")
    return width, width


def _width(facts: Facts) -> int:
    return facts.integer("d_ff")


def _encoder_layers(facts: Facts) -> int:
    return facts.integer("num_layers")


def _decoder_layers(facts: Facts) -> int:
    return facts.integer("num_decoder_layers", facts.declared("num_layers"))


def _is_gated(facts: Facts) -> bool:
    """What is stated outright wins over the name of the activation."""
    stated = facts.raw("is_gated_act")
    name = facts.word("feed_forward_proj", "relu")
    return bool(stated) if isinstance(stated, bool) else name.partition("-")[0] == "gated"


def bias_of_positions(name: str, facts: Facts) -> Tensor:
    """The bias that each head learns for each distance between two tokens."""
    facts.settle("relative_attention_max_distance")
    shape = facts.integer("relative_attention_num_buckets"), facts.integer("num_heads")
    return Tensor(f"{name}.weight", _A, shape)


def _biased(facts: Facts, family: Family, mixer: str, _feed: str) -> list[Tensor]:
    if mixer != _FIRST:
        return []
    return [bias_of_positions(f"{family.names.attention}.relative_attention_bias", facts)]


def _stack(
    family: Family,
    layers: Callable[[Facts], int],
    first: str = _FIRST,
    others: str = FULL,
) -> Family:
    """``family`` with its own number of layers; a bias of positions in those of kind ``first``."""

    def kinds(facts: Facts) -> tuple[tuple[str, str], ...]:
        count = layers(facts)
        mixers = (first, *(others,) * (count - 1))
        return tuple(zip(mixers, family.feed_pattern(facts, count), strict=True))

    return replace(family, kinds=kinds)


def _sides(base: Family, others: str = FULL) -> tuple[Family, Family]:
    """Decoder and encoder of ``base``."""
    decoder = _stack(base, _decoder_layers, others=others)
    decoder = replace(decoder, norms=(*base.norms, "layer.2.layer_norm"))
    return decoder, _stack(base, _encoder_layers, others=others)


_PLAIN = Family(
    names=_NAMES, heads=_heads, kv_heads=_heads, head_dim=_head_dim, width=_width, norms=_NORMS,
    layer_extra=_biased, tied=True, reads_tie=False,
)  # fmt: skip


def _gating(make: Callable[[Family], Family]) -> Family:
    """The family that ``make`` builds of the plain base, gated where the config says so."""

    def by_class(facts: Facts) -> Family:
        gated = _is_gated(facts)
        names = _NAMES if gated else replace(_NAMES, up="wi")
        family = make(replace(_PLAIN, gated=gated, names=names))
        return family.by_class(facts) if family.by_class else family

    return replace(make(_PLAIN), by_class=by_class)


def _own_head(facts: Facts) -> list[Doubt]:
    """T5 1.1 is stored with a head of its own, which is then kept, though the class ties it."""
    if facts.raw("tie_word_embeddings") is not False:
        return []
    reason = tr(
        "tie_word_embeddings is false: published {model_type} models then "
        "store a head of their own, which the class by itself doesn't have"
    ).format(model_type=facts.model_type)
    return [Doubt(Subject.WEIGHTS, reason, Direction.LOWER)]


def _t5(base: Family) -> Family:
    decoder, encoder = _sides(base)
    decoder = replace(decoder, doubts=_own_head)
    return seq2seq(decoder, encoder, named(_CROSS), beside=None)


def _umt5(base: Family) -> Family:
    decoder, encoder = _sides(base, others=_FIRST)
    decoder = replace(decoder, doubts=_own_head)
    return seq2seq(decoder, encoder, named(_CROSS), beside=None)


def _summarising(facts: Facts, family: Family, mixer: str, feed: str) -> list[Tensor]:
    """LongT5's encoder: with transient global tokens a norm, and in the first layer a bias."""
    tensors = _biased(facts, family, mixer, feed)
    facts.settle("local_radius", "global_block_size")
    if facts.word("encoder_attention_type", "local") == "local":
        return tensors
    if mixer == _FIRST:
        path = f"{family.names.attention}.global_relative_attention_bias"
        tensors.append(bias_of_positions(path, facts))
    path = f"{family.names.attention}.global_input_layer_norm"
    return tensors + norm(path, facts.integer("hidden_size"))


def _longt5(base: Family) -> Family:
    decoder, encoder = _sides(base)
    encoder = replace(encoder, layer_extra=_summarising)
    return seq2seq(decoder, encoder, named(_CROSS), beside=None)


def _pop2piano(base: Family) -> Family:
    """T5 over a spectrogram, with a table of composers and a head of its own."""
    decoder, encoder = _sides(replace(base, tied=False))

    def composers(facts: Facts, _family: Family) -> list[Tensor]:
        shape = facts.integer("composer_vocab_size"), facts.integer("hidden_size")
        return [Tensor("mel_conditioner.embedding.weight", _E, shape)]

    return seq2seq(decoder, encoder, named(_CROSS), beside=composers)


def _udop_biases(side: str, facts: Facts) -> list[Tensor]:
    """The biases beside the first, which is the encoder's own: of places on the page.

    ``UdopModel`` alone has a first of its own on each side.
    """
    given = facts.items("relative_bias_args")
    found: list[Tensor] = []
    for index, entry in enumerate(_UDOP_BIASES if given is None else given):
        rows = entry.get("relative_attention_num_buckets", 32) if is_mapping(entry) else 32
        shape = facts.checked("relative_bias_args", rows, 1), facts.integer("num_heads")
        found.append(Tensor(f"{side}.relative_bias.{index}.weight", _A, shape))
    return found if first_class(facts.stated) == "UdopModel" else found[1:]


def _udop_outer(side: str) -> OuterRule:
    def tensors(facts: Facts, _family: Family) -> list[Tensor]:
        hidden, size = facts.integer("hidden_size"), facts.integer("patch_size")
        facts.settle("image_size")
        shape = hidden, facts.integer("num_channels"), size, size
        vision = ModuleClass.VISION
        found = [
            Tensor(f"{side}.embed_patches.proj.weight", vision, shape),
            Tensor(f"{side}.embed_patches.proj.bias", vision, (hidden,)),
        ]
        if side == "encoder":
            rows = facts.integer("max_2d_position_embeddings")
            cells = ("x_position_embeddings", "y_position_embeddings")
            found += [Tensor(f"cell_2d_embedding.{n}.weight", _E, (rows, hidden)) for n in cells]
        return found + _udop_biases(side, facts)

    return tensors


def _udop(base: Family) -> Family:
    """T5 over text, its places on the page, and patches of the page."""
    decoder, encoder = _sides(base)
    decoder = replace(decoder, positions=_udop_outer("decoder"))
    encoder = replace(encoder, positions=_udop_outer("encoder"))
    return seq2seq(decoder, encoder, named(_CROSS), beside=None)


_SPREAD = {"decoder": "num_decoder_layers", "encoder": "num_layers"}
"""Side -> the layers over which its sparse ones spread: the field before another name of it."""


def _switch() -> Family:
    """T5 with a mixture of experts in every few layers, each token to one of them."""
    made: list[Family] = []
    for side, layers in (("decoder", _decoder_layers), ("encoder", _encoder_layers)):

        def pattern(
            facts: Facts, count: int, sparse: str = f"num_sparse_{side}_layers",
            step: str = f"{side}_sparse_step", spread: str = _SPREAD[side],
        ) -> tuple[str, ...]:  # fmt: skip
            blocks, over = facts.count(sparse), facts.declared(spread) or count
            every = facts.integer(step, over // blocks if blocks else over, low=0)
            return tuple(
                SPARSE if every and (i % every == 1 or every == 1) else DENSE for i in range(count)
            )

        base = replace(
            _PLAIN, names=replace(_NAMES, mlp="mlp", up="wi"), gated=False, feed_pattern=pattern,
            reads_tie=True,
            moe=Moe(router="mlp.router.classifier", router_bias="router_bias", gated=False,
                    active="", width_rule=_width),
        )  # fmt: skip
        made.append(_stack(base, layers))
    decoder, encoder = made
    decoder = replace(decoder, norms=(*decoder.norms, "layer.2.layer_norm"))
    return seq2seq(decoder, encoder, named(_CROSS), beside=_switch_tables)


def _switch_tables(facts: Facts, family: Family) -> list[Tensor]:
    facts.settle("expert_capacity")
    return own_tables(facts, family)


def _square(facts: Facts, _kind: str) -> tuple[int, int]:
    """Pix2Struct's projections are as wide as the model, whatever ``d_kv`` says."""
    facts.settle("d_kv")
    hidden, heads = facts.integer("hidden_size"), facts.integer("num_heads")
    if hidden % heads:
        raise facts.bad(
            "num_heads",
            heads,
            tr("a divisor of hidden_size ({hidden}) is needed").format(hidden=hidden),
        )
    return hidden // heads, hidden // heads


def _pix2struct() -> Family:
    """Pix2Struct's decoder, which always reads its image encoder."""
    names = Names(
        attention="self_attention.attention", query="query", key="key", value="value",
        output="output", mlp="mlp.DenseReluDense", gate="wi_0", up="wi_1", down="wo",
        embedding="decoder.embed_tokens", final_norm="decoder.final_layer_norm",
    )  # fmt: skip
    norms = ("self_attention.layer_norm", "encoder_decoder_attention.layer_norm", "mlp.layer_norm")
    base = replace(
        _PLAIN, names=names, norms=norms, tied=False, reads_tie=True, head_dim=_square
    )  # fmt: skip
    cross = replace(names, attention="encoder_decoder_attention.attention")
    return seq2seq(_stack(base, _encoder_layers), None, named(cross), beside=None)


T5 = _gating(_t5)
FAMILIES = {
    "t5": T5, "mt5": T5, "umt5": _gating(_umt5), "longt5": _gating(_longt5),
    "pop2piano": _gating(_pop2piano), "udop": _gating(_udop), "switch_transformers": _switch(),
    "pix2struct_text_model": _pix2struct(),
}  # fmt: skip
