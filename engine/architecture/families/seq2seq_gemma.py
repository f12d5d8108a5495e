"""T5Gemma and T5Gemma 2: Gemma's layers on both sides, the decoder's with cross-attention.

Source:
    transformers 5.24.0, ``t5gemma/modeling_t5gemma.py``, ``t5gemma2/modeling_t5gemma2.py``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from engine.architecture.families import attention, patterns
from engine.architecture.families.base import FULL, Family, Mixed, Names
from engine.architecture.families.dense import AB
from engine.architecture.families.seq2seq import reading, seq2seq

if TYPE_CHECKING:
    from engine.config.facts import Facts

_NORMS = (
    "pre_self_attn_layernorm", "post_self_attn_layernorm", "pre_feedforward_layernorm",
    "post_feedforward_layernorm",
)  # fmt: skip
_CROSS_NORMS = ("pre_cross_attn_layernorm", "post_cross_attn_layernorm")
MODULE = Family(
    names=Names(embedding="embed_tokens", final_norm="norm"), q_bias=AB, o_bias=AB, norms=_NORMS,
    pattern=patterns.every(2), tied=True,
)  # fmt: skip
"""One side of T5Gemma."""
MODULE2 = replace(
    MODULE, qk_norm="head", pattern=patterns.every(6, "sliding_window_pattern")
)  # fmt: skip
"""One side of T5Gemma 2."""


def encoder_width(facts: Facts) -> int:
    """Hidden size of the encoder beside the decoder that ``facts`` describes."""
    facts.settle("cross_attention_hidden_size")
    whole = facts.above
    encoder = whole and (whole.sub("encoder") or whole.empty("encoder"))
    own = facts.integer("hidden_size")
    return encoder.integer("hidden_size", own) if encoder else own


def _cross(facts: Facts, family: Family, _kind: str) -> Mixed:
    names = replace(family.names, attention="cross_attn")
    mixed = attention.gqa(facts, replace(family, names=names), FULL)
    return reading(encoder_width(facts), mixed)


def _merged(facts: Facts, family: Family, _kind: str) -> Mixed:
    """T5Gemma 2 reads the encoder with the same weights as itself, and keeps both."""
    return Mixed([], attention.gqa(facts, family, FULL).attention)


FAMILIES = {
    "t5_gemma_module": seq2seq(
        replace(MODULE, norms=(*_NORMS, *_CROSS_NORMS)), None, _cross, beside=None
    ),
    "t5gemma2_decoder": seq2seq(MODULE2, None, _merged, beside=None),
}  # fmt: skip
