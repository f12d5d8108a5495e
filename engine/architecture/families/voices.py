"""Llamas that write sound: Higgs Audio 2 has an MLP of its own for sound in every layer.

Source:
    transformers 5.24.0, ``higgs_audio_v2/modeling_higgs_audio_v2.py``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from engine.architecture.families import feed
from engine.architecture.families.base import norm
from engine.architecture.families.dense import LLAMA
from engine.architecture.heads import head_of, whole_class
from engine.architecture.spec import ModuleClass, Sharding, Tensor

if TYPE_CHECKING:
    from engine.architecture.families.base import Family
    from engine.config.facts import Facts


def _second_way(facts: Facts, family: Family, _mixer: str, _feed: str) -> list[Tensor]:
    """What the tokens of sound pass instead of those of text: an MLP and both norms."""
    hidden = facts.integer("hidden_size")
    tensors = feed.mlp_tensors(facts, family, facts.integer("intermediate_size"), "audio_mlp")
    for name in ("audio_input_layernorm", "audio_post_attention_layernorm"):
        tensors += norm(name, hidden)
    return tensors


def _codes(facts: Facts, _family: Family) -> list[Tensor]:
    """A table of the codes of every book, and a head over them in place of one over text."""
    rows = facts.integer("num_codebooks") * facts.integer("codebook_size")
    shape = (rows, facts.integer("hidden_size"))
    table = Tensor("model.embed_audio_tokens.weight", ModuleClass.EMBEDDING, shape)
    if head_of({"architectures": [whole_class(facts)]}) == "none":
        return [table]
    head = Tensor(
        "audio_lm_head.weight", ModuleClass.LM_HEAD, shape, 1, Sharding.VOCAB, linear=True
    )
    return [table, head]


FAMILIES = {
    "higgs_audio_v2": replace(LLAMA, layer_extra=_second_way, positions=_codes, has_head=False),
}
