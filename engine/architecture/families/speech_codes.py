"""Decoders of sound's codes: several codebooks at once, each with a table and a head of its own.

Source:
    transformers 5.24.0, ``musicgen``, ``musicgen_melody``, ``dia`` and ``kyutai_speech_to_text``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from engine.architecture.families import attention, patterns
from engine.architecture.families.base import Family, Mixed, Names, matrix
from engine.architecture.families.seq2seq import named, reading, seq2seq, table
from engine.architecture.families.seq2seq_bart import CROSS, NAMES, NORMS, PLAIN
from engine.architecture.heads import is_bare
from engine.architecture.spec import ModuleClass, Sharding, Tensor
from engine.words import tr

if TYPE_CHECKING:
    from engine.architecture.families.base import OuterRule
    from engine.config.facts import Facts


def _codebooks(key: str, extra: int = 0) -> OuterRule:
    """The tables and heads beyond the first of as many codebooks as ``key`` says."""

    def tensors(facts: Facts, _family: Family) -> list[Tensor]:
        more = facts.integer(key) - 1
        rows, hidden = facts.integer("vocab_size"), facts.integer("hidden_size")
        facts.settle("audio_channels")
        if not more:
            return []
        shape = rows, hidden
        first = table("embed_tokens.*", rows + extra, hidden)
        tables = [replace(first, copies=more)]
        if is_bare(facts):
            return tables
        heads = matrix("lm_heads.*", ModuleClass.LM_HEAD, shape, Sharding.VOCAB, copies=more)
        return [*tables, *heads]

    return tensors


_MUSIC = replace(
    PLAIN, names=replace(NAMES, embedding="embed_tokens.0", final_norm="layer_norm"),
    q_bias=False, o_bias=False, mlp_bias=False, tied=False, reads_tie=False, embedding_extra=1,
    positions=_codebooks("num_codebooks", extra=1),
)  # fmt: skip


def _musicgen() -> Family:
    decoder = replace(_MUSIC, norms=(*NORMS, "encoder_attn_layer_norm"))
    return seq2seq(decoder, None, named(CROSS), beside=None)


def _dia_cross(facts: Facts, family: Family, kind: str) -> Mixed:
    """Dia's cross-attention, whose heads have their own number and width."""

    def heads(own: Facts, _kind: str) -> int:
        return own.integer("cross_num_attention_heads")

    def kv_heads(own: Facts, _kind: str) -> int:
        return own.integer("cross_num_key_value_heads")

    def widths(own: Facts, _kind: str) -> tuple[int, int]:
        width = own.integer("cross_head_dim")
        return width, width

    names = replace(family.names, attention="cross_attention")
    own = replace(family, names=names, heads=heads, kv_heads=kv_heads, head_dim=widths)
    return reading(facts.integer("cross_hidden_size"), attention.gqa(facts, own, kind))


DIA_SIDE = Family(
    names=Names(attention="self_attention", gate="gate_up_proj", embedding="embedding",
                final_norm="norm"),
    gate_up_fused=True, norms=("pre_sa_norm", "post_sa_norm"),
)  # fmt: skip
"""A layer of Dia's encoder."""


def _dia() -> Family:
    decoder = replace(
        DIA_SIDE, norms=("pre_sa_norm", "pre_ca_norm", "pre_mlp_norm"), tied=False,
        reads_tie=False, positions=_codebooks("num_channels"),
    )  # fmt: skip
    return seq2seq(decoder, None, _dia_cross, beside=None)


def _half(facts: Facts) -> int:
    """Width of the gated MLP: gate and up share ``ffn_dim``."""
    width = facts.integer("ffn_dim")
    if width % 2:
        raise facts.bad("ffn_dim", width, tr("an even number is needed"))
    return width // 2


def _heard_codes(facts: Facts, _family: Family) -> list[Tensor]:
    facts.settle("frame_size")
    rows = facts.integer("num_codebooks") * facts.integer("codebook_vocab_size") + 1
    return [table("model.embed_tokens.codes", rows, facts.integer("hidden_size"))]


# One table holds the words and, behind them, the codes of every codebook.
KYUTAI = Family(
    names=Names(
        query="q_proj.linear", key="k_proj.linear", value="v_proj.linear", output="o_proj.linear",
        gate="fc1", down="fc2",
    ),
    gate_up_fused=True, width=_half, pattern=patterns.windowed_if_stated, positions=_heard_codes,
    tied=False,
)  # fmt: skip

FAMILIES = {
    "musicgen_decoder": _musicgen(), "musicgen_melody_decoder": _MUSIC, "dia_decoder": _dia(),
    "kyutai_speech_to_text": KYUTAI,
}  # fmt: skip
