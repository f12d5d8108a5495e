"""A model that has no config: counted as a Llama of the measures that a person knows.

What is not known is chosen so that the parameters come out as stated, and said: the choice
touches activations and embeddings, not the cache, which follows from layers and heads alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.errors import ConfigError
from engine.source.raw import RawModel
from engine.words import figures, grouped, tr, tr_later

if TYPE_CHECKING:
    from collections.abc import Mapping

USUAL_VOCABULARY = 128_256
USUAL_CONTEXT = 131_072
_PER_LAYER = 13
"""Parameters of a layer in squares of its width: 2.5 for attention, 10.5 for a feed-forward
block that is 3.5 times as wide (Llama 3)."""
_MATRICES = 3
_ROUNDED_TO = 32
"""Elements of a block of the formats: widths that are no multiple could not be quantised."""
SOURCE = "entered by hand"
"""How a model says that it is known by its measures alone."""


@dataclass(frozen=True, slots=True)
class Measures:
    """What a person knows of a model; None where they don't."""

    parameters: int
    num_hidden_layers: int
    num_key_value_heads: int
    head_dim: int
    hidden_size: int | None = None
    vocab_size: int | None = None
    max_position_embeddings: int | None = None
    name: str = tr_later("entered by hand")


def by_hand(known: Measures) -> RawModel:
    """The model of these measures.

    Raises:
        ConfigError: the measures contradict each other; names the one to correct.
    """
    vocab = known.vocab_size or USUAL_VOCABULARY
    hidden = known.hidden_size or _likely_width(known, vocab)
    heads = hidden // known.head_dim // known.num_key_value_heads * known.num_key_value_heads
    heads = max(heads, known.num_key_value_heads)
    tied = 2 * vocab * hidden * 2 > known.parameters
    left = known.parameters - (1 if tied else 2) * vocab * hidden
    projections = 2 * hidden * known.head_dim * (heads + known.num_key_value_heads)
    each = left // known.num_hidden_layers - projections - 2 * hidden
    width = each // (_MATRICES * hidden * _ROUNDED_TO) * _ROUNDED_TO
    if width < 1:
        message = tr(
            "{parameters} parameters are too few for {num_hidden_layers} "
            "layers of {hidden} with {num_key_value_heads} KV heads of "
            "{head_dim}, beside a vocabulary of {vocab}: correct one of "
            "them."
        ).format(
            parameters=grouped(known.parameters),
            num_hidden_layers=known.num_hidden_layers,
            hidden=grouped(hidden),
            num_key_value_heads=known.num_key_value_heads,
            head_dim=known.head_dim,
            vocab=grouped(vocab),
        )
        raise ConfigError(message, field="parameters")
    context = known.max_position_embeddings or USUAL_CONTEXT
    config = {
        "model_type": "llama",
        "num_hidden_layers": known.num_hidden_layers,
        "num_attention_heads": heads,
        "num_key_value_heads": known.num_key_value_heads,
        "head_dim": known.head_dim,
        "hidden_size": hidden,
        "intermediate_size": width,
        "vocab_size": vocab,
        "max_position_embeddings": context,
        "tie_word_embeddings": tied,
        "torch_dtype": "bfloat16",
    }
    return RawModel(
        id=known.name,
        source=SOURCE,
        config=config,
        notes=(_note(known, config),),
    )


def _likely_width(known: Measures, vocab: int) -> int:
    """The width at which such layers have that many parameters, in whole heads."""
    step = known.head_dim * known.num_key_value_heads

    def total(width: int) -> int:
        return _PER_LAYER * known.num_hidden_layers * width**2 + vocab * width

    width = step
    while total(width + step) <= known.parameters:
        width += step
    nearer = total(width + step) - known.parameters < known.parameters - total(width)
    return width + step if nearer else width


def _note(known: Measures, config: Mapping[str, object]) -> str:
    chosen = [
        f"{words} {figures(f'{config[key]:,}')}"
        for key, words, given in (
            ("hidden_size", tr("hidden size"), known.hidden_size),
            ("intermediate_size", tr("feed-forward width"), None),
            ("vocab_size", tr("vocabulary"), known.vocab_size),
            ("max_position_embeddings", tr("context"), known.max_position_embeddings),
        )
        if given is None
    ]
    return tr("Entered by hand and counted as a Llama of these measures; chosen: {names}.").format(
        names=", ".join(chosen)
    )
