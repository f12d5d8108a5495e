"""Decoders that read an encoder's tokens where ``add_cross_attention`` asks for it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from engine.architecture.families import attention
from engine.architecture.families.base import Mixed, norm, state_doubt
from engine.architecture.families.sources import image_tokens
from engine.architecture.spec import AttentionKind, Direction
from engine.words import tr

if TYPE_CHECKING:
    from engine.architecture.families.base import Family, MixerRule, Names
    from engine.architecture.spec import Doubt
    from engine.config.facts import Facts


def crossed(facts: Facts, family: Family, mixed: Mixed, names: Names, last: str) -> Mixed:
    """``mixed`` with the cross-attention of the layer, if the config asks for it.

    Args:
        facts: the config.
        family: whose biases the cross-attention shares.
        mixed: the self-attention.
        names: names of the cross-attention's modules.
        last: name of its norm.
    """
    own = mixed.attention
    if own is None or not facts.flag("add_cross_attention"):
        return mixed
    tensors = [
        *mixed.tensors,
        *attention.projections(facts, replace(family, names=names), own),
        *norm(last, facts.integer("hidden_size"), bias=True),
    ]
    # By itself a decoder has no encoder to attend to, and keeps nothing of one.
    window = image_tokens(facts)
    cross = replace(own, kind=AttentionKind.CROSS, window=window) if facts.path else None
    return Mixed(tensors, own, cross=cross)


def reading(names: Names, last: str) -> MixerRule:
    """Grouped-query attention, crossed where the config asks for it; ``last`` names the norm."""

    def block(facts: Facts, family: Family, kind: str) -> Mixed:
        own = replace(family, attention=None)
        return crossed(facts, own, attention.gqa(facts, own, kind), names, last)

    return block


def reading_doubts(facts: Facts) -> list[Doubt]:
    """How much a decoder keeps of an encoder that reads no text, where that is not known."""
    root = facts.above.model_type if facts.above else ""
    if root in ("", "encoder-decoder") or not facts.flag("add_cross_attention"):
        return []
    if image_tokens(facts):
        return []
    reason = tr(
        "its cross-attention keeps what {root} hears or sees: counted as long as the answer"
    ).format(root=root)
    return state_doubt(reason, Direction.EITHER)


def whole_heads(facts: Facts, _kind: str) -> tuple[int, int]:
    """Head widths of classes that share the hidden size out and read no other width.

    Raises:
        ConfigError: the heads do not divide it.
    """
    hidden, heads = facts.integer("hidden_size"), facts.integer("num_attention_heads")
    facts.settle("head_dim")
    if hidden % heads:
        wanted = tr("a multiple of num_attention_heads ({heads}) is needed").format(heads=heads)
        raise facts.bad("hidden_size", hidden, wanted)
    return hidden // heads, hidden // heads
