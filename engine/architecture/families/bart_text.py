"""Text decoders of multimodal models that have BART's layers, with or without an image to read.

Source:
    transformers 5.24.0, ``kosmos2``, ``kosmos2_5`` and ``pp_formulanet``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from engine.architecture.families import attention
from engine.architecture.families.base import Family, Mixed, norm, state_doubt
from engine.architecture.families.classic import ffn_dim, own_heads
from engine.architecture.families.crossed import reading, whole_heads
from engine.architecture.families.seq2seq import DECODER, crossing, named, stack
from engine.architecture.families.seq2seq_bart import CROSS, PLAIN, positions
from engine.architecture.spec import Direction, ModuleClass, Tensor
from engine.words import tr

if TYPE_CHECKING:
    from engine.architecture.spec import Doubt
    from engine.config.facts import Facts

_CROSSED = crossing(attention.gqa, named(CROSS))


def _reading(facts: Facts, family: Family, kind: str) -> Mixed:
    """Self- and cross-attention; without its root the decoder has nothing to read, or to keep."""
    mixed = _CROSSED(facts, replace(family, attention=None), kind)
    hidden = facts.integer("hidden_size")
    tensors = [*mixed.tensors, *norm("encoder_attn_layer_norm", hidden, bias=True)]
    return replace(mixed, tensors=tensors, cross=mixed.cross if facts.path else None)


def _inner_norms(facts: Facts, _family: Family, _mixer: str, _feed: str) -> list[Tensor]:
    tensors = norm("ffn.ffn_layernorm", ffn_dim(facts), bias=True)
    if facts.model_type == "kosmos_2_text_model":
        tensors += norm("self_attn.inner_attn_ln", facts.integer("hidden_size"), bias=True)
    return tensors


def _segments(facts: Facts, _family: Family) -> list[Tensor]:
    """Which tokens are of the image, which of the text."""
    shape = (2, facts.integer("hidden_size"))
    return [Tensor("model.segment_emb.weight", ModuleClass.EMBEDDING, shape)]


def _reading_doubts(facts: Facts) -> list[Doubt]:
    # The encoder is the vision tower: the class reads nothing of BART's.
    facts.settle("is_encoder_decoder", "encoder_layers", "encoder_attention_heads")
    if not facts.path:
        return []
    reason = tr("its cross-attention keeps what the image yields: counted as long as the answer")
    return state_doubt(reason, Direction.EITHER)


KOSMOS = replace(
    PLAIN, attention=reading(CROSS, "encoder_attn_layer_norm"), kv_heads=own_heads,
    head_dim=whole_heads, width=ffn_dim, layer_extra=_inner_norms,
    names=replace(
        PLAIN.names, mlp="ffn", embedding="model.embed_tokens", final_norm="model.layer_norm"
    ),
)  # fmt: skip
# Its layers have no cross-attention, whatever a config states.
KOSMOS_2_5 = replace(KOSMOS, positions=_segments, attention=None, harmless=("add_cross_attention",))
PP_FORMULANET = replace(
    stack(PLAIN, DECODER), attention=_reading, doubts=_reading_doubts, tied=False,
    positions=positions("model", extra=2, normed=True),
    names=replace(PLAIN.names, embedding="model.embed_tokens", final_norm="model.layer_norm"),
)  # fmt: skip

FAMILIES = {
    "kosmos_2_text_model": KOSMOS, "kosmos_2_5_text_model": KOSMOS_2_5,
    "pp_formulanet_text": PP_FORMULANET,
}  # fmt: skip
