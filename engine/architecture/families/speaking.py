"""Decoders of models that hear and speak at once: Moshi.

Source:
    transformers 5.24.0, ``moshi/modeling_moshi.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.architecture.families.base import SLIDING, Family, Names
from engine.architecture.heads import head_of
from engine.architecture.spec import Direction, Doubt, Subject

if TYPE_CHECKING:
    from engine.config.facts import Facts


def _width(facts: Facts) -> int:
    """Gate and up share ``ffn_dim`` rows."""
    rows = facts.integer("ffn_dim")
    if rows % 2:
        raise facts.bad("ffn_dim", rows, "an even number is needed")
    return rows // 2


def _slides(_facts: Facts, layers: int) -> tuple[str, ...]:
    return (SLIDING,) * layers


def _beside(facts: Facts) -> list[Doubt]:
    """The class for text alone has neither the audio encoder nor the decoder over codebooks."""
    parts = ("audio_encoder_config", "depth_decoder_config", "num_codebooks", "audio_vocab_size")
    named = facts.items("architectures")
    facts.settle(*parts)
    if not named or str(named[0]).endswith("ForCausalLM") or head_of(facts.stated) == "none":
        return []
    reason = "its audio encoder, its codebooks and the decoder over them are not counted"
    return [
        Doubt(subject, reason, Direction.LOWER)
        for subject in (Subject.WEIGHTS, Subject.SEQUENCE_STATE)
    ]


MOSHI = Family(
    names=Names(
        query="q_proj.linear", key="k_proj.linear", value="v_proj.linear", output="o_proj.linear",
        gate="fc1", down="fc2",
    ),
    gate_up_fused=True, width=_width, pattern=_slides, embedding_extra=1, doubts=_beside,
    tied=False, reads_tie=False,
)  # fmt: skip

FAMILIES = {"moshi": MOSHI}
