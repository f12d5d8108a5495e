"""Dense text parts of multimodal models, where their layers are no other type's."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from engine.architecture.families import patterns
from engine.architecture.families.base import Family, matrix
from engine.architecture.families.dense import AB, MISTRAL
from engine.architecture.spec import Direction, Doubt, ModuleClass, Sharding, Subject
from engine.words import tr

if TYPE_CHECKING:
    from engine.architecture.spec import Tensor
    from engine.config.facts import Facts


# Source: transformers 5.24.0, ``cohere_compass``: all layers are full unless ``layer_types`` is
# stated, and one norm stands before both blocks.
COHERE_COMPASS = Family(
    q_bias=AB, o_bias=AB, norms=("input_layernorm",), pattern=patterns.full_unless_stated, tied=True
)
# Source: transformers 5.24.0, ``molmo2``: the embedding has rows for the image's own tokens.
_MOLMO2 = Family(q_bias=AB, qk_norm="head", embedding_extra="additional_vocab_size")


def _molmo2(facts: Facts) -> Family:
    kind = facts.word("qk_norm_type", "qwen3")
    if kind not in ("qwen3", "olmo"):
        raise facts.bad("qk_norm_type", kind, tr("'qwen3' or 'olmo' is needed"))
    return replace(_MOLMO2, qk_norm="head" if kind == "qwen3" else "full")


def _half(facts: Facts) -> int:
    """Molmo states the width of gate and up together."""
    return facts.integer("intermediate_size") // 2


def _molmo_doubts(facts: Facts) -> list[Doubt]:
    vocab = facts.integer("vocab_size")
    rows, kind = facts.integer("embedding_size", vocab), facts.word("layer_norm_type", "rms")
    if rows == vocab and kind == "rms":
        return []
    reason = tr("its embedding or its norms are not those of a Molmo that was compared")
    return [Doubt(Subject.WEIGHTS, reason, Direction.EITHER)]


# Source: allenai/Molmo-7B-D-0924 and Molmo-72B-0924 have these totals.
MOLMO = Family(
    q_bias="qkv_bias", qk_norm="full", qk_norm_if="attention_layer_norm", width=_half,
    embedding_extra=128, doubts=_molmo_doubts, harmless=("norm_after", "weight_tying"),
)  # fmt: skip


def _ada_norm(facts: Facts, _family: Family, _mixer: str, _feed: str) -> list[Tensor]:
    """The two matrices by which the delay scales what enters the MLP."""
    hidden, whole = facts.integer("hidden_size"), Sharding.REPLICATED
    return [
        *matrix("ada_rms_norm.linear1", ModuleClass.NORM, (_ADA_RANK, hidden), whole),
        *matrix("ada_rms_norm.linear2", ModuleClass.NORM, (hidden, _ADA_RANK), whole),
    ]


# Source: transformers 5.24.0, ``voxtral_realtime``.
_ADA_RANK = 32
VOXTRAL_REALTIME = replace(MISTRAL, layer_extra=_ada_norm)

FAMILIES = {
    "voxtral_realtime_text": VOXTRAL_REALTIME,
    "cohere_compass_text": COHERE_COMPASS,
    "molmo_text": MOLMO,
    "molmo2_text": replace(_MOLMO2, by_class=_molmo2),
}
